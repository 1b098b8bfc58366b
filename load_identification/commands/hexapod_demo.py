"""The command `hexapod_demo`: identify the load of a simulated hexapod live over ROS topics."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from load_identification.interface import program
from load_identification.interface.program import option

EPILOG = program.exit_statuses(
    'the estimate holds', 'it does not', 'the demonstration could not run'
)


def _parser() -> argparse.ArgumentParser:
    parser = program.make_parser(
        'hexapod_demo',
        'Identify the load of a simulated hexapod live, over ROS topics,\n'
        'and compare it with the truth.',
        EPILOG,
    )
    option(parser, 'mechanism', type=Path, metavar='GEOMETRY.yaml', nargs='?')(
        'geometry file (default: the example that is installed with this package)'
    )
    option(parser, '--duration', type=float, default=30.0)('of each motion, s')
    option(parser, '--seed', type=program.seed, default=1)("of the sensors' noise")
    option(parser, '--speed', type=float, default=1.0)('times faster than real time (default: 1)')
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return program.run(_parser, _run, args, ros=True, lines=True)


def _run(options: argparse.Namespace) -> int:
    from rich.console import Console

    from load_identification.commands.demo_pipeline import demo_node
    from load_identification.commands.hexapod_demonstration import demonstrate
    from load_identification.simulation.hexapod import GEOMETRY_FILE

    with demo_node('hexapod_demo', options.argv) as node:
        path, console = options.mechanism or GEOMETRY_FILE, Console(highlight=False)
        holds = demonstrate(node, path, options.duration, options.seed, options.speed, console)
        return program.DONE if holds else program.NOT_DONE


if __name__ == '__main__':
    raise SystemExit(main())
