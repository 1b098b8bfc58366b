"""How every program of the package begins: its version, its output, its signals.

Imports nothing that takes long: help is there before NumPy and rclpy are.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any

from load_identification import __version__
from load_identification.errors import LoadIdentificationError

NAMESPACE = 'load_identification'
"""Of all nodes, unless it is remapped."""

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit statuses by the signal that has ended a program, as a shell gives them."""

TRAJECTORY = '/joint_trajectory_controller/joint_trajectory'
"""Where ros2_control's trajectory controller listens."""

BOX = ('X0', 'X1', 'Y0', 'Y1', 'Z0', 'Z1')
"""Names of the six numbers of a box, in the help of options."""


def make_parser(prog: str, description: str, epilog: str = '') -> argparse.ArgumentParser:
    """Return a parser that knows --help and --version.

    Parameters
    ----------
    prog : str
        Name of the program.
    description, epilog : str
        Their lines stay as they are.
    """
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--version', action='version', version=f'load_identification {__version__}'
    )
    return parser


def option(
    parser: argparse._ActionsContainer, name: str, **settings: Any
) -> Callable[[str], argparse.Action]:
    """Return what adds an option, or an argument, when it is called with the help on it."""
    return lambda words: parser.add_argument(name, help=words, **settings)


def add_topics(parser: argparse._ActionsContainer) -> None:
    """Add --joint-states, --wrench and --robot-description, of what reads recordings."""
    for name in ('joint_states', 'wrench', 'robot_description'):
        parser.add_argument(
            f'--{name.replace("_", "-")}',
            metavar='TOPIC',
            default=f'/{name}',
            type=lambda topic: f'/{topic.lstrip("/")}',
            help=f'instead of /{name}',
        )


def without_ros_arguments(words: Sequence[str]) -> list[str]:
    """Return the words of a command line that are not for ROS, as rclpy tells them apart."""
    kept, for_ros = [], False
    for word in words:
        if word == '--ros-args':
            for_ros = True
        elif for_ros and word == '--':
            for_ros = False
        elif not for_ros:
            kept.append(word)
    return kept


def begin(terminated: int = TERMINATED) -> None:
    """Let output be seen line by line, and signals end the program.

    SIGINT raises KeyboardInterrupt and SIGTERM SystemExit, so that what has been started is ended
    on the way out. SIGINT does so too where it was inherited as ignored, as by what a shell
    starts in the background: Python leaves it ignored there.

    Parameters
    ----------
    terminated : int
        Exit status after SIGTERM.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A locale that has no ± is no reason to fail.
            stream.reconfigure(errors='replace', line_buffering=True)
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not interrupts:
            sys.__excepthook__(kind, error, trace)
            return
        # What is written in C may make an ImportError of a KeyboardInterrupt in its import.
        print('interrupted', file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)

    signal.signal(signal.SIGINT, interrupt)
    sys.excepthook = hook

    def terminate(number: int, frame: FrameType | None) -> None:
        raise SystemExit(terminated)

    signal.signal(signal.SIGTERM, terminate)


def run(
    make: Callable[[], argparse.ArgumentParser],
    unusable: int,
    work: Callable[[argparse.Namespace], int],
    args: Sequence[str] | None,
    ros: bool = False,
    lines: bool = False,
) -> int:
    """Begin, do the work of a program and return its exit status; say in a line why it ends.

    Parameters
    ----------
    make : callable
        Makes the parser of the command line.
    unusable : int
        Exit status where the work raises a LoadIdentificationError.
    work : callable
        Returns the exit status for the arguments, with all words of the command line as `argv`.
    args : sequence of str or None
        The command line; None: that of the process.
    ros : bool
        Whether some of the words may be for ROS.
    lines : bool
        Whether errors are of several lines, such as what another process wrote.
    """
    argv = sys.argv[1:] if args is None else list(args)
    begin()
    parser = make()
    parser.set_defaults(argv=argv)
    try:
        return work(parser.parse_args(without_ros_arguments(argv) if ros else argv))
    except LoadIdentificationError as error:
        text = str(error) if lines else ' '.join(str(error).split())
        print(f'{parser.prog}: error: {text}', file=sys.stderr)
        return unusable
    except KeyboardInterrupt:
        print(f'{parser.prog}: interrupted', file=sys.stderr)
        return INTERRUPTED
