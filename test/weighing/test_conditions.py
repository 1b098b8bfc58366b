"""What a service says where samples do not allow an answer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pytest

from load_identification.interface.batches import CHANNELS, SynchronizedBatch
from load_identification.interface.parameters import Parameters
from load_identification.pipeline.payload_stage import PayloadStage, Samples
from load_identification.signals.sensor_health import ABSENT
from load_identification.weighing.conditions import STALE, STOPPED, Conditions, Refusal

NO_DESCRIPTION = 'waiting for the robot description: nothing on /robot_description'
SILENT = 'nothing on /joint_states for 0.8 s'


@dataclass
class Before:
    """What the stages before the estimator say."""

    waiting_for: str = ''
    warning: str = ''
    health: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def before() -> Before:
    return Before()


@pytest.fixture
def require(before: Before) -> Conditions:
    """Return conditions that have seen one raw sample just now."""
    stage = PayloadStage(Parameters())
    row = np.zeros((1, 1))
    raw = SynchronizedBatch(('j',), 'ft', np.array([10**9]), row, row, np.ones((1, 6)))
    stage.update(Samples(raw=raw))
    require = Conditions(stage.weigher, lambda: before, stage.estimator.estimate)
    require.watch()
    return require


def said(require: Conditions, limit: float = STALE) -> str:
    """Return the words of the refusal; empty: none."""
    try:
        require.fresh(limit)
    except Refusal as why:
        return str(why)
    return ''


def test_while_the_robot_is_not_known_that_is_said_and_not_that_the_sensor_is_dead(
    before: Before, require: Conditions
) -> None:
    before.health, before.waiting_for = dict.fromkeys(CHANNELS, ABSENT), NO_DESCRIPTION
    before.warning = '/joint_states has one stamp every 0.10 s'
    assert said(require) == NO_DESCRIPTION
    with pytest.raises(Refusal, match=f'^{NO_DESCRIPTION}$'):
        require.fresh_estimate()


def test_a_dead_sensor_is_called_dead_with_or_without_a_reason(
    before: Before, require: Conditions
) -> None:
    before.health = dict.fromkeys(CHANNELS, ABSENT)
    assert said(require) == 'no channel of the wrench is alive: sensor or cable?'
    before.warning = 'fx frozen'
    assert said(require) == 'no channel of the wrench is alive: fx frozen'


def test_a_stream_that_has_stopped_is_named_as_soon_as_it_is_known(
    before: Before, require: Conditions, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic() + STALE + 0.1
    monkeypatch.setattr(time, 'monotonic', lambda: now)
    # Which of both it is nobody knows yet; what was being averaged waits for that.
    assert said(require) == 'newest wrench with joint states 0.6 s old'
    assert said(require, STOPPED) == ''
    before.waiting_for = SILENT
    later = now + STOPPED - STALE
    monkeypatch.setattr(time, 'monotonic', lambda: later)
    assert said(require, STOPPED) == f'newest wrench with joint states 1.0 s old ({SILENT})'
