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
from dataclasses import dataclass

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from load_identification.estimation.time_delay import DelayEstimate, DelayEstimator, delay_warning
from load_identification.interface.batches import FilteredBatch
from load_identification.simulation.monte_carlo import Case
from load_identification.simulation.sensors import Recording, SensorModel
from load_identification.typing_aliases import BoolArray, FloatArray

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


@dataclass(frozen=True)
class Study:
    """The outcome of a Monte Carlo over one lag; arrays have one entry per run.

    Attributes
    ----------
    error, std : (runs,) arrays
        [s]
    known, warned : (runs,) bool arrays
    example : str
        The last warning.
    seconds : float
        Computing time of the delay estimator per second of data.
    """

    error: FloatArray
    std: FloatArray
    known: BoolArray
    warned: BoolArray
    example: str
    seconds: float


def study(case: Case, recording: Recording, lag: float, runs: int, first_seed: int = 0) -> Study:
    """Recover one lag as often as asked, each time with other noise."""
    estimates, spent = [], 0.0
    for seed in range(first_seed, first_seed + runs):
        batch = case.filtered(case.measured(recording, seed), lag)
        began = time.process_time()
        estimates.append(recovered(case, batch))
        spent += time.process_time() - began
    warnings = [delay_warning(e) for e in estimates]
    return Study(
        error=np.array([e.value_s for e in estimates]) - lag,
        std=np.array([e.std_s for e in estimates]),
        known=np.array([e.known for e in estimates]),
        warned=np.array([bool(w) for w in warnings]),
        example=next((w for w in reversed(warnings) if w), ''),
        seconds=spent / runs / case.duration,
    )


def table(runs: int, duration: float) -> tuple[Table, list[str]]:
    """Return the results of so many runs for each lag, and words about them."""
    case = Case(duration=duration, sensors=SENSORS)
    recording = case.record()
    result = Table(title=f'Delay: {runs} runs each, {duration:g} s of motion')
    for column in ('lag ms', 'mean error', 'largest', 'std stated', 'within 1 ms', 'covered'):
        result.add_column(column, justify='right')
    result.add_column('warned', justify='right')
    seconds, example = [], ''
    for number, lag in enumerate(LAGS):
        outcome = study(case, recording, lag, runs, number * runs)
        seconds.append(outcome.seconds)
        example = outcome.example or example
        error, std = 1e3 * outcome.error, 1e3 * outcome.std
        within = (np.abs(error) <= 1.0) & outcome.known
        result.add_row(
            f'{1e3 * lag:g}',
            f'{error.mean():+.3f} ms',
            f'{np.abs(error).max():.3f} ms',
            f'{std.mean():.3f} ms',
            f'{100 * within.mean():.0f} %',
            f'{100 * np.mean(np.abs(error) <= 1.96 * std):.0f} %',
            f'{100 * outcome.warned.mean():.0f} %',
        )
    computing = f'computing: {100 * np.mean(seconds):.3f} % of one core in real time'
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
