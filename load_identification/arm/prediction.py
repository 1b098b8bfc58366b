"""Predict data that were not fitted, by an estimate of an arm and by its description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.dynamics.rows import ArmModel, Model
from load_identification.arm.filtering import (
    FilteredRecording,
    filtered,
    low_passed,
    reversing,
)
from load_identification.arm.methods.acceleration_free import low_passed_rows
from load_identification.arm.methods.least_squares import motion_rows, pieces
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.errors import RecordingError
from load_identification.numerics.weighted_rows import WeightedRows
from load_identification.typing_aliases import BoolArray, FloatArray

SETTLED = 0.95
"""Gain of a constant from which on low-passed values are compared: before, the weight coming in
would pass for range."""

WIDER = 2.0
"""Bandwidth of the motion that predictions are made of, in units of theirs [-]."""

LEAST_WEIGHT = 0.05
"""Torque of the description's weight, as a share of the efforts, that tells of gravity [-]."""

SAMPLES = ('seconds', 'measured', 'predicted', 'consistent', 'nominal')
"""Of a prediction, the arrays of n samples."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Efforts or wrenches that were not fitted, measured and predicted, behind one filter."""

    source: str
    """What the samples are, in words."""
    channels: tuple[str, ...]
    units: tuple[str, ...]
    """Of the k columns."""
    seconds: FloatArray
    """Since the beginning of the recording, (n,) [s]."""
    measured: FloatArray
    predicted: FloatArray
    """NaN where nothing was measured, (n, k)."""
    consistent: FloatArray
    nominal: FloatArray
    """Predicted by the consistent links with the same drives, and by the links of the description
    without any drives, (n, k). All three have the offset of a sensor, of each recording its own,
    with which they explain it best."""
    bandwidth: float | None = None
    """Of both sides [Hz]."""
    reversing: BoolArray | None = None
    """Where friction is unknown, see `filtering.reversing`, (n, k); None: nowhere."""
    gravity: FloatArray | None = None
    """That under which the weight of the description's links explains the efforts best, where that
    is a part of them, (3,) [m/s^2]."""

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


def relative_error(measured: FloatArray, predicted: FloatArray) -> float:
    """Return the norm of the error of all channels as a share of that measured [-].

    Rows that were not measured (NaN) do not count.
    """
    present = np.isfinite(measured)
    difference = (measured - predicted)[present]
    return float(np.linalg.norm(difference) / np.linalg.norm(measured[present]))


def predict(
    estimate: ArmEstimate, recordings: Sequence[Recording], settings: Settings, source: str
) -> Prediction:
    """Predict recordings, both sides through the same filter.

    Efforts go through the filter that the arm model is used with, whatever the method; those of a
    joint at rest, where friction may be anything, are left out. `source` says what the recordings
    are.

    Raises RecordingError if they are too short for the filter.
    """
    if settings.method != 'acceleration_free' or isinstance(estimate.model, ArmModel):
        logs = [filtered([one], WIDER * settings.bandwidth) for one in recordings]
        return predict_motion(estimate, logs, source, settings.bandwidth)
    parts = []
    for one in recordings:
        found = low_passed_rows(estimate.model, estimate.base, [one], settings.bandwidths)
        rows, seconds, gain = found
        used = gain >= SETTLED
        if used.any():
            settled = WeightedRows(rows.matrix[used], rows.values[used])
            parts.append(_prediction(estimate, settled, seconds[used], source, gain[used]))
    if not parts:
        raise RecordingError(f'{source}: {seconds[-1]:.2f} s are too short for the low-pass')
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in SAMPLES
    }
    return replace(parts[0], **arrays)


