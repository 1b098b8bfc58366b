"""The demonstration: a simulated arm, identified live over ROS by the pipeline."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from rich.console import Console

from load_identification.errors import LoadIdentificationError
from load_identification.nodes.runtime import NAMESPACE
from load_identification.tools.demo_arm import (
    JOINT_STATES,
    WRENCH,
    ArmPublisher,
    Simulation,
    simulate_arm,
)
from load_identification.tools.demo_judgement import judge
from load_identification.tools.demo_monitor import Monitor
from load_identification.tools.demo_view import View, print_result
from load_identification.tools.report_live import LiveRecorder
from load_identification.tools.report_page import check_folder

HOLDS, DOES_NOT_HOLD, CANNOT_RUN, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143

EPILOG = f"""\
exit status:
  {HOLDS}    everything is identified and agrees with the truth
  {DOES_NOT_HOLD}    it does not
  {CANNOT_RUN}    the demonstration could not run
  {INTERRUPTED}  interrupted
"""

DISCOVERY = 1.5
"""Time given to publishers of others to be seen, before anything is started [s]."""

START_DEADLINE = 20.0
"""Time given to the pipeline to subscribe [s]."""

PERIOD = 0.002
"""Between two looks at what is due [s]."""

LISTENING = 0.01
"""Between two looks at what the pipeline says [s]."""

CHECKING = 1.0
"""Between two looks at who else publishes [s]."""

QUIET, QUIET_DEADLINE = 0.3, 3.0
"""The last estimate has come when no newer one follows for so long; waited for at most [s]."""


class DemoError(LoadIdentificationError):
    """The demonstration cannot run, or not go on."""


class PipelineProcess:
    """The pipeline in a process of its own, ended on leaving the context."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed in __exit__
        # Offset and tool of a real robot are not to be read, nor written over.
        self._home = tempfile.TemporaryDirectory(prefix='load_demo-')
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'load_identification.nodes.load_identification'],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=os.environ | {'ROS_HOME': self._home.name},
        )

    def __enter__(self) -> PipelineProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(3.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._home.cleanup()

    def output(self) -> str:
        """Return all that it has written."""
        size = os.fstat(self._log.fileno()).st_size
        # Not read: the process writes where the file's position is.
        return os.pread(self._log.fileno(), size, 0).decode(errors='replace').strip()

    def check(self) -> None:
        """Raise DemoError if it has ended."""
        status = self._process.poll()
        if status is not None:
            raise DemoError(
                f'the pipeline has ended with status {status}; it wrote:\n{self.output()}'
            )


def refuse_others(node: Node, monitor: Monitor, started: bool, own_pipeline: bool) -> None:
    """Raise DemoError if somebody else publishes what the arm does, or what we listen to.

    Parameters
    ----------
    node : Node
    monitor : Monitor
    started : bool
        Whether our own publishers are among those seen.
    own_pipeline : bool
        Whether the only pipeline is to be ours.
    """
    domain = node.context.get_domain_id()
    for topic in (JOINT_STATES, WRENCH):
        if node.count_publishers(topic) > int(started):
            raise DemoError(
                f'somebody else publishes {topic} on ROS domain {domain}, perhaps a real robot: '
                'choose another domain with ROS_DOMAIN_ID'
            )
    if own_pipeline and monitor.sources > int(started):
        raise DemoError(
            f'another pipeline runs on ROS domain {domain}: '
            'feed that one with --no-pipeline, or choose another domain with ROS_DOMAIN_ID'
        )


def wait_for_pipeline(
    node: Node, arm: ArmPublisher, monitor: Monitor, pipeline: PipelineProcess | None
) -> None:
    """Wait until the pipeline hears the arm and is heard; raise DemoError where it is not."""
    end = time.monotonic() + START_DEADLINE
    while arm.unheard or not monitor.sources:
        if pipeline is not None:
            pipeline.check()
        if time.monotonic() > end:
            lacking = [f'nobody has subscribed to {topic}' for topic in arm.unheard]
            if not monitor.sources:
                lacking.append(f'nobody publishes in {node.get_namespace()}')
            written = f'; the pipeline wrote:\n{pipeline.output()}' if pipeline else ''
            raise DemoError(f'{", ".join(lacking)} after {START_DEADLINE:.0f} s{written}')
        time.sleep(0.05)


def play(
    arm: ArmPublisher,
    listen: Callable[[], None],
    monitor: Monitor,
    view: View,
    check: Callable[[], None],
) -> None:
    """Publish the samples in real time while listening, then hear the last estimate."""
    listening = checking = -1.0
    arm.start()
    while arm.publish_due():
        now = arm.elapsed
        if now >= listening:
            listening = now + LISTENING
            listen()
            view.show()
        if now >= checking:
            checking = now + CHECKING
            check()
        time.sleep(PERIOD)
    end = arm.elapsed + QUIET_DEADLINE
    newest, since = monitor.newest, arm.elapsed
    while arm.elapsed < min(since + QUIET, end):
        listen()
        if monitor.newest != newest:
            newest, since = monitor.newest, arm.elapsed
        time.sleep(LISTENING)


def demonstrate(
    node: Node, seed: int, own_pipeline: bool, console: Console, report: Path | None = None
) -> int:
    """Run the whole demonstration and return the exit status.

    Parameters
    ----------
    node : Node
    seed : int
        Of the sensors' noise.
    own_pipeline : bool
        Start one, rather than feed that of somebody else.
    console : rich.console.Console
    report : Path, optional
        Folder for a report.

    Raises
    ------
    LoadIdentificationError
        If it cannot run.
    """
    seen_by = time.monotonic() + DISCOVERY
    monitor = Monitor(node)
    simulation = simulate_arm(seed)
    live = LiveRecorder(node, monitor) if report is not None else None
    introduce(console, node, simulation, seed)
    with console.status('looking out for robots'):
        while time.monotonic() < seen_by:
            refuse_others(node, monitor, False, own_pipeline)
            time.sleep(0.05)
    with PipelineProcess() if own_pipeline else contextlib.nullcontext() as pipeline:
        arm = ArmPublisher(node, simulation)
        with console.status('waiting for the pipeline'):
            wait_for_pipeline(node, arm, monitor, pipeline)

        def check() -> None:
            # Again and again: under load others are discovered late.
            refuse_others(node, monitor, True, own_pipeline)
            if pipeline is not None:
                pipeline.check()

        def listen() -> None:
            monitor.update(arm.elapsed)
            if live is not None:
                live.update(arm, simulation)

        check()
        with View(console, simulation, arm, monitor) as view:
            play(arm, listen, monitor, view, check)
    if not monitor.estimates:
        console.print(f'The estimate DOES NOT HOLD: none came; {monitor.words}', style='bold red')
        return DOES_NOT_HOLD
    judgement = judge(simulation.truth, monitor.estimate)
    print_result(console, simulation, arm, monitor, judgement)
    if live is not None and report is not None:
        # Not above: Matplotlib takes half a second to import.
        from load_identification.tools.report import write_report

        live.finish()
        page = write_report(report, live.recorder, live.outcome(simulation, seed))
        console.print(f'Written: {page}', soft_wrap=True)
    return HOLDS if judgement.holds else DOES_NOT_HOLD


def introduce(console: Console, node: Node, simulation: Simulation, seed: int) -> None:
    """Say what is going to happen."""
    mass = simulation.truth.payload.mass
    console.print(
        f'A simulated PUMA-like arm carries an aluminium block of {mass:.3f} kg on its wrist '
        f'sensor for {simulation.duration:.0f} s.\n'
        f'ROS domain {node.context.get_domain_id()}, noise of seed {seed}, '
        f'pipeline in {node.get_namespace()}',
        soft_wrap=True,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='load_demo',
        description='Identify the payload of a simulated arm live, over ROS topics, '
        'and compare it with the truth.',
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--seed', type=_seed, default=0, help="of the sensors' noise (default: %(default)s)"
    )
    parser.add_argument(
        '--report', metavar='DIR', type=Path, help='write an HTML page with plots to this folder'
    )
    parser.add_argument(
        '--no-pipeline',
        action='store_true',
        help='feed and judge a pipeline that somebody else starts, as the launch file does',
    )
    return parser


def _seed(text: str) -> int:
    """Read a seed; argparse turns the ValueError into its message."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number >= 0')
    return int(text)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Leave by the way of an exception, so that the pipeline is ended."""
    raise SystemExit(TERMINATED)


def main(args: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that has no ± is no reason to fail; a line is to be seen when it is written.
        sys.stdout.reconfigure(errors='replace', line_buffering=True)
    argv = sys.argv[1:] if args is None else args
    arguments = _parser().parse_args(remove_ros_args(argv))
    signal.signal(signal.SIGTERM, _terminate)
    rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    node = Node('load_demo', namespace=NAMESPACE, start_parameter_services=False)
    console = Console(highlight=False, markup=False)
    try:
        if arguments.report is not None:
            check_folder(arguments.report)
        return demonstrate(
            node, arguments.seed, not arguments.no_pipeline, console, arguments.report
        )
    except LoadIdentificationError as error:
        print(f'load_demo: error: {error}', file=sys.stderr)
        return CANNOT_RUN
    except KeyboardInterrupt:
        print('load_demo: interrupted', file=sys.stderr)
        return INTERRUPTED
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == '__main__':
    raise SystemExit(main())
