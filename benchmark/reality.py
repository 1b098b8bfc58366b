"""Do the intervals hold with the errors of real cells? Coverage, error, width, what is claimed.

Each case is a kind of error and a kind of motion, run after run with another robot, motion, load,
cell and noise, through the whole pipeline from joint states and raw wrenches. At each look, of
what is called identified: the share of 95 % intervals that hold the truth for mass, centre of
mass, inertia; squared Mahalanobis distance of the truth in the published covariance (median; 9.3
expected with nothing pulled to a prior); root mean square error over root mean square stated
standard deviation; half-width of the intervals (median); the share of runs in which it is
claimed at all; the worst error in standard deviations, and how many are beyond four; in how many
runs there was a warning, and an event, of which none is right.

    python benchmark/reality.py [--runs 20] [--case NAME ...] [--robots NAME ...]
        [--seconds 1 2 4 10] [--set systematic_errors=none] [--budget]

A name is a case or the beginning of some; `--list` prints all. `--recording PATH` is a real one
of poses with one load of known mass, shuffled again and again.

`--budget` judges the calibration part of the error budget. Each run is repeated in a perfect cell
with the same robot, motion, load and noise: the difference of the estimates is the error that
really came from the cell. Printed is stated / real = 1 / rms(difference / std of the calibration
part) [-], both in kg or m, over all runs and for the centre of mass over the axes, of what both
runs call identified; above 1 the part is too wide. The std is that in the cell with errors. +- is
half of the 95 % interval, from the scatter between runs, and `of` the number of values.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path as FilePath

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from reality_cases import CASES, ROBOTS, SHAPES, Case
from shuffled_poses import shuffled

from load_identification.errors import RecordingError
from load_identification.estimation.belief.claim import CALIBRATION
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import TABLE, Parameters, check
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.simulation.cells import Path, Stages, record, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import LONGEST_POSE, MOTIONS
from load_identification.simulation.robots import Arm
from load_identification.simulation.sensor_errors import NO_ERRORS
from load_identification.typing_aliases import FloatArray

GROUPS = {'mass': slice(0, 1), 'centre': slice(1, 4), 'inertia': slice(4, 10)}
LONG = 120.0
"""Runs longer than this are sampled at 100 Hz, others at 500 Hz [s]."""

FEED = 5.0
"""Samples are handed on for so long at a time [s]."""


@dataclass(frozen=True)
class Look:
    """One estimate and the truth.

    Attributes
    ----------
    z : (10,) array
        Error over standard deviation, message order; NaN where not identified [-].
    error, std : (10,) arrays
        NaN where not identified [kg, m, kg m²].
    calibration : (10,) array
        Part of `std` by the errors of the cell [kg, m, kg m²].
    relative : (3,) array
        Half-width of mass in parts of it, of the centre of mass, of inertia in parts of the
        largest moment, the largest of each; NaN where one is not identified [-, m, -].
    distance : float
        Squared Mahalanobis distance of the truth [-].
    """

    z: FloatArray
    error: FloatArray
    std: FloatArray
    calibration: FloatArray
    relative: FloatArray
    distance: float
    warned: bool
    event: bool


def judged(estimate: PayloadEstimate, load: InertialParameters, event: bool) -> Look:
    """Compare an estimate with the truth."""
    truth = to_message_order(load.to_vector())
    known = estimate.identified
    error = np.where(known, estimate.values - truth, np.nan)
    std = np.where(known, estimate.std, np.nan)
    widths = [1.96 * std[group].max() for group in GROUPS.values()]
    scale = np.array([load.mass, 1.0, truth[[4, 7, 9]].max()])
    off = estimate.parameters - load.to_vector()
    covariance = estimate.covariance[:10, :10]
    unit = np.sqrt(np.diag(covariance))
    solved = np.linalg.lstsq(covariance / np.outer(unit, unit), off / unit, rcond=1e-12)[0]
    return Look(
        error / std,
        error,
        std,
        np.sqrt(estimate.budget[CALIBRATION]),
        np.array(widths) / scale,
        float(off / unit @ solved),
        bool(estimate.warnings),
        event,
    )


def observed(
    parameters: Parameters,
    mount: Arm,
    joints: JointBatch,
    wrenches: WrenchBatch,
    times: Sequence[float],
) -> Iterator[tuple[PayloadEstimate, bool]]:
    """Carry a recording through the stages; yield the estimate and whether anything happened."""
    stages = Stages(parameters, mount.urdf, mount.sensor_frame)
    feeds = sorted({*times, *np.arange(FEED, max(times), FEED).tolist()})
    until_stamps = wrenches.stamps[0] + np.round(1e9 * np.array(feeds)).astype(np.int64)
    parts = [
        [slice(*ends) for ends in pairwise([0, *np.searchsorted(stamps, until_stamps, 'right')])]
        for stamps in (joints.stamps, wrenches.stamps)
    ]
    for until, mine, its in zip(feeds, *parts, strict=True):
        stages.update(joints.select(mine), wrenches.select(its))
        estimate = stages.estimator.estimate() if until in times else None
        if estimate is not None:
            yield estimate, bool(stages.estimator.events.since(0))


@lru_cache(maxsize=128)
def drawn_path(robot: str, motion: str, duration: float, seed: int) -> Path:
    """Draw a motion and sample it; cases that differ in errors alone have it in common."""
    mount = ROBOTS[robot]
    drawn = MOTIONS[motion](mount, duration, np.random.default_rng([seed, 0]))
    return sample(mount, drawn, duration, 500.0 if duration <= LONG else 100.0)


@lru_cache(maxsize=128)
def drawn_poses(robot: str, motion: str, count: int, seed: int) -> Path:
    """Draw so many poses, and sample the motion until the end of the last rest."""
    mount = ROBOTS[robot]
    drawn = MOTIONS[motion](mount, count * LONGEST_POSE, np.random.default_rng([seed, 0]))
    return sample(mount, drawn, drawn.holds[count - 1] + 0.5, 500.0)


def run(case: Case, robot: str, seed: int, parameters: Parameters) -> list[Look]:
    """Simulate and identify once."""
    if case.motion in ('poses', 'trend'):
        path = drawn_poses(robot, case.motion, int(max(case.looks)), seed)
        times = [path.motion.holds[int(k) - 1] for k in case.looks]
    else:
        path = drawn_path(robot, case.motion, max(case.looks) + 1.0, seed)
        begins = path.motion.holds[0] if path.motion.holds else 0.0
        times = [begins + t for t in case.looks]
    rng = np.random.default_rng([seed, 1])
    load = drawn_load(rng, float(np.exp(rng.uniform(*np.log(case.mass)))))
    joints, wrenches = record(path, load, case.conditions, seed)
    mount = ROBOTS[robot]
    there = replace(parameters, gravity=mount.gravity)
    return [judged(e, load, event) for e, event in observed(there, mount, joints, wrenches, times)]


def stated_by_real(pairs: Sequence[tuple[Look, Look]], group: slice) -> str:
    """Return stated / real calibration part of a group, half its 95 % interval, count of values.

    `pairs`: looks in a cell with errors, and in a perfect one.
    """
    off = np.array([(a.error - b.error)[group] / a.calibration[group] for a, b in pairs])
    known = np.isfinite(off)
    count, squares = int(known.sum()), np.where(known, off, 0.0) ** 2
    if not squares.any():
        # Nothing is claimed, or the cell has no errors.
        return f'{"-":>6} {"-":>4} {count:5}'
    mean = squares.sum() / count
    # Runs are independent, the axes of one are not.
    scatter = np.linalg.norm((squares - mean * known).sum(axis=1)) / (count * mean)
    ratio = 1.0 / np.sqrt(mean)
    return f'{ratio:6.2f} {0.98 * ratio * scatter:4.2f} {count:5}'


def budget_table(name: str, case: Case, pairs: Sequence[tuple[list[Look], list[Look]]]) -> str:
    """Return the lines of one case, from runs in the cell with errors and in a perfect one."""
    lines = []
    for k, at in enumerate(case.looks):
        both = [(a[k], b[k]) for a, b in pairs if min(len(a), len(b)) > k]
        parts = [stated_by_real(both, GROUPS[group]) for group in ('mass', 'centre')]
        lines.append(f'{name:24} {at:5g} | {len(both):4} | {" | ".join(parts)}')
    return '\n'.join(lines)


HEAD = (
    f'{"case":24} {"at":>5} | {"claimed":^14} | {"held":^14} {"all":>5} | {"d2":>5} | '
    f'{"error / std":^14} | {"+- m %  c mm   I %":^18} | {"worst":>6} {"> 4":>6} | warned events'
)


BUDGET_HEAD = (
    f'{"case":24} {"at":>5} | {"runs":>4} | {"mass":>6} {"+-":>4} {"of":>5} | '
    f'{"centre":>6} {"+-":>4} {"of":>5}'
)


def row(name: str, at: float, looks: Sequence[Look]) -> str:
    """Return a line of the table."""
    z = np.array([look.z for look in looks])
    error, std = np.array([x.error for x in looks]), np.array([x.std for x in looks])
    claimed = np.isfinite(z)

    def each(values: list[float]) -> str:
        return ' '.join(f'{v:4.2f}' if np.isfinite(v) else '   -' for v in values)

    held, ratio, share = [], [], []
    for group in GROUPS.values():
        mine = claimed[:, group]
        share.append(float(mine.mean()))
        count = max(int(mine.sum()), 1)
        held.append(float((np.abs(z[:, group]) <= 1.96).sum() / count) if mine.any() else np.nan)
        squares = np.nansum(error[:, group] ** 2), np.nansum(std[:, group] ** 2)
        ratio.append(float(np.sqrt(squares[0] / squares[1])) if mine.any() else np.nan)
    total = max(int(claimed.sum()), 1)
    beyond = int((np.abs(z) > 4.0).sum())
    relative = np.array([look.relative for look in looks])
    known = [column[np.isfinite(column)] for column in relative.T]
    w = [
        f'{unit * np.median(column):.2f}' if column.size else '-'
        for unit, column in zip((100.0, 1e3, 100.0), known, strict=True)
    ]
    worst = np.nanmax(np.abs(z)) if claimed.any() else np.nan
    return (
        f'{name:24} {at:5g} | {each(share)} | {each(held)} '
        f'{(np.abs(z) <= 1.96).sum() / total:5.3f} | '
        f'{np.median([x.distance for x in looks]):5.1f} | {each(ratio)} | '
        f'{w[0]:>5} {w[1]:>5} {w[2]:>6} | {worst:6.1f} {beyond / total:6.4f} | '
        f'{np.mean([x.warned for x in looks]):6.2f} {np.mean([x.event for x in looks]):6.2f}'
    )


def table(name: str, case: Case, outcomes: Sequence[Sequence[Look]]) -> list[str]:
    """Return the lines of one case."""
    return [
        row(name, at, [o[k] for o in outcomes if len(o) > k]) for k, at in enumerate(case.looks)
    ]


def chosen(names: Sequence[str]) -> dict[str, Case]:
    """Return the cases meant, all where none is named."""
    if not names:
        return CASES
    found = {n: c for n, c in CASES.items() if any(n.startswith(name) for name in names)}
    if not found:
        raise SystemExit(f'no case begins with {", ".join(names)}; --list prints them')
    return found


def parameters_with(pairs: Sequence[str]) -> Parameters:
    """Return the parameters with NAME=VALUE put in."""
    values = {}
    for name, _, text in (pair.partition('=') for pair in pairs):
        if name not in TABLE:
            raise SystemExit(f'no parameter {name}')
        number = text if isinstance(TABLE[name].default, str) else float(text)
        values[name] = check(name, number)
    return replace(Parameters(), **values)


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=20, help='of each case')
    parser.add_argument('--case', nargs='*', default=[], metavar='NAME', help='see --list')
    parser.add_argument('--robots', nargs='*', default=SHAPES, choices=[*ROBOTS])
    parser.add_argument('--seconds', nargs='*', type=float, help='looks, where it is timed')
    parser.add_argument('--mass', nargs=2, type=float, help='range of the load [kg]')
    parser.add_argument('--seed', type=int, default=0, help='of the first run')
    parser.add_argument('--set', nargs='*', default=[], metavar='NAME=VALUE', help='parameters')
    parser.add_argument('--recording', type=FilePath, help='of poses, with one load')
    parser.add_argument('--true-mass', type=float, default=0.2205, help='in the recording [kg]')
    parser.add_argument('--budget', action='store_true', help='judge its calibration part instead')
    parser.add_argument('--list', action='store_true', help='print the names of the cases')
    arguments = parser.parse_args()
    if arguments.list:
        print('\n'.join(CASES))
        return
    parameters = parameters_with(arguments.set)
    if arguments.recording:
        try:
            print(shuffled(arguments.recording, arguments.true_mass, arguments.runs, parameters))
        except RecordingError as error:
            parser.error(str(error))
        return
    head = BUDGET_HEAD if arguments.budget else HEAD
    print(f'{arguments.runs} runs of each case, robots {", ".join(arguments.robots)}\n{head}')
    every: list[Look] = []
    began = time.perf_counter()
    for name, case in chosen(arguments.case).items():
        if arguments.seconds and case.longer:
            case = replace(case, looks=tuple(arguments.seconds))
        if arguments.mass:
            case = replace(case, mass=tuple(arguments.mass))
        seeds = range(arguments.seed, arguments.seed + arguments.runs)
        robots = [arguments.robots[seed % len(arguments.robots)] for seed in seeds]
        outcomes = [run(case, *of, parameters) for of in zip(robots, seeds, strict=True)]
        if arguments.budget:
            perfect = replace(case, conditions=replace(case.conditions, errors=NO_ERRORS, tied=()))
            others = [run(perfect, *of, parameters) for of in zip(robots, seeds, strict=True)]
            pairs = list(zip(outcomes, others, strict=True))
            print(budget_table(name, case, pairs), flush=True)
            continue
        for line in table(name, case, outcomes):
            print(line, flush=True)
        every += [look for o in outcomes for look in o]
    if every:
        print(row('all of these', np.nan, every))
    print(f'{time.perf_counter() - began:.0f} s')


if __name__ == '__main__':
    main()
