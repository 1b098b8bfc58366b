"""The rooms of package and tests: which way imports point, who knows ROS, how large things are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from checkout import NAME, PACKAGE, ROOT, SHARED, TESTS, imports

LEVELS = (
    ('model',),
    ('interface', 'motion'),
    ('numerics', 'signals'),
    ('estimation',),
    ('weighing',),
    ('arm', 'parallel'),
    ('pipeline',),
    ('recordings',),
    ('nodes', 'simulation'),
    ('report',),
    ('commands',),
)
"""A room may import from rooms of lower levels and from itself, from no other of its own level.

What stands beside the rooms (errors, aliases) is below them all, but for what is there to be
imported by others alone.
"""
FOR_OTHERS = {'client.py'}
RANK = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}

RUN_NODES = {
    'commands/demo_arm.py',
    'commands/demo_pipeline.py',
    'commands/demonstration.py',
    'commands/guided/demonstration.py',
    'commands/guided/session.py',
    'commands/hexapod_demo.py',
    'commands/hexapod_demonstration.py',
    'commands/load_demo.py',
    'commands/load_monitor.py',
    'commands/load_monitor_view.py',
}
"""Programs that run nodes, the only modules beside those of nodes/ that may import rclpy; and"""

WHERE_ROS_IS = {'recordings/library.py'}
"""What opens recordings with ROS's own library where it is installed, rosbags where it is not."""

OVER_TOPICS = {'topics', 'services', 'executables'}
"""Rooms of the tests that begin with `test_ros_`: of running nodes, over real DDS."""

OF_TESTS = OVER_TOPICS | {'faults', 'house', 'shared'}
"""What the tests have beside the rooms of the package."""

LONGEST = 350
"""Lines of a module."""

MOST = 16
"""Modules of a folder, beside `__init__` and `conftest`."""

# What is not yet as it should be. Take out what is mended; put nothing in.
UPWARD: set[tuple[str, str]] = set()
WITH_RCLPY: set[str] = set()
LONG: set[str] = set()
FULL: set[str] = set()
LOADS_ROS: set[str] = set()


def modules() -> list[Path]:
    """List the modules of the package."""
    return sorted(PACKAGE.rglob('*.py'))


def modules_of_tests() -> list[Path]:
    """List the modules of the tests, and those they share."""
    return sorted(TESTS.rglob('*.py'))


def name_of(path: Path) -> str:
    """Return a module's path below the package."""
    return path.relative_to(PACKAGE).as_posix()


def rooms_of(path: Path) -> set[str]:
    """List the rooms that a module imports from."""
    parts = [name.split('.') for name in imports(path)]
    return {part[1] for part in parts if part[0] == NAME and len(part) > 1} & RANK.keys()


def test_every_folder_is_a_room_with_a_level() -> None:
    folders = {path.parent.name for path in PACKAGE.glob('*/__init__.py')}
    assert folders == set(RANK)


def test_imports_point_down() -> None:
    upward = {
        (name_of(path), other)
        for path in modules()
        if (room := path.relative_to(PACKAGE).parts[0]) in RANK
        for other in rooms_of(path) - {room}
        if RANK[other] >= RANK[room]
    }
    assert upward - UPWARD == set()


def test_what_stands_beside_the_rooms_imports_from_none() -> None:
    beside = {path for path in PACKAGE.glob('*.py') if path.name not in FOR_OTHERS}
    assert {name_of(path): rooms_of(path) for path in beside if rooms_of(path)} == {}


def test_nobody_here_imports_what_is_there_for_others() -> None:
    names = {f'{NAME}.{Path(name).stem}' for name in FOR_OTHERS}
    assert [name_of(path) for path in modules() if names & set(imports(path))] == []


def test_only_nodes_and_programs_that_run_them_know_rclpy() -> None:
    found = {
        name_of(path)
        for path in modules()
        if any(name.partition('.')[0] in ('rclpy', 'tf2_ros') for name in imports(path))
    }
    assert {
        name for name in found if not name.startswith('nodes/')
    } - RUN_NODES - WHERE_ROS_IS - WITH_RCLPY == set()


