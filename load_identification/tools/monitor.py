"""The command `load_monitor`: the status of a running pipeline, live in a terminal."""

from __future__ import annotations

import argparse
import contextlib
import io
import signal
import sys
import time
from types import FrameType

import rclpy
from rclpy.exceptions import InvalidNamespaceException
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from rclpy.validate_namespace import validate_namespace
from rich.console import Console
from rich.live import Live

from load_identification.nodes.runtime import NAMESPACE
from load_identification.tools.monitor_state import StatusListener
from load_identification.tools.monitor_view import one_line, picture

LISTENING = 0.05
"""Between two looks at what has come: rates are told from when it came [s]."""

REFRESH = 0.25
"""Time between two pictures on a terminal [s]."""

LINES = 1.0
"""Time between two lines where there is no terminal [s]."""

DISCOVERY = 1.0
"""Time given to publishers to be seen before it is said that there are none [s]."""


def watch(node: Node, console: Console) -> None:
    """Show the status until interrupted."""
    listener = StatusListener(node)
    namespace, domain = node.get_namespace(), node.context.get_domain_id()
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        live = None
        if console.is_terminal:
            # The screen as it was comes back at the end.
            live = stack.enter_context(Live(console=console, auto_refresh=False, screen=True))
        due = begin
        while True:
            time.sleep(LISTENING)
            listener.update()
            now = time.monotonic()
            publishers = listener.publishers
            if now < due or (not publishers and now - begin < DISCOVERY):
                continue
            due = now + (REFRESH if live is not None else LINES)
            if live is not None:
                others = listener.others if not publishers else ()
                shown = picture(listener.state, namespace, domain, publishers, others, now)
                live.update(shown, refresh=True)
            else:
                console.print(one_line(listener.state, publishers), soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='load_monitor',
        description='Show the live status of load_identification in a terminal.',
        epilog='Ctrl-C ends it, with exit status 0.',
    )
    parser.add_argument(
        '--namespace',
        metavar='NS',
        type=_namespace,
        default=NAMESPACE,
        help='of the nodes, for one of two arms say left/%(default)s (default: %(default)s)',
    )
    return parser


def _namespace(text: str) -> str:
    """Read a namespace; argparse turns the error into its message."""
    name = '/' + text.strip('/')
    try:
        validate_namespace(name)
    except InvalidNamespaceException as error:
        raise argparse.ArgumentTypeError(str(error).splitlines()[0]) from error
    return name


def _terminate(number: int, frame: FrameType | None) -> None:
    """End as on Ctrl-C, so that the screen comes back."""
    raise KeyboardInterrupt


def main(args: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that has no ± is no reason to fail; a line is to be seen when it is written.
        sys.stdout.reconfigure(errors='replace', line_buffering=True)
    argv = sys.argv[1:] if args is None else args
    arguments = _parser().parse_args(remove_ros_args(argv))
    signal.signal(signal.SIGTERM, _terminate)
    with contextlib.suppress(KeyboardInterrupt):
        rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
        node = Node(
            'load_monitor',
            namespace=arguments.namespace,
            start_parameter_services=False,
            enable_rosout=False,
        )
        watch(node, Console(highlight=False, markup=False))
    rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