def predict_motion(
    estimate: ArmEstimate, logs: Sequence[FilteredRecording], source: str, bandwidth: float
) -> Prediction:
    """Predict filtered motion, each of a recording by itself, and low-pass to a bandwidth [Hz]."""
    model, parts = estimate.model, []
    for log in logs:
        rows_of = motion_rows(model, estimate.base, log)
        rows, gain = rows_of(model), np.ones(len(log.seconds))
        wide = _prediction(estimate, rows, log.seconds, source, gain)
        del rows_of, rows
        three = np.hstack([wide.predicted, wide.consistent, wide.nominal])
        smooth, values = low_passed(log, three, bandwidth)
        measured = model.measured(smooth.motion, smooth.measured)
        unknown = reversing(model, smooth, bandwidth)
        parts.append((smooth.seconds, measured, *np.split(values, 3, axis=1), unknown))
    joined = map(np.concatenate, zip(*parts, strict=True))
    arrays: dict[str, Any] = dict(zip((*SAMPLES, 'reversing'), joined, strict=True))
    gravity = _shown_gravity(model, logs)
    return replace(wide, **arrays, bandwidth=bandwidth, gravity=gravity)


def _shown_gravity(model: Model, logs: Sequence[FilteredRecording]) -> FloatArray | None:
    """Return the gravity (3,) under which nominal links explain efforts best, if they show one."""
    if not isinstance(model, ArmModel):
        return None
    columns = np.concatenate([_shares(model, *piece) for log in logs for piece in pieces(log)])
    qd = np.concatenate([model.motors(log.motion[1]) for log in logs])
    measured = np.concatenate([model.measured(log.motion, log.measured) for log in logs])
    parts = []
    for joint, effort in enumerate(measured.T):
        used = np.isfinite(effort)
        if used.any():
            speed = qd[used, joint]
            own = np.column_stack([np.ones_like(speed), np.sign(speed), speed])
            both = np.column_stack([columns[used, joint], effort[used]])
            # What friction and an offset explain says nothing of weight.
            parts.append(both - own @ np.linalg.lstsq(own, both, rcond=None)[0])
    if not parts:
        return None
    both = np.concatenate(parts)
    whole, efforts = both[:, :-1], both[:, -1]
    weight = float(np.linalg.norm(whole[:, :3] @ model.arm.gravity))
    found = np.asarray(np.linalg.lstsq(whole, efforts, rcond=1e-3)[0][:3])
    shown = max(weight, float(np.linalg.norm(whole[:, :3] @ found)))
    enough = shown > LEAST_WEIGHT * float(np.linalg.norm(efforts))
    return found if weight > 0.0 and enough else None


def weights(model: Model, q: FloatArray, links: FloatArray, directions: FloatArray) -> FloatArray:
    """Return what 1 m/s^2 in each direction (d, 3) adds to links (10 J,), (n, k, d)."""
    still, models = np.zeros_like(q), map(model.with_gravity, directions)
    return np.stack([each.link_rows(q, still, still) @ links for each in models], axis=2)


def _shares(model: Model, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Return what nominal links weigh under 1 m/s^2 along each axis, and inertia, (n, k, 4)."""
    nominal = model.nominal[model.links]
    inertial = model.with_gravity(np.zeros(3)).link_rows(q, qd, qdd) @ nominal
    return np.dstack([weights(model, q, nominal, np.eye(3)), inertial])


def _prediction(
    estimate: ArmEstimate, rows: WeightedRows, seconds: FloatArray, source: str, gain: FloatArray
) -> Prediction:
    """Predict one recording, filters passing a gain (n,) of a constant."""
    model, to_base = estimate.model, estimate.base.to_base
    known = (estimate.values, to_base(estimate.consistent), to_base(model.nominal))
    three = [rows.matrix @ values for values in known]
    if not isinstance(model, ArmModel):
        # The offset of a sensor is nowhere in a description, and of each recording another one:
        # for all of them that with which they explain it best.
        share = gain / (gain @ gain)
        three = [each + np.outer(gain, share @ (rows.values - each)) for each in three]
    predicted, consistent, nominal = three
    return Prediction(
        source=source,
        channels=model.channels,
        units=model.channel_units,
        seconds=seconds,
        measured=rows.values,
        predicted=predicted,
        consistent=consistent,
        nominal=nominal,
    )
