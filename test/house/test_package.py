"""The package as a whole: what it declares and installs."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from checkout import NAME, PACKAGE, ROOT, imports

# Module to (rosdep key, name on the package index). What is not here is a ROS package.
LIBRARIES = {
    'PIL': ('python3-pil', 'pillow'),
    'matplotlib': ('python3-matplotlib', 'matplotlib'),
    'mpl_toolkits': ('python3-matplotlib', 'matplotlib'),
    'numpy': ('python3-numpy', 'numpy'),
    'pinocchio': ('pinocchio', 'pin'),
    'rich': ('python3-rich', 'rich'),
    'rosbags': ('', 'rosbags'),
    'scipy': ('python3-scipy', 'scipy'),
    'yaml': ('python3-yaml', 'pyyaml'),
}
# Used where it is importable; not on the package index.
ROS_WITHOUT_WHEEL = {'rosbag2_py', 'tf2_msgs', 'tf2_ros'}
ROS_PACKAGE = {'tf2_ros': 'tf2_ros_py'}
"""Of modules that are called otherwise."""


def foreign_modules(folder: Path) -> set[str]:
    """List the top-level modules imported under a folder that are neither Python's nor ours."""
    roots = {
        name.partition('.')[0]
        for path in folder.rglob('*.py')
        if path.parent.name != 'in_mujoco'  # for tests and benchmarks alone
        for name in imports(path)
    }
    return roots - set(sys.stdlib_module_names) - {NAME}


def functions(path: Path) -> set[str]:
    """List what a file defines or assigns; nothing where there is no such file."""
    if not path.is_file():
        return set()
    body = ast.parse(path.read_text(encoding='utf-8')).body
    assigned = [node.targets[0] for node in body if isinstance(node, ast.Assign)]
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return defined | {target.id for target in assigned if isinstance(target, ast.Name)}


@pytest.fixture(scope='module')
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel that pip installs, and return the folder it was unpacked into."""
    # From a copy, for setuptools packs whatever an earlier build has left in build/.
    source = tmp_path_factory.mktemp('source')
    for folder in (NAME, 'resource', 'launch', 'config'):
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns('__pycache__')
        )
    for name in ('setup.py', 'setup.cfg', 'pyproject.toml', 'package.xml', 'LICENSE'):
        shutil.copy(ROOT / name, source)
    target = tmp_path_factory.mktemp('wheel')
    subprocess.run(
        [
            *(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps', '--no-index'),
            *('--no-build-isolation', '--wheel-dir', target, source),
        ],
        check=True,
        timeout=600,
    )
    (built,) = target.glob('*.whl')
    with zipfile.ZipFile(built) as archive:
        archive.extractall(target / 'unpacked')
    return target / 'unpacked'


@pytest.fixture(scope='module')
def distribution(wheel: Path) -> metadata.Distribution:
    """Return what the wheel says of itself."""
    (records,) = wheel.glob('*.dist-info')
    return metadata.Distribution.at(records)


@pytest.fixture(scope='module')
def manifest() -> ElementTree.Element:
    """Return package.xml."""
    return ElementTree.parse(ROOT / 'package.xml').getroot()


@pytest.fixture(scope='module')
def run_dependencies(manifest: ElementTree.Element) -> set[str | None]:
    """Return the rosdep keys that a robot running the package gets."""
    return {item.text for tag in ('depend', 'exec_depend') for item in manifest.findall(tag)}


def test_name_and_version_are_those_of_package_xml(
    distribution: metadata.Distribution, manifest: ElementTree.Element
) -> None:
    declared = (distribution.metadata['Name'], distribution.version)
    assert declared == (manifest.findtext('name'), manifest.findtext('version'))


def test_every_executable_has_its_function(distribution: metadata.Distribution) -> None:
    scripts = distribution.entry_points.select(group='console_scripts')
    assert scripts
    missing = [
        script.value
        for script in scripts
        if script.attr not in functions(ROOT / (script.module.replace('.', '/') + '.py'))
    ]
    assert missing == []


def test_every_import_is_a_dependency_on_the_robot(run_dependencies: set[str | None]) -> None:
    modules = foreign_modules(PACKAGE)
    assert modules
    keys = {
        LIBRARIES[name][0] if name in LIBRARIES else ROS_PACKAGE.get(name, name)
        for name in modules
    }
    assert keys - {''} - run_dependencies == set()


def test_rosdep_installs_nothing_with_pip(manifest: ElementTree.Element) -> None:
    keys = [item.text or '' for item in manifest if item.tag.endswith('depend')]
    assert len(keys) > 20
    assert [key for key in keys if key.endswith('-pip') and key != 'python3-pip'] == []


WITHOUT_LIBRARY = """
import importlib, pkgutil, sys
sys.modules['rosbags'] = sys.modules['rosbag2_py'] = None
import load_identification
for room in ('recordings', 'report', 'commands'):
    package = importlib.import_module('load_identification.' + room)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f'{package.__name__}.{module.name}')
