"""From recordings of an arm to its parameters, and a test on data that were not fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.assessment import verdict
from load_identification.arm.dynamics.base_parameters import arm_base_parameters
from load_identification.arm.dynamics.rows import ArmModel, Model
from load_identification.arm.filtering import (
    FilteredRecording,
    check_moving,
    filtered,
    without_reversals,
)
from load_identification.arm.fit import identify_rows, likeliest, told_under_load
from load_identification.arm.methods.acceleration_free import low_passed_rows
from load_identification.arm.methods.drive_gains import Loaded, identify_loaded, poor_gains
from load_identification.arm.methods.least_squares import LEAST_SHARE, joint_stages, motion_rows
from load_identification.arm.methods.spectrum import inside, planned_windows, spectrum_stages
from load_identification.arm.planning.plan_file import ExperimentPlan
from load_identification.arm.prediction import Prediction, predict, predict_motion
from load_identification.arm.recording import Recording
from load_identification.arm.selection import choose
from load_identification.arm.settings import Settings
from load_identification.arm.slow_errors import slow_errors
from load_identification.errors import RecordingError
from load_identification.typing_aliases import FloatArray

FITTED_SHARE = 2.0 / 3.0
"""Of the data, where there is no held-out recording: what comes first."""

MOST_LAG = 0.1
"""Of published velocities that are taken as they are, in intervals of the samples [-]."""

SHORTEST_PIECE = 2.0
"""Of a recording, to be fitted or predicted [s]."""


@dataclass(frozen=True, eq=False)
class Session:
    """An estimate, and what it is worth."""

    estimate: ArmEstimate
    prediction: Prediction
    """Of data that were not fitted."""
    settings: Settings
    """As used."""
    fitted: str
    method: str
    """In words."""
    identified: bool
    """Whether all is determined, the prediction is better than that of the description, and the
    physically consistent links predict nearly as well."""
    warnings: tuple[str, ...]

    @property
    def excess(self) -> float:
        """Mean square of what is left of data that were not fitted, in noises of the fit [-]."""
        left = self.prediction.rms(self.prediction.measured - self.prediction.consistent)
        noise = np.where(self.estimate.noise > 0.0, self.estimate.noise, np.inf)
        return max(1.0, float(np.mean((left / noise) ** 2)))

    @property
    def slow(self) -> FloatArray:
        """Standard deviation of the slow error of each joint torque, (k,) [N m, N].

        That of data that were not fitted, or under the load of `--loaded` if it is larger there;
        NaN if neither tells.
        """
        p, gains = self.prediction, self.estimate.gains
        left = np.where(False if p.reversing is None else p.reversing, np.nan, p.measured)
        found = slow_errors(p.seconds, left - p.consistent)
        return found if gains is None else np.fmax(found, gains.slow)


def identify_and_test(
    model: Model,
    recordings: Sequence[Recording],
    held_out: Recording | None,
    settings: Settings,
    loaded: Loaded | None = None,
) -> Session:
    """Identify an arm, and predict what was not fitted.

    Not fitted are the recording held out, or the ways between the experiments of a plan, or the
    last third of the data. Of a plan there is one recording. With one of the arm loaded, drive
    gains are identified too, and efforts are in a unit of each drive's own; of efforts and
    `least_squares` alone.

    Raises RecordingError or ParameterError where they cannot be used, or tell nothing.
    """
    fit, test = list(recordings), [held_out] if held_out is not None else []
    source = held_out.source if held_out is not None else 'the last third of the data'
    if held_out is None and settings.plan is None:
        fit, test = split(recordings, FITTED_SHARE)
    every = [*fit, *test, *([loaded.recording] if loaded is not None else [])]
    factors = {
        name: factor
        for one in every
        for name, factor in one.velocity_factors.items()
        if name in model.arm.joints
    }
    free = settings.method == 'acceleration_free'
    lag = _lag(every) if free and not factors else 0.0
    if factors or lag:
        fit, test, loaded = _without_velocities(fit, test, loaded)
    odd, late, unsure = None, '', ''
    if settings.cutoffs:
        known = fit
        if loaded is not None:
            # Nothing can be compared before the joints agree on what a newton metre is.
            scale = identify(model, fit, settings, loaded).effort_scale
            known = [one.scaled(scale) for one in fit]
        choice = choose(model, known, settings)
        model, odd, late, unsure = choice.model, choice.odd, choice.late, choice.unsure
        settings = replace(settings, cutoff=choice.cutoff, velocities=choice.velocities)
    if not settings.velocities:
        fit, test, loaded = _without_velocities(fit, test, loaded)
    estimate = identify(model, fit, settings, loaded)

    def predicted(scale: FloatArray) -> Prediction:
        if test or settings.plan is None:
            scaled = [one.scaled(scale) for one in test]
            return predict(estimate, scaled, settings, source)
        between = _between(settings.plan, fit[0].scaled(scale), settings.bandwidth)
        words = 'the ways between the experiments'
        return predict_motion(estimate, [between], words, settings.bandwidth)

    prediction = predicted(estimate.effort_scale)
    check_moving(prediction.measured, prediction.source)
    if odd is not None:
        # Of gravity efforts tell once they go together.
        prediction = replace(prediction, gravity=predicted(estimate.effort_scale / odd).gravity)
    identified, warnings = verdict(estimate, prediction, settings.method, odd)
    if lag:
        settings = replace(settings, velocities=False)
    method = _method(estimate, settings, lag)
    if late and loaded is None:
        identified, warnings = False, [late, *warnings]
    if unsure and loaded is None:
        warnings.append(unsure)
    if factors:
        # The driver will publish them to whatever weighs, too.
        settings = replace(settings, velocities=False)
        words = ', '.join(f'of {name} {factor:.3g} times' for name, factor in factors.items())
        warnings.append(
            f'published velocities left out: those {words} the derivative of the position; are '
            'they in degrees, or in another unit than the positions?'
        )
    seconds = sum(float(one.seconds[-1] - one.seconds[0]) for one in fit)
    kind = 'joint states' if isinstance(model, ArmModel) else 'wrenches'
    fitted = f'{sum(len(one.stamps) for one in fit)} {kind} in {seconds:.1f} s'
    if loaded is not None:
        fitted += f', {loaded.recording.seconds[-1]:.1f} s with {loaded.mass:g} kg'
    if settings.plan is not None:
        fitted = f'{len(settings.plan.experiments)} experiments in {seconds:.1f} s'
    session = Session(estimate, prediction, settings, fitted, method, identified, tuple(warnings))
    poor = poor_gains(estimate, session.excess)
    return replace(session, identified=False, warnings=(poor, *warnings)) if poor else session


def split(
    recordings: Sequence[Recording], share: float
) -> tuple[list[Recording], list[Recording]]:
    """Split samples in the order of the recordings: a share that is fitted, and what is not.

    A piece too short for the filters to settle is in neither.

    Raises RecordingError if one of the two has nothing.
    """
    left = round(share * sum(len(one.stamps) for one in recordings))
    fit: list[Recording] = []
    rest: list[Recording] = []
    for one in recordings:
        total = len(one.stamps)
        count = min(left, total)
        left -= count
        for kept, first, last in ((fit, 0, count), (rest, count, total)):
            if last > first and one.seconds[last - 1] - one.seconds[first] > SHORTEST_PIECE:
                kept.append(one.part(slice(first, last)))
    if not fit or not rest:
        raise RecordingError(
            f'two thirds to identify from and one third to predict must last {SHORTEST_PIECE:g} s '
            'each at least; record longer, or give --held-out'
        )
    return fit, rest


def identify(
    model: Model, recordings: Sequence[Recording], settings: Settings, loaded: Loaded | None = None
) -> ArmEstimate:
    """Identify an arm as `identify_and_test` does, with one cutoff.

    Raises RecordingError if they cannot be filtered, or lack what the method needs; ParameterError
    where there are too few rows.
    """
    estimate = _identified(model, recordings, settings, loaded)
    if isinstance(model, ArmModel) and model.drive.load_friction:
        # A joint bears the links identified, as in the arm model, and the load found with them.
        model = model.bearing(estimate.consistent[model.links])
        if loaded is not None and estimate.gains is not None:
            loaded = replace(loaded, others=estimate.gains.load[1:])
        estimate = _identified(model, recordings, settings, loaded)
        # Without one that is not determined, those of other joints change, if little.
        while model.drive.load_friction:
            told = model.under_load & told_under_load(estimate, model)
            if np.array_equal(told, model.under_load):
                break
            model = model.with_friction_under_load(told)
            estimate = _identified(model, recordings, settings, loaded)
    return estimate


def _identified(
    model: Model, recordings: Sequence[Recording], settings: Settings, loaded: Loaded | None = None
) -> ArmEstimate:
    """Identify an arm whose joints bear what the model says; residuals choose its transition."""
    models, base = _candidates(model, settings), arm_base_parameters(model)
    free = settings.method == 'acceleration_free'
    if free and model.one_sensor:
        rows, *_ = low_passed_rows(model, base, recordings, settings.bandwidths)
        return identify_rows(models, base, lambda _: [rows], settings.solver)
    log = without_reversals(model, filtered(recordings, settings.cutoff), settings.cutoff)
    if free:
        rows_of = motion_rows(model, base, log)
        model = likeliest(models, base, lambda each: [rows_of(each)], settings.solver)
        del rows_of
        rows, *_ = low_passed_rows(model, base, recordings, settings.bandwidths)
        estimate = identify_rows([model], base, lambda _: [rows], settings.solver)
        # What the arm model says of noise holds behind the filter that it is used with.
        left = model.measured(log.motion, log.measured) - estimate.predict(log.motion)
        power, count = np.nansum(left**2, axis=0), np.isfinite(left).sum(axis=0)
        return replace(estimate, noise=np.sqrt(power / np.maximum(count, 1)))
    arms = [each for each in models if isinstance(each, ArmModel)]
    if settings.plan is not None and arms:
        stages_of = spectrum_stages(model, base, settings.plan, recordings[0], log)
        return identify_rows(models, base, stages_of, settings.solver)
    if loaded is not None and arms:
        carrying = filtered([loaded.recording], settings.cutoff)
        carrying = without_reversals(model, carrying, settings.cutoff)
        return identify_loaded(arms, base, log, carrying, np.append(loaded.mass, loaded.others))
    return identify_motion(model, log, settings)


def identify_motion(model: Model, log: FilteredRecording, settings: Settings) -> ArmEstimate:
    """Identify an arm from motion with accelerations, by `least_squares` or `sequential`.

    Raises ParameterError for too few rows.
    """
    models, base = _candidates(model, settings), arm_base_parameters(model)
    rows_of = motion_rows(model, base, log)
    if settings.method != 'sequential':
        return identify_rows(models, base, lambda each: [rows_of(each)], settings.solver)
    solver = replace(settings.solver, truncation=LEAST_SHARE)
    return identify_rows(models, base, lambda each: joint_stages(rows_of(each)), solver)


def _candidates(model: Model, settings: Settings) -> list[Model]:
    """Return the model with each transition velocity that friction may have."""
    velocities = settings.transition_velocities
    if not isinstance(model, ArmModel) or model.drive.coulomb == 'none' or not velocities:
        return [model]
    return [model.with_transition(velocity) for velocity in velocities]


def _between(plan: ExperimentPlan, recording: Recording, bandwidth: float) -> FilteredRecording:
    """Return what is further from the experiments than the filter reaches."""
    log = filtered([recording], bandwidth)
    windows = planned_windows(plan, recording)
    outside = ~inside(log.seconds, windows, 2.0 / bandwidth)
    if not outside.any():
        raise RecordingError(
            f'in {recording.source} there is nothing between the experiments to predict; give '
            '--held-out'
        )
    return log.select(outside)


def _without_velocities(
    fit: list[Recording], test: list[Recording], loaded: Loaded | None
) -> tuple[list[Recording], list[Recording], Loaded | None]:
    """Return all data as if no velocities had been published."""
    fit, test = ([one.without_velocities() for one in each] for each in (fit, test))
    if loaded is not None:
        loaded = replace(loaded, recording=loaded.recording.without_velocities())
    return fit, test, loaded


def _lag(recordings: Sequence[Recording]) -> float:
    """Return how late the published velocities of any recording are, if not in time [s].

    Differences to the sample before are late by half an interval. A fit that differentiates them
    weighs them against the positions; one that does not takes them as they are.
    """
    for one in recordings:
        step = 1e-9 * float(np.median(np.diff(one.stamps)))
        if one.has_velocities and abs(one.velocity_lag) > MOST_LAG * step:
            return one.velocity_lag
    return 0.0


def _method(estimate: ArmEstimate, settings: Settings, lag: float) -> str:
    """Return the method in words; the lag is that of velocities that were not used for it [s]."""
    words = f'{settings.method}, cutoff {settings.cutoff:g} Hz'
    if settings.method == 'acceleration_free':
        l, d = settings.bandwidths
        words = f'{settings.method}, low-passes of {l:g} and {d:g} rad/s'
    if not settings.velocities:
        reason = f'they are {1e3 * lag:.2g} ms late' if lag else 'they predict worse'
        words += f', published velocities left out: {reason}'
    level = f'gravity {" ".join(f"{g:.3f}" for g in estimate.model.arm.gravity)} m/s²'
    if not isinstance(estimate.model, ArmModel):
        return f'{words}; {level}'
    drive, bears = estimate.model.drive, estimate.model.under_load
    little = [name for name, some in zip(estimate.model.channels, bears, strict=True) if not some]
    but = f' (but of {", ".join(little)}: too little is borne there to tell)' if little else ''
    chosen = {
        f'a Stribeck term of {drive.stribeck_velocity:g} rad/s or m/s': drive.stribeck_velocity,
        f'friction in proportion to the load{but}': drive.load_friction,
        'cables and hoses as springs': drive.stiffness,
    }
    more = ''.join(f', {name}' for name, taken in chosen.items() if taken)
    return (
        f'{words}; Coulomb friction changes its sign over {drive.transition_velocity:g} rad/s or '
        f'm/s, {drive.viscous} slopes{more}; {level}'
    )
