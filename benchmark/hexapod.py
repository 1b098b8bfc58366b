"""What the friction weighting is worth on a hexapod, and which procedure is better.

A hexapod in MuJoCo, its platform alone and with a load of 22.26 kg, with stiction, Stribeck
effect and a wandering Coulomb level in its legs and the noise of pressure sensors. Several
machines are drawn, no two with the same friction, and several draws of the noise for each. For
every weighting and both procedures it prints how far the load is from the truth in the root mean
square and at worst, and in what share of the runs the 95 % intervals hold.

    python benchmark/hexapod.py [--machines 10] [--draws 10] [--duration 40]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from load_identification.estimation.payload_estimator import EstimatorSettings, PayloadEstimator
from load_identification.parallel.body_estimate import BodyEstimate
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.geometry import FrictionSettings, Geometry, read_geometry
from load_identification.parallel.hexapod_filter import HexapodFilter, counting
from load_identification.parallel.mechanism import Mechanism
from load_identification.parallel.two_step import TwoStepEstimator
from load_identification.signals.differentiator import Differentiator
from load_identification.typing_aliases import FloatArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / 'test'))
from hexapod_mujoco import (  # noqa: E402
    LOAD,
    PLATFORM,
    Run,
    Sensors,
    draw_friction,
    leg_batch,
    simulate,
)

GRAVITY = (0.0, 0.0, -9.80665)
AMPLITUDE = np.deg2rad([20.0, 20.0, 26.0])
FREQUENCY = np.array([0.60, 0.77, 0.47])
"""Of roll, pitch and yaw [rad, Hz]; the plan shrinks the amplitudes to the machine's limits."""

PROCEDURES = ('one-step', 'two-step')
QUANTITIES = (
    'm', 'cx', 'cy', 'cz', 'I1', 'I2', 'I3',
    'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz',
)  # fmt: skip
"""Of the load: mass, centre of mass, principal moments, and the inertia entry by entry."""

GOALS = np.array([0.01 * LOAD.mass] + 3 * [0.002] + list(0.05 * LOAD.principal().moments))
"""1 % of the mass, 2 mm, 5 % of each principal moment."""

IN_PERCENT = slice(4, 7)


def truth() -> FloatArray:
    """Return the true values of `QUANTITIES`."""
    entries = LOAD.inertia_about_center_of_mass[np.triu_indices(3)]
    return np.concatenate([[LOAD.mass], LOAD.center_of_mass, LOAD.principal().moments, entries])


def weightings(geometry: Geometry) -> dict[str, FrictionSettings]:
    """Return friction settings by the name of their weighting."""
    friction = geometry.friction
    if friction is None:
        raise RuntimeError('the geometry has no friction')
    # Speeds below which nothing is: every sample counts, and every leg's friction is learned.
    never = replace(friction, low_speed=-2.0, full_speed=-1.0)
    mean = replace(friction, measure='mean', low_speed=0.10, full_speed=0.15)
    return {'none': never, 'mean speed (paper)': mean, 'slowest leg': friction}


@dataclass(frozen=True)
class Outcome:
    """Errors and standard deviations, (runs, quantities), by weighting and procedure."""

    errors: dict[tuple[str, str], FloatArray]
    deviations: dict[tuple[str, str], FloatArray]


def quantities(load: BodyEstimate) -> tuple[FloatArray, FloatArray]:
    """Return the values of `QUANTITIES` and their standard deviations."""
    moments, moments_std = load.principal_moments()
    values, std = load.values, load.std
    return (
        np.concatenate([values[:4], moments, values[4:]]),
        np.concatenate([std[:4], moments_std, std[4:]]),
    )


def identify(geometry: Geometry, run: Run, sensors: Sensors, seed: int) -> dict[str, BodyEstimate]:
    """Identify what moves on the legs by both procedures, from one draw of the noise."""
    mechanism = Mechanism(geometry)
    stage = HexapodFilter(mechanism, Differentiator(20.0, 50.0, 0.1), GRAVITY, 0.1)
    platform = stage.process(leg_batch(mechanism, run, sensors, seed))
    one, two = PayloadEstimator(EstimatorSettings()), TwoStepEstimator()
    if platform is None:
        raise RuntimeError(f'no sample: {stage.dropped}')
    one.update(counting(platform))
    two.update(platform.filtered, platform.weight)
    first, second = one.estimate(), two.estimate()
    if first is None or second is None:
        raise RuntimeError(f'no estimate: {stage.dropped}')
    return {'one-step': BodyEstimate.of(first), 'two-step': second}