from load_identification.commands.identify_load import main
print(main(['somewhere']), main(['--static', 'poses.csv']), file=sys.stderr)
"""


def test_only_what_reads_a_recording_needs_a_library_for_it(tmp_path: Path) -> None:
    (tmp_path / 'poses.csv').write_text('qx,qy,qz,qw,fx,fy,fz\n0,0,0,1,1,2,3\n')
    done = subprocess.run(
        [sys.executable, '-c', WITHOUT_LIBRARY],
        cwd=tmp_path,
        env=os.environ | {'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (
        'recordings need rosbag2_py, which comes with ROS 2, or the Python package rosbags, '
        'and neither can be imported'
    ) in done.stderr
    assert done.stderr.endswith('2 1\n'), done.stderr


WITHOUT_ROS = """
import sys
sys.modules[sys.argv.pop(1)] = None
from importlib import import_module
module, name = sys.argv.pop(1), sys.argv.pop(1)
sys.exit(getattr(import_module(module), name)())
"""


@pytest.mark.parametrize(
    ('module', 'name'),
    [
        ('commands.load_demo', 'main'),
        ('commands.guided.identify_payload', 'main'),
        ('commands.load_monitor', 'main'),
        ('nodes.transport.entry', 'estimator_node'),
    ],
)
def test_missing_ros_is_one_line_that_says_what_to_install(module: str, name: str) -> None:
    said = without('rclpy', module, name)
    assert "error: rclpy cannot be imported: source ROS 2, or pip install '.[ros]'" in said


def test_ros_of_another_python_is_one_line_that_asks_about_it() -> None:
    said = without('rclpy._rclpy_pybind11', 'nodes.transport.entry', 'estimator_node')
    assert 'rclpy._rclpy_pybind11 is missing: is this Python 3.' in said


def without(missing: str, module: str, name: str) -> str:
    """Return the one line that a program says without a module."""
    done = subprocess.run(
        [sys.executable, '-c', WITHOUT_ROS, missing, f'{NAME}.{module}', name],
        env=os.environ | {'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2
    assert done.stderr.count('\n') == 1, done.stderr
    return done.stderr


def test_every_import_is_a_dependency_without_ros(distribution: metadata.Distribution) -> None:
    modules = foreign_modules(PACKAGE) - ROS_WITHOUT_WHEEL
    needed = {
        LIBRARIES[name][1] if name in LIBRARIES else f'ros-jazzy-{name.replace("_", "-")}'
        for name in modules
    }
    declared = {
        re.split(r'[^\w-]', requirement)[0]
        for requirement in distribution.requires or []
        if 'extra ==' not in requirement or 'extra == "ros"' in requirement
    }
    # A robot opens recordings with rosbag2_py, so rosbags is no requirement of its own.
    assert needed - declared == {'rosbags'}


def test_rosbags_is_an_extra_that_demo_and_tests_install(
    distribution: metadata.Distribution,
) -> None:
    extra = [text for text in distribution.requires or [] if text.startswith('rosbags')]
    assert [re.sub(r'.*; ', '', text) for text in extra] == ['extra == "recordings"']
    installed = re.findall(r"\$\(install\) '\.\[(.*)\]'", (ROOT / 'Makefile').read_text())
    assert len(installed) == 2
    assert all('recordings' in extras.split(',') for extras in installed)


def test_every_package_a_launch_file_starts_is_a_dependency(
    run_dependencies: set[str | None],
) -> None:
    launch_files = list((ROOT / 'launch').glob('*.launch.xml'))
    assert launch_files
    started = {
        node.get('pkg') for path in launch_files for node in ElementTree.parse(path).iter('node')
    }
    assert started - run_dependencies == {NAME}


def test_wheel_carries_the_package_and_its_shared_files(
    wheel: Path, distribution: metadata.Distribution
) -> None:
    data = f'{NAME}-{distribution.version}.data/data'
    share = f'{data}/share/{NAME}'
    code = {
        path.relative_to(ROOT).as_posix()
        for path in PACKAGE.rglob('*')
        if path.suffix in ('.py', '.xml') or path.name == 'py.typed'
    }
    shared = {
        path.relative_to(ROOT).as_posix()
        for folder in ('launch', 'config')
        for path in (ROOT / folder).rglob('*')
        if path.is_file()
    }
    expected = {f'{share}/package.xml', f'{data}/share/ament_index/resource_index/packages/{NAME}'}
    expected |= code | {f'{share}/{path}' for path in shared}
    packed = {path.relative_to(wheel) for path in wheel.rglob('*') if path.is_file()}
    # All of that, and nothing else but the wheel's own records.
    assert {
        path.as_posix() for path in packed if not path.parts[0].endswith('.dist-info')
    } == expected


def test_image_and_workflow_name_what_there_is(run_dependencies: set[str | None]) -> None:
    # Neither docker nor the workflow's host is here: names, quoting and syntax alone are tested.
    lines = (ROOT / 'Dockerfile').read_text(encoding='utf-8').replace('\\\n', ' ').splitlines()
    steps = dict(line.split(maxsplit=1) for line in lines if line[:1].isupper())
    assert list(steps) == ['ARG', 'FROM', 'WORKDIR', 'COPY', 'RUN', 'ENTRYPOINT', 'CMD']
    assert (steps['ARG'], steps['FROM']) == ('ROS_DISTRO=jazzy', 'ros:${ROS_DISTRO}')
    subprocess.run(['sh', '-n', '-c', steps['RUN']], check=True, timeout=600)
    assert '--skip-keys rviz2' in steps['RUN']
    assert 'rviz2' in run_dependencies
    shell, option, script = json.loads(steps['ENTRYPOINT'])
    subprocess.run([shell, '-n', option, script], check=True, timeout=600)
    assert json.loads(steps['CMD'])[:3] == ['ros2', 'launch', NAME]
    assert (ROOT / 'launch' / json.loads(steps['CMD'])[3]).is_file()

    workflow = yaml.safe_load((ROOT / '.github/workflows/ros.yaml').read_text(encoding='utf-8'))
    (job,) = workflow['jobs'].values()
    assert job['strategy']['matrix']['distro'] == ['jazzy', 'kilted']
    commands = [step['run'] for step in job['steps'] if 'run' in step]
    assert '--build-arg ROS_DISTRO=${{ matrix.distro }}' in commands[0]
    for command in commands[1:]:
        assert shlex.split(command)[:3] == ['docker', 'run', '--rm']
        named = re.findall(r'\S+\.(?:py|launch\.xml)\b', command)
        assert named
        folders = ROOT, ROOT / 'launch'
        assert [n for n in named if not any((f / n).is_file() for f in folders)] == []
