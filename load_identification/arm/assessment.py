"""What an estimate of an arm is worth: data that were not fitted, predicted and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from load_identification.arm.agreement import LIKELY, in_words
from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.dynamics.rows import ArmModel, Model
from load_identification.arm.filtering import FilteredRecording, filtered, low_passed
from load_identification.arm.methods.acceleration_free import low_passed_rows
from load_identification.arm.methods.least_squares import motion_rows, pieces
from load_identification.arm.recording import Recording
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

MOST_MISFIT = 2.0
"""Of physically consistent links, per combination, in standard deviations [-]. Real arms have
0.5 to 1.6, under gravity reversed or halved 2.2 to 4, and with their efforts reversed 6 to 40."""

EXACT = 1e-3
"""Share of what was measured, up to which physically consistent links explain it whatever the
intervals are, and the least by which they are to predict worse than the estimate [-]."""

WIDER = 2.0
"""Bandwidth of the motion that predictions are made of, in units of theirs [-]."""

LEAST_WEIGHT = 0.05
"""Torque of the description's weight, as a share of the efforts, that tells of gravity [-]."""

STANDARD_GRAVITY = 9.80665

MUCH_WORSE = 1.25
"""Error of one channel of a sensor, in units of that of the description or of an offset alone,
from which on it is named by itself. All channels tell of the same links, and cross-talk, which
neither knows, may favour either in one of them [-]."""

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
    parts = []
    for log in logs:
        rows_of = motion_rows(estimate.model, estimate.base, log)
        rows, gain = rows_of(estimate.model), np.ones(len(log.seconds))
        wide = _prediction(estimate, rows, log.seconds, source, gain)
        del rows_of, rows
        three = np.hstack([wide.predicted, wide.consistent, wide.nominal])
        smooth, values = low_passed(log, three, bandwidth)
        measured = estimate.model.measured(smooth.motion, smooth.measured)
        parts.append((smooth.seconds, measured, *np.split(values, 3, axis=1)))
    joined = map(np.concatenate, zip(*parts, strict=True))
    arrays: dict[str, Any] = dict(zip(SAMPLES, joined, strict=True))
    gravity = _shown_gravity(estimate.model, logs)
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


def verdict(
    estimate: ArmEstimate, prediction: Prediction, method: str, odd: FloatArray | None
) -> tuple[bool, list[str]]:
    """Tell whether an arm is identified, and if not, why and what to do; `odd` as in `Choice`."""
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
    causes = _unexplained(estimate, prediction, odd)
    unusable = _unusable(prediction, estimate.model.one_sensor)
    if unusable and not causes:
        unusable[-1] += '; was it recorded on the same arm, with the same load?'
    return not (unresolved or causes or unusable), [*causes, *unusable, *warnings]


def _unusable(prediction: Prediction, one_sensor: bool) -> list[str]:
    """Say which channels, or all, what is written predicts no better than others do."""
    out, measured = [], prediction.measured
    # As good as exact is good enough.
    least = np.maximum(EXACT * prediction.rms(measured), np.finfo(float).tiny)
    written = np.maximum(prediction.rms(measured - prediction.consistent), least)
    most, nothing = 1.0, np.zeros_like(measured)
    bare = 'with an error of more than 100 %, no better than by zero'
    if one_sensor:
        # All predictions of a sensor have an offset.
        most, nothing = MUCH_WORSE, nothing + np.mean(measured, axis=0)
        bare = 'no better than by an offset alone'
    for known, words in (
        (prediction.nominal, 'no better than by the description'),
        (nothing, bare),
    ):
        ratios = written / np.maximum(prediction.rms(measured - known), least)
        # Each channel by its own scale: N and N m do not add up.
        if np.sum(np.log(ratios)) > 0.0:
            out.append(f'what was not fitted is predicted {words}')
        elif np.any(ratios > most):
            names = [n for n, r in zip(prediction.channels, ratios, strict=True) if r > most]
            out.append(f'{", ".join(names)}: predicted {words}')
    return out


def _unexplained(
    estimate: ArmEstimate, prediction: Prediction, odd: FloatArray | None
) -> list[str]:
    """Say what is wrong where no physically consistent links, or none so heavy, explain all."""
    both = (prediction.predicted, prediction.consistent)
    error, built = (relative_error(prediction.measured, each) for each in both)
    out: list[str] = []
    inconsistent = estimate.misfit > MOST_MISFIT and built > error + EXACT
    if inconsistent:
        out.append(
            'no physically consistent links explain the data: the nearest are '
            f'{estimate.misfit:.2g} standard deviations off per combination; those written leave '
            f'{100.0 * built:.3g} % of what was not fitted, the estimate {100.0 * error:.3g} %'
        )
    cause = _cause(estimate, prediction.gravity)
    if odd is not None and not cause:
        cause = in_words(odd, prediction.channels)
    if cause:
        out.insert(0, cause)
    elif inconsistent:
        out[-1] += '; is the sign of efforts or wrench reversed, or the description another arm?'
    return out


def _cause(estimate: ArmEstimate, shown: FloatArray | None) -> str:
    """Say how efforts and the weight of the description's links disagree, if they do."""
    given, model = estimate.model.arm.gravity, estimate.model
    if shown is None or not isinstance(model, ArmModel):
        return ''
    size, found = float(np.linalg.norm(given)), float(np.linalg.norm(shown))
    share = float(shown @ given) / size**2
    written = f'({" ".join(f"{g:.3g}" for g in shown)}) m/s²'
    known = f'the weight of the description explains the efforts best under the gravity {written}'
    aside = share * size < 0.8 * found
    if share < 0.0 and not share * size > -0.8 * found:
        levels = ['.coulomb' in estimate.names[i] for i in estimate.base.independent]
        if estimate.values[levels].sum() < 0.0:
            return f'{known}, and friction is negative: is the sign of the efforts reversed?'
        return f'{known}: is --gravity, that in the root frame as mounted, reversed?'
    if aside and abs(found / size - 1.0) < 0.4:
        return f'{known}: is --gravity that in the root frame as the arm is mounted?'
    if LIKELY[0] < share < LIKELY[1]:
        return ''
    if estimate.gains is not None:
        return (
            f'with these gains the arm weighs {share:.2g} times what its description says: is '
            f'--load-mass, {estimate.gains.load[0]:g} kg, that of the load?'
        )
    if abs(size / STANDARD_GRAVITY - 1.0) > 0.1:
        return f'{known}; --gravity is {size:.3g} m/s², {1.0 / share:.2g} times as much'
    return (
        f'the efforts are {share:.2g} times the weight of the description: '
        f'{"does the arm carry what it lacks, or " if share > 1.0 else ""}are they motor '
        'currents, or in another unit than N·m? --effort-scale turns them into N·m, and --loaded '
        'finds by how much'
    )


def _unlikely_masses(estimate: ArmEstimate) -> list[str]:
    """Say which links have no nominal mass, and which are much heavier than that."""
    out, arm = [], estimate.model.arm
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
