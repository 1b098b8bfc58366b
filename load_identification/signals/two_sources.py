"""Recognise joints whose positions come from two sources that contradict each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from load_identification.interface.batches import JointBatch
from load_identification.signals.joint_track import MOST_JOINTS
from load_identification.signals.jumps import SLACK, TURN, reach, velocity_limits
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

BACK = 0.25
"""The joint is back if it is nearer to where it was than this share of its excursion [-]."""

EACH, SAID, MOST = 64, 640, 832
"""How many positions that agree make up for one excursion; from how many not made up for it is
said, that is from ten excursions on; and the upper limit."""

LONGEST = 8
"""Most positions of one source before the next of the other."""

RESTARTED = 1_000_000_000
"""Stamps that are older than others by more than this are of a stream that has restarted [ns]."""


class TwoSources:
    """Recognise joints that go to and fro between two positions faster than any joint can.

    A second publisher of the joints, one that fills in zeros for example, does that in every of
    its messages, or few of them, and to much the same position. An encoder that wraps does not,
    nor one with errors here and there, nor a single jump, a joint that only one source has,
    positions in another unit, nor poses without the motion between.
    """

    def __init__(self) -> None:
        self.last = ''
        """The last warning; empty: there was none."""
        self._followed: dict[str, float] = {}
        self._forget(())

    def _forget(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._limits = velocity_limits(np.array([self._followed.get(n, np.inf) for n in names]))
        self._surplus: IntArray = np.zeros(len(names), dtype=np.int64)
        self._newest: int | None = None
        # The last position of each joint, its stamp and number.
        self._position = np.full((1, len(names)), np.nan)
        self._stamps: IntArray = np.zeros((1, len(names)), dtype=np.int64)
        self._number: IntArray = np.zeros(len(names), dtype=np.int64)
        # From where, to where and at which number each joint has jumped the last three times.
        self._jumps = np.zeros((len(names), 3, 3))

    def follow(self, joints: Mapping[str, float]) -> None:
        """Look at these joints only, or at all if empty; the values are velocity limits."""
        if joints != self._followed:
            self._followed = dict(joints)
            self._forget(tuple(joints)[:MOST_JOINTS])

    def update(self, batches: Iterable[JointBatch]) -> None:
        """Take in joint states as they come, before any is dropped."""
        batches = [each for each in batches if len(each.stamps)]
        if not self._followed and len(self._names) < MOST_JOINTS:
            new = dict.fromkeys(itertools.chain(self._names, *(each.names for each in batches)))
            if len(new) > len(self._names):
                self._forget(tuple(new)[:MOST_JOINTS])
        batches = [each for each in batches if not set(self._names).isdisjoint(each.names)]
        if not batches:
            return
        stamps, position = self._merged(batches)
        if self._newest is not None and stamps[-1] < self._newest - RESTARTED:
            self._forget(self._names)
        if self._newest is not None:
            newer = stamps > self._newest
            stamps, position = stamps[newer], position[newer]
        if not len(stamps):
            return
        self._newest = int(stamps[-1])
        away = self._excursions(stamps, position)
        if away.any() or self._surplus.any():
            surplus = self._surplus + EACH * away - np.isfinite(position).sum(axis=0)
            self._surplus = np.clip(surplus, 0, MOST)
            self.last = self.words or self.last

    def _merged(self, batches: Sequence[JointBatch]) -> tuple[IntArray, FloatArray]:
        """Return stamps, and positions (n, J), NaN where a message lacks a joint."""
        stamps = np.concatenate([each.stamps for each in batches])
        position = np.full((len(stamps), len(self._names)), np.nan)
        begin = 0
        for each in batches:
            rows = position[begin : begin + len(each.stamps)]
            if each.names == self._names:
                rows[:] = each.position
            else:
                both = [name for name in self._names if name in each.names]
                its = [each.names.index(name) for name in both]
                rows[:, [self._names.index(name) for name in both]] = each.position[:, its]
            begin += len(each.stamps)
        order = np.argsort(stamps, kind='stable')
        return stamps[order], position[order]

    def _excursions(self, stamps: IntArray, position: FloatArray) -> IntArray:
        """Return how many times each joint went where none gets to and back from so fast, (J,)."""
        position = np.concatenate([self._position, position])
        times = np.concatenate([self._stamps, np.repeat(stamps[:, None], len(self._names), 1)])
        known: BoolArray = np.isfinite(position)
        count = np.zeros(len(self._names), dtype=np.int64)
        number = self._number + np.cumsum(known[1:], axis=0)
        self._number = number[-1]
        if known.all() and (np.abs(np.diff(position, axis=0)) <= SLACK).all():
            self._position, self._stamps = position[-1:], times[-1:]
            return count
        # For each position the one before it of the same joint.
        last = np.maximum.accumulate(np.where(known, np.arange(len(position))[:, None], 0))
        before, start = (np.take_along_axis(of, last[:-1], 0) for of in (position, times))
        most = reach(self._limits, 1e-9 * (times[1:] - start))
        jumped = known[1:] & np.isfinite(before) & (_apart(position[1:], before) > most)
        for k in np.flatnonzero(jumped.any(axis=0)).tolist():
            rows = np.flatnonzero(jumped[:, k])
            new = [before[rows, k], position[rows + 1, k], number[rows, k]]
            jumps = np.concatenate([self._jumps[k], new], axis=1)
            self._jumps[k] = jumps[:, -3:]
            (_, _, begin, _), (far, _, out, home), (first, _, left, back) = (
                [each[n : n + len(rows)] for n in range(4)] for each in jumps
            )
            near = BACK * _apart(out, begin)
            returned = (_apart(home, begin) <= near) & (_apart(out, far) <= near)
            count[k] = np.sum(returned & (first > 0) & (back - left <= LONGEST))
        self._position = np.take_along_axis(position, last[-1:], 0)
        self._stamps = np.take_along_axis(times, last[-1:], 0)
        return count

    @property
    def words(self) -> str:
        """Warning while two sources contradict each other; empty: they do not."""
        joints = ', '.join(itertools.compress(self._names, self._surplus >= SAID))
        return joints and (
            f'two publishers give different positions of {joints}: stop one (ros2 topic info -v '
            '/joint_states names them), or repair the only one if it sends both'
        )


def _apart(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the distances of joint positions, without whole turns."""
    with np.errstate(over='ignore'):
        way = np.nan_to_num(one - other)
    return np.asarray(np.abs(way - TURN * np.round(way / TURN)))
