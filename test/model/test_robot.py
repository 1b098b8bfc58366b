"""What a robot description gives: chain, motion, and errors in words."""

from __future__ import annotations

import numpy as np
import pytest

from load_identification.errors import DescriptionError, FrameError, ParameterError
from load_identification.model.robot import FrameMotion, Robot
from load_identification.simulation.robots import (
    ARMS,
    SCARA,
    SEVEN_JOINTS,
    SIX_JOINTS,
    Arm,
    joint,
    robot,
)
from load_identification.typing_aliases import FloatArray

all_arms = pytest.mark.parametrize('arm', ARMS.values(), ids=ARMS)


def random_joint_motion(arm: Arm, n: int = 5) -> tuple[FloatArray, FloatArray, FloatArray]:
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, n, len(arm.joints)))
    return q, qd, qdd


def assert_same(one: FrameMotion, other: FrameMotion, atol: float = 0.0) -> None:
    for field in vars(one):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=0, atol=atol)


@all_arms
def test_joints_are_those_of_the_chain_from_the_root_on(arm: Arm) -> None:
    assert Robot(arm.urdf, arm.sensor_frame).joints == arm.joints


def test_velocity_limits_are_infinite_where_there_are_none() -> None:
    limits = Robot(SCARA.urdf, SCARA.sensor_frame).velocity_limits
    np.testing.assert_array_equal(limits, [2.5, 2.5, 2.5, np.inf, np.inf])


@all_arms
def test_motion_by_joint_is_the_derivative_of_the_motion(arm: Arm) -> None:
    description = Robot(arm.urdf, arm.sensor_frame, np.array([3.0, -4.0, 5.0]))
    q, qd, qdd = random_joint_motion(arm)

    def motion(q: FloatArray) -> FloatArray:
        m = description.motion(q, qd, qdd)
        return np.hstack([m.linear_acceleration, m.angular_velocity, m.angular_acceleration])

    found = description.motion(q, qd, qdd).motion_by_joint
    assert found.shape == (len(q), 9, len(arm.joints))
    h = 1e-6
    for k, step in enumerate(h * np.eye(len(arm.joints))):
        numeric = (motion(q + step) - motion(q - step)) / (2.0 * h)
        # Rounding of the accelerations, 1e-14, over h.
        np.testing.assert_allclose(found[:, :, k], numeric, atol=1e-7)


def test_gravity_points_down_the_root_frame_by_default() -> None:
    motion = Robot(SIX_JOINTS.urdf, 'base_link').motion(*np.empty((3, 1, 0)))
    np.testing.assert_array_equal(motion.gravity, [[0.0, 0.0, -9.80665]])


def test_continuous_joints_take_plain_angles() -> None:
    q, qd, qdd = random_joint_motion(SCARA)
    turns = 2.0 * np.pi * np.array([0.0, 0.0, 0.0, 1.0, -3.0])
    description = Robot(SCARA.urdf, SCARA.sensor_frame)
    # Six turns are 19 rad, so an angle loses a few units of 1e-15.
    assert_same(description.motion(q + turns, qd, qdd), description.motion(q, qd, qdd), atol=1e-12)


def test_sensor_on_the_root_does_not_move() -> None:
    description = Robot(SEVEN_JOINTS.urdf, 'torso')
    assert description.joints == ()
    motion = description.motion(*np.empty((3, 4, 0)))
    assert not motion.linear_velocity.any()
    assert not motion.angular_acceleration.any()
    assert motion.gravity.shape == (4, 3)


CLUTTER = """
  <gazebo reference="tool0"><mu1 value="0.2"/></gazebo>
  <gazebo><plugin name="ros2_control" filename="libgazebo_ros2_control.so"/></gazebo>
  <transmission name="t">
    <type>transmission_interface/SimpleTransmission</type>
    <joint name="elbow"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
  </transmission>
  <ros2_control name="arm" type="system">
    <joint name="wrist_1"><param name="mimic">elbow</param><mimic joint="elbow"/></joint>
  </ros2_control>
  <sensor:camera name="of an undeclared prefix"/>
  <!-- -- a comment that XML forbids -- -->
  <link name="painted">
    <visual><geometry><mesh filename="package://nowhere/painted.dae"/></geometry></visual>
    <collision><geometry><mesh filename="package://nowhere/painted.stl"/></geometry></collision>
  </link>
  <joint name="paint" type="fixed"><parent link="tool0"/><child link="painted"/></joint>
"""