def simulated(geometry: Geometry, machine: int, duration: float) -> tuple[Run, Run]:
    """Return the runs of one machine: platform alone, and with the load."""
    mechanism = Mechanism(geometry)
    motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, duration)
    friction = draw_friction(machine)
    alone = simulate(mechanism, PLATFORM, motion, friction)
    return alone, simulate(mechanism, PLATFORM + LOAD, motion, friction)


def monte_carlo(
    geometry: Geometry,
    settings: dict[str, FrictionSettings],
    pairs: Sequence[tuple[Run, Run]],
    draws: int,
    sensors: Sensors,
) -> Iterator[dict[tuple[str, str], tuple[FloatArray, FloatArray]]]:
    """Yield values and standard deviations of every run, by weighting and procedure."""
    for machine, (alone, loaded) in enumerate(pairs):
        for draw in range(draws):
            seed = 2 * (machine * draws + draw)
            found = {}
            for name, friction in settings.items():
                weighted = replace(geometry, friction=friction)
                platform = identify(weighted, alone, sensors, seed)
                both = identify(weighted, loaded, sensors, seed + 1)
                for procedure in PROCEDURES:
                    found[name, procedure] = quantities(both[procedure] - platform[procedure])
            yield found


def gather(runs: Sequence[dict[tuple[str, str], tuple[FloatArray, FloatArray]]]) -> Outcome:
    """Put the runs together."""
    keys = list(runs[0])
    return Outcome(
        {key: np.array([run[key][0] for run in runs]) - truth() for key in keys},
        {key: np.array([run[key][1] for run in runs]) for key in keys},
    )


def shown(values: FloatArray) -> list[str]:
    """Return the first seven quantities in words: per cent, mm, per cent."""
    scaled = values[:7] / np.concatenate([[LOAD.mass / 100.0], 3 * [1e-3], truth()[4:7] / 100.0])
    return [f'{value:.2f}' for value in scaled]


def tables(outcome: Outcome, runs: int) -> Iterator[Table]:
    """Return the tables of errors and of coverage."""
    errors = Table(title=f'Error of the load in {runs} runs: rms, and worst of all runs')
    coverage = Table(title=f'Share of {runs} runs in which the 95 % interval holds [%]')
    columns = ('weighting', 'procedure')
    units = ('m %', 'cx mm', 'cy mm', 'cz mm', 'I1 %', 'I2 %', 'I3 %')
    for name in (*columns, '', *units, 'runs within goals'):
        errors.add_column(name, justify='left' if name in columns else 'right')
    for name in (*columns, *QUANTITIES, 'all'):
        coverage.add_column(name, justify='left' if name in columns else 'right')
    for key, error in outcome.errors.items():
        within = (np.abs(error[:, :7]) <= GOALS).all(axis=1)
        rms = np.sqrt(np.mean(error**2, axis=0))
        errors.add_row(*key, 'rms', *shown(rms), f'{np.sum(within)} of {runs}')
        errors.add_row('', '', 'worst', *shown(np.abs(error).max(axis=0)), '')
        held = np.abs(error) <= 1.96 * outcome.deviations[key]
        share = [*held.mean(axis=0), held.mean()]
        coverage.add_row(*key, *(f'{100.0 * s:.0f}' for s in share))
    yield errors
    yield coverage


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--machines', type=int, default=10)
    parser.add_argument('--draws', type=int, default=10, help='of the noise for each machine')
    parser.add_argument('--duration', type=float, default=40.0, help='of each of two motions, s')
    options = parser.parse_args(arguments)
    console = Console()
    geometry = read_geometry(ROOT / 'config' / 'hexapod.yaml')
    machines = range(options.machines)
    pairs = [
        simulated(geometry, machine, options.duration)
        for machine in track(machines, 'simulating', console=console, transient=True)
    ]
    total = options.machines * options.draws
    found = monte_carlo(geometry, weightings(geometry), pairs, options.draws, Sensors())
    runs = list(track(found, 'identifying', total=total, console=console, transient=True))
    for table in tables(gather(runs), total):
        console.print(table)
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
