"""A signal while an executable still imports: it ends as it does later, with status 0, silent."""

from __future__ import annotations

import functools
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from checkout import ROOT
from processes import CODE, DEADLINE, catches

from load_identification.nodes.transport import entry

EXECUTABLES = (
    'load_identification',
    'fusion_node',
    'filter_node',
    'estimator_node',
    'compensation_node',
    'hexapod_node',
    'arm_estimator_node',
)
IMPORTED = ('', '_multiarray_umath', '_rclpy_pybind11', 'pinocchio')
"""Parts of the names of what is loaded on the way, in order; first nothing but the handlers."""


@contextmanager
def started(executable: str) -> Iterator[subprocess.Popen[str]]:
    """Yield an executable that has just been started as its console script does."""
    process = subprocess.Popen(
        [
            sys.executable,
            '-c',
            f'from load_identification.nodes.transport.entry import {executable} as main;'
            'raise SystemExit(main())',
        ],
        cwd=CODE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for what happens within milliseconds, without missing it."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def has_loaded(process: subprocess.Popen[str], library: str) -> bool:
    """Tell whether a process has a library in its memory."""
    return library in Path(f'/proc/{process.pid}/maps').read_text(encoding='utf-8')


@pytest.mark.parametrize(
    ('library', 'number'), list(zip(IMPORTED, 2 * entry.END_SIGNALS, strict=True))
)
def test_a_signal_among_the_imports_ends_it_with_status_0(
    number: signal.Signals, library: str
) -> None:
    executable = EXECUTABLES[IMPORTED.index(library)]
    with started(executable) as process:
        # Python starts with a handler of SIGINT, none of SIGTERM: that is ours.
        wait_for(functools.partial(catches, process.pid, signal.SIGTERM))
        wait_for(functools.partial(has_loaded, process, library))
        process.send_signal(number)
        output, _ = process.communicate(timeout=DEADLINE)
        assert (process.returncode, output) == (0, '')


def test_before_the_handlers_stand_nothing_slow_is_imported() -> None:
    slow = ('numpy', 'rclpy', 'pinocchio', 'yaml')
    code = 'import sys, load_identification.nodes.transport.entry; print(*sys.modules)'
    modules = subprocess.check_output([sys.executable, '-c', code], cwd=CODE, text=True).split()
    assert 'load_identification.nodes.transport.entry' in modules
    assert not set(slow).intersection(modules)


def test_every_executable_of_a_node_begins_there() -> None:
    setup = (ROOT / 'setup.py').read_text(encoding='utf-8')
    scripts = dict(re.findall(r"f'(\w+) = {NAME}\.nodes\.(\S+)'", setup))
    assert scripts == {name: f'transport.entry:{name}' for name in EXECUTABLES}
    assert all(callable(getattr(entry, name)) for name in EXECUTABLES)
