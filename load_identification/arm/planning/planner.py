"""Plan a motion for `plan_excitation` from a description and limits, and evaluate it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio

from load_identification.arm.dynamics.base_parameters import (
    TorqueRegressor,
    arm_base_parameters,
    base_regressor,
)
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.planning.criteria import (
    DETERMINANT,
    LARGEST_BLOCK,
    STARTS,
    Design,
    Worth,
    as_they_come,
    design,
    ideal_blocks,
    nominal_scale,
    optimal_design,
    torque_noise,
)
from load_identification.arm.planning.experiments import (
    LEAST_PERIODS,
    PERIODS,
    feasible_experiments,
    locked_postures,
)
from load_identification.arm.planning.fourier import FourierSettings, optimise_fourier_motion
from load_identification.arm.planning.plan_file import ExperimentPlan, Planned, Roadmap, plan_path
from load_identification.errors import FrameError, ParameterError
from load_identification.model.urdf import parse_description, parse_xml
from load_identification.motion.clearance import Clearance
from load_identification.motion.joint_path import Piece
from load_identification.motion.limits import Box, Limits, arm_limits
from load_identification.typing_aliases import FloatArray

FOURIER_DURATION = 20.0
"""Default duration of a Fourier motion [s]."""

MOST_POSTURES = 5000
"""Most postures of a planned motion at which the clearance is evaluated."""

RATE = 100.0
"""Sampling rate at which a planned motion is evaluated [Hz]."""


@dataclass(frozen=True)
class Request:
    """A request for a plan; see `plan_excitation --help`."""

    method: str = 'fourier'
    """`fourier`, `spectrum` or `postures`."""
    scales: tuple[float, float, float] = (0.9, 0.5, 1.0)
    """Shares used of the limits of position, velocity and acceleration, (3,) [-]."""
    acceleration: Sequence[float] | None = None
    """Limits [rad/s^2, m/s^2]."""
    duration: float | None = None
    """[s]."""
    floor: float | None = 0.0
    """Height of the floor in the root frame; None: there is no floor [m]."""
    keep_out: Sequence[Sequence[float]] = ()
    """Boxes that no link may enter; x, y and z from and to [m]."""
    workspace: Sequence[float] | None = None
    """A box that `frame`, by default the last link, must not leave, (6,); same form [m]."""
    frame: str | None = None
    levels: int = 3
    """Of each joint in the grid of postures."""
    experiments: int | None = None
    """Number of experiments to select."""
    criterion: str = DETERMINANT
    """`DETERMINANT` or `CONDITION` of `criteria`."""
    periods: int = PERIODS
    """Of an oscillation, at full amplitude."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        for name, scale in zip(('position', 'velocity', 'acceleration'), self.scales, strict=True):
            if not 0.0 < scale <= 1.0:
                raise ParameterError(
                    f'--{name}-scale is {scale}; it must be > 0 and at most 1, the limit itself'
                )
        if self.duration is not None and not (np.isfinite(self.duration) and self.duration > 0.0):
            raise ParameterError(f'--duration is {self.duration} s; it must be > 0')
        if self.floor is not None and not np.isfinite(self.floor):
            raise ParameterError(f'--floor is {self.floor} m; it must be a height, or none')
        if self.experiments is not None and self.experiments < 1:
            raise ParameterError(f'--experiments is {self.experiments}; it must be >= 1')
        if self.periods < LEAST_PERIODS:
            raise ParameterError(
                f'periods are {self.periods}; it must be at least {LEAST_PERIODS}'
            )


def load_arm(urdf: str, tip: str | None, gravity: Sequence[float]) -> Arm:
    """Return the arm of a description: all of its joints, or those that move the tip link.

    Raises DescriptionError if the description cannot be used; FrameError if no joint moves the
    link.
    """
    if tip is None:
        mimics = parse_xml(urdf).find('joint/mimic/..')
        hand = None if mimics is None else mimics.find('parent')
        if mimics is not None and hand is not None:
            raise FrameError(
                f'joint {mimics.get("name")!r} mimics another, as in grippers: give --tip '
                f'{hand.get("link")}, to plan for the joints up to that link'
            )
        return Arm(urdf, gravity)
    model = parse_description(urdf)
    moved = {f.name: f.parentJoint for f in model.frames if f.type == pinocchio.FrameType.BODY}
    joints = [model.names[k] for k in model.supports[moved.get(tip, 0)] if k]
    if not joints:
        links = ', '.join(name for name, joint in moved.items() if joint)
        raise FrameError(f'--tip is {tip!r}; it must be a link that a joint moves: {links}')
    return Arm(urdf, gravity, joints)


def plan_motion(arm: Arm, urdf: str, request: Request, progress: Callable[[str], None]) -> Planned:
    """Plan a motion of an arm of a description (URDF), which has the frame of the workspace.

    `progress` is called with the progress in words, several times a second.

    Raises LoadIdentificationError if no motion can be planned; the text says what to change.
    """
    limits = arm_limits(arm, request.acceleration).scaled(*request.scales)
    clearance = Clearance(
        urdf,
        arm.joints,
        floor=request.floor,
        keep_out=[Box.between(numbers) for numbers in request.keep_out],
        workspace=None if request.workspace is None else Box.between(request.workspace),
        tip_frame=request.frame or arm.bodies[-1],
    )
    if request.method != 'fourier':
        return _plan_experiments(arm, limits, request, clearance, progress)
    regressor, scale = _regressor(arm)
    settings = FourierSettings(duration=request.duration or FOURIER_DURATION, seed=request.seed)
    steps = itertools.count(1)
    found = optimise_fourier_motion(
        regressor,
        limits,
        settings,
        torque_noise(arm.effort_limits),
        clearance,
        lambda words: progress(f'{words} after {next(steps)} steps'),
        request.criterion,
    )
    worths = found.worth, found.drawn
    return _planned(arm, limits, clearance, found.motion, None, worths, scale, 0)


