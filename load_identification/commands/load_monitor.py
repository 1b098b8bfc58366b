"""The command `load_monitor`: show the status of a running pipeline live in a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

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


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return program.run(_parser, _run, args, ros=True, ended=program.DONE)


def _run(options: argparse.Namespace) -> int:
    import rclpy
    from rclpy.node import Node
    from rich.console import Console

    from load_identification.commands.load_monitor_view import watch
    from load_identification.nodes.transport.runtime import initialize

    initialize(options.argv)
    try:
        node = Node(
            'load_monitor',
            namespace=options.namespace,
            start_parameter_services=False,
            enable_rosout=False,
        )
        watch(node, Console(highlight=False, markup=False))
        return program.DONE
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    raise SystemExit(main())
