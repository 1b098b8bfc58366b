"""Changes of the load, of the offset, contact and drift: noticed, named apart, and survived."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from changed_loads import assert_weighs, carried, grasped, grasped_moving, kinds, stage
from estimates import estimated
from filtered_samples import estimate_of, rich_motion, samples
from rich.console import Console

from load_identification.commands.recorded_load import print_report
from load_identification.estimation.changes.hypotheses import SLIPPED, UNSEEN
from load_identification.estimation.events import Event, EventKind
from load_identification.interface.names import INTERVAL
from load_identification.model.robot import Robot
from load_identification.nodes.client.monitor import MonitorState
from load_identification.recordings.result import Identification
from load_identification.simulation.cells import Conditions
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import (
    DUE,
    FRAME,
    RATE,
    SCENARIOS,
    URDF,
    drifting,
    filtered,
    lively,
    ordinary,
    pieces,
    recorded,
)
from load_identification.simulation.changes.scenarios import CLAIMS, outcome
from load_identification.simulation.robots import PUMA
from load_identification.simulation.sensors import WRIST_SENSOR, measure, simulate

KEPT = (
    *('5 %, moving', 're-zero in 0.5 s, moving', 'release, at rest', 're-zero, at rest'),
    'push 20 N, 2 s, fixed in the world',
)
"""Every kind of change, and either way for it to come; benchmark/events.py has a hundred runs and
more of each, and of twice as many."""

SLIP = Event(1, EventKind.LOAD_CHANGED, 7_000_000_000, SLIPPED)


@pytest.mark.parametrize('scenario', KEPT)
def test_a_change_is_noticed_and_told_rightly_in_time_and_intervals_hold(scenario: str) -> None:
    draw, kind = SCENARIOS[scenario]
    found = outcome(recorded(scenario, 500))
    # What changes slowly may be noticed as late after it has changed.
    assert found.delay <= DUE[kind] + draw(np.random.default_rng(0)).takes
    assert not found.early
    assert found.last
    # All of a run are correlated: their share spreads by 0.1 from run to run, with a long tail.
    for z in (found.looks[-1], found.z):
        assert np.mean(np.abs(z) <= INTERVAL) >= 0.77
    if scenario.startswith('push'):
        assert found.named <= 3.2
        assert abs(found.looks[-1][0]) < 4.0
    else:
        assert not found.wrong
        # What the issue asks for, of 95 %.
        assert found.named <= 2.0
        assert found.looks[-1].size >= 3


def test_a_constant_load_and_offset_raise_no_alarm() -> None:
    """A minute of poses with rests; in motion there is none before any change above."""
    events, error = ordinary('puma', 1, Conditions(), work=('poses',))
    assert events == []
    # A gram: what a minute at 0.1 N leaves is a hundredth of that.
    assert abs(error) < 1e-3


@pytest.mark.parametrize('push', [pytest.param(0.0, marks=pytest.mark.seeds), 20.0])
def test_a_driver_that_starts_anew_may_hold_another_load(push: float) -> None:
    """What reads zero after a gap does so with any load: an old one was claimed 44 std off.

    Also after a push by which the driver was stopped.
    """
    _, recording = carried(0, 16.0)
    stamps = 1e-9 * (recording.stamps - recording.stamps[0])
    zero = recording.wrench[np.argmax(stamps >= 9.0)]
    wrench = recording.wrench - np.where(stamps[:, None] < 6.0, 0.0, zero)
    wrench[(stamps > 5.0) & (stamps < 6.0), 0] += push
    batch = filtered(replace(recording, wrench=wrench))[0]
    at = 1e-9 * (batch.stamps - recording.stamps[0])
    estimator = stage()
    for piece in pieces(batch.select((at < 5.8) | (at > 9.2))):
        estimator.update(piece)
    assert estimator.events.newest.kind is EventKind.LOAD_AND_OFFSET_CHANGED
    assert estimator.events.newest.note == UNSEEN


def test_a_lagging_wrench_is_no_event() -> None:
    _, recording = carried(0, 12.0)
    late = np.roll(recording.wrench, int(0.01 * RATE), axis=0)
    estimator = stage()
    estimator.update(filtered(replace(recording, wrench=late))[0])
    assert estimator.events.since(0) == ()


def test_drift_does_not_reach_the_mass() -> None:
    ratios = drifting(1)
    # What the issue asks for.
    assert len(ratios) > 500
    assert np.abs(ratios - 1.0).max() < 0.02


@pytest.mark.parametrize('until', [8.5, pytest.param(11.5, marks=pytest.mark.seeds)])
def test_a_load_changed_twice_is_known_twice(until: float) -> None:
    """Pick up and put down, with less and with more time between than a push is remembered."""
    rng = np.random.default_rng(5)
    light, heavy = drawn_load(rng, 0.6), drawn_load(rng, 1.7)
    robot, motion = Robot(URDF, FRAME), lively(5, until + 3.0)
    empty, full = (simulate(robot, motion, load, WRIST_SENSOR, RATE, 5) for load in (light, heavy))
    times = empty.stamps * 1e-9
    holding = ((times > 6.0) & (times < until))[:, None]
    wrench = np.where(holding, full.exact_wrench, empty.exact_wrench)
    batch, _ = filtered(measure(replace(empty, exact_wrench=wrench), WRIST_SENSOR, 5))
    estimator, masses = stage(), {}
    for piece in pieces(batch):
        estimator.update(piece)
        estimate = estimator.estimate()
        if estimate is not None and estimate.identified[0]:
            masses[round(estimate.stamp * 1e-9, 1)] = estimate.values[0], estimate.std[0]
    assert [kind for kind in kinds(estimator) if kind in CLAIMS] == [EventKind.LOAD_CHANGED] * 2
    for time, load in ((5.5, light), (until - 0.5, heavy), (until + 2.5, light)):
        near = min(masses, key=lambda stamp: abs(stamp - time))
        mass, std = masses[near]
        assert abs(mass - load.mass) < 4.0 * std


def test_a_part_let_go_at_the_end_of_a_contact_is_said_to_be_gone_since_then() -> None:
    """An insertion of 2.5 s: the stamp is that of its begin."""
    rng = np.random.default_rng(5)
    light, heavy = drawn_load(rng, 0.6), drawn_load(rng, 1.7)
    robot, motion = Robot(URDF, FRAME), lively(5, 14.0)
    empty, full = (simulate(robot, motion, load, WRIST_SENSOR, RATE, 5) for load in (light, heavy))
    times = empty.stamps * 1e-9
    push = ((times > 6.0) & (times < 8.5)) * (20.0 + 8.0 * np.sin(4.0 * np.pi * times))
    wrench = np.where((times < 8.5)[:, None], full.exact_wrench, empty.exact_wrench)
    wrench = wrench - push[:, None] * np.array([0.2, 0.0, 1.0, 0.0, 0.03, 0.0])
    batch, _ = filtered(measure(replace(empty, exact_wrench=wrench), WRIST_SENSOR, 5))
    estimator = stage()
    for piece in pieces(batch):
        estimator.update(piece)
    event = estimator.events.newest
    assert event.kind is EventKind.LOAD_CHANGED
    assert 6.0 < event.stamp * 1e-9 < 6.5
    assert 8.4 < event.since * 1e-9 < 8.9
    after = (event.since - event.stamp) * 1e-9
    assert event.details == f'load changed, as of {after:.1f} s after its detection'


def test_a_lasting_contact_is_called_one() -> None:
    """A hand that leads the tool about: a force that changes all the time."""
    mass, recording = carried(2, 14.0)
    times = recording.stamps * 1e-9
    wave = np.sin(2 * np.pi * np.outer(times, [0.7, 1.1, 0.9, 0.8, 1.2, 1.0]))
    during = ((times > 6.0) & (times < 11.0))[:, None]
    pushed = recording.wrench + during * wave * np.repeat([15.0, 1.0], 3)
    estimator, seen = stage(), set()
    for piece in pieces(filtered(replace(recording, wrench=pushed))[0]):
        estimator.update(piece)
        if piece.stamps[-1] < 11.0e9:
            seen.update(kinds(estimator))
    assert seen == {EventKind.CHANGE_DETECTED, EventKind.CONTACT}
    assert estimator.events.newest.kind is EventKind.UNCHANGED
    assert_weighs(estimator, mass)


def test_how_the_stream_is_cut_into_batches_makes_no_difference() -> None:
    batch = grasped_moving()
    at_once, cut = stage(), stage()
    at_once.update(batch)
    for piece in pieces(batch):
        cut.update(piece)
    one, other = at_once.estimate(), cut.estimate()
    assert at_once.events.since(0) == cut.events.since(0)
    np.testing.assert_allclose(one.values, other.values, rtol=1e-9)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-9)


def test_reset_forgets_what_the_fastest_motion_showed_of_another_load() -> None:
    first, _ = grasped(lively(1), 1, 99.0)
    second, _ = grasped(lively(1), 2, 0.0)
    later = replace(second, stamps=second.stamps + 14_000_000_000)
    known, fresh = stage(), stage()
    known.update(first)
    known.estimate()
    known.reset()
    unexplained = []
    for estimator in (known, fresh):
        estimate = estimated(estimator, [later])
        unexplained.append(estimator._excitation.excitation(estimate.total).unexplained)
    assert unexplained[0] < 1.2 * unexplained[1]


def test_identify_load_prints_what_the_event_was() -> None:
    estimate = estimate_of(samples(PUMA, rich_motion(PUMA, 2.0)))
    result = Identification(estimate, 0, 100, Counter(), (), (SLIP,))
    text = io.StringIO()
    print_report(Console(file=text, width=200), result)
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
