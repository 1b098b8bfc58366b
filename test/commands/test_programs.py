"""What every program of the package knows: --help, --version, and an end by SIGINT."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT
from processes import DEADLINE, catches
from ros_group import Group

from load_identification import __version__
from load_identification.nodes.transport import entry

SCRIPTS = dict(
    re.findall(
        r"f'(\w+) = \{NAME\}\.([\w.]+:\w+)'", (ROOT / 'setup.py').read_text(encoding='utf-8')
    )
)
COMMANDS = [name for name, place in SCRIPTS.items() if place.startswith('commands.')]
NODES = [name for name, place in SCRIPTS.items() if place.startswith('nodes.')]

HEAVY = ('numpy', 'scipy', 'pinocchio', 'rclpy', 'rich', 'matplotlib', 'rosbags')


def command(program: str, *words: str, before: str = '') -> list[str]:
    """Return how a program is started, as its console script does it."""
    module, _, function = SCRIPTS[program].partition(':')
    code = (
        f'{before}\nimport sys\n'
        f'from load_identification.{module} import {function} as main\n'
        f'sys.argv[0] = {program!r}\n'
        'raise SystemExit(main())\n'
    )
    return [sys.executable, '-c', code, *words]


@pytest.mark.parametrize('program', SCRIPTS)
def test_every_program_knows_its_version(program: str) -> None:
    ended = subprocess.run(
        command(program, '--version'), cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0
    assert ended.stdout == f'load_identification {__version__}\n'


@pytest.mark.parametrize('program', COMMANDS)
def test_help_is_there_before_anything_that_takes_long_is_imported(program: str) -> None:
    module, _, function = SCRIPTS[program].partition(':')
    code = (
        'import sys\n'
        f'from load_identification.{module} import {function} as main\n'
        'try:\n'
        f'    main()\n'
        'finally:\n'
        f'    print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\n'
    )
    ended = subprocess.run(
        [sys.executable, '-c', code, '--help'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0
    assert 'usage: ' in ended.stdout
    assert ended.stderr == '[]\n'


@pytest.mark.parametrize(
    ('program', 'words'),
    [
        ('load_identification', ['--nonsense']),
        ('load_monitor', ['--nonsense']),
        ('load_demo', ['--params-file', '/nowhere.yaml']),
        ('hexapod_demo', ['--params-file', '/nowhere.yaml']),
    ],
)
def test_ros_arguments_that_cannot_be_read_are_named(program: str, words: list[str]) -> None:
    ended = subprocess.run(
        command(program, '--ros-args', *words),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert ended.returncode == 2, ended.stderr
    assert words[-1] in ended.stderr.splitlines()[-1]
    assert 'Traceback' not in ended.stderr


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Give back the signals that a program takes before all else."""
    before = {number: signal.getsignal(number) for number in entry.END_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    'words', [('-p', 'gravity:=[1.0]'), ('--gravity', '0', '0', '9.8'), ('--nosuch',)]
)
@pytest.mark.parametrize('program', NODES)
@pytest.mark.usefixtures('own_signals')
def test_arguments_outside_those_of_ros_are_refused(
    program: str,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = ['--ros-args', '-p', 'publish_rate:=10.0', '--', *words]
    monkeypatch.setattr(sys, 'argv', [program, *own])
    assert getattr(entry, program)() == 2
    _, said = capsys.readouterr()
    assert said.startswith(f'{program}: {" ".join(words)!r}: parameters and remappings')
    assert f'{program} --ros-args -p' in said
    assert said.count('\n') == 1


def command_line(process: subprocess.Popen[str]) -> str:
    """Return what a process runs now."""
    return Path(f'/proc/{process.pid}/cmdline').read_text(encoding='utf-8')


HEXAPOD = ['--ros-args', '-p', f'mechanism:={ROOT / "config" / "hexapod.yaml"}']
BACKGROUND: dict[str, tuple[list[str], int]] = {
    'load_identification': ([], 0),
    'fusion_node': ([], 0),
    'filter_node': ([], 0),
    'estimator_node': ([], 0),
    'compensation_node': ([], 0),
    'hexapod_node': (HEXAPOD, 0),
    'arm_estimator_node': ([], 0),
    'load_monitor': ([], 0),
    'load_demo': (['--no-pipeline'], 130),
    'hexapod_demo': ([], 130),
    'identify_load': (['/nowhere'], 130),
    'identify_arm': (['/nowhere'], 130),
    'plan_excitation': (['/nowhere'], 130),
    'identify_payload': ([], 130),
}
"""How each program is started, and its exit status after SIGINT."""


INPUTS = ('joint_states', 'wrench', 'robot_description')


def test_no_program_is_left_out_of_the_background() -> None:
    assert set(BACKGROUND) == set(SCRIPTS)


@pytest.mark.parametrize('program', BACKGROUND)
def test_sigint_ends_what_a_shell_has_started_in_the_background(
    program: str, tmp_path: Path
) -> None:
    """A shell without job control starts with SIGINT ignored what is followed by &."""
    words, status = BACKGROUND[program]
    with Group() as group:
        # A demonstration refuses to publish beside what the program before has left announced.
        group.wait_for(
            lambda: not any(group.node.count_publishers(f'/{name}') for name in INPUTS), 'silence'
        )
        process = subprocess.Popen(
            ['sh', '-c', f'trap "" INT; exec {shlex.join(command(program, *words))}'],
            cwd=ROOT,
            env=os.environ | {'ROS_DOMAIN_ID': str(group.domain), 'ROS_HOME': str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            # Until it ignores the signal the shell catches it, too.
            group.wait_for(lambda: 'trap' not in command_line(process), 'the program')
            group.wait_for(lambda: catches(process.pid, signal.SIGINT), 'the handler of SIGINT')
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=DEADLINE)
            assert process.returncode == status, said
        finally:
            process.kill()
            process.wait()
