"""What travels from a front of the pipeline to the payload stage, and who may look on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.model.robot import Robot
from load_identification.typing_aliases import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Samples:
    """What a front has made of its input at once.

    Attributes
    ----------
    raw : SynchronizedBatch or None
        Joint states with the raw wrench.
    filtered : FilteredBatch or None
        What has become complete of the filtered motion and wrench.
    robot : Robot or None
        Whose joints carry the sensor; None: not known.
    dead : tuple of bool
        Which channels of the raw wrench are not alive; empty: not known.
    """

    raw: SynchronizedBatch | None = None
    filtered: FilteredBatch | None = None
    robot: Robot | None = None
    dead: tuple[bool, ...] = ()


class Observer(Protocol):
    """Looks on at the payload stage, as a report does."""

    def add_raw(self, stamps: IntArray, wrench: FloatArray) -> None:
        """Take in raw wrenches (n, 6), of the sign of the filtered ones [ns, N, N m]."""

    def pieces(self, batch: FilteredBatch) -> Iterator[FilteredBatch]:
        """Cut a batch into pieces short enough for an estimate to be wanted after each."""

    def add_samples(self, batch: FilteredBatch) -> None:
        """Take in filtered samples, after the estimator has."""

    def add_event(self, stamp: int, words: str) -> None:
        """Take in an event, with its stamp [ns]."""

    def wants_estimate(self, stamp: int) -> bool:
        """Tell whether an estimate is wanted at a stamp [ns]."""

    def add_estimate(self, estimate: PayloadEstimate) -> None:
        """Take in an estimate."""
