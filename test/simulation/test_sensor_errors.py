"""The simulated errors are as large as they say, and what is switched off changes nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from load_identification.estimation.pose_errors import PoseErrors
from load_identification.simulation.cells import RUBBING, TIED, Conditions, Path, record, sample
from load_identification.simulation.motions import MOTIONS, TOOL_DOWN
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import (
    FIELD_RMS,
    MEMORY,
    CellErrors,
    draw_cell,
    linear_field,
    path_memory,
    random_field,
    smooth_field,
    sway,
)
from load_identification.simulation.sensors import WRIST_SENSOR, aluminium_block, load_wrench

GRAVITY = np.array([0.0, 0.0, -9.80665])
SILENT = replace(WRIST_SENSOR, force_noise=0.0, torque_noise=0.0)


@pytest.fixture(scope='module')
def path() -> Path:
    """Return two seconds of rich motion of the PUMA."""
    mount = MOUNTS['puma']
    motion = MOTIONS['rich'](mount, 4.0, np.random.default_rng(1))
    return sample(mount, motion, 2.0, 500.0)


def test_a_lag_is_a_shift_in_time(path: Path) -> None:
    errors = CellErrors().only('lag').times(5.0)
    spawned = np.random.default_rng(np.random.SeedSequence(5).spawn(1)[0])
    lag = draw_cell(errors, GRAVITY, 6, spawned).lag
    _, wrenches = record(path, aluminium_block(), Conditions(errors, sensors=SILENT), 5)
    times = path.stamps * 1e-9
    truth = load_wrench(aluminium_block(), path.frame) + np.array(SILENT.offset)
    shifted = np.stack([np.interp(times - lag, times, column) for column in truth.T], axis=1)
    late = slice(100, -100)
    # Straight lines between samples 2 ms apart are off by h² w'' / 8.
    np.testing.assert_allclose(wrenches.wrench[late], shifted[late], atol=2e-3)
    assert np.abs(wrenches.wrench - truth)[late].max() > 2e-2, 'a lag must show'


def test_gravity_is_tilted_not_stretched() -> None:
    tilts = []
    for seed in range(400):
        cell = draw_cell(CellErrors(), GRAVITY, 6, np.random.default_rng(seed))
        assert np.linalg.norm(cell.gravity) == pytest.approx(9.80665, rel=1e-12)
        tilts.append(cell.gravity[:2] / 9.80665)
    # 0.2 degrees about each axis; 800 draws know their spread to 2.5 %.
    assert np.std(tilts) == pytest.approx(np.deg2rad(0.2), rel=0.1)


FIELDS = {
    'smooth': (smooth_field, 1.0),
    'linear': (linear_field, 0.5),
    'rough': (partial(random_field, length=0.3), 1.0),
}


@pytest.mark.parametrize('kind', FIELDS)
def test_fields_have_their_size_over_the_sphere(kind: str) -> None:
    field, part = FIELDS[kind]
    rng = np.random.default_rng(0)
    points = rng.standard_normal((2000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    squares = [np.mean(field(points, rng=rng) ** 2, axis=0) for _ in range(200)]
    np.testing.assert_allclose(np.sqrt(np.mean(squares, axis=0)), part * FIELD_RMS, rtol=0.1)


def test_a_linear_field_looks_like_the_load_that_the_estimator_allows_for() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(2000):
        columns = linear_field(np.eye(3), rng).T / 9.80665
        turned = columns[3:] - columns[3:].T
        found.append([np.trace(columns[:3]) / 3.0, *turned[[0, 0, 1], [1, 2, 2]] / 2.0])
    expected = PoseErrors(FIELD_RMS[[0, 3]]).like_a_load[:4]
    np.testing.assert_allclose(np.var(found, axis=0), expected, rtol=0.15)


def test_the_path_is_forgotten_with_the_angle_travelled() -> None:
    angle = np.linspace(0.0, 4000.0 * MEMORY, 80001)
    memory = path_memory(angle, np.random.default_rng(0)) / (0.6 * FIELD_RMS)
    one = 20  # samples per MEMORY
    assert np.std(memory) == pytest.approx(1.0, rel=0.05)
    after = np.mean(memory[one:] * memory[:-one]) / np.mean(memory**2)
    assert after == pytest.approx(np.exp(-1.0), abs=0.04)


def test_joints_behind_springs_overshoot_slow_motion_by_the_ratio_of_frequencies() -> None:
    times = np.arange(0.0, 20.0, 0.002)
    omega = 2.0 * np.pi * 1.2
    position = np.sin(omega * times)[:, None]
    e = sway(-(omega**2) * position, 12.0, 0.03, 0.002)[0]
    late = slice(5000, None)
    ratio = float(e[late, 0] @ position[late, 0] / (position[late, 0] @ position[late, 0]))
    # 1 / (1 - r²) - 1 = r² / (1 - r²), r = 0.1
    assert ratio == pytest.approx(0.01 / 0.99, rel=0.02)


@pytest.mark.parametrize('mount', ['puma', 'scara', 'seven_joints'])
def test_tool_down_work_turns_the_sensor_little(mount: str) -> None:
    motion = MOTIONS['tool-down'](MOUNTS[mount], 10.0, np.random.default_rng(0))
    frame = sample(MOUNTS[mount], motion, 10.0, 50.0).frame
    down = frame.gravity / 9.80665
    angle = np.arccos(np.clip(down @ down.mean(axis=0), -1.0, 1.0))
    assert angle.max() < 2.0 * TOOL_DOWN
    assert np.linalg.norm(frame.linear_velocity, axis=1).max() > 0.1


def test_friction_of_the_last_joint_acts_about_its_axis_while_it_turns() -> None:
    mount = MOUNTS['puma']
    motion = MOTIONS['poses'](mount, 8.0, np.random.default_rng(2))
    path = sample(mount, motion, motion.holds[1], 250.0)
    load = aluminium_block()
    _, wrenches = record(path, load, Conditions(tied=('friction',), sensors=SILENT), 0)
    error = wrenches.wrench - load_wrench(load, path.frame) - np.array(SILENT.offset)
    speed = path.joints[1][:, -1]
    swift, resting = np.abs(speed) > 0.1, np.abs(speed) < 1e-9
    assert swift.any()
    assert resting.any()
    axis = path.robot.motion(*path.joints).jacobian[:, 3:, -1]
    against = -RUBBING * np.sign(speed)[:, None] * axis
    np.testing.assert_allclose(error[swift, 3:], against[swift], atol=1e-6)
    np.testing.assert_allclose(error[:, :3], 0.0, atol=1e-9)
    np.testing.assert_allclose(error[resting], 0.0, atol=1e-7)


@pytest.mark.parametrize('kind', sorted({*TIED} - {'friction'}))
def test_errors_tied_to_the_pose_do_not_average_out_at_rest(kind: str) -> None:
    mount = MOUNTS['puma']
    motion = MOTIONS['poses'](mount, 8.0, np.random.default_rng(2))
    still = sample(mount, motion, motion.holds[1], 250.0)
    load = aluminium_block()
    _, wrenches = record(still, load, Conditions(tied=(kind,), sensors=SILENT), 0)
    error = wrenches.wrench - load_wrench(load, still.frame) - np.array(SILENT.offset)
    resting = error[-250:]
    assert np.abs(resting[0]).max() > 0.01
    np.testing.assert_allclose(resting, np.broadcast_to(resting[0], resting.shape), atol=1e-9)
