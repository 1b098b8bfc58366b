"""Identification of a whole arm: speed, the tables of Khosla and Kanade, and a real arm.

    python benchmark/arm.py [--data FOLDER]

Printed: the processor time a sample takes, batched and one by one with Pinocchio and NumPy; the
parameters of the two arms of Khosla and Kanade 1987, estimated here from motion of 25 samples,
beside the true values that went into the simulation; and, where FOLDER holds the recording of a
KUKA LWR4+ (`run_1`, `run_2`, `kuka_lwr4.urdf`), the torque error on the run that was not fitted.
"""

from __future__ import annotations

import argparse
import time
import timeit
from collections.abc import Callable
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
import pinocchio
import scipy.signal
from rich.console import Console
from rich.table import Table

from load_identification.arm.dynamics.base_parameters import (
    NOT_IDENTIFIABLE,
    arm_base_parameters,
    random_motion,
)
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel, JointMotion
from load_identification.arm.dynamics.tree import FROM_PINOCCHIO, Arm
from load_identification.arm.filtering import FilteredRecording
from load_identification.arm.identification import identify_motion
from load_identification.arm.methods.least_squares import LEAST_SHARE, joint_stages, motion_rows
from load_identification.arm.prediction import relative_error
from load_identification.arm.settings import Settings
from load_identification.numerics.weighted_solution import Solver, noise_levels, solve
from load_identification.recordings.arm import read_efforts
from load_identification.recordings.reader import Topics, open_recording
from load_identification.simulation.khosla_kanade import (
    CMU_DD_ARM_II,
    CYLINDRICAL,
    PaperArm,
    nearest,
    paper_motion,
)
from load_identification.simulation.motions import smooth_motion
from load_identification.simulation.robots import SEVEN_JOINTS, PinocchioArm
from load_identification.typing_aliases import FloatArray

SAMPLES = 10_000
REPEATS = 5


def kuka_run(folder: Path, arm: Arm) -> FilteredRecording:
    """Return a run of the KUKA LWR4+, low-passed at 8 Hz, without a quarter second at its ends."""
    with open_recording(folder, Topics(wrench='')) as recording:
        one = read_efforts(recording, arm.joints)
        log = one.whole()
    low_pass = scipy.signal.butter(4, 8.0, fs=200.0)
    q, qd = (
        scipy.signal.filtfilt(*low_pass, side, axis=0) for side in (log.position, log.velocity)
    )
    inside = np.zeros(len(q), dtype=bool)
    inside[50:-50] = True
    motion = (q, qd, np.gradient(qd, 0.005, axis=0))
    return FilteredRecording(one.seconds, *motion, log.wrench).select(inside)


def one_by_one(
    urdf: str, joints: tuple[str, ...], motion: JointMotion, effort: FloatArray, stacked: bool
) -> None:
    """Identify sample by sample, all rows stacked as one would first write it, or summed up."""
    arm = PinocchioArm(urdf, np.array([0.0, 0.0, -9.80665]), joints)
    model, data, count = arm.model, arm.data, arm.model.nv
    order = np.concatenate([10 * j + np.array(FROM_PINOCCHIO) for j in range(count)])
    matrix, right = np.zeros((12 * count, 12 * count)), np.zeros(12 * count)
    row = np.zeros((count, 12 * count))
    rows = []
    for q, qd, qdd, tau in zip(*motion, effort, strict=True):
        regressor = pinocchio.computeJointTorqueRegressor(model, data, q, qd, qdd)
        row[:, : 10 * count] = regressor[:, order]
        row[:, 10 * count : 11 * count] = np.diag(np.sign(qd))
        row[:, 11 * count :] = np.diag(qd)
        if stacked:
            rows.append(row.copy())
        else:
            matrix += row.T @ row
            right += row.T @ tau
    if stacked:
        matrix, right = np.vstack(rows), effort.ravel()
    np.linalg.lstsq(matrix, right, rcond=None)


def fastest(function: Callable[[], object]) -> float:
    """Return the shortest processor time of some runs [s]."""
    return min(timeit.repeat(function, timer=time.process_time, repeat=REPEATS, number=1))


def show_speed(console: Console) -> None:
    """Print the time per sample, beside loops that do no more than solve for the parameters."""
    joints = SEVEN_JOINTS.joints
    model = ArmModel(Arm(SEVEN_JOINTS.urdf, joints=joints), DriveModel('symmetric'))
    base = arm_base_parameters(model)
    rng = np.random.default_rng(0)
    motion = smooth_motion(rng, len(joints), SAMPLES)
    effort = model.predict(model.nominal, motion) + 0.1 * rng.normal(size=(SAMPLES, len(joints)))
    log = FilteredRecording(0.01 * np.arange(SAMPLES), *motion, effort)
    start = base.to_base(model.nominal)

    def weighted() -> None:
        rows = motion_rows(model, base, log)(model)
        noise_levels([rows], start)

    plain = Settings(transition_velocities=())
    ways: dict[str, Callable[[], object]] = {
        'base parameters, each joint weighted by its noise': weighted,
        'with intervals, classes and consistent links': lambda: identify_motion(model, log, plain),
        'a loop: rows stacked, lstsq': lambda: one_by_one(
            SEVEN_JOINTS.urdf, joints, motion, effort, stacked=True
        ),
        'a loop: normal equations summed up': lambda: one_by_one(
            SEVEN_JOINTS.urdf, joints, motion, effort, stacked=False
        ),
    }
    times = {name: fastest(way) for name, way in ways.items()}
    first = times[next(iter(ways))]
    table = Table('seven joints, friction', 'µs per sample', 'times the first', title='Speed')
    for name, seconds in times.items():
        table.add_row(name, f'{1e6 * seconds / SAMPLES:.2f}', f'{seconds / first:.1f}')
    console.print(table)


