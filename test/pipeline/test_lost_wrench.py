"""A sensor all of whose channels are not finite any more, and come back."""

from __future__ import annotations

import warnings

import numpy as np
from set_ups import wrist_front

from load_identification.interface.batches import CHANNELS, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import Robot
from load_identification.nodes.status import StatusMessage
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.signals.sensor_health import ABSENT, ALIVE
from load_identification.signals.synchronizer import GIVEN_UP
from load_identification.simulation.changes.runs import FRAME, RATE, URDF, lively
from load_identification.simulation.sensors import WRIST_SENSOR, aluminium_block, simulate


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
