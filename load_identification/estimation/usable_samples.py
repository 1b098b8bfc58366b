"""Know how much of what comes tells anything, and since when nothing has."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.measurement import Block
from load_identification.interface.batches import FilteredBatch

UNMEASURED = 5.0
"""No sample came, or no channel of any told anything, for so long: nothing is claimed, nor told to
the driver [s]."""

GAP = 1.0
"""Time without samples in which the load may have changed, and the offset along with it [s]: a
driver that starts anew reads zero, whatever the gripper holds by then."""

CONFIRMING = 3
"""Usable blocks after which what was known before holds again: a change is detected in them."""


class UsableSamples:
    """The samples with a channel that has information.

    A sample without one comes from a dead sensor, or from joints too slow for their friction to
    be known.
    """

    def __init__(self) -> None:
        self.count = 0
        """Number of the usable samples since the start."""
        self.newest: int | None = None
        """Stamp of the newest; None before the first [ns]."""
        self._ended: int | None = None
        self._seldom = 0
        self._seen: int | None = None
        self._confirmed: int | None = None
        self._blocks = CONFIRMING

    def restart(self) -> None:
        """Forget all stamps."""
        self.newest = self._ended = self._seen = self._confirmed = None
        self._blocks, self._seldom = CONFIRMING, 0

    def update(self, batch: FilteredBatch) -> None:
        """Take in samples as they come."""
        usable = np.isfinite(batch.wrench).any(axis=1)
        if batch.whitening.size:
            usable &= batch.whitening.any(axis=(1, 2))
        self.count += int(usable.sum())
        if usable.any():
            self.newest = int(batch.stamps[usable][-1])

    def end_block(self, block: Block) -> None:
        """Take in a block that the estimate contains from now on."""
        self._ended = block.stamp
        self._seldom = self._seldom + 1 if block.elapsed > GAP else 0
        if self._seen is not None and block.stamp - self._seen > 1e9 * UNMEASURED:
            self._blocks = 0
        if block.live.any():
            self._seen, self._blocks = block.stamp, self._blocks + 1
            if self._blocks >= CONFIRMING:
                self._confirmed = block.stamp

    @property
    def after_gap(self) -> str:
        """Why the estimate is out of date: samples after a gap are not in it yet; empty otherwise.

        Where samples always come so seldom, it is not: after `CONFIRMING` such blocks in a row.
        """
        if self._ended is None or self.newest is None or self._seldom >= CONFIRMING:
            return ''
        gap = 1e-9 * (self.newest - self._ended)
        late = f'no sample came for {gap:.1f} s, in which the load may have changed'
        return f'{late}: go on moving' if gap > GAP else ''

    def missing_for(self, stamp: int) -> float:
        """Return how long before a stamp the load was measured for the last time [s].

        After more than `UNMEASURED`, samples confirm nothing before `CONFIRMING` blocks of them
        have been tested. Infinite: nothing usable has come.
        """
        known = self.newest if self._confirmed is None else self._confirmed
        return np.inf if known is None else 1e-9 * (stamp - known)

    def confirmed_at(self, stamp: int) -> bool:
        """Return whether the load known is still that of a stamp [ns], as far as is measured."""
        return self.missing_for(stamp) <= UNMEASURED
