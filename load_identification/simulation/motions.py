"""Random motions of ordinary work: rich, with pauses, pose by pose, tool down, creeping.

They differ in the excitation of the load and in the appearance of errors tied to the pose. Beside
them are motions of the PUMA 560 of config/puma.urdf: the paper's move and a rich one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from load_identification.motion.joint_path import PEAK, JointMotion, JointPath, Move, Piece
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.simulation.robots import PUMA, Arm
from load_identification.simulation.sensors import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)
from load_identification.typing_aliases import FloatArray

HOLD = 1.5
"""Rest in each of the poses of `poses` [s]."""

SHORTEST_MOVE = 1.0
"""Shortest duration of a move [s]."""

CREEPS = 25.0
"""Time in each pose of `creep` [s]."""

RESTED = 55.0
"""End of the rest of `held` [s]."""

LONGEST_POSE = 5.5
"""Upper bound of the duration of a move and a rest of `poses` [s]."""

PIECE = 60.0
"""Longest piece of rich motion; another one follows [s]."""

RAMP = 0.25
"""Share of a trapezoidal move that accelerates, and that brakes [-]."""

TOOL_DOWN = np.deg2rad(10.0)
"""Largest angle between gravity in S and its mean in tool-down work [rad]."""

PUMA_LOWER = np.deg2rad([-20.0, -100.0, 40.0, -100.0, -95.0, -180.0])
PUMA_UPPER = np.deg2rad([120.0, -20.0, 140.0, 160.0, 95.0, 180.0])
"""Part of the range of config/puma.urdf in which the arm stays well above the floor [rad]."""

PAPER_START = np.deg2rad([0.0, 0.0, 0.0, -90.0, 0.0, 0.0])
PAPER_GOAL = np.deg2rad([90.0, -60.0, 90.0, 90.0, 90.0, 90.0])
"""The move of Atkeson, An and Hollerbach, section 3.1.2, in 2 s [rad]."""


@dataclass(frozen=True, eq=False)
class Trapezoid:
    """A straight move in joint space with a trapezoidal velocity: its acceleration has steps."""

    start: FloatArray
    goal: FloatArray
    """(J,) [rad, m]."""
    duration: float
    """[s]."""

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since the beginning [s]."""
        s = np.clip(times / self.duration, 0.0, 1.0)[:, None]
        up, down = np.minimum(s, RAMP), np.maximum(s - 1.0 + RAMP, 0.0)
        way = s - up - down + (up**2 + down * (2.0 * RAMP - down)) / (2.0 * RAMP)
        rate = np.minimum(up, RAMP - down) / RAMP
        bend = ((s < RAMP) * 1.0 - (s > 1.0 - RAMP)) / RAMP
        whole = (self.goal - self.start) / (1.0 - RAMP)
        return JointMotion(
            self.start + whole * way,
            whole * rate / self.duration,
            whole * bend / self.duration**2,
        )


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion and its instants of interest."""

    trajectory: JointPath
    holds: tuple[float, ...] = ()
    """Ends of the rests in poses, including the rest before the first move [s]."""


def rich(mount: Arm, duration: float, rng: np.random.Generator, part: float = 1.0) -> Motion:
    """Draw sums of sines in all joints.

    Parameters
    ----------
    part : float
        Share of the joints' range that is used, about a random centre that leaves room for it [-].
    """
    lower, upper, fastest = mount.limits.lower, mount.limits.upper, mount.limits.velocity
    half = part * (upper - lower) / 2.0
    # If the whole range is used, rounding may put one bound beyond the other.
    center = rng.uniform(np.minimum(lower + half, upper - half), upper - half)
    segments: list[Piece] = []
    left = duration
    while left > 1e-6:
        piece = PIECE if left > 1.5 * PIECE else left
        seed = int(rng.integers(2**31))
        around = Limits(center - half, center + half, fastest)
        segments.append(random_sines(center, around, piece, seed))
        left -= piece
    return Motion(JointPath(tuple(segments)))


def pauses(mount: Arm, duration: float, rng: np.random.Generator) -> Motion:
    """Draw moves from pose to pose, as fast as in handling, with pauses of 0.3 to 1 s."""
    return _pose_by_pose(mount, None, (0.3, 1.0), duration, rng)


def poses(mount: Arm, duration: float, rng: np.random.Generator) -> Motion:
    """Draw poses all over the range, held for 1.5 s each, as in the calibration of sensors."""
    return _pose_by_pose(mount, None, (HOLD, HOLD), duration, rng)


def trend(mount: Arm, duration: float, rng: np.random.Generator) -> Motion:
    """Draw poses held for 1.5 s in an order in which gravity in S happens to turn one way."""
    limits, robot = mount.limits, mount.robot()
    drawn = rng.uniform(
        limits.lower, limits.upper, (round(duration / LONGEST_POSE), len(mount.lower))
    )
    down = robot.down(drawn)
    axis = np.linalg.svd(down - down.mean(axis=0))[2][0]
    order = np.argsort(down @ axis + 0.4 * rng.standard_normal(len(down)))
    goals = iter(drawn[order[1:]])

    def draw(pose: FloatArray) -> FloatArray:
        return next(goals, pose)

    return _pose_by_pose(mount, draw, (HOLD, HOLD), duration, rng, drawn[order[0]])


def tool_down(
    mount: Arm, duration: float, rng: np.random.Generator, move: type[Move | Trapezoid] = Move
) -> Motion:
    """Draw moves with pauses during which gravity in S turns by less than 20 degrees.

    Poses are drawn about one pose, of many, in which the sensor's z is nearest to the direction of
    gravity. A move, of the kind `move`, is accepted if its path stays within `TOOL_DOWN` of that
    direction.
    """
    lower, upper, robot = mount.limits.lower, mount.limits.upper, mount.robot()
    many = rng.uniform(lower, upper, (1500, len(lower)))
    start = many[np.argmax(robot.down(many)[:, 2])]
    down = robot.down(start[None])[0]

    def draw(pose: FloatArray) -> FloatArray:
        reach = 0.5 * (upper - lower)
        for _ in range(40):
            goals = np.clip(pose + reach * rng.uniform(-1.0, 1.0, (60, len(pose))), lower, upper)
            keeps = robot.down(goals) @ down > np.cos(TOOL_DOWN)
            for goal in goals[keeps]:
                path = pose + np.linspace(0.0, 1.0, 12)[:, None] * (goal - pose)
                if np.min(robot.down(path) @ down) > np.cos(TOOL_DOWN):
                    return np.asarray(goal)
            reach *= 0.9
        return pose + 0.02 * rng.uniform(-1.0, 1.0, len(pose))

    return _pose_by_pose(mount, draw, (0.3, 1.0), duration, rng, start, move)


def creep(mount: Arm, duration: float, rng: np.random.Generator) -> Motion:
    """Draw poses and let the joints creep for 25 s in each, at 0.5 to 4 mrad/s."""
    limits = mount.limits
    rate = np.exp(rng.uniform(np.log(5e-4), np.log(4e-3)))
    pose = rng.uniform(limits.lower, limits.upper)
    segments: list[Piece] = []
    while sum(s.duration for s in segments) < duration:
        goal = rng.uniform(limits.lower, limits.upper)
        way = rate * CREEPS / PEAK * rng.choice([-1.0, 1.0], len(pose))
        crept = goal + way / np.sqrt(len(pose))
        move = Move.within(pose, goal, limits, SHORTEST_MOVE)
        segments += [move, Move(goal, crept, CREEPS)]
        pose = crept
    return Motion(JointPath(tuple(segments)))


def held(mount: Arm, duration: float, rng: np.random.Generator) -> Motion:
    """Draw moves with pauses for some 12 s, a rest until `RESTED`, and further moves."""
    before = pauses(mount, 12.0, rng)
    last = before.trajectory.pieces[-1]
    assert isinstance(last, Move)
    rest = Move(last.goal, last.goal, RESTED - before.trajectory.duration)
    after = _pose_by_pose(mount, None, (0.3, 1.0), duration - RESTED, rng, last.goal)
    return Motion(JointPath((*before.trajectory.pieces, rest, *after.trajectory.pieces)))


MOTIONS: dict[str, Callable[[Arm, float, np.random.Generator], Motion]] = {
    'rich': rich,
    'little': partial(rich, part=0.08),
    'pauses': pauses,
    'poses': poses,
    'trend': trend,
    'tool-down': tool_down,
    'trapezoids': partial(tool_down, move=Trapezoid),
    'creep': creep,
    'held': held,
}
"""Functions that draw each kind, for a robot and a duration [s]."""


def _pose_by_pose(
    mount: Arm,
    draw: Callable[[FloatArray], FloatArray] | None,
    rest: tuple[float, float],
    duration: float,
    rng: np.random.Generator,
    start: FloatArray | None = None,
    move: type[Move | Trapezoid] = Move,
) -> Motion:
    """Rest and move to the next pose, given or random, until a duration is reached [s]."""
    limits = mount.limits
    pose = rng.uniform(limits.lower, limits.upper) if start is None else start
    segments: list[Piece] = []
    holds = []
    time = 0.0
    while time < duration:
        held = rng.uniform(*rest)
        segments.append(Move(pose, pose, held))
        holds.append(time + held)
        goal = rng.uniform(limits.lower, limits.upper) if draw is None else draw(pose)
        shortest = Move.within(pose, goal, limits, SHORTEST_MOVE).duration
        segments.append(move(pose, goal, shortest))
        pose, time = goal, time + held + segments[-1].duration
    return Motion(JointPath(tuple(segments)), tuple(holds))


def smooth_motion(
    rng: np.random.Generator, joints: int, samples: int, period: float = 0.01
) -> JointMotion:
    """Return a sum of five sines from 0.15 Hz on for each joint, at even intervals [s]."""
    times = period * np.arange(samples)[:, None]
    q, qd, qdd = np.zeros((3, samples, joints))
    for k in range(1, 6):
        rate = 2.0 * np.pi * 0.15 * k
        amplitude, phase = rng.normal(0.0, 0.5 / k, joints), rng.uniform(0.0, 6.3, joints)
        q += amplitude * np.sin(rate * times + phase)
        qd += rate * amplitude * np.cos(rate * times + phase)
        qdd -= rate**2 * amplitude * np.sin(rate * times + phase)
    return JointMotion(q, qd, qdd)


def puma_trajectory(velocity_limit: FloatArray, duration: float, seed: int) -> JointPath:
    """Rest for 1 s, do the paper's move in 2 s, then move richly for the given duration [s]."""
    limits = Limits(PUMA_LOWER, PUMA_UPPER, velocity_limit)
    rich = random_sines(PAPER_GOAL, limits, duration, seed)
    rest = Move(PAPER_START, PAPER_START, 1.0)
    return JointPath((rest, Move(PAPER_START, PAPER_GOAL, 2.0), rich))


def puma_recording(duration: float, rate: float) -> Recording:
    """Simulate the block on that way, which lasts so long [s], at 60 % of the velocity limits."""
    robot = PUMA.robot()
    trajectory = puma_trajectory(0.6 * robot.velocity_limits, duration - 3.0, 1)
    return simulate(robot, trajectory, aluminium_block(), SensorModel(), rate, 0)
