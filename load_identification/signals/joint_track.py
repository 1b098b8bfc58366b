"""Keep joint states of any number of publishers, and interpolate them at any time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from load_identification.interface.batches import JointBatch
from load_identification.signals.joint_motion import interpolated
from load_identification.signals.jumps import UNKNOWN_LIMIT, JumpGate
from load_identification.signals.stamps import StampGate
from load_identification.signals.velocity.check import PublishedVelocities
from load_identification.typing_aliases import FloatArray, IntArray

MOST_JOINTS = 256
"""Largest number of joint names, which keeps memory fixed; more are not a robot's."""

BEYOND_ALL_SENSE = 1e6
"""Magnitude from which a value cannot be of a sensor and counts as not finite [SI units]."""

UNRELATED, UNRELATED_NS, MANY_UNRELATED = 5, 500_000_000, 200
"""Consecutive joint states without a required joint, and their duration [ns], from which none is
expected any more; the larger number is enough whatever their stamps are."""

NEVER = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Publisher:
    """The joints that arrive in the same messages."""

    gate: StampGate
    jumps: JumpGate
    velocities: PublishedVelocities
    names: tuple[str, ...]
    """Joint names in the order of the values kept."""
    columns: npt.NDArray[np.intp]
    """Indices of these joints among all joints, (J,)."""


@dataclass(frozen=True)
class Accepted:
    """Samples of one publisher that its gates have accepted."""

    publisher: Publisher
    stamps: IntArray
    """Times of the samples, (n,) [ns]."""
    values: FloatArray
    """Position and velocity, (n, 2, J)."""
    restarted: bool
    """Whether the stream has restarted before them."""
    breaks: tuple[int, ...]
    """Stamps of samples that are not joined to the previous one [ns]."""


