"""A lag between the streams, as the running nodes report it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from ros_group import Group
from ros_messages import recording
from ros_pipeline import Pipeline, connected

DURATION = 16.0
"""Seven blocks of 2 s [s]."""


@pytest.fixture(scope='module')
def live(fed: Group) -> Pipeline:
    # A delay is one of the errors that a cell may have.
    return connected(fed, {'systematic_errors': 'ordinary'})


def play_late(live: Pipeline, late: int) -> None:
    """Play a recording whose wrench is of so many samples, 2 ms each, before its stamp."""
    rich = recording(duration=DURATION)
    live.play(replace(rich, wrench=rich.wrench[[0] * late + list(range(len(rich.wrench) - late))]))


def test_fifteen_milliseconds_are_warned_of_with_the_value_to_set(live: Pipeline) -> None:
    period = float(recording().stamps[1] - recording().stamps[0]) * 1e-9
    play_late(live, round(0.015 / period))
    lag = round(0.015 / period) * period
    assert live.flowing.level == DiagnosticStatus.WARN
    assert 'older than the joint stamps: set wrench_delay to 0.0' in live.flowing.message
    assert live.flowing.message.count('wrench_delay') == 1
    advised = float(live.flowing.message.partition('set wrench_delay to ')[2].split(';')[0])
    assert advised == pytest.approx(lag, abs=1e-3)
