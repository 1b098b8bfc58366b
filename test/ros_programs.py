"""Programs as a person starts them, on the ROS graph of a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

from ros_helpers import CODE, DEADLINE, Group


class Program:
    """A program in a process group of its own, on the domain of a group.

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
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed in `close`
        self._process = subprocess.Popen(
            [sys.executable, '-m', f'load_identification.commands.{module}', *arguments],
            env=os.environ
            | {
                'ROS_DOMAIN_ID': str(group.domain),
                'PYTHONPATH': os.pathsep.join([str(CODE), os.environ.get('PYTHONPATH', '')]),
                'PYTHONIOENCODING': 'utf-8',
            },
            stdin=subprocess.PIPE if typed else subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        """All it has written so far."""
        size = os.fstat(self._file.fileno()).st_size
        return os.pread(self._file.fileno(), size, 0).decode()

    def wait_for_line(self, text: str) -> None:
        """Wait until it has written a text; fail where it ends before."""
        self._group.wait_for(lambda: text in self.output or self.ended, f'{text!r}')
        assert text in self.output, self.output

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it, not to what it has started."""
        self._process.send_signal(number)

    def type(self, text: str) -> None:
        """Type something, and nothing more."""
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.close()

    def wait(self) -> int:
        """Return its exit status."""
        return self._process.wait(DEADLINE)

    @property
    def left_behind(self) -> bool:
        """Whether anything of its process group runs once it has ended."""
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def close(self) -> None:
        """End it and all that it has started."""
        if self._process.poll() is None or self.left_behind:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._file.close()
