"""Hold the results of planning: a sequence of experiments, its file, and the planned motion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import yaml

from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.planning.criteria import Worth
from load_identification.arm.planning.experiments import CLEAR, GRAVITY, KINDS, Experiment
from load_identification.errors import ParameterError
from load_identification.interface.files import named, read_yaml
from load_identification.interface.output import write_output
from load_identification.motion.clearance import Clearance
from load_identification.motion.joint_path import JointMotion, JointPath, Move, Piece, Sweep
from load_identification.motion.limits import Limits
from load_identification.motion.sines import Oscillation
from load_identification.typing_aliases import FloatArray

REST = 0.5
"""Rest before an experiment, for the arm to settle [s]."""

STEP = 0.05
"""Largest step of a joint between two checked postures of a move [rad, m]."""

WAYS, ENTRIES = 10, 20
"""Nearest postures tried from each posture of the map, and from a posture outside it."""

ROUNDING = 1e-6
"""Displacements and times below this are omitted [rad, m, s]."""


@dataclass(frozen=True, eq=False)
class ExperimentPlan:
    """A sequence of experiments and the moves between them."""

    joints: tuple[str, ...]
    experiments: tuple[Experiment, ...]
    vias: tuple[tuple[FloatArray, ...], ...]
    """Postures, each (J,), by which the arm reaches each experiment [rad, m]."""
    begins: FloatArray
    """Begin of each, its ramp-up included, since the beginning of the path, (n,) [s]."""

    @cached_property
    def path(self) -> JointPath:
        """The experiments, with the moves and rests between them."""
        pieces: list[Piece] = []
        time, place = 0.0, self.experiments[0].start
        for experiment, via, begin in zip(
            self.experiments, self.vias, self.begins.tolist(), strict=True
        ):
            rest = REST if begin - time > REST + ROUNDING else 0.0
            if begin - time > ROUNDING:
                stops = [place, *via, experiment.start]
                each = (begin - time - rest) / (len(stops) - 1)
                pieces += [Move(*ends, each) for ends in itertools.pairwise(stops)]
            if rest:
                pieces.append(Move(experiment.start, experiment.start, rest))
            pieces.append(experiment.motion)
            time, place = begin + experiment.motion.duration, experiment.goal
        return JointPath(tuple(pieces))


@dataclass(frozen=True, eq=False)
class Planned:
    """A planned motion."""

    arm: Arm
    limits: Limits
    """After scaling."""
    path: Piece
    plan: ExperimentPlan | None
    """Plan of the experiments; None for a Fourier motion."""
    parameters: int
    """Number of parameters that the motion is to determine."""
    worth: Worth
    """Criteria of the information on the base parameters, scaled by nominal."""
    compared: Worth
    """Criteria of the best random motion, or of all feasible experiments together."""
    candidates: int
    """Number of feasible experiments; 0 for a Fourier motion."""
    motion: JointMotion
    """Sampled at `RATE`."""
    clearance: float
    """Least distance of the arm to itself and to obstacles [m]."""
    floor: float | None
    """Height of the floor in the root frame [m]."""
    nearest: str
    """The pair at that distance."""
    torque: FloatArray
    """Joint torques predicted from the description's inertias, without friction, (n, J)
    [N m, N]."""
    warnings: tuple[str, ...]


class Roadmap:
    """A graph of postures connected by straight moves in joint space that have clearance."""

    def __init__(self, clearance: Clearance, postures: FloatArray) -> None:
        self._clearance = clearance
        free = postures[clearance.distance(postures) > CLEAR]
        apart = np.linalg.norm(free[:, None] - free, axis=2)
        ways = scipy.sparse.lil_array(apart.shape)
        for k, row in enumerate(apart):
            for l in np.argsort(row)[1 : WAYS + 1]:
                if ways[l, k] == 0.0 and self._clear(free[k], free[l]):
                    ways[k, l] = ways[l, k] = row[l]
        _, group = scipy.sparse.csgraph.connected_components(ways, directed=False)
        kept = np.flatnonzero(group == np.argmax(np.bincount(group, minlength=1)))
        self.postures = free[kept]
        """The largest connected set of the given postures, (m, J) [rad, m]."""
        self._ways = scipy.sparse.csr_array(ways)[kept][:, kept]

    def way(self, start: FloatArray, goal: FloatArray) -> list[FloatArray] | None:
        """Return postures (J,) to pass between two; empty if the straight move has clearance.

        None if no way is found.
        """
        if self._clear(start, goal):
            return []
        first, last = self._entry(start), self._entry(goal)
        if first is None or last is None:
            return None
        _, before = scipy.sparse.csgraph.dijkstra(
            self._ways, directed=False, indices=last, return_predecessors=True
        )
        stops = [first]
        while stops[-1] != last:
            stops.append(int(before[stops[-1]]))
        return [self.postures[stop] for stop in stops]

    def _entry(self, posture: FloatArray) -> int | None:
        """Return the nearest posture of the map reached by a move with clearance; None: none."""
        near = np.argsort(np.linalg.norm(self.postures - posture, axis=1))[:ENTRIES]
        return next((int(k) for k in near if self._clear(posture, self.postures[k])), None)

    def _clear(self, start: FloatArray, goal: FloatArray) -> bool:
        count = 2 + int(np.max(np.abs(goal - start)) / STEP)
        return bool((self._clearance.distance(np.linspace(start, goal, count)) > 0.0).all())


def plan_path(
    joints: tuple[str, ...],
    experiments: Sequence[Experiment],
    limits: Limits,
    roadmap: Roadmap | None = None,
) -> ExperimentPlan:
    """Order experiments, from the first one given each time to the nearest one left.

    The roadmap finds the moves between them; without it all moves are straight.

    Raises ParameterError if an experiment cannot be reached with clearance.
    """
    left = list(experiments)
    ordered = [left.pop(0)]
    vias: list[tuple[FloatArray, ...]] = [()]
    begins = [Move.within(ordered[0].start, ordered[0].start, limits).duration + REST]
    while left:
        here = ordered[-1].goal
        durations = [Move.within(here, e.start, limits).duration for e in left]
        experiment = left.pop(int(np.argmin(durations)))
        via = [] if roadmap is None else roadmap.way(here, experiment.start)
        if via is None:
            raise ParameterError(
                f'no clear way to an experiment from {np.round(here, 2)} to '
                f'{np.round(experiment.start, 2)} was found; allow more room, or a finer grid by '
                '--levels'
            )
        stops = [here, *via, experiment.start]
        legs = [Move.within(*ends, limits).duration for ends in itertools.pairwise(stops)]
        taken = ordered[-1].motion.duration + len(legs) * max(legs) + REST
        begins.append(begins[-1] + taken)
        vias.append(tuple(via))
        ordered.append(experiment)
    return ExperimentPlan(joints, tuple(ordered), tuple(vias), np.array(begins))


def plan_fields(plan: ExperimentPlan) -> dict[str, Any]:
    """Return a plan as plain values: joints by name, SI units."""
    experiments = [
        {
            'kind': experiment.kind,
            'driven': plan.joints[experiment.driven],
            'measured': plan.joints[experiment.measured],
            'begin': begin,
            'via': [posture.tolist() for posture in via],
            **{name: np.array(x).tolist() for name, x in vars(experiment.motion).items()},
        }
        for experiment, via, begin in zip(
            plan.experiments, plan.vias, plan.begins.tolist(), strict=True
        )
    ]
    return {'joints': list(plan.joints), 'experiments': experiments}


def write_plan(path: FilePath, plan: ExperimentPlan) -> None:
    """Write a plan as YAML.

    Raises ParameterError if the file cannot be written.
    """
    text = yaml.safe_dump(plan_fields(plan), default_flow_style=None, sort_keys=False, width=99)
    write_output('plan', path, text)


def read_plan(path: FilePath) -> ExperimentPlan:
    """Read a plan and rebuild its path.

    Raises ParameterError if the file cannot be read or is no plan.
    """
    with named(f'plan {path}'):
        content = read_yaml(path)
    try:
        joints = tuple(str(name) for name in content['joints'])
        experiments = [_experiment(fields, joints) for fields in content['experiments']]
        vias = [
            tuple(_vector(posture, joints) for posture in fields.get('via', ()))
            for fields in content['experiments']
        ]
        begins = np.array([float(fields['begin']) for fields in content['experiments']])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ParameterError(
            f'{path} is no plan of experiments as plan_excitation writes it: {error!r}'
        ) from error
    if not experiments:
        raise ParameterError(f'plan {path} has no experiments')
    return ExperimentPlan(joints, tuple(experiments), tuple(vias), begins)


def _experiment(fields: dict[str, Any], joints: tuple[str, ...]) -> Experiment:
    if fields['kind'] not in KINDS:
        raise ValueError(f'kind {fields["kind"]!r} is none of {", ".join(KINDS)}')

    def vector(name: str) -> FloatArray:
        return _vector(fields[name], joints)

    motion: Oscillation | Sweep
    if fields['kind'] == GRAVITY:
        ends = vector('start'), vector('goal')
        motion = Sweep(*ends, float(fields['duration']), float(fields['ramp']))
    else:
        swing = vector('center'), vector('amplitude'), vector('phase')
        motion = Oscillation(*swing, float(fields['frequency']), int(fields['periods']))
    driven, measured = joints.index(fields['driven']), joints.index(fields['measured'])
    return Experiment(fields['kind'], driven, measured, motion)


def _vector(values: Any, joints: tuple[str, ...]) -> FloatArray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (len(joints),) or not np.isfinite(vector).all():
        raise ValueError(f'{values!r} is not one finite number for each of {len(joints)} joints')
    return vector
