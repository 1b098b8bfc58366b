"""The command that identifies a load from a file of poses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from static_arm import Identify, options, with_joints

from load_identification.commands.identify_load import main
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.simulation.motions import PAPER_GOAL, PUMA_LOWER, PUMA_UPPER
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)
from load_identification.typing_aliases import FloatArray


@pytest.fixture(scope='package')
def sim() -> Recording:
    """3 s of rich motion: enough for two results to be compared."""
    robot = Robot(puma_description(), 'ft_sensor')
    limits = Limits(PUMA_LOWER, PUMA_UPPER, robot.velocity_limits)
    motion = random_sines(PAPER_GOAL, limits, 3.0, 1)
    return simulate(robot, JointPath((motion,)), aluminium_block(), SensorModel(), 200.0, seed=2)


@pytest.fixture(scope='package')
def bag(sim: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    bags = pytest.importorskip('bags')
    messages = [bags.description(), *bags.joint_states(sim), *bags.wrenches(sim)]
    path: Path = bags.write(tmp_path_factory.mktemp('recordings') / 'whole', messages)
    return path


@pytest.fixture(scope='package')
def result(bag: Path) -> Any:
    """What is identified from `bag`, an `Identification`."""
    return pytest.importorskip('bags').run(bag)


@pytest.fixture
def identify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Identify:
    """Return the command, from positions, wrenches and options to status, words and estimate."""
    output = tmp_path / 'estimate.yaml'

    def run(position: FloatArray, wrench: FloatArray, *more: str) -> tuple[int, str, Any]:
        file = with_joints(tmp_path / 'poses.csv', position, wrench)
        arguments = ['--static', str(file), '--output', str(output), *options(tmp_path), *more]
        status = main(arguments)
        words = ' '.join(capsys.readouterr().out.split())
        return status, words, yaml.safe_load(output.read_text())

    return run
