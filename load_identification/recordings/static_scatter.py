"""How much poses at rest scatter, and the estimate that follows from them.

With one average per pose, no scatter of samples separates noise, drift of the offset and errors
that depend on the pose: those count that make the poses likely.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.estimation import drift
from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

NOISIER = (3.0, 9.0, 27.0, 81.0)
"""Factors by which the wrench averages may be noisier than expected [-]."""

LARGER = (1.0, 3.0, 6.0, 10.0)
"""Factors by which errors that depend on the pose may be larger than expected, or not [-]."""

MOST_LOST = 0.3
"""Largest share of a weight that play may hide [-]."""


def likeliest(settings: EstimatorSettings, batch: FilteredBatch) -> PayloadEstimator:
    """Estimate with the offset drift and the noise that are likely, and errors as in `settings`.

    Parameters
    ----------
    settings : EstimatorSettings
        With noise and errors of an ordinary cell.
    batch : FilteredBatch
        One sample for each pose.
    """
    steady = replace(settings, force_drift=0.0, torque_drift=0.0)
    best = _estimated(steady, batch)
    if best.misfit.suspicion:
        # Nothing is claimed: the estimate with the cell's errors is the most informative.
        return best
    best = _likelier(best, _estimated(settings, batch))
    for times in NOISIER:
        force, torque = times * settings.noise
        other = _estimated(replace(best.settings, force_noise=force, torque_noise=torque), batch)
        if _likelier(best, other) is best:
            break
        best = other
    return best


def widened(
    ordinary: PayloadEstimator, expected: FloatArray, batch: FilteredBatch
) -> PayloadEstimator:
    """Return the estimate with errors of the sensor as large as the poses allow.

    Play is mostly seen as scatter, but it also makes every load seem lighter, and how the sensor
    came to a pose is not known. So the gain may err by as much as poses scatter, and the largest
    field counts that is likelier than that of an ordinary cell.

    Parameters
    ----------
    ordinary : PayloadEstimator
        With the errors of an ordinary cell, see `likeliest`.
    expected : (2,) array
        Noise of an average [N, N m]; what is found beyond it is scatter of the poses.
    batch : FilteredBatch
    """
    found = ordinary.settings
    if ordinary.misfit.suspicion or not found.errors.field.any():
        return ordinary
    scatter = np.where(found.noise > expected, found.noise, 0.0)
    if batch.whitening.size:
        each = np.linalg.norm(batch.whitening, axis=2)
        known = np.where(each > 0.0, each, np.inf).reshape(-1, 2, 3)
        scatter = scatter / np.median(known, axis=(0, 2))
    belief, _ = ordinary.state
    weight = STANDARD_GRAVITY * max(float(belief.values[belief.model.body][0]), 0.0)
    lost = min(scatter[0] / max(weight, 1e-9), MOST_LOST)
    wide = replace(found.errors, gain_common=float(np.hypot(found.errors.gain_common, lost)))
    chosen = ordinary
    for times in LARGER if scatter.any() else LARGER[1:]:
        force, torque = np.maximum(times * found.errors.field, scatter)
        errors = replace(wide, field_force=float(force), field_torque=float(torque))
        other = _estimated(replace(found, errors=errors), batch)
        if times == 1.0 or _likelier(ordinary, other) is other:
            chosen = other
    return chosen


def _likelier(one: PayloadEstimator, other: PayloadEstimator) -> PayloadEstimator:
    return one if _evidence(one) >= _evidence(other) else other


def _evidence(estimator: PayloadEstimator) -> float:
    """Return the log likelihood of all data."""
    belief, _ = estimator.state
    return drift.evidence(belief.scores, belief.model.bank.first)


def _estimated(settings: EstimatorSettings, batch: FilteredBatch) -> PayloadEstimator:
    estimator = PayloadEstimator(settings)
    estimator.update(batch)
    estimator.finish()
    return estimator
