"""What the simulated changes promise: a slip keeps the body, a zeroed sensor reads nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from load_identification.simulation.cells import Conditions, Path, published, sample
from load_identification.simulation.changes.draws import slip
from load_identification.simulation.changes.scenarios import SCENARIOS, timing
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import WRIST_SENSOR, aluminium_block, load_wrench

SILENT = Conditions(sensors=replace(WRIST_SENSOR, force_noise=0.0, torque_noise=0.0))


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
