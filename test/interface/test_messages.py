"""Between messages and arrays, and between bytes and arrays: nothing lost, nothing made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pinocchio
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import AccelStamped, Inertia, Quaternion, TwistStamped, WrenchStamped
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, MultiArrayDimension, MultiArrayLayout

from load_identification.interface.batches import (
    FilteredBatch,
    JointBatch,
    SynchronizedBatch,
    WrenchBatch,
)
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.messages import (
    NS,
    kinematics_rows,
    kinematics_shapes,
    kinematics_sizes,
    read_filtered,
    read_inertia,
    read_joint_states,
    read_kinematics,
    read_wrenches,
    set_inertia,
    set_rotation,
    set_stamp,
    set_wrench,
    stamp_of,
)
from load_identification.nodes.transport.readers import StampMatcher, synchronized
from load_identification.nodes.transport.subscriptions import decoder
from load_identification.typing_aliases import FloatArray

START = 1_700_000_000_123_456_789


def header(stamp: int, frame: str = '') -> Header:
    """Return a header."""
    seconds, nanoseconds = divmod(stamp, NS)
    return Header(stamp=Time(sec=seconds, nanosec=nanoseconds), frame_id=frame)


def wrench(k: int, frame: str = 'ft', stamp: int | None = None) -> WrenchStamped:
    """Return the k-th of some wrenches, all numbers of which differ."""
    message = WrenchStamped(header=header(START + k if stamp is None else stamp, frame))
    set_wrench(message.wrench, 10.0 * k + np.arange(6.0))
    return message


def joints(
    k: int, names: Sequence[str] = ('a', 'b'), carries_velocity: bool = True, **changes: Any
) -> JointState:
    """Return the k-th of some joint states, all numbers of which differ."""
    values = [10.0 * k + i for i in range(len(names))]
    fields: dict[str, Any] = {
        'header': header(START + k),
        'name': list(names),
        'position': values,
        'velocity': [0.5 + v for v in values] if carries_velocity else [],
    }
    return JointState(**fields | changes)


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


BAD_JOINT_STATES = [
    (joints(1, position=[1.0]), 'joint_state_length'),
    (joints(1, position=[]), 'joint_state_length'),
    (joints(1, position=[1.0, 2.0, 3.0]), 'joint_state_length'),
    (joints(1, velocity=[1.0]), 'joint_state_length'),
    (joints(1, ('a', 'a')), 'joint_state_names'),
    (joints(1, ()), 'joint_state_names'),
]


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
def test_joint_states_of_alternating_layouts_are_paired_in_their_order(
    equal_length: bool,
) -> None:
    """A stamp that falls within a drain would be a stream that starts afresh."""
    states = [joints(k, carries_velocity=k % 3 > 0) for k in range(30)]
    if equal_length:
        for k in range(0, 30, 3):
            states[k].effort = [0.0, 0.0]
    raws = [serialize_message(state) for state in states]
    assert len(set(map(len, raws))) == 2 - equal_length
    wrenches = [serialize_message(wrench(k)) for k in range(30)]
    reader = JointStateReader(Counter(), decoder(JointState))
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


def triple(k: int, frame: str = 'ft') -> tuple[WrenchStamped, TwistStamped, AccelStamped]:
    """Return the k-th of some filtered samples, all numbers of which differ."""
    twist = TwistStamped(header=header(START + k, frame))
    accel = AccelStamped(header=header(START + k, frame))
    for part, first in ((twist.twist, 100.0), (accel.accel, 200.0)):
        for vector, offset in ((part.linear, 0.0), (part.angular, 3.0)):
            vector.x, vector.y, vector.z = (first + offset + i + 10.0 * k for i in range(3))
    return wrench(k, frame), twist, accel


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


def test_messages_of_a_recording_are_read_like_those_of_rclpy() -> None:
    typesys = pytest.importorskip('rosbags.typesys')
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    for message, kind, read in (
        (wrench(4, '/ft'), 'geometry_msgs/msg/WrenchStamped', lambda m: read_wrenches([m], '')),
        (
            joints(4, effort=[1.0, 2.0]),
            'sensor_msgs/msg/JointState',
            lambda m: read_joint_states([m], Counter(), JointBatch),
        ),
    ):
        recorded = store.deserialize_cdr(serialize_message(message), kind)
        (ours,), (theirs,) = read(message), read(recorded)
        assert vars(ours).keys() == vars(theirs).keys()
        for field, value in vars(ours).items():
            np.testing.assert_array_equal(getattr(theirs, field), value)


# Bytes


def flat(batches: Iterable[JointBatch | WrenchBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield the samples of batches one by one, comparable."""
    for batch in batches:
        for k, stamp in enumerate(batch.stamps.tolist()):
            if isinstance(batch, WrenchBatch):
                yield stamp, batch.frame, str(batch.wrench[k].tolist())
            else:
                rows = batch.position[k].tolist(), batch.velocity[k].tolist()
                yield stamp, batch.names, str(rows)


