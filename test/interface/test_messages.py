"""Between messages and arrays: nothing lost, nothing made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pinocchio
import pytest
from geometry_msgs.msg import Inertia, Quaternion, WrenchStamped
from numbered_messages import BAD_JOINT_STATES, START, joints, triple, wrench
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from load_identification.interface.batches import JointBatch, SynchronizedBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.messages import (
    NS,
    read_filtered,
    read_inertia,
    read_joint_states,
    read_wrenches,
    set_inertia,
    set_rotation,
    set_stamp,
    stamp_of,
)
from load_identification.nodes.transport.readers import StampMatcher, synchronized
from load_identification.nodes.transport.subscriptions import decoder

# One message


@pytest.mark.parametrize('stamp', [0, 1, NS - 1, NS, START, (2**31 - 1) * NS + NS - 1])
def test_a_stamp_survives_to_the_nanosecond(stamp: int) -> None:
    message = WrenchStamped()
    set_stamp(message.header, stamp)
    assert stamp_of(message) == stamp


def test_an_inertia_survives_in_the_order_of_its_fields() -> None:
    values = np.arange(1.0, 11.0)
    message = Inertia()
    set_inertia(message, values)
    np.testing.assert_array_equal(read_inertia(message), values)
    assert (message.m, message.com.x, message.com.z) == (1.0, 2.0, 4.0)
    named = [getattr(message, name) for name in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')]
    assert named == [5.0, 6.0, 7.0, 8.0, 9.0, 10.0]


def test_what_is_not_known_of_an_inertia_stays_nan() -> None:
    message = Inertia()
    set_inertia(message, np.array([1.0, *[np.nan] * 9]))
    np.testing.assert_array_equal(np.isnan(read_inertia(message)), [False] + [True] * 9)


def test_a_rotation_is_written_as_the_quaternion_that_turns_alike() -> None:
    rotation = pinocchio.rpy.rpyToMatrix(0.3, -1.2, 2.5)
    message = Quaternion()
    set_rotation(message, rotation)
    turned = pinocchio.Quaternion(message.w, message.x, message.y, message.z)
    np.testing.assert_allclose(turned.toRotationMatrix(), rotation, atol=1e-15)


# Batches of messages


def test_wrenches_become_batches_of_one_frame_each() -> None:
    messages = [wrench(0, '/ft'), wrench(1, 'ft'), wrench(2, 'other'), wrench(3, 'ft')]
    batches = list(read_wrenches(messages, ''))
    assert [batch.frame for batch in batches] == ['ft', 'other', 'ft']
    assert [batch.stamps.tolist() for batch in batches] == [
        [START, START + 1],
        [START + 2],
        [START + 3],
    ]
    np.testing.assert_array_equal(batches[0].wrench, [np.arange(6.0), 10.0 + np.arange(6.0)])
    (overridden,) = read_wrenches(messages, 'named')
    assert overridden.frame == 'named'
    assert len(overridden.stamps) == 4
    assert list(read_wrenches([], 'named')) == []


def test_joint_states_become_batches_of_one_layout_each() -> None:
    dropped: Counter[str] = Counter()
    messages = [
        joints(0),
        joints(1, carries_velocity=False),
        joints(2, ('b', 'a')),
        joints(3, ('c',)),
    ]
    batches = list(read_joint_states(messages, dropped, JointBatch))
    assert [batch.names for batch in batches] == [('a', 'b'), ('b', 'a'), ('c',)]
    np.testing.assert_array_equal(batches[0].position, [[0.0, 1.0], [10.0, 11.0]])
    np.testing.assert_array_equal(batches[0].velocity, [[0.5, 1.5], [np.nan, np.nan]])
    assert batches[0].stamps.tolist() == [START, START + 1]
    assert not dropped


@pytest.mark.parametrize(('bad', 'reason'), BAD_JOINT_STATES)
@pytest.mark.parametrize('place', [0, 1, 2])
def test_a_joint_state_that_contradicts_itself_is_dropped_and_counted(
    bad: JointState, reason: str, place: int
) -> None:
    dropped: Counter[str] = Counter()
    messages = [joints(0), joints(2)]
    messages.insert(place, bad)
    (batch,) = read_joint_states(messages, dropped, JointBatch)
    assert batch.stamps.tolist() == [START, START + 2]
    assert dropped == {reason: 1}


@pytest.mark.parametrize('equal_length', [False, True])
def test_joint_states_of_alternating_layouts_are_paired_in_their_order(equal_length: bool) -> None:
    """A stamp that falls within a drain would be a stream that starts afresh."""
    states = [joints(k, carries_velocity=k % 3 > 0) for k in range(30)]
    if equal_length:
        for k in range(0, 30, 3):
            states[k].effort = [0.0, 0.0]
    raws = [serialize_message(state) for state in states]
    assert len(set(map(len, raws))) == 2 - equal_length
    wrenches = [serialize_message(wrench(k)) for k in range(30)]
    reader = JointStateReader(Counter(), decoder(JointState), JointBatch)
    wrench_reader = WrenchReader('', Counter(), decoder(WrenchStamped))
    for _ in range(2):  # The layouts are not known at first.
        batches = list(
            synchronized(StampMatcher(2), wrench_reader.read(wrenches), reader.read(raws))
        )
        stamps = np.concatenate([batch.stamps for batch in batches])
        np.testing.assert_array_equal(stamps, START + np.arange(30))


def joined_pairs(pairs: Sequence[tuple[JointState, WrenchStamped]]) -> list[SynchronizedBatch]:
    """Return what becomes of pairs, each of which has come in a batch of its own."""
    states = (next(read_joint_states([state], Counter(), JointBatch)) for state, _ in pairs)
    wrenches = (next(read_wrenches([one], '')) for _, one in pairs)
    return list(synchronized(StampMatcher(2), wrenches, states))


def test_pairs_become_batches_of_one_layout_with_increasing_stamps() -> None:
    pairs = [(joints(k), wrench(k)) for k in (5, 6, 7)]
    pairs += [(joints(k, ('b', 'a')), wrench(k)) for k in (8, 9)]
    pairs += [(joints(k, ('b', 'a')), wrench(k, 'other')) for k in (10,)]
    # The stream starts afresh.
    pairs += [(joints(k, ('b', 'a')), wrench(k, 'other')) for k in (1, 2, 3)]
    batches = joined_pairs(pairs)
    assert [(b.names, b.frame, (b.stamps - START).tolist()) for b in batches] == [
        (('a', 'b'), 'ft', [5, 6, 7]),
        (('b', 'a'), 'ft', [8, 9]),
        (('b', 'a'), 'other', [10]),
        (('b', 'a'), 'other', [1, 2, 3]),
    ]
    np.testing.assert_array_equal(batches[0].position[::2], [[50.0, 51.0], [70.0, 71.0]])
    np.testing.assert_array_equal(batches[0].wrench[::2, 0], [50.0, 70.0])


def test_a_velocity_that_is_not_finite_is_one_that_is_not_known() -> None:
    state = joints(0, velocity=[np.inf, 1.0])
    (batch,) = joined_pairs([(state, wrench(0))])
    np.testing.assert_array_equal(batch.velocity, [[np.nan, 1.0]])


def test_filtered_samples_become_batches_of_one_frame_with_increasing_stamps() -> None:
    triples = [triple(5), triple(6), triple(7, '/ft'), triple(8, 'other'), triple(3, 'other')]
    batches = list(read_filtered((*each, None) for each in triples))
    assert [(b.frame, (b.stamps - START).tolist()) for b in batches] == [
        ('ft', [5, 6, 7]),
        ('other', [8]),
        ('other', [3]),
    ]
    last = batches[-1]
    np.testing.assert_array_equal(last.wrench, [30.0 + np.arange(6.0)])
    np.testing.assert_array_equal(last.linear_velocity, [[130.0, 131.0, 132.0]])
    np.testing.assert_array_equal(last.angular_velocity, [[133.0, 134.0, 135.0]])
    np.testing.assert_array_equal(last.linear_acceleration, [[230.0, 231.0, 232.0]])
    np.testing.assert_array_equal(last.angular_acceleration, [[233.0, 234.0, 235.0]])
