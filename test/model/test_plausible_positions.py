"""Positions of joints without limits in degrees, in a stream, a recording and a file of poses."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bags import URDF, error_of, recorded

from load_identification.model.robot import Robot
from load_identification.signals.jumps import LimitGate
from load_identification.simulation.sensors import Recording
from load_identification.typing_aliases import FloatArray

ENDLESS = re.sub(r'<joint (name="[^"]*") type="revolute"', r'<joint \1 type="continuous"', URDF)
ENDLESS = re.sub(r'(lower|upper)="[^"]*"', '', ENDLESS)
STAMPS = 10**18 + np.arange(400) * 10_000_000
WORDS = r'joint_\d at -?\d+\S* rad, and most joints many turns from zero: degrees\?'


def swinging() -> FloatArray:
    """Return positions of six joints that swing about 1 rad, (400, 6) [rad]."""
    return 1.0 + 0.5 * np.sin(0.03 * np.arange(400.0))[:, None] * np.ones(6)


def gate() -> tuple[LimitGate, Robot, Counter[str]]:
    dropped = Counter[str]()
    robot = Robot(ENDLESS, 'ft_sensor')
    assert np.isinf(robot.position_limits).all()
    return LimitGate(dropped), robot, dropped


def test_most_joints_many_turns_from_zero_are_in_degrees() -> None:
    limits, robot, dropped = gate()
    assert not limits.update(robot, STAMPS, np.degrees(swinging())).any()
    assert re.fullmatch(WORDS, limits.words)
    assert dropped == {'joint_position_implausible': 400}
    # The driver is put right: positions jump.
    assert limits.update(robot, STAMPS + 4 * 10**9, swinging()).all()
    assert limits.words == ''


@pytest.mark.parametrize('joints', [1, 3])
def test_joints_that_have_made_many_turns_are_believed(joints: int) -> None:
    limits, robot, _ = gate()
    position = swinging()
    position[:, :joints] += 200.0 * np.pi
    assert limits.update(robot, STAMPS, position).all()
    assert limits.words == ''


def test_an_axis_that_turns_alone_is_believed() -> None:
    text = (
        '<robot name="table"><link name="base"/><link name="plate"/><joint name="axis" '
        'type="continuous"><parent link="base"/><child link="plate"/></joint></robot>'
    )
    robot = Robot(text, 'plate')
    assert LimitGate(Counter()).update(robot, STAMPS, np.full((400, 1), 1000.0)).all()


def test_a_frame_that_no_joint_moves_has_no_implausible_position() -> None:
    robot = Robot(URDF, 'base_link')
    assert LimitGate(Counter()).update(robot, STAMPS, np.empty((400, 0))).all()


def test_a_recording_in_degrees_is_refused(
    sim: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Slow, as the steps of a fast motion in degrees are none that joints can make.
    position, velocity = np.degrees(1.0 + 0.1 * sim.position), np.degrees(0.1 * sim.velocity)
    degrees = replace(sim, position=position, velocity=velocity)
    error = error_of(capsys, recorded(tmp_path, degrees, urdf=ENDLESS))
    assert re.search(r'samples are no joint positions: ' + WORDS, error)


@pytest.mark.parametrize(
    ('urdf', 'words'),
    [(ENDLESS, WORDS), (URDF, r'joint_\d at \S+ rad, its limits are \S+ and \S+: degrees\?')],
)
def test_poses_in_degrees_are_refused_in_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], urdf: str, words: str
) -> None:
    description, poses = tmp_path / 'arm.urdf', tmp_path / 'poses.csv'
    description.write_text(urdf)
    names = ','.join(Robot(urdf, 'ft_sensor').joints)
    poses.write_text(f'fx,fy,fz,{names}\n1,2,3,0,0,0,0,0,0\n1,2,3,90,-45,180,0,60,-120\n')
    options = ('--description', description, '--sensor-frame', 'ft_sensor')
    error = error_of(capsys, '--static', poses, *options)
    assert re.search(f'line 3: {words}', error)
