"""Run `identify_arm`: read recordings, identify the arm, print and write the result."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from load_identification.arm.arm_estimate import identified_arm
from load_identification.arm.arm_file import write_arm_model
from load_identification.arm.description import (
    felt_elsewhere,
    heavy_joints,
    moving_joints,
    sensor_placement,
    with_bodies,
    with_nominal,
)
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel, WrenchModel
from load_identification.arm.dynamics.transmission import read_transmission
from load_identification.arm.dynamics.tree import FROM_ZERO, Arm
from load_identification.arm.filtering import stilled
from load_identification.arm.identification import Session, identify_and_test
from load_identification.arm.methods.drive_gains import Loaded
from load_identification.arm.planning.plan_file import read_plan
from load_identification.arm.recording import Recording
from load_identification.arm.selection import BANDWIDTH, CUTOFFS
from load_identification.arm.settings import Settings
from load_identification.errors import ParameterError, RecordingError
from load_identification.interface.files import read_description
from load_identification.interface.output import check_output, make_folder, write_output
from load_identification.interface.parameters import check
from load_identification.model.frames import with_frame
from load_identification.numerics.weighted_solution import Solver
from load_identification.recordings.arm import (
    check_places,
    read_all,
    read_base_wrenches,
    read_efforts,
)
from load_identification.recordings.reader import RecordingReader, Topics
from load_identification.report.arm_tables import print_session
from load_identification.typing_aliases import FloatArray


def _check(arguments: argparse.Namespace) -> None:
    """Refuse incompatible options and outputs that cannot be written."""
    base, method = arguments.sensor == 'base', arguments.method
    if base and method not in ('least_squares', 'acceleration_free'):
        raise ParameterError(
            f'--method {method} is for joint efforts; --sensor base takes least_squares or '
            'acceleration_free'
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
    if arguments.cutoff is not None and not 0.0 < arguments.cutoff < np.inf:
        raise ParameterError(f'--cutoff is {arguments.cutoff} Hz; it must be above 0')
    if arguments.transmission is not None and (base or method == 'spectrum'):
        raise ParameterError(
            '--transmission is for joint efforts, and not with --method spectrum; leave it out'
        )
    if not 0.0 <= arguments.ridge <= 1.0:
        raise ParameterError(f'--ridge is {arguments.ridge}; it is a share and must be in 0 to 1')
    check('gravity', arguments.gravity)
    _check_load(arguments)
    check_output('--output', arguments.output)
    check_output('--model', arguments.model)
    if arguments.report is not None:
        make_folder('--report', arguments.report)


def _check_load(arguments: argparse.Namespace) -> None:
    """Refuse a load of unknown mass, and options incompatible with a load."""
    mass = arguments.load_mass
    if (arguments.loaded is None) != (mass is None):
        raise ParameterError(
            '--loaded and --load-mass go together: a recording with a load, and what that weighs'
        )
    if mass is None:
        return
    if not 0.0 < mass < np.inf:
        raise ParameterError(f'--load-mass is {mass} kg; it must be above 0')
    others = {
        '--sensor base': arguments.sensor == 'base',
        f'--method {arguments.method}': arguments.method != 'least_squares',
        '--effort-scale': arguments.effort_scale is not None,
        '--ridge': arguments.ridge != 0.0,
    }
    wrong = [name for name, given in others.items() if given]
    if wrong:
        raise ParameterError(
            f'--loaded tells what efforts of joints are to be multiplied by, by least squares; '
            f'leave out {wrong[0]}'
        )


def _efforts(arguments: argparse.Namespace, settings: Settings) -> tuple[str, Session]:
    """Identify from joint efforts; return the description too."""
    topics = Topics(arguments.joint_states, '', arguments.robot_description)

    def read(recording: RecordingReader, urdf: str) -> Recording:
        return read_efforts(recording, moving_joints(urdf))

    description, fit, held, load = _read(arguments, topics, read)
    logs = [*fit, *held, *load]
    joints, locked = _joints(arguments, description, fit, settings)
    moved = set().union(*(log.moved for log in fit)) - set(joints)
    loose = heavy_joints(description, moved, joints)
    arm = _arm(arguments, description, joints)
    check_places(arm, logs)
    drive = DriveModel('symmetric', 'symmetric', arguments.rotor_inertia, offset=True)
    scale = _scale(arguments.effort_scale, arm.joints)
    path = arguments.transmission
    transmission = read_transmission(path) if path is not None else None
    fit, held, load = (
        [one.of_joints(arm.joints).of_motors(transmission) for one in some]
        for some in (fit, held, load)
    )
    with Console(stderr=True).status('identifying'):
        session = identify_and_test(
            ArmModel(arm, drive, transmission),
            [one.scaled(scale) for one in fit],
            held[0].scaled(scale) if held else None,
            settings,
            Loaded(load[0], arguments.load_mass) if load else None,
        )
    left_out = [words for log in logs for words in log.left_out]
    session = replace(session, warnings=(*session.warnings, *locked, *left_out))
    others = set(moving_joints(description)) - {*arm.joints, *loose}
    far = {name: max(log.farthest.get(name, 0.0) for log in logs) for name in others}
    away = {name: place for name, place in far.items() if place > FROM_ZERO}
    aside = felt_elsewhere(description, arm.gravity, arm.joints, away)
    cause = 'with no effort that changes. Record their efforts, or let them stand'
    if arguments.joints:
        it = 'it' if len(loose) == 1 else 'them'
        cause = f'but --joints leaves {it} out. Name {it} too, or let {it} stand'
    for names, words in (
        (loose, f'moved, {cause}'),
        (aside, 'stood elsewhere than at zero. Give --description with them fixed there'),
    ):
        if names:
            reason = f'{", ".join(names)}: taken for locked at zero, and {words}'
            session = replace(session, identified=False, warnings=(reason, *session.warnings))
    return description, session


def _base_wrenches(arguments: argparse.Namespace, settings: Settings) -> tuple[str, Session]:
    """Identify from the wrenches of a sensor under the arm; return the description too."""
    names = arguments.joint_states, arguments.wrench, arguments.robot_description
    topics = Topics(*names, '--sensor base needs a wrench; leave it out to use efforts')
    transforms, frames = [], []

    def read(recording: RecordingReader, urdf: str) -> Recording:
        transforms.extend(recording.static_transforms())
        joints = Arm(urdf, joints=arguments.joints).joints
        frame, log = read_base_wrenches(
            recording, joints, arguments.sensor_frame, arguments.wrench_convention
        )
        frames.append(frame)
        return log

    description, fit, held, _ = _read(arguments, topics, read)
    frame = frames[0]
    arm = _arm(arguments, description, arguments.joints)
    replays: list[Recording] = []
    if arguments.static:
        replays += read_all(arguments.static, topics, description, read)[1]
    placement = sensor_placement(with_frame(description, frame, transforms), frame)
    model = WrenchModel(arm, placement, weightless=bool(arguments.static))
    with Console(stderr=True).status('identifying'):
        if replays:
            session = identify_and_test(model, _lighter(fit, replays), None, settings)
            # The replay moved, too, by however little.
            predict, cutoff = session.estimate.predict, session.settings.cutoff
            replays = [stilled(replay, predict, cutoff) for replay in replays]
            session = identify_and_test(model, _lighter(fit, replays), None, settings)
        else:
            session = identify_and_test(model, fit, held[0] if held else None, settings)
    method = f'{session.method}, sensor at {frame}'
    if arguments.static:
        method += ', weight and offset by static replay'
    return description, replace(session, method=method)


def _lighter(recordings: Sequence[Recording], replays: Sequence[Recording]) -> list[Recording]:
    """Return recordings less weight and offset, each with a replay of its own."""
    return [one.without_weight(still) for one, still in zip(recordings, replays, strict=True)]


def _read(
    arguments: argparse.Namespace,
    topics: Topics,
    read: Callable[[RecordingReader, str], Recording],
) -> tuple[str, list[Recording], list[Recording], list[Recording]]:
    """Return the description, and the data that are fitted, held out, and with a load."""
    given = read_description(arguments.description) if arguments.description else ''
    others = [path for path in (arguments.held_out, arguments.loaded) if path is not None]
    description, logs = read_all([*arguments.recordings, *others], topics, given, read)
    fitted = len(arguments.recordings)
    known = fitted + (arguments.held_out is not None)
    return description, logs[:fitted], logs[fitted:known], logs[known:]


def _arm(arguments: argparse.Namespace, description: str, joints: Sequence[str] | None) -> Arm:
    """Return the arm, with the links of another description if given."""
    arm = Arm(description, arguments.gravity, joints)
    if arguments.nominal is None:
        return arm
    other = read_description(arguments.nominal)
    return with_nominal(arm, other, f'--nominal {arguments.nominal}')


def _joints(
    arguments: argparse.Namespace,
    description: str,
    logs: Sequence[Recording],
    settings: Settings,
) -> tuple[tuple[str, ...], list[str]]:
    """Return the joints to identify, and warnings about joints assumed locked."""
    known = moving_joints(description)
    joints = tuple(arguments.joints or ())
    if settings.plan is not None:
        joints = settings.plan.joints
    elif not joints:
        common = set.intersection(*(set(log.joints) for log in logs))
        joints = tuple(n for n in known if n in common and any(n in log.varying for log in logs))
    if not joints:
        raise RecordingError(
            'no joint has an effort that ever changes; the recordings need measured efforts'
        )
    strange = sorted(set(joints) - set(known))
    if strange:
        raise ParameterError(
            f'there is no joint {", ".join(strange)} in the description; it has {", ".join(known)}'
        )
    locked = [name for name in known if name not in joints]
    words = [f'assumed locked at zero: {", ".join(locked)}'] if locked else []
    away = [
        name for name in locked if any(log.farthest.get(name, 0.0) > FROM_ZERO for log in logs)
    ]
    if away:
        words.append(
            f'{", ".join(away)}: recorded elsewhere than at zero, so what hangs there is wrong'
        )
    return joints, words


def _scale(given: Sequence[float] | None, joints: Sequence[str]) -> FloatArray:
    """Return the factor of each joint's efforts, (J,)."""
    scale = np.array(given or [1.0])
    if len(scale) not in (1, len(joints)) or not np.isfinite(scale).all() or not scale.all():
        raise ParameterError(
            f'--effort-scale has {len(scale)} numbers; it takes one, or {len(joints)} for '
            f'{", ".join(joints)}, none of them 0'
        )
    return np.broadcast_to(scale, (len(joints),))


