"""Topics that belong together: joined by stamps, motion and kinematics as they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numbered_messages import START, triple, wrench
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from load_identification.interface.batches import FilteredBatch
from load_identification.interface.messages import (
    kinematics_rows,
    kinematics_shapes,
    kinematics_sizes,
    read_filtered,
    read_kinematics,
    stamp_of,
)
from load_identification.nodes.transport.readers import StampMatcher
from load_identification.typing_aliases import FloatArray


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
