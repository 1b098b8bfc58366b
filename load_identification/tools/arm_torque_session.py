"""An arm from recordings of its joint efforts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from load_identification.arm.arm import Arm
from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.consistent import covariance_about
from load_identification.arm.experiments import ExperimentPlan
from load_identification.arm.friction import DriveModel
from load_identification.arm.identification import ArmIdentification, Options
from load_identification.errors import ParameterError, RecordingError
from load_identification.tools.arm_found import Prediction, effort_units
from load_identification.tools.arm_low_passed import BANDWIDTHS, identify_without_accelerations
from load_identification.tools.arm_methods import (
    TorqueIdentification,
    identify_with_accelerations,
)
from load_identification.tools.arm_recording import (
    FilteredLog,
    JointLog,
    filtered,
    joined,
    read_efforts,
    watched,
    without_reversals,
)
from load_identification.tools.arm_session import (
    FITTED_SHARE,
    Request,
    Session,
    load_all,
    moving_joints,
    nominal_arm,
    verdict,
    working,
)
from load_identification.tools.arm_spectrum import identify_planned, inside, planned_windows
from load_identification.tools.plan_file import read_plan
from load_identification.tools.recording import RecordingReader
from load_identification.typing_aliases import FloatArray

UNTOLD_STD = 10.0
"""Written for what a recording does not tell: more than it is of any arm [SI units]."""

SILENT = 1e-5
"""Noise of a joint, as a share of the largest, up to which it has shown none [-]."""


def torque_session(request: Request) -> Session:
    """Identify from joint efforts, and predict what was not fitted."""
    description, logs, held = load_all(request, _read)
    joints, warnings = _joints(request, description, logs)
    arm = nominal_arm(request, description, joints)
    logs = [log.of(arm.joints) for log in logs]
    held = held.of(arm.joints) if held else None
    drive = DriveModel('symmetric', 'asymmetric', request.rotor_inertia, offset=True)
    with working('identifying'):
        if request.plan is not None:
            plan = read_plan(request.plan)
            told, test, fitted = _by_plan(plan, request.cutoff, arm, logs[0], held, drive)
        else:
            told, test, fitted = _by_rows(request, arm, logs, held, drive)
    units = effort_units(description, arm)
    found = told.found(units)
    prediction = _predicted(told.outcome, test, units, _source(request))
    cure = 'plan a motion by plan_excitation'
    if request.method == 'sequential':
        cure = f'take --method ls, which asks all joints at once, or {cure}'
    identified, reasons = verdict(found, prediction, cure)
    drives = told.outcome.model.drive
    return Session(
        found=found,
        prediction=prediction,
        arm_model=_arm_model(told.outcome, request.cutoff),
        description=description,
        fitted=fitted,
        method=f'{_method(request)}; Coulomb friction changes its sign over '
        f'{drives.transition_velocity:g} rad/s or m/s',
        identified=identified,
        warnings=(*warnings, *reasons),
    )


def _read(recording: RecordingReader, description: str, path: Path) -> JointLog:
    return read_efforts(watched(recording, path.name), moving_joints(description), path)


def _joints(
    request: Request, description: str, logs: Sequence[JointLog]
) -> tuple[tuple[str, ...], list[str]]:
    """Return which joints to identify, and a warning of those taken for locked."""
    known = moving_joints(description)
    if request.plan is not None:
        joints = read_plan(request.plan).joints
    elif request.joints:
        joints = request.joints
    else:
        common = set.intersection(*(set(log.names) for log in logs))
        joints = tuple(n for n in known if n in common and any(_varies(log, n) for log in logs))
    if not joints:
        raise RecordingError(
            'no joint has an effort that ever changes; the recordings need measured efforts'
        )
    strange = sorted(set(joints) - set(known))
    if strange:
        raise ParameterError(
            f'there is no joint {", ".join(strange)} in the description; it has {", ".join(known)}'
        )
    locked = [name for name in known if name not in joints]
    if not locked:
        return joints, []
    return joints, [f'taken for locked at zero: {", ".join(locked)}']


def _varies(log: JointLog, name: str) -> bool:
    effort = log.effort[:, log.names.index(name)]
    measured = effort[np.isfinite(effort)]
    return bool(measured.size and np.ptp(measured) > 0.0)


def _by_rows(
    request: Request,
    arm: Arm,
    logs: Sequence[JointLog],
    held: JointLog | None,
    drive: DriveModel,
) -> tuple[TorqueIdentification, FilteredLog, str]:
    """Identify from all of the recordings, or from the first two thirds."""
    fit, rest = (list(logs), [held]) if held else _split(logs)
    test = joined([filtered(log, request.cutoff) for log in rest])
    seconds = sum(1e-9 * float(log.stamps[-1] - log.stamps[0]) for log in fit)
    fitted = f'{sum(len(log.stamps) for log in fit)} joint states in {seconds:.1f} s'
    log = without_reversals(joined([filtered(log, request.cutoff) for log in fit]), request.cutoff)
    if request.method == 'acceleration_free':
        told = identify_without_accelerations(arm, fit, drive)
        outcome = replace(told.outcome, noise=_noise_behind(told.outcome, log))
        return replace(told, outcome=outcome), test, fitted
    options = Options(drive, 'sequential' if request.method == 'sequential' else 'batch')
    return identify_with_accelerations(arm, log, options), test, fitted


def _noise_behind(told: ArmIdentification, log: FilteredLog) -> FloatArray:
    """Return the rms of the residuals behind the filter that the arm model is used with, (J,)."""
    residual = told.model.measured(log.motion, log.effort) - told.predict(*log.motion)
    present = np.isfinite(residual)
    power = np.sum(np.where(present, residual, 0.0) ** 2, axis=0)
    return np.asarray(np.sqrt(power / np.maximum(present.sum(axis=0), 1)), dtype=np.float64)


def _split(logs: Sequence[JointLog]) -> tuple[list[JointLog], list[JointLog]]:
    """Split all samples in the order of the recordings: what is fitted, and what is not."""
    left = round(FITTED_SHARE * sum(len(log.stamps) for log in logs))
    fit, rest = [], []
    for log in logs:
        count = min(left, len(log.stamps))
        left -= count
        if count:
            fit.append(log.part(slice(0, count)))
        if count < len(log.stamps):
            rest.append(log.part(slice(count, None)))
    return fit, rest


def _by_plan(
    plan: ExperimentPlan,
    cutoff: float,
    arm: Arm,
    log: JointLog,
    held: JointLog | None,
    drive: DriveModel,
) -> tuple[TorqueIdentification, FilteredLog, str]:
    """Identify from the experiments of a plan; the ways between them are not fitted."""
    windows = planned_windows(plan, log)
    motion = filtered(log, cutoff)
    told = identify_planned(arm, plan, log, windows, without_reversals(motion, cutoff), drive)
    fitted = f'{len(plan.experiments)} experiments in {motion.seconds[-1]:.1f} s'
    if held is not None:
        return told, filtered(held, cutoff), fitted
    # Further from the experiments than the filter reaches.
    outside = ~inside(motion.seconds, windows, 2.0 / cutoff)
    if not outside.any():
        raise RecordingError(
            f'in {log.source} there is nothing between the experiments to predict; give --held-out'
        )
    q, qd, qdd = (array[outside] for array in motion.motion)
    return told, FilteredLog(motion.seconds[outside], (q, qd, qdd), motion.effort[outside]), fitted


def _source(request: Request) -> str:
    if request.held_out is not None:
        return request.held_out.name
    return 'the ways between the experiments' if request.plan else 'the last third of the data'


def _method(request: Request) -> str:
    if request.method == 'acceleration_free':
        return f'acceleration_free, low-passes of {BANDWIDTHS[0]:g} and {BANDWIDTHS[1]:g} rad/s'
    return f'{request.method}, cutoff {request.cutoff:g} Hz'


def _predicted(
    told: ArmIdentification, log: FilteredLog, units: tuple[str, ...], source: str
) -> Prediction:
    """Predict the efforts; those of a joint at rest, where friction may be anything, are left."""
    return Prediction(
        source=source,
        channels=told.model.arm.joints,
        units=units,
        seconds=log.seconds,
        measured=told.model.measured(log.motion, log.effort),
        predicted=told.predict(*log.motion),
        consistent=told.predict_consistent(*log.motion),
        nominal=told.model.predict(told.model.nominal, log.motion),
    )


def _arm_model(told: ArmIdentification, cutoff: float) -> IdentifiedArm:
    """Return what the live estimation of efforts has to know."""
    arm, values = told.model.arm, told.consistent.values
    links = told.model.links.stop
    covariance: FloatArray = np.zeros((len(values),) * 2)
    kept = told.base.independent
    both = covariance_about(told.base, values, told.values, told.covariance)
    covariance[np.ix_(kept, kept)] = 0.5 * (both + both.T)
    untold = kept[~np.isfinite(told.std)]
    covariance[untold, untold] += UNTOLD_STD**2
    # A joint without a row has shown no noise, and must not pass for one that has none.
    noise = np.where(np.isfinite(told.noise), told.noise, 0.0)
    noise = np.where(noise > SILENT * noise.max(), noise, noise.max())
    return IdentifiedArm(
        joints=arm.joints,
        links=arm.bodies,
        gravity=arm.gravity,
        drive=told.model.drive,
        parameters=values[:links].reshape(-1, 10),
        drives=values[links:].reshape(len(arm.joints), -1),
        noise=noise,
        cutoff=cutoff,
        covariance=covariance,
    )
