"""What every test shares: a ROS graph of its own, and the way to the recordings."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from domains import Domain

# Before anything imports rclpy, and inherited by every process a test starts: no test may meet
# a robot or another run of the tests, nor read or write what a robot on this host has stored.
if 'ROS_DOMAIN_ID' not in os.environ:
    DOMAIN = Domain()
    os.environ['ROS_DOMAIN_ID'] = str(DOMAIN.number)
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
for way_out in ('ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER', 'ROS_SUPER_CLIENT'):
    os.environ.pop(way_out, None)
os.environ['ROS_HOME'] = tempfile.mkdtemp(prefix='load_identification_test_')
# Where the wheels of ROS keep their ament index; a sourced ROS has named its own.
os.environ.setdefault('AMENT_PREFIX_PATH', sys.prefix)


def pytest_unconfigure() -> None:
    """Remove the files the nodes under test have stored and logged."""
    shutil.rmtree(os.environ['ROS_HOME'], ignore_errors=True)


@pytest.fixture(scope='session')
def shared_data() -> Path:
    """Return the folder of real recordings beside the checkout, or skip where there is none."""
    folder = Path(__file__).resolve().parents[2] / 'shared' / 'data'
    if not folder.is_dir():
        pytest.skip(f'no recordings: {folder} is not there')
    return folder