def test_what_does_not_concern_the_chain_does_not_matter() -> None:
    """Simulators' tags, absent meshes, planar, floating and mimicking joints beside."""
    beside = joint('dolly', 'planar', 'base_link', 'cart') + joint('p', 'floating', 'cart', 'puck')
    urdf = SIX_JOINTS.urdf.replace('</robot>', CLUTTER + beside + '</robot>')
    urdf = '\n<?xml version="1.0" encoding="utf-8"?>\n' + urdf
    cluttered, plain = Robot(urdf, 'ft_sensor'), Robot(SIX_JOINTS.urdf, 'ft_sensor')
    assert cluttered.joints == plain.joints
    samples = random_joint_motion(SIX_JOINTS)
    assert_same(cluttered.motion(*samples), plain.motion(*samples))


def test_link_is_not_taken_for_a_joint_of_the_same_name() -> None:
    urdf = robot(
        'base', joint('tool', 'revolute', 'base', 'arm'), joint('f', 'fixed', 'arm', 'tool')
    )
    description = Robot(urdf, 'tool')
    assert description.joints == ('tool',)
    motion = description.motion(*np.ones((3, 2, 1)))
    np.testing.assert_array_equal(motion.angular_velocity, [[0.0, 0.0, 1.0]] * 2)


@pytest.mark.parametrize(
    ('frame', 'words'),
    [
        ('/ft_sensor', "'/ft_sensor' is not a link: .* close to it: .*'ft_sensor'"),
        ('FT', "to the link it is; links of the robot description: .*'ft_sensor'"),
        ('', "to the link it is; links of the robot description: .*'ft_sensor'"),
        (
            'ft_sensor_controller',
            'not a link: set sensor_frame to the link it is, e.g. ft_sensor;',
        ),
        ('elbow', "'elbow' is not a link"),
    ],
)
def test_unknown_frame_is_named_with_the_links_close_to_it(frame: str, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        Robot(SIX_JOINTS.urdf, frame)


@pytest.mark.parametrize(
    ('bad_joint', 'words'),
    [
        (joint('j', 'floating', 'base', 's'), "'j' .* of type 'floating', allowed are fixed, rev"),
        (joint('j', 'planar', 'base', 's'), "'j' .* of type 'planar'"),
        (
            joint('other', 'revolute', 'base', 'b')
            + joint('j', 'revolute', 'base', 's', inside='<mimic joint="other"/>'),
            "'j' .* mimics 'other'",
        ),
        (joint('j', 'revolute', 'base', 's', axis='0 0 0'), "'j' has the axis 0 0 0"),
    ],
)
def test_joints_that_one_position_does_not_describe_are_refused(
    bad_joint: str, words: str
) -> None:
    with pytest.raises(DescriptionError, match=words):
        Robot(robot('base', bad_joint), 's')


def test_a_locked_joint_may_have_any_axis() -> None:
    fixed = joint('still', 'revolute', 'base', 'a', axis='0 0 0')
    found = Robot(robot('base', fixed, joint('j', 'revolute', 'a', 's')), 's', locked=('still',))
    assert found.joints == ('j',)


@pytest.mark.parametrize(
    ('urdf', 'words'),
    [
        ('', 'EMPTY_DOCUMENT'),
        ('package://arm/arm.urdf', 'PARSING_TEXT'),
        ('<robot name="arm"/>', 'No link elements'),
        ('<robot name="arm"><link name="a"/><link name="b"/></robot>', 'Two root links found'),
        (SIX_JOINTS.urdf.replace('type="revolute"', 'type="hinge"'), r'no known type \[hinge\]'),
        (SIX_JOINTS.urdf + '<robot/>', 'junk after document element'),
    ],
)
def test_text_that_is_no_urdf_is_refused_in_the_parsers_words(
    urdf: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DescriptionError, match=words):
        Robot(urdf, 'ft_sensor')
    assert capfd.readouterr().err == ''


@pytest.mark.parametrize('gravity', [(0.0, -9.8), (0.0, 0.0, np.nan)])
def test_gravity_that_is_no_vector_is_refused(gravity: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match='gravity must be three finite numbers'):
        Robot(SIX_JOINTS.urdf, 'ft_sensor', gravity)
