"""What planned motions are worth: information on the parameters, and numbers that judge it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.dynamics.base_parameters import BaseParameters, TorqueRegressor
from load_identification.arm.methods.projection import centered_rows, spectrum, transform
from load_identification.arm.planning.experiments import SAMPLES, Experiment
from load_identification.motion.joint_path import JointMotion
from load_identification.motion.sines import Oscillation
from load_identification.typing_aliases import FloatArray

SINGULAR = 1e-12
"""Ratio of the eigenvalues of an information matrix below which it counts as singular."""

NEGLIGIBLE = 1e-3
"""Part of the largest parameter that every one counts with at least [-]."""

DETERMINANT, CONDITION = 'determinant', 'condition'
CRITERIA = (DETERMINANT, CONDITION)
"""By which plans are made: log det F to its largest, or the condition number to its least."""

NOISE_OF_EFFORT = 0.01
"""Noise of a joint's torque in parts of its effort limit: only the ratios count [-]."""

SIGN_WIDTH = 0.02
"""Velocity over which the sign of Coulomb friction turns, in parts of the limit: without it the
criterion would jump where a sample of the velocity changes its sign [-]."""

LARGEST_BLOCK = 3
"""Rows of an experiment: up to three of an oscillation, sine and cosine of the angle of a slow
motion."""

AT_ONCE = 64
"""Experiments simulated together."""


@dataclass(frozen=True)
class Worth:
    """What an information matrix F is worth.

    Attributes
    ----------
    condition : float
        Frobenius condition number, eq. 15: how alike the parameters are seen [-].
    log_determinant : float
        How well they are seen all together [-].
    """

    condition: float
    log_determinant: float

    @classmethod
    def of(cls, information: FloatArray) -> Worth:
        """Judge an information matrix (p, p)."""
        condition, log_determinant = judged(information)
        return cls(float(condition), float(log_determinant))


def judged(information: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sqrt(trace(F) trace(F^-1)), eq. 15, and log det F of matrices (..., p, p).

    The first, where all eigenvalues are equal at its least, is p. Infinite, and minus infinite,
    where F is singular.
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
    """Return the sizes (p,) of an arm's base parameters by its description, of which F is scaled.

    A parameter far smaller than the others counts with a thousandth of the largest; where the
    description has no inertias, all count alike.

    Parameters
    ----------
    base : BaseParameters
    nominal : (P,) array
    """
    size = np.abs(base.to_base(nominal))
    return np.maximum(size, NEGLIGIBLE * size.max()) if size.any() else np.ones(len(size))


def torque_noise(effort_limits: FloatArray) -> FloatArray:
    """Return the noise assumed of each joint's torque, alike where an effort limit lacks, (J,)."""
    if not (np.isfinite(effort_limits) & (effort_limits > 0.0)).all():
        return np.ones(len(effort_limits))
    return NOISE_OF_EFFORT * effort_limits


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


def ideal_blocks(
    regressor: TorqueRegressor, experiments: Sequence[Experiment], noise: FloatArray
) -> FloatArray:
    """Return the rows that experiments would give, in units of their errors.

    The motion is the planned one; of an oscillation one period is simulated.

    Parameters
    ----------
    regressor : TorqueRegressor
        Its p columns must be independent.
    experiments : sequence of Experiment
    noise : (J,) array
        Noise density of the measured torques, or anything in proportion [N m s^(1/2)].

    Returns
    -------
    (N, 3, p) array
        Rows that an experiment lacks are zero.
    """
    blocks = []
    for first in range(0, len(experiments), AT_ONCE):
        part = experiments[first : first + AT_ONCE]
        ideal = [experiment.ideal() for experiment in part]
        motions = zip(*(motion for _, motion in ideal), strict=True)
        joined = JointMotion(*(np.concatenate(arrays) for arrays in motions))
        columns = regressor(*joined)
        for k, (experiment, (times, motion)) in enumerate(zip(part, ideal, strict=True)):
            every = columns[k * SAMPLES : (k + 1) * SAMPLES]
            rows = np.vstack(
                [
                    _ideal_rows(one, times, motion, every[:, one.measured]) / noise[one.measured]
                    for one in experiment.readings
                ]
            )
            blocks.append(np.vstack([rows, np.zeros((LARGEST_BLOCK - len(rows), rows.shape[1]))]))
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
