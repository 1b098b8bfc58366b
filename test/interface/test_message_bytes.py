"""Between bytes and arrays: as rclpy reads them, whatever the layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from numbered_messages import BAD_JOINT_STATES, START, header, joints, triple, wrench
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from load_identification.interface.batches import FilteredBatch, JointBatch, WrenchBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.messages import (
    kinematics_rows,
    kinematics_shapes,
    kinematics_sizes,
    read_filtered,
    read_joint_states,
    read_kinematics,
    read_wrenches,
    stamp_of,
)
from load_identification.nodes.transport.readers import StampMatcher
from load_identification.nodes.transport.subscriptions import decoder
from load_identification.typing_aliases import FloatArray


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
    reader = JointStateReader(fast, decoder(JointState), JointBatch)
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
        reader = JointStateReader(Counter(), decode, JointBatch)
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
    reader = JointStateReader(dropped, decoder(JointState), JointBatch)
    samples = list(flat(reader.read(raws)))
    assert [s[0] for s in samples] == [START + k for k in range(50)]
    assert dropped == {'joint_state_malformed': 7}
    wrenches: Counter[str] = Counter()
    junk = [rng.bytes(size) for size in (0, 1, 4, 7)]
    assert list(WrenchReader('', wrenches, decoder(WrenchStamped)).read(junk)) == []
    assert wrenches == {'wrench_malformed': 4}


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
