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
these left out; and with samples counted or not besides, as over topics to an estimator elsewhere.
Where FOLDER holds the recordings of a KUKA LWR4+: what it weighs with nothing in its hand.

With --gains efforts are currents, gains of 2 to 20 N m per ampere drawn anew in every run, some of
them negative. They are identified with the arm from one recording without a load and one with 3 kg
known by mass alone; then a load of 2 to 4 kg is weighed. The friction of every joint differs from
one recording to the next by SHARE (standard deviation); --drag is friction as a share of the
torque, which the model lacks. Printed: the errors of gains and mass, and how often the 95 %
intervals hold.
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
from load_identification.arm.arm_file import IdentifiedArm, read_arm_model
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import PARAMETERS, Arm
from load_identification.arm.identification import identify_and_test
from load_identification.arm.methods.drive_gains import Loaded
from load_identification.arm.payload.effort_filter import USABLE, EffortFilter
from load_identification.arm.payload.errors import ArmErrors
from load_identification.arm.recording import ArmRecording
from load_identification.arm.settings import Settings
from load_identification.commands.identify_arm import main as identify_arm
from load_identification.estimation.payload_estimate import EstimatorSettings, PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.systematic_errors import NO_ERRORS
from load_identification.interface.batches import EffortBatch
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.numerics.whitening import counting
from load_identification.recordings.arm import read_efforts
from load_identification.recordings.reader import Topics, open_recording
from load_identification.simulation.robots import SEVEN_JOINTS
from load_identification.simulation.weighing_arm import (
    DRIVE,
    FRAME,
    MAX_GAP,
    PAYLOAD,
    Identifier,
    differentiator,
    exact_arm,
    run,
)
from load_identification.typing_aliases import BoolArray, FloatArray

NAMES = ('m', 'cx', 'cy', 'cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')
UNITS = ('g', 'mm', 'mm', 'mm', *('1e-3 kg m²',) * 6)
WAYS = ('arm known', 'arm identified', 'its errors left out', 'over topics')
NORMAL_95 = 1.959963984540054
KNOWN_MASS, GAIN_CUTOFF = 3.0, 10.0
"""[kg]; [Hz]."""


@dataclass
class Outcome:
    """Errors, standard deviations and verdicts of the runs, (10,) each."""

    errors: list[FloatArray] = field(default_factory=list)
    std: list[FloatArray] = field(default_factory=list)
    identified: list[BoolArray] = field(default_factory=list)
    changes: int = 0
    """Runs in which noise was taken for a change of load or offset, for a while at least."""

    def holds(self) -> FloatArray:
        """Return for each parameter how often its interval holds where identified."""
        identified = np.array(self.identified)
        inside = np.abs(np.array(self.errors)) <= NORMAL_95 * np.array(self.std)
        shares: FloatArray = (inside & identified).sum(axis=0) / identified.sum(axis=0)
        return shares


def estimate(
    arm: IdentifiedArm,
    joints: EffortBatch,
    urdf: str,
    frame: str,
    carry: bool = True,
    topics: bool = False,
) -> tuple[PayloadEstimate, bool]:
    """Estimate the payload of a recording; return whether a change of it was seen, too."""
    stage = EffortFilter(arm, differentiator(arm.cutoff), MAX_GAP)
    stage.set_description(urdf, frame)
    errors, settings = (
        ArmErrors(),
        EstimatorSettings(force_noise=0.5, torque_noise=0.1, errors=NO_ERRORS),
    )
    estimator = PayloadEstimator(settings, errors.covariance if carry else None)
    samples = stage.update(joints)
    if samples is None:
        raise SystemExit('nothing could be used')
    samples = counting(samples, USABLE) if topics else samples
    errors.add(samples, stage.sensitivity)
    estimator.update(samples)
    found = estimator.estimate()
    if found is None:
        raise SystemExit('no estimate')
    return found, bool(estimator.events.since(0))