def test_the_rooms_below_the_nodes_load_nothing_of_ros() -> None:
    rooms = [room for level in LEVELS[:-2] for room in level if room != 'nodes']
    rooms.sort(key=lambda room: room in LOADS_ROS)
    # A fresh interpreter: this one may have imported rclpy for another test.
    program = f"""
import importlib, json, pkgutil, sys
loaded = {{}}
for room in {rooms}:
    package = importlib.import_module('{NAME}.' + room)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):
        importlib.import_module(module.name)
    loaded[room] = sorted({{name.partition('.')[0] for name in sys.modules}})
print(json.dumps(loaded))
"""
    command = [sys.executable, '-c', program]
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    # The wheels' ros_wheels_bootstrapper is loaded by Python itself, whatever is imported.
    ros = {
        room: [
            name
            for name in names
            if name.startswith(('rclpy', 'rpyutils', 'rosidl', 'ament', 'tf2'))
            or name.endswith(('_msgs', '_srvs', '_interfaces'))
        ]
        for room, names in json.loads(answer.stdout).items()
    }
    assert {room for room, names in ros.items() if names} - LOADS_ROS == set(), ros


def test_only_tests_and_benchmarks_need_mujoco() -> None:
    """It comes with the extra `test` alone."""
    with_mujoco = f'{NAME}.simulation.in_mujoco'
    found = {
        name_of(path)
        for path in modules()
        if any(name.startswith(('mujoco', with_mujoco)) for name in imports(path))
    }
    assert {name for name in found if not name.startswith('simulation/in_mujoco/')} == set()


def test_tests_and_benchmarks_import_nothing_of_each_other() -> None:
    folders = {name: ROOT / name for name in ('test', 'benchmark')}
    for name, folder in folders.items():
        others = {
            path.stem for key in folders.keys() - {name} for path in folders[key].rglob('*.py')
        }
        for path in folder.rglob('*.py'):
            assert others.isdisjoint(imports(path)), path


def test_the_tests_have_the_rooms_of_the_package() -> None:
    assert {path.name for path in TESTS.glob('*.py')} == {'conftest.py'}
    assert {path.relative_to(TESTS).parts[0] for path in TESTS.rglob('*/*.py')} <= (
        RANK.keys() | OF_TESTS
    )


def test_what_goes_over_topics_has_rooms_of_its_own() -> None:
    files = {path for path in modules_of_tests() if path.name.startswith('test_')}
    named = {path for path in files if path.name.startswith('test_ros_')}
    assert named == {path for path in files if path.relative_to(TESTS).parts[0] in OVER_TOPICS}
    run = re.search(r'DISTRO=kilted .*TESTS="(.*)"', (ROOT / '.ci/run').read_text('utf-8'))
    assert run is not None
    assert set(run[1].split()) == {f'test/{room}' for room in OVER_TOPICS | {'faults'}}


def test_no_two_modules_of_the_tests_have_one_name() -> None:
    """pytest imports them by their names alone, for no folder is a package."""
    names = [path.name for path in modules_of_tests() if path.name != 'conftest.py']
    assert [name for name in set(names) if names.count(name) > 1] == []
    assert '__init__.py' not in names


def test_what_tests_of_several_rooms_use_is_shared() -> None:
    """Another room is found only once its tests have been."""
    settings = (ROOT / 'pyproject.toml').read_text('utf-8')
    folders = [folder.relative_to(ROOT).as_posix() for folder in SHARED]
    assert f'pythonpath = {folders}\n' in settings
    homes = {path.stem: path.parent for path in modules_of_tests() if path.name != 'conftest.py'}
    elsewhere = {
        (path.name, name)
        for path in modules_of_tests()
        for name in homes.keys() & set(imports(path))
        if homes[name] not in (path.parent, *SHARED) or name.startswith('test_')
    }
    assert elsewhere == set()


def lines(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text(encoding='utf-8').splitlines())


def test_a_module_is_one_sitting() -> None:
    lengths = {name_of(path): lines(path) for path in modules()}
    lengths |= {path.relative_to(ROOT).as_posix(): lines(path) for path in modules_of_tests()}
    too_long = {name: length for name, length in lengths.items() if length > LONGEST}
    assert too_long.keys() - LONG == set(), too_long


def test_a_folder_is_seen_at_a_glance() -> None:
    counts: dict[str, int] = {}
    for path in modules() + modules_of_tests():
        if path.name not in ('__init__.py', 'conftest.py'):
            folder = path.parent.relative_to(ROOT).as_posix()
            counts[folder] = counts.get(folder, 0) + 1
    assert {folder for folder, count in counts.items() if count > MOST} - FULL == set(), counts
