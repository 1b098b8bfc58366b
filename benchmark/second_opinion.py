"""Total least squares beside least squares: which is nearer to the truth, and what is warned of.

Through the whole pipeline, each run with another motion of the PUMA under the block of 1.1 kg,
10 s at 500 Hz, and other noise. Good encoders, for which the two should agree, and poor ones,
whose noise, differentiated twice, is in the regressor. Printed, for each: the share of runs with
a warning that the two disagree; the error of the moments of inertia that is common to all runs,
the bias, and the root mean square of the error, both as a share of the moment; and of all ten
parameters the share whose 95 % interval holds the truth.

    python benchmark/second_opinion.py [--runs 100]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from load_identification.estimation.doubts import by_total_least_squares
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.nodes.parameters import Parameters
from load_identification.tools.simulation import SensorModel
from load_identification.typing_aliases import BoolArray, FloatArray

sys.path.append(str(Path(__file__).resolve().parent))
from accuracy import MOUNTS, WHITE_ENCODERS, WRIST_SENSOR, Case

MOMENTS = [4, 7, 9]
ASKED = Parameters(second_opinion=True)
CASES = {
    'steps of 1e-5 rad': Case(sensors=WRIST_SENSOR, parameters=ASKED),
    'steps of a PUMA 560': Case(
        sensors=SensorModel(force_step=0.0, torque_step=0.0), parameters=ASKED
    ),
    **{
        f'white, {std:.0e} rad': Case(sensors=WHITE_ENCODERS, encoder_noise=std, parameters=ASKED)
        for std in (1e-4, 3e-4, 1e-3)
    },
}


@dataclass(frozen=True)
class Study:
    """The outcome of some runs of one case.

    Attributes
    ----------
    error, std : (2, runs, 10) arrays
        By least squares and by total least squares, in message order [kg, m, kg m²].
    warned : (runs,) bool array
    example : str
        The last warning.
    """

    error: FloatArray
    std: FloatArray
    warned: BoolArray
    example: str


def run(case: Case) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Return values and standard deviations of both, (2, 10), and what is warned of."""
    mount = MOUNTS[case.mount]
    synchronizer, motion_filter = case.parameters.synchronizer(), case.parameters.motion_filter()
    motion_filter.set_description(mount.urdf, mount.sensor_frame)
    recording = case.measured(case.record(), case.motion_seed)
    synchronized = synchronizer.update([recording.joints()], [recording.wrenches()])
    batch = motion_filter.update(synchronized) if synchronized else None
    stage = PayloadEstimator(case.parameters.estimator_settings())
    if batch is not None:
        stage.update(batch)
    estimate = stage.estimate()
    if estimate is None:
        raise RuntimeError(f'nothing estimated of {len(recording.stamps)} samples')
    other = by_total_least_squares(
        stage._least_squares, estimate.noise, stage._motion_noise.covariance(), stage.tool
    )
    values, std = zip((estimate.values, estimate.std), other, strict=True)
    return np.array(values), np.array(std), estimate.warnings


def study(case: Case, runs: int, first_seed: int = 0) -> Study:
    """Return what comes of seeded runs."""
    found = [run(replace(case, motion_seed=first_seed + k)) for k in range(runs)]
    warnings = [
        [words for words in each if 'total least squares' in words] for _, _, each in found
    ]
    return Study(
        error=np.stack([values for values, _, _ in found], axis=1) - case.truth[:10],
        std=np.stack([std for _, std, _ in found], axis=1),
        warned=np.array([bool(words) for words in warnings]),
        example=next((words[-1] for words in reversed(warnings) if words), ''),
    )


def table(runs: int) -> tuple[Table, list[str]]:
    """Return the results of so many runs of each case, and an example of what is warned of."""
    result = Table(title=f'Second opinion: {runs} runs each, least / total least squares')
    for column in ('encoders', 'warned', 'bias of moments', 'rms error of moments', 'covered'):
        result.add_column(column, justify='right')
    words = []
    for name, case in CASES.items():
        found = study(case, runs)
        share = found.error[:, :, MOMENTS] / case.truth[MOMENTS]
        bias = share.mean(axis=(1, 2))
        rms = np.sqrt((share**2).mean(axis=(1, 2)))
        covered = np.mean(np.abs(found.error) <= 1.96 * found.std, axis=(1, 2))
        result.add_row(
            name,
            f'{found.warned.sum()} of {runs}',
            *(' / '.join(f'{value:.1%}' for value in pair) for pair in (bias, rms, covered)),
        )
        if found.example:
            words.append(f'{name}: {found.example}')
    return result, words


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('--runs', type=int, default=100)
    console = Console(width=130)
    result, words = table(parser.parse_args().runs)
    console.print(result)
    console.print('\n'.join(words))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