def weigh(
    arm: IdentifiedArm, joints: EffortBatch, carry: bool, topics: bool, into: Outcome
) -> None:
    """Estimate the payload of a simulation."""
    found, changed = estimate(arm, joints, SEVEN_JOINTS.urdf, FRAME, carry, topics)
    into.changes += changed
    into.errors.append(found.values - to_message_order(PAYLOAD.to_vector()))
    into.std.append(found.std)
    into.identified.append(found.identified)


def body(rng: np.random.Generator, mass: float) -> InertialParameters:
    """Draw a load of a mass [kg]: an ellipsoid within two decimetres."""
    center = rng.uniform([-0.06, -0.06, 0.02], [0.06, 0.06, 0.12])
    axes = np.sort(rng.uniform(0.05, 0.15, 3)) ** 2
    inertia = 0.2 * mass * np.diag(np.sum(axes) - axes)
    return InertialParameters.from_center_of_mass(mass, center, inertia)


@dataclass
class GainRun:
    """One run with unknown gains: errors and standard deviations, of 7 gains as shares of them."""

    gains: FloatArray
    std: FloatArray
    mass: float
    error: float
    mass_std: float


def run_with_gains(
    seed: int, seconds: float, duration: float, friction: float, drag: float
) -> GainRun:
    """Identify gains and arm, and weigh another load."""
    rng = np.random.default_rng(seed)
    gains = np.exp(rng.uniform(np.log(2.0), np.log(20.0), 7)) * rng.choice([1.0, 1.0, -1.0], 7)
    known, other = body(rng, KNOWN_MASS), body(rng, rng.uniform(2.0, 4.0))
    currents = []
    for k, (length, load) in enumerate([(seconds, None), (seconds, known), (duration, other)]):
        share = 1.0 + friction * rng.standard_normal(7)
        exact = run(length, 3 * seed + k, load, share=share)
        unknown = drag * np.abs(exact.torque) * np.sign(exact.velocity)
        joints = replace(exact, torque=exact.torque + unknown).measured(3 * seed + k)
        currents.append(replace(joints, effort=joints.effort / gains))
    logs = [
        ArmRecording('simulated', j.names, j.stamps, j.position, j.velocity, j.effort)
        for j in currents[:2]
    ]
    model = ArmModel(Arm(SEVEN_JOINTS.urdf, joints=logs[0].joints), DRIVE)
    settings = Settings(cutoff=GAIN_CUTOFF, transition_velocities=())
    session = identify_and_test(model, logs[:1], None, settings, Loaded(logs[1], KNOWN_MASS))
    arm = identified_arm(session.estimate, GAIN_CUTOFF, excess=session.excess)
    std = np.sqrt(np.diag(arm.covariance)[-7:]) / np.abs(gains)
    found, _ = estimate(arm, currents[2], SEVEN_JOINTS.urdf, FRAME)
    error = float(found.values[0] - other.mass)
    return GainRun(arm.effort_scale / gains - 1.0, std, other.mass, error, float(found.std[0]))


def show_gains(console: Console, runs: Sequence[GainRun], title: str) -> None:
    """Print how far gains and masses were off, and how often their intervals held."""
    table = Table(title=title)
    for name in ('', 'rms error %', 'worst %', 'std said %', '95 % holds %'):
        table.add_column(name, justify='right')
    error, std = np.array([r.gains for r in runs]), np.array([r.std for r in runs])
    mass = np.array([r.mass for r in runs])
    rows = [(f'gain {k + 1}', error[:, k], std[:, k]) for k in range(7)]
    rows.append(('all gains', error.ravel(), std.ravel()))
    weighed = np.array([r.error for r in runs]), np.array([r.mass_std for r in runs])
    rows.append(('mass, 2 to 4 kg', weighed[0] / mass, weighed[1] / mass))
    for name, off, said in rows:
        holds = np.mean(np.abs(off) <= NORMAL_95 * said)
        sizes = np.sqrt(np.mean(off**2)), np.max(np.abs(off)), np.mean(said)
        table.add_row(name, *(f'{100.0 * size:.3f}' for size in sizes), f'{100.0 * holds:.1f}')
    console.print(table)


