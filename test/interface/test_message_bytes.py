"""Between bytes and arrays: as rclpy reads them, whatever the layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from numbered_messages import BAD_JOINT_STATES, START, header, joints, wrench
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.messages import read_joint_states, read_wrenches
from load_identification.nodes.transport.subscriptions import decoder


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
