"""What is said of an arm that keeps the sensor level: there only acceleration shows a mass."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from load_identification.estimation.identifiability import FASTER, TURN
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import joint_axes
from load_identification.motion.joint_path import JointPath, Move
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered, record, sample
from load_identification.simulation.motions import Motion
from load_identification.simulation.robots import SIX_JOINTS, Arm, joint, robot
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.typing_aliases import FloatArray

LEVEL = Arm(
    robot(
        'base',
        joint('column', 'revolute', 'base', 'inner_arm', '0 0 0.4'),
        joint('elbow', 'revolute', 'inner_arm', 'outer_arm', '0.35 0 0'),
        joint('quill', 'prismatic', 'outer_arm', 'quill_link', '0.3 0 0', axis='0 0 -1'),
        joint('roll', 'continuous', 'quill_link', 'wrist', '0 0 -0.1', '3.1415927 0 0.4'),
    ),
    'wrist',
    ('column', 'elbow', 'quill', 'roll'),
)
LOAD = InertialParameters.from_center_of_mass(
    1.4, np.array([0.02, -0.01, 0.09]), np.diag([0.004, 0.004, 0.003])
)
START: FloatArray = np.array([0.2, 0.6, 0.05, 0.0])
SLOWLY = (
    Move(START, START, 1.0),
    Move(START, START + np.array([0.3, -0.4, 0.03, 0.5]), 8.0),
    Move(START + np.array([0.3, -0.4, 0.03, 0.5]), START, 8.0),
)
ADVISED = re.compile(
    r'rotate (\w+) through 60° at (\S+) rad/s or more, (\d+) times to and fro: '
    r'mass std (\S+) kg expected'
)


def played(moves: tuple[Move, ...], arm: Arm = LEVEL) -> FilteredBatch:
    path = JointPath(moves)
    sampled = sample(arm, Motion(path), path.duration, 250.0)
    return filtered(arm, *record(sampled, LOAD, Conditions(CellErrors()), 1), Parameters())[0]


def after(batch: FilteredBatch) -> PayloadEstimator:
    estimator = settings.payload_estimator(Parameters())
    estimator.update(batch)
    estimator.finish()
    return estimator


@pytest.fixture(scope='module')
def slow() -> FilteredBatch:
    return played(SLOWLY)


def test_it_is_told_to_move_faster_and_the_swing_that_is_advised_finds_the_mass(
    slow: FilteredBatch,
) -> None:
    """It was told to turn the sensor against gravity, and to measure the tilt of the base."""
    estimator = after(slow)
    estimate = estimator.estimate()
    assert estimate is not None
    assert len(estimate.reasons) == 1
    assert estimate.reasons[0].endswith(f': {FASTER}')
    words = estimator.advice(joint_axes(LEVEL.robot(), START))
    advised = ADVISED.match(words)
    assert advised is not None, words
    there = START + np.deg2rad(60.0) * (np.array(LEVEL.joints) == advised[1])
    # The peak rate of a Move is 15/8 of its mean.
    seconds = 15.0 / 8.0 * np.deg2rad(60.0) / float(advised[2])
    swing = (Move(START, there, seconds), Move(there, START, seconds))
    moves = (*SLOWLY, *int(advised[3]) * swing, Move(START, START, 0.5))
    found = after(played(moves)).estimate()
    assert found is not None
    assert found.identified[0]
    # What errors of the cell would leave was predicted for a mass that was hardly known.
    assert found.std[0] < 1.3 * float(advised[4])
    assert abs(found.values[0] - LOAD.mass) < 3.0 * found.std[0]


def test_where_its_joints_are_not_known_no_turn_is_advised(slow: FilteredBatch) -> None:
    """As in a process of its own, which knows of the joints what filtered/kinematics has."""
    estimator = after(replace(slow, robot=None))
    assert estimator.advice() == f'mass: {FASTER}'


def test_other_arms_are_told_to_turn_the_sensor() -> None:
    pose = np.linspace(0.3, -0.4, 6)
    turned = pose + 0.01
    moves = (Move(pose, turned, 3.0), Move(turned, pose, 3.0))
    estimate = after(played(moves, SIX_JOINTS)).estimate()
    assert estimate is not None
    assert estimate.reasons[0].endswith(f': {TURN}')
