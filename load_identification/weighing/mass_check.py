"""Judge a weighed payload against an expectation or a catalogue, for check_mass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from load_identification.estimation.belief.error_budget import budget_words
from load_identification.estimation.belief.tool import BODY
from load_identification.estimation.identifiability import TURN_OR_MOVE
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.names import INTERVAL
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.catalogue import KnownObject
from load_identification.weighing.recognition import (
    Features,
    Recognition,
    mass_alone,
    mass_and_moments,
    recognize,
)
from load_identification.weighing.reference import Reference
from load_identification.weighing.verdict import (
    INCONCLUSIVE,
    MATCH,
    SURE,
    UNSURE,
    Verdict,
    both,
    judge_center_of_mass,
    judge_mass,
    required_std,
    what_would_settle,
)
from load_identification.weighing.weight import Weight

NOT_REMEMBERED = (
    'expected_mass is no number that this node has published since the offset or the tool became '
    'another: one with all its digits would cancel more'
)
"""What helps where nothing is known of the earlier measurement."""

NO_SCALES = 10.0
"""Standard deviation beyond which a mass counts as unknown, because the offset is [kg]."""


@dataclass(frozen=True, eq=False)
class Expectation:
    """The payload expected in the hand."""

    mass: float
    mass_tolerance: float
    """Expected mass and its tolerance; negative mass: no expectation [kg]."""
    center_of_mass: FloatArray
    """Expected centre of mass in S, (3,) [m]."""
    center_of_mass_tolerance: float
    """Its tolerance; 0: no expectation [m]."""
    by_this_sensor: bool = False
    """Whether this sensor has measured that mass: then its common gain is in both."""
    reference: Reference | None = None
    """What was known when it did: then all errors that are in both cancel."""


@dataclass(frozen=True, eq=False)
class MassCheck:
    """The result of a mass check."""

    verdict: Verdict
    recognition: Recognition | None
    """None without a catalogue."""
    weight: Weight
    difference: tuple[float, float] | None = None
    """By how much the payload is heavier than the expected one as this sensor measured it, and the
    std [kg]; None: not known."""


def check_mass(
    weight: Weight,
    expectation: Expectation,
    objects: tuple[KnownObject, ...] = (),
    estimate: PayloadEstimate | None = None,
) -> MassCheck:
    """Judge a payload weighed at rest.

    The expectation takes precedence over the catalogue of `objects`. An `estimate` from motion
    gives the principal moments.
    """
    center, covariance = weight.payload.center_of_mass()
    if weight.payload.mass_std > NO_SCALES:
        unknown = Verdict(
            INCONCLUSIVE,
            'the offset is not known: call calibrate_offset with nothing but the tool on, '
            f'or {TURN_OR_MOVE}',
        )
        return MassCheck(unknown, None, weight)
    reference, difference = expectation.reference, None
    if expectation.mass >= 0.0 and reference is not None:
        difference = reference.difference(weight.pose)
    recognition = None
    if objects:
        recognition = recognize(_features(weight, estimate), objects, center, covariance)
    verdicts = []
    if expectation.mass >= 0.0:
        verdicts.append(_against_expected_mass(weight, expectation, difference))
    elif recognition is not None:
        verdicts.append(recognition.verdict)
    # An expected empty hand has no centre of mass to compare.
    if expectation.center_of_mass_tolerance > 0.0 and expectation.mass != 0.0:
        place, tolerance = expectation.center_of_mass, expectation.center_of_mass_tolerance
        verdicts.append(judge_center_of_mass(center, covariance, place, tolerance))
    if not verdicts:
        verdicts = [
            Verdict(INCONCLUSIVE, 'nothing to compare with: set expected_mass or a catalogue')
        ]
    verdict = both(verdicts[0], verdicts[-1]) if len(verdicts) > 1 else verdicts[0]
    if not weight.fits:
        contact = 'the wrench is not that of a load at rest: contact, or a wrong offset?'
        verdict = Verdict(INCONCLUSIVE, '; '.join(filter(None, [verdict.reason, contact])))
    return MassCheck(verdict, recognition, weight, difference)


def _against_expected_mass(
    weight: Weight, expectation: Expectation, difference: tuple[float, float] | None
) -> Verdict:
    mass, own = weight.payload.mass, expectation.by_this_sensor
    expected, tolerance = expectation.mass, expectation.mass_tolerance
    # What this sensor has measured is not known better than what it measures now.
    std = float(np.sqrt(2.0) * weight.repeated_std) if own else weight.payload.mass_std
    if difference is not None and difference[1] < std:
        return _against_measured(*difference, expected, tolerance)
    verdict = judge_mass(mass, std, expected, tolerance)
    if verdict.verdict != INCONCLUSIVE:
        return verdict
    required = required_std(mass, expected, tolerance)
    required *= weight.repeated_std / std if own else 1.0
    settle = what_would_settle(weight.outlook(own), required)
    parts = budget_words(weight.causes)
    made = f' ({parts})' if parts and not own else ''
    forgotten = f'; {NOT_REMEMBERED}' if own and expectation.reference is None else ''
    return replace(verdict, reason=f'{verdict.reason}{made}; {settle}{forgotten}')


def _against_measured(more: float, std: float, expected: float, tolerance: float) -> Verdict:
    """Judge a payload that is heavier by so much than the expected one was when measured [kg]."""
    verdict = judge_mass(expected + more, std, expected, tolerance)
    if verdict.verdict == MATCH:
        return verdict
    off = f'{1e3 * more:+.1f} ± {1e3 * INTERVAL * std:.1f} g from what was measured as'
    words = f'{off} {expected:.4f} kg, {1e3 * tolerance:.1f} g allowed'
    if verdict.verdict == INCONCLUSIVE:
        needed = 1e3 * INTERVAL * required_std(expected + more, expected, tolerance)
        words += f': {UNSURE}; ± {needed:.1f} g would be needed'
    return replace(verdict, reason=words)


def _features(weight: Weight, estimate: PayloadEstimate | None) -> Features:
    """Return the features that recognition may compare.

    They include the principal moments if these are identified and the mass identified with them
    equals the one now weighed. If it differs, the load has changed since.
    """
    mass, std = weight.payload.mass, weight.payload.mass_std
    if estimate is not None and estimate.identified.all():
        apart = abs(mass - estimate.values[0])
        if apart <= SURE * np.hypot(std, estimate.std[0]):
            covariance = estimate.covariance[BODY, BODY]
            return mass_and_moments(estimate.parameters, covariance, estimate.common)
    return mass_alone(mass, std, weight.repeated_std)
