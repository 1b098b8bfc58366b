"""Run `identify_load` with parsed arguments: identify, print, write."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from load_identification.errors import FrameError, ParameterError
from load_identification.estimation.belief.error_budget import budget_words
from load_identification.estimation.payload_estimate import (
    UNKNOWN_STD,
    CalibrationValue,
    PayloadEstimate,
    Withheld,
)
from load_identification.interface.files import read_description
from load_identification.interface.messages import NS
from load_identification.interface.names import INTERVAL, STAGES, in_words
from load_identification.interface.node_table import BEHIND_JOINTS, NODES, nobodys
from load_identification.interface.output import check_output, write_output
from load_identification.interface.parameter_file import from_yaml, read_sections
from load_identification.interface.parameters import CONVENTIONS, Parameters, check
from load_identification.recordings.identification import identify
from load_identification.recordings.reader import Topics, open_recording
from load_identification.recordings.result import Identification
from load_identification.recordings.static_identification import identify_poses
from load_identification.report.page import check_folder
from load_identification.report.recorder import Recorder
from load_identification.report.snapshot import Outcome
from load_identification.report.tables import (
    OFFSETS,
    PARAMETERS,
    by_time,
    group_in_words,
    interval_table,
    offset_title,
)

UNITS = {
    'delay': (1e3, 'ms'),
    'compliance': (1.0, 's²'),
    'origin': (1e3, 'mm'),
    'gain': (100.0, '%'),
    'sway': (1.0, ''),
    'joint_friction': (1.0, 'N·m'),
}
"""Factors and units in which the cell's errors are printed; others are of channels, or angles."""

OF_CHANNELS = {'f': 'N', 't': 'N·m', 'ff': '', 'tt': '', 'ft': 'N/(N·m)', 'tf': 'N·m/N'}
"""Units of play in a channel of force or torque, and of cross-talk in one by another."""


SET_GRAVITY = re.compile(r'set gravity to \[(\S+), (\S+), (\S+)\]')
"""What the estimator advises; here there is an option for it."""


def print_report(console: Console, result: Identification, samples: str = '') -> None:
    """Print an identification; `samples` says which data were used."""
    estimate, parameters = result.estimate, result.parameters
    if estimate.reversed_sign:
        now = parameters.wrench_convention
        other = next(name for name in CONVENTIONS if name != now)
        console.print('WRENCH SIGN REVERSED?', style='bold reverse red')
        console.print(f'wrench_convention is {now}; {other} would make the mass positive\n')
    console.print(f'Payload in {estimate.frame}, inertia about the centre of mass', style='bold')
    console.print(
        interval_table(
            PARAMETERS, estimate.values, estimate.std, estimate.identified, 'not identified'
        )
    )
    value, half = estimate.values[0], INTERVAL * estimate.std[0]
    known = estimate.std[0] < UNKNOWN_STD
    if abs(value) > half and not estimate.identified[0]:
        console.print(f'Mass so far {value:.3g} ± {half:.2g} kg', style='bold yellow')
    _print_list(console, 'Not identified', estimate.reasons)
    _print_list(console, 'Note', (*estimate.warnings, *result.remarks))
    wrong = estimate.withheld is Withheld.SET_UP_WRONG
    effects = ' (they may only follow from the wrong set-up)' if wrong else ''
    happened = by_time(((e.stamp, e.words) for e in result.events), result.start)
    earlier = result.events[0].number - 1 if result.events else 0
    of_all = f' (without the {earlier} before)' if earlier else ''
    _print_list(
        console,
        f'Events{of_all}{effects}, when noticed: seconds after the first sample, '
        f'{result.start / NS:.3f}',
        [f'{seconds:.2f} s  {words}' for seconds, words in happened],
    )
    _print_list(
        console,
        'Loads before, as last identified: seconds after the first sample',
        [
            f'until {(load.until - result.start) / NS:.2f} s  {_mass_and_centre(load.estimate)}'
            for load in result.earlier
        ],
    )
    console.print(offset_title(result.by_efforts), style='bold')
    console.print(
        interval_table(OFFSETS, result.offset, result.offset_std, result.offset_known, 'not known')
    )
    if result.absent_channels:
        console.print(f'No signal  {", ".join(result.absent_channels)}', style='bold yellow')
    force, torque = estimate.residual_rms
    whole = 'of all poses' if samples else 'of all samples, slow and fast'
    both = f'{force:.3g} N, {torque:.3g} N·m' if np.isfinite(torque) else f'{force:.3g} N'
    if np.isfinite(force):
        console.print(f'Residual   {both} rms {whole}')
    if known and (parts := budget_words(estimate.causes[:, 0])):
        console.print(f'Mass ±     {parts} kg')
    if (mass := parameters.driver_payload_mass) and not (result.by_efforts or samples):
        console.print(f'Driver     weight of {mass:g} kg added back, see driver_payload_mass')
    if shown := [error_words(*item) for item in estimate.calibration.items()]:
        console.print(f'Cell       {", ".join(shown)}')
    rate = f'{parameters.output_rate:g} per second at most'
    console.print(f'Samples    {samples or f"{result.used} used, filtered, {rate}"}')
    if not samples:
        console.print(f'Dropped    {in_words(result.dropped) or "none"}')