def run(arguments: argparse.Namespace) -> bool:
    """Run the command and return whether the arm is identified."""
    _check(arguments)
    cutoffs = CUTOFFS if arguments.cutoff is None else (arguments.cutoff,)
    settings = Settings(
        arguments.method,
        cutoffs[0],
        cutoffs,
        max(BANDWIDTH, arguments.cutoff or 0.0),
        plan=read_plan(arguments.plan) if arguments.plan else None,
        solver=Solver(arguments.ridge),
    )
    console = Console(highlight=False, markup=False)
    identify = _base_wrenches if arguments.sensor == 'base' else _efforts
    description, session = identify(arguments, settings)
    estimate = session.estimate
    written: list[Path] = []
    if arguments.model is not None:
        # Before anything is printed: what no arm model can hold is not identified.
        used = session.settings
        scale = _scale(arguments.effort_scale, estimate.model.arm.joints)
        of_others = session.excess, session.slow
        arm = identified_arm(estimate, used.cutoff, used.velocities, scale, *of_others)
        write_arm_model(arguments.model, arm)
        written.append(arguments.model)
    print_session(console, session, arguments.parameters)
    if arguments.output is not None:
        text = with_bodies(description, estimate.model.arm, estimate.bodies)
        write_output('--output', arguments.output, text)
        written.append(arguments.output)
    if arguments.report is not None:
        # Imported here because Matplotlib takes half a second.
        from load_identification.report.arm_figures import write_figures

        written += write_figures(arguments.report, estimate, session.prediction)
    for path in written:
        console.print(f'File       {path}', soft_wrap=True)
    return session.identified
