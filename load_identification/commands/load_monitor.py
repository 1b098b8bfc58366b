"""The command `load_monitor`: show the status of a running pipeline live in a terminal."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence

from load_identification.errors import LoadIdentificationError
from load_identification.interface import program
from load_identification.interface.program import option


def _parser() -> argparse.ArgumentParser:
    parser = program.make_parser(
        'load_monitor',
        'Show the live status of load_identification in a terminal.',
        'Ctrl-C ends it, with exit status 0.',
    )
    option(parser, '--namespace', metavar='NS', type=_namespace, default=program.NAMESPACE)(
        'of the nodes, for one of two arms say left/%(default)s (default: %(default)s)'
    )
    return parser


def _namespace(text: str) -> str:
    """Read a namespace; argparse converts the error to its message."""
    from rclpy.exceptions import InvalidNamespaceException
    from rclpy.validate_namespace import validate_namespace

    name = '/' + text.strip('/')
    try:
        validate_namespace(name)
    except InvalidNamespaceException as error:
        raise argparse.ArgumentTypeError(str(error).splitlines()[0]) from error
    return name


def main(args: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    with contextlib.suppress(KeyboardInterrupt):
        program.begin(terminated=0)
        argv = sys.argv[1:] if args is None else args
        parser = _parser()
        try:
            _run(argv, parser.parse_args(program.without_ros_arguments(argv)).namespace)
        except LoadIdentificationError as error:
            parser.error(str(error))
        except ModuleNotFoundError as error:
            program.say_without_ros(parser.prog, error)
            return 2
    return 0


def _run(argv: Sequence[str], namespace: str) -> None:
    import rclpy
    from rclpy.node import Node
    from rich.console import Console

    from load_identification.commands.load_monitor_view import watch
    from load_identification.nodes.transport.runtime import initialize

    initialize(list(argv))
    try:
        node = Node(
            'load_monitor',
            namespace=namespace,
            start_parameter_services=False,
            enable_rosout=False,
        )
        watch(node, Console(highlight=False, markup=False))
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    raise SystemExit(main())