def test_bytes_are_read_as_rclpy_reads_them_whatever_the_layout() -> None:
    rng = np.random.default_rng(2)
    messages = []
    for k in range(600):
        names = [f'joint_{"x" * int(n)}' for n in rng.permutation(12)[: rng.integers(1, 8)]]
        state = joints(k, names, carries_velocity=bool(rng.integers(2)))
        state.header.frame_id = 'f' * int(rng.integers(0, 9))
        state.effort = [1.0] * int(rng.integers(0, 4))
        messages.append(state)
    # Each layout again and again, as a publisher does.
    messages = [messages[k] for k in rng.integers(0, 40, 400)] + messages
    messages += [bad for bad, _ in BAD_JOINT_STATES]
    plain: Counter[str] = Counter()
    fast: Counter[str] = Counter()
    expected = sorted(flat(read_joint_states(messages, plain, JointBatch)))
    reader = JointStateReader(fast, decoder(JointState))
    raws = [serialize_message(message) for message in messages]
    got = [s for part in (raws[:7], raws[7:500], raws[500:]) for s in flat(reader.read(part))]
    assert sorted(got) == expected
    assert fast == plain


def test_a_layout_once_learned_is_read_from_bytes_alone() -> None:
    decoded: list[bytes] = []

    def decode(raw: bytes) -> Any:
        decoded.append(raw)
        return decoder(JointState)(raw)

    for state in (joints(0), joints(0, carries_velocity=False), joints(0, effort=[1.0, 2.0])):
        reader = JointStateReader(Counter(), decode)
        assert len(list(flat(reader.read([serialize_message(state)])))) == 1
        decoded.clear()
        state.header = header(START + 77)
        state.position = [3.0, 4.0]
        (sample,) = flat(reader.read([serialize_message(state)]))
        assert decoded == []
        assert sample[0] == START + 77
        assert '[3.0, 4.0]' in sample[2]


def test_wrenches_are_read_from_bytes_by_frame() -> None:
    frames = ['', 'f', '/ft', 'ft', 'a_much_longer_frame', 'über']
    messages = [wrench(k, frames[k % len(frames)]) for k in range(60)]
    raws = [serialize_message(message) for message in messages]
    for frame in ('', 'named'):
        reader = WrenchReader(frame, Counter(), decoder(WrenchStamped))
        assert sorted(flat(reader.read(raws))) == sorted(flat(read_wrenches(messages, frame)))


@pytest.mark.parametrize('seed', range(5))
def test_bytes_that_are_no_message_are_counted_and_harm_no_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    good = [serialize_message(joints(k)) for k in range(50)]
    raws = list(good)
    for size in (0, 1, 4, 7, 40, 300):
        raws.insert(int(rng.integers(len(raws))), rng.bytes(size))
    raws.insert(int(rng.integers(len(raws))), good[0][:-9])
    dropped: Counter[str] = Counter()
    samples = list(flat(JointStateReader(dropped, decoder(JointState)).read(raws)))
    assert [s[0] for s in samples] == [START + k for k in range(50)]
    assert dropped == {'joint_state_malformed': 7}
    wrenches: Counter[str] = Counter()
    junk = [rng.bytes(size) for size in (0, 1, 4, 7)]
    assert list(WrenchReader('', wrenches, decoder(WrenchStamped)).read(junk)) == []
    assert wrenches == {'wrench_malformed': 4}


