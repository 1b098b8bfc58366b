"""Motors that move several joints: a differential wrist, identified and weighing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from arm_bags import GRAVITY, NOMINAL, TRUTH, efforts, relative_errors
from arm_bags import JOINTS as THREE
from bags import Command, description, write
from joint_weighing import weighed

from load_identification.arm.arm_estimate import ArmEstimate, identified_arm
from load_identification.arm.arm_file import read_arm_model, write_arm_model
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.transmission import Transmission, read_transmission
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.filtering import FilteredRecording
from load_identification.arm.identification import identify_motion
from load_identification.arm.settings import Settings
from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import to_message_order
from load_identification.simulation.excited_arm import friction
from load_identification.simulation.motions import smooth_motion
from load_identification.simulation.robots import SEVEN_JOINTS, PinocchioArm
from load_identification.simulation.weighing_arm import (
    CUTOFF,
    DRIVE,
    JOINTS,
    PAYLOAD,
    WRIST,
    Run,
    filtered,
    run,
)
from load_identification.typing_aliases import FloatArray

FILE = """\
joints: [joint_2, joint_3]
matrix:
- [1.0, 0.0]
- [-1.0, 1.0]
efforts: {}
"""
"""The motor of the forearm stands on the base: a parallelogram or a belt."""


@pytest.fixture(scope='module')
def fitted() -> Run:
    return run(30.0, 1, coupled=WRIST)


def log_of(moved: Run, seed: int, efforts: str) -> FilteredRecording:
    """Return filtered efforts as they are published, of motors or of joints."""
    own = filtered(moved.measured(seed))
    out = FilteredRecording.of(np.asarray(1e-9 * own.stamps), own)
    if efforts == 'motors':
        return out
    return replace(out, measured=out.measured @ WRIST.over(JOINTS))


def identified(log: FilteredRecording, transmission: Transmission | None) -> ArmEstimate:
    drive = replace(DRIVE, transition_velocity=0.02)
    model = ArmModel(Arm(SEVEN_JOINTS.urdf, joints=JOINTS), drive, transmission)
    return identify_motion(model, log, Settings(transition_velocities=()))


def test_a_wrist_is_predicted_better_with_its_matrix_than_without(fitted: Run) -> None:
    log, other = (
        log_of(one, k, 'joints') for k, one in enumerate([fitted, run(15.0, 2, coupled=WRIST)])
    )
    without = identified(log, None)
    left = (other.measured - without.predict(other.motion))[:, 5:]
    joints = replace(WRIST, efforts='joints')
    log, motors = (
        replace(one, measured=joints.motor_efforts(one.measured, JOINTS)) for one in (log, other)
    )
    found = identified(log, joints).predict(other.motion)
    with_matrix = (motors.measured - found) @ WRIST.over(JOINTS)
    assert np.linalg.norm(with_matrix[:, 5:]) < 0.6 * np.linalg.norm(left)


def test_it_weighs_by_the_torques_of_its_motors(fitted: Run, tmp_path: Path) -> None:
    arm = identified_arm(identified(log_of(fitted, 0, 'motors'), WRIST), CUTOFF)
    write_arm_model(tmp_path / 'arm.yaml', arm)
    arm = read_arm_model(tmp_path / 'arm.yaml')
    joints = run(15.0, 3, PAYLOAD, coupled=WRIST).measured(5)
    found = weighed(arm, joints)
    off = found.values - to_message_order(PAYLOAD.to_vector())
    assert (np.abs(off) < 3.5 * found.std).all()
    assert np.abs(off[0]) < 0.05
    assert (np.abs(off[1:4]) < 5e-3).all()


def moved(seed: int, matrix: FloatArray, efforts_of: str) -> tuple[FloatArray, ...]:
    """Return a motion of the three-joint arm, friction at its motors."""
    rng = np.random.default_rng(seed)
    motion = smooth_motion(rng, 3, 1500, 0.01)
    q, qd, _ = motion
    links = PinocchioArm(TRUTH, GRAVITY).torque(motion)
    motors = links @ np.linalg.inv(matrix) + friction(qd @ matrix.T)
    effort = motors if efforts_of == 'motors' else motors @ matrix
    return np.arange(1500) / 100.0, q, qd, effort + rng.normal(0.0, 0.02, q.shape)


@pytest.mark.usefixtures('unchosen')
@pytest.mark.parametrize('of', ['motors', 'joints'])
def test_the_command_takes_a_matrix(tmp_path: Path, command: Command, of: str) -> None:
    path = tmp_path / 'coupled.yaml'
    path.write_text(FILE.format(of), encoding='utf-8')
    matrix = read_transmission(path).over(THREE)
    bag = write(tmp_path / 'bag', [description(NOMINAL), *efforts(*moved(1, matrix, of))])
    model = tmp_path / 'arm.yaml'
    status, out, _ = command(bag, '--cutoff', 10, '--transmission', path, '--model', model)
    assert status == 0
    with_matrix, *_ = relative_errors(out)
    _, out, _ = command(bag, '--cutoff', 10)
    assert with_matrix < 0.5 * relative_errors(out)[0]
    written = read_arm_model(model).transmission
    assert written.fields == read_transmission(path).fields


@pytest.mark.parametrize(
    ('old', 'new', 'words'),
    [
        ('[-1.0, 1.0]', '[1.0, 0.0]', 'an inverse'),
        ('joint_3', 'joint_2', 'two or more'),
        ('joint_3', 'joint_9', 'those of the arm are joint_1, joint_2, joint_3'),
        ('- [-1.0, 1.0]\n', '', 'a row for each'),
        ('motors', 'wheels', 'motors or joints'),
    ],
)
def test_what_is_no_matrix_of_the_arm_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = tmp_path / 'coupled.yaml'
    path.write_text(FILE.format('motors').replace(old, new), encoding='utf-8')
    with pytest.raises(ParameterError, match=words):
        read_transmission(path).over(THREE)
