"""How well the lag between wrench and joint stamps is recovered, and what is warned of.

Monte Carlo through synchronizer, filter and delay estimator: a rich motion of the PUMA under the
block of 1.1 kg, the stamps of one stream shifted, encoders and wrench as noisy as real ones.
Printed, for each lag: mean and largest error, the share of runs within 1 ms, the share in which
the truth lies within the 95 % interval, and the share with a warning. A negative lag is one of
the joint states.

    python benchmark/delay.py [--runs 100] [--duration 20]
"""

from __future__ import annotations

import argparse
import time

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from load_identification.estimation.delay_estimate import DelayEstimate, delay_warning
from load_identification.estimation.time_delay import DelayEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.simulation.monte_carlo import Case
from load_identification.simulation.sensors import SensorModel

LAGS = (0.0, 0.001, 0.005, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040, -0.015, -0.030)
"""Of the wrench's stamps behind those of the joint states [s]."""

SENSORS = SensorModel(force_step=0.0, torque_step=0.0)
"""0.1 N and 0.005 N m white per sample, the encoders of a PUMA 560."""

DURATION = 20.0
"""Of the motion [s]."""


def recovered(case: Case, batch: FilteredBatch) -> DelayEstimate:
    """Return the delay found in filtered samples."""
    parameters = case.parameters
    estimator = DelayEstimator(parameters.force_noise, parameters.torque_noise)
    estimator.update(batch)
    return estimator.estimate


def table(runs: int, duration: float) -> tuple[Table, list[str]]:
    """Return the results of so many runs for each lag, and words about them."""
    case = Case(duration=duration, sensors=SENSORS)
    recording = case.record()
    result = Table(title=f'Delay: {runs} runs each, {duration:g} s of motion')
    for column in ('lag ms', 'mean error', 'largest', 'std stated', 'within 1 ms', 'covered'):
        result.add_column(column, justify='right')
    result.add_column('warned', justify='right')
    spent, example = 0.0, ''
    for number, lag in enumerate(LAGS):
        estimates = []
        for seed in range(number * runs, (number + 1) * runs):
            batch = case.filtered(case.measured(recording, seed), lag)
            began = time.process_time()
            estimates.append(recovered(case, batch))
            spent += time.process_time() - began
        warnings = [words for words in map(delay_warning, estimates) if words]
        example = warnings[-1] if warnings else example
        error = 1e3 * np.array([e.value_s - lag for e in estimates])
        std = 1e3 * np.array([e.std_s for e in estimates])
        within = (np.abs(error) <= 1.0) & [e.known for e in estimates]
        result.add_row(
            f'{1e3 * lag:g}',
            f'{error.mean():+.3f} ms',
            f'{np.abs(error).max():.3f} ms',
            f'{std.mean():.3f} ms',
            f'{100 * within.mean():.0f} %',
            f'{100 * np.mean(np.abs(error) <= 1.96 * std):.0f} %',
            f'{100 * len(warnings) / runs:.0f} %',
        )
    share = spent / (len(LAGS) * runs * duration)
    computing = f'computing: {100 * share:.3f} % of one core in real time'
    return result, [f'for instance: {example}', computing]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--duration', type=float, default=DURATION, help='of the motion, s')
    options = parser.parse_args()
    result, words = table(options.runs, options.duration)
    console = Console()
    console.print(result)
    console.print('\n'.join(words))


if __name__ == '__main__':
    main()