class JointTrack:
    """Keep joint states in the order of their stamps, as long as a wrench may need them.

    Parameters
    ----------
    max_gap : int
        Longest gap that is bridged [ns].
    hold : int
        Longest delay of a joint state after the wrench [ns].
    dropped : collections.Counter
        Counts dropped samples by reason.
    """

    def __init__(self, max_gap: int, hold: int, dropped: Counter[str]) -> None:
        # Joints to wait for; None if the robot is unknown: all that are alive.
        self._required: frozenset[str] | None = None
        self._limits: Mapping[str, float] = {}
        self._max_gap, self._hold, self._dropped = max_gap, hold, dropped
        self._publishers: dict[frozenset[str], Publisher] = {}
        self._last_heard: frozenset[str] = frozenset()
        # Messages without a required joint since the last with one, and the stamps of their ends.
        self._unrelated, self._unrelated_from, self._unrelated_to = 0, 0, 0
        self.names: list[str] = []
        self.flush()

    def flush(self) -> None:
        """Forget every sample."""
        self.stamps: IntArray = np.empty(0, dtype=np.int64)
        self._values: FloatArray = np.empty((0, 2, len(self.names)))
        self._breaks: IntArray = np.empty(0, dtype=np.int64)

    def follow(self, joints: Mapping[str, float]) -> None:
        """Wait only for these joints, or for all if empty; the values are velocity limits."""
        if joints != self._limits or self._required is None:
            self._required, self._limits = frozenset(joints) or None, dict(joints)
            self._unrelated = 0
            for publisher in self._publishers.values():
                self._limit(publisher)

    def _limit(self, publisher: Publisher) -> None:
        limits = [self._limits.get(name, UNKNOWN_LIMIT) for name in publisher.names]
        publisher.jumps.set_limits(np.array(limits))
        publisher.velocities.limits = publisher.jumps.limits

    @property
    def missing(self) -> tuple[str, ...]:
        """The required joints, if joint states come and none has any of them; empty otherwise."""
        lasting = self._unrelated_to - self._unrelated_from >= UNRELATED_NS
        few = self._unrelated < (UNRELATED if lasting else MANY_UNRELATED)
        return () if few else tuple(self._limits)

    @property
    def wrong_velocities(self) -> str:
        """Warning of published velocities that are not used; empty: none."""
        words = (p.velocities.words(p.names, self._required) for p in self._publishers.values())
        return '; '.join(filter(None, words))

    @property
    def _speaking(self) -> list[Publisher]:
        """The publishers whose newest stamp is within `hold` of that of the last one heard."""
        heard = {name: p.gate.heard for name, p in self._publishers.items()}
        last = heard.get(self._last_heard)
        if last is None:
            return []
        return [
            self._publishers[name]
            for name, stamp in heard.items()
            if stamp is not None and abs(stamp - last) <= self._hold
        ]

    @property
    def newest_heard(self) -> int | None:
        """Newest stamp of any active publisher, used or not [ns]."""
        return max((p.gate.heard or 0 for p in self._speaking), default=None)

    @property
    def period(self) -> int:
        """Longest of the publishers' last intervals between two messages [ns]; 0: unknown."""
        return max((p.gate.period for p in self._speaking), default=0)

    @property
    def shortest_period(self) -> int:
        """Same as `period`, for the fastest publisher [ns]."""
        return min((p.gate.period for p in self._speaking), default=0)

    def accept(self, batches: Iterable[JointBatch]) -> list[Accepted]:
        """Pass joint states through the gates of their publishers."""
        by_publisher: dict[frozenset[str], list[JointBatch]] = {}
        for batch in batches:
            batch = self._not_too_many(batch)
            key = frozenset(batch.names)
            if self._required is not None and self._required.isdisjoint(key):
                self._count_unrelated(batch.stamps)
            elif key:
                self._unrelated = 0
                by_publisher.setdefault(key, []).append(batch)
        accepted: list[Accepted] = []
        for key, its_batches in by_publisher.items():
            self._last_heard = key
            publisher = self._publishers.pop(key, None)
            if publisher is None:
                if len(self._publishers) >= MOST_JOINTS:
                    del self._publishers[next(iter(self._publishers))]
                if len(key.union(self.names)) > MOST_JOINTS:
                    # Earlier publishers must not exclude the robot's own joints.
                    self._publishers.clear()
                    accepted.clear()
                    self.names = []
                    self.flush()
                publisher = self._publisher(its_batches[0].names)
            # The first entry is the publisher that has been silent for longest.
            self._publishers[key] = publisher
            accepted.append(self._through_gates(publisher, its_batches))
        return accepted

    def _count_unrelated(self, stamps: IntArray) -> None:
        """Count joint states (n,) without a required joint [ns]."""
        if stamps.size:
            if not self._unrelated:
                self._unrelated_from = int(stamps[0])
            self._unrelated += len(stamps)
            self._unrelated_to = int(stamps[-1])

    def _not_too_many(self, batch: JointBatch) -> JointBatch:
        """Return a batch, reduced to the required joints if it has more than `MOST_JOINTS`."""
        if len(batch.names) <= MOST_JOINTS:
            return batch
        columns = [i for i, name in enumerate(batch.names) if name in (self._required or ())]
        if not columns:
            self._dropped['joint_state_too_many'] += len(batch.stamps)
        return batch.select_joints(columns)

    def _publisher(self, names: tuple[str, ...]) -> Publisher:
        """Add the joints of a new publisher and return it."""
        self.names += [name for name in names if name not in self.names]
        room = ((0, 0), (0, 0), (0, len(self.names) - self._values.shape[2]))
        self._values = np.pad(self._values, room, constant_values=np.nan)
        columns = np.array([self.names.index(name) for name in names], dtype=np.intp)
        gate = StampGate(self._max_gap, 'joint_states', self._dropped)
        jumps = JumpGate(len(names), self._max_gap, self._dropped)
        publisher = Publisher(gate, jumps, PublishedVelocities(len(names)), names, columns)
        self._limit(publisher)
        return publisher

    def _through_gates(self, publisher: Publisher, batches: list[JointBatch]) -> Accepted:
        joined = _joined(batches, publisher.names, self._hold)
        # A publisher may send different joints in turn; its layouts share joints and restarts.
        related = [p for key, p in self._publishers.items() if not key.isdisjoint(publisher.names)]
        related.remove(publisher)
        heard = [other.gate.heard for other in related if other.gate.heard is not None]
        stamps, values, restarted = publisher.gate.update(*joined, heard)
        if restarted:
            publisher.jumps.reset()
            for other in related:
                other.gate.reset()
                other.jumps.reset()
        finite = np.abs(values) < BEYOND_ALL_SENSE
        if not finite.all():
            measured = publisher.jumps.measured | np.logical_or.accumulate(finite[:, 0])
            if missing := int(np.sum(np.any(measured & ~finite[:, 0], axis=1))):
                self._dropped['joint_state_not_finite'] += missing
            values = np.where(finite, values, np.nan)
        values[:, 1] = publisher.velocities.without(stamps, values[:, 0], values[:, 1])
        rows = values.reshape(len(values), 2 * len(publisher.names))
        pieces = publisher.jumps.update(stamps, rows)
        breaks = tuple(int(piece.stamps[0]) for piece in pieces if piece.fresh)
        stamps = np.concatenate([stamps[:0], *(piece.stamps for piece in pieces)])
        rows = np.concatenate([rows[:0], *(piece.rows for piece in pieces)])
        return Accepted(publisher, stamps, rows.reshape(-1, *values.shape[1:]), restarted, breaks)

    def add(self, new: Accepted) -> None:
        """Store accepted joint states."""
        stamps, values, publisher = new.stamps, new.values, new.publisher
        if not stamps.size:
            return
        if publisher.names != tuple(self.names):
            every = np.full((len(stamps), 2, len(self.names)), np.nan)
            every[:, :, publisher.columns] = values
            values = every
        in_order = not self.stamps.size or stamps[0] >= self.stamps[-1]
        self.stamps = np.concatenate([self.stamps, stamps])
        self._values = np.concatenate([self._values, values])
        if new.breaks:
            self._breaks = np.sort(np.concatenate([self._breaks, new.breaks]))
        if not in_order:
            order = np.argsort(self.stamps, kind='stable')
            self.stamps = self.stamps[order]
            self._values = self._values[order]

    def drop_after(self, stamp: int) -> None:
        """Drop joint states too far ahead of the wrenches: their publisher has another clock."""
        if self.stamps.size and self.stamps[-1] > stamp:
            kept = self.stamps <= stamp
            self._dropped['joint_state_ahead'] += int(np.sum(~kept))
            self.stamps, self._values = self.stamps[kept], self._values[kept]

    def trim(self, stamp: int) -> None:
        """Drop joint states before a stamp [ns]."""
        first = int(self.stamps.searchsorted(stamp))
        self.stamps, self._values = self.stamps[first:], self._values[first:]
        if self._breaks.size:
            self._breaks = self._breaks[self._breaks >= stamp]

    def complete_until(self) -> int:
        """Return the stamp up to which every joint that is waited for is known [ns]."""
        if not self.stamps.size:
            return NEVER
        last = int(self.stamps[-1])
        valid = np.isfinite(self._values[:, 0])
        if valid[-1].all():
            return last
        newest = self.stamps[len(valid) - 1 - np.argmax(valid[::-1], axis=0)]
        waited_for = valid.any(axis=0) & (newest >= last - self._max_gap)
        if self._required is not None:
            waited_for &= [name in self._required for name in self.names]
        return int(newest[waited_for].min()) if waited_for.any() else last

    def at(self, times: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities at `times`, NaN where no two joint states bracket one.

        Joints that arrived in the same messages are interpolated together.
        """
        stamps, values = self.stamps, self._values
        valid = np.isfinite(values[:, 0])
        if valid.all():
            return interpolated(stamps, values, times, self._max_gap, self._breaks)
        position = np.full((len(times), len(self.names)), np.nan)
        velocity = position.copy()
        members: dict[bytes, list[int]] = {}
        for column, its_rows in enumerate(valid.T):
            members.setdefault(its_rows.tobytes(), []).append(column)
        for columns in members.values():
            rows = valid[:, columns[0]]
            if rows.any():
                part = values[rows][:, :, columns]
                position[:, columns], velocity[:, columns] = interpolated(
                    stamps[rows], part, times, self._max_gap, self._breaks
                )
        return position, velocity


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
    if stamps.size and (np.ptp(stamps) <= hold or _interleaved(batches, hold)):
        # Each batch has one layout, so alternating layouts arrive out of order.
        order = np.argsort(stamps, kind='stable')
        stamps, joined = stamps[order], joined[order]
    return stamps, joined


def _interleaved(batches: list[JointBatch], hold: int) -> bool:
    """Return whether batches, each in order, overlap or follow one another without a jump back."""
    spans = sorted((b.stamps[0], b.stamps[-1]) for b in batches if b.stamps.size)
    reached = spans[0][1]
    for first, last in spans:
        if first > reached + hold:
            return False
        reached = max(reached, last)
    return all(np.all(np.diff(b.stamps) > 0) for b in batches)
