"""What is simulated: arm, kinematics, physics, sensors, changes, and the bound on any estimate."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pinocchio
import pytest

from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import FrameMotion, Robot
from load_identification.simulation.cells import Conditions, Path, published, sample
from load_identification.simulation.changes.draws import slip
from load_identification.simulation.changes.scenarios import SCENARIOS, timing
from load_identification.simulation.monte_carlo import Case, cramer_rao_covariance, message_bound
from load_identification.simulation.motions import MOTIONS, puma_trajectory
from load_identification.simulation.robots import MOUNTS, puma_description
from load_identification.simulation.sensors import (
    PUMA_ENCODER_RESOLUTION,
    WRIST_SENSOR,
    Recording,
    SensorModel,
    aluminium_block,
    dumbbell,
    load_wrench,
    simulate,
)

URDF = puma_description()
VELOCITY_LIMIT = np.array([1.92, 1.51, 2.40, 5.34, 5.09, 5.74])
EXACT = SensorModel(
    encoder_resolution=0.0,
    velocity_noise=0.0,
    force_noise=0.0,
    torque_noise=0.0,
    offset=(0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    force_step=0.0,
    torque_step=0.0,
)

BLOCK = aluminium_block()
NOISE = np.repeat([0.3, 0.015], 3)

SILENT = Conditions(sensors=replace(WRIST_SENSOR, force_noise=0.0, torque_noise=0.0))


@pytest.fixture(scope='module')
def model() -> pinocchio.Model:
    return pinocchio.buildModelFromXML(URDF)


@pytest.fixture(scope='module')
def robot() -> Robot:
    return Robot(URDF, 'ft_sensor')


@pytest.fixture(scope='module')
def recording(robot: Robot) -> Recording:
    trajectory = puma_trajectory(VELOCITY_LIMIT, 10.0, seed=1)
    return simulate(robot, trajectory, aluminium_block(), SensorModel(), 500.0, seed=2)


def test_urdf_is_the_published_table_of_link_parameters(model: pinocchio.Model) -> None:
    # Armstrong, Khatib, Burdick 1986, table A1 (twist, length before the joint; offset along it),
    # with the lengths of Corke and Armstrong-Hélouvry 1994.
    table = [
        (0.0, 0.0, 0.672),
        (-90.0, 0.0, 0.0),
        (0.0, 0.4318, 0.15005),
        (90.0, -0.0203, 0.4318),
        (-90.0, 0.0, 0.0),
        (90.0, 0.0, 0.08625),
    ]
    data = model.createData()
    for q in np.random.default_rng(0).uniform(model.lowerPositionLimit, model.upperPositionLimit,
                                              (20, 6)):  # fmt: skip
        expected = np.eye(4)
        for (twist, length, offset), angle in zip(table, q, strict=True):
            before = pinocchio.SE3(pinocchio.utils.rotate('x', np.deg2rad(twist)),
                                   np.array([length, 0.0, 0.0]))  # fmt: skip
            turn = pinocchio.SE3(pinocchio.utils.rotate('z', angle), np.array([0, 0, offset]))
            expected = expected @ before.homogeneous @ turn.homogeneous
        pinocchio.framesForwardKinematics(model, data, q)
        actual = data.oMf[model.getFrameId('ft_sensor')].homogeneous
        # A dozen products of rotations in double precision.
        np.testing.assert_allclose(actual, expected, atol=1e-12)


@pytest.mark.parametrize('payload', [aluminium_block(), dumbbell()])
def test_wrench_is_what_pinocchios_rnea_passes_on_to_the_load(
    robot: Robot, model: pinocchio.Model, payload: InertialParameters
) -> None:
    trajectory = puma_trajectory(VELOCITY_LIMIT, 8.0, seed=4)
    recording = simulate(robot, trajectory, payload, EXACT, 50.0, seed=0)
    frame = model.frames[model.getFrameId('ft_sensor')]
    loaded = model.copy()
    loaded.gravity.linear = np.array([0.0, 0.0, -9.80665])
    loaded.appendBodyToJoint(
        frame.parentJoint,
        pinocchio.Inertia(
            payload.mass, payload.center_of_mass, payload.inertia_about_center_of_mass
        ),
        frame.placement,
    )
    data = loaded.createData()
    expected = []
    for q, qd, qdd in zip(*recording.exact, strict=True):
        pinocchio.rnea(loaded, data, q, qd, qdd)
        # The links have no mass: what joint 6 transmits is what the sensor exerts on the load.
        expected.append(-frame.placement.actInv(data.f[frame.parentJoint]).vector)
    # The same physics in double precision, up to 60 N.
    np.testing.assert_allclose(recording.wrench, expected, atol=1e-10)


def test_positions_are_whole_counts_of_the_encoders(recording: Recording) -> None:
    counts = recording.position / np.array(PUMA_ENCODER_RESOLUTION)
    # Positions of up to 3e4 counts in double precision.
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    error = recording.position - recording.exact[0]
    assert np.all(np.abs(error) <= 0.5 * np.array(PUMA_ENCODER_RESOLUTION) * (1.0 + 1e-9))
    # In motion the error of rounding is uniform: its deviation is step / sqrt(12), 5 % for the
    # samples at rest or slow.
    moving = np.abs(recording.exact[1]) > 0.1
    for joint, step in enumerate(PUMA_ENCODER_RESOLUTION):
        std = error[moving[:, joint], joint].std()
        assert std == pytest.approx(step / np.sqrt(12.0), rel=0.05)


def test_noise_and_offset_of_the_wrench_are_as_stated(recording: Recording) -> None:
    sensors = SensorModel()
    error = recording.wrench - recording.exact_wrench - np.array(sensors.offset)
    stated = np.repeat([0.1, 0.005], 3)
    # 6501 samples: the deviation is known to 1 / sqrt(2 n) = 0.9 %, the mean to stated / sqrt(n);
    # four deviations. Quantisation adds step² / 12, 0.1 %.
    np.testing.assert_allclose(error.std(axis=0), stated, rtol=0.036)
    assert np.all(np.abs(error.mean(axis=0)) < 4.0 * stated / np.sqrt(len(error)))
    neighbours = np.sum(error[1:] * error[:-1], axis=0) / np.sum(error**2, axis=0)
    assert np.all(np.abs(neighbours) < 4.0 / np.sqrt(len(error)))  # white


def motion(seed: int = 0) -> FrameMotion:
    """Return 4 s of a rich motion."""
    return Case(duration=4.0, rate=125.0, motion_seed=seed).record().motion


def test_least_squares_with_the_true_motion_reaches_the_bound() -> None:
    m = motion()
    bound = message_bound(cramer_rao_covariance([m], NOISE, np.full(6, 1e-9)), BLOCK)
    rows = wrench_regressor(m.linear_acceleration, m.angular_velocity, m.angular_acceleration)
    weighted = (-rows / NOISE[:, None]).reshape(-1, 10)
    noise = np.random.default_rng(0).standard_normal((len(weighted), 300))
    found = BLOCK.to_vector()[:, None] + np.linalg.lstsq(weighted, noise, rcond=None)[0]
    errors = np.array([to_message_order(column) for column in found.T])
    # 300 draws: a standard deviation is known to 4 %, three of that.
    np.testing.assert_allclose(errors.std(axis=0), bound[:10], rtol=0.13)


@pytest.fixture(scope='module')
def path() -> Path:
    """Return twelve seconds of work with pauses."""
    motion = MOTIONS['pauses'](MOUNTS['puma'], 12.0, np.random.default_rng(0))
    return sample(MOUNTS['puma'], motion, 12.0, 100.0)


def test_a_slip_moves_the_body_and_changes_nothing_else() -> None:
    before, after = slip(0.005)(np.random.default_rng(0)).load
    assert after.mass == before.mass
    assert np.linalg.norm(after.center_of_mass - before.center_of_mass) == pytest.approx(0.005)
    np.testing.assert_allclose(
        after.inertia_about_center_of_mass, before.inertia_about_center_of_mass, atol=1e-12
    )


def test_a_zeroed_sensor_reads_nothing_in_that_pose(path: Path) -> None:
    exerted = partial(load_wrench, aluminium_block())
    _, raw = published(path, exerted, SILENT, 0)
    _, zeroed = published(path, exerted, SILENT, 0, zeroed=8.0)
    at = int(np.argmax(path.stamps >= 8_000_000_000))
    np.testing.assert_array_equal(zeroed.wrench[:at], raw.wrench[:at])
    np.testing.assert_allclose(zeroed.wrench[at], 0.0, atol=1e-12)
    np.testing.assert_allclose(
        np.diff(zeroed.wrench[at:], axis=0), np.diff(raw.wrench[at:], axis=0), atol=1e-9
    )


def test_a_change_comes_in_a_pause_where_there_is_one(path: Path) -> None:
    change = SCENARIOS['grasp of 1 kg, with pauses'].draw(np.random.default_rng(0))
    changed, goes_on = timing(path, change, np.random.default_rng(0))
    moving = np.abs(path.joints.velocity).max(axis=1) > 1e-9
    times = path.stamps * 1e-9
    assert changed < goes_on
    assert 8.0 < goes_on < 12.0
    assert not moving[(times > changed) & (times < goes_on - 1e-6)].any()
    assert moving[(times > goes_on + 0.1) & (times < goes_on + 0.5)].all()
