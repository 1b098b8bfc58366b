"""The small motion about a pose: what it keeps to, and what is refused with which reason."""

from __future__ import annotations

import re

import numpy as np
import pytest

from load_identification.errors import ParameterError
from load_identification.model.robot import Robot
from load_identification.motion.clearance import BOX, FLOOR, PAYLOAD, Clearance
from load_identification.motion.guided import (
    CLEARANCE,
    GuidedMotion,
    GuidedRequest,
    RefusedMotionError,
    plan_guided,
)
from load_identification.motion.joint_path import Stretch
from load_identification.motion.limits import RISE, Box
from load_identification.simulation.robots import MOUNTS, puma_description
from load_identification.typing_aliases import FloatArray

BALL = '<collision><geometry><sphere radius="0.06"/></geometry></collision>'
PUMA = re.sub(r'(<link name="\w+">)', rf'\1{BALL}', puma_description())
"""With shapes of its own: what is guessed for links without any is no matter of these tests."""
ROBOT = Robot(PUMA, 'ft_sensor')
POSE = np.deg2rad([0.0, -45.0, 135.0, 0.0, -60.0, 0.0])
SMALL = np.deg2rad(10.0)


def planned(pose: FloatArray = POSE, request: GuidedRequest | None = None) -> GuidedMotion:
    """Plan for the PUMA."""
    return plan_guided(PUMA, ROBOT, pose, request or GuidedRequest())


def with_joint(number: int, degrees: float) -> FloatArray:
    """Return the pose with one joint elsewhere."""
    pose = POSE.copy()
    pose[number - 1] = np.deg2rad(degrees)
    return pose


@pytest.mark.parametrize(
    ('name', 'pose'),
    [('puma', POSE), ('seven_joints', np.array([0.0, 0.4, -0.3, 0.7, 0.2, 0.5, 0.3]))],
)
def test_last_turning_joints_move_within_amplitude_speed_and_acceleration(
    name: str, pose: FloatArray
) -> None:
    mount = MOUNTS[name]
    urdf = PUMA if name == 'puma' else mount.urdf
    robot = Robot(urdf, mount.sensor_frame)
    motion = plan_guided(
        urdf, robot, pose, GuidedRequest(SMALL, 0.2, floor=None, payload_radius=0.0)
    )
    turning = np.flatnonzero(~robot.prismatic)
    assert motion.moved == tuple(turning[-3:])
    q, qd, qdd = motion.path.sample(np.linspace(0.0, motion.path.duration, 5000))
    limit = np.where(np.isin(np.arange(len(pose)), motion.moved), robot.velocity_limits, 0.0)
    # A rounding beside: the joints that stand still stand still.
    assert np.all(np.abs(q - pose) <= SMALL * (limit > 0.0) + 1e-12)
    assert np.all(np.abs(qd) <= 0.2 * limit + 1e-12)
    assert np.all(np.abs(qdd) <= limit / RISE + 1e-12)
    # It uses what it may: inertia shows in nothing else.
    assert np.max(np.abs(q - pose)) > 0.5 * SMALL


def test_braking_anywhere_keeps_limits_and_path_and_takes_less_than_half_a_second() -> None:
    motion = planned()
    assert motion.brake < 0.4
    limit = ROBOT.velocity_limits
    for begin in np.arange(0.0, motion.path.duration, 0.05):
        stretch = Stretch(motion.path, float(begin), 0.0, motion.brake)
        _, qd, qdd = stretch.sample(np.linspace(0.0, motion.brake, 50))
        assert np.all(np.abs(qd) <= 0.3 * limit)
        assert np.all(np.abs(qdd) <= limit / RISE)


def test_way_back_is_straight_from_rest_to_rest_within_the_limits() -> None:
    motion = planned()
    back = motion.back_from(motion.path.sample(np.array([3.0])).position[0])
    q, qd, qdd = back.sample(np.linspace(0.0, back.duration, 1000))
    np.testing.assert_array_equal(q[-1], POSE)
    assert np.all(np.abs(qd) <= 0.3 * ROBOT.velocity_limits + 1e-12)
    assert np.all(np.abs(qdd) <= ROBOT.velocity_limits / RISE + 1e-12)


