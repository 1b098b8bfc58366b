"""The arm model file: what is written is read, and what cannot be used is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from random_arms import random_samples, random_urdf

from load_identification.arm.arm_file import IdentifiedArm, read_arm_model, write_arm_model
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.errors import ParameterError
from load_identification.simulation.robots import PinocchioArm

JOINTS = 3
URDF = random_urdf(np.random.default_rng(5), JOINTS)
DRIVES = (
    DriveModel('asymmetric', 'symmetric', rotor_inertia=True, transition_velocity=0.02),
    DriveModel('symmetric', 'asymmetric', offset=True),
    DriveModel('none', 'none'),
    DriveModel('symmetric', 'symmetric', stribeck_velocity=0.2, load_friction=True),
)


def identified(drive: DriveModel, seed: int = 1) -> IdentifiedArm:
    """Return an arm with numbers at random, and a covariance of rank two thirds."""
    rng = np.random.default_rng(seed)
    arm = Arm(URDF, (0.5, -0.3, 9.7))
    size = (11 + len(drive.terms)) * JOINTS
    root = np.zeros((size, size))
    told = rng.permutation(size)[: 2 * size // 3]
    root[told] = rng.normal(size=(len(told), size))
    return IdentifiedArm(
        joints=arm.joints,
        links=arm.bodies,
        gravity=arm.gravity,
        drive=drive,
        parameters=arm.nominal,
        drives=rng.uniform(0.1, 0.9, (JOINTS, len(drive.terms))),
        noise=rng.uniform(0.01, 0.2, JOINTS),
        slow=rng.uniform(0.0, 0.2, JOINTS),
        cutoff=12.5,
        covariance=1e-4 * root @ root.T,
        velocities=drive.offset,
        effort_scale=rng.uniform(0.1, 2.0, JOINTS),
    )


@pytest.mark.parametrize('drive', DRIVES, ids=lambda drive: f'{drive.coulomb}-{drive.viscous}')
def test_what_is_written_is_read(tmp_path: Path, drive: DriveModel) -> None:
    arm = identified(drive)
    write_arm_model(tmp_path / 'arm.yaml', arm)
    read = read_arm_model(tmp_path / 'arm.yaml')
    for name in ('joints', 'links', 'drive', 'cutoff', 'velocities'):
        assert getattr(read, name) == getattr(arm, name)
    # Written in full: a link at the border of what can be built is not rounded across it.
    assert np.array_equal(read.parameters, arm.parameters)
    for name in ('gravity', 'drives', 'noise', 'slow', 'covariance'):
        # Nine digits are written.
        np.testing.assert_allclose(getattr(read, name), getattr(arm, name), rtol=1e-8)


def test_a_file_from_before_friction_under_load_is_read(tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    write_arm_model(path, identified(DRIVES[1]))
    content = yaml.safe_load(path.read_text())
    del content['drive']['stribeck_velocity'], content['drive']['load_friction']
    path.write_text(yaml.safe_dump(content))
    assert read_arm_model(path).drive == DRIVES[1]


def test_noise_of_a_file_from_before_slow_errors_may_be_slow(tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    write_arm_model(path, identified(DRIVES[1]))
    content = yaml.safe_load(path.read_text())
    for joint in content['joints']:
        del joint['slow_error']
    path.write_text(yaml.safe_dump(content))
    read = read_arm_model(path)
    np.testing.assert_array_equal(read.slow, read.noise)


def test_friction_of_all_of_the_load_is_refused() -> None:
    arm = identified(DRIVES[3])
    with pytest.raises(ParameterError, match='load_friction of a joint is 1 or more'):
        replace(arm, drives=arm.drives + 1.0)


def test_values_are_those_of_the_model_on_the_description() -> None:
    arm = identified(DRIVES[0])
    model = arm.model(URDF)
    motion = random_samples(np.random.default_rng(2), JOINTS)
    _, qd, qdd = motion
    sign = np.tanh(qd / 0.02)
    forward, backward, viscous, rotor = arm.drives.T
    drives = forward * np.maximum(sign, 0) + backward * np.minimum(sign, 0) + viscous * qd
    expected = PinocchioArm(URDF, arm.gravity).torque(motion) + drives + rotor * qdd
    # Rounding of sums of about a hundred.
    np.testing.assert_allclose(model.predict(arm.values, motion), expected, atol=1e-10)


def test_a_description_of_another_arm_is_refused() -> None:
    arm = identified(DRIVES[0])
    other = URDF.replace('link_1', 'forearm')
    with pytest.raises(ParameterError, match=r'forearm'):
        arm.model(other)


def test_the_file_names_every_number(tmp_path: Path) -> None:
    arm = identified(DRIVES[1])
    write_arm_model(tmp_path / 'arm.yaml', arm)
    content = yaml.safe_load((tmp_path / 'arm.yaml').read_text())
    joint = content['joints'][1]
    assert (joint['name'], joint['link']) == ('joint_1', 'link_1')
    assert joint['parameters']['mcy'] == pytest.approx(arm.parameters[1, 2])
    assert list(joint['drive']) == ['coulomb', 'viscous+', 'viscous-', 'offset']
    names = (*arm.model(URDF).names, *(f'{name}.effort_scale' for name in arm.joints))
    determined = np.flatnonzero(np.diag(arm.covariance))
    assert content['covariance']['parameters'] == [names[i] for i in determined]


CASES = [
    (('version',), 1, r'version is 1; this program reads 2'),
    (('cutoff',), -1.0, r'cutoff is -1.0; it must be above 0'),
    (('cutoff',), True, r'cutoff is True; it must be a number from'),
    (('gravity',), [0.0, 1.0], r'gravity is .*; it must be a list of 3 numbers'),
    (('drive', 'coulomb'), 'large', r"Coulomb friction is 'large'"),
    (('drive', 'offset'), 'no', r"drive.offset is 'no'; it must be true or false"),
    (('joints',), {}, r'joints is \{\}; it must be a list'),
    (('joints', 1, 'noise'), 0.0, r'noise of joint_1 is 0.0'),
    (('joints', 1, 'slow_error'), -0.1, r'slow_error of joint_1 is -0.1; it must not be below 0'),
    (('joints', 1, 'slow_error'), 'much', r"joint_1.slow_error is 'much'; it must be a number"),
    (('joints', 1, 'effort_scale'), 0.0, r'effort_scale of joint_1 is 0; it must be another'),
    (('joints', 1, 'parameters', 'm'), 'heavy', r"joint_1.parameters.m is 'heavy'"),
    (('joints', 1, 'parameters', 'Ixx'), -1.0, r'link_1 are of no physically consistent body'),
    (('joints', 2, 'drive'), {'coulomb': 1.0}, r'joint_2.drive.viscous\+ is missing'),
    (
        ('joints', 2, 'name'),
        'joint_1',
        r'joints are joint_0, joint_1, joint_1; each must be there once',
    ),
    (('covariance', 'parameters', 0), 'elbow.m', r'covariance.parameters has elbow.m'),
    (('covariance', 'matrix', 3), [1.0], r'covariance.matrix\[3\] is \[1.0\]; it must be a'),
    (('covariance', 'matrix', 3, 3), float('nan'), r'covariance.matrix\[3\] is nan'),
    (('covariance', 'matrix', 3, 3), -1.0, r'covariance has a variance below 0'),
    (('covariance', 'matrix', 3, 2), 9.0, r'covariance is not symmetric'),
]


@pytest.mark.parametrize(('place', 'value', 'message'), CASES)
def test_an_unusable_field_is_named_with_its_file(
    tmp_path: Path, place: tuple[str | int, ...], value: object, message: str
) -> None:
    path = tmp_path / 'arm.yaml'
    write_arm_model(path, identified(DRIVES[1]))
    content = yaml.safe_load(path.read_text())
    part = content
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ParameterError, match=rf'(?s)arm\.yaml.*{message}'):
        read_arm_model(path)


@pytest.mark.parametrize('text', ['', '[1, 2', 'version: 1', '\x00', '- a', 'joints: ['])
def test_a_file_that_is_no_arm_model_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / 'arm.yaml'
    path.write_text(text)
    with pytest.raises(ParameterError, match=r'arm\.yaml'):
        read_arm_model(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r'nowhere\.yaml cannot be read: No such file'):
        read_arm_model(tmp_path / 'nowhere.yaml')
    with pytest.raises(ParameterError, match=r'arm\.yaml cannot be written: No such file'):
        write_arm_model(tmp_path / 'nowhere' / 'arm.yaml', identified(DRIVES[0]))
