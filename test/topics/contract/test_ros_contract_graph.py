"""The graph: diagnostics, topics, parameters, and what the nodes tell each other."""

from __future__ import annotations

import time

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.srv import DescribeParameters, ListParameters
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from ros_messages import (
    FRAME,
    KINDS,
    NAMESPACE,
    NS,
    OFFSET,
    Message,
    joint_message,
    recording,
    samples_of,
    stamp_of,
    trajectory,
    vector,
    wrench_of,
)
from ros_pipeline import PLAYS, Pipeline
from sensor_msgs.msg import JointState

LATCHED_TOPICS = (
    *('inertia', 'inertia_std', 'inertia_total', 'inertia_by_driver'),
    *('offset', 'status', 'covariance'),
)


def test_diagnostics_has_one_status_per_node_once_a_second(live: Pipeline) -> None:
    seen: list[DiagnosticArray] = live.group.record(DiagnosticArray, '/diagnostics')
    begin = time.monotonic()
    live.play(recording(), speed=4.0)
    seconds = time.monotonic() - begin
    by_node: dict[str, list[DiagnosticStatus]] = {}
    for message in seen:
        for status in message.status:
            by_node.setdefault(status.name, []).append(status)
    expected = {
        f'{NAMESPACE[1:]}/{node}_node'
        for node in ('fusion', 'filter', 'estimator', 'compensation')
    }
    assert set(by_node) == expected
    for statuses in by_node.values():
        assert 1 <= len(statuses) <= seconds + 2
        assert DiagnosticStatus.OK in {status.level for status in statuses}, statuses[-1]
    live.group.wait_for(
        lambda: {s.name for m in seen[-3:] for s in m.status if s.level == DiagnosticStatus.WARN},
        'a warning that nothing comes any more',
    )


def test_topics_and_service_are_those_of_the_interface(live: Pipeline) -> None:
    node, namespace = live.group.node, NAMESPACE
    outputs = {
        'inertia': 'geometry_msgs/msg/InertiaStamped',
        'inertia_std': 'geometry_msgs/msg/InertiaStamped',
        'inertia_total': 'geometry_msgs/msg/InertiaStamped',
        'inertia_by_driver': 'geometry_msgs/msg/InertiaStamped',
        'offset': 'geometry_msgs/msg/WrenchStamped',
        'status': 'diagnostic_msgs/msg/DiagnosticStatus',
        'covariance': 'std_msgs/msg/Float64MultiArray',
        'wrench_predicted': 'geometry_msgs/msg/WrenchStamped',
        'wrench_external': 'geometry_msgs/msg/WrenchStamped',
        'wrench_compensated': 'geometry_msgs/msg/WrenchStamped',
        'synchronized/joint_states': 'sensor_msgs/msg/JointState',
        'synchronized/wrench': 'geometry_msgs/msg/WrenchStamped',
        'filtered/wrench': 'geometry_msgs/msg/WrenchStamped',
        'filtered/twist': 'geometry_msgs/msg/TwistStamped',
        'filtered/accel': 'geometry_msgs/msg/AccelStamped',
    }
    for name, kind in outputs.items():
        (info,) = node.get_publishers_info_by_topic(f'{namespace}/{name}')
        assert info.topic_type == kind, name
        latched = info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        assert latched == (name in LATCHED_TOPICS), name
        assert info.qos_profile.reliability == ReliabilityPolicy.RELIABLE, name
    for name in ('/joint_states', '/wrench'):
        (info,) = node.get_subscriptions_info_by_topic(name)
        assert info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT, name
    (info,) = node.get_subscriptions_info_by_topic('/robot_description')
    assert info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
    services = dict(node.get_service_names_and_types())
    assert services[f'{namespace}/reset'] == ['std_srvs/srv/Trigger']


def test_every_parameter_is_declared_with_description_and_range(live: Pipeline) -> None:
    names: dict[str, set[str]] = {}
    for node in ('fusion_node', 'filter_node', 'estimator_node', 'compensation_node'):
        prefix = f'{NAMESPACE}/{node}'
        listed = live.group.call(f'{prefix}/list_parameters', ListParameters)
        names[node] = set(listed.result.names) - {'use_sim_time', 'start_type_description_service'}
        described = live.group.call(
            f'{prefix}/describe_parameters', DescribeParameters, names=sorted(names[node])
        )
        for descriptor in described.descriptors:
            assert descriptor.description, descriptor.name
            assert descriptor.additional_constraints, descriptor.name
            # A single number also carries its range for the tools that draw sliders.
            if descriptor.additional_constraints.startswith('a number'):
                assert descriptor.floating_point_range, descriptor.name
    assert {'sensor_frame', 'wrench_delay', 'max_gap', 'poll_rate'} <= names['fusion_node']
    assert {'gravity', 'wrench_convention', 'robot_description'} <= names['filter_node']
    assert {'publish_rate', 'wrench_convention', 'poll_rate'} <= names['estimator_node']