def _mass_and_centre(estimate: PayloadEstimate) -> str:
    """Return mass and centre of mass as text, as far as they are identified."""
    values, std = estimate.values.tolist(), estimate.std.tolist()
    return ', '.join(
        f'{stage} {group_in_words(group, values[at], std[at], ", ")}'
        for group, (stage, at) in zip(PARAMETERS, STAGES.items(), strict=True)
        if stage != 'inertia' and estimate.identified[at].all()
    )


def error_words(name: str, found: CalibrationValue) -> str:
    """Return an error of the cell with its interval as text."""
    kind, *channels = name.split('.')
    scale, unit = UNITS.get(kind, (np.rad2deg(1.0), '°'))
    if kind in ('play', 'cross_talk'):
        scale, unit = 1.0, OF_CHANNELS[''.join(channel[0] for channel in channels)]
    return f'{name} {scale * found.value:.2g} ± {INTERVAL * scale * found.std:.2g} {unit}'.rstrip()


def _print_list(console: Console, title: str, items: Sequence[str]) -> None:
    """Print sentences as a list; print nothing if there are none."""
    if not items:
        return
    console.print(title, style='bold yellow')
    bullets = Table.grid(padding=(0, 1))
    for item in items:
        bullets.add_row('-', SET_GRAVITY.sub(r'\g<0> (--gravity \1 \2 \3)', item))
    console.print(bullets)
    console.print()


def _check(arguments: argparse.Namespace) -> None:
    """Refuse incompatible options, before any output is made."""
    if (arguments.recording is None) == (arguments.static is None):
        raise ParameterError('needs a RECORDING, or --static POSES.csv; not both')
    kinds = arguments.static, arguments.mechanism, arguments.arm_model
    if sum(kind is not None for kind in kinds) > 1:
        raise ParameterError('--static, --mechanism and --arm-model go one at a time')
    if arguments.static is not None and arguments.report:
        raise ParameterError('--report is for recordings: leave out --static')
    if arguments.static is None and arguments.wrench_frame != 'sensor':
        raise ParameterError(
            f'--wrench-frame {arguments.wrench_frame} is for --static: in a recording, the wrench '
            'has the axes of its frame_id, or of --sensor-frame'
        )
    if arguments.mechanism is not None and arguments.report:
        raise ParameterError('--report is for arms: leave it out, or --mechanism')
    if arguments.arm_model is not None and arguments.gravity is not None:
        raise ParameterError('gravity is in the arm model: leave out --gravity')


