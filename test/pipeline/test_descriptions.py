"""A robot description whose joints are not those of /joint_states, until one is corrected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from set_ups import wrist_front

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import Robot
from load_identification.simulation.changes.runs import FRAME, RATE, URDF, lively
from load_identification.simulation.sensors import WRIST_SENSOR, aluminium_block, simulate

OTHER = URDF.replace('joint name="joint_', 'joint name="left_joint_')
"""The same robot with other names of the joints."""

TICKS = 20
"""Of 0.1 s, for which each description or name lasts."""


def ticks(count: int) -> Iterator[tuple[JointBatch, WrenchBatch]]:
    """Yield joint states and wrenches by tenths of a second."""
    motion = lively(1, 8.0)
    recording = simulate(Robot(URDF, FRAME), motion, aluminium_block(), WRIST_SENSOR, RATE, 0)
    joints, wrenches = recording.joints(), recording.wrenches()
    for k in range(count):
        begin = recording.stamps[0] + k * 100_000_000
        yield tuple(
            each.select((each.stamps >= begin) & (each.stamps < begin + 100_000_000))
            for each in (joints, wrenches)
        )


@pytest.mark.parametrize('sensor_frame', ['', FRAME])
@pytest.mark.parametrize('wrong_from', [0, TICKS])
def test_a_description_of_other_joints_is_named_and_its_correction_used(
    sensor_frame: str, wrong_from: int
) -> None:
    """It had been used no more until the node was restarted, and two clocks had been blamed."""
    front, given = wrist_front(URDF, sensor_frame), 0
    for k, (joints, wrenches) in enumerate(ticks(3 * TICKS)):
        if k == wrong_from:
            front.motion_filter.set_description(OTHER, sensor_frame)
        if k == wrong_from + TICKS:
            names = ', '.join(Robot(OTHER, FRAME).joints)
            assert front.motion_filter.waiting_for == f'joint {names} in the joint states'
            assert front.synchronizer.why_nothing(front.synchronizer.dropped) == ''
            assert front.synchronizer.out_of_step(front.synchronizer.apart) == ''
            front.motion_filter.set_description(URDF, sensor_frame)
            given = front.motion_filter.given
        front.update([joints], [wrenches])
    assert front.motion_filter.waiting_for == ''
    # But for what the filter needs at its begin.
    seconds = 0.1 * (2 * TICKS - wrong_from)
    assert front.motion_filter.given - given > 0.8 * seconds * Parameters().output_rate


def test_joints_that_change_their_names_are_used_once_a_description_has_them() -> None:
    front, given = wrist_front(URDF), 0
    for k, (joints, wrenches) in enumerate(ticks(3 * TICKS)):
        if k >= TICKS:
            joints = replace(joints, names=Robot(OTHER, FRAME).joints)
        if k == 2 * TICKS:
            names = ', '.join(Robot(URDF, FRAME).joints)
            assert front.motion_filter.waiting_for == f'joint {names} in the joint states'
            front.motion_filter.set_description(OTHER)
            given = front.motion_filter.given
        front.update([joints], [wrenches])
    assert front.motion_filter.waiting_for == ''
    assert front.motion_filter.given - given > 0.8 * TICKS * 0.1 * Parameters().output_rate
