"""The command `identify_arm`: identify an arm's links, drives and offsets from recordings."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from load_identification.constants import GRAVITY_VECTOR
from load_identification.interface import program
from load_identification.interface.program import option

METHODS = ('least_squares', 'sequential', 'spectrum', 'acceleration_free')

ALIASES = {'ls': 'least_squares'}
"""Short names of methods."""

EPILOG = program.exit_statuses(
    'all that such measurements can tell is identified',
    """it is not: the output says what the motion does not tell, which data
       that were not fitted are predicted no better than by the description,
       or what contradicts it: gravity, the sign, unit or delay of the efforts""",
)


def _parser() -> argparse.ArgumentParser:
    parser = program.make_parser(
        'identify_arm',
        "Identify an arm's links, friction and offsets from recordings of it moving.",
        EPILOG,
    )
    option(parser, 'recordings', metavar='RECORDING', type=Path, nargs='+')(
        'rosbag2 folder or a single file of one, mcap or sqlite3'
    )
    option(parser, '--description', metavar='URDF', type=Path)('instead of that in the recording')
    option(parser, '--sensor', choices=('torque', 'base'), default='torque')(
        'efforts of the joint states (default), or a force/torque sensor under the arm'
    )
    option(parser, '--method', choices=METHODS, type=lambda name: ALIASES.get(name, name))(
        'default: least_squares (or ls) for torque, acceleration_free for base; spectrum '
        'needs --plan'
    )
    option(parser, '--nominal', metavar='URDF', type=Path)(
        'take the links of this one where the data leave them open'
    )
    option(parser, '--held-out', metavar='RECORDING', type=Path)(
        'predict this one; without it the last third of the data, which then is not fitted'
    )
    option(parser, '--plan', metavar='YAML', type=Path)('experiments.yaml of plan_excitation')
    option(parser, '--loaded', metavar='RECORDING', type=Path)(
        'the arm again with a load on its last link, for efforts in units of the drives, '
        'such as amperes: identifies the gain of each'
    )
    option(parser, '--load-mass', metavar='KG', type=float)(
        'of that load; nothing else need be known'
    )
    group = parser.add_argument_group('written')
    option(group, '--output', metavar='URDF', type=Path)('description as identified')
    option(group, '--model', metavar='YAML', type=Path)(
        'arm model: links, drives, noise, covariance'
    )
    option(group, '--report', metavar='DIR', type=Path)('figures')
    _add_details(parser)
    return parser


def _add_details(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('details')
    option(group, '--joints', metavar='NAME', nargs='+')(
        'joints that move; the others are assumed locked at zero (default: all recorded)'
    )
    option(group, '--gravity', metavar=tuple('XYZ'), nargs=3, type=float, default=GRAVITY_VECTOR)(
        'in the root frame [m/s²] (default: 0 0 -9.80665)'
    )
    option(group, '--cutoff', metavar='HZ', type=float)(
        'of the low-pass (default: that of 5 to 20 which predicts pieces left out best)'
    )
    option(group, '--parameters', action='store_true')(
        'print links, friction and combinations too'
    )
    option(group, '--effort-scale', metavar='FACTOR', type=float, nargs='+')(
        'torque of a published effort of one, such as N·m per ampere: one number, or one for '
        'each joint in the order of the description'
    )
    option(group, '--ridge', metavar='SHARE', type=float, default=0.0)(
        'draw what the data show poorly to the description: the singular value, columns of '
        'length one, at which both weigh the same (default: 0)'
    )
    option(group, '--rotor-inertia', action='store_true')(
        'efforts are of motors: identify rotors too'
    )
    option(group, '--transmission', metavar='YAML', type=Path)(
        'motors that move several joints together, as of a differential wrist: joints, matrix, '
        'and whether efforts are of motors or of joints'
    )
    option(group, '--static', metavar='RECORDING', type=Path, nargs='+')(
        'of --sensor base: each motion again, replayed slowly, which takes off weight and offset'
    )
    option(group, '--sensor-frame', metavar='LINK', default='')(
        'of --sensor base, if not the frame_id'
    )
    group.add_argument(
        '--wrench-convention', choices=('on_sensor', 'on_load'), default='on_sensor'
    )
    program.add_topics(group)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return program.run(_parser, _run, args)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.method is None:
        base = arguments.sensor == 'base'
        arguments.method = 'acceleration_free' if base else 'least_squares'
    # Imported here so that help appears before NumPy is loaded.
    from load_identification.commands.recorded_arm import run as identify

    return program.DONE if identify(arguments) else program.NOT_DONE


if __name__ == '__main__':
    raise SystemExit(main())
