"""The matrix of faults: each for two seconds of a motion, over real topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from changed_messages import AXES, JOINTS, WRENCH, put, put_item, restamped, with_stamp
from diagnostic_msgs.msg import DiagnosticStatus
from ros_faults import IDS, PROCESSES, Edit, Heard, assert_passes, living, play
from ros_group import LATCHED
from ros_messages import NAMESPACE, NS, Message, recording, stamp_of, wrench_of
from ros_pipeline import Pipeline
from std_msgs.msg import String


@dataclass(frozen=True)
class Fault:
    """What is done to each message, and what is said of it.

    Attributes
    ----------
    edit : callable
        Returns the message that is sent in place of one, None for none.
    words : str
        Pattern of what is said; empty: nothing has to be.
    """

    edit: Edit
    words: str = ''


def on(topic: str, *edits: Callable[[object], None]) -> Edit:
    """Return an edit of every message of a topic."""

    def change(message: Message) -> Message:
        if message.topic == topic:
            for edit in edits:
                edit(message.content)
        return message

    return change


def silent(*topics: str) -> Edit:
    return lambda message: None if message.topic in topics else message


def held(*channels: int) -> Edit:
    """Return an edit that repeats the first values of channels."""
    values: list[tuple[float, ...]] = []

    def change(wrench: Any) -> None:
        values.append(wrench_of(wrench))
        for channel in channels:
            put(AXES[channel], values[0][channel])(wrench)

    return on(WRENCH, change)


def held_positions() -> Edit:
    """Return an edit that repeats the first joint positions, as a driver that hangs does."""
    first: list[Sequence[float]] = []

    def change(states: Any) -> None:
        first.append(states.position)
        states.position = first[0]

    return on(JOINTS, change)


def standing_still() -> Edit:
    """Return an edit that repeats the first stamp, as where simulated time pauses."""
    first: list[int] = []

    def change(message: Message) -> Message:
        first.append(message.due)
        with_stamp(*divmod(first[0], NS))(message.content)
        return message

    return change


def scaled(factor: float, shift: float = 0.0) -> Edit:
    """Return an edit that scales the wrench, and shifts its forces [N]."""

    def change(wrench: Any) -> None:
        for k, value in enumerate(wrench_of(wrench)):
            put(AXES[k], factor * value + (shift if k < 3 else 0.0))(wrench)

    return on(WRENCH, change)


def moved(joint: int, by: float) -> Edit:
    def change(states: Any) -> None:
        states.position[joint] += by

    return on(JOINTS, change)


def thinned(topic: str, keep: int) -> Edit:
    """Return an edit that lets one message in so many pass."""
    count = iter(range(10**9))
    return lambda m: m if m.topic != topic or next(count) % keep == 0 else None


def now_and_then_nan(topic: str, *edits: Callable[[object], None]) -> Edit:
    """Return an edit that makes three of ten values NaN, which ones nobody can foresee."""
    rng = np.random.default_rng(0)

    def change(content: object) -> None:
        for edit in edits:
            if rng.random() < 0.3:
                edit(content)

    return on(topic, change)


def alternating(frame: str) -> Edit:
    """Return an edit that gives every second wrench another frame."""
    count = iter(range(10**9))

    def change(wrench: object) -> None:
        if next(count) % 2:
            put('header.frame_id', frame)(wrench)

    return on(WRENCH, change)


def repeated(share: float) -> Edit:
    """Return an edit that sends old wrenches again, so many and nobody can foresee which."""
    rng, last = np.random.default_rng(0), [0.0] * 6

    def change(wrench: Any) -> None:
        if last[0] == 0.0 or rng.random() > share:
            last[:] = wrench_of(wrench)
        for axis, value in zip(AXES, last, strict=True):
            put(axis, value)(wrench)

    return on(WRENCH, change)


def spiked(share: float, size: float) -> Edit:
    """Return an edit by which one channel, in so many wrenches, shows a value of its own."""
    rng = np.random.default_rng(2)

    def change(wrench: object) -> None:
        if rng.random() < share:
            put(AXES[rng.integers(6)], size * rng.choice([-1, 1]))(wrench)

    return on(WRENCH, change)


def fallen(share: float, *axes: str, value: float = 0.0) -> Edit:
    """Return an edit by which channels have a value in so many wrenches, nobody foresees which."""
    rng = np.random.default_rng(1)

    def change(wrench: object) -> None:
        if rng.random() < share:
            for axis in axes:
                put(axis, value)(wrench)

    return on(WRENCH, change)


def dying(value: float) -> Edit:
    """Return an edit by which fz goes to a value within 1.5 s, and stays there."""
    first: list[int] = []

    def change(message: Message) -> Message:
        first.append(message.due)
        if message.topic == WRENCH:
            alive = max(0.0, 1.0 - (message.due - first[0]) / (1.5 * NS))
            before = wrench_of(message.content)[2]
            put(AXES[2], alive * before + (1.0 - alive) * value)(message.content)
        return message

    return change


def rounded(grain: int) -> Callable[[Any], None]:
    """Return an edit that rounds a stamp down to a grain [ns]."""
    return lambda content: restamped(-(stamp_of(content) % grain))(content)


def read_together(period: int) -> Callable[[Any], None]:
    """Return an edit that stamps messages when they are read, once a period [ns]."""
    last = [0, 0]

    def edit(content: Any) -> None:
        read = stamp_of(content) // period * period
        last[:] = read, 0 if read != last[0] else last[1] + 50_000
        restamped(last[0] + last[1] - stamp_of(content))(content)

    return edit


ALL_DROPPED = 'all of {} dropped: '


def faults() -> dict[str, Fault]:
    """Return the faults by name, those drawn at random each with its draws from the beginning."""
    return {
        'wrench repeats itself': Fault(held(*range(6)), 'the wrench repeats bit for bit'),
        'fz repeats itself': Fault(held(2), 'fz repeats'),
        'tx repeats itself': Fault(held(3), 'tx repeats'),
        'torque repeats itself': Fault(held(3, 4, 5), 'tx, ty, tz repeat'),
        'wrench zero': Fault(on(WRENCH, *(put(axis, 0.0) for axis in AXES)), 'repeat'),
        'fz zero': Fault(on(WRENCH, put(AXES[2], 0.0)), 'fz repeats 0.000 N'),
        'wrench NaN': Fault(
            on(WRENCH, *(put(axis, np.nan) for axis in AXES)), ALL_DROPPED.format(WRENCH)
        ),
        'fz infinite': Fault(on(WRENCH, put(AXES[2], np.inf)), ALL_DROPPED.format(WRENCH)),
        'fx 1e300': Fault(on(WRENCH, put(AXES[0], 1e300)), ALL_DROPPED.format(WRENCH)),
        'no wrench': Fault(silent(WRENCH), WRENCH),
        'no joint states': Fault(silent(JOINTS), JOINTS),
        'nothing': Fault(silent(WRENCH, JOINTS), f'{JOINTS}.*{WRENCH}|no .*sample'),
        'wrench 2 s ahead': Fault(on(WRENCH, restamped(2 * NS)), 'clocks'),
        'wrench 2 s behind': Fault(on(WRENCH, restamped(-2 * NS)), WRENCH),
        'wrench 0.5 s ahead': Fault(on(WRENCH, restamped(NS // 2)), 'clocks'),
        'wrench 0.5 s behind': Fault(on(WRENCH, restamped(-NS // 2)), 'clocks'),
        'stamps that stand still': Fault(standing_still(), 'stamps stand still'),
        'joint states 2 s ahead': Fault(on(JOINTS, restamped(2 * NS)), JOINTS),
        'joint states 2 s behind': Fault(on(JOINTS, restamped(-2 * NS)), JOINTS),
        'wrench without stamps': Fault(on(WRENCH, with_stamp(0, 0)), 'stamps of zero'),
        'joint states without stamps': Fault(on(JOINTS, with_stamp(0, 0)), 'stamps of zero'),
        'wrench with one stamp': Fault(on(WRENCH, with_stamp(5, 0)), WRENCH),
        'wrenches read in batches': Fault(
            on(WRENCH, read_together(NS // 40)), 'stamps of /wrench come in bunches every 25 ms'
        ),
        'position NaN': Fault(on(JOINTS, put_item('position', 1, np.nan)), 'joint_2'),
        'three of ten wrench values NaN': Fault(
            now_and_then_nan(WRENCH, *(put(axis, np.nan) for axis in AXES)), 'NaN.*sensor driver'
        ),
        'three of ten positions NaN': Fault(
            now_and_then_nan(JOINTS, *(put_item('position', k, np.nan) for k in range(6))),
            'NaN.*robot driver',
        ),
        'position too short': Fault(
            on(JOINTS, put('position', [0.1] * 5)), 'of different lengths'
        ),
        'a joint named twice': Fault(
            on(JOINTS, put('name', [*recording().names[:5], recording().names[0]])), 'named twice'
        ),
        'a joint renamed': Fault(
            on(JOINTS, put('name', ['a', *recording().names[1:]])), str(recording().names[0])
        ),
        'another frame': Fault(on(WRENCH, put('header.frame_id', 'tool0')), 'frame .tool0.'),
        'wrench in mN': Fault(scaled(1e3), 'newtons|changed|contact'),
        'wrench in kN': Fault(scaled(1e-3), 'newtons|changed|contact'),
        'sign reversed': Fault(scaled(-1.0), 'reversed|changed|contact'),
        'gain doubled': Fault(scaled(2.0), 'changed|contact'),
        'forces off by 5 N': Fault(scaled(1.0, 5.0), 'changed|contact'),
        'a joint off by 0.5 rad': Fault(moved(2, 0.5), 'changed|contact|jump'),
        'joint positions repeat': Fault(held_positions(), 'changed|contact'),
        'a joint off by a turn': Fault(moved(5, 2.0 * np.pi)),
        'joint states at 2 Hz': Fault(thinned(JOINTS, 62), 'max_gap'),
        'wrench at 2 Hz': Fault(thinned(WRENCH, 62), 'max_gap'),
        'fz -2.5 N': Fault(on(WRENCH, put(AXES[2], -2.5)), 'fz repeats −2.500 N'),
        'fz goes to -2.5 N': Fault(dying(-2.5), 'changed|drifts|fz repeats'),
        'three of ten wrenches repeated': Fault(repeated(0.3), 'the wrench repeats old values'),
        'fz zero, three times of ten': Fault(fallen(0.3, AXES[2]), 'fz fall to zero'),
        'fz -1 N, three times of ten': Fault(fallen(0.3, AXES[2], value=-1.0), 'fz fall to −1'),
        'three of ten wrenches 999': Fault(
            fallen(0.3, *AXES, value=999.0), 'the wrench falls to 999'
        ),
        'three of ten wrenches zero': Fault(fallen(0.3, *AXES), 'the wrench falls to zero'),
        'three of ten wrenches with 50 N': Fault(spiked(0.3, 50.0), 'changed|contact'),
        'joint states at 10 Hz': Fault(thinned(JOINTS, 12), 'too few.* publish'),
        'joint states stamped in 0.1 s': Fault(on(JOINTS, rounded(NS // 10)), 'stamps rounded'),
        'every second wrench lost': Fault(thinned(WRENCH, 2)),
        'every second wrench of another frame': Fault(alternating('tool0'), 'two sensors'),
    }


SHORT = (
    'no wrench',
    'wrenches read in batches',
    'position NaN',
    'three of ten positions NaN',
)
"""Of these something is to be seen in every run of the tests."""


@pytest.fixture(scope='module', params=PROCESSES, ids=IDS)
def live(request: pytest.FixtureRequest) -> Iterator[tuple[Pipeline, Heard]]:
    """Yield what the pipeline says; its processes live through all faults."""
    with living(request.param) as (pipeline, _):
        group, heard = pipeline.group, Heard()
        group.publisher(String, '/silence')
        group.node.create_subscription(DiagnosticStatus, f'{NAMESPACE}/status', heard, LATCHED)
        yield pipeline, heard


@pytest.mark.parametrize(
    'name', [n if n in SHORT else pytest.param(n, marks=pytest.mark.matrix) for n in faults()]
)
def test_a_fault_is_said_claims_nothing_wrong_and_passes(
    live: tuple[Pipeline, Heard],
    name: str,
    record_property: Callable[[str, object], None],
    request: pytest.FixtureRequest,
) -> None:
    pipeline, heard = live
    fault = faults()[name]
    base = play(pipeline, heard, fault.edit)
    record_property('fault', name)
    record_property('processes', str(len(request.node.callspec.params['live'])))
    assert_passes(heard, base, fault.words, record_property)
