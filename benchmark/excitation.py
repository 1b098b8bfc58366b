"""What spectrum analysis and planned experiments are worth.

First table: bias of the base parameters of a simulated three-joint arm whose friction differs by
direction and is unknown, by spectrum analysis and by least squares on the same recording. Least
squares is given the true velocities and accelerations, spectrum analysis finds them from encoders.

Second table: experiments chosen by exchange and by trying every choice, on small grids.

    python benchmark/excitation.py [--runs 20]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from math import comb

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.methods.spectrum import spectral_rows
from load_identification.arm.planning.criteria import CONDITION, ideal_blocks, optimal_design
from load_identification.arm.planning.experiments import feasible_experiments, locked_postures
from load_identification.numerics.weighted_solution import solve
from load_identification.simulation.excited_arm import (
    Case,
    Recording,
    case,
    exhaustive,
    friction,
    planned,
    record,
)
from load_identification.typing_aliases import FloatArray

RATE, NOISE = 500.0, 0.2
"""Of the recording [Hz], and of a torque sample [N m]."""

EXPERIMENTS = 24

SQUARES = {
    'least squares': None,
    'and symmetric friction': DriveModel(coulomb='symmetric', viscous='symmetric'),
    'and the true friction model': DriveModel(coulomb='asymmetric', viscous='asymmetric'),
}
"""Friction modelled by each least-squares estimate."""

GRIDS = ((2, (1, 4), 8), (2, (1, 4), 10), (2, (1, 5), 7), (3, (1, 2, 1), 16))
"""Joints, levels of the grid, experiments to choose."""


def least_squares(
    arm: Case, recording: Recording, torques: FloatArray, drive: DriveModel | None
) -> FloatArray:
    """Return base parameters (runs, p) from torques (runs, n, J)."""
    motion = recording.motion
    columns = arm.regressor(*motion)
    if drive is not None:
        extra = drive.regressor(motion.position, motion.velocity, motion.acceleration)
        columns = np.concatenate([columns, extra], axis=2)
    matrix = columns.reshape(-1, columns.shape[2])
    right = torques.reshape(len(torques), -1).T
    return np.linalg.solve(matrix.T @ matrix, matrix.T @ right)[: len(arm.truth)].T


def bias_table(runs: int, console: Console) -> Table:
    """Compare the estimates."""
    arm = case(3)
    plan = planned(arm, EXPERIMENTS)
    recording = record(plan, RATE)
    clean = recording.frictionless + friction(recording.motion.velocity)
    rng = np.random.default_rng(0)
    found: dict[str, list[FloatArray]] = {name: [] for name in ('spectrum', *SQUARES)}
    for _ in track(range(runs), 'identifying', console=console, transient=True):
        torque = clean + NOISE * rng.standard_normal(clean.shape)
        rows = spectral_rows(
            arm.regressor,
            plan.experiments,
            plan.begins,
            recording.times,
            recording.position,
            torque,
        )
        found['spectrum'].append(solve([rows], np.zeros(len(arm.truth))).values)
        for name, drive in SQUARES.items():
            found[name].extend(least_squares(arm, recording, torque[None], drive))
    table = Table(title=f'Bias over {runs} runs, {plan.path.duration:.0f} s, {RATE:g} Hz')
    for heading in ('base parameter', 'truth', *found):
        table.add_column(heading, justify='left' if heading == 'base parameter' else 'right')
    bias = {name: np.mean(values, axis=0) - arm.truth for name, values in found.items()}
    for k, place in enumerate(arm.base.independent):
        cells = [f'{b[k]:+.4f}' for b in bias.values()]
        table.add_row(arm.base.names[place], f'{arm.truth[k]:.4f}', *cells)
    table.add_section()
    motion = [rng.normal(0.0, scale, (2000, 3)) for scale in (1.0, 1.0, 2.0)]
    columns = arm.regressor(*motion)
    torque_bias = {name: np.sqrt(np.mean((columns @ b) ** 2)) for name, b in bias.items()}
    for heading, of in (
        ('norm', {name: float(np.linalg.norm(b)) for name, b in bias.items()}),
        ('torque rms N m', torque_bias),
    ):
        table.add_row(heading, '', *(f'{value:.4f}' for value in of.values()))
        table.add_row(
            'in those of spectrum', '', *(f'{v / of["spectrum"]:.1f}' for v in of.values())
        )
    return table


def choice_table() -> Table:
    """Compare the exchange with every choice."""
    table = Table(title='Frobenius condition number of the experiments chosen')
    headings = ('joints', 'grid', 'parameters', 'choose', 'choices', 'best', 'exchange')
    for heading in (*headings, 'worse by', 'best s', 'exchange s', 'faster'):
        table.add_column(heading, justify='right')
    for joints, levels, size in GRIDS:
        arm = case(joints)
        postures = locked_postures(arm.limits, levels, seed=0)
        experiments = feasible_experiments(arm.limits, postures)
        blocks = ideal_blocks(arm.regressor, experiments, np.ones(joints))
        begin = time.perf_counter()
        best = exhaustive(blocks, size)
        middle = time.perf_counter()
        found = optimal_design(blocks, size, 0, CONDITION)
        end = time.perf_counter()
        table.add_row(
            str(joints),
            'x'.join(map(str, levels)),
            str(len(arm.truth)),
            f'{size} of {len(blocks)}',
            f'{comb(len(blocks), size)}',
            f'{best.condition:.2f}',
            f'{found.condition:.2f}',
            f'{100.0 * (found.condition / best.condition - 1.0):.1f} %',
            f'{middle - begin:.2f}',
            f'{end - middle:.3f}',
            f'{(middle - begin) / (end - middle):.0f} x',
        )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--runs', type=int, default=20, help='0 leaves the first table out')
    options = parser.parse_args(arguments)
    console = Console(width=118)
    if options.runs:
        console.print(bias_table(options.runs, console))
    console.print(choice_table())
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
