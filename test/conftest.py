"""What every test shares: a ROS graph of its own, and the way to the recordings."""

from __future__ import annotations

import faulthandler
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from domains import Domain

# Before anything imports NumPy, and inherited by every process a test starts: matrices of a dozen
# columns want no second thread, and several workers share the cores.
os.environ['OPENBLAS_NUM_THREADS'] = '1'

# Before anything imports rclpy, and inherited likewise: no test may meet a robot, another run of
# the tests or another worker of this one, nor read or write what a robot on this host has stored.
if 'ROS_DOMAIN_ID' not in os.environ or 'PYTEST_XDIST_WORKER' in os.environ:
    DOMAIN = Domain()
    os.environ['ROS_DOMAIN_ID'] = str(DOMAIN.number)
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
for way_out in ('ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER', 'ROS_SUPER_CLIENT'):
    os.environ.pop(way_out, None)
os.environ['ROS_HOME'] = tempfile.mkdtemp(prefix='load_identification_test_')
# Where the wheels of ROS keep their ament index; a sourced ROS has named its own.
os.environ.setdefault('AMENT_PREFIX_PATH', sys.prefix)


NEEDED = {
    'rosbags': r'^(from|import) (rosbags|bags|arm_bags)\b',
    'mujoco': r'^(from|import) (mujoco|load_identification\.simulation\.in_mujoco)\b',
}
"""Packages that no ROS distribution has, and how they are imported: without them, such modules are
left out."""

missing = [pattern for package, pattern in NEEDED.items() if find_spec(package) is None]
collect_ignore = [
    path.relative_to(Path(__file__).parent).as_posix()
    for path in sorted(Path(__file__).parent.rglob('test_*.py'))
    if any(re.search(pattern, path.read_text('utf-8'), re.MULTILINE) for pattern in missing)
]


TERMINAL = pytest.StashKey[int]()

LONGEST = (
    *('test_ros_guided', 'test_misfit_claims', 'test_ros_processes', 'test_events'),
    *('test_ros_apply_payload', 'test_misfit', 'test_streams', 'test_changes_in_cells'),
    *('test_ros_recording', 'test_real_arms', 'test_two_publishers', 'test_belief_in_work'),
    *('test_killed', 'test_events_at_rest', 'test_ros_calibration', 'test_selection'),
    *('test_ros_hexapod_services', 'test_weight', 'test_drift', 'test_plan_excitation'),
    *('test_ros_services', 'test_payload_in_time', 'test_payload_estimator', 'test_accuracy'),
    *('test_matrix', 'test_identify_arm', 'test_identify_arm_by_sensor', 'test_drive_gains'),
)
"""Modules begun first, in this order, those that compute and those that wait for topics by turns:
of what is begun late one worker alone would be left with these."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest modules; where they are shared out, in this order."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONGEST)))


STUCK = 600.0
"""A test that takes so long never ends: one of its waits in vain gives up after 240 s [s]."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the way to the terminal, which is closed while a test runs."""
    config.stash[TERMINAL] = os.dup(2)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End a worker that is stuck, even inside of Fast DDS, and say where it is."""
    faulthandler.dump_traceback_later(STUCK, exit=True, file=item.config.stash[TERMINAL])
    yield
    faulthandler.cancel_dump_traceback_later()


def pytest_report_header() -> str:
    """Say which modules are left out."""
    return f'left out without rosbags or MuJoCo: {", ".join(collect_ignore) or "none"}'


def pytest_unconfigure() -> None:
    """Remove the files the nodes under test have stored and logged."""
    shutil.rmtree(os.environ['ROS_HOME'], ignore_errors=True)


# Only now what imports NumPy.
from load_identification.commands.identify_arm import main as identify_arm  # noqa: E402
from load_identification.model.robot import Robot  # noqa: E402
from load_identification.motion.joint_path import JointPath, Move  # noqa: E402
from load_identification.simulation.motions import PAPER_START, puma_trajectory  # noqa: E402
from load_identification.simulation.robots import puma_description  # noqa: E402
from load_identification.simulation.sensors import (  # noqa: E402
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)


@pytest.fixture(scope='session')
def shared_data() -> Path:
    """Return the folder of real recordings beside the checkout, or skip where there is none."""
    folder = Path(__file__).resolve().parents[2] / 'shared' / 'data'
    if not folder.is_dir():
        pytest.skip(f'no recordings: {folder} is not there')
    return folder


@pytest.fixture
def group() -> Iterator[Any]:
    """A ROS graph of the test's own, a `ros_group.Group`."""
    from ros_group import Group

    with Group() as group:
        yield group