TABLE_3 = (
    'The paper counts all seventeen as told. By rank that holds for link 3, seven of eight in its '
    'eq. 24; of the eight in eq. 25 no data tell more than three combinations '
    'besides, and of the three in eq. 26, which all multiply the acceleration of joint 1, one.\n'
)
"""What the second table is to be read with."""

RECORDED = ('kuka_lwr4.urdf', 'run_1', 'run_2')
"""What the folder of the recording has: description, the run that is fitted, and another."""


def newly_told(rows: FloatArray) -> list[int]:
    """Return how many combinations each joint tells besides those beyond it, (n, J, c) rows."""
    joints, columns = rows.shape[1:]
    length = np.linalg.norm(rows, axis=(0, 1))
    scaled = rows / np.where(length > 0.0, length, 1.0)
    ranks = [
        int(np.linalg.matrix_rank(scaled[:, joint:].reshape(-1, columns), rtol=1e-8))
        for joint in range(joints)
    ]
    return [a - b for a, b in zip(ranks, [*ranks[1:], 0], strict=True)]


def show_table(console: Console, paper: PaperArm, title: str) -> None:
    """Print the parameters of an arm of the paper: true, and estimated from 25 samples."""
    model, carried = paper.model(), paper.from_paper_frames()
    names = paper.considered or paper.names
    columns = [paper.names.index(name) for name in names]
    rows = (model.regressor(*random_motion(3, 300)) @ carried)[:, :, columns]
    found = paper.base()

    base, motion = arm_base_parameters(model), paper_motion(3)
    true, initial = (paper.vector(values) for values in (paper.true, paper.initial))
    effort = model.predict(carried @ true, motion)
    start = base.to_base(carried @ initial)
    log = FilteredRecording(np.arange(len(effort)), *motion, effort)
    own = motion_rows(model, base, log)(model)
    told = solve(joint_stages(own), start, Solver(truncation=1e-8))
    # The estimate about the paper's frames, and with it the combinations there.
    full = np.linalg.solve(carried, nearest(base, told.values, carried @ initial))
    acting = sum(c != NOT_IDENTIFIABLE for c in found.classes)
    table = Table('parameter or combination', 'initial', 'true', 'estimated', title=title)
    for row, text in zip(found.matrix, found.combinations, strict=True):
        values = (v[columns] @ row for v in (initial, true, full))
        table.add_row(text, *(f'{value:.7f}' for value in values))
    console.print(table)
    console.print(
        f'{acting} of {len(names)} parameters act on the joints, '
        f'in {len(found.combinations)} independent combinations, of which joints 1, 2, 3 tell '
        f'{", ".join(map(str, newly_told(rows)))} that joints beyond them do not; largest error '
        f'{np.abs(found.matrix @ (full - true)[columns]).max():.1e}\n'
    )


def show_real_arm(console: Console, folder: Path) -> None:
    """Print the relative torque error on the run that was not fitted."""
    urdf, fitted, held_out = (folder / name for name in RECORDED)
    arm = Arm(urdf.read_text())
    model = ArmModel(arm, DriveModel('symmetric', 'asymmetric', offset=True))
    run = kuka_run(fitted, arm)
    found = identify_motion(model, run, Settings())
    other = kuka_run(held_out, arm)
    motion, effort = other.motion, other.measured
    table = Table('parameters', 'error on run 2 [%]', title='KUKA LWR4+, identified on run 1')
    nominal = found.model.predict(found.model.nominal, motion)
    for name, predicted in (
        ('description', nominal),
        ('base parameters', found.predict(motion)),
        ('physically consistent links', found.model.predict(found.consistent, motion)),
    ):
        table.add_row(name, f'{100.0 * relative_error(effort, predicted):.2f}')
    console.print(table)
    table = Table(
        'least share that is learned', 'told', 'error on run 2 [%]', title='joint by joint'
    )
    start = found.base.to_base(found.model.nominal)
    rows = motion_rows(found.model, found.base, run)(found.model)
    tested = motion_rows(found.model, found.base, other)(found.model)
    for least in (1e-6, 0.02, 0.05, LEAST_SHARE, 0.2):
        told = solve(joint_stages(rows), start, Solver(truncation=least))
        error = 100.0 * relative_error(effort, tested.matrix @ told.values)
        table.add_row(f'{least:g}', f'{(~told.unknown).sum()} of {len(start)}', f'{error:.2f}')
    console.print(table)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('--data', type=Path, help='folder of the recording of a KUKA LWR4+')
    data = parser.parse_args().data
    missing = [name for name in RECORDED if data and not (data / name).exists()]
    if missing:
        parser.error(f'--data {data} has no {", ".join(missing)}')
    console = Console(width=110)
    show_speed(console)
    show_table(console, CYLINDRICAL, 'Khosla and Kanade 1987, table 2: cylindrical robot')
    show_table(console, CMU_DD_ARM_II, 'Khosla and Kanade 1987, table 3: CMU DD Arm II')
    console.print(TABLE_3)
    if data:
        show_real_arm(console, data)


if __name__ == '__main__':
    main()
