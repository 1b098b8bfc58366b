"""The wrench from joint torques: true to Pinocchio, honest about what it does not know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import not_none

from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.payload.effort_filter import EffortFilter
from load_identification.arm.payload.joint_wrench import (
    check_visible,
    random_poses,
    sensor_jacobian,
    torque_to_wrench,
    unseen_parameters,
    visible_components,
)
from load_identification.errors import DescriptionError
from load_identification.interface.batches import EffortBatch, FilteredBatch
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot
from load_identification.simulation.robots import SCARA, SEVEN_JOINTS, SIX_JOINTS
from load_identification.simulation.weighing_arm import (
    FRAME,
    JOINTS,
    MAX_GAP,
    NOISE,
    NS,
    PAYLOAD,
    RATE,
    Run,
    certain,
    differentiator,
    exact_arm,
    friction,
    link_torque,
    run,
)
from load_identification.typing_aliases import FloatArray

BENT = [0.2, 0.7, -0.3, 1.2, 0.4, 1.1, 0.6]
STRETCHED = [0.2, 0.7, -0.3, 0.0, 0.4, 0.0, 0.6]
"""Poses of the seven-joint arm [rad]."""


PLANAR = """<robot name="planar"><link name="base"/>
<joint name="a" type="continuous"><parent link="base"/><child link="x"/><axis xyz="0 0 1"/></joint>
<link name="x"/>
<joint name="b" type="continuous"><parent link="x"/><child link="y"/><origin xyz="0.4 0 0"/>
<axis xyz="0 0 1"/></joint><link name="y"/></robot>"""


def stage(arm: IdentifiedArm | None = None) -> EffortFilter:
    found = EffortFilter(arm or exact_arm(), differentiator(), MAX_GAP)
    found.set_description(SEVEN_JOINTS.urdf, FRAME)
    return found


def frictionless() -> IdentifiedArm:
    arm = exact_arm()
    return replace(arm, drives=np.zeros_like(arm.drives))


def at_rest(pose: list[float], seconds: float = 2.0) -> EffortBatch:
    """Return an arm that stands still under the payload; its joints feel no friction."""
    count = round(seconds * RATE)
    q = np.tile(pose, (count, 1))
    still = np.zeros_like(q)
    torque = link_torque(q[:1], still[:1], still[:1], PAYLOAD)
    noise = NOISE * np.random.default_rng(3).standard_normal(q.shape)
    stamps = NS + np.arange(count) * round(NS / RATE)
    return EffortBatch(JOINTS, stamps, q, still, torque + noise)


def smooth(exact: Run) -> EffortBatch:
    """Return the joint states of a run as they are in truth, but for friction: there is none."""
    torque = exact.torque - friction(exact.velocity)
    joints = replace(exact, torque=torque).measured(0, noise=0.0)
    return replace(joints, position=exact.position, velocity=exact.velocity)


def test_the_wrench_is_the_best_linear_estimate() -> None:
    robot = Robot(SEVEN_JOINTS.urdf, FRAME)
    rng = np.random.default_rng(2)
    jacobian = sensor_jacobian(robot, random_poses(robot)[:4])
    variance = rng.uniform(0.01, 1.0, (4, 7))
    found = torque_to_wrench(jacobian, variance)
    for k in range(4):
        information = jacobian[k] / variance[k] @ jacobian[k].T
        np.testing.assert_allclose(found.gain[k] @ jacobian[k].T, np.eye(6), atol=1e-9)
        np.testing.assert_allclose(found.covariance[k] @ information, np.eye(6), atol=1e-9)
        np.testing.assert_allclose(
            found.gain[k] * variance[k] @ found.gain[k].T,
            found.covariance[k],
            rtol=1e-9,
            atol=1e-12,
        )


def test_what_torques_do_not_show_is_said() -> None:
    for arm in (SEVEN_JOINTS, SIX_JOINTS):
        robot = Robot(arm.urdf, arm.sensor_frame)
        assert visible_components(robot) == 6
        assert unseen_parameters(robot) == ()
    scara = Robot(SCARA.urdf, SCARA.sensor_frame)
    with pytest.raises(DescriptionError, match='the 5 joints before wrist show 5 of the 6'):
        check_visible(scara)
    # Two vertical axes: neither weight nor what turns about another axis makes a torque.
    planar = Robot(PLANAR, 'y')
    assert unseen_parameters(planar) == ('mcz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz')
    with pytest.raises(DescriptionError, match=r'2 of the 6 .* never tell mcz, Ixx'):
        check_visible(planar)


def test_without_noise_the_wrench_is_that_of_the_load() -> None:
    samples = not_none(stage(frictionless()).update(smooth(run(6.0, 2, PAYLOAD))))
    expected = -regressor(samples) @ PAYLOAD.to_vector()
    assert np.isfinite(samples.wrench).all()
    error = np.abs(samples.wrench - expected)
    # What the low-pass takes off the products of motion up to 0.7 Hz: a few 1e-5 of 20 N
    # and 2 N m; a hundred times that where the motion has swelled and jerks.
    assert (np.quantile(error, 0.9, axis=0) < np.repeat([1e-3, 2e-4], 3)).all()
    assert (error.max(axis=0) < np.repeat([0.15, 0.03], 3)).all()


def test_joints_that_turn_round_hardly_disturb_the_wrench() -> None:
    exact = run(6.0, 2, PAYLOAD)
    joints = replace(exact.measured(0, noise=0.0), position=exact.position)
    careful, careless = (
        stage(replace(exact_arm(), noise=np.full(7, noise))).update(joints)
        for noise in (0.02, 20.0)
    )
    assert careful is not None
    assert careless is not None
    expected = -regressor(careful) @ PAYLOAD.to_vector()

    def error(samples: FilteredBatch) -> float:
        used = np.isfinite(samples.wrench[:, 0])
        white, root = samples.whitening[used], (samples.wrench - expected)[used]
        squares = np.sum(np.einsum('nij,nj->ni', white[:, :3], root) ** 2, axis=1)
        return float(np.sqrt(squares.sum() / np.trace(white[:, :3, :3], axis1=1, axis2=2).sum()))

    # With noise beside which friction is nothing, all joints count alike.
    assert error(careless) > 0.5
    assert error(careful) < 0.2 * error(careless)


def test_the_residual_is_the_torque_of_the_load_and_the_prediction_that_of_the_arm() -> None:
    alone, loaded = run(6.0, 2), run(6.0, 2, PAYLOAD)
    filtering = stage()
    joints = replace(loaded.measured(0, noise=0.0), position=loaded.position)
    filtering.update(joints)
    efforts = not_none(filtering.efforts)
    assert efforts.names == JOINTS
    index = np.searchsorted(joints.stamps, efforts.stamps)
    np.testing.assert_array_equal(joints.stamps[index], efforts.stamps)
    # No joint turns round while the low-pass, 29 samples long, looks at it.
    window = np.lib.stride_tricks.sliding_window_view(np.sign(loaded.velocity), 31, axis=0)
    steady = np.abs(window.sum(axis=2))[index - 15] == 31
    assert steady.sum() > 500
    held = (loaded.torque - alone.torque)[index]
    # What the low-pass takes off: 1e-3 of 40 N m while the motion swells in a second.
    np.testing.assert_allclose(efforts.residual[steady], held[steady], atol=0.04)
    np.testing.assert_allclose(efforts.predicted[steady], alone.torque[index][steady], atol=0.04)


def test_friction_under_load_is_that_of_arm_and_payload() -> None:
    alone, loaded = run(6.0, 2), run(6.0, 2, PAYLOAD)
    passed = loaded.torque - friction(loaded.velocity)
    more = 0.1 * np.abs(passed) * np.sign(loaded.velocity)
    joints = replace(loaded, torque=loaded.torque + more).measured(0, noise=0.0)
    arm = exact_arm()
    drive = replace(arm.drive, load_friction=True)
    drives = np.insert(arm.drives, drive.terms.index('load_friction'), 0.1, axis=1)
    own = certain(arm.model(SEVEN_JOINTS.urdf).arm, drive, drives, float(arm.noise[0]))
    filtering = stage(own)
    filtering.update(replace(joints, position=loaded.position))
    efforts = not_none(filtering.efforts)
    index = np.searchsorted(joints.stamps, efforts.stamps)
    window = np.lib.stride_tricks.sliding_window_view(np.sign(loaded.velocity), 31, axis=0)
    steady = np.abs(window.sum(axis=2))[index - 15] == 31
    held = (loaded.torque - alone.torque)[index]
    # As above; of 40 N m by the arm alone 4 N m of friction, of which a tenth by the payload.
    np.testing.assert_allclose(efforts.residual[steady], held[steady], atol=0.05)


def regressor(samples: FilteredBatch) -> FloatArray:
    return wrench_regressor(
        samples.linear_acceleration, samples.angular_velocity, samples.angular_acceleration
    )


def test_at_rest_friction_may_be_anything_and_nothing_is_weighed() -> None:
    filtering = stage()
    samples = not_none(filtering.update(at_rest(BENT)))
    assert (samples.whitening == 0.0).all()
    assert np.isnan(samples.wrench).all()
    assert filtering.dropped['friction_unknown'] == len(samples.stamps)
    assert 'joints that move' in filtering.waiting_for
    raw = not_none(filtering.raw())
    assert np.isnan(raw.wrench).all()


def test_an_arm_without_friction_weighs_at_rest() -> None:
    filtering = stage(frictionless())
    samples = not_none(filtering.update(at_rest(BENT)))
    raw = not_none(filtering.raw())
    expected = -regressor(samples)[0] @ PAYLOAD.to_vector()
    # 500 samples of 0.1 N m at a lever of some decimetres; four standard deviations.
    np.testing.assert_allclose(raw.wrench.mean(axis=0), expected, atol=0.2)
    assert np.isfinite(samples.wrench).all()


def test_a_stretched_arm_is_near_singular() -> None:
    filtering = stage(frictionless())
    samples = not_none(filtering.update(at_rest(STRETCHED)))
    assert filtering.dropped['near_singular'] == len(samples.stamps)
    assert 'singularity' in filtering.waiting_for


def test_whitening_evens_out_what_poses_do_to_the_noise(loaded: Run) -> None:
    """Whitened, wrenches of any pose scatter alike, along every axis."""
    arm = exact_arm()
    filtering = stage(arm)
    clean = not_none(filtering.update(loaded.measured(0, noise=0.0)))
    noisy = not_none(stage(arm).update(loaded.measured(0)))
    used = np.isfinite(clean.wrench[:, 0])
    error, root = (noisy.wrench - clean.wrench)[used], clean.whitening[used]
    white = np.einsum('nij,nj->ni', root, error)
    size = np.abs(np.linalg.det(root))
    low = size < np.quantile(size, 0.3)
    for axes in (slice(0, 3), slice(3, 6)):
        ratio, plain = (
            np.sqrt(np.mean(e[low][:, axes] ** 2) / np.mean(e[~low][:, axes] ** 2))
            for e in (white, error)
        )
        assert 0.6 < ratio < 1.6
        assert plain > 1.5
        spread = np.std(white[:, axes], axis=0)
        assert spread.max() < 1.6 * spread.min()


def test_how_the_stream_is_cut_changes_nothing(loaded: Run) -> None:
    joints = loaded.measured(4)
    whole = not_none(stage().update(joints))
    filtering, parts = stage(), []
    for first in range(0, len(joints.stamps), 137):
        samples = filtering.update(joints.select(slice(first, first + 137)))
        if samples is not None:
            parts.append(samples)
    np.testing.assert_array_equal(np.concatenate([p.stamps for p in parts]), whole.stamps)
    # Rounding, for windows are fitted together.
    for name in ('wrench', 'whitening'):
        cut = np.concatenate([getattr(p, name) for p in parts])
        np.testing.assert_allclose(cut, getattr(whole, name), rtol=1e-6, atol=1e-9)


def test_bad_joint_states_are_counted_and_the_reason_is_said(loaded: Run) -> None:
    joints = loaded.measured(0)
    filtering = stage()
    no_effort = joints.effort.copy()
    no_effort[:, 2] = np.nan
    assert filtering.update(replace(joints, effort=no_effort)) is None
    assert filtering.dropped['effort_missing'] == len(joints.stamps)
    assert filtering.waiting_for == 'the effort of left_3'
    five = np.zeros((5, 5))
    assert filtering.update(EffortBatch(JOINTS[:5], joints.stamps[:5], five, five, five)) is None
    assert filtering.waiting_for == 'joint left_6, left_7 in one message'
    assert filtering.dropped['joint_missing'] == 5
    dead = joints.effort.copy()
    dead[:, 4] = 0.0
    filtering = stage()
    samples = not_none(filtering.update(replace(joints, effort=dead)))
    assert np.isnan(samples.wrench).all()
    assert filtering.dropped['effort_stuck'] == len(joints.stamps)
    bad = joints.position.copy()
    bad[7, 1] = np.nan
    filtering = stage()
    assert filtering.update(replace(joints, position=bad)) is not None
    assert filtering.dropped['joint_state_not_finite'] == 1


def test_a_frame_that_a_joint_without_a_model_moves_is_refused() -> None:
    filtering = EffortFilter(exact_arm(), differentiator(), MAX_GAP)
    with pytest.raises(DescriptionError, match='right_1 moves right_link_1 and is not in the arm'):
        filtering.set_description(SEVEN_JOINTS.urdf, 'right_link_1')
    assert filtering.waiting_for == 'the robot description'
    filtering.set_description(SEVEN_JOINTS.urdf)
    assert filtering.robot.sensor_frame == 'left_link_7'
