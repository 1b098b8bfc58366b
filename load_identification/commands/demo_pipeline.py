"""The pipeline of the demonstration: start it, wait for it, and isolate it from others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Protocol, TypeVar

import rclpy
from rclpy.node import Node
from rich.console import Console

from load_identification.errors import LoadIdentificationError
from load_identification.interface.program import NAMESPACE
from load_identification.nodes.client.monitor import Monitor
from load_identification.nodes.transport.publishers import JOINT_STATES, WRENCH
from load_identification.nodes.transport.runtime import initialize

DISCOVERY = 1.5
"""Time to discover other publishers before anything is started [s]."""

START_DEADLINE = 20.0
"""Longest time until the pipeline has subscribed [s]."""


class DemoError(LoadIdentificationError):
    """The demonstration cannot run or continue."""


@contextmanager
def demo_node(name: str, argv: Sequence[str]) -> Iterator[Node]:
    """Make the node of a demonstration from the ROS arguments of its command line."""
    initialize(list(argv))
    node = Node(name, namespace=NAMESPACE, start_parameter_services=False)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


class Published(Protocol):
    """Publisher of a simulated machine's samples."""

    @property
    def unheard(self) -> Sequence[str]:
        """Topics without a subscriber."""


P = TypeVar('P', bound=Published)


class NodeProcess:
    """A console script of the nodes in its own process, ended on leaving the context."""

    def __init__(
        self, program: str = 'load_identification', parameters: Mapping[str, object] | None = None
    ) -> None:
        self._program = program
        arguments = [part for k, v in (parameters or {}).items() for part in ('-p', f'{k}:={v}')]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed in __exit__
        # Keeps offset and tool of a real robot from being read or overwritten.
        self._home = tempfile.TemporaryDirectory(prefix='load_demo-')
        command = (sys.executable, '-m', 'load_identification.nodes.transport.entry', program)
        self._process = subprocess.Popen(
            [*command, '--ros-args', *arguments],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=os.environ | {'ROS_HOME': self._home.name},
        )

    def __enter__(self) -> NodeProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(3.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._home.cleanup()

    def output(self) -> str:
        """Return its whole output."""
        size = os.fstat(self._log.fileno()).st_size
        # pread, because reading would move the file position at which the process writes.
        return os.pread(self._log.fileno(), size, 0).decode(errors='replace').strip()

    def check(self) -> None:
        """Raise DemoError if the process has ended."""
        status = self._process.poll()
        if status is not None:
            raise DemoError(
                f'{self._program} has ended with status {status}; it wrote:\n{self.output()}'
            )


@contextmanager
def connected(
    node: Node,
    console: Console,
    monitor: Monitor,
    make: Callable[[], P],
    start: Callable[[], NodeProcess] | None = NodeProcess,
) -> Iterator[tuple[P, Callable[[], None]]]:
    """Look out for robots, start a pipeline (None: somebody else does), and connect a machine.

    Yields the machine that was made, and a check that raises DemoError if others publish or the
    pipeline has ended. It is to be repeated, because under load others are discovered late.
    """
    own = start is not None
    with console.status('looking out for robots'):
        end = time.monotonic() + DISCOVERY
        while time.monotonic() < end:
            _refuse_others(node, monitor, False, own)
            time.sleep(0.05)
    with start() if start is not None else nullcontext() as process:
        machine = make()
        with console.status('waiting for the pipeline'):
            wait_for_pipeline(node, machine, monitor, process)

        def check() -> None:
            _refuse_others(node, monitor, True, own)
            if process is not None:
                process.check()

        check()
        yield machine, check


def _refuse_others(node: Node, monitor: Monitor, started: bool, own_pipeline: bool) -> None:
    """Raise DemoError if others publish the arm's topics, or the pipeline's that we read.

    `started`: our own publishers are already visible. `own_pipeline`: only ours may run.
    """
    domain = node.context.get_domain_id()
    for topic in (JOINT_STATES, WRENCH):
        if node.count_publishers(topic) > int(started):
            raise DemoError(
                f'somebody else publishes {topic} on ROS domain {domain}, perhaps a real robot: '
                'choose another domain with ROS_DOMAIN_ID'
            )
    if own_pipeline and monitor.publishers > int(started):
        raise DemoError(
            f'another pipeline runs on ROS domain {domain}: '
            'feed that one with --no-pipeline, or choose another domain with ROS_DOMAIN_ID'
        )


def wait_for_pipeline(
    node: Node, arm: Published, monitor: Monitor, pipeline: NodeProcess | None
) -> None:
    """Wait until pipeline and arm are connected; raise DemoError if they do not connect."""
    end = time.monotonic() + START_DEADLINE
    while arm.unheard or not monitor.publishers:
        if pipeline is not None:
            pipeline.check()
        if time.monotonic() > end:
            lacking = [f'nobody has subscribed to {topic}' for topic in arm.unheard]
            if not monitor.publishers:
                lacking.append(f'nobody publishes in {node.get_namespace()}')
            written = f'; the pipeline wrote:\n{pipeline.output()}' if pipeline else ''
            raise DemoError(f'{", ".join(lacking)} after {START_DEADLINE:.0f} s{written}')
        time.sleep(0.05)
