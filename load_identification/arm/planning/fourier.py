"""A finite Fourier motion from rest to rest whose regressor is conditioned as well as possible.

All joints move at once, within limits of position, velocity and acceleration and a box for the
tool. The criterion is that of Vandanjon, Gautier and Desbats 1995, eq. 15, of what joint torques
tell of the links where friction and offset of each joint are unknown too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from load_identification.arm.arm import Arm
from load_identification.arm.exchange import frobenius_condition
from load_identification.arm.fourier_series import (
    CHECKS,
    FourierSeries,
    FourierSettings,
    LimitedSeries,
    fourier_basis,
)
from load_identification.arm.limits import Limits, Workspace
from load_identification.arm.spectrum import TorqueRegressor
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

OBSERVATIONS = 8
"""Samples per period of the highest harmonic at which the regressor is evaluated."""

SIGN_WIDTH = 0.02
"""Velocity over which the sign of Coulomb friction turns, in parts of the limit: without it the
criterion would jump where a sample of the velocity changes its sign [-]."""

BOX_MARGIN = 0.01
"""By which the optimiser keeps further inside the workspace than is asked for [m]."""

BOX_WEIGHTS = (10.0, 1000.0)
"""Weights of the mean squared way outside the box, one optimisation after another [1/m^2]."""

STEP = 1e-6
"""Of the difference quotients [-]."""


@dataclass(frozen=True, eq=False)
class OptimisedMotion:
    """A motion and what it is worth.

    Attributes
    ----------
    motion : FourierSeries
    condition, drawn_condition : float
        Frobenius condition number of the regressor, less what friction and offsets explain, and
        that of the best motion drawn [-].
    """

    motion: FourierSeries
    condition: float
    drawn_condition: float


def optimise_fourier_motion(
    arm: Arm,
    regressor: TorqueRegressor,
    limits: Limits,
    settings: FourierSettings,
    noise: FloatArray,
    workspace: Workspace | None = None,
    progress: Callable[[float], None] | None = None,
) -> OptimisedMotion:
    """Find a motion of small condition number within limits.

    Joint limits hold by construction: each joint is scaled into them. The workspace is a penalty
    of the optimiser (L-BFGS-B on differences, all of them evaluated at once), and what is left
    outside at its end is drawn in by scaling the motion towards its middle.

    Parameters
    ----------
    arm : Arm
    regressor : TorqueRegressor
        Its p columns must be independent.
    limits : Limits
    settings : FourierSettings
    noise : (J,) array
        Of the measured torques, or anything in proportion [N m, N].
    workspace : Workspace, optional
    progress : callable, optional
        Called with the condition number after each step.

    Raises
    ------
    ParameterError
        Where no motion is found that determines all parameters, or none within the workspace.
    """
    plan = LimitedSeries(limits, settings)
    times = np.arange(OBSERVATIONS * plan.harmonics) * plan.period
    times = times / len(times)
    basis = fourier_basis(times, plan.period, plan.harmonics)

    def judged(x: FloatArray, weight: float) -> tuple[FloatArray, FloatArray]:
        """Return condition and penalised logarithm of it for numbers (b, size)."""
        center, amplitude = plan.amplitudes(x)
        q, qd, qdd = (np.einsum('nk,bjk->bnj', wave, amplitude) for wave in basis)
        q += center[:, None]
        flat = [array.reshape(-1, array.shape[-1]) for array in (q, qd, qdd)]
        columns = (regressor(*flat) / noise[:, None]).reshape(*q.shape, -1)
        condition = frobenius_condition(link_information(columns, qd, limits.velocity))
        value = np.log(np.minimum(condition, 1e12))
        if workspace is not None:
            shrunk = _shrunk(workspace)
            outside = shrunk.outside(arm, flat[0]).reshape(len(x), -1)
            value = value + weight * np.mean(outside**2, axis=1)
        return condition, value

    rng = np.random.default_rng(settings.seed)
    draws = np.array([plan.draw(rng) for _ in range(settings.draws)])
    conditions, values = judged(draws, BOX_WEIGHTS[0])
    order = np.argsort(values)
    improved = []
    for x in draws[order[: settings.descents]]:
        for weight in BOX_WEIGHTS if workspace is not None else BOX_WEIGHTS[:1]:
            x = _descended(judged, x, weight, settings.iterations, progress)
        improved.append(x)
    _, values = judged(np.array(improved), BOX_WEIGHTS[-1])
    motion = plan.motion(improved[int(np.argmin(values))])
    if workspace is not None:
        motion = _drawn_in(arm, workspace, motion)
    sampled = motion.sample(times)
    columns = regressor(*sampled) / noise[:, None]
    condition = float(
        frobenius_condition(link_information(columns, sampled.velocity, limits.velocity))
    )
    if not np.isfinite(condition):
        raise ParameterError(
            f'no motion found that determines all parameters within {settings.duration:g} s, '
            f'{settings.harmonics} harmonics and these limits; allow more of each'
        )
    return OptimisedMotion(motion, condition, float(conditions[order[0]]))


def _descended(
    judged: Callable[[FloatArray, float], tuple[FloatArray, FloatArray]],
    x: FloatArray,
    weight: float,
    iterations: int,
    progress: Callable[[float], None] | None,
) -> FloatArray:
    """Improve numbers (size,) by L-BFGS-B."""
    steps = STEP * np.eye(len(x))

    def value_and_slope(x: FloatArray) -> tuple[float, FloatArray]:
        # One call for all differences: the regressor is computed for many samples at a time.
        _, values = judged(np.vstack([x, x + steps]), weight)
        return float(values[0]), (values[1:] - values[0]) / STEP

    def report(x: FloatArray) -> None:
        if progress is not None:
            progress(float(judged(x[None], weight)[0][0]))

    found = scipy.optimize.minimize(
        value_and_slope,
        x,
        jac=True,
        method='L-BFGS-B',
        callback=report,
        options={'maxiter': iterations},
    )
    return np.asarray(found.x)


def link_information(
    columns: FloatArray, velocity: FloatArray, velocity_limit: FloatArray
) -> FloatArray:
    """Return F = W^T W of what friction and offset of the joints do not explain.

    Parameters
    ----------
    columns : (..., n, J, p) array
        In units of the torques' errors.
    velocity : (..., n, J) array
    velocity_limit : (J,) array
        [rad/s, m/s].

    Returns
    -------
    (..., p, p) array
    """
    # Coulomb friction, its asymmetry or an offset, viscous friction.
    sign = np.tanh(velocity / (SIGN_WIDTH * velocity_limit))
    friction = np.stack([sign, np.ones_like(sign), velocity / velocity_limit], axis=-1)
    q, _ = np.linalg.qr(np.moveaxis(friction, -2, -3))
    rows = np.moveaxis(columns, -2, -3)
    rows = rows - q @ (np.swapaxes(q, -1, -2) @ rows)
    return np.asarray(np.sum(np.swapaxes(rows, -1, -2) @ rows, axis=-3))


def _shrunk(workspace: Workspace) -> Workspace:
    """Return a box smaller by the margin, or by a quarter of it where it is small."""
    margin = np.minimum(BOX_MARGIN, (workspace.upper - workspace.lower) / 4.0)
    return Workspace(
        workspace.lower + margin, workspace.upper - margin, workspace.body, workspace.point
    )


def _drawn_in(arm: Arm, workspace: Workspace, motion: FourierSeries) -> FourierSeries:
    """Scale a motion about its middle until all of it lies within the workspace."""
    times = np.arange(CHECKS * motion.sine.shape[1]) * motion.period
    times = times / len(times)

    def scaled(factor: float) -> FourierSeries:
        sine, cosine = factor * motion.sine, factor * motion.cosine
        return FourierSeries(motion.center, sine, cosine, motion.period, motion.cycles)

    for factor in np.linspace(1.0, 0.2, 41):
        candidate = scaled(float(factor))
        outside = workspace.outside(arm, candidate.sample(times).position)
        if np.max(outside) <= 0.0:
            return candidate
    beyond = float(np.max(workspace.outside(arm, motion.sample(times).position)))
    raise ParameterError(
        f'no motion found within the workspace from {workspace.lower} to {workspace.upper} m: the '
        f'best leaves it by {beyond:.3f} m; make it larger, or try another seed'
    )
