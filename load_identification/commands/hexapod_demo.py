"""The command `hexapod_demo`: a simulated hexapod, its load identified live over ROS topics."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from load_identification.interface.program import (
    INTERRUPTED,
    make_parser,
    run,
    without_ros_arguments,
)

HOLDS, DOES_NOT_HOLD, CANNOT_RUN = 0, 1, 2
"""Exit statuses."""

EPILOG = f"""\
exit status:
  {HOLDS}    the estimate holds
  {DOES_NOT_HOLD}    it does not
  {CANNOT_RUN}    the demonstration could not run
  {INTERRUPTED}  interrupted
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        'hexapod_demo',
        'Identify the load of a simulated hexapod live, over ROS topics,\n'
        'and compare it with the truth.',
        EPILOG,
    )
    parser.add_argument(
        'mechanism',
        type=Path,
        metavar='GEOMETRY.yaml',
        nargs='?',
        help='geometry file (default: the example that is installed with this package)',
    )
    parser.add_argument('--duration', type=float, default=30.0, help='of each motion, s')
    parser.add_argument('--seed', type=int, default=1, help="of the sensors' noise")
    parser.add_argument(
        '--speed', type=float, default=1.0, help='times faster than real time (default: 1)'
    )
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    argv = sys.argv[1:] if args is None else list(args)
    return run(
        'hexapod_demo',
        CANNOT_RUN,
        lambda: _run(argv, _parser().parse_args(without_ros_arguments(argv))),
        lines=True,
    )


def _run(argv: Sequence[str], options: argparse.Namespace) -> int:
    from rich.console import Console

    from load_identification.commands.demo_pipeline import demo_node
    from load_identification.commands.hexapod_demonstration import demonstrate
    from load_identification.simulation.hexapod import GEOMETRY_FILE

    with demo_node('hexapod_demo', argv) as node:
        holds = demonstrate(
            node,
            options.mechanism or GEOMETRY_FILE,
            options.duration,
            options.seed,
            options.speed,
            Console(highlight=False),
        )
        return HOLDS if holds else DOES_NOT_HOLD


if __name__ == '__main__':
    raise SystemExit(main())
