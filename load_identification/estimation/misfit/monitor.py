"""Test at intervals whether a payload explains the newest motion, and say why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.cycles import left_by_one_offset, stretches
from load_identification.estimation.misfit.evidence import Evidence, Store, ordinary
from load_identification.estimation.misfit.resonance import Resonance
from load_identification.estimation.misfit.trials import Kind
from load_identification.estimation.misfit.verdict import (
    AMPLE,
    ELSEWHERE,
    WORTH,
    Verdict,
    judged,
)
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.messages import NS
from load_identification.typing_aliases import FloatArray

EVERY_NS, FOR_EACH_NS, LATER_NS = 1_000_000_000, 20_000_000, 10_000_000
"""Time between two evaluations [ns]: FOR_EACH_NS per block, up to EVERY_NS, because early claims
would be wrong; from a hundred blocks on LATER_NS per block, because a few new blocks change little
then."""

AGREED = 2
"""Consecutive evaluations that must name the same cause, or none, before it is reported."""

PASSING = (*ELSEWHERE, Kind.COMPLIANT)
"""Causes that end by themselves; a wrong set-up stays wrong."""

CYCLES = 90
"""Number of the newest blocks that must be explained where the load changes before they are
`AMPLE` [-]."""

WORTH_RINGING = 0.15
"""Least misfit with which ringing is a cause [-]."""


class MisfitMonitor:
    """Keep the newest blocks, and test at intervals whether a payload explains them.

    `gravity`, `noise` and `field` as in `judged`, `friction` as in `Store`.
    """

    def __init__(
        self,
        gravity: FloatArray,
        noise: FloatArray,
        field: FloatArray,
        friction: float,
    ) -> None:
        self._gravity, self._noise, self._field = gravity, noise, field
        self._friction = friction
        self.forget()

    def forget(self) -> None:
        """Forget everything."""
        self._store = Store(self._gravity, self._friction)
        self._resonance = Resonance(self._noise, self._friction)
        self.named = Verdict(np.nan)
        """The verdict reported, on which consecutive evaluations agreed."""
        self._last = Verdict(np.nan)
        self._seen: Evidence | None = None
        self._agreed = 0
        self._due = 0
        self._changed = 0.0
        self._stood = False
        self._low_passed = False

    @property
    def cause(self) -> str:
        """Why no payload explains the measured wrench, in words; empty if unknown."""
        more = [words.STANDS] * self._stood + [words.FEIGNED] * self._low_passed
        return '; '.join([self.named.words, *more]) if self.named.words else ''

    @property
    def suspicion(self) -> str:
        """A cause that would explain it, neither named nor refuted, in words; empty: none."""
        suspected = self._last.suspected
        return words.SUSPECTED.format(suspected.value) if suspected else ''

    @property
    def puzzle(self) -> str:
        """What else to check if no cause explains it, in words; empty: nothing."""
        if not self._last.puzzling or self._low_passed:
            return ''
        root_known = self._seen is not None and self._seen.by_acceleration.shape[3] > 0
        asked = words.PUZZLE if root_known else words.PUZZLE_WITHOUT_ROOT
        return '; '.join(filter(None, (self._last.accelerates, asked)))

    @property
    def doubt(self) -> str:
        """Why the inertia may be wrong, in words; empty: it is not in doubt."""
        return words.apart(self._last.apart) if self._last.apart else ''

    @property
    def ringing(self) -> str:
        """Message about ringing; empty: none, or what a low-passed wrench lacks in fast motion."""
        return '' if self._low_passed else self._resonance.words

    def update(self, samples: FilteredBatch, calm: bool = True, low_passed: bool = False) -> None:
        """Process the samples of a block.

        `calm`: no change of load or offset is open, or ends; `low_passed`: the wrench is, which
        other causes seem to explain in part.

        A wrench computed from joint torques or leg forces is ignored: its errors are different.
        """
        if samples.whitening.size:
            return
        self._low_passed = low_passed
        self._store.add(samples)
        stamp = int(samples.stamps[-1])
        if calm:
            self._resonance.add(samples)
        else:
            self._resonance.cut()
            self._changed = stamp / NS
        if stamp < self._due:
            return
        evidence = self._store.evidence()
        if evidence is None or evidence is self._seen:
            return
        self._seen = evidence
        blocks = len(evidence.wrench)
        self._due = stamp + max(min(EVERY_NS, FOR_EACH_NS * blocks), LATER_NS * blocks)
        alone = found = self._judged(evidence)
        if found.misfit > WORTH_RINGING:
            usual = ordinary(evidence.wrench, self._noise, self._field)[::3]
            rings = self._resonance.corrupts(usual) and not low_passed
            if rings and (found.kind is None or found.by_size):
                said = self._resonance.words
                found = replace(found, kind=Kind.COMPLIANT, words=said, by_size=False)
        agrees = found.kind is self._last.kind and not np.isnan(self._last.misfit)
        self._agreed = self._agreed + 1 if agrees else 1
        self._last = found
        if self._agreed >= AGREED:
            lasting = found.kind is not None and found.kind not in PASSING
            self._stood = not lasting and self._stands(evidence, alone)
            self.named = self.named if self._stood else found

    def _judged(self, evidence: Evidence) -> Verdict:
        return judged(evidence, self._noise, self._field, self._gravity, self._store.robot)

    def _stands(self, evidence: Evidence, verdict: Verdict) -> bool:
        """Return whether the cause that is named stands although it is not found any more.

        `verdict` is that of all the evidence.

        While blocks of several loads are kept, they hide what is wrong, whether or not the change
        was noticed: until payload and offset alone explain ample motion since the last one, or
        one offset and a payload in each stretch explain that of some cycles, nothing has been set
        right.
        """
        since = evidence.time > self._changed
        if self.named.kind is None or self.named.kind in PASSING:
            return False
        if since.sum() >= AMPLE:
            newest = verdict if since.all() else self._judged(evidence.select(since))
            if newest.misfit < WORTH and newest.kind is None and not newest.suspected:
                return False
        return not self._in_cycles(evidence.select(slice(-CYCLES, None)))

    def _in_cycles(self, evidence: Evidence) -> bool:
        """Return whether one offset and some payloads explain all but a few of these blocks."""
        if len(evidence.wrench) < CYCLES:
            return False
        scale = ordinary(evidence.wrench, self._noise, self._field)
        number = stretches(evidence, scale)
        if not left_by_one_offset(evidence, number, scale) < WORTH:
            return False
        # What leaves little may yet be wrong for certain, as a factor between torque and force.
        found = [
            self._judged(evidence.select(number == k)) for k in np.unique(number[number >= 0])
        ]
        return not any(each.kind or each.suspected for each in found)
