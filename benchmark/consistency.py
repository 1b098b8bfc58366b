"""The nearest consistent estimate over random bodies: nearer, valid, fast.

Bodies of 0.02 to 50 kg, solid and thin, with estimates of them that no body can have, from poor
to very precise. Printed: the share for which the search converges, is never farther from the
truth in the information metric than the unconstrained estimate, and gives a valid body; and what
a call costs in CPU time.

    python benchmark/consistency.py [--cases 1000]
"""

from __future__ import annotations

import argparse
import sys
import time

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from load_identification.numerics.nearest_body import is_consistent, nearest_consistent
from load_identification.simulation.bodies import cases

MEDIAN_LIMIT_MS = 2.0


def measure(count: int, bounded: bool) -> tuple[list[str], bool]:
    """Return a row of the table, and whether all is as it must be."""
    converged, nearer, valid, shift, taken, iterations = [], [], [], [], [], []
    for case in cases(7, count, bounded):
        begin = time.thread_time()
        found = nearest_consistent(case.estimate, case.covariance, case.ellipsoid)
        taken.append(1e3 * (time.thread_time() - begin))
        before = case.distance(case.estimate, case.truth)
        after = case.distance(found.parameters, case.truth)
        converged.append(found.converged)
        # Rounding: some estimates are 1e7 standard deviations long.
        nearer.append(after <= before * (1.0 + 1e-9))
        valid.append(is_consistent(found.parameters, case.ellipsoid))
        shift.append(after / before)
        iterations.append(found.iterations)
    median, slowest = np.percentile(taken, [50, 99])
    row = [
        'ellipsoid' if bounded else 'pseudo-inertia',
        str(count),
        *(f'{100.0 * np.mean(flags):.1f} %' for flags in (converged, nearer, valid)),
        f'{np.median(shift):.2f}',
        f'{np.median(iterations):.0f} / {max(iterations)}',
        f'{median:.2f}',
        f'{slowest:.2f}',
    ]
    fine = all(converged) and all(nearer) and all(valid) and bool(median <= MEDIAN_LIMIT_MS)
    return row, fine


def table(count: int) -> tuple[Table, bool]:
    """Return the results of `count` cases of each kind, and whether all are as they should be."""
    result = Table(title='Nearest consistent estimate')
    for heading in (
        'bound',
        'cases',
        'converged',
        'never farther',
        'valid',
        'distance to truth, of unconstrained',
        'iterations median / most',
        'median [ms]',
        '99 % [ms]',
    ):
        result.add_column(heading, justify='right')
    rows = [measure(count, bounded) for bounded in (False, True)]
    for row, _ in rows:
        result.add_row(*row)
    return result, all(fine for _, fine in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--cases', type=int, default=1000, help='of each kind')
    result, fine = table(parser.parse_args().cases)
    Console().print(result)
    return 0 if fine else 1


if __name__ == '__main__':
    sys.exit(main())
