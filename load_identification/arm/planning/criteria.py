"""Evaluate planned motions: information on the parameters, and criteria computed from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.dynamics.base_parameters import BaseParameters, TorqueRegressor
from load_identification.arm.methods.projection import centered_rows, spectrum, transform
from load_identification.arm.planning.experiments import Experiment
from load_identification.motion.joint_path import JointMotion
from load_identification.motion.sines import Oscillation
from load_identification.typing_aliases import FloatArray

SINGULAR = 1e-12
"""Ratio of an information matrix's eigenvalues below which it counts as singular."""

NEGLIGIBLE = 1e-3
"""Least scale of a parameter, as a share of the largest one [-]."""

DETERMINANT, CONDITION = 'determinant', 'condition'
CRITERIA = (DETERMINANT, CONDITION)
"""Criteria of plans: maximise log det F, or minimise the condition number."""

NOISE_OF_EFFORT = 0.01
"""Noise of a joint's torque as a share of its effort limit; only the ratios matter [-]."""

SIGN_WIDTH = 0.02
"""Velocity over which the sign of Coulomb friction changes, as a share of the limit. Without it
the criterion would be discontinuous where a velocity sample changes its sign [-]."""

LARGEST_BLOCK = 3
"""Most rows of an experiment: up to three for an oscillation, two for a slow motion (sine and
cosine of the angle)."""

AT_ONCE = 64
"""Number of experiments simulated together."""


@dataclass(frozen=True)
class Worth:
    """Criteria of an information matrix F.

    Attributes
    ----------
    condition : float
        Frobenius condition number, eq. 15: how evenly the parameters are observed [-].
    log_determinant : float
        Information on all parameters together [-].
    """

    condition: float
    log_determinant: float


def judged(information: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sqrt(trace(F) trace(F^-1)), eq. 15, and log det F of matrices (..., p, p).

    The minimum of the first is p, where all eigenvalues are equal. For a singular F they are
    infinite and minus infinite.
    """
    values = np.linalg.eigvalsh(information)
    regular = values[..., 0] > SINGULAR * values[..., -1]
    safe = np.where(regular[..., None], values, 1.0)
    product = np.sum(safe, axis=-1) * np.sum(1.0 / safe, axis=-1)
    return (
        np.asarray(np.where(regular, np.sqrt(product), np.inf)),
        np.asarray(np.where(regular, np.sum(np.log(safe), axis=-1), -np.inf)),
    )


def nominal_scale(base: BaseParameters, nominal: FloatArray) -> FloatArray:
    """Return the nominal scales (p,) of an arm's base parameters, by which F is scaled.

    A parameter far smaller than the others gets a thousandth of the largest scale. If the
    nominal parameters (P,) have no inertias, all scales are equal.
    """
    size = np.abs(base.to_base(nominal))
    return np.maximum(size, NEGLIGIBLE * size.max()) if size.any() else np.ones(len(size))


def torque_noise(effort_limits: FloatArray) -> FloatArray:
    """Return the assumed noise of each joint's torque (J,), equal where no effort limit exists."""
    if not (np.isfinite(effort_limits) & (effort_limits > 0.0)).all():
        return np.ones(len(effort_limits))
    return NOISE_OF_EFFORT * effort_limits


def link_information(
    columns: FloatArray, velocity: FloatArray, velocity_limit: FloatArray
) -> FloatArray:
    """Return F = W^T W (..., p, p) of the columns without what friction and offset explain.

    The columns (..., n, J, p) are in units of the torques' errors, velocities (..., n, J) and
    their limits (J,) in rad/s or m/s.
    """
    # Coulomb friction, its asymmetry or an offset, viscous friction.
    sign = np.tanh(velocity / (SIGN_WIDTH * velocity_limit))
    friction = np.stack([sign, np.ones_like(sign), velocity / velocity_limit], axis=-1)
    q, _ = np.linalg.qr(np.moveaxis(friction, -2, -3))
    rows = np.moveaxis(columns, -2, -3)
    rows = rows - q @ (np.swapaxes(q, -1, -2) @ rows)
    return np.asarray(np.sum(np.swapaxes(rows, -1, -2) @ rows, axis=-3))


def ideal_blocks(
    regressor: TorqueRegressor, experiments: Sequence[Experiment], noise: FloatArray
) -> FloatArray:
    """Return the rows (N, 3, p) that experiments would provide, in units of their errors.

    The motion is the planned one. One period of an oscillation is simulated. Missing rows of an
    experiment are zero. The regressor has p independent columns; the noise (J,) is the density of
    that of the measured torques, up to a common factor [N m s^(1/2)].
    """
    blocks = []
    for first in range(0, len(experiments), AT_ONCE):
        part = experiments[first : first + AT_ONCE]
        ideal = [experiment.ideal() for experiment in part]
        motions = zip(*(motion for _, motion in ideal), strict=True)
        columns = np.split(regressor(*map(np.concatenate, motions)), len(part))
        for experiment, (times, motion), every in zip(part, ideal, columns, strict=True):
            rows = np.vstack(
                [
                    _ideal_rows(one, times, motion, every[:, one.measured]) / noise[one.measured]
                    for one in experiment.readings
                ]
            )
            blocks.append(np.pad(rows, ((0, LARGEST_BLOCK - len(rows)), (0, 0))))
    return np.array(blocks)


def _ideal_rows(
    experiment: Experiment, times: FloatArray, motion: JointMotion, columns: FloatArray
) -> FloatArray:
    """Return the rows (r, p) of one experiment, for noise of unit density."""
    begin, end = experiment.motion.window
    if not isinstance(experiment.motion, Oscillation):
        rows, _, _ = centered_rows(columns, np.zeros(len(times)))
        return np.asarray(rows[:LARGEST_BLOCK] * np.sqrt((end - begin) / len(times)))
    reference = experiment.reference(motion)
    frequency = experiment.harmonic * experiment.motion.frequency
    strength = abs(complex(transform(reference, times, frequency))) * np.sqrt(end - begin)
    return np.asarray(strength * spectrum(columns, reference, times, frequency)[None])
