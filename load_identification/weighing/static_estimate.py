"""Average the wrench at rest; estimate mass and first moment, or the offset, by gravity alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.fft

from load_identification.errors import LoadIdentificationError
from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.measurement import Block
from load_identification.estimation.sensor_offset import OfErrors, OffsetPrior
from load_identification.estimation.systematic_errors import SystematicErrors
from load_identification.interface.batches import CHANNELS
from load_identification.model.regressor import wrench_regressor
from load_identification.numerics.triangle import triangular
from load_identification.signals.rest import NORMAL_MEDIAN
from load_identification.typing_aliases import FloatArray, IntArray
from load_identification.weighing.verdict import SURE

UNSTEADY = 4.0
"""Largest scatter of averages over a window's parts, as a multiple of the sensor's noise [-]."""

NOISY = 5.0
"""Largest error by white noise of an average that may be an offset, as a multiple of the expected
noise of a filtered sample [-]: 8 N of noise in 1000 samples, by default."""

PARTS = 20
"""Number of parts into which a window is divided to detect a drifting wrench."""

LOWEST_WAVES = {20: 1.064, 8: 1.177, 3: 1.624}
"""Number of a window's lowest frequencies that estimate the noise at frequency zero, which is that
of an average, and the factor for a standard deviation from so few: the 97.5 % quantile of
Student's t over 1.96. The largest result counts: many suit white noise, few suit slow noise."""

QUIETEST = 0.02
"""Least standard error of an average, as a share of the expected noise [-]: a sensor's last digit
may hide more than its samples show."""

WINDOW_NS, FEWEST_WINDOWS = 500_000_000, 8
"""Length of the averages of a rest that show noise too slow for one average [ns], and their least
number."""

FROM_FOUR = 1.416
"""Factor for a standard deviation from four values, as in `LOWEST_WAVES` [-]."""

FINE = np.zeros(2)
"""Steps of force and torque where there is no quantiser [N, N m]."""

NOTHING_KNOWN = 1e3
"""Prior standard deviation of mass and first moment, wide enough to have no effect [kg, kg m]."""

ABSENT_STD = np.array([1e5] * 3 + [1e4] * 3)
"""Of the offset of a channel that the sensor lacks: nothing is known [N, N m]."""


class NotAtRestError(LoadIdentificationError):
    """The arm moves or its wrench is unsteady; the text says which and by how much."""


@dataclass(frozen=True, eq=False)
class StaticPose:
    """A wrench averaged at rest."""

    start: int
    end: int
    """Stamps of the first and the last sample [ns]."""
    mean: FloatArray
    standard_error: FloatArray
    """Raw wrench, (6,) [N, N m]; the error accounts for the samples' correlation. A channel
    without finite samples has mean NaN and an infinite error."""
    scatter: FloatArray
    """Standard deviation of averages over 1/50 s, about a filtered sample's noise at rest,
    (6,)."""
    noise: FloatArray
    """White noise of a sample, standard deviation, (6,) [N, N m]."""
    samples: int

    def with_play(self, play: FloatArray, gravity: FloatArray | None) -> StaticPose:
        """Return the average with play of each channel, (6,), on an unknown side [N, N m].

        As a load is put on, all channels lag behind it at once. So the standard error is such that
        their play adds up along `gravity` (3,) in S, without it along a diagonal.
        """
        if gravity is None:
            gravity = np.ones(3)
        together = np.abs(gravity).sum() / np.linalg.norm(gravity)
        return replace(self, standard_error=np.hypot(self.standard_error, together * play))

    def at_least(self, error: FloatArray) -> StaticPose:
        """Return the average with standard errors of at least these, (6,) [N, N m]."""
        return replace(self, standard_error=np.maximum(self.standard_error, error))


@dataclass(frozen=True, eq=False)
class StaticEstimate:
    """Mass and first moment from gravity alone (eq. 19, 20)."""

    values: FloatArray
    """m, m c, (4,) [kg, kg m]."""
    covariance: FloatArray
    """One pose does not determine the first moment along gravity, (4, 4); its standard deviation
    there is `NOTHING_KNOWN`."""

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.values[0])

    @property
    def mass_std(self) -> float:
        """Standard deviation of the mass [kg]."""
        return float(np.sqrt(self.covariance[0, 0]))

    def center_of_mass(self) -> tuple[FloatArray, FloatArray]:
        """Return the centre of mass (3,) in S [m] and its covariance; NaN if nothing is held."""
        if not self.mass > SURE * self.mass_std:
            return np.full(3, np.nan), np.full((3, 3), np.nan)
        center = self.values[1:] / self.mass
        jacobian = np.hstack([-center[:, None], np.eye(3)]) / self.mass
        return center, jacobian @ self.covariance @ jacobian.T


