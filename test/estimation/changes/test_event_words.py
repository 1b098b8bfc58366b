"""A slip is said as such wherever events are told, not as another load."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace

import pytest
from filtered_samples import estimate_of, rich_motion, samples
from rich.console import Console

from load_identification.commands.recorded_load import print_report
from load_identification.estimation.changes.hypotheses import SLIPPED
from load_identification.estimation.events import Event, EventKind
from load_identification.interface.parameters import Parameters
from load_identification.nodes.client.monitor import MonitorState
from load_identification.recordings.identification import Identification
from load_identification.simulation.robots import PUMA

SLIP = Event(1, EventKind.LOAD_CHANGED, 7_000_000_000, SLIPPED)


def test_identify_load_prints_what_the_event_was() -> None:
    estimate = estimate_of(samples(PUMA, rich_motion(PUMA, 2.0)))
    result = Identification(estimate, 1.0, 0, 100, Counter(), (), (SLIP,))
    text = io.StringIO()
    print_report(Console(file=text, width=200), result, Parameters())
    assert '7.00 s  load changed: slipped, its mass is unchanged' in text.getvalue()


def test_a_monitor_takes_the_details_from_the_message_of_the_status() -> None:
    state = MonitorState(words=f'mass 1.00 ± 0.02 kg; {SLIP.words}; turn joint_5')
    assert state.words_of(Event.read(str(SLIP))) == SLIP.words
    later = replace(SLIP, since=9_600_000_000)
    state.words = f'mass 1.00 ± 0.02 kg; {later.words}; turn joint_5'
    assert state.words_of(Event.read(str(later))) == later.words
    state.words = 'mass 1.00 ± 0.02 kg'
    assert state.words_of(Event.read(str(SLIP))) == 'load changed'


@pytest.mark.parametrize('note', ['', SLIPPED])
def test_a_load_that_is_another_one_later_is_said_to_be(note: str) -> None:
    soon = Event(1, EventKind.LOAD_CHANGED, 7_000_000_000, note, 7_900_000_000)
    assert soon.words == f'load changed{note and ": "}{note}'
    assert bool(soon.details) == bool(note)
    late = replace(soon, since=9_600_000_000)
    assert late.words == f'load changed, as of 2.6 s after its detection{note and ": "}{note}'
    assert late.details == late.words
    assert str(late) == str(soon) == 'load_changed 7.000000000'
    assert (
        replace(late, kind=EventKind.UNCHANGED).words
        == replace(soon, kind=EventKind.UNCHANGED).words
    )
