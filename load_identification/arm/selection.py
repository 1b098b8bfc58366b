"""Which filter, effects of the drives, tilt: by pieces of the data that a fit has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from load_identification.arm.agreement import (
    Pieces,
    clearly_better,
    disagreement,
    earlier,
    late_in_words,
    lateness,
    unsure,
)
from load_identification.arm.dynamics.base_parameters import arm_base_parameters
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel, Model
from load_identification.arm.filtering import (
    FilteredRecording,
    filtered,
    filtered_by,
    low_passed,
    low_passed_alone,
    without_reversals,
)
from load_identification.arm.methods.least_squares import pieces
from load_identification.arm.prediction import WIDER, weights
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.interface.batches import joined
from load_identification.numerics.nearest_links import nearest_links
from load_identification.numerics.triangle import triangular
from load_identification.numerics.weighted_solution import BLOCKS
from load_identification.typing_aliases import FloatArray

CUTOFFS = (10.0, 7.0, 14.0, 5.0, 20.0)
"""From which that of the fit is chosen, the first unless another is clearly better [Hz]."""

BANDWIDTH = 10.0
"""At which predictions are compared, and tested in the end [Hz]."""

STRIBECK_VELOCITIES = (0.1, 0.05, 0.2, 0.4)
"""Over which friction falls to its Coulomb level, if it does [rad/s, m/s]."""

TRANSITIONS = (0.03, 0.01, 0.1)
"""Transition velocities of friction to compare drives with [rad/s, m/s]."""

ROTORS = (
    'the links explain the efforts far better with the inertia of rotors, which torques or '
    'currents of motors contain: give --rotor-inertia'
)
"""Said where efforts without them would seem to be early."""

MOST = 6000
"""Samples are thinned to as many."""

LEAST_TILT, MOST_TILT = 0.01, 0.1
"""Share of gravity across that given: below half a degree an arm stands plumb, beyond six another
gravity was given than there is [-]."""

TILT_STD = 0.35
"""Of gravity in each direction across that given: two degrees [m/s^2]."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What the data are explained by."""

    model: Model
    cutoff: float
    """Of the low-pass that is fitted behind [Hz]."""
    velocities: bool = True
    """Whether published joint velocities are used, or positions alone."""
    tilted: bool = False
    """Whether gravity is taken to be off the direction given, for few arms stand plumb."""
    odd: FloatArray | None = None
    """What the efforts of each joint are of those that the others ask for, where any is far from
    one, (k,)."""
    late: str = ''
    unsure: str = ''
    """How late the efforts seem, or that rotors are in them, and which joints could be odd without
    notice; in words."""


def choose(model: Model, recordings: Sequence[Recording], settings: Settings) -> Choice:
    """Choose effects of the drives, tilt, cutoff, whether velocities are used: one by one.

    What is compared is the error on the pieces left out, at one bandwidth for all. Something else
    than the simplest is taken where the sum of the logarithms of each channel's rms is better by
    `CLEAR` standard errors over the folds, and the error of all channels together is no larger.
    Friction at low speed and under load must also predict velocity reversals, which are not
    fitted: close to them it would fit what the filter has left of the step.

    The model has symmetric friction. Where planned experiments alone are fitted, they may lack low
    speeds.
    """
    trial = _Trial(model, recordings, settings)
    kept = Choice(model, settings.cutoffs[0])
    if isinstance(model, ArmModel):
        odd, late, words = trial.odd(_with_drive(kept, stiffness=True))
        kept = replace(kept, odd=odd, late=late, unsure=words)
        kept = trial.best([kept, _with_drive(kept, stiffness=True)])
    if model.arm.gravity.any():
        kept = trial.best([kept, replace(kept, tilted=True)])
    if isinstance(model, ArmModel) and model.drive.viscous == 'symmetric':
        kept = trial.best([kept, _with_drive(kept, viscous='asymmetric')])
    kept = trial.best([replace(kept, cutoff=cutoff) for cutoff in settings.cutoffs])
    if any(one.has_velocities for one in recordings):
        kept = trial.best([kept, replace(kept, velocities=False)])
    if isinstance(model, ArmModel) and model.drive.coulomb != 'none' and settings.plan is None:
        lows = [_with_drive(kept, stribeck_velocity=each) for each in STRIBECK_VELOCITIES]
        kept = trial.best([kept, *lows], turning=True)
        kept = trial.best([kept, _with_drive(kept, load_friction=True)], turning=True)
    return trial.levelled(kept) if kept.tilted else kept


def _with_drive(choice: Choice, **effects: Any) -> Choice:
    """Return a choice with other effects of the drives."""
    model = choice.model
    assert isinstance(model, ArmModel)
    return replace(choice, model=model.with_drive(replace(model.drive, **effects)))


