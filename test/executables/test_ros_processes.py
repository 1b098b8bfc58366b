"""The three nodes in three processes, and several pipelines side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from processes import DEADLINE, ForkedProcess
from rclpy.node import Node
from ros_group import Group
from ros_messages import (
    KINDS,
    NAMESPACE,
    NS,
    OFFSET_KEYS,
    PAYLOAD,
    Message,
    feed,
    filtered_sample,
    inertia_of,
    recording,
    stamp_of,
)
from ros_pipeline import PLAYS, Pipeline, assert_holds
from sensor_msgs.msg import JointState

from load_identification.nodes.transport.readers import TopicUpstream

NODES = ('fusion', 'filter', 'estimator')

OF_THE_SENSOR = ('gain_common', 'gain', 'cross_talk', 'cross_talk_torque', 'mounting_error')
OF_THE_ARM: dict[str, str | float] = {
    'systematic_errors': 'ordinary',
    **dict.fromkeys((*OF_THE_SENSOR, 'field_force', 'field_torque'), 0.0),
}
"""With errors of base, joints, their friction and delay alone."""


class Forms:
    """The pipeline in one process and in three, on the same inputs."""

    def __init__(self, group: Group) -> None:
        self.group = group
        group.publish_inputs()
        self.processes: dict[str, ForkedProcess] = {}
        group.start(parameters=OF_THE_ARM, remaps={'__ns': f'/one{NAMESPACE}'})
        for node in NODES:
            self.restart(node)
        self.one = Pipeline(group, f'/one{NAMESPACE}')
        self.three = Pipeline(group, f'/three{NAMESPACE}')

    def restart(self, node: str) -> None:
        """Start a node of the three, for the first time or again."""
        self.processes[node] = self.group.start(
            node,
            parameters=OF_THE_ARM if node == 'estimator' else None,
            remaps={'__ns': f'/three{NAMESPACE}'},
        )

    def connect(self) -> None:
        """Wait until samples find their way through all processes."""
        self.one.connect()
        self.three.connect()
        # Until both have used all that was played before. Inputs are best effort: where a busy
        # machine has lost the end of it, again.
        both = self.one, self.three
        for last in (False, False, True):
            base = self.group.next_base()
            self.group.play(feed(recording(), base))
            end = base + int(recording().stamps[-1])
            try:
                self.group.wait_for(
                    lambda end=end: all(end - NS // 8 < p.newest <= end for p in both),
                    'an inertia of both from the end of the recording',
                    deadline=DEADLINE if last else 20.0,
                )
                break
            except AssertionError:
                if last:
                    raise
        for pipeline in both:
            pipeline.settle()

    def play(self, messages: list[Message], base: int) -> None:
        """Play to both and wait until both have used it all."""
        self.group.play(messages)
        for pipeline in (self.one, self.three):
            pipeline.wait_for_inertia(recording(), base)


@pytest.fixture(scope='module')
def forms() -> Iterator[Forms]:
    """Yield both forms, running and connected."""
    with Group() as group:
        forms = Forms(group)
        forms.connect()
        yield forms


def assert_same(one: Pipeline, three: Pipeline) -> None:
    """Check that two pipelines say the same, but for rounding and the decimals of the status."""
    assert stamp_of(one.inertias[-1]) == stamp_of(three.inertias[-1])
    np.testing.assert_allclose(
        inertia_of(three.inertias[-1]), inertia_of(one.inertias[-1]), rtol=1e-6, atol=1e-12
    )
    std = np.sqrt(np.diag(np.reshape(one.covariances[-1].data, (16, 16))))
    difference = np.subtract(three.covariances[-1].data, one.covariances[-1].data)
    assert np.abs(difference.reshape(16, 16) / np.outer(std, std)).max() < 1e-6
    # For how long nothing has come is no part of the estimate.
    silence = re.compile('^nothing on [^;]*; last known ')
    assert silence.sub('', three.words) == silence.sub('', one.words)
    np.testing.assert_allclose(
        three.numbers(OFFSET_KEYS), one.numbers(OFFSET_KEYS), rtol=1e-6, atol=1e-9
    )


def test_no_filtered_sample_is_read_before_the_raw_one_that_it_was_made_of() -> None:
    topics = {f'{NAMESPACE}/filtered/{name}': kind for name, kind in KINDS.items()}
    topics |= {f'{NAMESPACE}/synchronized/joint_states': JointState}
    topics |= {f'{NAMESPACE}/synchronized/wrench': WrenchStamped}
    with Group() as group:
        node = Node('reader', namespace=NAMESPACE, context=group.node.context)
        upstream = TopicUpstream(node)
        for topic, kind in topics.items():
            publisher = group.publisher(kind, topic)
            group.wait_for(publisher.get_subscription_count, f'a reader of {topic}')

        def publish(k: int) -> None:
            raw = [
                message._replace(topic=f'{NAMESPACE}/synchronized{message.topic}')
                for message in feed(recording(), NS, k, k + 1)
            ]
            with group.recorded(*((kind, topic) for topic, kind in topics.items())) as heard:
                group.play(raw + filtered_sample(recording(), k, NS))
                group.wait_for(lambda: all(heard), 'all that was published')

        publish(0)
        reading = upstream.read()
        seen = [next(reading)]
        # More comes while that is worked on.
        publish(1)
        seen += reading
        seen += upstream.read()
        node.destroy_node()
    newest, taken = 0, 0
    for samples in seen:
        newest = samples.raw.stamps[-1] if samples.raw else newest
        if samples.filtered:
            assert samples.filtered.stamps[-1] <= newest
            taken += len(samples.filtered.stamps)
    assert taken == 2


def test_three_processes_give_the_estimate_of_one(forms: Forms) -> None:
    both = forms.one, forms.three
    for _ in range(PLAYS):
        before = [pipeline.used for pipeline in both]
        base = forms.group.next_base()
        forms.play(feed(recording(), base), base)
        # The last sample may be on its way through three processes, or not counted yet.
        for pipeline in both:
            pipeline.settle()
        used = [p.used - b for p, b in zip(both, before, strict=True)]
        if used[0] == used[1]:
            break
    assert used[0] == used[1]
    assert_holds(forms.one)
    assert_same(forms.one, forms.three)


def test_a_recording_again_without_a_pause_starts_afresh_in_three_processes(forms: Forms) -> None:
    half = replace(recording(), wrench=recording().wrench - 0.5 * recording().exact_wrench)
    later, earlier = forms.group.next_base(), forms.group.next_base()
    # So fast that the jump comes in the middle of a batch.
    forms.group.play(feed(half, later) + feed(recording(), earlier), speed=1e6)
    forms.group.play(feed(recording(), base := forms.group.next_base()))
    forms.three.wait_for_inertia(recording(), base)
    assert_holds(forms.three)


def test_counts_of_all_nodes_come_together_in_the_status(forms: Forms) -> None:
    def change(messages: list[Message]) -> list[Message]:
        for message in messages[500:520]:
            if isinstance(message.content, WrenchStamped):
                message.content.wrench.force.y = np.nan
        return messages

    base, before = forms.group.next_base(), forms.three.dropped('wrench_not_finite')
    # Other nodes on the robot have more to say, and nothing of theirs is to be counted.
    forms.group.publisher(DiagnosticArray, '/diagnostics')
    foreign = DiagnosticStatus(name='load_identification/fusion_node', hardware_id='base')
    chatter = [
        Message(base + k * 1_000_000, '/diagnostics', DiagnosticArray(status=[foreign]))
        for k in range(8000)
    ]
    messages = change(feed(recording(), base)) + chatter
    forms.play(sorted(messages, key=lambda message: message.due), base)
    forms.group.wait_for(
        lambda: forms.three.dropped('wrench_not_finite') == before + 10, 'ten wrenches counted'
    )
    assert forms.one.dropped('wrench_not_finite') == before + 10
    assert_holds(forms.three)


@pytest.mark.parametrize('node', ['filter', 'estimator'])
def test_a_node_may_be_restarted(forms: Forms, node: str) -> None:
    forms.processes[node].close()
    forms.restart(node)
    forms.three.statuses.clear()
    forms.connect()
    base = forms.group.next_base()
    forms.play(feed(recording(), base), base)
    assert_holds(forms.three)


def test_two_arms_side_by_side_do_not_mix() -> None:
    half = replace(recording(), wrench=recording().wrench - 0.5 * recording().exact_wrench)
    with Group() as group:
        group.describe()
        arms = []
        for arm in ('/left', '/right'):
            group.publisher(JointState, f'{arm}/joint_states')
            group.publisher(WrenchStamped, f'{arm}/wrench')
            group.start(
                remaps={
                    '__ns': f'{arm}{NAMESPACE}',
                    '/joint_states': f'{arm}/joint_states',
                    '/wrench': f'{arm}/wrench',
                }
            )
            arms.append(Pipeline(group, f'{arm}{NAMESPACE}'))
        left, right = arms
        left.connect('/left/joint_states', '/left/wrench')
        right.connect('/right/joint_states', '/right/wrench')
        base = group.next_base()
        messages = [
            message._replace(topic=f'{arm}{message.topic}')
            for arm, of_arm in (('/left', recording()), ('/right', half))
            for message in feed(of_arm, base)
        ]
        group.play(sorted(messages, key=lambda message: message.due))
        left.wait_for_inertia(recording(), base)
        right.wait_for_inertia(half, base)
        assert_holds(left)
        assert right.number('mass') == pytest.approx(0.5 * PAYLOAD.mass, abs=0.005)
        answer = group.call(f'/left{NAMESPACE}/reset')
        assert answer.success
        group.wait_for(lambda: 'reset' in left.status['event'], 'the reset of the left arm')
        right.settle()
        assert right.status['event'] == 'none'
        assert right.status['mass.identified'] == 'true'
