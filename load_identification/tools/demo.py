"""The demonstration: a simulated arm, identified live over ROS by the pipeline."""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from rich.console import Console

from load_identification.errors import LoadIdentificationError
from load_identification.nodes.runtime import NAMESPACE
from load_identification.tools.demo_arm import ArmPublisher, Simulation, simulate_arm
from load_identification.tools.demo_judgement import judge
from load_identification.tools.demo_monitor import Monitor
from load_identification.tools.demo_pipeline import (
    NodeProcess,
    look_out,
    refuse_others,
    wait_for_pipeline,
)
from load_identification.tools.demo_view import View, print_result
from load_identification.tools.paper import repeat_paper
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

PERIOD = 0.002
"""Between two looks at what is due [s]."""

LISTENING = 0.01
"""Between two looks at what the pipeline says [s]."""

CHECKING = 1.0
"""Between two looks at who else publishes [s]."""

QUIET, QUIET_DEADLINE = 0.3, 3.0
"""The last estimate has come when no newer one follows for so long; waited for at most [s]."""


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
    monitor = Monitor(node)
    simulation = simulate_arm(seed)
    live = LiveRecorder(node, monitor) if report is not None else None
    introduce(console, node, simulation, seed)
    with console.status('looking out for robots'):
        look_out(node, monitor, own_pipeline)
    with NodeProcess() if own_pipeline else contextlib.nullcontext() as pipeline:
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
        description='Identify the payload of a simulated arm live, over ROS topics,\n'
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
        '--paper',
        action='store_true',
        help='repeat the experiments of Atkeson, An and Hollerbach 1985 instead, tables 1 and 2',
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
    parser = _parser()
    arguments = parser.parse_args(remove_ros_args(argv))
    if arguments.paper and (arguments.no_pipeline or arguments.report is not None):
        parser.error(
            '--paper has a pipeline of its own, and no report: leave out the other option'
        )
    signal.signal(signal.SIGTERM, _terminate)
    rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    node = Node('load_demo', namespace=NAMESPACE, start_parameter_services=False)
    console = Console(highlight=False, markup=False)
    try:
        if arguments.paper:
            return HOLDS if repeat_paper(node, arguments.seed, console) else DOES_NOT_HOLD
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
