"""An arm from planned experiments by spectrum analysis, and then its friction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.arm.alignment import find_start
from load_identification.arm.arm import Arm
from load_identification.arm.base_parameters import BaseParameters, arm_base_parameters
from load_identification.arm.estimation import BatchSolution, joint_equations, solve
from load_identification.arm.experiments import ExperimentPlan
from load_identification.arm.friction import DriveModel
from load_identification.arm.identification import TRANSITION_VELOCITIES, excited_parameters
from load_identification.arm.intervals import honest_covariance
from load_identification.arm.model import ArmModel
from load_identification.arm.spectrum import (
    SpectrumEstimate,
    base_regressor,
    identify_by_spectrum,
)
from load_identification.errors import RecordingError
from load_identification.tools.arm_methods import TorqueIdentification, inverse, outcome
from load_identification.tools.arm_recording import FilteredLog, JointLog
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray


def planned_windows(plan: ExperimentPlan, log: JointLog) -> FloatArray:
    """Return when each experiment was read, begin and end (k, 2), in a recording.

    Returns
    -------
    (k, 2) array
        Since the first sample [s].

    Raises
    ------
    ParameterError
        If the recording shows no such motion.
    """
    begins = find_start(plan.path, log.seconds, log.position) + plan.begins
    windows = np.array([e.motion.window for e in plan.experiments])
    return np.asarray(begins[:, None] + windows, dtype=np.float64)


def inside(seconds: FloatArray, windows: FloatArray, margin: float) -> BoolArray:
    """Tell which times lie in a window, or within a margin of one [s]."""
    begin, end = windows[:, 0] - margin, windows[:, 1] + margin
    within: BoolArray = (seconds[:, None] >= begin) & (seconds[:, None] <= end)
    return np.asarray(within.any(axis=1))


def identify_planned(
    arm: Arm,
    plan: ExperimentPlan,
    log: JointLog,
    windows: FloatArray,
    motion: FilteredLog,
    drive: DriveModel,
) -> TorqueIdentification:
    """Identify the links by spectrum analysis, then the drives from what is left of the efforts.

    Parameters
    ----------
    arm : Arm
        Of the joints of the plan.
    plan : ExperimentPlan
    log : JointLog
        As measured.
    windows : (k, 2) array
        As `planned_windows`.
    motion : FilteredLog
        The same recording, filtered.
    drive : DriveModel
        Its transition velocity is chosen: that with the smallest residuals.

    Raises
    ------
    RecordingError
        If an effort is missing.
    ParameterError
        If the experiments are not all there, or tell too little.

    Vandanjon, Gautier and Desbats 1995, section 3.2.
    """
    if not np.isfinite(log.effort).all():
        raise RecordingError('efforts are missing in between; the method spectrum needs all')
    rigid = ArmModel(arm, DriveModel('none', 'none'))
    base = arm_base_parameters(rigid)
    begins = windows[:, 0] - [e.motion.window[0] for e in plan.experiments]
    rows = base_regressor(rigid, base)
    told = identify_by_spectrum(
        rows, plan.experiments, begins, log.seconds, log.position, log.effort
    )
    return _with_drives(
        arm, base, told, _part(motion, inside(motion.seconds, windows, 0.0)), drive
    )


def _part(log: FilteredLog, used: BoolArray) -> FilteredLog:
    q, qd, qdd = (array[used] for array in log.motion)
    return FilteredLog(log.seconds[used], (q, qd, qdd), log.effort[used])


def _with_drives(
    arm: Arm, rigid: BaseParameters, told: SpectrumEstimate, log: FilteredLog, drive: DriveModel
) -> TorqueIdentification:
    """Fit the drives to what the links leave, and carry the links' errors over."""
    models = [ArmModel(arm, replace(drive, transition_velocity=v)) for v in TRANSITION_VELOCITIES]
    base = arm_base_parameters(models[0])
    links = models[0].links.stop
    # A rotor that a link's inertia explains stays in that: zero beside it.
    drives = base.independent[base.independent >= links]
    phi = np.zeros(len(models[0].names))
    phi[rigid.independent] = told.parameters
    left = log.effort - models[0].predict(phi, log.motion)

    def fitted(model: ArmModel) -> BatchSolution:
        rows = model.joint_rows(log.motion, drives)
        return solve(joint_equations(rows, model.measured(log.motion, left)), len(drives))

    model, solution = min(
        ((model, fitted(model)) for model in models),
        key=lambda each: float(np.sum(np.log(each[1].noise))),
    )
    phi[drives] = solution.values
    carried = _joint_covariance(model, rigid.independent, drives, told, left, log, solution)
    places = np.concatenate([rigid.independent, drives])
    to_base = base.matrix[:, places]
    covariance = to_base @ carried @ to_base.T
    weight = inverse(covariance)
    found = outcome(
        model,
        (base, excited_parameters(model, base, weight)),
        base.to_base(phi),
        covariance,
        solution.noise,
        np.asarray(base.matrix[:, drives[solution.unknown]].any(axis=1)),
        weight,
    )
    scaled = told.rows.matrix / told.rows.std[:, None]
    spread = np.linalg.svd(scaled / np.linalg.norm(scaled, axis=0), compute_uv=False)
    return TorqueIdentification(found, spread)


def _joint_covariance(
    model: ArmModel,
    links: IntArray,
    drives: IntArray,
    told: SpectrumEstimate,
    left: FloatArray,
    log: FilteredLog,
    solution: BatchSolution,
) -> FloatArray:
    """Return the covariance of links' and drives' parameters, those of the links first."""
    of_drives = model.joint_rows(log.motion, drives)
    of_links = model.joint_rows(log.motion, links)
    measured = model.measured(log.motion, left)
    # The drives take up what an error of the links leaves: d = -(F^T F)^-1 F^T Y e.
    across = np.zeros((len(drives), len(links)))
    for friction, rigid, values, noise in zip(
        of_drives, of_links, measured.T, solution.noise, strict=True
    ):
        present = np.isfinite(values)
        block = friction.matrix[:, present] @ rigid.matrix[:, present].T / noise**2
        across[np.ix_(friction.columns, rigid.columns)] += block
    gain = -solution.covariance @ across
    own = honest_covariance(of_drives, measured, solution)
    upper = told.covariance @ gain.T
    return np.block([[told.covariance, upper], [upper.T, own + gain @ upper]])
