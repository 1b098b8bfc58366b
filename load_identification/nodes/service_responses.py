"""Answers of the services: one line of JSON that a program can read and a person too."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np
from std_srvs.srv import Trigger

from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.interface.batches import CHANNELS
from load_identification.interface.names import INTERVAL
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.catalogue import KnownObject
from load_identification.weighing.mass_check import MassCheck
from load_identification.weighing.recognition import Candidate
from load_identification.weighing.verdict import MATCH

Answer: TypeAlias = dict[str, Any]

DRIFTED = 3.0
"""A drift of so many standard deviations of its measurement is one."""

UNSEEN = 0.1
"""A centre of mass known worse than this is not [m]."""


def number(value: float) -> float | None:
    """Return a number of six digits, None for what is not known."""
    return float(f'{value:.6g}') if np.isfinite(value) else None


def numbers(values: FloatArray) -> list[float | None]:
    """Return a list of such numbers."""
    return [number(float(value)) for value in values]


def rounded(values: Any) -> Any:
    """Return numbers, in lists and mappings too, with six digits."""
    if isinstance(values, dict):
        return {key: rounded(value) for key, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return number(values) if isinstance(values, float) else values


def response(service: str, answer: Answer | Exception) -> Trigger.Response:
    """Return the response: a refusal where the answer is an exception, with its text."""
    if isinstance(answer, Exception):
        success, answer = False, {'reason': str(answer)}
    else:
        success = answer.get('verdict', MATCH) == MATCH
    text = json.dumps({'service': service, **answer}, ensure_ascii=False, allow_nan=False)
    return Trigger.Response(success=success, message=text)


def calibration(
    offset: OffsetPrior,
    last: OffsetPrior | None,
    samples: int,
    sign: float,
    doubt: str,
    few: str = '',
) -> Answer:
    """Report a calibrated offset, with the drift since the last one.

    Parameters
    ----------
    sign : float
        From the wrench that the load exerts on the sensor to the raw one.
    doubt : str
        Why something may have been held, empty: nothing says so.
    few : str
        That there are fewer samples than asked for, empty: there are not.
    """
    warnings = [few] if few else []
    if doubt:
        warnings.append(f'{doubt}; if something was held, put it down and calibrate again')
    answer: Answer = {
        'offset': numbers(sign * offset.mean),
        'std': numbers(np.sqrt(np.diag(offset.covariance))),
        'samples': samples,
        'drift': None,
    }
    if last is not None:
        drift = sign * (offset.mean - last.mean)
        error = np.sqrt(np.diag(offset.covariance + last.covariance))
        answer |= {'drift': numbers(drift), 'drift_std': numbers(error)}
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


def tool(values: FloatArray, std: FloatArray) -> Answer:
    """Report a saved tool, both arrays (10,) in message order."""
    return {
        'mass': number(values[0]),
        'mass_std': number(std[0]),
        'center_of_mass': numbers(values[1:4]),
        'center_of_mass_std': numbers(std[1:4]),
        'inertia': numbers(values[4:]),
        'inertia_std': numbers(std[4:]),
    }


def mass(check: MassCheck, objects: tuple[KnownObject, ...]) -> Answer:
    """Report a mass check."""
    weight = check.weight
    std = np.sqrt(np.diag(check.covariance))
    unseen = ~(std < UNSEEN)
    down = weight.pose.gravity / np.linalg.norm(weight.pose.gravity)
    # What one pose shows: the place of the line along gravity on which the centre lies.
    across = np.eye(3) - np.outer(down, down)
    across_std = np.nan
    if np.isfinite(check.center).all():
        spread = across @ check.covariance @ across
        across_std = float(np.sqrt(np.linalg.norm(spread, 2)))
    answer: Answer = {
        'verdict': check.verdict.verdict,
        'reason': check.verdict.reason,
        'mass': number(weight.payload.mass),
        'mass_std': number(weight.payload.mass_std),
        'center_of_mass': numbers(np.where(unseen, np.nan, check.center)),
        'center_of_mass_std': numbers(np.where(unseen, np.nan, std)),
        'center_of_mass_across_gravity': numbers(across @ check.center),
        'center_of_mass_across_gravity_std': number(across_std),
        'gravity_direction': numbers(down),
        'poses': weight.poses,
        'seconds': number((weight.pose.rest.end - weight.pose.rest.start) * 1e-9),
    }
    if check.verdict.verdict == MATCH:
        del answer['reason']
    recognition = check.recognition
    if recognition is not None:
        best, runner_up = recognition.best, recognition.runner_up
        answer['object'] = best.name if recognition.known else None
        answer['best'] = _candidate(best, objects)
        answer['runner_up'] = None if runner_up is None else _candidate(runner_up, objects)
    return answer


def _candidate(candidate: Candidate, objects: tuple[KnownObject, ...]) -> Answer:
    known = next(known for known in objects if known.name == candidate.name)
    answer: Answer = {
        'name': candidate.name,
        'distance': number(candidate.distance),
        'features': candidate.features,
    }
    if known.center_of_mass is not None:
        answer['center_of_mass'] = numbers(known.center_of_mass)
    if known.place is not None:
        answer['center_of_mass_in_sensor'] = numbers(known.place)
    return answer
