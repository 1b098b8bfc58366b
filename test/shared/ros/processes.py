"""Nodes and programs in processes of their own, forked from one that has imported what they do.

That takes most of a start. Nothing of ROS is among it: Fast DDS begins threads when it is loaded,
and no thread comes along with a fork. That programs start by themselves too is what
test_programs and test_ros_entry are about.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import load_identification

if TYPE_CHECKING:
    from ros_group import Group

DEADLINE = 240.0
"""No event that comes at all takes so long, however loaded the machine [s]."""

CODE = Path(load_identification.__file__).resolve().parents[1]
"""Where this process has the package from: the processes under test are to have the same."""

FORK = multiprocessing.get_context('forkserver')
FORK.set_forkserver_preload(
    [
        'load_identification.pipeline.effort_front',
        'load_identification.pipeline.payload_stage',
        'load_identification.motion.guided',
        'rich.progress',
    ]
)


def catches(process: int, number: signal.Signals) -> bool:
    """Tell whether a process handles a signal itself, by its ID."""
    status = Path(f'/proc/{process}/status').read_text(encoding='utf-8')
    caught = next(line for line in status.splitlines() if line.startswith('SigCgt:'))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def run(
    module: str,
    function: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    streams: tuple[str, str],
    before: str,
) -> None:
    """Run a program in the process just forked; see `ForkedProcess`."""
    os.setsid()
    os.environ.update(environment)
    sys.path[:0] = environment.get('PYTHONPATH', '').split(os.pathsep)
    for number, path in enumerate((*streams, streams[1])):
        os.dup2(os.open(path, os.O_RDWR | os.O_APPEND), number)
    faulthandler.register(signal.SIGUSR1)
    sys.stdin = open(0, encoding='utf-8', closefd=False)  # noqa: SIM115  to the end
    sys.stdout.reconfigure(encoding='utf-8')
    sys.argv[1:] = arguments
    exec(before, {})
    sys.exit(getattr(import_module(f'load_identification.{module}'), function)())


class ForkedProcess:
    """A program of the package in a process, and process group, of its own.

    Parameters
    ----------
    module, function : str
        Where it begins, under load_identification.
    arguments : sequence of str
    environment : mapping
        What it is typed and writes is below ROS_HOME.
    before : str
        Python run in it first, to make it fail in ways that no input does.
    typed : bool
        Whether something is to be typed.
    """

    def __init__(
        self,
        module: str,
        function: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        before: str = '',
        typed: bool = False,
    ) -> None:
        self.module = module
        folder = tempfile.mkdtemp(dir=environment['ROS_HOME'])
        self._typed, self._written = (Path(folder, name) for name in ('in', 'out'))
        os.mkfifo(self._typed)
        self._written.touch()
        streams = str(self._typed) if typed else os.devnull, str(self._written)
        self._process = FORK.Process(
            target=run,
            args=(module, function, arguments, dict(environment), streams, before),
            daemon=True,
        )
        here = Path.cwd()
        # What forks, too, looks for the package where it is started.
        os.chdir(CODE)
        self._process.start()
        os.chdir(here)

    @property
    def output(self) -> str:
        """All it has written so far, to either stream."""
        return self._written.read_text(encoding='utf-8', errors='replace')

    @property
    def whereabouts(self) -> str:
        """All it has written so far, then where its threads are: in Python, and by gdb, if any."""
        if not self.alive:
            return self.output
        self.send(signal.SIGUSR1)
        end = time.monotonic() + 5.0
        while 'most recent call first' not in self.output and time.monotonic() < end:
            time.sleep(0.05)
        native = ''
        if gdb := shutil.which('gdb'):
            command = [gdb, '-p', str(self._process.pid), '-batch', '-ex', 'thread apply all bt']
            with contextlib.suppress(subprocess.TimeoutExpired):
                asked = subprocess.run(command, capture_output=True, text=True, timeout=60.0)
                native = asked.stdout
        return f'{self.output}\n{native}'

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.is_alive()

    @property
    def memory(self) -> float:
        """How much of it is resident [MB]."""
        statm = Path(f'/proc/{self._process.pid}/statm').read_text(encoding='ascii')
        return int(statm.split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6

    def catches(self, number: signal.Signals) -> bool:
        """Whether it has got as far as to handle a signal itself."""
        return catches(self._process.pid, number)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it, not to what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def type(self, text: str) -> None:
        """Type something."""
        self._typed.write_text(text, encoding='utf-8')

    def wait(self) -> int:
        """Return the exit status, once it has one."""
        self._process.join(DEADLINE)
        status = self._process.exitcode
        assert status is not None, f'{self.module} does not end\n{self.whereabouts}'
        return status

    @property
    def left_behind(self) -> bool:
        """Whether anything of its process group runs once it has ended."""
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def close(self) -> None:
        """End it, whatever it does, and all that it has started."""
        # What is killed leaves its shared memory, over which the next ones stumble.
        self._process.terminate()
        self._process.join(5.0)
        if self.left_behind:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.join(DEADLINE)
        assert not self.alive, f'{self.module} was killed, yet runs'


class Program(ForkedProcess):
    """A program as a person starts it, on the domain of a group, which ends it in the end.

    Parameters
    ----------
    group : Group
    module : str
        Under load_identification.commands.
    arguments : str
    typed : bool
        Whether something is to be typed.
    """

    def __init__(self, group: Group, module: str, *arguments: str, typed: bool = False) -> None:
        self._group = group
        own = os.environ | {'ROS_DOMAIN_ID': str(group.domain)}
        super().__init__(f'commands.{module}', 'main', arguments, own, typed=typed)
        group.adopt(self)

    def wait_for_line(self, text: str) -> None:
        """Wait until it has written a text; fail where it ends before."""
        self._group.wait_for(lambda: text in self.output or self.ended, f'{text!r}')
        assert text in self.output, self.output

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return not self.alive
