"""Wrong set-ups in worse cells, or two faults at once: what may be wrong is said, no more."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from estimates import estimated
from set_ups import ORDINARY, along, worked

from load_identification.estimation.misfit.trials import Kind
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion
from load_identification.motion.joint_path import JointPath, Move
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, filtered, sample
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.misfits import FAULTS, recorded
from load_identification.simulation.motions import MOTIONS, Motion
from load_identification.simulation.robots import MOUNTS, Arm, joint, robot
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import box, load_wrench
from load_identification.typing_aliases import FloatArray

WRIST = Arm(
    robot(
        'base',
        joint('wrist', 'continuous', 'base', 'hand', axis='0 1 0'),
        joint('tilt', 'continuous', 'hand', 'ft_sensor', axis='1 0 0'),
    ),
    'ft_sensor',
    ('wrist', 'tilt'),
    (-1.2, -1.0),
    (1.2, 1.0),
    (0.9, 0.9),
)
"""A description with the orientation of the sensor and not its way: poses recorded elsewhere."""


@pytest.mark.parametrize('seed', [0, pytest.param(1, marks=pytest.mark.seeds)])
def test_torques_in_another_unit_beyond_a_pivot_that_is_not_described_are_of_no_wrong_one(
    seed: int,
) -> None:
    """Of a real recording in mN·m "N·cm" was named: forces show a centre ten times too far."""
    fault = replace(FAULTS['torque x 1000'], lever=(0.0, 0.0, 0.45))
    load = InertialParameters.from_center_of_mass(0.93, [0.0, 0.0, 0.044], 0.002 * np.eye(3))
    motion = MOTIONS['pauses'](WRIST, 8.0, np.random.default_rng(seed))
    streams = recorded(WRIST, motion, 8.0, load, fault, Conditions(), seed)
    estimator = settings.payload_estimator(Parameters())
    for batch in pieces(filtered(WRIST, *streams, Parameters())[0]):
        estimator.update(batch)
    assert estimator.misfit.named.kind is Kind.UNITS
    said = '(if the sensor moves otherwise than described: forces in N, torques in mN·m'
    assert said in estimator.misfit.cause


def test_a_sensor_turned_by_a_right_angle_is_named_where_nothing_acts_along_one_axis() -> None:
    """Axes exchanged, one of them reversed, explain as much: it had been suspected for ever."""
    mount, rng = MOUNTS['puma'], np.random.default_rng(1)
    poses = np.zeros((8, 6))
    poses[1:, 1:3] = rng.uniform(-1.0, 1.0, (7, 2))
    slow = JointPath(tuple(Move(start, end, 4.0) for start, end in pairwise(poses)))
    load = box(0.9, np.array([0.05, 0.06, 0.1]), [0.0, 0.001, 0.05], np.eye(3))
    turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

    def exerted(frame: FrameMotion) -> FloatArray:
        return (load_wrench(load, frame).reshape(-1, 2, 3) @ turn.T).reshape(-1, 6)

    path = sample(mount, Motion(slow, ()), 18.0, 250.0)
    estimator, batches = along(path, exerted, ORDINARY, 1)
    estimate = estimated(estimator, batches)
    assert estimator.misfit.named.kind is Kind.ROTATED
    assert 'the sensor is turned by 90.' in estimate.reasons[0]
    assert '; or, if this motion does not show which, axes of the wrench' in estimate.reasons[0]


@pytest.mark.parametrize(
    'name',
    [
        'world',
        *(pytest.param(each, marks=pytest.mark.seeds) for each in ('gravity 45°', 'rotated 45°')),
    ],
)
def test_in_a_cell_that_is_worse_than_ordinary_a_cause_is_suspected(name: str) -> None:
    """With twelve times the errors no cause leaves as little as an ordinary cell."""
    worse = replace(ORDINARY, errors=CellErrors().times(12.0))
    estimator, batches = worked(FAULTS[name], 'puma', 'rich', 6.0, worse)
    estimate = estimated(estimator, batches)
    kind = FAULTS[name].kind
    assert kind is not None
    assert f'({kind.value}?)' in estimator.misfit.suspicion
    assert not estimate.identified.any()
