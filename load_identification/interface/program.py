"""Common start of the package's programs: version, output and signals.

Imports nothing slow, so that help appears before NumPy and rclpy are loaded.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import FrameType, TracebackType
from typing import Any

from load_identification import __version__
from load_identification.errors import LoadIdentificationError

NAMESPACE = 'load_identification'
"""Namespace of all nodes, unless remapped."""

DONE, NOT_DONE, UNUSABLE, STOPPED = 0, 1, 2, 3
"""Exit statuses of all commands; the last one is of a command that moves an arm."""

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
"""Exit statuses of a program ended by these signals, as in a shell."""

TRAJECTORY = '/joint_trajectory_controller/joint_trajectory'
"""Topic of ros2_control's trajectory controller."""

BOX = ('X0', 'X1', 'Y0', 'Y1', 'Z0', 'Z1')
"""Names of the six numbers of a box, for the help of options."""


def make_parser(prog: str, description: str, epilog: str = '') -> argparse.ArgumentParser:
    """Return a parser with --help and --version.

    Parameters
    ----------
    prog : str
        Name of the program.
    description, epilog : str
        Their line breaks are kept.
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


def exit_statuses(
    done: str,
    not_done: str = '',
    unusable: str = 'nothing could be done: one line on standard error says why',
    stopped: str = '',
) -> str:
    """Return what a command's help says of its exit statuses; those without words are left out."""
    meanings = {
        DONE: done,
        NOT_DONE: not_done,
        UNUSABLE: unusable,
        STOPPED: stopped,
        INTERRUPTED: 'interrupted',
    }
    lines = (f'  {status:<3}  {words}\n' for status, words in meanings.items() if words)
    return 'exit status:\n' + ''.join(lines)


def option(
    parser: argparse._ActionsContainer, name: str, **settings: Any
) -> Callable[[str], argparse.Action]:
    """Return a function that adds an option or argument when called with its help text."""
    return lambda words: parser.add_argument(name, help=words, **settings)


def seed(text: str) -> int:
    """Read the seed of an option; argparse prints the ArgumentTypeError."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number >= 0')
    return int(text)


def add_topics(parser: argparse._ActionsContainer) -> None:
    """Add --joint-states, --wrench and --robot-description for programs that read recordings."""
    for name in ('joint_states', 'wrench', 'robot_description'):
        parser.add_argument(
            f'--{name.replace("_", "-")}',
            metavar='TOPIC',
            default=f'/{name}',
            type=lambda topic: f'/{topic.lstrip("/")}',
            help=f'instead of /{name}',
        )


def without_ros_arguments(words: Sequence[str]) -> list[str]:
    """Return the words of a command line that are not for ROS, by the rules of rclpy."""
    kept, for_ros = [], False
    for word in words:
        if word == '--ros-args':
            for_ros = True
        elif for_ros and word == '--':
            for_ros = False
        elif not for_ros:
            kept.append(word)
    return kept


def say_without_ros(prog: str, error: ModuleNotFoundError) -> None:
    """Print that ROS is missing; raise the error of any other missing module."""
    if (error.name or '').partition('.')[0] != 'rclpy':
        raise error
    # A part of rclpy is missing where ROS was built for another Python.
    version = '.'.join(map(str, sys.version_info[:2]))
    what = (
        "source ROS 2, or pip install '.[ros]' in a checkout of this package"
        if find_spec('rclpy') is None
        else f'{error.name} is missing: is this Python {version} the one of your ROS 2?'
    )
    print(f'{prog}: error: rclpy cannot be imported: {what}', file=sys.stderr)


def begin(interrupted: int, terminated: int) -> None:
    """Flush output line by line, and let signals end the program.

    SIGINT raises KeyboardInterrupt and SIGTERM raises SystemExit, so that everything started is
    ended on the way out. SIGINT does so even if inherited as ignored, as in a process that a shell
    starts in the background; Python would leave it ignored.

    Parameters
    ----------
    interrupted, terminated : int
        Exit statuses after SIGINT and SIGTERM.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A locale without ± must not cause a failure.
            stream.reconfigure(errors='replace', line_buffering=True)
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if not interrupts:
            sys.__excepthook__(kind, error, trace)
            return
        # C code may turn a KeyboardInterrupt during its import into an ImportError.
        print('interrupted', file=sys.stderr, flush=True)
        os._exit(interrupted)

    signal.signal(signal.SIGINT, interrupt)
    sys.excepthook = hook
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(terminated))


def run(
    make: Callable[[], argparse.ArgumentParser],
    work: Callable[[argparse.Namespace], int],
    args: Sequence[str] | None,
    ros: bool = False,
    lines: bool = False,
    ended: int | None = None,
) -> int:
    """Begin, do a program's work and return its exit status; print an error as one line.

    A LoadIdentificationError leads to the status UNUSABLE.

    Parameters
    ----------
    make : callable
        Makes the command-line parser.
    work : callable
        Returns the exit status for the arguments; their `argv` has all words of the command line.
    args : sequence of str or None
        The command line; None: that of this process.
    ros : bool
        Whether the command line may contain words for ROS.
    lines : bool
        Whether errors may have several lines, such as output of another process.
    ended : int, optional
        Exit status after SIGINT and SIGTERM of a program that has no other end; by default those
        of a shell.
    """
    argv = sys.argv[1:] if args is None else list(args)
    interrupted, terminated = (INTERRUPTED, TERMINATED) if ended is None else (ended, ended)
    begin(interrupted, terminated)
    parser = make()
    parser.set_defaults(argv=argv)
    try:
        return work(parser.parse_args(without_ros_arguments(argv) if ros else argv))
    except LoadIdentificationError as error:
        text = str(error) if lines else ' '.join(str(error).split())
        print(f'{parser.prog}: error: {text}', file=sys.stderr)
        return UNUSABLE
    except ModuleNotFoundError as error:
        say_without_ros(parser.prog, error)
        return UNUSABLE
    except (MemoryError, OverflowError) as error:
        print(f'{parser.prog}: error: too much for this machine: {error}', file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        if ended is None:
            print(f'{parser.prog}: interrupted', file=sys.stderr)
        return interrupted
