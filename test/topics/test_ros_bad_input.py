"""No input stops a node: it is dropped and counted by reason, or waited for in words."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from changed_messages import (
    AT_ONCE,
    CASES,
    JOINTS,
    WRENCH,
    YEARS,
    Change,
    inserted,
    put,
    restamped,
    with_stamp,
    without,
)
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import AccelStamped, TwistStamped, Wrench, WrenchStamped
from ros_group import Group
from ros_messages import (
    NAMESPACE,
    NS,
    PUMA,
    TRUTH,
    Message,
    feed,
    filtered_sample,
    inertia_of,
    joint_message,
    recording,
    stamp_of,
    vector,
    wrench_message,
)
from ros_pipeline import Pipeline, assert_holds, pieces
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from load_identification.interface.node_table import KINEMATICS


@pytest.mark.parametrize('cases', AT_ONCE, ids=lambda cases: ', '.join(filter(None, cases)))
def test_bad_messages_are_dropped_and_counted_and_the_estimate_holds(
    live: Pipeline, cases: tuple[str | None, ...]
) -> None:
    changes = [CASES[case] for case in cases if case is not None]
    reasons = {reason: times for _, each in changes for reason, times in each.items()}
    before: dict[str, int] = {}

    def counted_from_here(messages: list[Message]) -> list[Message]:
        live.settle()
        before.update((reason, live.dropped(reason)) for reason in reasons)
        for change, _ in changes:
            messages = change(messages)
        return messages

    live.play(recording(), counted_from_here)
    counted = {reason: live.dropped(reason) - before[reason] for reason in reasons}
    assert counted == reasons
    assert_holds(live)


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


def test_publishers_that_cannot_be_heard_are_named() -> None:
    with Group() as group:
        pipeline = Pipeline(group)
        group.start()
        group.node.create_publisher(Wrench, WRENCH, 1)
        description = group.node.create_publisher(String, '/robot_description', 1)
        for words in (
            '/outside sends geometry_msgs/msg/Wrench there, not geometry_msgs/msg/WrenchStamped',
            'the robot description: /outside sends it with volatile durability, not transient',
        ):
            group.wait_for(lambda words=words: words in pipeline.words, words)
        group.node.destroy_publisher(description)
        group.describe()
        group.wait_for(lambda: 'robot description' not in pipeline.words, 'the description')


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
            lambda: pipeline.used > 0, 'samples used', meanwhile=lambda: group.play(next(samples))
        )
        pipeline.play(recording())
        assert_holds(pipeline)
        assert 'Traceback' not in process.output


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
        # Of no other sample: of two with one stamp that are read at once, the later counts.
        for content in samples[505]:
            restamped(-12_000_001)(content)
        for content in samples[506]:
            restamped(1 - 3 * NS)(content)
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


def test_a_robot_told_of_in_other_words_is_named_and_passes() -> None:
    exact = recording(noise=0.0)
    kinds = {'wrench': WrenchStamped, 'twist': TwistStamped, 'accel': AccelStamped}
    stamps = count()
    with Group() as group:
        group.start('estimator')
        pipeline = Pipeline(group)
        kinematics = group.node.create_publisher(
            Float64MultiArray, f'{NAMESPACE}/{KINEMATICS}', 10
        )
        for name, kind in kinds.items():
            publisher = group.publisher(kind, f'{NAMESPACE}/filtered/{name}')
            group.wait_for(publisher.get_subscription_count, f'subscription of {name}')
        group.wait_for(kinematics.get_subscription_count, 'subscription of the kinematics')
        base = group.next_base()

        def play() -> None:
            group.play(filtered_sample(exact, next(stamps) % len(exact.stamps), base))
            if told:
                kinematics.publish(Float64MultiArray(data=[1.0]))

        told, words = True, f'nothing usable of their stamps on {NAMESPACE}/{KINEMATICS}'
        group.wait_for(lambda: words in pipeline.words, words, meanwhile=play)
        assert pipeline.status['state'] == 'waiting'
        assert pipeline.dropped('filtered_kinematics_layout') > 0
        told = False
        group.node.destroy_publisher(kinematics)
        group.wait_for(lambda: pipeline.used > 0, 'samples without it', meanwhile=play)
        assert words not in pipeline.words


def test_what_a_node_that_is_gone_has_said_counts_no_more() -> None:
    with Group() as group:
        group.start('estimator')
        pipeline = Pipeline(group)
        diagnostics = group.publisher(DiagnosticArray, '/diagnostics')
        group.wait_for(diagnostics.get_subscription_count, 'subscription of /diagnostics')

        def say(name: str, health: str) -> None:
            values = [KeyValue(key='health.fx', value=health)]
            status = DiagnosticStatus(name=name, hardware_id=NAMESPACE, values=values)
            diagnostics.publish(DiagnosticArray(status=[status]))

        def health() -> str:
            return pipeline.status.get('health.fx', '')

        say('filter', 'stuck')
        say('gone', 'alive')
        group.wait_for(lambda: health() == 'alive', 'what the last has said')
        group.wait_for(
            lambda: health() == 'stuck',
            'that it is gone',
            meanwhile=lambda: say('filter', 'stuck'),
        )


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
