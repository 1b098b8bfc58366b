"""Random errors of ordinary cells: of the sensor, its mounting, the base and the encoders.

Some last for hours (`CellErrors`), some recur with a pose (fields) or nearly so (hysteresis,
cables). The estimator's assumptions about them play no part here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np
from scipy.signal import butter, lfilter, lfilter_zi
from scipy.spatial.transform import Rotation

from load_identification.typing_aliases import FloatArray

FIELD_RMS = np.array([0.1] * 3 + [0.004] * 3)
"""Rms of errors tied to the pose, in each channel [N, N m]."""

ROUGH = np.deg2rad(20.0)
"""Correlation length of a rough field [rad]."""

CABLE = 0.7
"""Correlation length of a cable's pull, in joint angles [rad]."""

TAUT, ABOVE = 0.2, 1.0
"""Largest pull of a taut cable, and height of its other end above the sensor at first [N, m]."""

MEMORY = np.deg2rad(30.0)
"""Travelled angle over which a path is forgotten [rad]."""

PLAY = np.array([4.0] * 3 + [0.2] * 3)
"""Change of wrench over which hysteresis goes from one side to the other [N, N m]."""

LOW_PASSES = ('first', 'second', 'mean')
"""Filters of a sensor's driver: Butterworth of first and second order, and a moving average."""

MEAN_CUTOFF = 0.443
"""-3 dB frequency of a moving average, times its length [-]."""

WAVES = 60
"""Plane waves of a random field."""


@dataclass(frozen=True)
class CellErrors:
    """Standard deviations of a cell's errors; the defaults are those of an ordinary cell."""

    common_gain: float = 0.005
    gain: float = 0.005
    """Of all channels together, and of each channel [-]."""
    cross_talk: float = 0.005
    """Between forces, and between torques [-]."""
    moment_arm: float = 0.0005
    """Torque by force [m]; force by torque is as large at a lever arm of 0.1 m."""
    mounting: float = float(np.deg2rad(0.3))
    """Rotation of the sensor relative to its frame, about each axis [rad]."""
    tilt: float = float(np.deg2rad(0.2))
    """Tilt of the base about each horizontal axis [rad]."""
    zeros: float = float(np.deg2rad(0.1))
    """Zero of each joint [rad]."""
    lag: float = 0.002
    """Delay of the wrench beyond its stamp [s]."""
    origin: float = 0.0
    """Place where the sensor measures, along each axis of its frame [m]; that of an ordinary cell
    is as described."""

    def times(self, factor: float) -> CellErrors:
        """Return all of them multiplied by a factor."""
        return CellErrors(**{f.name: factor * getattr(self, f.name) for f in fields(self)})

    def only(self, *names: str) -> CellErrors:
        """Return the named ones, with the others zero."""
        return replace(NO_ERRORS, **{name: getattr(self, name) for name in names})


NO_ERRORS = CellErrors().times(0.0)


@dataclass(frozen=True, eq=False)
class Cell:
    """Errors of one cell."""

    response: FloatArray
    """From true to measured wrench, in S, (6, 6) [-, N/(N m), m]."""
    gravity: FloatArray
    """True gravity in the root frame, (3,) [m/s²]."""
    zeros: FloatArray
    """True minus published joint positions, (J,) [rad]."""
    lag: float
    """Delay of the wrench beyond its stamp [s]."""
    origin: FloatArray
    """Where the sensor measures, in its frame, (3,) [m]."""


