"""The command `plan_excitation`: plan a motion that excites an arm's parameters."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from load_identification.constants import GRAVITY_VECTOR
from load_identification.errors import ParameterError
from load_identification.interface import program
from load_identification.interface.output import make_folder
from load_identification.interface.program import option

if TYPE_CHECKING:
    from load_identification.arm.planning.plan_file import Planned
    from load_identification.arm.planning.planner import Request

ABOUT_METHODS = """\
methods:
  fourier    all joints at once, a Fourier series from rest to rest
  spectrum   one or two joints at a time, at random postures of a grid
  postures   the same motions, the best choice of all postures of a grid

"""

NOTES = """
The motion keeps clear of the arm itself, of the floor and of what --keep-out
names. What else stands around, cables, a payload that the description lacks
and the way to the start are not checked: run it slowly first.
"""

EPILOG = (
    ABOUT_METHODS
    + program.exit_statuses(
        'the motion is planned',
        unusable='nothing could be planned: one line on standard error says why',
    )
    + NOTES
)

METHODS = ('fourier', 'spectrum', 'postures')
CRITERIA = ('determinant', 'condition')

PERIODS = 6
"""Default number of periods of an oscillation."""

FILES = {'yaml': 'trajectory.yaml', 'bag': 'trajectory', 'plan': 'experiments.yaml'}
"""Files written to the folder of --output."""


def _parser() -> argparse.ArgumentParser:
    parser = program.make_parser(
        'plan_excitation', "Plan a motion that shows an arm's inertial parameters.", EPILOG
    )
    option(parser, 'description', metavar='DESCRIPTION', type=Path)('URDF file')
    option(parser, '--method', choices=METHODS, default='fourier')('default: fourier')
    option(parser, '--criterion', choices=CRITERIA, default=CRITERIA[0])(
        'largest determinant of the information (default), or least condition number'
    )
    option(parser, '--tip', metavar='LINK')(
        'plan the joints from the root to this link; default: all'
    )
    option(parser, '--gravity', metavar=tuple('XYZ'), nargs=3, type=float, default=GRAVITY_VECTOR)(
        'in the root frame, m/s²'
    )
    option(parser, '--duration', metavar='S', type=float)(
        'of the motion; with postures at most. Default: 20 s for fourier, else as it takes'
    )
    option(parser, '--floor', metavar='Z', type=_floor, default=0.0)(
        'height in the root frame that the arm stays above, m; or none (default: 0)'
    )
    option(
        parser, '--keep-out', nargs=6, type=float, metavar=program.BOX, action='append', default=[]
    )('box in the root frame that no link may enter, m; may be given several times')
    option(parser, '--workspace', nargs=6, type=float, metavar=program.BOX)(
        'box in the root frame that the tool is to stay in, m'
    )
    option(parser, '--frame', metavar='LINK')(
        'the tool of --workspace; default: --tip, or the last link'
    )
    _add_limits(parser)
    _add_experiments(parser)
    _add_output(parser)
    return parser


def _floor(text: str) -> float | None:
    return None if text == 'none' else float(text)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('limits')
    for name, default, of_what in (
        ('position', 0.9, 'range of positions, about its middle'),
        ('velocity', 0.5, 'velocity limits'),
        ('acceleration', 1.0, 'acceleration limits'),
    ):
        option(group, f'--{name}-scale', metavar='SHARE', type=float, default=default)(
            f'part of the {of_what} to use (default: {default:g})'
        )
    option(group, '--acceleration', nargs='+', type=float, metavar='A')(
        'limits, one or one for each joint, rad/s² or m/s²; default: the velocity limit '
        'within 0.5 s'
    )


def _add_experiments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('spectrum and postures')
    option(group, '--levels', metavar='N', type=int, default=3)(
        'of each joint in the grid (default: 3)'
    )
    option(group, '--experiments', metavar='N', type=int)(
        'to choose (default: twice the parameters)'
    )
    option(group, '--periods', metavar='N', type=int, default=PERIODS)(
        f'of an oscillation (default: {PERIODS})'
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('output')
    option(group, '--output', metavar='DIR', type=Path)('write everything to this folder')
    option(group, '--yaml', metavar='FILE', type=Path)('write the JointTrajectory')
    option(group, '--bag', metavar='DIR', type=Path)(
        'write it as a rosbag2 recording, a new folder'
    )
    option(group, '--topic', default=program.TRAJECTORY)('of the recording (default: %(default)s)')
    option(group, '--approach', metavar='S', type=float, default=5.0)(
        'time for the controller to come to the start (default: 5 s)'
    )
    option(group, '--report', metavar='FILE.png', type=Path)('draw the motion')
    group.add_argument('--seed', type=program.seed, default=0)


def _request(options: argparse.Namespace) -> Request:
    from load_identification.arm.planning.planner import Request

    if options.frame is not None and options.workspace is None:
        raise ParameterError('--frame is the tool of --workspace: give that too, or leave it out')
    scales = options.position_scale, options.velocity_scale, options.acceleration_scale
    given = {**vars(options), 'scales': scales, 'frame': options.frame or options.tip}
    return Request(**{each.name: given[each.name] for each in fields(Request)})


def _outputs(options: argparse.Namespace, experiments: bool) -> dict[str, Path]:
    """Return the output paths; refuse unusable ones before planning."""
    outputs = {'yaml': options.yaml, 'bag': options.bag, 'report': options.report}
    if options.output is not None:
        make_folder('--output', options.output)
        names = ('yaml', 'bag', 'plan') if experiments else ('yaml', 'bag')
        for name in names:
            outputs[name] = outputs.get(name) or options.output / FILES[name]
    wanted = {name: path for name, path in outputs.items() if path is not None}
    if 'yaml' in wanted and experiments:
        wanted.setdefault('plan', wanted['yaml'].with_name(FILES['plan']))
    for name, path in wanted.items():
        if not path.parent.is_dir() or (name != 'bag' and path.is_dir()):
            raise ParameterError(f'{path} must be in a folder that exists; make {path.parent}')
        if name == 'bag' and path.exists():
            raise ParameterError(
                f'{path} exists; a recording is written to a new folder only: remove it, or name '
                'another'
            )
    return wanted


def _write(planned: Planned, outputs: dict[str, Path], options: argparse.Namespace) -> None:
    from load_identification.arm.planning.plan_file import write_plan

    if 'yaml' in outputs or 'bag' in outputs:
        from load_identification.recordings.joint_trajectory import (
            trajectory_fields,
            write_bag,
            write_yaml,
        )

        fields = trajectory_fields(planned.arm.joints, planned.path, options.approach)
        if 'yaml' in outputs:
            write_yaml(outputs['yaml'], fields)
        if 'bag' in outputs:
            write_bag(outputs['bag'], fields, options.topic)
    if 'plan' in outputs and planned.plan is not None:
        write_plan(outputs['plan'], planned.plan)
    if 'report' in outputs:
        from load_identification.report.excitation_figure import excitation_figure
        from load_identification.report.style import save

        try:
            save(excitation_figure(planned), outputs['report'])
        except (OSError, ValueError) as error:
            raise ParameterError(f'--report {outputs["report"]}: {error}') from error


def _run(options: argparse.Namespace) -> int:
    if not 0.0 < options.approach < math.inf:
        raise ParameterError(f'--approach is {options.approach} s; it must be > 0')
    from rich.console import Console

    from load_identification.arm.planning.planner import load_arm, plan_motion
    from load_identification.interface.files import read_description
    from load_identification.report.excitation_tables import experiment_table, joint_table, summary

    console = Console(highlight=False, markup=False)
    urdf = read_description(options.description)
    outputs = _outputs(options, options.method != 'fourier')
    arm = load_arm(urdf, options.tip, options.gravity)
    begin = time.monotonic()
    with Console(stderr=True).status('planning') as status:
        planned = plan_motion(
            arm, urdf, _request(options), lambda words: status.update(f'planning: {words}')
        )
    _write(planned, outputs, options)
    console.print(summary(planned))
    console.print(f'Planned in {time.monotonic() - begin:.0f} s.')
    if planned.plan is not None:
        console.print(experiment_table(planned.plan))
    console.print(joint_table(planned))
    for warning in planned.warnings:
        console.print(f'Warning: {warning}', style='bold yellow')
    for path in outputs.values():
        console.print(f'written: {path}', soft_wrap=True)
    return program.DONE


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return program.run(_parser, _run, args)


if __name__ == '__main__':
    raise SystemExit(main())
