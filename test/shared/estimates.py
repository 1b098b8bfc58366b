"""What a stage has found, which must be there, and how far it is off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.typing_aliases import FloatArray

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


def errors_of(estimate: PayloadEstimate, load: InertialParameters) -> FloatArray:
    """Return the errors of what is identified, in standard deviations (k,)."""
    known, truth = estimate.identified, to_message_order(load.to_vector())
    return (estimate.values - truth)[known] / estimate.std[known]


def claims(
    estimator: PayloadEstimator,
    batches: Iterable[FilteredBatch],
    load: InertialParameters,
    since: float = 0.0,
) -> Iterator[tuple[float, FloatArray]]:
    """Carry batches through an estimator; yield time [s] and `errors_of` after each since then."""
    for batch in batches:
        estimator.update(batch)
        now = 1e-9 * estimator.newest
        estimate = estimator.estimate() if now > since else None
        if estimate is not None:
            yield now, errors_of(estimate, load)
