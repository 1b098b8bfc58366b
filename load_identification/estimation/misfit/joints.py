"""Test hypotheses of a joint of the opposite sign, or of two exchanged joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

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


@dataclass(frozen=True, eq=False)
class _Joints:
    """A hypothesis of the true joints.

    Attributes
    ----------
    order : (J,) int array
        Published column of each joint.
    sign : (J,) array
    words : str
    """

    order: IntArray
    sign: FloatArray
    words: str

    def moved(self, evidence: Evidence, robot: Robot) -> Evidence:
        """Return the evidence under the hypothesis that these joints move the sensor."""
        position, velocity, acceleration = np.moveaxis(
            self.sign * evidence.joint_motion[..., self.order], 1, 0
        )
        motion = robot.motion(position, velocity, acceleration)
        matrix = -wrench_regressor(
            motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
        )
        return replace(evidence, matrix=matrix, by_acceleration=matrix[..., None][..., :0])


def _every(robot: Robot) -> Iterator[_Joints]:
    """Yield every hypothesis of an error in the joints of a robot."""
    count = len(robot.joints)
    for joint, name in enumerate(robot.joints):
        sign = np.where(np.arange(count) == joint, -1.0, 1.0)
        yield _Joints(np.arange(count), sign, words.joint_reversed(name))
    for first, second in combinations(range(count), 2):
        order = np.arange(count)
        order[[first, second]] = second, first
        said = words.joints_exchanged(robot.joints[first], robot.joints[second])
        yield _Joints(order, np.ones(count), said)


def joint_trial(task: Problem, evidence: Evidence, robot: Robot) -> Trial:
    """Test every joint of the opposite sign and every pair exchanged; the mass must be positive.

    Parameters
    ----------
    task : Problem
        Problem of the evidence.
    evidence : Evidence
        Evidence with the motion of the robot's joints.
    robot : Robot
    """

    def moved(joints: _Joints, blocks: Evidence) -> Problem:
        return problem(joints.moved(blocks, robot), task.scale, 1.0)

    few = evidence.select(slice(None, None, max(len(evidence.wrench) // FOR_CHOICE, 1)))
    best = min(_every(robot), key=lambda joints: _left(moved(joints, few)))
    whole = moved(best, evidence)
    rows = whole.matrix, whole.wrench
    return Trial(Kind.JOINTS, _left(whole), NOTHING, lambda _: best.words, lambda: rows)


def _left(task: Problem) -> float:
    """Return the mean square residual of payload and offset; infinite for a negative mass."""
    found, payload = task.alone()
    return found if payload[0] > 0.0 else np.inf
