"""Events, drift, possible bodies, delay, second opinion: may the estimate be believed?

    python benchmark/events.py [--runs 100] [--minutes 60]

For each scenario, simulated through the whole pipeline: delay from the change to its notice, that
of the filter included; the share of runs in which it was told rightly what had changed (of a
push: that all is as before), and of those in which something else was claimed first; of all
parameters called identified, the share whose 95 % interval holds the truth, 3 s after motion
began, and at all looks since the change was due to be noticed. Then false alarms in an hour of
ordinary motion, the mass in an hour of drift, the nearest possible body, the delay between the
streams, and total least squares beside least squares.
"""

from __future__ import annotations

import argparse

from event_runs import (
    DUE,
    SCENARIOS,
    Outcome,
    drifting,
    nominal,
    push_in_world,
    push_on_tool,
    study,
)

# isort: split
import consistency
import delay
import numpy as np
import second_opinion
from rich.console import Console
from rich.table import Table


def row(scenario: str, outcomes: list[Outcome]) -> list[str]:
    """Return a line of the table."""
    noticed = np.array([o.noticed for o in outcomes])
    kind = SCENARIOS[scenario][1]
    told = np.array([o.told for o in outcomes])
    pushed = SCENARIOS[scenario][0] in (push_in_world, push_on_tool)
    claimed = sum(o.claimed for o in outcomes)
    since = sum(o.claimed_since for o in outcomes)
    return [
        scenario,
        f'{np.median(noticed):.2f}  {np.max(noticed):.2f}',
        f'{np.mean(noticed <= DUE[kind]):.0%} in {DUE[kind]} s',
        f'{np.mean(told <= (3.0 if pushed else 2.0)):.0%} in {3 if pushed else 2} s',
        f'{np.mean([o.wrong for o in outcomes]):.0%}',
        f'{sum(o.held for o in outcomes) / max(claimed, 1):.1%} of {claimed}',
        f'{sum(o.held_since for o in outcomes) / max(since, 1):.1%} of {since}',
        f'{np.mean([o.early for o in outcomes]):.0%}',
    ]


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('--runs', type=int, default=100, help='of each scenario')
    parser.add_argument('--minutes', type=int, default=60, help='of ordinary motion, and of drift')
    arguments = parser.parse_args()
    console = Console(width=150)
    table = Table(
        *('scenario', 'delay median, max [s]', 'noticed', 'told rightly', 'else first'),
        *('intervals hold at 3 s', 'since due', 'too early'),
        title=f'{arguments.runs} runs of each scenario',
    )
    for scenario in SCENARIOS:
        with console.status(scenario):
            table.add_row(*row(scenario, study(scenario, arguments.runs)))
    console.print(table)
    events, error = nominal(arguments.minutes)
    console.print(
        f'{arguments.minutes} min of ordinary motion at 500 Hz: {len(events)} false alarms '
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
    opinions, words = second_opinion.table(arguments.runs)
    console.print(opinions)
    console.print('\n'.join(words))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
