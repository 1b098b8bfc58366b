"""What comes of planning; experiments one after another, and their file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import yaml

from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.planning.criteria import Worth
from load_identification.arm.planning.experiments import GRAVITY, KINDS, Experiment
from load_identification.errors import ParameterError
from load_identification.interface.files import FileError, read_yaml
from load_identification.motion.joint_path import JointMotion, JointPath, Move, Piece, Sweep
from load_identification.motion.limits import Limits
from load_identification.motion.sines import Oscillation
from load_identification.typing_aliases import FloatArray

REST = 0.5
"""Before an experiment, for the arm to come to rest [s]."""

ROUNDING = 1e-6
"""Shorter ways and times are left out [rad, m, s]."""


@dataclass(frozen=True, eq=False)
class ExperimentPlan:
    """Experiments one after another, and the way between them.

    Attributes
    ----------
    joints : tuple of str
    experiments : tuple of Experiment
    begins : (n,) array
        When each begins, its swelling included, since the beginning of the path [s].
    path : JointPath
    """

    joints: tuple[str, ...]
    experiments: tuple[Experiment, ...]
    begins: FloatArray
    path: JointPath


@dataclass(frozen=True, eq=False)
class Planned:
    """A planned motion.

    Attributes
    ----------
    arm : Arm
    limits : Limits
        As scaled.
    path : Piece
    plan : ExperimentPlan or None
        Of experiments.
    parameters : int
        That the motion is to determine.
    worth : Worth
        Of the information on the base parameters, scaled by nominal.
    compared : Worth
        Of the best motion drawn at random, or of all feasible experiments together.
    candidates : int
        Feasible experiments; 0 for a Fourier motion.
    motion : JointMotion
        Sampled at `RATE`.
    clearance : float
        Least distance of the arm to itself and to what it keeps clear of [m].
    floor : float or None
        Height of the floor in the root frame [m].
    nearest : str
        The two that come as near as that.
    torque : (n, J) array
        That the description's inertias make of it, without friction [N m, N].
    warnings : tuple of str
    """

    arm: Arm
    limits: Limits
    path: Piece
    plan: ExperimentPlan | None
    parameters: int
    worth: Worth
    compared: Worth
    candidates: int
    motion: JointMotion
    clearance: float
    floor: float | None
    nearest: str
    torque: FloatArray
    warnings: tuple[str, ...]


def plan_path(
    joints: tuple[str, ...], experiments: Sequence[Experiment], limits: Limits
) -> ExperimentPlan:
    """Put experiments one after another, each time going on to the nearest one left.

    Parameters
    ----------
    joints : tuple of str
    experiments : sequence of Experiment
        The first is begun with.
    limits : Limits
    """
    left = list(experiments)
    if not left:
        raise ParameterError('there are no experiments to plan; there must be one at least')
    ordered = [left.pop(0)]
    while left:
        ways = [Move.within(ordered[-1].goal, e.start, limits).duration for e in left]
        ordered.append(left.pop(int(np.argmin(ways))))
    pieces: list[Piece] = []
    begins, time, place = [], 0.0, ordered[0].start
    for experiment in ordered:
        for piece in (
            Move.within(place, experiment.start, limits),
            Move(experiment.start, experiment.start, REST),
        ):
            pieces.append(piece)
            time += piece.duration
        begins.append(time)
        pieces.append(experiment.motion)
        time += experiment.motion.duration
        place = experiment.goal
    return ExperimentPlan(joints, tuple(ordered), np.array(begins), JointPath(tuple(pieces)))


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
        content = read_yaml(path)
        joints = tuple(str(name) for name in content['joints'])
        experiments = [_experiment(fields, joints) for fields in content['experiments']]
        begins = np.array([float(fields['begin']) for fields in content['experiments']])
    except FileError as error:
        raise ParameterError(f'plan {path} {error}') from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
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


def _path(experiments: list[Experiment], begins: FloatArray) -> JointPath:
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
    return JointPath(tuple(pieces))
