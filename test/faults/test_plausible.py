"""What no arm can hold, units that are not SI, a tool taken off: said in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from ros_arm import NOTHING, Arm
from ros_helpers import Group, Pipeline
from ros_messages import PAYLOAD, recording


@pytest.fixture
def live() -> Iterator[tuple[Pipeline, Arm]]:
    with Group() as group:
        group.publish_inputs()
        process = group.start()
        pipeline = Pipeline(group)
        pipeline.connect()
        arm = Arm(group)
        arm.ready()
        yield pipeline, arm
        assert process.alive
        assert 'Traceback' not in process.output


@pytest.mark.parametrize(
    ('factor', 'words'),
    [(1e3, 'newtons or millinewtons?'), (1e-3, 'newtons or kilonewtons?')],
    ids=['mN', 'kN'],
)
def test_units_that_are_not_newtons_are_doubted(
    live: tuple[Pipeline, Arm], factor: float, words: str
) -> None:
    pipeline, _ = live
    pipeline.play(replace(recording(), wrench=factor * recording().wrench))
    pipeline.group.wait_for(lambda: words in pipeline.words, words)
    assert pipeline.statuses[-1].level == DiagnosticStatus.WARN
    pipeline.play(recording())
    assert 'newtons' not in pipeline.words
    assert np.abs(pipeline.errors()).max() < 4.0


def test_a_tool_taken_off_names_clear_tool_first(live: tuple[Pipeline, Arm]) -> None:
    pipeline, arm = live
    arm.rest(0.5)
    calibrated = arm.call('calibrate_offset')
    assert calibrated.success, calibrated.says
    arm.body = PAYLOAD
    pipeline.group.wait_for(
        lambda: arm.call('save_tool').success,
        'a tool saved',
        meanwhile=lambda: arm.run(),
    )
    arm.body = NOTHING
    arm.rest(0.5)
    arm.run()
    pipeline.group.wait_for(
        lambda: 'call clear_tool if it was put down' in pipeline.words,
        'clear_tool',
        meanwhile=lambda: arm.run(),
    )
    before, _, after = pipeline.words.partition('call clear_tool')
    assert 'reversed' not in before
    assert 'wrench sign reversed?' in after
