"""An arm from joint efforts without accelerations, by rows that two low-passes make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import scipy.ndimage

from load_identification.arm.acceleration_free import (
    AccelerationFree,
    Terms,
    differences,
    joint_torque_terms,
)
from load_identification.arm.arm import CHUNK, Arm
from load_identification.arm.base_parameters import BaseParameters, arm_base_parameters
from load_identification.arm.estimation import (
    BatchSolution,
    information,
    joint_equations,
    solve,
)
from load_identification.arm.friction import DriveModel
from load_identification.arm.identification import TRANSITION_VELOCITIES, excited_parameters
from load_identification.arm.intervals import honest_covariance
from load_identification.arm.model import ArmModel, JointRows
from load_identification.errors import RecordingError
from load_identification.signals.low_pass import LowPass
from load_identification.tools.arm_methods import TorqueIdentification, outcome, singular_values
from load_identification.tools.arm_recording import JointLog
from load_identification.typing_aliases import FloatArray, IntArray

BANDWIDTHS = (5.0, 50.0)
"""l and d of the low-passes [rad/s]."""

RESTING = 0.01
"""A joint slower than this for longer than `TURNING` is taken to stand, where friction may be
anything [rad/s, m/s]."""

TURNING = 0.2
"""Time that turning round may take [s]."""

REST_SHARE = 0.02
"""Part of what the filters remember that a joint may have stood: 0.8 s after a rest, on their
slower time constant of 0.2 s [-]."""

ROWS_PER_BANDWIDTH = 4.0
"""Rows kept per second, in units of d / 2 pi [-]."""

Inputs = tuple[IntArray, FloatArray, FloatArray, FloatArray]
"""Stamps (n,), position, velocity and effort (n, J)."""


def identify_without_accelerations(
    arm: Arm, logs: Sequence[JointLog], drive: DriveModel
) -> TorqueIdentification:
    """Identify from positions and velocities alone, both sides through two low-passes.

    Rows of a joint that has stood within the memory of the filters have weight zero.

    Parameters
    ----------
    arm : Arm
    logs : sequence of JointLog
        As measured.
    drive : DriveModel
        Its transition velocity is chosen: that with the smallest residuals.

    Raises
    ------
    RecordingError
        If an effort is missing in between: a low-pass cannot leave it out.

    Liu, Iagnemma, Dubowsky and Morel 1998, eq. 10-19.
    """
    inputs = [_inputs(log) for log in logs]
    base = arm_base_parameters(ArmModel(arm, drive))  # which no transition velocity changes
    size = len(base.independent)
    links = base.independent[base.independent < arm.nominal.size]
    of_links = [_link_rows(arm, links, each) for each in inputs]
    measured = np.concatenate(
        [
            np.where(_rest_share(each) > REST_SHARE, np.nan, values)
            for each, (_, values) in zip(inputs, of_links, strict=True)
        ]
    )

    def fitted(velocity: float) -> tuple[ArmModel, list[JointRows], BatchSolution]:
        model = ArmModel(arm, replace(drive, transition_velocity=velocity))
        parts = [
            _with_drives(model, base, each, rows)
            for each, (rows, _) in zip(inputs, of_links, strict=True)
        ]
        rows = _by_joint(parts)
        about = base.to_base(model.nominal)
        return model, rows, solve(joint_equations(rows, measured), size, about=about)

    model, rows, solution = min(
        (fitted(velocity) for velocity in TRANSITION_VELOCITIES),
        key=lambda each: float(np.sum(np.log(each[2].noise))),
    )
    equations = joint_equations(rows, measured)
    weight, _ = information(equations, size, solution.noise)
    told = outcome(
        model,
        (base, excited_parameters(model, base, weight)),
        solution.values,
        honest_covariance(rows, measured, solution),
        solution.noise,
        solution.unknown,
        weight if solution.unknown.any() else None,
    )
    return TorqueIdentification(told, singular_values(equations, size, solution.noise))


def _inputs(log: JointLog) -> Inputs:
    """Return samples with velocities, from differences where the recording has none."""
    if not np.isfinite(log.effort).all():
        lacking = [n for n, e in zip(log.names, log.effort.T, strict=True) if np.isnan(e).any()]
        raise RecordingError(
            f'efforts of {", ".join(lacking)} are missing in between; the method '
            'acceleration_free needs all of them: take ls'
        )
    if np.isfinite(log.velocity).all():
        return log.stamps, log.position, log.velocity, log.effort
    stamps, position, velocity, (effort,) = differences(log.stamps, log.position, log.effort)
    return stamps, position, velocity, effort


def _link_rows(arm: Arm, columns: IntArray, inputs: Inputs) -> tuple[FloatArray, FloatArray]:
    """Return low-passed rows (n, J, c) of the links, and what was measured (n, J)."""

    def terms(q: FloatArray, qd: FloatArray) -> Terms:
        both = joint_torque_terms(arm, q, qd)
        return Terms(both.momentum[..., columns], both.rest[..., columns])

    return _low_passed(inputs, terms)


def _rest_share(inputs: Inputs) -> FloatArray:
    """Return which part of each low-passed row comes from when its joint stood, (n, J)."""
    stamps, _, velocity, _ = inputs
    # Noise of single velocities must not pass for motion.
    smooth = LowPass(BANDWIDTHS[1], from_first=True).update(stamps, velocity)
    length = max(1, round(TURNING * 1e9 / float(np.median(np.diff(stamps)))))
    slow = np.abs(smooth) < RESTING
    resting = scipy.ndimage.binary_opening(slow, np.ones((length, 1))).astype(np.float64)

    def nothing(_: FloatArray, qd: FloatArray) -> Terms:
        return Terms(np.empty((*qd.shape, 0)), np.empty((*qd.shape, 0)))

    return _low_passed((*inputs[:3], resting), nothing)[1]


def _with_drives(
    model: ArmModel, base: BaseParameters, inputs: Inputs, of_links: FloatArray
) -> FloatArray:
    """Return low-passed rows (n, J, b) of all base parameters."""
    links = base.independent < model.links.stop
    columns = base.independent[~links] - model.links.stop

    def terms(_: FloatArray, qd: FloatArray) -> Terms:
        still = np.zeros_like(qd)
        # What goes with the acceleration, a rotor, has the velocity as its momentum.
        momentum = model.drive.regressor(still, qd) - model.drive.regressor(still, still)
        return Terms(momentum[..., columns], model.drive.regressor(qd, still)[..., columns])

    rows = np.empty((*of_links.shape[:2], len(base.independent)))
    rows[..., links] = of_links
    rows[..., ~links], _ = _low_passed(inputs, terms)
    return rows


def _low_passed(
    inputs: Inputs, terms: Callable[[FloatArray, FloatArray], Terms]
) -> tuple[FloatArray, FloatArray]:
    """Filter terms and efforts, a chunk after the other, and keep as many rows as they tell."""
    filters = AccelerationFree(*BANDWIDTHS)
    stamps, position, velocity, effort = inputs
    rate = ROWS_PER_BANDWIDTH * BANDWIDTHS[1] / (2.0 * np.pi)
    stride = max(1, int(1e9 / rate / float(np.median(np.diff(stamps)))))
    matrices, values = [], []
    for first in range(0, len(stamps), CHUNK):
        part = slice(first, first + CHUNK)
        rows = filters.update(stamps[part], terms(position[part], velocity[part]), effort[part])
        kept = slice(-first % stride, None, stride)
        matrices.append(rows.matrix[kept])
        values.append(rows.values[kept])
    return np.concatenate(matrices), np.concatenate(values)


def _by_joint(parts: Sequence[FloatArray]) -> list[JointRows]:
    """Sort rows (n, J, b) by joint, without the columns that are zero in all of them."""
    whole = np.concatenate(parts)
    columns = [np.flatnonzero(rows.any(axis=0)) for rows in whole.swapaxes(0, 1)]
    return [
        JointRows(own, np.ascontiguousarray(whole[:, joint, own].T))
        for joint, own in enumerate(columns)
    ]
