"""What the friction weighting is worth on a hexapod, and which procedure is better.

A hexapod in MuJoCo, its platform alone and with a load of 22.26 kg, with stiction, Stribeck
effect and a wandering Coulomb level in its legs and the noise of pressure sensors. Every run is
another one: other friction, another plate and another place of it, other phases of the motions,
other noise. So what friction does to the estimates is random over the runs, as intervals assume.
For every weighting and both procedures it prints how far the load is from the truth in the root
mean square and at worst, and in what share of the runs the 95 % intervals hold.

    python benchmark/hexapod.py [--runs 100] [--duration 60] [--first 0]
        [--weighting none 'slowest leg'] [--recordings FOLDER]

What MuJoCo has simulated is kept in the folder, for the next time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.box import MARKDOWN
from rich.console import Console
from rich.progress import track
from rich.table import Table

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.shapes import shape_of
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.geometry_file import FrictionSettings, Geometry
from load_identification.parallel.leg_filter import HexapodFilter
from load_identification.parallel.mechanism import Mechanism, rotation_exponential
from load_identification.parallel.two_step import BodyEstimate, TwoStepEstimator
from load_identification.signals.differentiator import Differentiator
from load_identification.simulation.hexapod import (
    AMPLITUDE,
    FREQUENCY,
    GEOMETRY,
    GRAVITY,
    PLATFORM,
    with_noise,
)
from load_identification.simulation.in_mujoco.hexapod import LegFriction, Run, simulate
from load_identification.simulation.sensors import box
from load_identification.typing_aliases import BoolArray, FloatArray

WIDTH = 130
"""Of the tables [characters]."""

NOTHING = 10.0
"""A standard deviation above this is the width of a prior: nothing is claimed [kg, m, kg m²]."""

QUANTITIES = (
    'm', 'cx', 'cy', 'cz', 'I1', 'I2', 'I3',
    'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz',
)  # fmt: skip
"""Of the load: mass, centre of mass, principal moments, and the inertia entry by entry."""

SETTINGS = EstimatorSettings(force_noise=1.0, torque_noise=0.2)
"""Of the one-step estimator: what leg forces with friction are like [N, N m]."""

MASS, DENSITY = 22.26, 7850.0
"""Mass of the calibrated load of Schulte and Gerland [kg], and its density, assumed to be that of
a steel plate [kg/m³]."""


def draw_load(rng: np.random.Generator) -> InertialParameters:
    """Draw the load: a plate of the paper's mass that lies somewhere on the platform, in S."""
    length, width = rng.uniform(0.45, 0.55), rng.uniform(0.32, 0.38)
    height = MASS / (DENSITY * length * width)
    x, y = rng.uniform(-0.04, 0.04, 2)
    turn = rotation_exponential(np.array([[0.0, 0.0, rng.uniform(-np.pi, np.pi)]]))[0]
    return box(MASS, np.array([length, width, height]), [x, y, 0.5 * height], turn)


def draw_friction(rng: np.random.Generator) -> LegFriction:
    """Draw the friction of six pneumatic legs, different in each leg."""
    return LegFriction(
        level=rng.uniform(16.0, 28.0, 6),
        excess=rng.uniform(16.0, 28.0, 6),
        viscous=rng.uniform(40.0, 80.0, 6),
        phase=rng.uniform(0.0, 2.0 * np.pi, 6),
        stribeck_speed=rng.uniform(0.012, 0.016),
        swing=rng.uniform(0.10, 0.20),
    )


def truth(load: InertialParameters) -> FloatArray:
    """Return the true values of `QUANTITIES`."""
    entries = load.inertia_about_center_of_mass[np.triu_indices(3)]
    return np.concatenate([[load.mass], load.center_of_mass, load.principal().moments, entries])


def goals(true: FloatArray) -> FloatArray:
    """Return 1 % of the mass, 2 mm, 5 % of each principal moment, of truths (..., quantities)."""
    lengths = np.full((*true.shape[:-1], 3), 0.002)
    return np.concatenate([0.01 * true[..., :1], lengths, 0.05 * true[..., 4:7]], axis=-1)


