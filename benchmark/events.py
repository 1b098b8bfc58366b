"""Events, drift, possible bodies, delay: may the estimate be believed?

    python benchmark/events.py [--runs 100] [--minutes 60] [--work-only [NAME ...]]

For each scenario, simulated through the whole pipeline: delay from the change to its notice, that
of the filter included; the share of runs in which it was named rightly what had changed (of a
push: that all is as before), and of those in which something else was claimed first; of all
parameters called identified, the share whose 95 % interval holds the truth, 3 s after motion
began, and at all looks since the change was due to be noticed. Then false alarms in an hour of
ordinary motion, the mass in an hour of drift, the nearest possible body, and the delay
between the streams.

Before all that, changes in work of other kinds on three robots in cells with errors: tool down,
with pauses, pose by pose. There: noticed within a second of the change or of the motion after it;
named rightly within what is asked for, of motion after it or of the end of a push; named
otherwise; nothing claimed in the end; of all claims since it was to be noticed the share that
holds, the worst, and how many are beyond 4 std; and runs in which it was neither noticed in time
nor do all intervals hold. Then loads that change slowly while the arm moves: a finger of 0.25 kg
that opens or closes by 40 mm in 0.4 s every 4 s, and 1.2 kg of which 0.3 kg are poured out in a
minute. An hour of ordinary work in cells with errors closes it.
"""

from __future__ import annotations

import argparse

from load_identification.simulation.cells import Conditions
from load_identification.simulation.changes import scenarios, slow
from load_identification.simulation.changes.draws import push_in_world, push_on_tool
from load_identification.simulation.changes.runs import (
    DUE,
    MASS,
    SCENARIOS,
    drifting,
    ordinary,
    recorded,
)
from load_identification.simulation.changes.scenarios import Outcome, outcome
from load_identification.simulation.sensor_errors import CellErrors

# isort: split
import consistency
import delay
import numpy as np
from rich.console import Console
from rich.table import Table


def row(scenario: str, outcomes: list[Outcome]) -> list[str]:
    """Return a line of the table."""
    noticed = np.array([o.delay for o in outcomes])
    kind = SCENARIOS[scenario][1]
    named = np.array([o.named for o in outcomes])
    pushed = SCENARIOS[scenario][0] in (push_in_world, push_on_tool)
    looks = [o.looks[-1] for o in outcomes], [o.z for o in outcomes]
    shares = [
        f'{np.sum(z <= 1.96) / max(z.size, 1):.1%} of {z.size}'
        for z in (np.abs(np.concatenate(each)) for each in looks)
    ]
    return [
        scenario,
        f'{np.median(noticed):.2f}  {np.max(noticed):.2f}',
        f'{np.mean(noticed <= DUE[kind]):.0%} in {DUE[kind]} s',
        f'{np.mean(named <= (3.0 if pushed else 2.0)):.0%} in {3 if pushed else 2} s',
        f'{np.mean([o.wrong for o in outcomes]):.0%}',
        *shares,
        f'{np.mean([o.early for o in outcomes]):.0%}',
    ]


def work_row(name: str, results: list[Outcome]) -> list[str]:
    """Return a line of the table of changes in work."""
    limit = scenarios.SCENARIOS[name].limit
    z = np.abs(np.concatenate([r.z for r in results]))
    noticed = np.array([r.noticed <= scenarios.NOTICED for r in results])
    holds = np.array([bool((np.abs(r.z) <= 1.96).all()) for r in results])
    return [
        name,
        f'{noticed.mean():.0%}',
        f'{np.mean([r.named <= limit for r in results]):.0%} in {limit:g} s',
        f'{np.mean([r.false_load for r in results]):.0%}',
        f'{np.mean([r.false_offset for r in results]):.0%}',
        f'{np.mean([not r.last for r in results]):.0%}',
        f'{np.mean(z <= 1.96):.1%} of {z.size}' if z.size else '-',
        f'{z.max():.1f}' if z.size else '-',
        f'{np.mean(z > 4.0):.2%}' if z.size else '-',
        f'{np.mean(~noticed & ~holds):.0%}',
        f'{np.mean([r.early for r in results]):.0%}',
    ]


