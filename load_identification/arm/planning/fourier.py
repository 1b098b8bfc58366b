"""Optimise a finite Fourier motion from rest to rest for information on the parameters.

All joints move at once, within limits of position, velocity and acceleration, with clearance to
the arm itself, a floor and boxes. The information is that of joint torques on the links, with
friction and offset of each joint also unknown. The criterion is its determinant, or its condition
number of Vandanjon, Gautier and Desbats 1995, eq. 15.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize
import scipy.special

from load_identification.arm.dynamics.base_parameters import TorqueRegressor
from load_identification.arm.planning.criteria import DETERMINANT, Worth, judged, link_information
from load_identification.errors import ParameterError
from load_identification.motion.clearance import Clearance
from load_identification.motion.limits import Limits
from load_identification.motion.sines import FourierSeries, fourier_basis
from load_identification.typing_aliases import FloatArray

OBSERVATIONS = 8
"""Samples per period of the highest harmonic at which the regressor is evaluated."""

SAMPLES = 20
"""Postures per period of the highest harmonic at which the optimiser evaluates the clearance."""

AIM, LEAST = 0.03, 0.01
"""Clearance targeted by the optimiser, and required of the motion; smaller if no posture has
twice as much [m]."""

WEIGHTS = (10.0, 1000.0)
"""Penalty weights of the mean squared lack of clearance, in successive optimisations [1/m^2]."""

WORST = 1e12
"""Condition number assigned to a motion that does not determine all parameters [-]."""

STEP = 1e-6
"""Step of the difference quotients [-]."""

RATE = 100.0
"""Sampling rate at which the resulting motion is checked [Hz]."""

CHECKS = 40
"""Samples per period of the highest harmonic at which limits are checked."""

MARGIN = 0.995
"""Share of the limits that is used; between the checks, values are at most 0.3 % larger."""

LEAST_LEVEL = 0.05
"""Least share of its limits that a joint uses [-]."""

SHARES = np.linspace(1.0, 0.1, 46)
"""Factors by which it is scaled until it has clearance [-]."""


@dataclass(frozen=True)
class FourierSettings:
    """Settings of the optimisation."""

    duration: float = 20.0
    """Duration of the whole motion [s]."""
    period: float = 10.0
    """Approximate period; the duration is a whole number of periods [s]."""
    harmonics: int = 5
    """Number of harmonics of the frequency 1 / period."""
    draws: int = 30
    descents: int = 3
    iterations: int = 100
    """Numbers of random motions, of the best ones that are improved, and of optimiser steps."""
    seed: int = 0
    """Seed of the random motions."""


@dataclass(frozen=True, eq=False)
class OptimisedMotion:
    """A motion and its criteria."""

    motion: FourierSeries
    worth: Worth
    drawn: Worth
    """Criteria of the regressor without what friction and offsets explain, for the motion and for
    the best random motion."""


def optimise_fourier_motion(
    regressor: TorqueRegressor,
    limits: Limits,
    settings: FourierSettings,
    noise: FloatArray,
    clearance: Clearance | None = None,
    progress: Callable[[str], None] | None = None,
    criterion: str = DETERMINANT,
) -> OptimisedMotion:
    """Find a motion that is informative on an arm's parameters, within limits.

    Joint limits hold by construction, because each joint is scaled to them. The clearance is a
    penalty of the optimiser (L-BFGS-B on finite differences, all evaluated at once). A lack that
    remains at its end is removed by scaling the motion towards its middle.

    Parameters
    ----------
    regressor : TorqueRegressor
        Regressor with p independent columns.
    noise : (J,) array
        Noise of the measured torques, up to a common factor [N m, N].
    progress : callable, optional
        Called with the progress in words, at every step.
    criterion : str
        `DETERMINANT` or `CONDITION` of `criteria`.

    Raises ParameterError if no motion found determines all parameters, or none has clearance.
    """
    search = _Search(regressor, limits, settings, noise, clearance, criterion)
    rng = np.random.default_rng(settings.seed)
    draws = np.array([search.draw(rng) for _ in range(settings.draws)])
    lacks = np.array([search.lack(x) for x in draws])
    starts = draws[np.argsort(search.values(draws) + WEIGHTS[0] * lacks)[: settings.descents]]
    weights = WEIGHTS if clearance is not None else (0.0,)
    ends = []
    for x in starts:
        for weight in weights:
            x = search.descended(x, weight, settings.iterations // len(weights), progress)
        ends.append(x)
    found, drawn = search.best(ends), search.best(list(starts))
    if found is None:
        raise ParameterError(
            f'no motion found that determines all parameters within {settings.duration:g} s, '
            f'{settings.harmonics} harmonics, these limits and this clearance: allow more, '
            'or try another --seed'
        )
    return OptimisedMotion(*found, drawn[1] if drawn else Worth(np.inf, -np.inf))


class _Search:
    """The criterion of a motion and its lack of clearance, as functions of free variables.

    The variables are (size,) for one motion. Each joint has 2 K - 2 coordinates of the amplitudes,
    in the space where velocity and acceleration vanish at t = 0, then the position of the centre,
    then the share of the limits: any numbers keep the limits.
    """

    def __init__(
        self,
        regressor: TorqueRegressor,
        limits: Limits,
        settings: FourierSettings,
        noise: FloatArray,
        clearance: Clearance | None,
        criterion: str,
    ) -> None:
        self._limits, self._harmonics = limits, settings.harmonics
        self._regressor, self._noise = regressor, noise
        self._clearance, self._criterion = clearance, criterion
        self._cycles = max(1, round(settings.duration / settings.period))
        self._period = settings.duration / self._cycles
        order = np.arange(1.0, self._harmonics + 1.0)
        zero = np.zeros((self._harmonics, self._harmonics - 1))
        at_rest = [_orthogonal_to(order), _orthogonal_to(order**2)]
        self._free = np.block([[at_rest[0], zero], [zero, at_rest[1]]])
        room = np.inf if clearance is None else clearance.room(limits)
        self._aim, self._least = min(AIM, room / 2.0), min(LEAST, room / 6.0)
        self._checks, self._basis = self._waves(CHECKS), self._waves(OBSERVATIONS)
        self._postures = self._waves(SAMPLES)[0]

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw random numbers; amplitudes fall with frequency, so that velocities are alike."""
        x = rng.standard_normal((len(self._limits.lower), self._free.shape[1] + 2))
        decay = np.tile(1.0 / np.arange(1.0, self._harmonics + 1.0), 2)
        x[:, :-2] = (decay * rng.standard_normal((len(x), len(decay)))) @ self._free
        x[:, -2:] = np.column_stack([0.5 * x[:, -2], 2.0 + 0.5 * x[:, -1]])
        return np.asarray(x.ravel())

    def amplitudes(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return center (..., J) and amplitudes (..., J, 2 K) for numbers (..., size)."""
        limits = self._limits
        x = x.reshape(*x.shape[:-1], len(limits.lower), self._free.shape[1] + 2)
        shape = x[..., :-2] @ self._free.T
        q, qd, qdd = (shape @ wave.T for wave in self._checks)
        high, low = q.max(axis=-1), q.min(axis=-1)
        half = MARGIN * (limits.upper - limits.lower) / 2.0
        largest = np.minimum(
            half / ((high - low) / 2.0),
            MARGIN
            * np.minimum(
                limits.velocity / np.abs(qd).max(axis=-1),
                limits.acceleration / np.abs(qdd).max(axis=-1),
            ),
        )
        level = LEAST_LEVEL + (1.0 - LEAST_LEVEL) * scipy.special.expit(x[..., -1])
        scale = level * largest
        room = half - scale * (high - low) / 2.0
        middle = limits.center + np.tanh(x[..., -2]) * room
        return middle - scale * (high + low) / 2.0, scale[..., None] * shape

    def values(self, x: FloatArray) -> FloatArray:
        """Return the objective to minimise (b,) for variables (b, size)."""
        center, amplitude = self.amplitudes(x)
        q, qd, qdd = (np.einsum('nk,bjk->bnj', wave, amplitude) for wave in self._basis)
        information = self._information(q + center[:, None], qd, qdd)
        condition, log_determinant = judged(information)
        found = np.log(np.minimum(condition, WORST))
        if self._criterion == DETERMINANT:
            # Per parameter and in standard deviations: both criteria have similar magnitude.
            size = -0.5 * log_determinant / information.shape[-1]
            found = np.where(np.isfinite(log_determinant), size, found)
        return np.asarray(found)

    def lack(self, x: FloatArray) -> float:
        """Return the mean squared lack of clearance for variables (size,) [m^2]."""
        if self._clearance is None:
            return 0.0
        distance = self._clearance.distance(self._positions(x))
        return float(np.mean(np.maximum(self._aim - distance, 0.0) ** 2))

    def descended(
        self, x: FloatArray, weight: float, iterations: int, progress: Callable[[str], None] | None
    ) -> FloatArray:
        """Improve variables (size,) by L-BFGS-B."""
        steps = STEP * np.eye(len(x))

        def value_and_slope(x: FloatArray) -> tuple[float, FloatArray]:
            # One call for all differences: the regressor is computed for many samples at once.
            first, *others = self.values(np.vstack([x, x + steps]))
            lack, slope = self._lack_and_slope(x, steps)
            rise = (np.array(others) - first) / STEP
            return float(first) + weight * lack, rise + weight * slope

        def report(x: FloatArray) -> None:
            if progress is not None:
                progress(f'criterion {float(self.values(x[None])[0]):.4f}')

        found = scipy.optimize.minimize(
            value_and_slope,
            x,
            jac=True,
            method='L-BFGS-B',
            callback=report,
            options={'maxiter': iterations},
        )
        return np.asarray(found.x)

    def best(self, numbers: Sequence[FloatArray]) -> tuple[FourierSeries, Worth] | None:
        """Scale motions down until they have clearance; return the best with its criteria."""
        series = (FourierSeries(*self.amplitudes(x), self._period, self._cycles) for x in numbers)
        motions = map(self._drawn_in, series)
        found = [(motion, self._worth(motion)) for motion in motions if motion is not None]
        regular = [each for each in found if np.isfinite(each[1].condition)]
        if self._criterion == DETERMINANT:
            return max(regular, key=lambda each: each[1].log_determinant, default=None)
        return min(regular, key=lambda each: each[1].condition, default=None)

    def _waves(self, samples: int) -> tuple[FloatArray, ...]:
        """Return sines and cosines at `samples` times per period of the highest harmonic."""
        count = samples * self._harmonics
        times = np.arange(count) * self._period / count
        return fourier_basis(times, self._period, self._harmonics)

    def _information(self, *motion: FloatArray) -> FloatArray:
        """Return F (..., p, p) for positions, velocities and accelerations (..., n, J)."""
        flat = [array.reshape(-1, array.shape[-1]) for array in motion]
        columns = (self._regressor(*flat) / self._noise[:, None]).reshape(*motion[0].shape, -1)
        return link_information(columns, motion[1], self._limits.velocity)

    def _positions(self, x: FloatArray) -> FloatArray:
        """Return postures (..., n, J) along the motions of variables (..., size)."""
        center, amplitude = self.amplitudes(x)
        waves = np.einsum('nk,...jk->...nj', self._postures, amplitude)
        return np.asarray(center[..., None, :] + waves)

    def _lack_and_slope(self, x: FloatArray, steps: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean squared lack of clearance and its gradient by the variables (size,)."""
        if self._clearance is None:
            return 0.0, np.zeros(len(x))
        q = self._positions(x)
        distance, slope = self._clearance.gradient(q)
        lack = np.maximum(self._aim - distance, 0.0)
        by_number = (self._positions(x + steps) - q) / STEP
        by_posture = -2.0 * lack[:, None] * slope / len(q)
        return float(np.mean(lack**2)), np.einsum('bnj,nj->b', by_number, by_posture)

    def _drawn_in(self, motion: FourierSeries) -> FourierSeries | None:
        """Scale a motion about its middle until all of it has clearance; None if it never has."""
        if self._clearance is None:
            return motion
        times = np.arange(0.0, motion.period, 1.0 / RATE)
        for factor in SHARES:
            candidate = replace(motion, amplitude=factor * motion.amplitude)
            q = candidate.sample(times).position
            if all(np.min(self._clearance.distance(part)) >= self._least for part in (q[::10], q)):
                return candidate
        return None

    def _worth(self, motion: FourierSeries) -> Worth:
        q, qd, qdd = (wave @ motion.amplitude.T for wave in self._basis)
        return Worth(*map(float, judged(self._information(motion.center + q, qd, qdd))))


def _orthogonal_to(vector: FloatArray) -> FloatArray:
    """Return a basis (n, n - 1) of the orthogonal complement of a vector (n,)."""
    q, _ = np.linalg.qr(vector[:, None], mode='complete')
    return np.asarray(q[:, 1:])
