"""A recording in which one load after the other is carried: each is said, with its interval."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bags import recorded

from load_identification.commands.identify_load import main
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.simulation.motions import puma_trajectory
from load_identification.simulation.robots import PUMA
from load_identification.simulation.sensors import SensorModel, aluminium_block, simulate

MASSES = (1.106, 0.4, 2.0)
SECONDS, RATE = 6.0, 250.0


@pytest.fixture
def said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what is printed of a recording in which the load changes twice."""
    robot, block = PUMA.robot(), aluminium_block()
    way = puma_trajectory(0.6 * robot.velocity_limits, len(MASSES) * SECONDS, 1)
    shares = np.array(MASSES)[:, None] / block.mass * block.to_vector()
    loads = [InertialParameters.from_vector(share) for share in shares]
    sims = [simulate(robot, way, load, SensorModel(), RATE, 0) for load in loads]
    # The way to where the motion begins takes some seconds more.
    held = np.minimum((1e-9 * sims[0].stamps / SECONDS).astype(int), len(MASSES) - 1)
    wrench = np.select([held[:, None] == k for k in range(3)], [sim.wrench for sim in sims])
    assert main([str(recorded(tmp_path, replace(sims[0], wrench=wrench)))]) == 0
    return capsys.readouterr().out


def test_each_load_is_said_with_its_interval(said: str) -> None:
    found = re.findall(r'until (\S+) s +mass (\S+) ± (\S+) kg, centre of mass ', said)
    until, mass, half = np.array(found, dtype=float).T
    assert until == pytest.approx([SECONDS, 2.0 * SECONDS], abs=0.5)
    assert (np.abs(mass - MASSES[:2]) < 1.5 * half).all()
    assert (half < 0.05 * mass).all()
