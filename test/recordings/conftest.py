"""The command that identifies a load from a file of poses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from static_arm import Identify, options, with_joints

from load_identification.commands.identify_load import main
from load_identification.typing_aliases import FloatArray


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