def print_slow(name: str, runs: int) -> None:
    """Print a line on loads that change slowly."""
    results = [slow.run(*slow.SLOW[name], seed) for seed in range(runs)]
    noticed = np.concatenate([r.noticed for r in results])
    z, masses = (
        np.abs(np.concatenate(each))
        for each in zip(*((r.z, r.mass) for r in results), strict=True)
    )
    detected = f'{noticed.sum()} of {noticed.size} noticed in {slow.DUE} s; ' * bool(noticed.size)
    print(
        f'{name}: {detected}{np.mean(z <= 1.96):.1%} of {z.size} intervals hold, worst '
        f'{z.max():.1f}, of a mass {masses.max():.1f}; {(z > 4.0).sum()} beyond 4 std; centre of '
        f'mass claimed in {np.mean([r.claimed for r in results]):.0%} of looks',
        flush=True,
    )


def print_work(console: Console, names: list[str], runs: int, minutes: int) -> None:
    """Print the table of changes in work, and the hour without any."""
    print(
        f'{runs} runs of each, robots {", ".join(scenarios.ROBOTS)}\n'
        'change | noticed | named | false load | false offset | nothing claimed in the end | '
        'intervals hold | worst | > 4 std | missed | too early'
    )
    for name in [n for n in names or scenarios.SCENARIOS if n not in slow.SLOW]:
        results = [scenarios.run(scenarios.SCENARIOS[name], seed) for seed in range(runs)]
        print(*work_row(name, results), sep=' | ', flush=True)
    for name in [n for n in names or slow.SLOW if n in slow.SLOW]:
        print_slow(name, runs)
    for seed, robot in enumerate(scenarios.ROBOTS if minutes else ()):
        events, error = ordinary(robot, minutes, Conditions(CellErrors(), ('smooth',)), seed)
        console.print(
            f'{minutes} min of ordinary work, {robot} in a cell with errors: {len(events)} false '
            f'alarms {", ".join(events)}; mass off by {error / MASS:.2%} in the end'
        )


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('--runs', type=int, default=100, help='of each scenario')
    parser.add_argument('--minutes', type=int, default=60, help='of ordinary motion, and of drift')
    names = [*scenarios.SCENARIOS, *slow.SLOW]
    parser.add_argument(
        '--work-only',
        nargs='*',
        choices=names,
        metavar='NAME',
        help='changes in work alone, of these names (another name lists all)',
    )
    arguments = parser.parse_args()
    console = Console(width=150)
    print_work(console, arguments.work_only or [], arguments.runs, arguments.minutes)
    if arguments.work_only is not None:
        return 0
    table = Table(
        *('scenario', 'delay median, max [s]', 'noticed', 'named rightly', 'else first'),
        *('intervals hold at 3 s', 'since due', 'too early'),
        title=f'{arguments.runs} runs of each scenario',
    )
    for scenario in SCENARIOS:
        with console.status(scenario):
            found = [outcome(recorded(scenario, seed)) for seed in range(arguments.runs)]
            table.add_row(*row(scenario, found))
    console.print(table)
    events, error = ordinary('puma', arguments.minutes, Conditions())
    console.print(
        f'{arguments.minutes} min of ordinary work in an exact cell: {len(events)} false alarms '
        f'{", ".join(events)}; mass off by {1e3 * error:.3f} g in the end'
    )
    mass = drifting(arguments.minutes)
    console.print(
        f'{arguments.minutes} min of drift at 4 N in 5 min, with slow motion every minute: '
        f'mass off by {np.abs(mass - 1.0).max():.2%} at most, identified in {len(mass)} looks'
    )
    console.print(consistency.table(10 * arguments.runs)[0])
    lags, words = delay.table(arguments.runs, delay.DURATION)
    console.print(lags)
    console.print('\n'.join(words))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