def averaged(
    stamps: IntArray, wrench: FloatArray, noise: FloatArray, steps: FloatArray = FINE
) -> StaticPose:
    """Average wrenches at rest.

    If a channel's noise is below half a step of its quantiser, averaging does not help: the error
    is that of a single sample, step / √12.

    Raises NotAtRestError if they are unsteady: averages over a twentieth of them scatter more than
    `UNSTEADY` times the larger of the expected noise and the scatter that white noise of their
    strength causes in such averages.
    """
    n = len(stamps)
    usable = np.isfinite(wrench).all(axis=0)
    used = np.where(usable, wrench, 0.0)
    sample_std = np.std(np.diff(used, axis=0), axis=0) / np.sqrt(2.0)
    expected = np.repeat(np.asarray(noise, dtype=float), 3)
    count = min(PARTS, n // 2)
    _require_steady(
        np.std(_means(used, count), axis=0, ddof=1),
        UNSTEADY * np.maximum(expected, sample_std * np.sqrt(count / n)),
    )
    error = np.maximum(_standard_error(used), QUIETEST * expected)
    step = np.repeat(steps, 3)
    error = np.maximum(error, np.where(sample_std < 0.5 * step, step / np.sqrt(12.0), 0.0))
    duration = (stamps[-1] - stamps[0]) * 1e-9
    short = _means(used, int(np.clip(duration * 50.0, 2, n)))
    return StaticPose(
        start=int(stamps[0]),
        end=int(stamps[-1]),
        mean=np.where(usable, used.mean(axis=0), np.nan),
        standard_error=np.where(usable, error, np.inf),
        scatter=np.std(short, axis=0, ddof=1),
        noise=sample_std,
        samples=n,
    )


def _standard_error(values: FloatArray) -> FloatArray:
    """Return the standard error of the average of n correlated samples (n, k).

    Cosines with 1, 2, 3, ... half waves in the window each contain noise of variance n e², with e
    the standard error, provided that the noise is as strong at their frequency as at zero. The
    first K of them therefore give e² with K degrees of freedom: U. K. Müller, M. W. Watson,
    Low-frequency econometrics (2015).
    """
    n = len(values)
    waves = scipy.fft.dct(values, type=2, norm='ortho', axis=0)[1:]
    errors = [np.std(values, axis=0, ddof=1) / np.sqrt(n)]
    for count, widened in LOWEST_WAVES.items():
        if n >= 2 * count:
            errors.append(widened * np.sqrt(np.mean(waves[:count] ** 2, axis=0) / n))
    return np.asarray(np.max(errors, axis=0))


def slow_scatter(stamps: IntArray, wrench: FloatArray) -> FloatArray | None:
    """Return the standard deviation (6,) of averages over `WINDOW_NS`; None: too short a rest.

    By differences over a quarter of the rest, of which a load that is put on spoils a third: the
    median counts. Four of them are independent in the slowest noise that they show.
    """
    back = (stamps[-1] - stamps) // WINDOW_NS
    starts = np.flatnonzero(np.diff(back, prepend=back[0]))
    if len(starts) < FEWEST_WINDOWS:
        return None
    counts = np.add.reduceat(np.isfinite(wrench), starts, axis=0, dtype=float)
    means = np.add.reduceat(np.nan_to_num(wrench), starts, axis=0) / np.maximum(counts, 1.0)
    lag = len(means) // 4
    away = np.median(np.abs(means[lag:] - means[:-lag]), axis=0)
    return np.asarray(FROM_FOUR * away / (NORMAL_MEDIAN * np.sqrt(2.0)))


def _means(values: FloatArray, count: int) -> FloatArray:
    """Return averages over `count` parts of about equal length, (count, k)."""
    edges = np.linspace(0, len(values), count + 1).astype(int)
    sums = np.add.reduceat(values, edges[:-1], axis=0)
    return np.asarray(sums / np.diff(edges)[:, None])


def _require_steady(spread: FloatArray, allowed: FloatArray) -> None:
    worst = int(np.argmax(spread / allowed))
    if spread[worst] > allowed[worst]:
        unit = 'N' if worst < 3 else 'N·m'
        raise NotAtRestError(
            f'wrench not steady: {CHANNELS[worst]} varies by {spread[worst]:.2g} {unit}, '
            f'{allowed[worst]:.2g} {unit} allowed'
        )


def require_quiet(rest: StaticPose, noise: FloatArray) -> None:
    """Refuse an average that is no offset because its noise is too large.

    `noise` (2,) is expected of a filtered force and torque [N, N m].

    Raises NotAtRestError.
    """
    error, allowed = rest.noise / np.sqrt(rest.samples), NOISY * np.repeat(noise, 3)
    worst = int(np.argmax(error / allowed))
    if error[worst] > allowed[worst]:
        unit, parameter = ('N', 'force_noise') if worst < 3 else ('N·m', 'torque_noise')
        raise NotAtRestError(
            f'wrench too noisy: {rest.noise[worst]:.3g} {unit} in {CHANNELS[worst]}, with which '
            f'{rest.samples} samples tell its offset to {error[worst]:.2g} {unit}, '
            f'{allowed[worst]:.2g} {unit} allowed: check sensor and cable; if it is as noisy as '
            f'that, set {parameter}'
        )


def gravity_rows(gravity: FloatArray) -> FloatArray:
    """Return the regressor of the wrench that a load at rest exerts on the sensor, (n, 6, 4).

    f = m g and n = m c x g: eq. 19 and 20 with the sign of the wrench on the sensor, for gravity
    (n, 3) in S [m/s²].
    """
    still = np.zeros_like(gravity)
    return -wrench_regressor(-gravity, still, still)[:, :, :4]


def static_estimate(
    means: FloatArray,
    errors: FloatArray,
    gravity: FloatArray,
    offset: FloatArray,
    offset_covariance: FloatArray,
) -> StaticEstimate:
    """Estimate mass and first moment from poses at rest, with a prior of the offset.

    Parameters
    ----------
    means, errors : (n, 6) arrays
        Averages of the wrench that the load exerts on the sensor, offset included, and their
        standard errors [N, N m]; NaN and infinity for a channel that the sensor lacks.
    gravity : (n, 3) array
        Gravity in S at each pose [m/s²].
    offset : (6,) array
        Prior mean of the offset [N, N m].
    offset_covariance : (6, 6) array
    """
    n = len(means)
    unit = np.broadcast_to(np.eye(6), (n, 6, 6))
    matrix = np.concatenate([gravity_rows(gravity), unit], axis=2).reshape(6 * n, 10)
    seen = np.isfinite(means).ravel()
    weight = 1.0 / errors.ravel()[seen]
    root = np.asarray(np.linalg.cholesky(offset_covariance), dtype=float)
    rows = np.zeros((4 + 6 + len(weight), 11))
    rows[:4, :4] = np.eye(4) / NOTHING_KNOWN
    rows[4:10, 4:10] = np.linalg.solve(root, np.eye(6))
    rows[4:10, 10] = np.linalg.solve(root, offset)
    rows[10:, :10] = matrix[seen] * weight[:, None]
    rows[10:, 10] = means.ravel()[seen] * weight
    r = triangular(rows)
    inverse = np.linalg.solve(r[:10, :10], np.eye(10))
    return StaticEstimate((inverse @ r[:10, 10])[:4], (inverse @ inverse.T)[:4, :4])


def errors_in_reading(tool: Tool, still: Block, systematic: SystematicErrors) -> OfErrors | None:
    """Return how a reading at rest, less the tool, depends on the errors of the cell.

    None if they are not known in the pose, or if it is another robot's. The tool is all that is on
    the sensor, the block the geometry of the pose, see `weight.still_block`.
    """
    if not systematic.suits(still):
        return None
    # Errors of the sensor that identified the tool are in the reading as well, and cancel.
    of_tool = tool.by_errors(systematic.names)
    by_errors = systematic.columns(still, tool.parameters) + still.matrix @ of_tool
    if not np.isfinite(by_errors).all():
        return None
    level = np.zeros(6)
    if tool.shared is not None and of_tool.any():
        level = still.matrix @ tool.shared.by_errors @ tool.shared.errors
    return OfErrors(systematic.names, by_errors, level)


def offset_read(
    rest: StaticPose,
    wrench: FloatArray,
    gravity: FloatArray | None,
    tool: Tool,
    of_errors: OfErrors | None,
    noise: FloatArray,
) -> OffsetPrior:
    """Return the offset that a pose shows with nothing but the tool on the sensor.

    The tool's error is in it, and again in the tool taken off a payload later: in the reverse
    orientation both add up, to twice the standard deviation. Counted as if independent that takes
    three times the variance here, one there.

    `wrench` (6,) is the mean in that pose, as the load exerts it [N, N m]; `gravity` (3,) in S may
    be unknown where there is no tool [m/s²]; `of_errors` is that of `errors_in_reading`; `noise`
    (2,) is expected of a sample of force and torque [N, N m].
    """
    value, covariance = wrench, np.diag(rest.standard_error**2)
    if gravity is not None:
        rows = gravity_rows(gravity[None])[0]
        value = value - rows @ tool.parameters[:4]
        own = tool.covariance if tool.shared is None else tool.shared.alone
        covariance = covariance + 3.0 * rows @ own[:4, :4] @ rows.T
    absent = ~np.isfinite(value)
    covariance[absent] = covariance[:, absent] = 0.0
    covariance[absent, absent] = ABSENT_STD[absent] ** 2
    scatter = np.sqrt(np.mean(rest.scatter.reshape(2, 3) ** 2, axis=1))
    return OffsetPrior(
        np.where(absent, 0.0, value),
        covariance,
        rest.end,
        np.maximum(scatter, QUIETEST * noise),
        None if gravity is None else gravity / np.linalg.norm(gravity),
        of_errors,
    )
