"""The command `identify_load`: the pipeline on a recording, faster than real time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from load_identification.interface.program import (
    INTERRUPTED,
    add_topics,
    make_parser,
    run,
)

IDENTIFIED, NOT_IDENTIFIED, UNUSABLE = 0, 1, 2
"""Exit statuses."""

EPILOG = f"""\
exit status:
  {IDENTIFIED}    the mass is identified
  {NOT_IDENTIFIED}    it is not: the output says why
  {UNUSABLE}    nothing could be done: one line on standard error says why
  {INTERRUPTED}  interrupted
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        'identify_load',
        'Identify the payload on a wrist force/torque sensor from a recording.',
        EPILOG,
    )
    parser.add_argument(
        'recording',
        metavar='RECORDING',
        type=Path,
        help='rosbag2 folder or a single file of one, mcap or sqlite3',
    )
    parser.add_argument(
        '--params', metavar='FILE', type=Path, help='ROS 2 parameter file, as for the nodes'
    )
    parser.add_argument(
        '--output', metavar='FILE.yaml', type=Path, help='write the estimate to this file'
    )
    parser.add_argument(
        '--report', metavar='DIR', type=Path, help='write an HTML page with plots to this folder'
    )
    parser.add_argument(
        '--mechanism',
        metavar='GEOMETRY.yaml',
        type=Path,
        help='a parallel machine in place of an arm: joint states with efforts, no wrench',
    )
    add_topics(parser)
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""

    def work() -> int:
        arguments = _parser().parse_args(args)
        # Not above: what reads recordings takes long to import.
        from load_identification.commands.recorded_load import run as identify

        return IDENTIFIED if identify(arguments) else NOT_IDENTIFIED

    return run('identify_load', UNUSABLE, work)


if __name__ == '__main__':
    raise SystemExit(main())
