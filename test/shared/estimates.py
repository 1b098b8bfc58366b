"""What a stage has found, which must be there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch

Value = TypeVar('Value')


def not_none(value: Value | None) -> Value:
    assert value is not None
    return value


def estimated(
    estimator: PayloadEstimator, batches: Iterable[FilteredBatch] = ()
) -> PayloadEstimate:
    """Carry batches through an estimator; return its estimate after them."""
    for batch in batches:
        estimator.update(batch)
    return not_none(estimator.estimate())