def test_whole_motion_and_every_way_back_stay_clear() -> None:
    box = Box([0.97, -0.5, 0.3], [1.2, 0.5, 1.2])
    request = GuidedRequest(floor=0.0, keep_out=(box,), payload_radius=0.1)
    motion = planned(request=request)
    clearance = Clearance(
        PUMA, ROBOT.joints, floor=0.0, keep_out=[box], tip_frame='ft_sensor', payload_radius=0.1
    )
    for time in (1.0, 4.0, 9.0):
        there = motion.path.sample(np.array([time])).position[0]
        back = motion.back_from(there)
        ways = np.vstack([there, back.sample(np.linspace(0.0, back.duration, 20)).position])
        # Postures in between are not looked at: a centimetre at most in a tenth of a second.
        assert np.min(clearance.distance(ways)) > CLEARANCE - 0.01
    assert motion.clearance >= CLEARANCE


def test_links_that_a_large_ball_always_touches_are_named() -> None:
    assert planned(request=GuidedRequest(floor=None)).covered == ()
    large = planned(request=GuidedRequest(floor=None, payload_radius=0.5))
    assert large.covered == ('link_3', 'link_4')


@pytest.mark.parametrize(
    ('pose', 'words'),
    [
        (with_joint(5, -95.0), r'joint_5 stands at -95\.0°, 5\.0° from its lower limit'),
        (with_joint(5, 100.0), r'joint_5 stands at 100\.0°, 0\.0° from its upper limit'),
        (with_joint(4, -111.0), r'joint_4 stands at -111\.0°, beyond its lower limit of -110\.0°'),
    ],
)
def test_joint_at_its_limit_is_refused_and_named(pose: FloatArray, words: str) -> None:
    with pytest.raises(RefusedMotionError, match=words):
        planned(pose)


def test_refusal_says_which_smaller_motion_would_fit() -> None:
    words = r'20\.0° either way need 21\.0° there.*; 10° either way would fit'
    with pytest.raises(RefusedMotionError, match=words):
        planned(with_joint(4, -95.0))
    planned(with_joint(4, -95.0), GuidedRequest(amplitude=SMALL))


LOW = np.deg2rad([0.0, 10.0, 170.0, 0.0, 20.0, 0.0])
"""The hand 8 cm above the floor."""


@pytest.mark.parametrize(
    ('pose', 'request_', 'words'),
    [
        (LOW, GuidedRequest(), f'and {FLOOR} stand .* mm into each other'),
        (POSE, GuidedRequest(payload_radius=0.4), f'{PAYLOAD} and link_.*, or give the radius of'),
        (
            POSE,
            GuidedRequest(keep_out=(Box([0.91, -0.5, 0.3], [1.2, 0.5, 1.2]),)),
            f'{PAYLOAD} and {BOX} come on the way .* mm apart.*would fit',
        ),
        (POSE, GuidedRequest(keep_out=(Box([0.7, 0.0, 1.0], [0.8, 0.2, 1.2]),)), f'{BOX} stand'),
    ],
)
def test_what_comes_too_near_is_refused_and_named(
    pose: FloatArray, request_: GuidedRequest, words: str
) -> None:
    with pytest.raises(RefusedMotionError, match=words) as caught:
        planned(pose, request_)
    assert f'{1e3 * CLEARANCE:.0f} mm are kept' in str(caught.value)


def test_wrist_built_nearer_than_is_kept_is_moved_all_the_same() -> None:
    # As on a UR5e, whose wrist 3 is 14 to 20 mm from its wrist 1 in every pose.
    urdf = PUMA
    for link, height in (('link_4', 0.438), ('link_6', 0.075)):
        name = f'<link name="{link}">'
        ball = BALL.replace('<geometry>', f'<origin xyz="0 0 {height}"/><geometry>')
        urdf = urdf.replace(name + BALL, name + ball.replace('0.06', '0.03'))
    robot = Robot(urdf, 'ft_sensor')
    assert plan_guided(urdf, robot, POSE, GuidedRequest()).clearance >= CLEARANCE


@pytest.mark.parametrize(
    'values',
    [
        {'amplitude': 0.0},
        {'amplitude': np.deg2rad(50.0)},
        {'speed': 0.0},
        {'speed': 0.31},
        {'payload_radius': -0.1},
        {'amplitude': np.nan},
        {'floor': np.nan},
    ],
)
def test_unusable_request_is_refused_with_what_is_allowed(values: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match='it must be'):
        GuidedRequest(**values)
