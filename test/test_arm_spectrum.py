"""Identification from planned experiments where the drives are not all excited."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from excited_arm import case, friction, planned, record

from load_identification.arm.friction import DriveModel
from load_identification.tools.arm_recording import JointLog, filtered
from load_identification.tools.arm_spectrum import identify_planned, planned_windows

CUTOFF = 20.0


def test_what_the_efforts_do_not_tell_of_a_drive_is_said() -> None:
    plan = planned(case(3), 24, periods=3)
    run = record(plan, 100.0)
    effort = run.frictionless + friction(run.motion.velocity)
    stamps = np.round(1e9 * run.times).astype(np.int64)
    velocity = run.motion.velocity
    log = JointLog(Path('planned'), 0, plan.joints, stamps, run.position, velocity, effort)
    motion = filtered(log, CUTOFF)
    # Of the third joint no effort while it moves forward.
    motion.effort[motion.motion[1][:, 2] > -0.01, 2] = np.nan
    drive = DriveModel('symmetric', 'asymmetric', offset=True)
    windows = planned_windows(plan, log)
    found = identify_planned(case(3).arm, plan, log, windows, motion, drive).outcome
    classes = dict(zip(found.model.names, found.excitation.classes, strict=True))
    std = dict(zip(np.array(found.model.names)[found.base.independent], found.std, strict=True))
    assert [name for name, value in std.items() if np.isinf(value)] == ['joint_3.viscous+']
    assert classes['joint_3.viscous+'] == 'not identifiable'
    assert classes['joint_3.viscous-'] == classes['joint_2.viscous+'] == 'identifiable'
    # The links are none the worse for it.
    assert found.consistent.misfit < 1.0
