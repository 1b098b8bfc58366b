"""What no arm can hold, units that are not SI, a tool taken off: said in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from ros_arm import CALIBRATION, NOTHING, Arm
from ros_faults import ONE, living
from ros_messages import PAYLOAD, feed, recording
from ros_pipeline import Pipeline

from load_identification.simulation.sensors import Recording


@pytest.fixture(scope='module')
def live() -> Iterator[tuple[Pipeline, Arm]]:
    with living(ONE, CALIBRATION) as (pipeline, _):
        arm = Arm(pipeline.group)
        arm.ready()
        yield pipeline, arm


NEWTONS = 'newton metres or newton millimetres, or force and torque exchanged?'
WRONG: dict[str, tuple[Callable[[Recording], Recording], str]] = {
    'mN': (lambda r: replace(r, wrench=1e3 * r.wrench), 'newtons or millinewtons?'),
    'kN': (lambda r: replace(r, wrench=1e-3 * r.wrench), 'newtons or kilonewtons?'),
    'N mm': (lambda r: replace(r, wrench=r.wrench * np.repeat([1.0, 1e3], 3)), NEWTONS),
    'exchanged': (lambda r: replace(r, wrench=np.roll(r.wrench, 3, axis=1)), NEWTONS),
    'degrees': (
        lambda r: replace(r, position=np.degrees(r.position), velocity=np.degrees(r.velocity)),
        'its limits are -2.793 and 2.793: degrees?',
    ),
}


@pytest.mark.parametrize('case', WRONG)
def test_what_is_not_in_si_units_is_questioned(live: tuple[Pipeline, Arm], case: str) -> None:
    pipeline, _ = live
    change, words = WRONG[case]
    group = pipeline.group
    group.play(feed(change(recording()), group.next_base()), 20.0)
    group.wait_for(lambda: words in pipeline.words, words)
    # A fault where motion has shown by then that no payload fits.
    assert pipeline.statuses[-1].level in (DiagnosticStatus.WARN, DiagnosticStatus.ERROR)
    pipeline.play(recording())
    assert words not in pipeline.words
    assert np.abs(pipeline.errors()).max() < 4.0


def test_a_tool_taken_off_names_clear_tool_first(live: tuple[Pipeline, Arm]) -> None:
    pipeline, arm = live
    arm.calibrated()
    arm.body = PAYLOAD
    pipeline.group.wait_for(
        lambda: arm.call('save_tool').success, 'a tool saved', meanwhile=lambda: arm.run()
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
