"""The command `identify_load`: run the pipeline on a recording, faster than real time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from load_identification.interface import program
from load_identification.interface.program import option

POSES = """\
POSES.csv: the first line names the columns, each further one is a pose:
  fx,fy,fz,tx,ty,tz    average of the raw wrench [N, N·m]; a sensor without torques has no t
  fx.std, ... tz.std   its standard error, if known
  qx,qy,qz,qw          rotation from the sensor's axes to those of the base,
  or NAME,NAME,...     positions of the joints between root and sensor [rad or m]
  Ten poses or more, the sensor turned every way. Lines that begin with # do not count.

"""

EPILOG = POSES + program.exit_statuses('the mass is identified', 'it is not: the output says why')


def _parser() -> argparse.ArgumentParser:
    parser = program.make_parser(
        'identify_load',
        'Identify the payload of an arm from a recording: of a wrist sensor, or of joint efforts.',
        EPILOG,
    )
    option(parser, 'recording', metavar='RECORDING', type=Path, nargs='?')(
        'rosbag2 folder or a single file of one, mcap or sqlite3'
    )
    option(parser, '--static', metavar='POSES.csv', type=Path)(
        'in place of a recording: single averages at rest, a line a pose (see below)'
    )
    option(parser, '--params', metavar='FILE', type=Path)('ROS 2 parameter file, as for the nodes')
    option(parser, '--output', metavar='FILE.yaml', type=Path)('write the estimate to this file')
    option(parser, '--report', metavar='DIR', type=Path)(
        'write an HTML page with plots to this folder'
    )
    option(parser, '--mechanism', metavar='GEOMETRY.yaml', type=Path)(
        'a parallel machine in place of an arm: joint states with efforts, no wrench'
    )
    option(parser, '--arm-model', metavar='ARM.yaml', type=Path)(
        'an arm that weighs with its joints, as identify_arm has written it: joint states '
        'with efforts, no wrench'
    )
    option(parser, '--gravity', metavar=('X', 'Y', 'Z'), nargs=3, type=float)(
        'in the root frame [m/s²], instead of the parameter gravity'
    )
    option(parser, '--description', metavar='URDF', type=Path)(
        'of the arm, in place of the parameter or topic robot_description'
    )
    option(parser, '--sensor-frame', metavar='LINK')(
        'of the description, as the parameter sensor_frame'
    )
    group = parser.add_argument_group('with --static')
    option(group, '--wrench-frame', choices=('sensor', 'base'), default='sensor')(
        "axes of the wrench (default: sensor); about the sensor's origin in any case"
    )
    program.add_topics(parser.add_argument_group('topics of the recording'))
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return program.run(_parser, _run, args)


def _run(arguments: argparse.Namespace) -> int:
    # Imported here because reading recordings takes long to import.
    from load_identification.commands.recorded_load import run as identify

    return program.DONE if identify(arguments) else program.NOT_DONE


if __name__ == '__main__':
    raise SystemExit(main())