def nothing_in_hand(folder: Path) -> tuple[PayloadEstimate, PayloadEstimate]:
    """Identify a real arm on its run 1, and weigh what it has in its hand in both runs: nothing.

    Parameters
    ----------
    folder : pathlib.Path
        With `run_1`, `run_2` and `kuka_lwr4.urdf`.
    """
    description = folder / 'kuka_lwr4.urdf'
    urdf = description.read_text(encoding='utf-8')
    runs = [folder / 'run_1', folder / 'run_2']
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(io.StringIO()):
        model = Path(place) / 'arm.yaml'
        options = ('--held-out', runs[1], '--description', description, '--model', model)
        identify_arm([str(option) for option in (runs[0], *options)])
        arm = read_arm_model(model)
    found = []
    for path in runs:
        with open_recording(path, Topics(wrench='')) as recording:
            log = read_efforts(recording, arm.joints)
        joints = EffortBatch(log.joints, log.stamps, log.position, log.velocity, log.measured)
        found.append(estimate(arm, joints, urdf, arm.links[-1])[0])
    return found[0], found[1]


def show_nothing_in_hand(console: Console, folder: Path) -> None:
    """Print the table of `nothing_in_hand`."""
    table = Table(title='KUKA LWR4+, identified on run 1, nothing in its hand: estimate ± 95 %')
    for name in ('about S', 'run 1', 'run 2', 'off by std, run 1', 'run 2'):
        table.add_column(name, justify='right')
    found = nothing_in_hand(folder)
    std = [np.sqrt(np.diag(each.covariance)[:10]) for each in found]
    for k, name in enumerate(PARAMETERS):
        both = [(e.parameters[k], s[k]) for e, s in zip(found, std, strict=True)]
        table.add_row(
            name,
            *(f'{value:.3f} ± {NORMAL_95 * own:.3f}' for value, own in both),
            *(f'{value / own:.1f}' for value, own in both),
        )
    console.print(table)


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=100, help='0 leaves the simulation out')
    parser.add_argument('--duration', type=float, default=30.0, help='with the payload [s]')
    parser.add_argument('--identification', type=float, default=60.0, help='without it [s]')
    parser.add_argument('--data', type=Path, help='folder of the recordings of a KUKA LWR4+')
    parser.add_argument('--gains', action='store_true', help='currents with unknown gains')
    parser.add_argument('--friction', type=float, default=0.0, help='change of it, as a share')
    parser.add_argument('--drag', type=float, default=0.0, help='as a share of the torque')
    arguments = parser.parse_args()
    if arguments.gains:
        console = Console(stderr=True)
        found = [
            run_with_gains(
                seed,
                arguments.identification,
                arguments.duration,
                arguments.friction,
                arguments.drag,
            )
            for seed in track(range(1, arguments.runs + 1), 'weighing', console=console)
        ]
        title = f'{arguments.runs} runs, friction changed by {100.0 * arguments.friction:g} %'
        show_gains(Console(width=100), found, title)
        return
    if arguments.data:
        show_nothing_in_hand(Console(width=100), arguments.data)
    if not arguments.runs:
        return
    identifier = Identifier(run(arguments.identification, 0))
    outcomes = {way: Outcome() for way in WAYS}
    for seed in track(range(1, arguments.runs + 1), 'weighing', console=Console(stderr=True)):
        joints = run(arguments.duration, seed, PAYLOAD).measured(seed)
        arm = identifier.arm(10_000 + seed)
        weigh(exact_arm(), joints, carry=False, topics=False, into=outcomes[WAYS[0]])
        weigh(arm, joints, carry=True, topics=False, into=outcomes[WAYS[1]])
        weigh(arm, joints, carry=False, topics=False, into=outcomes[WAYS[2]])
        weigh(arm, joints, carry=False, topics=True, into=outcomes[WAYS[3]])
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
        table.caption = f'noise taken for a change, if for a while, in {outcome.changes} runs'
        console.print(table)


if __name__ == '__main__':
    main()
