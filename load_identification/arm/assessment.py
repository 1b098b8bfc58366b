"""What an estimate of an arm is worth: data that were not fitted, predicted and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.methods.acceleration_free import low_passed_rows, settled_samples
from load_identification.arm.methods.least_squares import motion_rows
from load_identification.arm.recording import ArmRecording, FilteredRecording, filtered
from load_identification.arm.settings import Settings
from load_identification.errors import RecordingError
from load_identification.numerics.weighted_rows import WeightedRows
from load_identification.typing_aliases import FloatArray

SETTLED = 0.95
"""Gain of a constant from which on low-passed values are compared: before, the weight coming in
would pass for range."""

MOST_MASS = 3.0
"""Mass of a link, in units of its nominal one, beyond which it is named [-]."""

MOST_NAMED = 6
"""Parameters in a warning."""

MOST_UNBUILDABLE = 1.6
"""How many times the error of the estimate links that could be built may leave [-]. Of a real arm
they leave 1.0 to 1.3 times as much, and with the sign of its efforts reversed 1.9 to 2.6 times."""

EXACT = 1e-3
"""An error of the estimate below this share says nothing against buildable links [-]."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Efforts or wrenches that were not fitted, measured and predicted, behind one filter.

    Attributes
    ----------
    source : str
        What the samples are, in words.
    channels, units : tuples of str
        Of the k columns.
    seconds : (n,) array
        Since the beginning of the recording [s].
    measured, predicted : (n, k) arrays
        NaN where nothing was measured.
    consistent, nominal : (n, k) arrays
        Predicted by the consistent links with the same drives or offsets, and by the links of the
        description without any drives.
    """

    source: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    seconds: FloatArray
    measured: FloatArray
    predicted: FloatArray
    consistent: FloatArray
    nominal: FloatArray

    def rms(self, values: FloatArray) -> FloatArray:
        """Return the root mean square of columns (n, k) where there is a measurement, (k,)."""
        present = np.isfinite(self.measured)
        total = np.sum(np.where(present, values, 0.0) ** 2, axis=0)
        return np.asarray(np.sqrt(total / np.maximum(present.sum(axis=0), 1)))

    def of_range(self, values: FloatArray) -> FloatArray:
        """Return the rms error of values (n, k) as a share of the range measured, (k,) [-].

        NaN for a channel that has no range, as a joint that always stood.
        """
        columns = (column[np.isfinite(column)] for column in self.measured.T)
        span = np.array([np.ptp(column) if column.size else 0.0 for column in columns])
        error = self.rms(self.measured - values)
        return np.asarray(np.divide(error, span, out=np.full(len(span), np.nan), where=span > 0.0))

    def relative_error(self, values: FloatArray) -> float:
        """Return the norm of the error of all channels as a share of what was measured [-]."""
        return relative_error(self.measured, values)


def relative_error(measured: FloatArray, predicted: FloatArray) -> float:
    """Return the norm of the error of all channels as a share of that measured [-].

    Rows that were not measured (NaN) do not count.
    """
    present = np.isfinite(measured)
    difference = (measured - predicted)[present]
    return float(np.linalg.norm(difference) / np.linalg.norm(measured[present]))


def predict(
    estimate: ArmEstimate, recordings: Sequence[ArmRecording], settings: Settings, source: str
) -> Prediction:
    """Predict recordings, both sides through the same filter.

    Efforts go through the filter that the arm model is used with, whatever the method; those of a
    joint at rest, where friction may be anything, are left out.

    Parameters
    ----------
    estimate : ArmEstimate
    recordings : sequence of ArmRecording
    settings : Settings
    source : str
        What they are, in words.

    Raises
    ------
    RecordingError
        If they are too short for the filter.
    """
    if settings.method != 'acceleration_free' or isinstance(estimate.model, ArmModel):
        return predict_motion(estimate, filtered(recordings, settings.cutoff), source)
    (rows,) = low_passed_rows([estimate.model], estimate.base, recordings, settings.bandwidths)
    each = [settled_samples(one, settings.bandwidths) for one in recordings]
    seconds, gain = (np.concatenate(arrays) for arrays in zip(*each, strict=True))
    used = gain >= SETTLED
    if not used.any():
        raise RecordingError(f'{source}: {seconds[-1]:.2f} s are too short for the low-pass')
    return _prediction(
        estimate, WeightedRows(rows.matrix[used], rows.values[used]), seconds[used], source
    )


def predict_motion(estimate: ArmEstimate, log: FilteredRecording, source: str) -> Prediction:
    """Predict filtered motion."""
    (rows,) = motion_rows([estimate.model], estimate.base, log)
    return _prediction(estimate, rows, log.seconds, source)


def _prediction(
    estimate: ArmEstimate, rows: WeightedRows, seconds: FloatArray, source: str
) -> Prediction:
    model, to_base = estimate.model, estimate.base.to_base
    nominal = rows.matrix @ to_base(model.nominal)
    if not isinstance(model, ArmModel):
        # The offset of a sensor is nowhere in a description: that with which the links fit best.
        nominal = nominal + np.mean(rows.values - nominal, axis=0)
    return Prediction(
        source=source,
        channels=model.channels,
        units=model.channel_units,
        seconds=seconds,
        measured=rows.values,
        predicted=rows.matrix @ estimate.values,
        consistent=rows.matrix @ to_base(estimate.consistent),
        nominal=nominal,
    )


def verdict(estimate: ArmEstimate, prediction: Prediction, method: str) -> tuple[bool, list[str]]:
    """Tell whether an arm is identified, and if not, why and what to do."""
    warnings = []
    cure = 'plan a motion by plan_excitation'
    if method == 'sequential':
        cure = f'take --method least_squares, which asks all joints at once, or {cure}'
    unresolved = [estimate.names[i] for i in estimate.base.independent[~np.isfinite(estimate.std)]]
    if unresolved:
        more = f' and {len(unresolved) - MOST_NAMED} more' if len(unresolved) > MOST_NAMED else ''
        warnings.append(
            f'of {len(estimate.values)} combinations {len(unresolved)} are not resolved by this '
            f'motion and method, those of {", ".join(unresolved[:MOST_NAMED])}{more}; {cure}'
        )
    warnings += _unlikely_masses(estimate)
    measured, own = prediction.measured, prediction.predicted
    worse = prediction.rms(measured - own) > prediction.rms(measured - prediction.nominal)
    if worse.all():
        warnings.append('what was not fitted is predicted no better than by the description')
    elif worse.any():
        names = [n for n, w in zip(prediction.channels, worse, strict=True) if w]
        warnings.append(f'{", ".join(names)}: predicted no better than by the description')
    error, built = map(prediction.relative_error, (own, prediction.consistent))
    unbuildable = built > MOST_UNBUILDABLE * max(error, EXACT)
    if unbuildable:
        warnings.append(
            'no links that could be built explain the data as well as the estimate: they leave '
            f'{100.0 * built:.3g} % of what was not fitted, the estimate {100.0 * error:.3g} %; '
            'is the sign of efforts or wrench reversed?'
        )
    useless = not error < 1.0
    if useless:
        warnings.append(
            f'what was not fitted is predicted with an error of {100.0 * error:.3g} % of its '
            'size, no better than by zero; was it recorded on the same arm, with the same load?'
        )
    return not (unresolved or worse.all() or unbuildable or useless), warnings


def _unlikely_masses(estimate: ArmEstimate) -> list[str]:
    """Say which links have no nominal mass, and which are much heavier than that."""
    out = []
    arm = estimate.model.arm
    both = list(zip(arm.bodies, estimate.bodies[:, 0], arm.nominal[:, 0], strict=True))
    unknown = [name for name, _, nominal in both if nominal <= 0.0]
    if unknown:
        out.append(f'the description has no mass of {", ".join(unknown)}: it is drawn to none')
    heavy = [
        f'{name} ({mass:.3g} kg, nominal {nominal:.3g})'
        for name, mass, nominal in both
        if 0.0 < MOST_MASS * nominal < mass
    ]
    if heavy:
        out.append(f'heavier than {MOST_MASS:g} times the description: {", ".join(heavy)}')
    return out