@pytest.fixture(scope='module')
def fed() -> Iterator[Any]:
    """A ROS graph in which an arm's topics are published, a `ros_group.Group`."""
    from ros_group import Group

    with Group() as group:
        group.publish_inputs()
        yield group


@pytest.fixture(scope='module')
def running() -> Iterator[Any]:
    """A ROS graph with the single process and nothing that feeds it, a `ros_group.Group`."""
    from ros_group import Group

    with Group() as group:
        group.start()
        yield group


@pytest.fixture(scope='module')
def process(fed: Any) -> Iterator[Any]:
    """The single process with default parameters; it lives through all tests of a module."""
    process = fed.start()
    yield process
    assert process.alive
    assert 'Traceback' not in process.output


@pytest.fixture(scope='module')
def live(fed: Any, process: Any) -> Any:
    """What that process says, a `ros_pipeline.Pipeline`, connected."""
    from ros_pipeline import Pipeline

    pipeline = Pipeline(fed)
    pipeline.connect()
    return pipeline


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Return `identify_arm`, from arguments to exit status, output and errors."""
    monkeypatch.setenv('COLUMNS', '300')

    def run(*arguments: object) -> tuple[int, str, str]:
        status = identify_arm([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def unchosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Identify arms with drives as they are assumed first: to try others takes most of a run."""
    from load_identification.arm import identification
    from load_identification.arm.selection import Choice

    def first(model: Any, _: object, settings: Any) -> Choice:
        return Choice(model, settings.cutoffs[0])

    monkeypatch.setattr(identification, 'choose', first)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the pictures of reports empty, for they take longer than all the rest of a page."""
    from matplotlib.figure import Figure
    from PIL import Image

    def savefig(_: Figure, buffer: Any, **__: object) -> None:
        Image.new('RGB', (1, 1)).save(buffer, 'PNG')

    monkeypatch.setattr(Figure, 'savefig', savefig)


# Recordings that several modules read


@pytest.fixture(scope='session')
def sim() -> Recording:
    """11 s at 200 Hz of the PUMA: the paper's move, then 8 s of rich motion."""
    robot = Robot(puma_description(), 'ft_sensor')
    trajectory = puma_trajectory(robot.velocity_limits, 8.0, seed=1)
    return simulate(robot, trajectory, aluminium_block(), SensorModel(), 200.0, seed=2)


@pytest.fixture(scope='session')
def short() -> Recording:
    """0.6 s at rest, enough for every error and for no estimate of the mass."""
    rest = JointPath((Move(PAPER_START, PAPER_START, 0.6),))
    robot = Robot(puma_description(), 'ft_sensor')
    return simulate(robot, rest, aluminium_block(), SensorModel(), 200.0, seed=3)


@pytest.fixture(scope='session')
def bag(sim: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording `sim` as rosbag2 keeps it."""
    bags = pytest.importorskip('bags')
    path: Path = tmp_path_factory.mktemp('recordings') / 'whole'
    messages = [bags.description(), *bags.joint_states(sim), *bags.wrenches(sim)]
    bags.write(path, messages)
    return path


@pytest.fixture(scope='session')
def result(bag: Path) -> Any:
    """What is identified from `bag`, an `Identification`."""
    return pytest.importorskip('bags').run(bag)
