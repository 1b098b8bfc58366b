"""The fastest motion: what it has excited is kept, and told from rest."""

from __future__ import annotations

import numpy as np
import pytest
from filtered_samples import BLOCK, OFFSET, RATE

from load_identification.estimation.excitation import Excitation, FastestMotion
from load_identification.model.regressor import wrench_regressor
from load_identification.typing_aliases import FloatArray


def moving(seconds: float, speed: float, seed: int) -> tuple[FloatArray, ...]:
    """Return stamps, torque rows, torque of the block, and rotation, at 50 Hz."""
    n = int(seconds * RATE)
    times = np.arange(n) / RATE
    phase = np.random.default_rng(seed).uniform(0.0, 6.28, 3)
    frequency = np.array([3.0, 4.0, 5.0])
    omega = speed * np.sin(np.outer(times, frequency) + phase)
    alpha = speed * frequency * np.cos(np.outer(times, frequency) + phase)
    matrix = -wrench_regressor(np.tile([0.0, 0.0, 9.8], (n, 1)), omega, alpha)[:, 3:, 1:]
    torque = matrix @ BLOCK.to_vector()[1:] + OFFSET[3:]
    return (times * 1e9).astype(np.int64), matrix, torque, omega, alpha


def test_the_fastest_motion_is_not_forgotten_in_an_hour_of_rest() -> None:
    fastest = FastestMotion()
    stamps, matrix, torque, omega, alpha = moving(4.0, 2.0, 1)
    noise = 0.002 * np.random.default_rng(2).standard_normal(torque.shape)
    fastest.update(stamps, matrix, torque + noise, omega, alpha)
    before = fastest.excitation(BLOCK.to_vector())
    slow = moving(60.0, 0.1, 3)
    # Another offset since: what is unexplained is not to grow by it.
    fastest.update(slow[0] + int(3.6e12), slow[1], slow[2] + 0.5, *slow[3:])
    fastest.update(slow[0] + int(3.7e12), slow[1], slow[2] + 0.5, 0 * slow[3], 0 * slow[4])
    after = fastest.excitation(BLOCK.to_vector())
    assert after.inertial_torque == pytest.approx(before.inertial_torque, rel=0.2)
    # 2 s of 3 channels tell a standard deviation to 4 %.
    assert after.unexplained == pytest.approx(0.002, rel=0.15)
    assert after.rate == pytest.approx(np.linalg.norm(omega, axis=1).max(), rel=0.05)


def test_torque_of_inertia_in_the_fastest_motion_is_what_it_is() -> None:
    fastest = FastestMotion()
    stamps, matrix, torque, omega, alpha = moving(2.0, 2.0, 1)
    fastest.update(stamps, matrix, torque, omega, alpha)
    fastest.update(stamps[-1:] + 1_000_000_000, *(v[:1] for v in (matrix, torque, omega, alpha)))
    found = fastest.excitation(BLOCK.to_vector())
    expected = np.sqrt(np.mean((matrix[:, :, 3:] @ BLOCK.to_vector()[4:]) ** 2))
    assert found.inertial_torque == pytest.approx(expected, rel=1e-9)
    assert found.unexplained == pytest.approx(0.0, abs=1e-7)


def test_rest_excites_nothing() -> None:
    fastest = FastestMotion()
    assert fastest.excitation(BLOCK.to_vector()) == Excitation(0.0, 0.0, 0.0)
    stamps, matrix, torque, omega, alpha = moving(2.0, 2.0, 1)
    fastest.update(stamps, matrix, torque, 0 * omega, 0 * alpha)
    assert fastest.excitation(BLOCK.to_vector()) == Excitation(0.0, 0.0, 0.0)


def test_cutting_the_stream_and_missing_channels_change_nothing_else() -> None:
    values = moving(3.0, 2.0, 1)
    torque = values[2].copy()
    torque[:, 1] = np.nan
    whole, cut = FastestMotion(), FastestMotion()
    whole.update(values[0], values[1], torque, *values[3:])
    for start in range(0, len(torque), 7):
        rows = slice(start, start + 7)
        cut.update(values[0][rows], values[1][rows], torque[rows], *(v[rows] for v in values[3:]))
    one, other = (f.excitation(BLOCK.to_vector()) for f in (whole, cut))
    assert one.inertial_torque == pytest.approx(other.inertial_torque, rel=1e-9)
    assert one.unexplained == pytest.approx(other.unexplained, abs=1e-7)
    assert one.inertial_torque > 0.0
