"""Format the responses of the services: one line of JSON, readable by programs and people."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, TypeAlias

import numpy as np
from std_srvs.srv import Trigger

from load_identification.estimation.belief.error_budget import SOURCES
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.interface.batches import CHANNELS
from load_identification.interface.names import INTERVAL
from load_identification.weighing.mass_check import MassCheck
from load_identification.weighing.recognition import Candidate
from load_identification.weighing.verdict import MATCH

Answer: TypeAlias = dict[str, Any]

Job: TypeAlias = Generator[Answer | str, None, None]
"""Yields what it waits for while it is busy, in words, then its answer."""

DRIFTED = 3.0
"""Standard deviations of its measurement beyond which a drift is reported [-]."""

UNSEEN = 0.1
"""Standard deviation from which a centre of mass counts as unknown [m]."""


def rounded(values: Any) -> Any:
    """Round numbers, in lists and mappings too, to six digits; unknown ones become None."""
    if isinstance(values, dict):
        return {key: rounded(value) for key, value in values.items()}
    if isinstance(values, list | np.ndarray):
        return [rounded(value) for value in values]
    if not isinstance(values, float):
        return values
    return float(f'{values:.6g}') if np.isfinite(values) else None


def response(service: str, answer: Answer | Exception) -> Trigger.Response:
    """Build the response; an exception as answer becomes a refusal with its text."""
    if isinstance(answer, Exception):
        success, answer = False, {'reason': str(answer)}
    else:
        success = answer.get('verdict', MATCH) == MATCH
    text = json.dumps(rounded({'service': service, **answer}), ensure_ascii=False, allow_nan=False)
    return Trigger.Response(success=success, message=text)


def calibration(
    offset: OffsetPrior,
    last: OffsetPrior | None,
    samples: int,
    sign: float,
    unresolved: str,
    few: str = '',
) -> Answer:
    """Report a calibrated offset, with the drift since the last calibration.

    `sign` converts between on_sensor and raw wrenches. Warnings, empty where there are none:
    `unresolved`, why something may have been held, and `few`, that samples are missing.
    """
    warnings = [few] if few else []
    if unresolved:
        warnings.append(f'{unresolved}; if something was held, put it down and calibrate again')
    answer: Answer = {
        'offset': sign * offset.mean,
        'std': np.sqrt(np.diag(offset.covariance)),
        'samples': samples,
        'drift': None,
    }
    if last is not None:
        drift = sign * (offset.mean - last.mean)
        error = np.sqrt(np.diag(offset.covariance + last.covariance))
        answer |= {'drift': drift, 'drift_std': error}
        worst = int(np.argmax(np.abs(drift) / error))
        if abs(drift[worst]) > DRIFTED * error[worst]:
            unit = 'N' if worst < 3 else 'N·m'
            warnings.append(
                f'{CHANNELS[worst]} has drifted by {drift[worst]:.3g} ± '
                f'{INTERVAL * error[worst]:.2g} {unit} since the last calibration'
            )
    if warnings:
        answer['warning'] = '; '.join(warnings)
    return answer


def tool(estimate: PayloadEstimate) -> Answer:
    """Report a saved tool, given as the estimate of tool and payload together."""
    values, std, identified = estimate.values, estimate.std, estimate.identified.tolist()
    return {
        'mass': values[0],
        'mass_std': std[0],
        'mass_identified': identified[0],
        'center_of_mass': values[1:4],
        'center_of_mass_std': std[1:4],
        'center_of_mass_identified': identified[1:4],
        'inertia': values[4:],
        'inertia_std': std[4:],
        'inertia_identified': identified[4:],
    }


def mass(check: MassCheck) -> Answer:
    """Report a mass check."""
    weight = check.weight
    center, covariance = weight.payload.center_of_mass()
    std = np.sqrt(np.diag(covariance))
    unseen = ~(std < UNSEEN)
    down = weight.pose.gravity / np.linalg.norm(weight.pose.gravity)
    # One pose determines only the position of the line along gravity on which the centre lies.
    across = np.eye(3) - np.outer(down, down)
    across_std = np.nan
    if np.isfinite(center).all():
        spread = across @ covariance @ across
        across_std = float(np.sqrt(np.linalg.norm(spread, 2)))
    parts = np.sqrt(weight.budget).tolist()
    answer: Answer = {
        'verdict': check.verdict.verdict,
        'reason': check.verdict.reason,
        'mass': weight.payload.mass,
        'mass_std': weight.payload.mass_std,
        **{f'mass.std.{source}': std for source, std in zip(SOURCES, parts, strict=True)},
        'mass_repeated_std': weight.repeated_std,
        'center_of_mass': np.where(unseen, np.nan, center),
        'center_of_mass_std': np.where(unseen, np.nan, std),
        'center_of_mass_across_gravity': across @ center,
        'center_of_mass_across_gravity_std': across_std,
        'gravity_direction': down,
        'poses': weight.poses,
        'seconds': (weight.pose.rest.end - weight.pose.rest.start) * 1e-9,
    }
    if check.difference is not None:
        answer['mass_from_expected'], answer['mass_from_expected_std'] = check.difference
    if check.verdict.verdict == MATCH:
        del answer['reason']
    recognition = check.recognition
    if recognition is not None:
        best, runner_up = recognition.best, recognition.runner_up
        answer['object'] = best.entry.name if recognition.known else None
        answer['best'] = _candidate(best)
        answer['runner_up'] = None if runner_up is None else _candidate(runner_up)
    return answer


def _candidate(candidate: Candidate) -> Answer:
    known = candidate.entry
    answer: Answer = {
        'name': known.name,
        'distance': candidate.distance,
        'features': candidate.features,
    }
    if known.center_of_mass is not None:
        answer['center_of_mass'] = known.center_of_mass
    if known.place is not None:
        answer['center_of_mass_in_sensor'] = known.place
    return answer
