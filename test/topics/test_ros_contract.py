"""What the interface promises the outside world, asked of running nodes over real DDS.

What is expected comes from the simulation, whose wrench is Pinocchio's and whose motion is
exact; nothing of the nodes is imported.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rcl_interfaces.srv import DescribeParameters, ListParameters
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from ros_group import BEST_EFFORT, LATCHED, Group
from ros_messages import (
    FRAME,
    KINDS,
    NAMESPACE,
    NS,
    OFFSET,
    OFFSET_KEYS,
    PARAMETER_KEYS,
    Message,
    feed,
    inertia_of,
    joint_message,
    recording,
    samples_of,
    stamp_of,
    trajectory,
    vector,
    wrench_of,
)
from ros_pipeline import PLAYS, Pipeline, assert_holds, connected
from sensor_msgs.msg import JointState

HALF_WINDOW = 0.05810
"""Delay of the filter: half of the window that belongs to a cutoff of 20 Hz [s]."""

LATCHED_TOPICS = (
    *('inertia', 'inertia_std', 'inertia_total', 'inertia_by_driver'),
    *('offset', 'status', 'covariance'),
)


@pytest.fixture(scope='module')
def fed() -> Iterator[Group]:
    """Yield a graph in which the inputs are published, one reliably, one not."""
    with Group() as group:
        group.publish_inputs(BEST_EFFORT)
        yield group


# What comes out


def test_payload_and_offset_are_found_with_the_uncertainty_they_have(live: Pipeline) -> None:
    base = live.play(recording())
    assert_holds(live)
    last = live.inertias[-1]
    assert last.header.frame_id == FRAME
    newest_sample = base + int(recording().stamps[-1])
    assert base < stamp_of(last) <= newest_sample - HALF_WINDOW * NS
    # About the centre of mass: about the origin Ixx would be 170 % larger.
    np.testing.assert_allclose(inertia_of(last), live.numbers(PARAMETER_KEYS), rtol=1e-8)


def test_status_has_every_key_as_the_interface_writes_it(live: Pipeline) -> None:
    live.play(recording())
    status = live.status
    dropped = {key for key in status if key.startswith('samples.dropped.')}
    parameters = {f'{key}{end}' for key in PARAMETER_KEYS for end in ('', '.std', '.identified')}
    offsets = {f'{key}{end}' for key in OFFSET_KEYS for end in ('', '.std')}
    health = {f'health.{key.removeprefix("offset.")}' for key in OFFSET_KEYS}
    sources = {f'mass.std.{source}' for source in ('noise', 'drift', 'calibration', 'tool')}
    total = sum(float(status[key]) ** 2 for key in sources)
    assert total == pytest.approx(float(status['mass.std']) ** 2, rel=1e-6)
    shown = {key for key in status if key.startswith('calibration.')}
    assert {
        key for key in shown if f'{key}.std' not in shown and not key.endswith('.std')
    } == set()
    assert set(status) - dropped - health - shown == {
        *('state', 'compensation', 'event', 'samples.used'),
        *sources,
        *parameters,
        *offsets,
    }
    assert {status[key] for key in health} == {'alive'}
    for key in (key for key in parameters | offsets if not key.endswith('.identified')):
        assert re.fullmatch(r'-?\d+(\.\d+)?(e-?\d+)?', status[key]), (key, status[key])
    for key in {'samples.used', *dropped}:
        assert status[key].isdecimal(), (key, status[key])
    # One output every 20 ms, less a window at the ends.
    assert live.flowing.level == DiagnosticStatus.OK
    assert live.flowing.name == f'{NAMESPACE[1:]}/estimator_node'


def test_the_sources_add_up_where_the_cell_may_have_errors_and_words_name_them() -> None:
    with Group() as group:
        group.publish_inputs()
        live = connected(group, {'systematic_errors': 'ordinary'})
        live.play(recording())
        parts = live.numbers(f'mass.std.{s}' for s in ('noise', 'drift', 'calibration', 'tool'))
        assert np.hypot.reduce(parts) == pytest.approx(live.number('mass.std'), rel=1e-6)
        # The common gain alone, half a per cent, of which no motion shows anything.
        assert parts[2] > 0.004 * live.number('mass')
        named = re.search(r'mass \S+ ± \S+ kg \((.*?)\)', live.flowing.message)
        assert named is not None, live.flowing.message
        assert named[1].startswith('sensor gain 0.0')
        halves = [float(part.rpartition(' ')[2]) for part in named[1].split(', ')]
        assert np.hypot.reduce(halves) == pytest.approx(1.96 * live.number('mass.std'), rel=0.05)


def test_covariance_is_that_of_sixteen_labelled_numbers(live: Pipeline) -> None:
    live.play(recording())
    message = live.covariances[-1]
    labels = ['m', 'm*cx', 'm*cy', 'm*cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', *OFFSET_KEYS]
    rows, columns = message.layout.dim
    assert [rows.size, rows.stride, columns.size, columns.stride] == [16, 256, 16, 16]
    assert rows.label.split() == columns.label.split() == labels
    covariance = np.reshape(message.data, (16, 16))
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-9)
    scale = np.sqrt(np.diag(covariance))
    assert np.linalg.eigvalsh(covariance / np.outer(scale, scale)).min() > 0.0
    np.testing.assert_allclose(scale[0], live.number('mass.std'), rtol=1e-6)
    offset_std = live.numbers(f'{key}.std' for key in OFFSET_KEYS)
    np.testing.assert_allclose(scale[10:], offset_std, rtol=1e-6)


def test_predicted_offset_and_external_add_up_to_what_is_measured(live: Pipeline) -> None:
    live.play(recording())
    names = ('wrench_predicted', 'wrench_external', 'filtered/wrench')
    topics = [(WrenchStamped, f'{NAMESPACE}/{name}') for name in names]
    with live.group.recorded(*topics) as (predicted, external, measured):
        base = live.play(recording())
        live.group.wait_for_all(predicted, external, measured, until=live.newest)
    assert {m.header.frame_id for m in predicted + external} == {FRAME}
    by_stamp = {stamp_of(m): np.array(wrench_of(m)) for m in measured}
    late = [k for k, m in enumerate(external) if stamp_of(m) - base > 6 * NS]
    assert len(late) > 50
    for k in late:
        assert stamp_of(predicted[k]) == stamp_of(external[k])
        explained = np.array(wrench_of(predicted[k]))
        contact = np.array(wrench_of(external[k]))
        offset = by_stamp[stamp_of(external[k])] - explained - contact
        # The offset believed at that time; its random walk is 1 mN in the rest of the recording.
        assert np.abs(offset - live.numbers(OFFSET_KEYS)).max() < 0.01
        truth = recording().exact_wrench[samples_of([external[k]], base)[0]]
        # Mass and centre of mass are known to 0.1 % and 0.1 mm, the wrench is 15 N and 1 N m;
        # where the motion begins to fade, at 7 s, the acceleration has a kink.
        np.testing.assert_allclose(explained, truth, atol=0.15)
        # Noise of 0.1 N through the filter is 0.06 N.
        assert np.abs(contact).max() < 0.4


def test_what_is_not_identified_is_nan_never_a_guess(live: Pipeline) -> None:
    live.play(recording(slow=True), speed=40.0)
    message, status = inertia_of(live.inertias[-1]), live.status
    assert live.state == 'identified'
    np.testing.assert_array_equal(np.isnan(message), [False] * 4 + [True] * 6)
    assert [status[f'{key}.identified'] for key in PARAMETER_KEYS] == ['true'] * 4 + ['false'] * 6
    # What runs stands in the status with its std; it is `identified` that it is not.
    assert np.isfinite(live.numbers(PARAMETER_KEYS[4:])).all()
    assert np.isfinite(live.numbers(f'{key}.std' for key in PARAMETER_KEYS[4:])).all()
    assert np.abs(live.errors()[:4]).max() < 5.0
    assert 'rotate faster' in live.words


def test_inertia_comes_only_once_the_mass_is_identified(live: Pipeline) -> None:
    count = len(live.inertias)
    base = live.group.next_base()
    live.group.play(feed(recording(), base, last=60))
    live.group.wait_for(lambda: live.state == 'estimating', 'state estimating')
    live.settle()
    # Half a second, nearly at rest: weight and offset cannot be told apart.
    assert live.status['mass.identified'] == 'false'
    assert [stamp_of(m) for m in live.inertias[count:] if stamp_of(m) >= base] == []
    assert 'turn the sensor' in live.words


def test_reset_forgets_the_payload_and_keeps_the_offset(live: Pipeline) -> None:
    base = live.play(recording())
    offset = live.numbers(OFFSET_KEYS)
    answer = live.group.call(f'{NAMESPACE}/reset')
    assert answer.success
    assert isinstance(json.loads(answer.message), dict)
    assert '\n' not in answer.message
    live.group.wait_for(lambda: live.status['event'].startswith('reset'), 'the event')
    event = re.fullmatch(r'(\w+) (\d+\.\d+)', live.status['event'])
    assert event[1] == 'reset'
    assert base * 1e-9 < float(event[2]) < base * 1e-9 + 8.0
    assert live.status['mass.identified'] == 'false'
    # What was known of the offset is all that is known of it.
    np.testing.assert_allclose(live.numbers(OFFSET_KEYS), offset, atol=0.02)
    later = replace(recording(), stamps=recording().stamps + 8 * NS)
    live.group.play(feed(later, base))
    live.wait_for_inertia(later, base)
    assert_holds(live)


def test_late_joiner_sees_the_last_of_each_latched_topic(live: Pipeline) -> None:
    live.play(recording())
    kinds = {
        'inertia_std': InertiaStamped,
        'inertia_total': InertiaStamped,
        'inertia_by_driver': InertiaStamped,
        'offset': WrenchStamped,
    }
    with Group(joined=live.group) as late:
        heard = {
            name: late.record(kind, f'{NAMESPACE}/{name}', LATCHED) for name, kind in kinds.items()
        }
        pipeline = Pipeline(late)
        late.wait_for(
            lambda: (
                all(heard.values())
                and pipeline.statuses
                and pipeline.inertias
                and pipeline.covariances
            ),
            'the seven topics of the past',
        )
    assert pipeline.inertias[0] == live.inertias[-1]
    assert pipeline.covariances[0] == live.covariances[-1]
    std, total, driver, offset = (heard[name][-1] for name in kinds)
    assert {stamp_of(m) for m in (std, total, driver, offset)} == {stamp_of(live.inertias[-1])}
    assert {m.header.frame_id for m in (std, total, offset)} == {recording().frame}
    expected = live.numbers(f'{key}.std' for key in PARAMETER_KEYS)
    np.testing.assert_allclose(inertia_of(std), expected, rtol=1e-8)
    # There is no tool, and no driver takes anything off.
    np.testing.assert_array_equal(inertia_of(driver), np.zeros(10))
    np.testing.assert_allclose(inertia_of(total), inertia_of(live.inertias[-1]), rtol=1e-3)
    np.testing.assert_allclose(wrench_of(offset), live.numbers(OFFSET_KEYS), rtol=1e-8)


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


# What goes in


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


def test_reversed_sign_is_a_fault_and_never_an_inertia(live: Pipeline) -> None:
    live.play(recording())
    count = len(live.inertias)
    negated = replace(recording(), wrench=-recording().wrench)
    base = live.group.next_base()
    live.group.play(feed(negated, base))
    live.group.wait_for(lambda: live.state == 'fault', 'state fault')
    assert 'wrench sign reversed?' in live.words
    assert live.flowing.level == DiagnosticStatus.ERROR
    assert live.status['mass.identified'] == 'false'
    assert [m for m in live.inertias[count:] if stamp_of(m) >= base] == []
    live.play(recording())
    assert_holds(live)
