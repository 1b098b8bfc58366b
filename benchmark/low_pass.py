"""A sensor whose driver low-passes the wrench: what is claimed, what is said.

    python benchmark/low_pass.py [--runs 8] [--seed 0] [--kinds first second mean delay none]
        [--cutoffs 1.5 5 10 15 30 73] [--motions rich pauses tool-down] [--words]

Each run draws a robot, a motion, a load of 0.3 to 5 kg, an ordinary cell in every second run, and
the rate at which the filtered wrench is published, 100 to 1000 Hz; in every third run another load
is picked up after 8 s. Of mass, centre of mass and inertia: the share of the looks, once a second,
in which each is claimed, that of the 95 % intervals that hold the truth, and the worst error in
standard deviations; how many are beyond four; and in how many runs something was said at any look:
of a low-pass, of a delay, of ringing, of anything else. `delay` is a delay without a low-pass, as
long as that of first order.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from reality import GROUPS, Look, judged

from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion
from load_identification.simulation.cells import Conditions, Stages, published, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import LOW_PASSES, CellErrors
from load_identification.simulation.sensors import WRIST_SENSOR, load_wrench
from load_identification.typing_aliases import FloatArray

SECONDS, RATE = 21.0, 1000.0
"""Of each run [s], and that of the sensor's own samples [Hz]."""

LOOKS = tuple(np.arange(1.0, SECONDS, 1.0).tolist())
GRASPED = 8.0
"""Time of the grasp [s]."""

EVERY = (1, 2, 4, 8, 10)
"""One of so many of the sensor's samples is published."""

ROBOTS = ('puma', 'six_joints', 'scara', 'seven_joints')

SAID = {
    'low-pass': 'low-pass',
    'delay': 'set wrench_delay',
    'beyond': 'is more than',
    'rings': 'rings at',
    'compliance': 'give way as on a spring',
    'set-up?': 'the set-up may be wrong',
}
"""What words are looked for."""


@dataclass(frozen=True)
class Outcome:
    """Of one run: the looks, and what was said in the end and at any time."""

    looks: list[Look]
    words: str
    cause: str
    ever: frozenset[str]


def run(
    low_pass: tuple[str, float] | None, motion: str, seed: int, parameters: Parameters
) -> Outcome:
    """Simulate and identify once."""
    mount = MOUNTS[ROBOTS[seed % len(ROBOTS)]]
    rng = np.random.default_rng([seed, 1])
    path = sample(mount, MOTIONS[motion](mount, SECONDS, rng), SECONDS, RATE)
    first, then = (drawn_load(rng, float(np.exp(rng.uniform(*np.log([0.3, 5.0]))))) for _ in '12')
    grasped = GRASPED if seed % 3 == 2 else np.inf
    steps = replace(WRIST_SENSOR, velocity_noise=1e-4 if seed % 5 else None)
    errors = CellErrors() if seed % 2 else CellErrors().times(0.0)
    late, kind = 0.0, low_pass and low_pass[0]
    if low_pass and kind == 'delay':
        low_pass, late = None, 1.0 / (2.0 * np.pi * low_pass[1])
    conditions = Conditions(errors, low_pass=low_pass, sensors=steps)

    def exerted(frame: FrameMotion) -> FloatArray:
        after = (path.stamps * 1e-9 >= grasped)[:, None]
        return np.where(after, load_wrench(first + then, frame), load_wrench(first, frame))

    joints, wrenches = published(path, exerted, conditions, seed)
    joints = joints.select(slice(None, None, 4))
    wrenches = wrenches.select(slice(None, None, int(rng.choice(EVERY))))
    wrenches = replace(wrenches, stamps=wrenches.stamps + round(1e9 * late))
    stages = Stages(replace(parameters, gravity=mount.gravity), mount.urdf, mount.sensor_frame)
    looks, words, cause, ever, before = [], '', '', set(), -1
    for until in LOOKS:
        end = round(1e9 * until)
        parts = [
            stream.select(slice(*np.searchsorted(stream.stamps, [before, end], 'right')))
            for stream in (joints, wrenches)
        ]
        stages.update(*parts)
        before = end
        estimator = stages.estimator
        estimate = estimator.estimate()
        if estimate is None:
            continue
        load = first + then if until > grasped else first
        looks.append(judged(estimate, load, bool(estimator.events.since(0))))
        words = '; '.join((*estimate.reasons, *estimate.warnings, estimator.delay_words))
        cause = estimator.misfit.cause
        ever |= {kind for kind, said in SAID.items() if said in words + cause}
        if estimator.misfit.named.kind:
            ever.add(estimator.misfit.named.kind.value)
    return Outcome(looks, words, cause, frozenset(ever))


def row(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return a line of the table."""
    z = np.array([look.z for o in outcomes for look in o.looks])
    claimed, away = np.isfinite(z), np.nan_to_num(np.abs(z))
    parts = []
    for group in GROUPS.values():
        count = int(claimed[:, group].sum())
        inside = int((claimed[:, group] & (away[:, group] <= 1.96)).sum())
        worst = away[:, group].max()
        share = f'{inside / count:.2f}' if count else '   -'
        parts.append(f'{claimed[:, group].mean():.2f} {share} {worst:6.1f}')
    counts = Counter(kind for o in outcomes for kind in o.ever)
    said = ', '.join(f'{kind} {n}' for kind, n in counts.most_common())
    return f'{name:24} {len(outcomes):3} | {" | ".join(parts)} | {(away > 4.0).sum():4} | {said}'


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=8, help='of each row, robots by turns')
    parser.add_argument('--seed', type=int, default=0, help='of the first run')
    parser.add_argument(
        '--kinds', nargs='*', default=LOW_PASSES, choices=[*LOW_PASSES, 'delay', 'none']
    )
    parser.add_argument(
        '--cutoffs', nargs='*', type=float, default=[1.5, 5.0, 10.0, 15.0, 30.0, 73.0]
    )
    parser.add_argument('--motions', nargs='*', default=['rich', 'pauses', 'tool-down'])
    parser.add_argument('--words', action='store_true', help='print what is said in the end')
    parser.add_argument('--delay', type=float, default=0.0, help='wrench_delay that is set [s]')
    parser.add_argument('--compliance', type=float, help='compliance that is expected [s²]')
    arguments = parser.parse_args()
    parameters = Parameters(wrench_delay=arguments.delay)
    if arguments.compliance is not None:
        parameters = replace(parameters, compliance=arguments.compliance)
    groups = ' | '.join(f'{g + " claim, held, z":>16}' for g in GROUPS)
    print(f'{"":24} {"n":>3} | {groups} |  > 4 | said in so many runs')
    began = time.perf_counter()
    for kind in arguments.kinds:
        for cutoff in arguments.cutoffs if kind != 'none' else (np.inf,):
            for motion in arguments.motions:
                seeds = range(arguments.seed, arguments.seed + arguments.runs)
                low_pass = None if kind == 'none' else (kind, cutoff)
                outcomes = [run(low_pass, motion, seed, parameters) for seed in seeds]
                print(row(f'{kind} {cutoff:g} Hz {motion}', outcomes), flush=True)
                if arguments.words:
                    for seed, o in zip(seeds, outcomes, strict=True):
                        print(f'    {seed}: CAUSE {o.cause} WORDS {o.words}')
    print(f'{time.perf_counter() - began:.0f} s')


if __name__ == '__main__':
    main()