# Topics that belong together


def stamped(messages: Sequence[Any]) -> list[tuple[int, Any]]:
    """Return messages with their stamps."""
    return [(stamp_of(message), message) for message in messages]


def test_messages_of_equal_stamps_are_joined_whichever_comes_first() -> None:
    matcher = StampMatcher(3)
    triples = [triple(k) for k in range(6)]
    first, second, third = (stamped([t[i] for t in triples]) for i in range(3))
    assert matcher.update([first[:4], second[:2], []]) == []
    assert matcher.update([[], second[2:5], third[:3]]) == triples[:3]
    assert matcher.update([first[4:], [], third[3:5]]) == triples[3:5]
    assert matcher.update([[], second[5:], third[5:]]) == triples[5:]


def test_messages_whose_partners_are_lost_are_not_kept_for_ever() -> None:
    matcher = StampMatcher(2)
    for first in range(0, 5000, 500):
        waiting = stamped([wrench(k) for k in range(first, first + 500)])
        assert matcher.update([waiting, []]) == []
    # The last 2000 still wait for theirs.
    assert matcher.update([[], stamped([wrench(k) for k in range(5000)])]) == [
        (wrench(k), wrench(k)) for k in range(3000, 5000)
    ]


def kinematics(batch: FilteredBatch) -> list[Float64MultiArray]:
    """Return messages of `filtered/kinematics` as a filter publishes them."""
    sizes = kinematics_sizes(batch.motion_by_joint.shape[2])

    def message(row: FloatArray) -> Float64MultiArray:
        dim = [MultiArrayDimension(label=n, size=s) for n, s in sizes.items()]
        return Float64MultiArray(layout=MultiArrayLayout(dim=dim), data=row.tolist())

    return [message(row) for row in kinematics_rows(batch)]


@pytest.mark.parametrize('joints', [0, 1, 7])
def test_what_a_filter_knows_of_the_robot_arrives_as_it_was(joints: int) -> None:
    rng = np.random.default_rng(joints)
    shapes = kinematics_shapes(joints)
    known = {name: rng.normal(size=(3, *shape)) for name, shape in shapes.items()}
    known['rest'] = np.array([True, False, True])
    stamps = START + np.array([5, 6, 7])
    sent = FilteredBatch(
        'ft', stamps, rng.normal(size=(3, 6)), *rng.normal(size=(4, 3, 3)), **known
    )
    dropped: Counter[str] = Counter()
    rows = dict(read_kinematics(kinematics(sent), dropped, 1e6))
    assert (list(rows), dropped) == (stamps.tolist(), Counter())
    samples = [(*triple(k), rows[START + k]) for k in (5, 6, 7)]
    (batch,) = read_filtered(samples)
    for name in shapes:
        np.testing.assert_array_equal(getattr(batch, name), getattr(sent, name))
    assert batch.rest.dtype == bool


def test_kinematics_that_cannot_be_used_are_dropped_and_counted() -> None:
    known = {name: np.ones((5, *shape)) for name, shape in kinematics_shapes(2).items()}
    vectors = np.ones((4, 5, 3))
    batch = FilteredBatch('ft', START + np.arange(5), np.ones((5, 6)), *vectors, **known)
    messages = kinematics(batch)
    messages[0].data = messages[0].data[:-1]
    messages[1].layout.dim[3].size = 4_000_000_000
    messages[2].data[7] = np.nan
    messages[3].data[0] = np.inf
    messages.append(Float64MultiArray())
    dropped: Counter[str] = Counter()
    assert [stamp for stamp, _ in read_kinematics(messages, dropped, 1e6)] == [START + 4]
    assert dropped == {'filtered_kinematics_layout': 3, 'filtered_kinematics_not_finite': 2}