def _parameters(arguments: argparse.Namespace) -> Parameters:
    """Return the parameters of the file, overridden by the command line.

    Warns of parameters in the file that no running node would read there.
    """
    defaults = BEHIND_JOINTS if arguments.arm_model is not None else {}
    path, changes = arguments.params, {}
    parameters = Parameters(**defaults) if path is None else from_yaml(path, defaults)
    sections = [] if path is None else read_sections(path)
    for section, names in nobodys([(name, list(values)) for name, values in sections]):
        print(
            f'identify_load: warning: {path}: no node is called {section!r}: {", ".join(names)} '
            f'there are used here, but reach no node; nodes are {", ".join(NODES)}, or /**',
            file=sys.stderr,
        )
    if arguments.gravity is not None:
        changes['gravity'] = check('gravity', arguments.gravity)
    if arguments.description is not None:
        changes['robot_description'] = read_description(arguments.description)
    if arguments.sensor_frame is not None:
        changes['sensor_frame'] = arguments.sensor_frame
    return replace(parameters, **changes)


def _read(
    console: Console,
    arguments: argparse.Namespace,
    parameters: Parameters,
    observer: Recorder | None,
) -> tuple[Identification, Outcome]:
    """Identify from a recording and print the result; return it, and what the report needs."""
    topics = Topics(arguments.joint_states, arguments.wrench, arguments.robot_description)
    if arguments.mechanism is not None or arguments.arm_model is not None:
        topics = replace(topics, wrench='')
    begin, shown = time.monotonic(), Console(stderr=True)
    progress = Progress(console=shown, transient=True, disable=not shown.is_terminal)
    with open_recording(arguments.recording, topics) as recording, progress as bar:
        task = bar.add_task(
            f'reading {arguments.recording.name}',
            total=recording.joint_states + recording.wrenches,
        )
        result = identify(
            recording,
            parameters,
            progress=lambda n: bar.advance(task, n),
            observer=observer,
            mechanism=arguments.mechanism,
            arm_model=arguments.arm_model,
        )
        description = ''
        if arguments.mechanism is None:
            description = parameters.robot_description or recording.description()
    took = time.monotonic() - begin
    console.print(
        f'{arguments.recording}: {recording.joint_states} joint states and '
        f'{recording.wrenches} wrenches in {recording.duration:.1f} s, read in {took:.1f} s\n'
    )
    print_report(console, result)
    outcome = Outcome(
        source=f'{arguments.recording.name}, {recording.duration:.1f} s',
        parameters=result.parameters,
        residual_rms=result.estimate.residual_rms,
        used=result.used,
        dropped=result.dropped,
        absent_channels=result.absent_channels,
        description=description,
        notes=(*result.estimate.warnings, *result.remarks),
        by_efforts=result.by_efforts,
    )
    return result, outcome


@contextlib.contextmanager
def _frame_by_option(given: str | None) -> Iterator[None]:
    """Name the option for the sensor's frame in place of the parameter."""
    try:
        yield
    except FrameError as error:
        whole = f'wrench frame {given!r} is not a link: set sensor_frame to the link it is'
        option = f'--sensor-frame is {given!r}; it must be one of the links'
        words = str(error).replace(whole, option)
        raise FrameError(words.replace('set sensor_frame to', 'give --sensor-frame,')) from error


def run(arguments: argparse.Namespace) -> bool:
    """Run the command and return whether the mass is identified."""
    _check(arguments)
    check_output('--output', arguments.output)
    recorder = Recorder() if arguments.report is not None else None
    if recorder is not None:
        check_folder(arguments.report)
    parameters = _parameters(arguments)
    console = Console(highlight=False, markup=False)
    with _frame_by_option(arguments.sensor_frame):
        if arguments.static is not None:
            result = identify_poses(arguments.static, parameters, arguments.wrench_frame == 'base')
            console.print(f'{arguments.static}: {result.used} poses\n')
            print_report(console, result, f'{result.used} poses')
        else:
            result, outcome = _read(console, arguments, parameters, recorder)
    if arguments.output is not None:
        write_output('--output', arguments.output, result.estimate_file())
        console.print(f'Written    {arguments.output}')
    if recorder is not None:
        # Imported here because Matplotlib takes half a second.
        from load_identification.report.report import write_report

        console.print(f'Written    {write_report(arguments.report, recorder, outcome)}')
    return bool(result.estimate.identified[0])
