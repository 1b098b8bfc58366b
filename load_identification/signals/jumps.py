"""Gate joint positions: unwrap whole turns and reject steps that no joint can make."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

MARGIN = 2.0
"""Factor by which a joint may exceed its velocity limit [-]."""

SLACK = 0.05
"""Additional step allowed for noise of encoders and jitter of stamps [rad or m]."""

UNKNOWN_LIMIT = 30.0
"""Velocity limit of a joint that has none, or whose description is unknown [rad/s, m/s]."""

TURN = 2.0 * np.pi


class Piece(NamedTuple):
    """Consecutive samples without a jump.

    Attributes
    ----------
    stamps : (n,) int array
        Times of the samples [ns].
    rows : (n, c) array
        Positions first, unchanged except for whole turns.
    fresh : bool
        Whether there is a gap before the first sample.
    """

    stamps: IntArray
    rows: FloatArray
    fresh: bool


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
        known = np.isfinite(limits) & (limits > 0.0)
        self.limits = np.where(known, limits, UNKNOWN_LIMIT)

    @property
    def measured(self) -> BoolArray:
        """Whether a position of each joint has been received, (J,)."""
        measured: BoolArray = np.isfinite(self._position)
        return measured

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
        position = np.concatenate([self._position[None], track])
        times = np.concatenate([self._stamps[None], np.tile(stamps[:, None], track.shape[1])])
        steps, seconds = np.abs(np.diff(position, axis=0)), np.diff(times, axis=0) * 1e-9
        within = steps <= MARGIN * self.limits * seconds + SLACK
        # The first position of a joint may be anywhere.
        within[0] |= ~self.measured & np.isfinite(track[0])
        if not within.all():
            return False
        self._stamps, self._position = times[-1], position[-1]
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
        seconds = (stamp - before) * 1e-9
        allowed = MARGIN * self.limits * seconds + SLACK
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
