"""The command `identify_arm`: an arm's own links, drives and offsets from recordings of it."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from load_identification.arm.arm_file import write_arm_model
from load_identification.errors import LoadIdentificationError, ParameterError
from load_identification.signals.motion_filter import CONVENTIONS
from load_identification.tools.arm_base_session import base_session
from load_identification.tools.arm_description import with_bodies
from load_identification.tools.arm_session import Request, Session
from load_identification.tools.arm_tables import (
    combination_table,
    error_table,
    link_table,
    other_table,
)
from load_identification.tools.arm_torque_session import torque_session
from load_identification.tools.recording import Topics

IDENTIFIED, NOT_IDENTIFIED, UNUSABLE = 0, 1, 2
"""Exit statuses."""

METHODS = ('ls', 'sequential', 'spectrum', 'acceleration_free')

EPILOG = """\
exit status:
  0  all that such measurements can tell is identified
  1  it is not: the output says what the motion does not tell, or that data
     that were not fitted are predicted no better than by the description,
     or that no links that could be built explain them as well as the
     estimate: is the sign of efforts or wrench reversed?
  2  nothing could be done: one line on standard error says why
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='identify_arm',
        description="Identify an arm's links, friction and offsets from recordings of it moving.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        'recordings',
        metavar='RECORDING',
        type=Path,
        nargs='+',
        help='rosbag2 folder or a single file of one, mcap or sqlite3',
    )
    parser.add_argument(
        '--description', metavar='URDF', type=Path, help='instead of that in the recording'
    )
    parser.add_argument(
        '--sensor',
        choices=('torque', 'base'),
        default='torque',
        help='efforts of the joint states (default), or a force/torque sensor under the arm',
    )
    parser.add_argument(
        '--method',
        choices=METHODS,
        help='default: ls for torque, acceleration_free for base; spectrum needs --plan',
    )
    parser.add_argument(
        '--nominal',
        metavar='URDF',
        type=Path,
        help='take the links of this one where the data leave them open',
    )
    parser.add_argument(
        '--held-out',
        metavar='RECORDING',
        type=Path,
        help='predict this one; without it the last third of the data, which then is not fitted',
    )
    parser.add_argument(
        '--plan', metavar='YAML', type=Path, help='experiments.yaml of plan_excitation'
    )
    group = parser.add_argument_group('written')
    group.add_argument('--output', metavar='URDF', type=Path, help='description as identified')
    group.add_argument(
        '--model', metavar='YAML', type=Path, help='arm model: links, drives, noise, covariance'
    )
    group.add_argument('--report', metavar='DIR', type=Path, help='figures')
    _add_details(parser)
    return parser


