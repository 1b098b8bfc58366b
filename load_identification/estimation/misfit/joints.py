"""Test hypotheses of a joint of the opposite sign, or of two exchanged joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import TypeAlias

import numpy as np

from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.evidence import Evidence
from load_identification.estimation.misfit.fits import Problem, problem
from load_identification.estimation.misfit.trials import NOTHING, Kind, Trial
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot
from load_identification.typing_aliases import FloatArray, IntArray

FOR_CHOICE = 60
"""Number of blocks for choosing the hypothesis that is then evaluated on all blocks."""


Wrong: TypeAlias = tuple[IntArray, FloatArray, str]
"""An error in J joints: the published column of each, (J,), their signs, (J,), and in words."""


def _wrong_joints(robot: Robot) -> Iterator[Wrong]:
    """Yield every joint of the opposite sign, and every pair exchanged."""
    count = len(robot.joints)
    for joint, name in enumerate(robot.joints):
        sign = np.where(np.arange(count) == joint, -1.0, 1.0)
        yield np.arange(count), sign, words.joint_reversed(name)
    for first, second in combinations(range(count), 2):
        order = np.arange(count)
        order[[first, second]] = second, first
        said = words.joints_exchanged(robot.joints[first], robot.joints[second])
        yield order, np.ones(count), said


def joint_trial(task: Problem, evidence: Evidence, robot: Robot) -> Trial:
    """Test every joint of the opposite sign and every pair exchanged; the mass must be positive.

    `task` is the problem of the evidence, which has the motion of the robot's joints.
    """

    def moved(wrong: Wrong, blocks: Evidence) -> Problem:
        order, sign, _ = wrong
        motion = robot.motion(*np.moveaxis(sign * blocks.joint_motion[..., order], 1, 0))
        matrix = -wrench_regressor(
            motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
        )
        bare = replace(blocks, matrix=matrix, by_acceleration=matrix[..., None][..., :0])
        return problem(bare, task.scale, 1.0)

    few = evidence.select(slice(None, None, max(len(evidence.wrench) // FOR_CHOICE, 1)))
    best = min(_wrong_joints(robot), key=lambda wrong: _left(moved(wrong, few)))
    whole = moved(best, evidence)
    rows = whole.matrix, whole.wrench
    return Trial(Kind.JOINTS, _left(whole), NOTHING, lambda _: best[2], rows)


def _left(task: Problem) -> float:
    """Return the mean square residual of payload and offset; infinite for a negative mass."""
    found, payload = task.alone()
    return found if payload[0] > 0.0 else np.inf