def draw_cell(
    errors: CellErrors, gravity: FloatArray, joints: int, rng: np.random.Generator
) -> Cell:
    """Draw a cell; switching errors off leaves the others the same for the same generator.

    Parameters
    ----------
    gravity : (3,) array
        Gravity used with the description, in the root frame [m/s²].
    """
    common, gains = rng.standard_normal(), rng.standard_normal(6)
    mixed, turn = rng.standard_normal((6, 6)), errors.mounting * rng.standard_normal(3)
    tilt, zeros, lag = (
        errors.tilt * rng.standard_normal(3),
        errors.zeros * rng.standard_normal(joints),
        errors.lag * rng.standard_normal(),
    )
    size = np.full((6, 6), errors.cross_talk)
    size[3:, :3] = errors.moment_arm
    size[:3, 3:] = errors.moment_arm / 0.1**2
    mixed = size * mixed
    mixed[np.diag_indices(6)] = errors.common_gain * common + errors.gain * gains
    turned = np.kron(np.eye(2), Rotation.from_rotvec(turn).as_matrix())
    vertical = gravity / np.linalg.norm(gravity)
    tilt = tilt - vertical * (vertical @ tilt)
    down = Rotation.from_rotvec(tilt).apply(gravity)
    origin = errors.origin * rng.standard_normal(3)
    return Cell((np.eye(6) + mixed) @ turned, down, zeros, float(lag), origin)


