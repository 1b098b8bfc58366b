"""Gate the stamps of every incoming stream, and recognise those that come in bunches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray

MANY_LOST = 40
"""Count from which on lost windows are said: each counts 4 and each other -1 [-]. It grows where
more than a fifth is lost."""


class StampGate:
    """Accept samples whose stamps increase, and detect when a stream restarts.

    A stamp at or a little before the last one (up to `max_gap`) is dropped. A jump, forward or
    back, by more than `max_gap` is accepted only once the next sample confirms it. Until then the
    sample is held, so that one corrupt stamp has no effect. A confirmed jump back is a restart: a
    recording played again, a simulation reset.

    Parameters
    ----------
    max_gap : int
        Longest gap within a stream [ns].
    stream : str
        Name in the reasons counted, such as 'wrench'.
    dropped : collections.Counter
        Counts dropped samples by reason.
    """

    def __init__(self, max_gap: int, stream: str, dropped: Counter[str]) -> None:
        self._max_gap = max_gap
        self._stream = stream
        self._dropped = dropped
        self.heard: int | None = None
        """Stamp of the last sample received, accepted or not [ns]."""
        self.period = 0
        """Time between the last two samples received in order [ns]; 0: unknown."""
        self._last: int | None = None
        self._held: tuple[int, FloatArray] | None = None

    def reset(self) -> None:
        """Forget every sample."""
        self._last = self._held = None

    def update(
        self, stamps: IntArray, rows: FloatArray, others: Collection[int] = ()
    ) -> tuple[IntArray, FloatArray, bool]:
        """Return the accepted samples, and whether the stream restarted before them.

        Parameters
        ----------
        stamps : (n,) int array
            Times of the samples [ns].
        rows : (n, ...) array
            Values at each stamp.
        others : collection of int
            Newest stamps of related streams; a sample near one of them needs no confirmation
            [ns].
        """
        self._hear(stamps)
        if self._follows_on(stamps):
            self._last = int(stamps[-1])
            return stamps, rows, False
        accepted_stamps: list[int] = []
        accepted_rows: list[FloatArray] = []
        restarted = False
        for stamp, row in zip(stamps.tolist(), rows, strict=True):
            for ok_stamp, ok_row in self._judge(stamp, row, others):
                if self._last is not None and ok_stamp < self._last:
                    accepted_stamps.clear()
                    accepted_rows.clear()
                    restarted = True
                self._last = ok_stamp
                accepted_stamps.append(ok_stamp)
                accepted_rows.append(ok_row)
        return (
            np.array(accepted_stamps, dtype=np.int64),
            np.array(accepted_rows, dtype=float).reshape(len(accepted_rows), *rows.shape[1:]),
            restarted,
        )

    def _hear(self, stamps: IntArray) -> None:
        """Note the stamps received, whether the samples are accepted or not."""
        if len(stamps):
            steps = np.diff(stamps, prepend=stamps[0] if self.heard is None else self.heard)
            if (increasing := steps[steps > 0]).size:
                self.period = int(increasing[-1])
            self.heard = int(stamps[-1])

    def _follows_on(self, stamps: IntArray) -> bool:
        """Return whether a whole batch is in order, which is nearly always so."""
        if self._last is None or self._held is not None or not stamps.size:
            return False
        if not 0 < stamps[0] - self._last <= self._max_gap:
            return False
        steps = stamps[1:] - stamps[:-1]
        return bool(((steps > 0) & (steps <= self._max_gap)).all())

    def _judge(
        self, stamp: int, row: FloatArray, others: Collection[int]
    ) -> list[tuple[int, FloatArray]]:
        """Return the samples accepted because of this one: none, itself, or the held one too."""
        if stamp <= 0:
            self._drop('stamp_zero')
            return []
        if self._last is not None and 0 < stamp - self._last <= self._max_gap:
            if self._held is not None:
                self._drop('stamp_jump')
                self._held = None
            return [(stamp, row)]
        if self._held is not None and 0 < stamp - self._held[0] <= self._max_gap:
            held, self._held = self._held, None
            return [held, (stamp, row)]
        if self._last is not None and -self._max_gap <= stamp - self._last <= 0:
            self._drop('stamp_not_increasing')
            return []
        if self._held is not None:
            same = self._held[0] == stamp
            self._drop('stamp_not_increasing' if same else 'stamp_jump')
            self._held = None
        if any(abs(stamp - other) <= self._max_gap for other in others):
            return [(stamp, row)]
        self._held = (stamp, row)
        return []

    def _drop(self, reason: str) -> None:
        self._dropped[f'{self._stream}_{reason}'] += 1


class Bunches:
    """Recognise stamps in bunches, as of samples read together and stamped when they are read.

    They are noticed by windows of a filter in which they do not determine the motion between.
    """

    def __init__(self) -> None:
        self._surplus = self._lost = 0
        self._period = 0

    def lose(self, stamps: IntArray) -> bool:
        """Take in the stamps around a window that is lost [ns]; return whether by bunches."""
        steps = np.diff(stamps)
        long = steps > steps.max() // 4
        begins = stamps[1:][long]
        # They are short against the time between them, and more than half have several samples.
        bunched = 2 * len(stamps) >= 3 * len(begins) and 4 * steps[~long].sum() < steps.sum()
        if bunched:
            self._lost += 1
            self._period = round(np.diff(begins).mean() if len(begins) > 1 else steps.max())
        return bool(bunched)

    def settle(self, count: int) -> None:
        """Take in how many windows were not lost meanwhile."""
        self._surplus = min(max(self._surplus + 4 * self._lost - count, 0), 2 * MANY_LOST)
        self._lost = 0

    def words(self, topic: str) -> str:
        """Return that many windows of late have been lost, and why; empty: few."""
        if self._surplus < MANY_LOST:
            return ''
        return (
            f'stamps of {topic} come in bunches every {1e-6 * self._period:.0f} ms: '
            'have the driver stamp samples when they are measured'
        )
