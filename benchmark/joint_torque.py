"""A payload weighed by the torques of seven joints: error, and how often the interval holds.

    python benchmark/joint_torque.py [--runs N] [--duration S] [--identification S] [--data FOLDER]
    python benchmark/joint_torque.py --gains [--friction SHARE] [--drag SHARE] [--runs N] ...

Every run draws a motion, and the noise of the torques, anew: 0.1 N m in each sample at 250 Hz,
encoders of 1e-5 rad, Coulomb friction of 0.4 to 2.4 N m, of another height in each direction; 2 kg
in the hand. The arm is known exactly, or from a recording of its own without the payload; of that,
too, the noise is drawn anew for each run.

Printed for each parameter: root mean square error, mean standard deviation said, and the share of
the runs in which the 95 % interval holds, of those in which the parameter was identified: with the
arm known; with the arm identified and its errors carried on, as `arm_estimator_node` does; with
these left out; with samples counted or not besides, as over topics to an estimator elsewhere; and
with an arm that is not as it was identified: 2 to 4 kg, each level and slope of friction 10 to
30 % higher or lower since, each drive's gain off by 1 to 3 % all the time; with the same, the
payload grasped after half of the time. Then how soon that is named a change of load.
Where FOLDER holds the recordings of a KUKA LWR4+ and a Panda (`kuka_lwr4`, `panda`): what they
weigh with nothing in the hand, by the model of their other recording.

With --gains efforts are currents, gains of 2 to 20 N m per ampere drawn anew in every run, some of
them negative. They are identified with the arm from one recording without a load and one with 3 kg
known by mass alone; then a load of 2 to 4 kg is weighed. The friction of every joint differs from
one recording to the next by SHARE (standard deviation); --drag is friction as a share of the
torque of links and load; then the data choose the friction model. Printed: the errors of gains
and mass, and how often the 95 % intervals hold.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from load_identification.arm.arm_estimate import identified_arm
from load_identification.arm.arm_file import IdentifiedArm
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.identification import identify_and_test
from load_identification.arm.methods.drive_gains import Loaded
from load_identification.arm.payload.effort_filter import USABLE
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.commands.identify_arm import main as identify_arm
from load_identification.errors import RecordingError
from load_identification.estimation.events import Event
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import EffortBatch
from load_identification.interface.names import INTERVAL
from load_identification.interface.node_table import BEHIND_JOINTS
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.numerics.weighted_rows import counting
from load_identification.pipeline.effort_front import behind_joints, effort_filter, joint_samples
from load_identification.pipeline.payload_stage import PayloadStage, Samples
from load_identification.recordings.identification import identify
from load_identification.recordings.reader import Topics, open_recording
from load_identification.simulation.robots import SEVEN_JOINTS
from load_identification.simulation.weighing_arm import (
    DRIVE,
    FRAME,
    PAYLOAD,
    VISCOUS,
    Identifier,
    Run,
    exact_arm,
    friction,
    run,
)
from load_identification.typing_aliases import BoolArray, FloatArray

NAMES = ('m', 'cx', 'cy', 'cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')
UNITS = ('g', 'mm', 'mm', 'mm', *('1e-3 kg m²',) * 6)
WAYS = ('arm known', 'arm identified', 'its errors left out', 'over topics')
OTHERS = ('friction and gains off', 'the same, grasped on the way')
KNOWN_MASS, GAIN_CUTOFF = 3.0, 10.0
"""[kg]; [Hz]."""
FRICTION_OFF, GAIN_OFF, MASSES = (0.1, 0.3), (0.01, 0.03), (2.0, 4.0)
PIECE = 5
"""Samples at once: a block of the estimator."""

REAL = (
    ('kuka_lwr4/run_1', 'kuka_lwr4/run_2'),
    ('kuka_lwr4/run_2', 'kuka_lwr4/run_1'),
    ('panda/part_a', 'panda/part_b'),
    ('panda/part_b', 'panda/part_a'),
)
"""Recordings to identify an arm by, and to weigh nothing in."""


@dataclass
class Outcome:
    """Errors, standard deviations and verdicts of the runs, (10,) each."""

    errors: list[FloatArray] = field(default_factory=list)
    std: list[FloatArray] = field(default_factory=list)
    identified: list[BoolArray] = field(default_factory=list)
    changes: int = 0
    """Runs in which a change of load or offset was named."""

    def holds(self) -> FloatArray:
        """Return for each parameter how often its interval holds where identified."""
        identified = np.array(self.identified)
        inside = np.abs(np.array(self.errors)) <= INTERVAL * np.array(self.std)
        return (inside & identified).sum(axis=0) / identified.sum(axis=0)


def estimate(
    arm: IdentifiedArm, joints: EffortBatch, carry: bool = True, topics: bool = False
) -> tuple[PayloadEstimate, list[tuple[Event, int]]]:
    """Estimate the payload of a simulation as the node does.

    Returns
    -------
    PayloadEstimate and list of (Event, int)
        What was noticed, too, each with the stamp at which it was named [ns].
    """
    parameters = Parameters(**BEHIND_JOINTS)
    stage = effort_filter(arm, parameters)
    stage.set_description(SEVEN_JOINTS.urdf, FRAME)
    samples = joint_samples(stage, joints)
    assert samples.filtered is not None
    filtered = samples.filtered
    if not carry:
        left_out = filtered.sensitivity[:, :, :0], filtered.by_gain[:, :0]
        filtered = replace(filtered, sensitivity=left_out[0], by_gain=left_out[1])
    if topics:
        filtered = counting(filtered, USABLE)
    payload, number = PayloadStage(behind_joints(parameters, arm)), 0
    named: list[tuple[Event, int]] = []
    for first in range(0, len(filtered.stamps), PIECE):
        piece = filtered.select(slice(first, first + PIECE))
        payload.update(Samples(filtered=piece))
        events = payload.estimator.events.since(number)
        number = payload.estimator.events.newest.number
        named += [(event, int(piece.stamps[-1])) for event in events]
    found = payload.estimator.estimate()
    assert found is not None
    return found, named


def weigh(
    arm: IdentifiedArm,
    joints: EffortBatch,
    into: Outcome,
    carry: bool = True,
    topics: bool = False,
    load: InertialParameters = PAYLOAD,
) -> float:
    """Estimate the payload of a simulation; return when another load was named, if ever [s]."""
    found, events = estimate(arm, joints, carry, topics)
    into.changes += any(e.kind.changes_load or e.kind.changes_offset for e, _ in events)
    into.errors.append(found.values - to_message_order(load.to_vector()))
    into.std.append(found.std)
    into.identified.append(found.identified)
    loads = [stamp for event, stamp in events if event.kind.changes_load]
    return 1e-9 * min(loads) if loads else np.inf


def body(rng: np.random.Generator, mass: float) -> InertialParameters:
    """Draw a load of a mass [kg]: an ellipsoid within two decimetres."""
    center = rng.uniform([-0.06, -0.06, 0.02], [0.06, 0.06, 0.12])
    axes = np.sort(rng.uniform(0.05, 0.15, 3)) ** 2
    inertia = 0.2 * mass * np.diag(np.sum(axes) - axes)
    return InertialParameters.from_center_of_mass(mass, center, inertia)


def run_with_gains(
    seed: int, seconds: float, duration: float, changed: float, drag: float
) -> tuple[FloatArray, FloatArray]:
    """Identify gains and arm, and weigh another load.

    Returns
    -------
    error, std : (8,) arrays
        Of seven gains and a mass, as shares of them [-].
    """
    rng = np.random.default_rng(seed)
    gains = np.exp(rng.uniform(np.log(2.0), np.log(20.0), 7)) * rng.choice([1.0, 1.0, -1.0], 7)
    known, other = body(rng, KNOWN_MASS), body(rng, rng.uniform(2.0, 4.0))
    currents = []
    for k, (length, load) in enumerate([(seconds, None), (seconds, known), (duration, other)]):
        share = 1.0 + changed * rng.standard_normal(7)
        exact = run(length, 3 * seed + k, load, share=share)
        borne = exact.torque - share * friction(exact.velocity)
        dragged = exact.torque + drag * np.abs(borne) * np.sign(exact.velocity)
        joints = replace(exact, torque=dragged).measured(3 * seed + k)
        currents.append(replace(joints, effort=joints.effort / gains))
    logs = [
        Recording.held('simulated', j.names, j.stamps, j.position, j.velocity, j.effort)
        for j in currents[:2]
    ]
    model = ArmModel(Arm(SEVEN_JOINTS.urdf, joints=logs[0].joints), DRIVE)
    settings = Settings(cutoff=GAIN_CUTOFF, transition_velocities=())
    if drag:
        # As the command does, friction under load is found by the data.
        settings = Settings(cutoff=GAIN_CUTOFF, cutoffs=(GAIN_CUTOFF,), bandwidth=GAIN_CUTOFF)
    session = identify_and_test(model, logs[:1], None, settings, Loaded(logs[1], KNOWN_MASS))
    arm = identified_arm(session.estimate, GAIN_CUTOFF, excess=session.excess, slow=session.slow)
    std = np.sqrt(np.diag(arm.covariance)[-7:]) / np.abs(gains)
    found, _ = estimate(arm, currents[2])
    errors = np.append(arm.effort_scale / gains, found.values[0] / other.mass) - 1.0
    return errors, np.append(std, found.std[0] / other.mass)


def show_gains(
    console: Console, runs: Sequence[tuple[FloatArray, FloatArray]], title: str
) -> None:
    """Print how far gains and masses were off, and how often their intervals held."""
    table = Table(title=title)
    for name in ('', 'rms error %', 'worst %', 'std said %', '95 % holds %'):
        table.add_column(name, justify='right')
    columns = {f'gain {k + 1}': [k] for k in range(7)}
    columns |= {'all gains': [*range(7)], 'mass, 2 to 4 kg': [7]}
    errors, std = np.moveaxis(np.array(runs), 1, 0)
    for name, which in columns.items():
        off, said = errors[:, which], std[:, which]
        holds = np.mean(np.abs(off) <= INTERVAL * said)
        sizes = np.sqrt(np.mean(off**2)), np.max(np.abs(off)), np.mean(said)
        table.add_row(name, *(f'{100.0 * size:.3f}' for size in sizes), f'{100.0 * holds:.1f}')
    console.print(table)


def off(rng: np.random.Generator, limits: tuple[float, float], *shape: int) -> FloatArray:
    """Draw errors of either sign."""
    return np.asarray(rng.uniform(*limits, shape) * rng.choice([-1.0, 1.0], shape))


def weigh_by_another_arm(
    unloaded: Run, duration: float, seed: int, outcomes: Sequence[Outcome]
) -> float:
    """Weigh with friction and gains off, held and grasped; return how soon that was named [s]."""
    rng = np.random.default_rng(50_000 + seed)
    gain, (level, slope) = 1.0 + off(rng, GAIN_OFF, 7), off(rng, FRICTION_OFF, 2, 7)
    load = InertialParameters.from_vector(
        PAYLOAD.to_vector() * rng.uniform(*MASSES) / PAYLOAD.mass
    )
    arm = Identifier(replace(unloaded, torque=gain * unloaded.torque)).arm(10_000 + seed)
    held, empty = run(duration, seed, load), run(duration, seed)
    velocity = held.velocity
    viscous = VISCOUS * velocity
    more = level * (friction(velocity) - viscous) + slope * viscous
    half = len(held.stamps) // 2
    grasped = np.concatenate([empty.torque[:half], held.torque[half:]])
    named = np.inf
    for torque, outcome in zip((held.torque, grasped), outcomes, strict=True):
        joints = replace(held, torque=gain * (torque + more)).measured(seed)
        named = weigh(arm, joints, outcome, load=load)
    return named - float(held.stamps[half])


def show_nothing_in_hand(console: Console, data: Path) -> None:
    """Identify real arms, and weigh what they have in the hand in another recording: nothing."""
    table = Table(title='nothing in the hand: estimate ± 95 %')
    for name in ('arm', 'recording', 'mass kg', 'farthest of ten, std', 'load changed, times'):
        table.add_column(name, justify='right')
    for one, other in REAL:
        with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(io.StringIO()):
            model = Path(place) / 'arm.yaml'
            options = ('--held-out', data / other, '--model', model)
            identify_arm([str(option) for option in (data / one, *options)])
            with open_recording(data / other, Topics(wrench='')) as recording:
                found = identify(recording, Parameters(**BEHIND_JOINTS), arm_model=model)
        e = found.estimate
        std = np.sqrt(np.diag(e.covariance)[:10])
        table.add_row(
            *(one, other, f'{e.values[0]:.3f} ± {INTERVAL * e.std[0]:.3f}'),
            f'{np.max(np.abs(e.parameters / std)):.1f}',
            str(sum(event.kind.changes_load for event in found.events)),
        )
    console.print(table)


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=100, help='0 leaves the simulation out')
    parser.add_argument('--duration', type=float, default=30.0, help='with the payload [s]')
    parser.add_argument('--identification', type=float, default=60.0, help='without it [s]')
    parser.add_argument('--data', type=Path, help='folder of real recordings')
    parser.add_argument('--gains', action='store_true', help='currents with unknown gains')
    parser.add_argument('--friction', type=float, default=0.0, help='change of it, as a share')
    parser.add_argument('--drag', type=float, default=0.0, help='as a share of the torque')
    arguments = parser.parse_args()
    if arguments.gains:
        how = arguments.identification, arguments.duration, arguments.friction, arguments.drag
        seeds = track(range(1, arguments.runs + 1), 'weighing', console=Console(stderr=True))
        found = [run_with_gains(seed, *how) for seed in seeds]
        title = f'{arguments.runs} runs, friction changed by {100.0 * arguments.friction:g} %'
        show_gains(Console(width=100), found, title)
        return
    if arguments.data:
        try:
            show_nothing_in_hand(Console(width=100), arguments.data)
        except RecordingError as error:
            parser.error(str(error))
    if not arguments.runs:
        return
    unloaded = run(arguments.identification, 0)
    identifier, named = Identifier(unloaded), list[float]()
    outcomes = {way: Outcome() for way in (*WAYS, *OTHERS)}
    for seed in track(range(1, arguments.runs + 1), 'weighing', console=Console(stderr=True)):
        joints = run(arguments.duration, seed, PAYLOAD).measured(seed)
        arm = identifier.arm(10_000 + seed)
        weigh(exact_arm(), joints, outcomes[WAYS[0]])
        weigh(arm, joints, outcomes[WAYS[1]])
        weigh(arm, joints, outcomes[WAYS[2]], carry=False)
        weigh(arm, joints, outcomes[WAYS[3]], carry=False, topics=True)
        two = [outcomes[way] for way in OTHERS]
        named.append(weigh_by_another_arm(unloaded, arguments.duration, seed, two))
    console = Console(width=120)
    factor = np.repeat([1e3, 1e3, 1e3], [1, 3, 6])
    for way, outcome in outcomes.items():
        table = Table(title=f'{way}: {arguments.runs} runs of {arguments.duration:g} s')
        for name in ('', 'unit', 'rms error', 'std said', 'identified %', '95 % holds %'):
            table.add_column(name, justify='right')
        rms = np.sqrt(np.mean(np.square(outcome.errors), axis=0)) * factor
        std = np.mean(outcome.std, axis=0) * factor
        identified = 100.0 * np.mean(outcome.identified, axis=0)
        holds = outcome.holds()
        for k, name in enumerate(NAMES):
            table.add_row(
                *(name, UNITS[k], f'{rms[k]:.3f}', f'{std[k]:.3f}'),
                *(f'{identified[k]:.0f}', f'{100.0 * holds[k]:.0f}'),
            )
        table.add_row('all', '', '', '', '', f'{100.0 * np.nanmean(holds):.1f}')
        table.caption = f'a change of load or offset was named in {outcome.changes} runs'
        console.print(table)
    late = [f'{share:.0%} {np.quantile(named, share):.1f} s' for share in (0.5, 0.95, 1)]
    console.print(f'a grasp is named a change of load after: {", ".join(late)}')


if __name__ == '__main__':
    main()
