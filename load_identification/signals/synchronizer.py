"""The joint state at the stamp of each wrench."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from load_identification.signals.batches import JointBatch, SynchronizedBatch, WrenchBatch
from load_identification.signals.interpolation import interpolate
from load_identification.signals.stamp_gate import StampGate
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

LATENCY = 1_000_000_000
"""How much later than the wrench a joint state may come, and the other way round [ns]."""

MOST_JOINTS = 256
"""More names than this are no robot; so memory stays fixed."""

BEYOND_ALL_SENSE = 1e6
"""A value as large as this comes from no sensor; it counts as not finite [SI units]."""

MOST_FOREIGN = 200
"""After so many wrenches of another frame and none of its own, the sensor has a new frame."""

GIVEN_UP = 500
"""After so many wrenches in a row without a finite value, the sensor has lost a channel."""

NEVER = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Publisher:
    """The joints that come in the same messages.

    Attributes
    ----------
    gate : StampGate
    names : tuple of str
        In the order of the values kept of it.
    columns : (J,) int array
        Where those stand among all joints.
    """

    gate: StampGate
    names: tuple[str, ...]
    columns: npt.NDArray[np.intp]


@dataclass(frozen=True)
class Accepted:
    """Samples of one stream that its gate has let through."""

    stamps: IntArray
    values: FloatArray
    restarted: bool


class Synchronizer:
    """Merges joint states of any number of publishers and looks them up at each wrench.

    Between two joint states the position follows the cubic Hermite polynomial through both
    positions and velocities, or a straight line where velocities are not published; the velocity
    a straight line. A gap longer than `max_gap` is not bridged. A joint from which nothing has
    come for `max_gap`, while others go on, is not waited for. Where a stream starts afresh, all
    that came before on any stream is forgotten.

    Parameters
    ----------
    wrench_delay : float
        By how much the wrench is older than its stamp says [s].
    max_gap : float
        [s].
    """

    def __init__(self, wrench_delay: float, max_gap: float) -> None:
        self.dropped: Counter[str] = Counter()
        self.required: frozenset[str] | None = None
        """Joints worth waiting for; None where the robot is not known: all that are alive."""
        self._delay = round(wrench_delay * 1e9)
        self._max_gap = round(max_gap * 1e9)
        self._hold = LATENCY + self._max_gap
        self.reset()

    def reset(self) -> None:
        """Forget every sample and every publisher."""
        self._publishers: dict[frozenset[str], Publisher] = {}
        self._names: list[str] = []
        self._change_frame(None)

    def _change_frame(self, frame: str | None) -> None:
        """Take a frame for that of the sensor; wrenches of another one are forgotten."""
        self._frame = frame
        self._foreign = 0
        # Of each channel: whether it has been finite, and for how many wrenches it has not.
        self._finite_seen = np.zeros(6, dtype=bool)
        self._silent: IntArray = np.zeros(6, dtype=np.int64)
        self._wrench_gate = StampGate(self._max_gap, 'wrench', self.dropped)
        self._flush()

    def _flush(self) -> None:
        self._joint_stamps: IntArray = np.empty(0, dtype=np.int64)
        self._joint_values: FloatArray = np.empty((0, 2, len(self._names)))
        self._wrench_stamps: IntArray = np.empty(0, dtype=np.int64)
        self._wrenches: FloatArray = np.empty((0, 6))
        self._newest_wrench = NEVER

    def update(
        self, joints: Iterable[JointBatch], wrenches: Iterable[WrenchBatch]
    ) -> SynchronizedBatch | None:
        """Take in what has come and return what has become complete, or None."""
        states = self._accept_joints(joints)
        rows = self._accept_wrenches(wrenches)
        if rows.restarted or any(new.restarted for _, new in states):
            self._flush()
        for publisher, new in states:
            self._add_joints(publisher, new)
        self._wrench_stamps = np.concatenate([self._wrench_stamps, rows.stamps])
        self._wrenches = np.concatenate([self._wrenches, rows.values])
        self._drop_ahead()
        result = self._resolve()
        self._trim()
        return result

    def _accept_joints(self, batches: Iterable[JointBatch]) -> list[tuple[Publisher, Accepted]]:
        """Pass joint states through the gate of their publisher."""
        by_publisher: dict[frozenset[str], list[JointBatch]] = {}
        for batch in batches:
            batch = self._not_too_many(batch)
            key = frozenset(batch.names)
            if key and (self.required is None or not self.required.isdisjoint(key)):
                by_publisher.setdefault(key, []).append(batch)
        accepted: list[tuple[Publisher, Accepted]] = []
        for key, its_batches in by_publisher.items():
            if key not in self._publishers:
                if (
                    len(self._publishers) >= MOST_JOINTS
                    or len(key.union(self._names)) > MOST_JOINTS
                ):
                    # Whoever came first is not to keep out the robot's own.
                    self._publishers.clear()
                    accepted.clear()
                    self._names = []
                    self._flush()
                self._publishers[key] = self._publisher(its_batches[0].names)
            publisher = self._publishers[key]
            stamps, values = _joined(its_batches, publisher.names, self._hold)
            accepted.append((publisher, Accepted(*publisher.gate.update(stamps, values))))
        return accepted

    def _not_too_many(self, batch: JointBatch) -> JointBatch:
        """Return a batch, where it has more joints than any robot with the required ones only."""
        if len(batch.names) <= MOST_JOINTS:
            return batch
        columns = [i for i, name in enumerate(batch.names) if name in (self.required or ())]
        if not columns:
            self.dropped['joint_state_too_many'] += len(batch.stamps)
        names = tuple(batch.names[i] for i in columns)
        return JointBatch(
            names, batch.stamps, batch.position[:, columns], batch.velocity[:, columns]
        )

    def _publisher(self, names: tuple[str, ...]) -> Publisher:
        """Make room for the joints of a new publisher."""
        new = [name for name in names if name not in self._names]
        self._names += new
        room = np.full((len(self._joint_stamps), 2, len(new)), np.nan)
        self._joint_values = np.concatenate([self._joint_values, room], axis=2)
        columns = np.array([self._names.index(name) for name in names], dtype=np.intp)
        return Publisher(StampGate(self._max_gap, 'joint_states', self.dropped), names, columns)

    def _add_joints(self, publisher: Publisher, new: Accepted) -> None:
        stamps, values = new.stamps, new.values
        if not stamps.size:
            return
        finite = np.abs(values) < BEYOND_ALL_SENSE
        if not finite.all():
            self._count('joint_state_not_finite', ~np.all(finite[:, 0], axis=1))
            values = np.where(finite, values, np.nan)
        if publisher.names != tuple(self._names):
            every = np.full((len(stamps), 2, len(self._names)), np.nan)
            every[:, :, publisher.columns] = values
            values = every
        in_order = not self._joint_stamps.size or stamps[0] >= self._joint_stamps[-1]
        self._joint_stamps = np.concatenate([self._joint_stamps, stamps])
        self._joint_values = np.concatenate([self._joint_values, values])
        if not in_order:
            order = np.argsort(self._joint_stamps, kind='stable')
            self._joint_stamps = self._joint_stamps[order]
            self._joint_values = self._joint_values[order]

    def _accept_wrenches(self, batches: Iterable[WrenchBatch]) -> Accepted:
        """Pass usable wrenches through their gate."""
        stamps, values = [np.empty(0, dtype=np.int64)], [np.empty((0, 6))]
        for batch in batches:
            if not batch.stamps.size:
                continue
            if self._frame is None:
                self._frame = batch.frame
            if batch.frame != self._frame:
                self.dropped['wrench_frame_changed'] += len(batch.stamps)
                self._foreign += len(batch.stamps)
                if self._foreign >= MOST_FOREIGN:
                    self._change_frame(batch.frame)
                continue
            self._foreign = 0
            usable = self._usable(batch.wrench)
            stamps.append(batch.stamps[usable])
            values.append(batch.wrench[usable])
        wrench = np.concatenate(values)
        # What is not finite now is a channel that the sensor does not have.
        wrench = np.where(np.abs(wrench) < BEYOND_ALL_SENSE, wrench, np.nan)
        return Accepted(*self._wrench_gate.update(np.concatenate(stamps), wrench))

    def _usable(self, wrench: FloatArray) -> BoolArray:
        """Return which wrenches are finite in every channel that has been so and is not lost."""
        finite: BoolArray = np.abs(wrench) < BEYOND_ALL_SENSE
        if finite.all():
            self._finite_seen[:], self._silent[:] = True, 0
            return finite[:, 0]
        seen = np.logical_or.accumulate(np.vstack([self._finite_seen, finite]))[1:]
        self._finite_seen = seen[-1]
        row = np.arange(len(wrench))[:, None]
        last = np.maximum.accumulate(np.where(finite, row, -1))
        silent = row - last + np.where(last < 0, self._silent, 0)
        self._silent = silent[-1]
        seen &= silent <= GIVEN_UP
        usable: BoolArray = (finite == seen).all(axis=1) & seen.any(axis=1)
        self._count('wrench_not_finite', ~usable)
        return usable

    def _count(self, reason: str, dropped: BoolArray) -> None:
        if dropped.any():
            self.dropped[reason] += int(dropped.sum())

    def _drop_ahead(self) -> None:
        """Drop joint states too far ahead of the wrenches: their publisher has another clock."""
        newest = int(self._wrench_stamps[-1]) if self._wrench_stamps.size else self._newest_wrench
        if newest == NEVER or not self._joint_stamps.size:
            return
        if self._joint_stamps[-1] > newest + self._hold:
            kept = self._joint_stamps <= newest + self._hold
            self._count('joint_state_ahead', ~kept)
            self._joint_stamps, self._joint_values = (
                self._joint_stamps[kept],
                self._joint_values[kept],
            )

    def _resolve(self) -> SynchronizedBatch | None:
        """Return the wrenches whose joint states are there."""
        if not self._wrench_stamps.size:
            return None
        times = self._wrench_stamps - self._delay
        ready = times <= self._complete_until()
        overdue = ~ready & (times < self._wrench_stamps[-1] - self._hold)
        self._count('joint_state_missing', overdue)
        stamps, wrenches, times = self._wrench_stamps[ready], self._wrenches[ready], times[ready]
        waiting = ~ready & ~overdue
        self._newest_wrench = int(self._wrench_stamps[-1])
        self._wrench_stamps, self._wrenches = self._wrench_stamps[waiting], self._wrenches[waiting]
        if not stamps.size:
            return None
        position, velocity = self._interpolate(times)
        known = np.isfinite(position)
        usable = np.any(known, axis=1)
        self._count('joint_state_gap', ~usable)
        if not usable.any():
            return None
        carried = np.any(known, axis=0)
        return SynchronizedBatch(
            names=tuple(itertools.compress(self._names, carried)),
            frame=self._frame or '',
            stamps=stamps[usable],
            position=position[usable][:, carried],
            velocity=velocity[usable][:, carried],
            wrench=wrenches[usable],
        )

    def _complete_until(self) -> int:
        """Return the stamp up to which every joint worth waiting for is known [ns]."""
        if not self._joint_stamps.size:
            return NEVER
        last = int(self._joint_stamps[-1])
        valid = np.isfinite(self._joint_values[:, 0])
        if valid[-1].all():
            return last
        newest = self._joint_stamps[len(valid) - 1 - np.argmax(valid[::-1], axis=0)]
        waited_for = valid.any(axis=0) & (newest >= last - self._max_gap)
        if self.required is not None:
            waited_for &= [name in self.required for name in self._names]
        return int(newest[waited_for].min()) if waited_for.any() else last

    def _interpolate(self, times: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities at `times`, NaN where no two joint states bracket one.

        Joints that came in the same messages are done together.
        """
        stamps, values = self._joint_stamps, self._joint_values
        valid = np.isfinite(values[:, 0])
        if valid.all():
            return interpolate(stamps, values[:, 0], values[:, 1], times, self._max_gap)
        position = np.full((len(times), len(self._names)), np.nan)
        velocity = position.copy()
        members: dict[bytes, list[int]] = {}
        for column, its_rows in enumerate(valid.T):
            members.setdefault(its_rows.tobytes(), []).append(column)
        for columns in members.values():
            rows = valid[:, columns[0]]
            if rows.any():
                part = values[rows][:, :, columns]
                position[:, columns], velocity[:, columns] = interpolate(
                    stamps[rows], part[:, 0], part[:, 1], times, self._max_gap
                )
        return position, velocity

    def _trim(self) -> None:
        """Let go of joint states that no wrench to come can need."""
        if not self._joint_stamps.size:
            return
        last = int(self._joint_stamps[-1])
        oldest = int(self._wrench_stamps[0]) if self._wrench_stamps.size else self._newest_wrench
        keep_from = max(min(last, oldest - self._delay) - self._max_gap, last - self._hold)
        first = int(self._joint_stamps.searchsorted(keep_from))
        self._joint_stamps = self._joint_stamps[first:]
        self._joint_values = self._joint_values[first:]


def _joined(
    batches: list[JointBatch], names: tuple[str, ...], hold: int
) -> tuple[IntArray, FloatArray]:
    """Return stamps and values (n, 2, J) of batches of one publisher, joints in one order."""
    values = []
    for batch in batches:
        both = np.stack([batch.position, batch.velocity], axis=1)
        if batch.names != names:
            both = both[:, :, [batch.names.index(name) for name in names]]
        values.append(both)
    if len(batches) == 1:
        return batches[0].stamps, values[0]
    stamps, joined = np.concatenate([b.stamps for b in batches]), np.concatenate(values)
    if stamps.size and np.ptp(stamps) <= hold:
        # Batches are of one layout each, so layouts that alternate come out of order.
        order = np.argsort(stamps, kind='stable')
        stamps, joined = stamps[order], joined[order]
    return stamps, joined