def _add_details(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('details')
    group.add_argument(
        '--joints',
        metavar='NAME',
        nargs='+',
        help='those that move; others are taken for locked at zero (default: all recorded)',
    )
    group.add_argument(
        '--gravity',
        metavar=('X', 'Y', 'Z'),
        nargs=3,
        type=float,
        default=(0.0, 0.0, -9.80665),
        help='in the root frame [m/s²] (default: 0 0 -9.80665)',
    )
    group.add_argument(
        '--cutoff', metavar='HZ', type=float, default=20.0, help='of the low-pass (default: 20)'
    )
    group.add_argument(
        '--rotor-inertia', action='store_true', help='efforts are of motors: identify rotors too'
    )
    group.add_argument(
        '--static',
        metavar='RECORDING',
        type=Path,
        nargs='+',
        help='of --sensor base: each motion again, replayed slowly, which takes off weight and '
        'offset',
    )
    group.add_argument(
        '--sensor-frame', metavar='LINK', default='', help='of --sensor base, if not the frame_id'
    )
    group.add_argument('--wrench-convention', choices=tuple(CONVENTIONS), default='on_sensor')
    for name in ('joint_states', 'wrench', 'robot_description'):
        default = getattr(Topics, name)
        group.add_argument(
            f'--{name.replace("_", "-")}',
            metavar='TOPIC',
            default=default,
            type=lambda topic: f'/{topic.lstrip("/")}',
            help=f'instead of {default}',
        )


def _request(arguments: argparse.Namespace) -> Request:
    """Return what is asked for, having refused what does not go together."""
    base = arguments.sensor == 'base'
    method = arguments.method or ('acceleration_free' if base else 'ls')
    if base and method not in ('ls', 'acceleration_free'):
        raise ParameterError(
            f'--method {method} is for joint efforts; --sensor base takes ls or acceleration_free'
        )
    if base and arguments.model is not None:
        raise ParameterError(
            '--model holds drives, which a sensor under the arm does not feel; use --output'
        )
    if arguments.static and (not base or arguments.held_out is not None):
        raise ParameterError(
            '--static is for --sensor base, and not with --held-out, of which there is no replay'
        )
    if arguments.static and len(arguments.static) != len(arguments.recordings):
        raise ParameterError(
            f'--static has {len(arguments.static)} for {len(arguments.recordings)} recordings; it '
            'takes one for each'
        )
    if (method == 'spectrum') != (arguments.plan is not None):
        raise ParameterError(
            '--method spectrum and --plan go together: the plan says when which experiment was; '
            'plan_excitation writes it as experiments.yaml'
        )
    if method == 'spectrum' and len(arguments.recordings) > 1:
        raise ParameterError('--method spectrum takes one recording, that of the whole plan')
    if not 0.0 < arguments.cutoff < np.inf:
        raise ParameterError(f'--cutoff is {arguments.cutoff} Hz; it must be above 0')
    return Request(
        recordings=tuple(arguments.recordings),
        static=tuple(arguments.static or ()),
        description=arguments.description,
        nominal=arguments.nominal,
        held_out=arguments.held_out,
        plan=arguments.plan,
        method=method,
        joints=tuple(arguments.joints or ()),
        gravity=tuple(arguments.gravity),
        cutoff=arguments.cutoff,
        rotor_inertia=arguments.rotor_inertia,
        sensor_frame=arguments.sensor_frame,
        wrench_convention=arguments.wrench_convention,
        topics=Topics(
            arguments.joint_states,
            arguments.wrench if base else '',
            arguments.robot_description,
        ),
    )


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be written before the work is done rather than after."""
    for option in ('output', 'model'):
        path = getattr(arguments, option)
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise ParameterError(f'--{option} {path} must be a file in a folder that exists')
    if arguments.report is not None:
        try:
            arguments.report.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                f'--report {arguments.report} cannot be made: {error.strerror}'
            ) from error


def print_session(console: Console, session: Session) -> None:
    """Print an identification for a person to read."""
    found, prediction = session.found, session.prediction
    console.print(f'Fitted     {session.fitted}')
    console.print(f'Method     {session.method}')
    console.print(f'Condition  {found.condition:.3g} (rows weighted, columns of length one)\n')
    console.print('Links, about the origin and in the axes of their frames', style='bold')
    console.print(link_table(found))
    if len(found.names) > found.arm.nominal.size:
        console.print('Friction and offsets' if session.arm_model else 'Offsets', style='bold')
        console.print(other_table(found))
    if found.combined:
        console.print('What is told only in combination, by its number', style='bold')
        console.print(combination_table(found))
    console.print(f'Prediction of data that were not fitted: {prediction.source}', style='bold')
    console.print(error_table(prediction))
    for warning in session.warnings:
        console.print(f'Warning: {warning}', style='bold yellow')


def _run(arguments: argparse.Namespace) -> int:
    """Do what the command line asks and return the exit status."""
    request = _request(arguments)
    _check_outputs(arguments)
    console = Console(highlight=False, markup=False)
    session = base_session(request) if request.topics.wrench else torque_session(request)
    print_session(console, session)
    written: list[Path] = []
    if arguments.output is not None:
        text = with_bodies(session.description, session.found.arm, session.found.bodies)
        try:
            arguments.output.write_text(text, encoding='utf-8')
        except OSError as error:
            raise ParameterError(
                f'--output {arguments.output} cannot be written: {error.strerror}'
            ) from error
        written.append(arguments.output)
    if arguments.model is not None and session.arm_model is not None:
        write_arm_model(arguments.model, session.arm_model)
        written.append(arguments.model)
    if arguments.report is not None:
        # Not above: Matplotlib takes half a second to import.
        from load_identification.tools.arm_figures import write_figures

        written += write_figures(arguments.report, session.found, session.prediction)
    for path in written:
        console.print(f'Written    {path}', soft_wrap=True)
    return IDENTIFIED if session.identified else NOT_IDENTIFIED


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that has no ± is no reason to fail.
        sys.stdout.reconfigure(errors='replace')
    arguments = _parser().parse_args(args)
    try:
        return _run(arguments)
    except LoadIdentificationError as error:
        print(f'identify_arm: error: {" ".join(str(error).split())}', file=sys.stderr)
        return UNUSABLE


if __name__ == '__main__':
    raise SystemExit(main())