def smooth_field(direction: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw a combination of real harmonics of degree 2 and 3, of `FIELD_RMS` over the sphere.

    Parameters
    ----------
    direction : (n, 3) array
        Direction of gravity in S, unit vectors.

    Returns
    -------
    (n, 6) array
        [N, N m].
    """
    x, y, z = direction.T
    # Each has mean square 1 over the sphere.
    second = np.sqrt(15.0) * np.array(
        [x * y, y * z, x * z, (x**2 - y**2) / 2.0, (3.0 * z**2 - 1.0) / np.sqrt(12.0)]
    )
    third = np.sqrt(7.0) * np.array(
        [
            (5.0 * z**3 - 3.0 * z) / 2.0,
            *(np.sqrt(3.0 / 8.0) * a * (5.0 * z**2 - 1.0) for a in (x, y)),
            *(np.sqrt(15.0) * a for a in (x * y * z, z * (x**2 - y**2) / 2.0)),
            *(np.sqrt(5.0 / 8.0) * a for a in (x * (x**2 - 3 * y**2), y * (3 * x**2 - y**2))),
        ]
    )
    basis = np.vstack([second, third])
    weights = rng.standard_normal((len(basis), 6)) / np.sqrt(len(basis))
    return np.asarray(basis.T @ weights * FIELD_RMS)


def linear_field(direction: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw a field of degree 1, each harmonic as large as those of `smooth_field`: like a load.

    Its rms over the sphere is half of `FIELD_RMS`. Takes unit vectors (n, 3) and returns wrenches
    (n, 6) [N, N m], as `smooth_field` does.
    """
    # A harmonic of mean square 1 is sqrt(3) times a component; there are 12 of degrees 2 and 3.
    return np.asarray(np.sqrt(3.0 / 12.0) * direction @ rng.standard_normal((3, 6)) * FIELD_RMS)


def random_field(points: FloatArray, length: float, rng: np.random.Generator) -> FloatArray:
    """Draw a Gaussian random field of `FIELD_RMS`, correlated as exp(-d² / 2 length²).

    sqrt(2 / K) sum_k a_k cos(w_k x + p_k), w_k normal of standard deviation 1 / length

    Parameters
    ----------
    points : (n, d) array
        Directions of gravity in S, or joint positions.
    length : float
        In the unit of the points.

    Returns
    -------
    (n, 6) array
        [N, N m].
    """
    waves = rng.standard_normal((points.shape[1], WAVES)) / length
    phases = rng.uniform(0.0, 2.0 * np.pi, WAVES)
    weights = rng.standard_normal((WAVES, 6)) * np.sqrt(2.0 / WAVES)
    return np.asarray(np.cos(points @ waves + phases) @ weights * FIELD_RMS)


def path_memory(angle: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw errors that depend on the path: six processes that forget with the travelled angle.

    b' = a b + w, a = exp(-step / MEMORY), stationary standard deviation 0.6 `FIELD_RMS`

    Parameters
    ----------
    angle : (n,) array
        Travelled angle, increasing [rad].

    Returns
    -------
    (n, 6) array
        [N, N m].
    """
    step = MEMORY / 20.0
    grid = np.arange(0.0, angle[-1] + 2.0 * step, step)
    fade = np.exp(-step / MEMORY)
    noise = rng.standard_normal((len(grid), 6))
    noise[1:] *= np.sqrt(1.0 - fade**2)
    states = lfilter([1.0], [1.0, -fade], noise, axis=0)
    columns = [np.interp(angle, grid, column) for column in states.T]
    return np.asarray(0.6 * FIELD_RMS * np.stack(columns, axis=1))


def hysteresis(wrench: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the error of play in each channel, half of `FIELD_RMS` at either stop.

    z' = clip(z + 2 dw / PLAY, -1, 1): it lags behind the wrench (n, 6) [N, N m]
    """
    steps = 2.0 * np.diff(wrench, axis=0, prepend=wrench[:1]) / PLAY
    sign = rng.choice([-1.0, 1.0], 6)
    side = rng.uniform(-1.0, 1.0, 6)
    play = np.empty_like(wrench)
    for k, step in enumerate(steps):
        side = np.minimum(np.maximum(side + step, -1.0), 1.0)
        play[k] = side
    return np.asarray(0.5 * sign * FIELD_RMS * play)


def play(wrench: FloatArray, half: FloatArray | None = None) -> FloatArray:
    """Return the error of a sensor with play, which keeps its full width in small swings too.

    What is measured follows the wrench (n, 6) at most half a width behind it: `half`, (6,), by
    default `FIELD_RMS` [N, N m].
    """
    half = FIELD_RMS if half is None else half
    felt = wrench.copy()
    for before, now in pairwise(felt):
        np.clip(before, now - half, now + half, out=now)
    return np.asarray(felt - wrench)


def taut_cable(position: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the pull (n, 3) of an elastic cable from above at positions (n, 3) [N, m]."""
    away = np.append(rng.uniform(-0.3, 0.3, 2), ABOVE) - position
    length = np.linalg.norm(away, axis=1, keepdims=True)
    pull = (1.0 - 0.98 * length.min() / length) * away
    return np.asarray(TAUT * pull / np.linalg.norm(pull, axis=1).max())


def sway(acceleration: FloatArray, frequency: float, damping: float, step: float) -> FloatArray:
    """Return by how much joints behind springs are ahead of their encoders, and the rates.

    e'' + 2 d w e' + w² e = -q'', w = 2 pi frequency, q'' held over each step

    Parameters
    ----------
    acceleration : (n, J) array
        Accelerations of the encoders [rad/s²].
    frequency, damping, step : float
        Resonance [Hz], damping ratio [-], and interval between samples [s].

    Returns
    -------
    (3, n, J) array
        e, e', e'' [rad, and per s and s²].
    """
    omega = 2.0 * np.pi * frequency
    pole = omega * complex(-damping, np.sqrt(1.0 - damping**2))
    # z = e' - conj(pole) e follows z' = pole z - q'', which begins with the springs at rest.
    grown = np.exp(pole * step)
    drive = np.empty(acceleration.shape, dtype=complex)
    drive[0] = np.conj(pole) * acceleration[0] / omega**2
    drive[1:] = (1.0 - grown) / pole * acceleration[:-1]
    z = lfilter([1.0], [1.0, -grown], drive, axis=0)
    e = z.imag / pole.imag
    rate = z.real + pole.real * e
    return np.array([e, rate, 2.0 * pole.real * rate - omega**2 * e - acceleration])


def low_passed(wrench: FloatArray, kind: str, cutoff: float, step: float) -> FloatArray:
    """Return what the filter of a sensor's driver makes of its samples (n, 6) [N, N m].

    It is in its steady state at first.

    Parameters
    ----------
    kind : str
        One of `LOW_PASSES`.
    cutoff : float
        -3 dB frequency [Hz]; of a moving average over T it is 0.443 / T.
    step : float
        Interval between the samples that it filters [s].
    """
    if kind == 'mean':
        count = max(round(MEAN_CUTOFF / (cutoff * step)), 1)
        up, down = np.full(count, 1.0 / count), np.ones(1)
    else:
        order = LOW_PASSES.index(kind) + 1
        up, down = butter(order, cutoff, fs=1.0 / step)
    if len(up) < 2:
        return wrench
    steady = lfilter_zi(up, down)[:, None] * wrench[:1]
    return np.asarray(lfilter(up, down, wrench, axis=0, zi=steady)[0])
