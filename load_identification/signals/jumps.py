"""Gate joint positions and wrenches: unwrap whole turns, reject steps that cannot be measured."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from load_identification.interface.batches import SynchronizedBatch, joined
from load_identification.model.plausible_positions import beyond_limits, beyond_words, limit_margin
from load_identification.model.robot import Robot
from load_identification.signals.old_values import AGO, LATELY, NEAR
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

MARGIN = 2.0
"""Factor by which a joint may exceed its velocity limit [-]."""

SLACK = 0.05
"""Additional step allowed for noise of encoders and jitter of stamps [rad or m]."""

UNKNOWN_LIMIT = 30.0
"""Velocity limit of a joint that has none, or whose description is unknown [rad/s, m/s]."""

TURN = 2.0 * np.pi

DOUBTED_NS = 10_000_000_000
"""Time for which positions within limits are refused after others far beyond them [ns]."""

SPIKE = 10.0
"""Size of a spike relative to the usual change of its channel in the newest samples [-]."""


class Piece(NamedTuple):
    """Consecutive samples without a jump."""

    stamps: IntArray
    """Times of the samples, (n,) [ns]."""
    rows: FloatArray
    """Positions first, unchanged except for whole turns, (n, c)."""
    fresh: bool
    """Whether there is a gap before the first sample."""


def velocity_limits(limits: FloatArray) -> FloatArray:
    """Return velocity limits (J,), `UNKNOWN_LIMIT` for infinite, zero or NaN ones [rad/s, m/s]."""
    return np.where(np.isfinite(limits) & (limits > 0.0), limits, UNKNOWN_LIMIT)


def reach(limits: FloatArray, seconds: FloatArray) -> FloatArray:
    """Return how far joints of velocity limits (J,) get in times (n, J) or (n, 1) [s], (n, J)."""
    return MARGIN * limits * seconds + SLACK


class JumpGate:
    """Accept samples whose joints have moved no faster than they can.

    A step of about a whole turn is caused by the driver, which wraps continuous joints at π.
    A sample farther away than its joints can move is held. If the next one follows it, both are
    accepted after a gap, because the path is unknown. If not, it was a glitch and is dropped as
    `joint_state_jump`.

    Parameters
    ----------
    joints : int
        Number J of joints.
    max_gap : int
        Samples farther apart than this are never joined [ns].
    dropped : collections.Counter
        Counts dropped samples by reason.
    """

    def __init__(self, joints: int, max_gap: int, dropped: Counter[str]) -> None:
        self.limits: FloatArray = np.full(joints, UNKNOWN_LIMIT)
        """Velocity limits, (J,) [rad/s, m/s]."""
        self._joints = joints
        self._max_gap = max_gap * 1e-9
        self._dropped = dropped
        self.reset()

    def set_limits(self, limits: FloatArray) -> None:
        """Use velocity limits (J,); infinite, zero or NaN limits are unknown."""
        self.limits = velocity_limits(limits)

    @property
    def measured(self) -> BoolArray:
        """Whether a position of each joint has been received, (J,)."""
        return np.asarray(np.isfinite(self._position))

    def reset(self) -> None:
        """Forget every sample."""
        # Time and position of each joint's last known sample.
        self._stamps: IntArray = np.zeros(self._joints, dtype=np.int64)
        self._position = np.full(self._joints, np.nan)
        self._turns = np.zeros(self._joints)
        self._held: tuple[int, FloatArray] | None = None

    def update(self, stamps: IntArray, rows: FloatArray) -> list[Piece]:
        """Process samples and return the accepted ones, in pieces without a jump.

        Parameters
        ----------
        stamps : (n,) int array
            Increasing, also from call to call [ns].
        rows : (n, c) array
            Positions of the J joints, NaN where unknown, then other columns of the samples.
        """
        if not len(stamps):
            return []
        turned = rows
        if self._turns.any():
            turned = rows.copy()
            turned[:, : self._joints] += TURN * self._turns
        if self._follow_on(stamps, turned[:, : self._joints]):
            return [Piece(stamps, turned, False)]
        pieces: list[tuple[list[int], list[FloatArray], bool]] = [([], [], False)]
        for stamp, row in zip(stamps.tolist(), rows, strict=True):
            for ok_stamp, ok_row, fresh in self._judge(stamp, row):
                if fresh:
                    pieces.append(([], [], True))
                pieces[-1][0].append(ok_stamp)
                pieces[-1][1].append(ok_row)
        return [
            Piece(np.array(some, dtype=np.int64), np.array(values), fresh)
            for some, values, fresh in pieces
            if some
        ]

    def _follow_on(self, stamps: IntArray, track: FloatArray) -> bool:
        """Return whether a whole batch is without a jump, which is nearly always so."""
        if self._held is not None:
            return False
        position, seconds = np.concatenate([self._position[None], track]), np.empty(track.shape)
        seconds[0] = (stamps[0] - self._stamps) * 1e-9
        seconds[1:] = ((stamps[1:] - stamps[:-1]) * 1e-9)[:, None]
        steps = np.abs(position[1:] - position[:-1])
        within = steps <= reach(self.limits, seconds)
        # The first position of a joint may be anywhere.
        within[0] |= ~self.measured & np.isfinite(track[0])
        if not within.all():
            return False
        self._stamps, self._position = np.full_like(self._stamps, stamps[-1]), position[-1]
        return True

    def _judge(self, stamp: int, row: FloatArray) -> list[tuple[int, FloatArray, bool]]:
        """Return the samples accepted because of this one, and whether a gap is before each."""
        q = row[: self._joints]
        reached = self._reached(self._stamps, self._position, stamp, q + TURN * self._turns)
        if reached is not None:
            if self._held is not None:
                self._dropped['joint_state_jump'] += 1
                self._held = None
            return [self._accept(stamp, row, self._turns + reached, False)]
        if self._held is not None:
            before, other = self._held
            turns = self._reached(before, other[: self._joints], stamp, q)
            if turns is not None:
                self._held = None
                self._position = np.full(self._joints, np.nan)
                first = self._accept(before, other, np.zeros(self._joints), True)
                return [first, self._accept(stamp, row, turns, False)]
            self._dropped['joint_state_jump'] += 1
        self._held = stamp, row
        return []

    def _reached(
        self, before: int | IntArray, start: FloatArray, stamp: int, end: FloatArray
    ) -> FloatArray | None:
        """Return the whole turns to add to `end`; None if it is not reachable from `start`."""
        way = end - start
        seconds = np.asarray((stamp - before) * 1e-9)
        allowed = reach(self.limits, seconds)
        turns = np.where(np.abs(way) > allowed, -np.round(np.nan_to_num(way) / TURN), 0.0)
        within = ~(np.abs(way + TURN * turns) > allowed)
        if within.all():
            return turns
        return np.zeros(self._joints) if np.all(within | (seconds > self._max_gap)) else None

    def _accept(
        self, stamp: int, row: FloatArray, turns: FloatArray, fresh: bool
    ) -> tuple[int, FloatArray, bool]:
        row = row.copy()
        row[: self._joints] += TURN * turns
        self._turns = turns
        position = row[: self._joints]
        known = np.isfinite(position)
        self._stamps = np.where(known, stamp, self._stamps)
        self._position = np.where(known, position, self._position)
        return stamp, row, fresh


class LimitGate:
    """Refuse positions in another unit, degrees or millimetres, by `plausible_positions`.

    What follows in the same unit may be within them. It is refused too, until
    positions jump back by as much, or none has been far for `DOUBTED_NS`.
    """

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self.last = ''
        """The last warning; empty: there was none."""
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._doubted, self._far = False, 0
        self._newest: FloatArray | None = None

    @property
    def words(self) -> str:
        """Warning while positions are refused; empty: none."""
        return self.last if self._doubted else ''

    def update(self, robot: Robot, stamps: IntArray, position: FloatArray) -> BoolArray:
        """Return which samples are accepted, (n,): stamps (n,) [ns], finite positions (n, J)."""
        far = beyond_limits(robot, position)
        beyond: BoolArray = np.asarray(far.any(axis=1))
        if not beyond.size:
            return beyond
        before = position[:1] if self._newest is None else self._newest[None]
        self._newest = position[-1]
        if not (self._doubted or beyond.any()):
            return ~beyond
        steps = np.abs(position - np.concatenate([before, position[:-1]]))
        margin = limit_margin(robot.position_limits, robot.prismatic)
        back = (steps > margin).any(axis=1) & ~beyond
        order = np.arange(1, len(stamps) + 1)
        latest = np.maximum.accumulate(np.where(beyond, order, 0))
        since = np.abs(stamps - np.append(self._far, stamps)[latest])
        ended = np.maximum.accumulate(np.where(back, order, 0))
        doubted = (latest > 0) | self._doubted
        refused = doubted & (latest >= ended) & (since <= DOUBTED_NS)
        self._dropped['joint_position_implausible'] += int(refused.sum())
        if beyond.any():
            row = int(latest[-1]) - 1
            self._far = int(stamps[row])
            j = int(far[row].argmax())
            limits, slides = robot.position_limits[:, j], bool(robot.prismatic[j])
            self.last = beyond_words(robot.joints[j], position[row, j], limits, slides)
        self._doubted = bool(refused[-1])
        return np.asarray(~refused)


class SpikeGate:
    """Drop single wrenches that are far from both of their neighbours, as no motion makes them.

    A sample with a value far from the last one is held. If the next one is back, it was a spike
    and is dropped as `wrench_spike`. If not, the wrench has really changed, and both are accepted.
    A value that repeats itself to the last bit counts as one, since no contact does that. Spikes
    count as changes, so that from the fourth in `LATELY` samples on they are accepted: what comes
    so often may be a vibration, of which a part must not be dropped.

    Parameters
    ----------
    dropped : collections.Counter
        Counts dropped samples by reason.
    """

    def __init__(self, dropped: Counter[str]) -> None:
        self._dropped = dropped
        self._newest = np.full((LATELY + 1, 6), np.nan)
        self._least = np.full(6, np.inf)
        self._held: SynchronizedBatch | None = None

    def update(self, batch: SynchronizedBatch, noisy: BoolArray) -> SynchronizedBatch:
        """Return the samples accepted.

        Parameters
        ----------
        batch : SynchronizedBatch
            Stamps increasing, also from call to call.
        noisy : (6,) bool array
            Channels with noise; others have no spikes.
        """
        if self._held is not None:
            batch, self._held = joined([self._held, batch]), None
        wrench, n = batch.wrench, len(batch.stamps)
        kept = np.ones(n, dtype=bool)
        begin = 0
        while begin < n:
            far, reach = self._far(wrench[begin:], noisy)
            if not far.any():
                self._note(wrench[begin:])
                break
            at = begin + int(np.argmax(far.any(axis=1)))
            channels, reach = far[at - begin], reach[at - begin]
            self._note(wrench[begin:at])
            later = np.any(wrench[at : at + AGO + 1, channels] != wrench[at, channels], axis=1)
            if not later.any() and n - at <= AGO:
                self._held = batch.select(slice(at, None))
                kept[at:] = False
                break
            back = at + (int(np.argmax(later)) or AGO)
            away = np.abs(wrench[back] - self._newest[-1])[channels]
            if later.any() and np.all(away <= reach[channels]):
                kept[at:back] = False
                self._dropped['wrench_spike'] += back - at
            begin = back + 1
            self._note(wrench[at:begin])
        return batch if kept.all() else batch.select(kept)

    def _far(self, wrench: FloatArray, noisy: BoolArray) -> tuple[BoolArray, FloatArray]:
        """Return which values (n, 6) are far from the ones before, and what would be far."""
        rows = np.concatenate([self._newest, wrench])
        step = np.zeros_like(rows)
        step[1:] = np.nan_to_num(np.abs(rows[1:] - rows[:-1]))
        # Sums of the `LATELY` steps before each sample.
        way, changes = (
            total[LATELY:-1] - total[: -LATELY - 1]
            for total in (step.cumsum(axis=0), (step > 0.0).cumsum(axis=0))
        )
        reach = np.maximum(SPIKE * way / np.maximum(changes, 1), NEAR * self._least)
        return (step[LATELY + 1 :] > reach) & noisy, reach

    def _note(self, wrench: FloatArray) -> None:
        """Take in the changes of samples, whether accepted or dropped."""
        if not len(wrench):
            return
        rows = np.concatenate([self._newest, wrench])
        step = np.abs(wrench - rows[LATELY:-1])
        least = np.where(step > 0.0, step, np.inf).min(axis=0)
        self._least, self._newest = np.minimum(self._least, least), rows[-LATELY - 1 :]


def without_spikes(values: FloatArray) -> FloatArray:
    """Return values (n, c) with NaN for single ones that are far from both of their neighbours.

    Far: by `SPIKE` times what is usual, and by more than the range of the others.
    """
    triples = np.stack([values[:-2], values[1:-1], values[2:]])
    away = np.nan_to_num(np.abs(values[1:-1] - np.median(triples, axis=0)))
    if not away.any():
        return values
    low, high = np.quantile(np.nan_to_num(values), (0.05, 0.95), axis=0)
    out = values.copy()
    out[1:-1][away > np.maximum(SPIKE * np.quantile(away, 0.9, axis=0), high - low)] = np.nan
    return out