def weightings(geometry: Geometry) -> dict[str, FrictionSettings]:
    """Return friction settings by the name of their weighting."""
    friction = geometry.friction
    if friction is None:
        raise RuntimeError('the geometry has no friction')
    # Speeds below which nothing is: every sample counts, and every leg's friction is learned.
    never = replace(friction, low_speed=-2.0, full_speed=-1.0)
    mean = replace(friction, measure='mean', low_speed=0.10, full_speed=0.15)
    return {'none': never, 'mean speed (paper)': mean, 'slowest leg': friction}


Trial = tuple[InertialParameters, Run, Run]
"""A load, and a machine on two motions, without it and with it."""


def draw_trial(
    geometry: Geometry, seed: int, duration: float, folder: Path | None = None
) -> Trial:
    """Draw load, friction and phases, and simulate both motions where the folder lacks them."""
    mechanism, rng = Mechanism(geometry), np.random.default_rng(seed)
    load, friction = draw_load(rng), draw_friction(rng)
    runs = []
    for name, body in (('alone', PLATFORM), ('loaded', PLATFORM + load)):
        phase = rng.uniform(0.0, 2.0 * np.pi, 3)
        # The second motion is some time after the first.
        now = replace(friction, phase=rng.uniform(0.0, 2.0 * np.pi, 6))
        path = folder / f'{seed}-{duration:g}-{name}.npz' if folder is not None else None
        if path is not None and path.exists():
            runs.append(Run(**np.load(path)))
            continue
        motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, duration, phase)
        runs.append(simulate(mechanism, body, motion, now))
        if path is not None:
            np.savez(path, **vars(runs[-1]))
    return load, *runs


Found = dict[tuple[str, str], tuple[FloatArray, FloatArray]]
"""Values and standard deviations of `QUANTITIES` by weighting and procedure."""


def quantities(load: BodyEstimate) -> tuple[FloatArray, FloatArray]:
    """Return the values of `QUANTITIES` and their standard deviations."""
    shape = shape_of(InertialParameters.from_vector(load.parameters), load.covariance)
    values, std = load.values, load.std
    return (
        np.concatenate([values[:4], shape.moments, values[4:]]),
        np.concatenate([std[:4], shape.moment_std, std[4:]]),
    )


def identify(geometry: Geometry, run: Run, seed: int) -> dict[str, BodyEstimate]:
    """Identify what moves on the legs by both procedures, from one draw of the noise."""
    mechanism = Mechanism(geometry)
    stage = HexapodFilter(mechanism, Differentiator(20.0, 50.0, 0.1), GRAVITY.tolist(), 0.1)
    exact = run.length, run.rate, run.force
    batch = stage.update(with_noise(mechanism, run.stamps, exact, np.random.default_rng(seed)))
    one_step, two_step = PayloadEstimator(SETTINGS), TwoStepEstimator()
    if batch is not None:
        one_step.update(batch)
        two_step.update(batch)
    by_one, by_two = one_step.estimate(), two_step.estimate()
    if by_one is None or by_two is None:
        raise RuntimeError(f'no estimate: {stage.dropped}')
    found = BodyEstimate(by_one.parameters, by_one.covariance[:10, :10])
    return {'one-step': found, 'two-step': by_two}


def compare(
    geometry: Geometry, settings: dict[str, FrictionSettings], trial: Trial, seed: int
) -> Found:
    """Identify the load of a trial with every weighting, by both procedures."""
    found = {}
    for name, friction in settings.items():
        weighted = replace(geometry, friction=friction)
        _, alone, loaded = trial
        platform = identify(weighted, alone, 2 * seed)
        both = identify(weighted, loaded, 2 * seed + 1)
        for procedure, estimate in both.items():
            found[name, procedure] = quantities(estimate - platform[procedure])
    return found


