"""Recordings of a PUMA with a change in them, and hours of work without, or with drift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.motion.joint_path import JointPath, Move
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.pipeline import settings
from load_identification.simulation import cells
from load_identification.simulation.cells import Conditions, Stages, record, sample
from load_identification.simulation.changes.draws import (
    Change,
    drawn_load,
    grasp,
    push_in_world,
    push_on_tool,
    release,
    rezero,
    slowly,
    small_change,
    unit,
)
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS, PUMA
from load_identification.simulation.sensors import WRIST_SENSOR, Recording, measure, simulate
from load_identification.typing_aliases import FloatArray

URDF, FRAME = PUMA.urdf, PUMA.sensor_frame
RATE = 500.0
LIMITS = PUMA.limits
LOWER, UPPER, FASTEST = LIMITS.lower, LIMITS.upper, LIMITS.velocity

MOVING = 12.0
"""Duration of the motion during which the change comes [s]; it fades in and out."""

MOVE = 2.0
"""Duration of a move from pose to pose [s]."""

REST = 2.0
"""Duration of the rest in the middle of which the change comes [s]."""

STEP = 0.1
"""Interval between looks at the estimate [s]."""

DUE = {'moving': 0.3, 'resting': 0.6}
"""Time within which a change should be detected [s]."""

SCENARIOS: dict[str, tuple[Callable[[np.random.Generator], Change], str]] = {
    'grasp, moving': (grasp, 'moving'),
    'release, moving': (release, 'moving'),
    '5 %, moving': (small_change, 'moving'),
    're-zero, moving': (rezero, 'moving'),
    'grasp in 0.5 s, moving': (slowly(grasp), 'moving'),
    're-zero in 0.5 s, moving': (slowly(rezero), 'moving'),
    'grasp, at rest': (grasp, 'resting'),
    'release, at rest': (release, 'resting'),
    '5 %, at rest': (small_change, 'resting'),
    're-zero, at rest': (rezero, 'resting'),
    'push 20 N, 2 s, fixed in the world': (push_in_world, 'moving'),
    'push 20 N, 2 s, fixed in the sensor': (push_on_tool, 'moving'),
}

WORK = ('rich', 'pauses', 'poses', 'tool-down')
"""Kinds of motion of ordinary work."""

MASS = 1.2
"""Mass of the load [kg]."""

DRIFT = 4.0 / 300.0
"""Drift of the force offset [N/s]."""


def lively(seed: int, duration: float = MOVING, share: float = 1.0) -> JointPath:
    """Return a motion of some time [s] up to a share of what the arm can."""
    start = np.random.default_rng(seed).uniform(-0.5, 0.5, 6)
    return JointPath((random_sines(start, Limits(LOWER, UPPER, share * FASTEST), duration, seed),))


def moves(seed: int) -> list[FloatArray]:
    """Draw six poses; the last two moves turn the sensor by 60° or more against gravity."""
    rng, robot = np.random.default_rng(seed), PUMA.robot()
    poses = [rng.uniform(LOWER, UPPER) / 2.0]
    reach = 0.9 * FASTEST * MOVE * 8.0 / 15.0
    while len(poses) < 6:
        pose = np.clip(poses[-1] + rng.uniform(-reach, reach), LOWER, UPPER)
        zero = np.zeros((2, 6))
        gravity = robot.motion(np.array([poses[-1], pose]), zero, zero).gravity
        if len(poses) < 4 or gravity[0] @ gravity[1] < 0.5 * STANDARD_GRAVITY**2:
            poses.append(pose)
    return poses


def motion_of(kind: str, seed: int) -> tuple[JointPath, float, float]:
    """Return the motion, the earliest time of the change, and when motion continues [s]."""
    if kind == 'moving':
        return lively(seed), MOVING / 2.0, 0.0
    p = moves(seed)
    before = [Move(a, b, MOVE) for a, b in ((p[0], p[1]), (p[1], p[2]), (p[2], p[3]))]
    after = [Move(p[3], p[4], MOVE), Move(p[4], p[5], MOVE)]
    rested = 3 * MOVE
    return JointPath((*before, Move(p[3], p[3], REST), *after)), rested + 0.5, rested + REST


@dataclass(frozen=True)
class Run:
    """A recording with a change in it."""

    batch: FilteredBatch
    """The whole recording, filtered."""
    delay: float
    """Delay of the filter [s]."""
    changed: float
    moved: float
    """Time of the change, and time at which it is complete and the arm moves [s]."""
    due: float
    """Time by which it should be detected [s]."""
    change: Change


def filtered(recording: Recording) -> tuple[FilteredBatch, float]:
    """Return the filter's output for a recording, and its delay [s]."""
    return cells.filtered(PUMA, recording.joints(), recording.wrenches(), Parameters())