class _Trial:
    """Fits to some pieces, tested on others."""

    def __init__(self, model: Model, recordings: Sequence[Recording], settings: Settings) -> None:
        self._model, self._recordings = model, recordings
        self._bandwidth = settings.bandwidth
        self._cutoffs = sorted({*settings.cutoffs, settings.bandwidth})
        none = DriveModel('none', 'none')
        bare = ArmModel(model.arm, none) if isinstance(model, ArmModel) else model
        kept = arm_base_parameters(bare).independent
        self._links = kept[kept < model.links.stop]
        self._cache: dict[tuple[float, bool], _Samples] = {}
        self._wide: tuple[list[FilteredRecording], _Samples] | None = None

    def best(self, choices: Sequence[Choice], turning: bool = False) -> Choice:
        """Return the first, or a later one that is clearly better than those before it.

        With `turning` in the prediction of velocity reversals, too.
        """
        kept = choices[0]
        if len(choices) == 1:
            return kept
        least = self._cost(kept, turning)
        for choice in choices[1:]:
            cost = self._cost(choice, turning)
            if clearly_better(cost, least):
                kept, least = choice, cost
        return kept

    def _cost(self, choice: Choice, turning: bool) -> FloatArray:
        """Return both errors of each fold, with the best transition velocity of friction."""
        model = choice.model
        models = [model]
        if isinstance(model, ArmModel) and model.drive.coulomb != 'none':
            models = [model.with_transition(velocity) for velocity in TRANSITIONS]
        costs = [self._errors(replace(choice, model=each), turning) for each in models]
        return min(costs, key=lambda cost: float(cost[0].mean()))

    def _errors(self, choice: Choice, turning: bool) -> FloatArray:
        """Return the sum of the logarithms of each channel's rms, and that of all, (2, FOLDS)."""
        fit = test = self._pieces(choice)
        if turning:
            test = self._products(choice, *self._with_reversals(choice))
        elif choice.cutoff != self._bandwidth:
            test = self._pieces(replace(choice, cutoff=self._bandwidth))
        return fit.errors(test)

    def odd(self, choice: Choice) -> tuple[FloatArray | None, str, str]:
        """Return `odd`, `late` and `unsure` of a choice."""

        log = filtered(self._recordings, choice.cutoff)
        samples = self._samples(log)

        def of(log: FilteredRecording) -> _Trial:
            own, steady = copy(self), without_reversals(self._model, log, choice.cutoff)
            # At another bandwidth the recordings would be read as they are.
            own._bandwidth = choice.cutoff
            # Whatever the delay, the motion is the same.
            own._cache = {(choice.cutoff, choice.velocities): samples.of(steady)}
            return own

        late = lateness(log, lambda each: of(each)._cost(choice, turning=False))
        words = late_in_words(late) if late else ''
        turned = _with_drive(choice, rotor_inertia=True)
        if late < 0.0 and turned.model.names != choice.model.names:
            # Friction of a moment later is friction and an acceleration, as that of rotors.
            early = of(earlier(log, late))._cost(choice, turning=False)
            if of(log)._cost(turned, turning=False)[0].mean() <= early[0].mean():
                choice, late, words = turned, 0.0, ROTORS
        # Joints that a low-pass delays seem to have another unit.
        parts = of(earlier(log, late))._pieces(choice, nominal=True)
        if np.any((scale := disagreement(parts)) != 1.0):
            return scale, '', ''
        if words:
            return None, words, ''
        return None, '', unsure(parts, choice.model.channels)

    def _pieces(self, choice: Choice, nominal: bool = False) -> Pieces:
        """Return rows of each piece and channel, of what the description leaves of efforts.

        With `nominal` of what it explains of them and of all, under whatever gravity.
        """
        samples = self._filtered(choice.cutoff, choice.velocities)
        return self._products(
            choice, samples, choice.model.other_rows(*samples.log.motion), nominal
        )

    def _with_reversals(self, choice: Choice) -> tuple[_Samples, FloatArray]:
        """Return all samples, and rows of the drives with the low-pass of the efforts."""
        if self._wide is None:
            recordings = self._recordings_for(choice.velocities)
            logs = [filtered([one], WIDER * self._bandwidth) for one in recordings]
            smooth = [low_passed(log, log.position[:, :0], self._bandwidth)[0] for log in logs]
            self._wide = logs, self._samples(joined(smooth))
        logs, samples = self._wide
        model, joints, parts = choice.model, len(choice.model.channels), []
        for log in logs:
            # Each drive has columns of its own.
            rows = [model.other_rows(*motion) for motion in pieces(log)]
            own = [np.einsum('njjk->njk', r.reshape(*r.shape[:2], joints, -1)) for r in rows]
            flat = np.concatenate(own).reshape(len(log.seconds), -1)
            parts.append(low_passed_alone(log, flat, self._bandwidth))
        found = np.concatenate(parts)
        found = found[:: _stride(len(found))].reshape(len(samples.error), joints, -1)
        each = np.arange(joints)
        out = np.zeros((*found.shape[:2], joints, found.shape[2]))
        out[:, each, each] = found
        return samples, out.reshape(*found.shape[:2], -1)

    def _products(
        self, choice: Choice, samples: _Samples, others: FloatArray, nominal: bool = False
    ) -> Pieces:
        """Return products of samples, `others` being the rows of all but the links."""
        log, model, error = samples.log, choice.model, samples.error
        known = np.isfinite(model.measured(log.motion, error))
        columns, ends = [samples.links, others], [error]
        if choice.tilted:
            columns.append(samples.tilts)
        if nominal:
            columns.append(
                weights(self._model, log.position, model.nominal[model.links], np.eye(3))
            )
            ends = [log.measured - error, log.measured]
        columns += [np.where(known, end, 0.0)[..., None] for end in ends]
        whole = np.concatenate(columns, axis=2) * known[..., None]
        parts = np.array_split(np.swapaxes(whole, 0, 1), BLOCKS, axis=1)
        counts = [part.sum(axis=0) for part in np.array_split(known, BLOCKS)]
        products = np.array([p.transpose(0, 2, 1) @ p for p in parts])
        positive = model.positive - model.links.stop + len(self._links)
        return Pieces(products, np.array(counts), positive)

    def levelled(self, choice: Choice) -> Choice:
        """Return a choice under the gravity that explains the data best, with links as well."""
        model, none = choice.model, np.empty(0, dtype=np.int64)
        noise = replace(self._pieces(choice), positive=none).left()
        log = self._filtered(choice.cutoff, choice.velocities).log
        measured = model.measured(log.motion, log.measured)
        known = np.isfinite(measured)
        rows = model.with_one_offset(log.seconds, model.regressor(*log.motion))
        size = rows.shape[2] + 3
        prior = np.pad(np.eye(2) / TILT_STD, ((0, 0), (size - 3, 1)))
        values, start = model.nominal, np.append(model.nominal, np.zeros(2))
        across = _across(model.arm.gravity)
        for _ in range(2):
            tilts = weights(self._model, log.position, values[model.links], across)
            tilts = model.with_one_offset(log.seconds, tilts)
            columns = [rows, tilts, measured[..., None]]
            whole = (np.concatenate(columns, axis=2) / noise[:, None])[known]
            stacked = np.vstack([triangular(np.vstack([whole, np.zeros((size, size))])), prior])
            found = nearest_links(stacked, start, model.arm.behind, 1.0, model.positive)
            values = found[:-2]
        aside = found[-2:] @ across
        share = np.linalg.norm(aside) / np.linalg.norm(model.arm.gravity)
        if not LEAST_TILT <= share <= MOST_TILT:
            return replace(choice, tilted=False)
        return replace(choice, model=model.with_gravity(model.arm.gravity + aside))

    def _filtered(self, cutoff: float, velocities: bool) -> _Samples:
        if (cutoff, velocities) not in self._cache:
            # All of them at once: a file is read again each time.
            cutoffs = self._cutoffs if velocities else [cutoff]
            logs = filtered_by(self._recordings_for(velocities), cutoffs)
            for each, log in zip(cutoffs, logs, strict=True):
                steady = without_reversals(self._model, log, each)
                self._cache[each, velocities] = self._samples(steady)
        return self._cache[cutoff, velocities]

    def _recordings_for(self, velocities: bool) -> Sequence[Recording]:
        """Return the recordings, without velocities where they are not to be used."""
        if velocities:
            return self._recordings
        return [one.without_velocities() for one in self._recordings]

    def _samples(self, log: FilteredRecording) -> _Samples:
        """Return what is compared of samples behind a filter."""
        log, model = log.select(slice(None, None, _stride(len(log.seconds)))), self._model
        nominal, one = model.nominal[model.links], partial(model.with_one_offset, log.seconds)
        links = one(model.link_rows(*log.motion))
        tilts = one(weights(model, log.position, nominal, _across(model.arm.gravity)))
        log = replace(log, measured=one(log.measured))
        return _Samples(log, links[..., self._links], tilts, links @ nominal)


class _Samples(NamedTuple):
    """Filtered samples, and what is compared of them."""

    log: FilteredRecording
    links: FloatArray
    """The columns of the links that are identifiable, (n, k, c)."""
    tilts: FloatArray
    """What gravity across adds by the description, for 1 m/s^2 in each of two directions,
    (n, k, 2)."""
    nominal: FloatArray
    """What the description's links explain, (n, k) [N m, N]."""

    @property
    def error(self) -> FloatArray:
        """Error of the description's links (n, k) [N m, N]."""
        return self.log.measured - self.nominal

    def of(self, log: FilteredRecording) -> _Samples:
        """Return the same of a recording, not yet thinned, of the same motion."""
        return self._replace(log=log.select(slice(None, None, _stride(len(log.seconds)))))


def _across(gravity: FloatArray) -> FloatArray:
    """Return two directions (2, 3) across gravity."""
    return np.asarray(np.linalg.svd(gravity[None])[2][1:])


def _stride(samples: int) -> int:
    """Return the distance of those that are compared, `MOST` or fewer."""
    return -(-samples // MOST)
