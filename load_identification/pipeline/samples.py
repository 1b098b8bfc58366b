"""The samples passed from a front of the pipeline to the payload stage, and their observer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from load_identification.estimation.changes.state import Look
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.model.robot import Robot
from load_identification.typing_aliases import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Samples:
    """The output of a front for one batch of input.

    Attributes
    ----------
    raw : SynchronizedBatch or None
        Joint states with the raw wrench.
    filtered : FilteredBatch or None
        Filtered motion and wrench completed by this input.
    robot : Robot or None
        Its joints carry the sensor; None: unknown.
    dead : tuple of bool
        Dead channels of the raw wrench; empty: unknown.
    legs : tuple of str
        Names of the legs of a parallel machine; empty: it is none, or unknown.
    """

    raw: SynchronizedBatch | None = None
    filtered: FilteredBatch | None = None
    robot: Robot | None = None
    dead: tuple[bool, ...] = ()
    legs: tuple[str, ...] = ()

    @property
    def sliding(self) -> tuple[str, ...] | None:
        """Names of the joints that slide instead of turning; None: unknown."""
        if self.robot is None:
            return self.legs or None
        return tuple(np.array(self.robot.joints)[self.robot.prismatic].tolist())


class Observer(Protocol):
    """Observes the payload stage, as a report does."""

    def add_raw(self, stamps: IntArray, wrench: FloatArray) -> None:
        """Take in raw wrenches (n, 6), with the sign of the filtered ones [ns, N, N m]."""

    def pieces(self, batch: FilteredBatch) -> Iterator[FilteredBatch]:
        """Cut a batch into pieces after each of which an estimate may be wanted."""

    def add_samples(self, batch: FilteredBatch) -> None:
        """Take in filtered samples that the estimator has processed."""

    def add_event(self, stamp: int, words: str) -> None:
        """Take in an event with its stamp [ns]."""

    def add_looks(self, looks: Sequence[Look]) -> None:
        """Take in state and scores of the change detection after each new block."""

    def wants_estimate(self, stamp: int) -> bool:
        """Return whether an estimate is wanted at a stamp [ns]."""

    def add_estimate(self, estimate: PayloadEstimate) -> None:
        """Take in an estimate."""