def recorded(scenario: str, seed: int) -> Run:
    """Simulate a run."""
    draw, kind = SCENARIOS[scenario]
    rng = np.random.default_rng(seed)
    change = draw(rng)
    trajectory, earliest, goes_on = motion_of(kind, seed)
    changed = earliest + rng.uniform(0.0, 0.3)
    moved = max(changed + change.takes, goes_on)
    base = simulate(PUMA.robot(), trajectory, change.load[0], WRIST_SENSOR, RATE, seed)
    wrench = change.exerted(base.motion, np.asarray(base.stamps * 1e-9), changed)
    sensors = replace(WRIST_SENSOR, offset=tuple(change.offset[0]))
    batch, delay = filtered(measure(replace(base, exact_wrench=wrench), sensors, seed))
    return Run(batch, delay, changed, moved, changed + DUE[kind], change)


def pieces(batch: FilteredBatch) -> list[FilteredBatch]:
    """Cut a batch into pieces of `STEP`."""
    edges = np.flatnonzero(np.diff((batch.stamps * 1e-9 / STEP).astype(int))) + 1
    return [
        batch.select(slice(first, last))
        for first, last in pairwise([0, *edges.tolist(), len(batch.stamps)])
    ]


def ordinary(
    robot: str, minutes: int, conditions: Conditions, seed: int = 0, work: Sequence[str] = WORK
) -> tuple[list[str], float]:
    """Return the events in given minutes of ordinary work, and the last error of the mass [kg].

    One cell with its errors, one load; after each minute half a minute passes without samples.

    Parameters
    ----------
    robot : str
        A key of `MOUNTS`.
    work : sequence of str
        Keys of `MOTIONS`, a minute each in turn.
    """
    mount = MOUNTS[robot]
    parameters = replace(Parameters(), gravity=mount.gravity)
    stages = Stages(parameters, mount.urdf, mount.sensor_frame)
    load = drawn_load(np.random.default_rng([seed, 1]), MASS)
    for minute in range(minutes):
        rng = np.random.default_rng([seed, 0, minute])
        motion = MOTIONS[work[minute % len(work)]](mount, 60.0, rng)
        joints, wrenches = record(
            sample(mount, motion, 60.0, 250.0), load, conditions, seed, minute
        )
        stamps = joints.stamps + minute * 90_000_000_000
        batch = stages.filtered(replace(joints, stamps=stamps), replace(wrenches, stamps=stamps))
        for piece in [] if batch is None else pieces(batch):
            stages.estimator.update(piece)
    estimator = stages.estimator
    events = [f'{e.kind.value} at {e.stamp * 1e-9:.1f} s' for e in estimator.events.since(0)]
    estimate = estimator.estimate()
    return events, np.nan if estimate is None else float(estimate.values[0] - MASS)


def drifting(minutes: int) -> FloatArray:
    """Return the mass in given minutes of drift, as a share of the truth, each 0.1 s.

    The force offset drifts steadily in a direction of the sensor, the torque offset by 0.02 m
    times as much. Once a minute, the arm moves slowly to another pose and back.
    """
    stage = settings.payload_estimator(Parameters())
    rng, robot = np.random.default_rng(0), PUMA.robot()
    load = drawn_load(rng, MASS)
    direction = np.concatenate([unit(rng), 0.02 * unit(rng)])
    ratios = []
    for minute in range(minutes):
        p = moves(minute)
        rest = Move(p[3], p[3], 50.0)
        slow = JointPath((Move(p[3], p[4], 5.0), Move(p[4], p[3], 5.0), rest))
        recording = simulate(robot, slow, load, WRIST_SENSOR, RATE, minute)
        stamps = recording.stamps + minute * 60_000_000_000
        drift = DRIFT * (stamps * 1e-9)[:, None] * direction
        moved = replace(recording, stamps=stamps, wrench=recording.wrench + drift)
        for piece in pieces(filtered(moved)[0]):
            stage.update(piece)
            estimate = stage.estimate()
            if estimate is not None and estimate.identified[0]:
                ratios.append(estimate.values[0] / load.mass)
    return np.array(ratios)
