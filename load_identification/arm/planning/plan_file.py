"""The file of planned experiments: what identification has to know of them."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import numpy as np
import yaml

from load_identification.arm.excitation import GRAVITY, KINDS, Experiment
from load_identification.arm.experiments import REST, ExperimentPlan
from load_identification.arm.joint_motion import Move, Oscillation, Path, Piece, Sweep
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

ROUNDING = 1e-6
"""Shorter ways and times are left out [rad, m, s]."""


def plan_fields(plan: ExperimentPlan) -> dict[str, Any]:
    """Return a plan as plain values: joints by name, SI units."""
    return {
        'joints': list(plan.joints),
        'experiments': [
            {
                'kind': experiment.kind,
                'driven': plan.joints[experiment.driven],
                'measured': plan.joints[experiment.measured],
                'begin': float(begin),
                **_motion_fields(experiment.motion),
            }
            for experiment, begin in zip(plan.experiments, plan.begins, strict=True)
        ],
    }


def _motion_fields(motion: Oscillation | Sweep) -> dict[str, Any]:
    if isinstance(motion, Oscillation):
        return {
            'center': motion.center.tolist(),
            'amplitude': motion.amplitude.tolist(),
            'phase': motion.phase.tolist(),
            'frequency': motion.frequency,
            'periods': motion.periods,
        }
    return {
        'start': motion.start.tolist(),
        'goal': motion.goal.tolist(),
        'duration': motion.duration,
        'ramp': motion.ramp,
    }


def write_plan(path: FilePath, plan: ExperimentPlan) -> None:
    """Write a plan as YAML.

    Raises
    ------
    ParameterError
        If the file cannot be written.
    """
    text = yaml.safe_dump(plan_fields(plan), default_flow_style=None, sort_keys=False, width=99)
    try:
        path.write_text(text, encoding='utf-8')
    except OSError as error:
        raise ParameterError(f'{path} cannot be written: {error.strerror}') from error


def read_plan(path: FilePath) -> ExperimentPlan:
    """Read a plan, and make its path again.

    Raises
    ------
    ParameterError
        If the file cannot be read, or is no plan.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding='utf-8'))
        joints = tuple(str(name) for name in content['joints'])
        experiments = [_experiment(fields, joints) for fields in content['experiments']]
        begins = np.array([float(fields['begin']) for fields in content['experiments']])
    except OSError as error:
        raise ParameterError(f'plan {path} cannot be read: {error.strerror}') from error
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f'{path} is no plan of experiments as plan_excitation writes it: {error!r}'
        ) from error
    if not experiments:
        raise ParameterError(f'plan {path} has no experiments')
    return ExperimentPlan(joints, tuple(experiments), begins, _path(experiments, begins))


def _experiment(fields: dict[str, Any], joints: tuple[str, ...]) -> Experiment:
    if fields['kind'] not in KINDS:
        raise ValueError(f'kind {fields["kind"]!r} is none of {", ".join(KINDS)}')
    motion: Oscillation | Sweep
    if fields['kind'] == GRAVITY:
        motion = Sweep(
            _vector(fields['start'], joints),
            _vector(fields['goal'], joints),
            float(fields['duration']),
            float(fields['ramp']),
        )
    else:
        motion = Oscillation(
            _vector(fields['center'], joints),
            _vector(fields['amplitude'], joints),
            _vector(fields['phase'], joints),
            float(fields['frequency']),
            int(fields['periods']),
        )
    driven, measured = joints.index(fields['driven']), joints.index(fields['measured'])
    return Experiment(fields['kind'], driven, measured, motion)


def _vector(values: Any, joints: tuple[str, ...]) -> FloatArray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (len(joints),) or not np.isfinite(vector).all():
        raise ValueError(f'{values!r} is not one finite number for each of {len(joints)} joints')
    return vector


def _path(experiments: list[Experiment], begins: FloatArray) -> Path:
    """Put the moves back between the experiments."""
    pieces: list[Piece] = []
    time, place = 0.0, experiments[0].start
    for experiment, begin in zip(experiments, begins.tolist(), strict=True):
        rest = REST if begin - time > REST + ROUNDING else 0.0
        if begin - time > ROUNDING:
            pieces.append(Move(place, experiment.start, begin - time - rest))
        if rest:
            pieces.append(Move(experiment.start, experiment.start, rest))
        pieces.append(experiment.motion)
        time, place = begin + experiment.motion.duration, experiment.goal
    return Path(tuple(pieces))
