"""A finite Fourier motion from rest to rest that shows the parameters as well as possible.

All joints move at once, within limits of position, velocity and acceleration and a box for the
tool. The criterion is the determinant of what joint torques tell of the links where friction and
offset of each joint are unknown too, or the condition number of Vandanjon, Gautier and Desbats
1995, eq. 15, of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.optimize

from load_identification.arm.dynamics.base_parameters import TorqueRegressor
from load_identification.arm.planning.criteria import (
    DETERMINANT,
    Worth,
    judged,
    link_information,
)
from load_identification.errors import ParameterError
from load_identification.motion.collision import Workspace
from load_identification.motion.fourier import (
    CHECKS,
    FourierSeries,
    FourierSettings,
    LimitedSeries,
    fourier_basis,
)
from load_identification.motion.limits import Limits
from load_identification.typing_aliases import FloatArray

OBSERVATIONS = 8
"""Samples per period of the highest harmonic at which the regressor is evaluated."""

BOX_MARGIN = 0.01
"""By which the optimiser keeps further inside the workspace than is asked for [m]."""

BOX_WEIGHTS = (10.0, 1000.0)
"""Weights of the mean squared way outside the box, one optimisation after another [1/m^2]."""

WORST = 1e12
"""Condition number that a motion which determines less counts with [-]."""

STEP = 1e-6
"""Of the difference quotients [-]."""


@dataclass(frozen=True, eq=False)
class OptimisedMotion:
    """A motion and what it is worth.

    Attributes
    ----------
    motion : FourierSeries
    worth, drawn : Worth
        Of the regressor, less what friction and offsets explain, and that of the best motion
        drawn.
    """

    motion: FourierSeries
    worth: Worth
    drawn: Worth


def optimise_fourier_motion(
    regressor: TorqueRegressor,
    limits: Limits,
    settings: FourierSettings,
    noise: FloatArray,
    workspace: Workspace | None = None,
    progress: Callable[[str], None] | None = None,
    criterion: str = DETERMINANT,
) -> OptimisedMotion:
    """Find a motion that shows an arm's parameters well, within limits.

    Joint limits hold by construction: each joint is scaled into them. The workspace is a penalty
    of the optimiser (L-BFGS-B on differences, all of them evaluated at once), and what is left
    outside at its end is drawn in by scaling the motion towards its middle.

    Parameters
    ----------
    regressor : TorqueRegressor
        Its p columns must be independent.
    limits : Limits
    settings : FourierSettings
    noise : (J,) array
        Of the measured torques, or anything in proportion [N m, N].
    workspace : Workspace, optional
    progress : callable, optional
        Told in words how far it has come, at every step.
    criterion : str
        One of `CRITERIA`.

    Raises
    ------
    ParameterError
        Where no motion is found that determines all parameters, or none within the workspace.
    """
    plan = LimitedSeries(limits, settings)
    times = np.arange(OBSERVATIONS * plan.harmonics) * plan.period
    times = times / len(times)
    basis = fourier_basis(times, plan.period, plan.harmonics)

    def value(x: FloatArray, weight: float) -> FloatArray:
        """Return what is to be small, with its penalty, for numbers (b, size)."""
        center, amplitude = plan.amplitudes(x)
        q, qd, qdd = (np.einsum('nk,bjk->bnj', wave, amplitude) for wave in basis)
        q += center[:, None]
        flat = [array.reshape(-1, array.shape[-1]) for array in (q, qd, qdd)]
        columns = (regressor(*flat) / noise[:, None]).reshape(*q.shape, -1)
        condition, log_determinant = judged(link_information(columns, qd, limits.velocity))
        found = np.log(np.minimum(condition, WORST))
        if criterion == DETERMINANT:
            # Of the mean parameter, in standard deviations: as large as the other.
            regular = np.isfinite(log_determinant)
            found = np.where(regular, -0.5 * log_determinant / columns.shape[-1], found)
        if workspace is not None:
            shrunk = _shrunk(workspace)
            outside = shrunk.outside(flat[0]).reshape(len(x), -1)
            found = found + weight * np.mean(outside**2, axis=1)
        return np.asarray(found)

    rng = np.random.default_rng(settings.seed)
    draws = np.array([plan.draw(rng) for _ in range(settings.draws)])
    order = np.argsort(value(draws, BOX_WEIGHTS[0]))
    improved = []
    for x in draws[order[: settings.descents]]:
        for weight in BOX_WEIGHTS if workspace is not None else BOX_WEIGHTS[:1]:
            x = _descended(value, x, weight, settings.iterations, progress)
        improved.append(x)
    motion = plan.motion(improved[int(np.argmin(value(np.array(improved), BOX_WEIGHTS[-1])))])
    if workspace is not None:
        motion = _drawn_in(workspace, motion)

    def worth(motion: FourierSeries) -> Worth:
        sampled = motion.sample(times)
        columns = regressor(*sampled) / noise[:, None]
        return Worth.of(link_information(columns, sampled.velocity, limits.velocity))

    found = worth(motion)
    if not np.isfinite(found.condition):
        raise ParameterError(
            f'no motion found that determines all parameters within {settings.duration:g} s, '
            f'{settings.harmonics} harmonics and these limits; allow more of each'
        )
    return OptimisedMotion(motion, found, worth(plan.motion(draws[order[0]])))


def _descended(
    value: Callable[[FloatArray, float], FloatArray],
    x: FloatArray,
    weight: float,
    iterations: int,
    progress: Callable[[str], None] | None,
) -> FloatArray:
    """Improve numbers (size,) by L-BFGS-B."""
    steps = STEP * np.eye(len(x))

    def value_and_slope(x: FloatArray) -> tuple[float, FloatArray]:
        # One call for all differences: the regressor is computed for many samples at a time.
        values = value(np.vstack([x, x + steps]), weight)
        return float(values[0]), (values[1:] - values[0]) / STEP

    def report(x: FloatArray) -> None:
        if progress is not None:
            progress(f'criterion {float(value(x[None], weight)[0]):.4f}')

    found = scipy.optimize.minimize(
        value_and_slope,
        x,
        jac=True,
        method='L-BFGS-B',
        callback=report,
        options={'maxiter': iterations},
    )
    return np.asarray(found.x)


def _shrunk(workspace: Workspace) -> Workspace:
    """Return a box smaller by the margin, or by a quarter of it where it is small."""
    margin = np.minimum(BOX_MARGIN, (workspace.upper - workspace.lower) / 4.0)
    return replace(workspace, lower=workspace.lower + margin, upper=workspace.upper - margin)


def _drawn_in(workspace: Workspace, motion: FourierSeries) -> FourierSeries:
    """Scale a motion about its middle until all of it lies within the workspace."""
    times = np.arange(CHECKS * motion.sine.shape[1]) * motion.period
    times = times / len(times)

    def scaled(factor: float) -> FourierSeries:
        sine, cosine = factor * motion.sine, factor * motion.cosine
        return FourierSeries(motion.center, sine, cosine, motion.period, motion.cycles)

    for factor in np.linspace(1.0, 0.2, 41):
        candidate = scaled(float(factor))
        outside = workspace.outside(candidate.sample(times).position)
        if np.max(outside) <= 0.0:
            return candidate
    beyond = float(np.max(workspace.outside(motion.sample(times).position)))
    raise ParameterError(
        f'no motion found within the workspace from {workspace.lower} to {workspace.upper} m: the '
        f'best leaves it by {beyond:.3f} m; make it larger, or try another seed'
    )
