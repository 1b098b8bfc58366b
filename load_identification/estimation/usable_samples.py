"""Know how much of what comes tells anything, and since when nothing has."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.measurement import Block
from load_identification.interface.batches import FilteredBatch


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
        self._processed: int | None = None

    def restart(self) -> None:
        """Forget all stamps."""
        self.newest = self._processed = None

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
        if block.live.any():
            self._processed = block.stamp

    def missing_for(self, stamp: int) -> float:
        """Return how long before a stamp the newest usable block was processed [s].

        A sample confirms nothing before its block has been tested. Before the first block it is
        how long nothing usable has come.
        """
        known = self.newest if self._processed is None else self._processed
        return np.inf if known is None else 1e-9 * (stamp - known)
