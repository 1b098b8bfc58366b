"""The contract elsewhere: another namespace, sign, gravity, and filtered topics from anybody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from geometry_msgs.msg import WrenchStamped
from ros_group import BEST_EFFORT, Group
from ros_messages import (
    FRAME,
    KINDS,
    NAMESPACE,
    NS,
    OFFSET,
    PARAMETER_KEYS,
    PUMA,
    TRUTH,
    Message,
    filtered_sample,
    inertia_of,
    recording,
    samples_of,
    stamp_of,
    wrench_of,
)
from ros_pipeline import Pipeline, assert_holds, connected
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState


def test_left_arm_in_its_own_namespace_with_other_topics_and_convention() -> None:
    negated = replace(recording(), wrench=-recording().wrench)
    with Group() as group:
        group.publisher(JointState, '/left/joint_states', BEST_EFFORT)
        group.publisher(WrenchStamped, '/left/ft/raw', BEST_EFFORT)
        group.publisher(Clock, '/clock')
        group.start(
            parameters={
                'wrench_convention': 'on_load',
                'robot_description': PUMA,
                'sensor_frame': FRAME,
                'use_sim_time': True,
                # An integer where a number is meant.
                'publish_rate': 5,
            },
            remaps={
                '__ns': '/left/load_identification',
                '/joint_states': '/left/joint_states',
                '/wrench': '/left/ft/raw',
            },
        )
        left = Pipeline(group, '/left/load_identification')
        left.connect('/left/joint_states', '/left/ft/raw')

        def change(messages: list[Message]) -> list[Message]:
            remapped = []
            for message in messages:
                content = message.content
                # A driver that names a frame of its own, or none; the parameter overrides it.
                if isinstance(content, WrenchStamped):
                    content.header.frame_id = 'netft_0'
                topic = '/left/ft/raw' if message.topic == '/wrench' else '/left/joint_states'
                remapped.append(Message(message.due, topic, content))
                clock = Clock()
                clock.clock.sec, clock.clock.nanosec = divmod(message.due, NS)
                remapped.append(Message(message.due, '/clock', clock))
            return remapped

        with group.recorded((WrenchStamped, f'{left.namespace}/filtered/wrench')) as (filtered,):
            base = left.play(negated, change, speed=4.0)
        # The same payload; the offset is that of the wrench as it comes.
        status = left.numbers(PARAMETER_KEYS)
        assert left.state == 'identified'
        assert np.abs(left.errors(-OFFSET)).max() < 5.0, status
        # Between the nodes the sign is always that of on_sensor.
        expected = recording().exact_wrench[samples_of(filtered, base)] + OFFSET
        np.testing.assert_allclose([wrench_of(m) for m in filtered], expected, atol=0.5)
        # Two seconds of playing at 5 Hz, and the machine may be slow.
        stamps = [stamp_of(m) for m in left.inertias if stamp_of(m) >= base]
        steps = np.diff(stamps) * 1e-9
        assert 0.6 < np.median(steps) < 1.6
        services = dict(group.node.get_service_names_and_types())
        assert '/left/load_identification/reset' in services


def test_gravity_of_an_inverted_arm_is_a_parameter() -> None:
    up = (0.0, 0.0, 9.80665)
    with Group() as group:
        group.publish_inputs()
        pipeline = connected(group, {'gravity': up})
        pipeline.play(recording(gravity=up))
        assert_holds(pipeline)


def test_the_estimator_takes_filtered_topics_from_anybody() -> None:
    exact = recording(noise=0.0)
    with Group() as group:
        group.start('estimator')
        pipeline = Pipeline(group)
        for name, kind in KINDS.items():
            publisher = group.publisher(kind, f'{NAMESPACE}/filtered/{name}', BEST_EFFORT)
            group.wait_for(publisher.get_subscription_count, f'subscription of {name}')
        base = group.next_base()
        last = len(exact.stamps) - 1
        for k in range(last):
            group.play(filtered_sample(exact, k, base, 'hexapod_platform'))
        # Any may be lost on the way: the last one is sent until there is an answer.
        group.wait_for(
            lambda: pipeline.newest == base + int(exact.stamps[-1]),
            'the inertia of the last sample',
            meanwhile=lambda: group.play(filtered_sample(exact, last, base, 'hexapod_platform')),
        )
        assert pipeline.inertias[-1].header.frame_id == 'hexapod_platform'
        # Exact data: what remains is the random walk that the offset might have taken.
        found = inertia_of(pipeline.inertias[-1])
        np.testing.assert_allclose(found, TRUTH, rtol=1e-5, atol=1e-8)
