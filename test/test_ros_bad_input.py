"""No input stops a node: it is dropped and counted by reason, or waited for in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import AccelStamped, TwistStamped, WrenchStamped
from ros_helpers import (
    FRAME,
    NAMESPACE,
    NS,
    PARAMETER_KEYS,
    PUMA,
    TRUTH,
    Group,
    Message,
    NodeProcess,
    Pipeline,
    assert_holds,
    feed,
    filtered_sample,
    inertia_of,
    joint_message,
    pieces,
    recording,
    stamp_of,
    stamped,
    vector,
    wrench_message,
    wrench_of,
)
from sensor_msgs.msg import JointState

Change = Callable[[list[Message]], list[Message]]

JOINTS, WRENCH = '/joint_states', '/wrench'
YEARS = 10 * 365 * 86400 * NS


@pytest.fixture(scope='module')
def process(group: Group) -> NodeProcess:
    """Return the single process with default parameters."""
    return group.start()


@pytest.fixture(scope='module')
def group() -> Iterator[Group]:
    """Yield a graph in which the inputs are published."""
    with Group() as group:
        group.publish_inputs()
        yield group


@pytest.fixture(scope='module')
def live(group: Group, process: NodeProcess) -> Iterator[Pipeline]:
    """Yield what the single process says; it lives through all these tests."""
    pipeline = Pipeline(group)
    pipeline.connect()
    yield pipeline
    assert process.alive
    assert 'Traceback' not in process.output


def edited(topic: str, first: int, *edits: Callable[[Any], None]) -> Change:
    """Return a change that edits consecutive messages of a topic, one edit each."""

    def change(messages: list[Message]) -> list[Message]:
        mine = [message.content for message in messages if message.topic == topic]
        for content, edit in zip(mine[first:], edits, strict=False):
            edit(content)
        return messages

    return change


def inserted(topic: str, *contents: Callable[[int], Any], first: int = 500) -> Change:
    """Return a change that puts further messages between others, made from the stamp before."""

    def change(messages: list[Message]) -> list[Message]:
        mine = [message for message in messages if message.topic == topic]
        for before, content in zip(mine[first:], contents, strict=False):
            place = messages.index(before) + 1
            messages.insert(place, Message(before.due, topic, content(before.due)))
        return messages

    return change


def without(topic: str, first: float, last: float) -> Change:
    """Return a change that leaves out a topic between two times [s]."""

    def change(messages: list[Message]) -> list[Message]:
        base = messages[0].due
        return [
            message
            for message in messages
            if topic not in (message.topic, 'all') or not first <= (message.due - base) / NS < last
        ]

    return change


def put(path: str, value: float) -> Callable[[Any], None]:
    """Return an edit that writes a number into a field, as 'wrench.force.x'."""
    *parents, name = path.split('.')

    def edit(content: Any) -> None:
        for parent in parents:
            content = getattr(content, parent)
        setattr(content, name, value)

    return edit


def put_item(name: str, index: int, value: float) -> Callable[[Any], None]:
    """Return an edit that writes a number into an array."""

    def edit(content: Any) -> None:
        getattr(content, name)[index] = value

    return edit


def resized(name: str, size: int) -> Callable[[Any], None]:
    """Return an edit that makes an array so long."""

    def edit(content: Any) -> None:
        setattr(content, name, [0.1] * size)

    return edit


def restamped(by: int) -> Callable[[Any], None]:
    """Return an edit that moves the stamp [ns]."""

    def edit(content: Any) -> None:
        stamp = stamp_of(content) + by
        content.header.stamp.sec, content.header.stamp.nanosec = divmod(stamp, NS)

    return edit


def with_stamp(seconds: int, nanoseconds: int) -> Callable[[Any], None]:
    """Return an edit that writes the stamp."""

    def edit(content: Any) -> None:
        content.header.stamp.sec, content.header.stamp.nanosec = seconds, nanoseconds

    return edit


def with_frame(frame: str) -> Callable[[Any], None]:
    """Return an edit that writes the frame."""

    def edit(content: Any) -> None:
        content.header.frame_id = frame

    return edit


def with_names(*names: str) -> Callable[[Any], None]:
    """Return an edit that writes the names."""

    def edit(content: Any) -> None:
        content.name = list(names)

    return edit


AXES = [f'wrench.{part}.{axis}' for part in ('force', 'torque') for axis in 'xyz']
NOT_FINITE = (np.nan, np.inf, -np.inf)
JOINT_NAMES = recording().names
JITTER = [restamped(by) for by in (-8_000_000, -50_000_000, -90_000_000)]
STRAY = [
    restamped(YEARS),
    lambda content: None,
    restamped(-YEARS),
    lambda content: None,
    with_stamp(2**31 - 1, 0),
]

CASES: dict[str, tuple[Change, dict[str, int]]] = {
    'a wrench that is not finite': (
        edited(WRENCH, 500, *(put(axis, value) for axis in AXES for value in NOT_FINITE)),
        {'wrench_not_finite': 18},
    ),
    'a wrench beyond all sense': (
        edited(WRENCH, 500, *(put(axis, value) for axis in AXES for value in (1e30, -1e300))),
        {'wrench_not_finite': 12},
    ),
    'a position that is not finite': (
        edited(JOINTS, 500, *(put_item('position', j, v) for j in range(6) for v in NOT_FINITE)),
        {'joint_state_not_finite': 18},
    ),
    'a position beyond all sense': (
        edited(JOINTS, 500, *(put_item('position', j, v) for j in (0, 5) for v in (1e30, 1e300))),
        {'joint_state_not_finite': 4},
    ),
    'arrays of the wrong length': (
        edited(
            JOINTS,
            500,
            resized('position', 0),
            resized('position', 5),
            resized('position', 7),
            resized('velocity', 1),
            resized('velocity', 7),
        ),
        {'joint_state_length': 5},
    ),
    'names twice': (
        edited(JOINTS, 500, *[with_names(*JOINT_NAMES[:5], JOINT_NAMES[0])] * 3),
        {'joint_state_names': 3},
    ),
    'no names at all': (
        inserted(JOINTS, *[lambda stamp: stamped(JointState(), stamp)] * 5),
        {'joint_state_names': 5},
    ),
    'repeated and backward stamps of wrenches': (
        edited(WRENCH, 500, *JITTER),
        {'wrench_stamp_not_increasing': 3},
    ),
    'repeated and backward stamps of joint states': (
        edited(JOINTS, 500, *JITTER),
        {'joint_states_stamp_not_increasing': 3},
    ),
    'wrenches without a stamp': (
        edited(WRENCH, 500, *[with_stamp(0, 0)] * 3, with_stamp(-5, 7)),
        {'wrench_stamp_zero': 4},
    ),
    'joint states without a stamp': (
        edited(JOINTS, 500, *[with_stamp(0, 0)] * 3, with_stamp(-5, 7)),
        {'joint_states_stamp_zero': 4},
    ),
    'stray stamps of wrenches': (edited(WRENCH, 500, *STRAY), {'wrench_stamp_jump': 3}),
    'stray stamps of joint states': (
        edited(JOINTS, 500, *STRAY),
        {'joint_states_stamp_jump': 3},
    ),
    'wrenches of another frame': (
        edited(WRENCH, 500, *map(with_frame, ('tool0', '', 'no such frame', '//'))),
        {'wrench_frame_changed': 4},
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_bad_messages_are_dropped_and_counted_and_the_estimate_holds(
    live: Pipeline, case: str
) -> None:
    change, reasons = CASES[case]
    live.settle()
    before = {reason: live.dropped(reason) for reason in reasons}
    live.play(recording(), change)
    counted = {reason: live.dropped(reason) - before[reason] for reason in reasons}
    assert counted == reasons
    assert_holds(live)


def test_velocity_and_effort_that_are_not_finite_cost_nothing(live: Pipeline) -> None:
    def change(messages: list[Message]) -> list[Message]:
        joints = [m.content for m in messages if isinstance(m.content, JointState)]
        for k, content in enumerate(joints):
            content.effort = [np.nan, np.inf, -np.inf, 1e300][: k % 5]
            if k % 3 == 0:
                content.velocity[k % 6] = NOT_FINITE[k % 9 // 3]
        return messages

    used = live.used
    live.play(recording(velocity_noise=1e-4), change)
    assert_holds(live)
    # An output every 20 ms, but for half a window at either end; a restart may cost a tick.
    assert live.used - used == pytest.approx((8.0 - 0.116) * 50, abs=8)


def frozen(messages: list[Message]) -> list[Message]:
    """Repeat one wrench for a second, while the arm moves."""
    mine = [message.content for message in messages if message.topic == WRENCH]
    for content in mine[501:626]:
        content.wrench = mine[500].wrench
    return messages


def saturated(messages: list[Message]) -> list[Message]:
    """Clip the vertical force as a driver does at the end of its range: the value stays."""
    for message in messages:
        if message.topic == WRENCH:
            message.content.wrench.force.z = min(message.content.wrench.force.z, 8.0)
    return messages


def dying(messages: list[Message]) -> list[Message]:
    """Let one channel go dead for two seconds."""
    mine = [message.content for message in messages if message.topic == WRENCH]
    for content in mine[500:750]:
        content.wrench.torque.y = 0.0
    return messages


def repeated(messages: list[Message]) -> int:
    """Return how many samples repeat a value of some channel for at least the tenth time."""
    wrenches = np.array([wrench_of(m.content) for m in messages if m.topic == WRENCH])
    run, count = np.zeros(6, dtype=int), 0
    for same in wrenches[1:] == wrenches[:-1]:
        run = np.where(same, run + 1, 0)
        count += bool((run >= 10).any())
    return count


@pytest.mark.parametrize('change', [frozen, saturated, dying])
def test_frozen_saturated_and_dead_channels_are_counted_and_the_estimate_holds(
    live: Pipeline, change: Change
) -> None:
    least = repeated(change(feed(recording(), 0)))
    assert least > 30
    live.settle()
    before = live.dropped('wrench_channel_stuck')
    live.play(recording(), change)
    # In the batch before it was sure the monitor had let a few pass.
    assert live.dropped('wrench_channel_stuck') - before >= 0.5 * least
    # The few that pass before a channel is found out widen the intervals, some of inertia beyond
    # what is required (NaN); truth stays inside.
    assert np.nanmax(np.abs(live.errors())) < 5.0
    assert [live.status[f'{key}.identified'] for key in PARAMETER_KEYS[:4]] == ['true'] * 4


def test_a_channel_that_the_sensor_lacks_is_done_without(live: Pipeline) -> None:
    lacking = recording().wrench.copy()
    lacking[:, 5] = 0.0
    live.play(replace(recording(), wrench=lacking))
    assert np.abs(live.errors()[:15]).max() < 5.0
    assert live.status['mass.identified'] == live.status['com.z.identified'] == 'true'
    # Of its offset nothing is known.
    assert live.status['offset.tz'] == live.status['offset.tz.std'] == 'nan'


@pytest.mark.parametrize('topic', [JOINTS, WRENCH, 'all'])
def test_a_gap_is_not_bridged(live: Pipeline, topic: str) -> None:
    live.settle()
    used = live.used
    live.play(recording(), without(topic, 3.0, 3.5))
    assert_holds(live)
    # Two windows more that are cut off.
    outputs = (8.0 - 0.5 - 2 * 0.116) * 50
    assert live.used - used == pytest.approx(outputs, abs=8)


def test_a_joint_that_is_missing_for_a_while_costs_just_that_while(live: Pipeline) -> None:
    def change(messages: list[Message]) -> list[Message]:
        for message in messages[800:1000]:
            if message.topic == JOINTS:
                message.content.name = message.content.name[:5]
                message.content.position = message.content.position[:5]
        return messages

    live.settle()
    before, used = live.dropped('joint_missing'), live.used
    live.play(recording(), change)
    assert_holds(live)
    assert live.dropped('joint_missing') - before == pytest.approx(100, abs=8)
    outputs = (8.0 - 0.8 - 2 * 0.116) * 50
    assert live.used - used == pytest.approx(outputs, abs=8)


def test_a_thousand_joints_are_too_many_or_not_ours(live: Pipeline) -> None:
    many = [f'part_{k}' for k in range(1000)]

    def foreign(stamp: int) -> JointState:
        return joint_message(stamp, many, np.zeros(1000))

    live.play(recording(), inserted(JOINTS, *[foreign] * 20))
    assert_holds(live)

    def ours_among_them(messages: list[Message]) -> list[Message]:
        for message in messages[1000:1040]:
            if message.topic == JOINTS:
                message.content.name = [*many, *message.content.name]
                message.content.position = [*np.zeros(1000), *message.content.position]
        return messages

    live.play(recording(), ours_among_them)
    assert_holds(live)


def test_a_leading_slash_of_the_frame_is_no_other_frame(live: Pipeline) -> None:
    live.settle()
    before = live.dropped('wrench_frame_changed')
    live.play(recording(), edited(WRENCH, 0, *[with_frame(f'/{FRAME}')] * 700))
    assert_holds(live)
    assert live.dropped('wrench_frame_changed') == before


def test_bytes_that_are_no_message_do_no_harm(live: Pipeline) -> None:
    rng = np.random.default_rng(0)

    def change(messages: list[Message]) -> list[Message]:
        # rclpy publishes bytes as they are.
        for topic in (JOINTS, WRENCH):
            for size in (0, 1, 3, 4, 8, 40, 300, 5000):
                messages.insert(700, Message(messages[700].due, topic, rng.bytes(size)))
        return messages

    live.play(recording(), change)
    assert_holds(live)


def test_garbage_for_a_description_is_refused_and_a_good_one_taken(
    live: Pipeline, process: NodeProcess
) -> None:
    for garbage in ('garbage', '<robot', '<html/>', '<robot name="r"/>x'):
        refused = process.output.count('description cannot be used')
        live.group.describe(garbage)
        live.group.wait_for(
            lambda: process.output.count('description cannot be used') > refused,  # noqa: B023
            f'the refusal of {garbage}',
        )
    live.group.describe(PUMA.replace('<robot', '<!-- again --><robot', 1))
    live.play(recording())
    assert_holds(live)


# What is waited for


def test_what_is_waited_for_is_said_in_words() -> None:
    with Group() as group:
        pipeline = Pipeline(group)
        process = group.start()

        def said(*words: str) -> bool:
            return all(word in pipeline.words for word in words)

        def wait_until_said(*words: str) -> None:
            group.wait_for(lambda: said(*words), f'a status with {words}')
            assert pipeline.status['state'] == 'waiting'

        wait_until_said('/joint_states', '/wrench', 'robot description')
        group.publisher(WrenchStamped, WRENCH)
        group.publisher(JointState, JOINTS)
        samples = pieces(group)

        def play_until_said(
            *words: str, change: Change = list, not_said: str = 'Traceback'
        ) -> None:
            group.wait_for(
                lambda: said(*words) and not_said not in pipeline.words,
                f'a status with {words}',
                meanwhile=lambda: group.play(change(next(samples)), 2.0),
            )

        no_joints, no_wrench = without(JOINTS, 0.0, 1e9), without(WRENCH, 0.0, 1e9)
        play_until_said('nothing on /joint_states', change=no_joints, not_said='/wrench')
        play_until_said('nothing on /wrench for', change=no_wrench, not_said='/joint_states')
        play_until_said('robot description', not_said='nothing on')
        group.describe(PUMA.replace('ft_sensor', 'wrist_sensor'))
        play_until_said("'ft_sensor'", "'wrist_sensor'")
        group.describe(PUMA.replace('"joint_3"', '"elbow"'))
        play_until_said('joint elbow')
        assert pipeline.dropped('joint_missing') > 0
        group.describe(PUMA)
        pipeline.play(recording())
        assert_holds(pipeline)
        assert 'Traceback' not in process.output


def test_what_comes_first_does_not_decide_what_is_used() -> None:
    with Group() as group:
        pipeline = Pipeline(group)
        process = group.start()
        for topic, kind in ((WRENCH, WrenchStamped), (JOINTS, JointState)):
            publisher = group.publisher(kind, topic)
            group.wait_for(publisher.get_subscription_count, f'subscription of {topic}')
        base = group.next_base()
        messages = []
        for k in range(1, 101):
            names = [f'joint_{k}_{j}' for j in range(300)]
            stamp = base + k * 8_000_000
            messages.append(Message(stamp, JOINTS, joint_message(stamp, names, np.zeros(300))))
            wrench = wrench_message(stamp, 'nonsense' if k < 90 else '', np.ones(6))
            messages.append(Message(stamp, WRENCH, wrench))
        group.play(messages)
        group.describe()
        samples = pieces(group)
        group.wait_for(
            lambda: pipeline.used > 0,
            'samples used',
            meanwhile=lambda: group.play(next(samples)),
        )
        pipeline.play(recording())
        assert_holds(pipeline)
        assert 'Traceback' not in process.output


# The nodes alone, fed by somebody else


def test_the_estimator_alone_survives_whatever_comes_on_the_filtered_topics() -> None:
    exact = recording(noise=0.0)
    kinds = {'wrench': WrenchStamped, 'twist': TwistStamped, 'accel': AccelStamped}
    with Group() as group:
        process = group.start('estimator')
        pipeline = Pipeline(group)
        for name, kind in kinds.items():
            publisher = group.publisher(kind, f'{NAMESPACE}/filtered/{name}')
            group.wait_for(publisher.get_subscription_count, f'subscription of {name}')
        base = group.next_base()
        samples = [
            [m.content for m in filtered_sample(exact, k, base)] for k in range(len(exact.stamps))
        ]
        put('twist.angular.x', np.nan)(samples[500][1])
        put('accel.linear.y', -np.inf)(samples[501][2])
        put('accel.angular.z', 1e300)(samples[502][2])
        put('wrench.force.z', np.nan)(samples[503][0])
        put('wrench.force.x', 1e30)(samples[504][0])
        for content in samples[505]:
            restamped(-12_000_000)(content)
        for content in samples[506]:
            restamped(-3 * NS)(content)
        for content in samples[507]:
            restamped(YEARS)(content)
        for content in samples[508]:
            with_stamp(0, 0)(content)
        # One topic of a sample is lost.
        restamped(1)(samples[509][2])
        messages = [
            Message(base + int(stamp), f'{NAMESPACE}/filtered/{name}', content)
            for stamp, sample in zip(exact.stamps, samples, strict=True)
            for name, content in zip(kinds, sample, strict=True)
        ]
        for name in kinds:
            messages.insert(900, Message(messages[900].due, f'{NAMESPACE}/filtered/{name}', b'?!'))
        group.play(messages)
        last = base + int(exact.stamps[-1])
        group.wait_for(lambda: pipeline.newest == last, 'the inertia of the last sample')
        pipeline.settle()
        np.testing.assert_allclose(inertia_of(pipeline.inertias[-1]), TRUTH, rtol=1e-4, atol=1e-7)
        assert pipeline.dropped('motion_not_finite') == 3
        assert pipeline.dropped('filtered_stamp_stray') == 3
        assert pipeline.dropped('filtered_stamp_zero') == 1
        assert pipeline.used == len(samples) - 8
        # What the fusion node reports, or somebody in its name.
        diagnostics = group.publisher(DiagnosticArray, '/diagnostics')
        group.wait_for(diagnostics.get_subscription_count, 'subscription of /diagnostics')
        for value in ('9' * 5000, '²', '-1', '', '3'):
            count = KeyValue(key='samples.dropped.x', value=value)
            status = DiagnosticStatus(name='fusion', hardware_id=NAMESPACE, values=[count])
            diagnostics.publish(DiagnosticArray(status=[status]))
        group.wait_for(lambda: pipeline.dropped('x') == 3, 'the count that is one')
        assert 'Traceback' not in process.output


def test_the_filter_alone_survives_whatever_comes_on_the_synchronized_topics() -> None:
    exact = recording(noise=0.0, velocity_noise=0.0)
    kinds = {'joint_states': JointState, 'wrench': WrenchStamped}
    topics = {f'/{name}': f'{NAMESPACE}/synchronized/{name}' for name in kinds}
    with Group() as group:
        group.describe()
        process = group.start('filter')
        heard: list[DiagnosticArray] = group.record(DiagnosticArray, '/diagnostics')
        for name, kind in kinds.items():
            publisher = group.publisher(kind, f'{NAMESPACE}/synchronized/{name}')
            group.wait_for(publisher.get_subscription_count, f'subscription of {name}')
        group.wait_for(lambda: 'using the robot description' in process.output, 'the description')
        base = group.next_base()
        messages = feed(exact, base)
        for change, _ in CASES.values():
            messages = change(messages)
        with group.recorded((AccelStamped, f'{NAMESPACE}/filtered/accel')) as (accels,):
            group.play([m._replace(topic=topics[m.topic]) for m in messages])
            end = base + int(exact.stamps[-1]) - 90_000_000
            group.wait_for(lambda: accels and stamp_of(accels[-1]) > end, 'the end of the stream')
        assert len(accels) > 300
        index = {base + int(stamp): k for k, stamp in enumerate(exact.stamps)}
        late = [m for m in accels if stamp_of(m) > base + 6 * NS]
        rows = [index[stamp_of(m)] for m in late]
        np.testing.assert_allclose(
            [vector(m.accel.linear) for m in late],
            exact.motion.linear_acceleration[rows],
            atol=0.2,
        )
        group.wait_for(
            lambda: (
                'samples.dropped.joint_state_length'
                in {item.key for m in heard[-1:] for status in m.status for item in status.values}
            ),
            'counts on /diagnostics',
        )
        assert 'Traceback' not in process.output