def _regressor(arm: Arm) -> tuple[TorqueRegressor, FloatArray]:
    """Return the columns of the links' base parameters and their nominal scales (p,)."""
    model = ArmModel(arm, DriveModel(coulomb='none', viscous='none'))
    base = arm_base_parameters(model)
    return base_regressor(model, base), nominal_scale(base, model.nominal)


def _plan_experiments(
    arm: Arm,
    limits: Limits,
    request: Request,
    clearance: Clearance,
    progress: Callable[[str], None],
) -> Planned:
    clearance.room(limits)
    regressor, scale = _regressor(arm)
    parameters = len(scale)
    postures = locked_postures(limits, request.levels, request.seed)
    roadmap = Roadmap(clearance, postures)
    progress(f'moving at {len(roadmap.postures)} postures')
    feasible = feasible_experiments(limits, roadmap.postures, clearance, request.periods)
    if not feasible:
        raise ParameterError(
            f'no motion at any of {len(postures)} postures is within the limits and clear of the '
            'arm, the floor and the boxes; allow more room, or a finer grid by --levels'
        )
    progress(f'judging {len(feasible)} experiments')
    blocks = ideal_blocks(regressor, feasible, torque_noise(arm.effort_limits))
    everything = design(blocks, np.arange(len(blocks)))
    if not np.isfinite(everything.condition):
        raise ParameterError(
            f'all {len(feasible)} feasible experiments together do not determine the '
            f'{parameters} base parameters; allow more room, a finer grid by --levels, '
            'or less of wide limits by --position-scale'
        )

    def planned(chosen: Design) -> ExperimentPlan:
        return plan_path(arm.joints, [feasible[k] for k in chosen.chosen], limits, roadmap)

    if request.method == 'spectrum':
        chosen = as_they_come(blocks, request.experiments or 2 * parameters, request.seed)
    else:
        chosen = _choice(blocks, request, planned, progress)
    plan = planned(chosen)
    if request.duration is not None and plan.path.duration > request.duration:
        raise ParameterError(
            f'{len(plan.experiments)} experiments take {plan.path.duration:.0f} s, more than the '
            f'{request.duration:g} s of --duration; allow more, or fewer --periods (now '
            f'{request.periods})'
        )
    return _planned(
        arm, limits, clearance, plan.path, plan, (chosen, everything), scale, len(feasible)
    )


def _choice(
    blocks: FloatArray,
    request: Request,
    planned: Callable[[Design], ExperimentPlan],
    progress: Callable[[str], None],
) -> Design:
    """Select experiments, as many as requested or as the duration allows."""
    parameters = blocks.shape[2]
    fewest = -(-parameters // LARGEST_BLOCK)
    size = min(request.experiments or 2 * parameters, len(blocks))
    while True:
        found = optimal_design(blocks, size, request.seed, request.criterion, STARTS, progress)
        if request.duration is None:
            return found
        took = planned(found).path.duration
        if took <= request.duration or size <= fewest:
            return found
        smaller = max(fewest, min(size - 1, int(size * request.duration / took)))
        try:
            optimal_design(blocks, smaller, request.seed, request.criterion, 1)
        except ParameterError:
            return found
        size = smaller


def _planned(
    arm: Arm,
    limits: Limits,
    clearance: Clearance,
    path: Piece,
    plan: ExperimentPlan | None,
    worths: tuple[Worth, Worth],
    scale: FloatArray,
    candidates: int,
) -> Planned:
    """Evaluate a motion along its whole path, with the torques that it demands of the drives."""
    times = np.linspace(0.0, path.duration, int(np.ceil(path.duration * RATE)) + 1)
    motion = path.sample(times)
    torque = arm.joint_torque_regressor(*motion) @ arm.nominal.ravel()
    q = motion.position[:: 1 + len(motion.position) // MOST_POSTURES]
    distance = clearance.distance(q)
    closest = int(np.argmin(distance))
    warnings = []
    if clearance.guessed:
        names, reason = ', '.join(clearance.guessed), next(iter(clearance.guessed.values()))
        warnings.append(
            f'the shape of {names} is guessed, {clearance.guessed_radius:.3f} m about the lines '
            f'between the joints: {reason}'
        )
    warnings += [
        f'joint {joint!r} needs {peak:.0f} of its {limit:.0f} N·m or N by the inertias of the '
        'description; lower --acceleration-scale or the workspace'
        for joint, peak, limit in zip(
            arm.joints, np.abs(torque).max(axis=0), arm.effort_limits, strict=True
        )
        if 0.0 < limit < peak
    ]
    worth, compared = (
        Worth(each.condition, each.log_determinant + 2.0 * float(np.log(scale).sum()))
        for each in worths
    )
    return Planned(
        arm=arm,
        limits=limits,
        path=path,
        plan=plan,
        parameters=len(scale),
        worth=worth,
        compared=compared,
        candidates=candidates,
        motion=motion,
        clearance=float(distance[closest]),
        floor=clearance.floor,
        nearest=clearance.nearest(q[closest]),
        torque=torque,
        warnings=tuple(warnings),
    )