def slower_joint_states(base: int, rate: float) -> list[Message]:
    """Return joint states on stamps of their own."""
    times = np.arange(0.0013, 8.0, 1.0 / rate)
    q, qd, _ = trajectory().sample(times)
    stamps = base + np.round(times * NS).astype(np.int64)
    names = recording().names
    return [
        Message(int(stamp), '/joint_states', joint_message(int(stamp), names, p, v))
        for stamp, p, v in zip(stamps, q, qd, strict=True)
    ]


def test_synchronized_topics_carry_the_joint_state_at_the_raw_wrench(live: Pipeline) -> None:
    def change(messages: list[Message]) -> list[Message]:
        wrenches = [message for message in messages if message.topic == '/wrench']
        joints = slower_joint_states(messages[0].due, 80.0)
        return sorted(wrenches + joints, key=lambda message: message.due)

    topics = [(JointState, f'{NAMESPACE}/synchronized/joint_states')]
    topics += [(WrenchStamped, f'{NAMESPACE}/synchronized/wrench')]
    with live.group.recorded(*topics) as (states, wrenches):
        base = live.play(recording(), change, speed=8.0)
        live.group.wait_for_all(states, wrenches, until=live.newest)
    # What was played last, where a busy machine has lost the end of what was played before.
    states, wrenches = ([m for m in heard if stamp_of(m) >= base] for heard in (states, wrenches))
    assert len(states) > 0.95 * len(recording().stamps)
    assert [stamp_of(m) for m in states] == [stamp_of(m) for m in wrenches]
    assert {m.header.frame_id for m in wrenches} == {FRAME}
    assert {tuple(m.name) for m in states} == {recording().names}
    rows = samples_of(wrenches, base)
    np.testing.assert_array_equal([wrench_of(m) for m in wrenches], recording().wrench[rows])
    q, qd, _ = recording().exact
    # A cubic over 12.5 ms misses a sine of 1 Hz and 1 rad by h⁴/384 (2 pi)⁴ = 1e-7.
    np.testing.assert_allclose([m.position for m in states], q[rows], atol=1e-6)
    # A line in velocity by h²/8 (2 pi)³ = 5e-3.
    np.testing.assert_allclose([m.velocity for m in states], qd[rows], atol=1e-2)


def test_filtered_topics_carry_motion_and_wrench_of_the_sensor_frame(live: Pipeline) -> None:
    exact = recording(noise=0.0)
    topics = [(kind, f'{NAMESPACE}/filtered/{name}') for name, kind in KINDS.items()]
    fewest = 0.95 * len(exact.stamps) * 50 / 125
    for _ in range(PLAYS):
        with live.group.recorded(*topics) as (wrenches, twists, accels):
            base = live.play(exact)
            live.group.wait_for_all(wrenches, twists, accels, until=live.newest)
        if len(wrenches) > fewest:
            break
    assert len(wrenches) > fewest
    assert [stamp_of(m) for m in wrenches] == [stamp_of(m) for m in twists]
    assert [stamp_of(m) for m in wrenches] == [stamp_of(m) for m in accels]
    assert {m.header.frame_id for m in wrenches + twists + accels} == {FRAME}
    rows = samples_of(wrenches, base)
    motion = exact.motion
    # The polynomial of degree 6 over 0.116 s is exact to 1e-4 of motion below 2 Hz; where that
    # has faded in, and begins to fade out, the acceleration has a kink.
    for got, expected in (
        ([wrench_of(m) for m in wrenches], exact.exact_wrench[rows] + OFFSET),
        ([vector(m.twist.linear) for m in twists], motion.linear_velocity[rows]),
        ([vector(m.twist.angular) for m in twists], motion.angular_velocity[rows]),
        ([vector(m.accel.linear) for m in accels], motion.linear_acceleration[rows]),
        ([vector(m.accel.angular) for m in accels], motion.angular_acceleration[rows]),
    ):
        error = np.abs(np.array(got) - expected).max(axis=1) / np.abs(expected).max()
        assert np.quantile(error, 0.9) < 1e-4
        assert error.max() < 2e-2
