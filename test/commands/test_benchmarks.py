"""Benchmarks that read a recording say what is wrong with the one that is named."""

from __future__ import annotations

import subprocess
import sys

import pytest
from checkout import ROOT


@pytest.mark.parametrize(
    ('name', 'option', 'said'),
    [
        ('arm', '--data', '--data /nowhere has no kuka_lwr4.urdf, run_1, run_2'),
        ('joint_torque', '--data', 'recording /nowhere/kuka_lwr4/run_2 does not exist'),
        ('reality', '--recording', 'recording /nowhere does not exist'),
    ],
)
def test_a_wrong_folder_is_refused_in_a_sentence(name: str, option: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, f'benchmark/{name}.py', option, '/nowhere'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 2
    assert done.stderr.endswith(f'{name}.py: error: {said}\n')
    assert 'Traceback' not in done.stderr
