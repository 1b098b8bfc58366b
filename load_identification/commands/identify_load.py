"""The command `identify_load`: the pipeline on a recording, faster than real time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from load_identification.interface.program import INTERRUPTED, add_topics, make_parser, run

IDENTIFIED, NOT_IDENTIFIED, UNUSABLE = 0, 1, 2
"""Exit statuses."""

EPILOG = f"""\
POSES.csv: the first line names the columns, each further one is a pose:
  fx,fy,fz,tx,ty,tz    average of the raw wrench [N, N·m]; a sensor without torques has no t
  fx.std, ... tz.std   its standard error, if known
  qx,qy,qz,qw          rotation from the sensor's axes to those of the base,
  or NAME,NAME,...     positions of the joints between root and sensor [rad or m]
  Ten poses or more, the sensor turned every way. Lines that begin with # do not count.

exit status:
  {IDENTIFIED}    the mass is identified
  {NOT_IDENTIFIED}    it is not: the output says why
  {UNUSABLE}    nothing could be done: one line on standard error says why
  {INTERRUPTED}  interrupted
"""


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        'identify_load',
        'Identify the payload of an arm from a recording: of a wrist sensor, or of joint efforts.',
        EPILOG,
    )
    parser.add_argument(
        'recording',
        metavar='RECORDING',
        type=Path,
        nargs='?',
        help='rosbag2 folder or a single file of one, mcap or sqlite3',
    )
    parser.add_argument(
        '--static',
        metavar='POSES.csv',
        type=Path,
        help='in place of a recording: single averages at rest, a line a pose (see below)',
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
    parser.add_argument(
        '--arm-model',
        metavar='ARM.yaml',
        type=Path,
        help='an arm that weighs with its joints, as identify_arm has written it: joint states '
        'with efforts, no wrench',
    )
    parser.add_argument(
        '--gravity',
        metavar=('X', 'Y', 'Z'),
        nargs=3,
        type=float,
        help='in the root frame [m/s²], instead of the parameter gravity',
    )
    parser.add_argument(
        '--description',
        metavar='URDF',
        type=Path,
        help='of the arm, in place of the parameter or topic robot_description',
    )
    parser.add_argument(
        '--sensor-frame', metavar='LINK', help='of the description, as the parameter sensor_frame'
    )
    group = parser.add_argument_group('with --static')
    group.add_argument(
        '--wrench-frame',
        choices=('sensor', 'base'),
        default='sensor',
        help="axes of the wrench (default: sensor); about the sensor's origin in any case",
    )
    add_topics(parser.add_argument_group('topics of the recording'))
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return run(_parser, UNUSABLE, _run, args)


def _run(arguments: argparse.Namespace) -> int:
    # Not above: what reads recordings takes long to import.
    from load_identification.commands.recorded_load import run as identify

    return IDENTIFIED if identify(arguments) else NOT_IDENTIFIED


if __name__ == '__main__':
    raise SystemExit(main())