@dataclass(frozen=True)
class Outcome:
    """Truths, errors and standard deviations, (runs, quantities), by weighting and procedure."""

    truth: FloatArray
    errors: dict[tuple[str, str], FloatArray]
    deviations: dict[tuple[str, str], FloatArray]

    def claimed(self, key: tuple[str, str]) -> FloatArray:
        """Return the root mean square of the standard deviations, NaN where nothing is claimed."""
        mean = np.sqrt(np.mean(self.deviations[key] ** 2, axis=0))
        return np.where(mean > NOTHING, np.nan, mean)

    def within(self, key: tuple[str, str]) -> BoolArray:
        """Return which runs meet all goals, (runs,)."""
        return (np.abs(self.errors[key][:, :7]) <= goals(self.truth)).all(axis=1)

    def held(self, key: tuple[str, str]) -> BoolArray:
        """Return which 95 % intervals hold the truth, (runs, quantities)."""
        return np.abs(self.errors[key]) <= 1.96 * self.deviations[key]

    def coverage(self, key: tuple[str, str]) -> FloatArray:
        """Return the share of runs in which they do, NaN where nothing is claimed, then all."""
        share = np.where(np.isnan(self.claimed(key)), np.nan, self.held(key).mean(axis=0))
        return np.append(share, share.mean())


def gather(loads: Sequence[InertialParameters], runs: Sequence[Found]) -> Outcome:
    """Put the runs together."""
    true = np.array([truth(load) for load in loads])
    return Outcome(
        true,
        {key: np.array([run[key][0] for run in runs]) - true for key in runs[0]},
        {key: np.array([run[key][1] for run in runs]) for key in runs[0]},
    )


def tables(outcome: Outcome) -> Iterator[Table]:
    """Return the tables of errors and of coverage."""
    runs = len(outcome.truth)
    errors = Table(
        title=f'Error of the load in {runs} runs, and the standard deviation claimed', box=MARKDOWN
    )
    coverage = Table(
        title=f'Share of {runs} runs in which the 95 % interval holds [%]', box=MARKDOWN
    )
    columns = ('weighting', 'procedure')
    units = ('m %', 'cx mm', 'cy mm', 'cz mm', 'I1 %', 'I2 %', 'I3 %')
    for name in (*columns, '', *units, 'within goals'):
        errors.add_column(name, justify='left' if name in columns else 'right')
    for name in (*columns, *QUANTITIES, 'all'):
        coverage.add_column(name, justify='left' if name in columns else 'right')
    # The goals are 1 %, 2 mm and 5 %.
    unit = goals(outcome.truth) / [1.0, 2.0, 2.0, 2.0, 5.0, 5.0, 5.0]
    for key, error in outcome.errors.items():
        scaled = error[:, :7] / unit
        claimed = np.sqrt(np.mean((outcome.deviations[key][:, :7] / unit) ** 2, axis=0))
        within = f'{np.sum(outcome.within(key))} of {runs}'
        rows = {
            'rms': np.sqrt(np.mean(scaled**2, axis=0)),
            'mean': np.mean(scaled, axis=0),
            'worst': np.abs(scaled).max(axis=0),
            'std': np.where(np.isnan(outcome.claimed(key)[:7]), np.nan, claimed),
        }
        for name, values in rows.items():
            first = (*key, name) if name == 'rms' else ('', '', name)
            last = within if name == 'rms' else ''
            errors.add_row(*first, *(_number(value) for value in values), last)
        coverage.add_row(*key, *(_number(100.0 * s, 0) for s in outcome.coverage(key)))
    yield errors
    yield coverage


def _number(value: float, digits: int = 2) -> str:
    """Return a number, or a dash where nothing is claimed."""
    return '-' if np.isnan(value) else f'{value:.{digits}f}'


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    settings = weightings(GEOMETRY)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--first', type=int, default=0, help='seed of the first run')
    parser.add_argument('--duration', type=float, default=60.0, help='of each of two motions, s')
    parser.add_argument('--weighting', nargs='+', choices=settings, default=list(settings))
    parser.add_argument('--recordings', type=Path, help='folder for what is simulated')
    options = parser.parse_args(arguments)
    console = Console(width=WIDTH)
    settings = {name: settings[name] for name in options.weighting}
    if options.recordings is not None:
        options.recordings.mkdir(parents=True, exist_ok=True)
    loads, runs = [], []
    seeds = range(options.first, options.first + options.runs)
    for seed in track(seeds, 'running', console=console, transient=True):
        trial = draw_trial(GEOMETRY, seed, options.duration, options.recordings)
        loads.append(trial[0])
        runs.append(compare(GEOMETRY, settings, trial, seed))
    for table in tables(gather(loads, runs)):
        console.print(table)
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
