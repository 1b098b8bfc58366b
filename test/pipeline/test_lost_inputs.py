"""Joints that are not those of the description, and a wrench that is lost: until put right."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from set_ups import wrist_front

from load_identification.interface.batches import CHANNELS, JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import Robot
from load_identification.nodes.status import StatusMessage
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.signals.sensor_health import ABSENT, ALIVE
from load_identification.signals.synchronizer import GIVEN_UP
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


class Wrist:
    """Front, stage and status, fed by tenths of a second."""

    def __init__(self) -> None:
        self.front = wrist_front(URDF, FRAME)
        self.stage, self._status = PayloadStage(Parameters()), StatusMessage('estimator_node')

    def identified(self) -> str:
        """Return `mass.identified` of the status."""
        states = self.front.motion_filter.health.states
        self._status.update(
            self.stage.estimator.estimate(),
            self.stage.sign,
            waiting='',
            event='',
            used=0,
            dropped=self.front.dropped,
            health=dict(zip(CHANNELS, states, strict=True)),
        )
        values = {item.key: item.value for item in self._status.message.values}
        return str(values['mass.identified'])


@pytest.mark.parametrize('unknown', [5, 100])
def test_a_constant_sensor_is_noticed_though_positions_are_unknown_at_first(unknown: int) -> None:
    front = wrist_front(URDF)
    for joints, wrenches in ticks(4 * TICKS):
        early = joints.stamps < unknown * 1_000_000_000 // RATE
        joints.position[early, 0] = np.nan
        wrenches.wrench[:] = [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]
        front.update([joints], [wrenches])
    assert front.dropped['joint_missing'] > 0
    assert 'bit for bit' in front.motion_filter.words


def test_a_wrench_that_is_finite_no_more_is_absent_and_nothing_is_identified() -> None:
    """They had stayed alive, and the load of before identified, for ever."""
    motion = lively(1, 12.0)
    recording = simulate(Robot(URDF, FRAME), motion, aluminium_block(), WRIST_SENSOR, RATE, 0)
    begin = round(8.0 * RATE)
    end = begin + GIVEN_UP + round(0.5 * RATE)
    recording.wrench[begin:end] = np.nan
    joints, wrenches = recording.joints(), recording.wrenches()
    wrist, states = Wrist(), {}
    for first in range(0, len(recording.stamps), 50):
        part = slice(first, first + 50)
        batch = WrenchBatch(FRAME, wrenches.stamps[part], wrenches.wrench[part])
        with warnings.catch_warnings():
            warnings.simplefilter('error')
            wrist.stage.update(wrist.front.update([joints.select(part)], [batch]))
        states[first] = wrist.front.motion_filter.health.states
        if first == begin - 50:
            assert wrist.identified() == 'true'
        if first == end - 50:
            assert wrist.identified() == 'false'
            assert wrist.front.dropped['wrench_not_finite'] == GIVEN_UP
    assert states[begin - 50] == (ALIVE,) * 6
    assert states[end - 50] == (ABSENT,) * 6
    assert states[first] == (ALIVE,) * 6
    assert wrist.identified() == 'true'
