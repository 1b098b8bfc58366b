"""How near the estimate comes to the Cramér-Rao bound, and whether its intervals hold.

Monte Carlo through the whole pipeline: one simulated motion, many draws of the sensors' noise.
Printed, for each parameter: root mean square error and bias in units of the bound, stated
standard deviation likewise, and the share of runs in which the truth lies within the 95 %
interval. The bound is that of the raw samples with the motion known exactly: 16 unknowns, ten
parameters and six offsets.

    python benchmark/accuracy.py [--runs 200] [CASE ...]

Without names the arms of different shape; `all` for every case, one line each.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from load_identification.interface.batches import CHANNELS
from load_identification.interface.names import PARAMETER_KEYS
from load_identification.simulation.monte_carlo import HAND, PARAMETERS, Case, Study, study
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import WRIST_SENSOR, SensorModel

WHITE_ENCODERS = replace(WRIST_SENSOR, encoder_resolution=0.0)
"""For noise of the encoders as `Case.encoder_noise` says."""

BASE = {name: Case(mount=name) for name in MOUNTS}
CASES = {
    **BASE,
    **{f'{f:g}Hz': Case(highest_frequency=f) for f in (0.4, 2.0, 3.0)},
    **{f'{r:.0f}-samples': Case(rate=r) for r in (250.0, 1000.0)},
    '3s': Case(duration=3.0, highest_frequency=2.0),
    '60s': Case(duration=60.0),
    'velocities': Case(sensors=replace(WRIST_SENSOR, velocity_noise=1e-3)),
    'white-encoders': Case(sensors=WHITE_ENCODERS, encoder_noise=1e-5),
    'puma-encoders': Case(sensors=SensorModel(force_step=0.0, torque_step=0.0)),
    'coarse-wrench': Case(sensors=replace(WRIST_SENSOR, force_step=0.25, torque_step=0.01)),
    'noisy-wrench': Case(sensors=replace(WRIST_SENSOR, force_noise=0.5, torque_noise=0.025)),
    '0.3kg': Case(payload_scale=0.27),
    '0.15kg-under-3kg-tool': Case(payload_scale=0.136, tool=HAND),
    '5kg': Case(payload_scale=4.5),
    '5kg-white-encoders': Case(
        payload_scale=4.5, sensors=WHITE_ENCODERS, encoder_noise=1e-5
    ),
    '5kg-puma-encoders': Case(
        payload_scale=4.5, sensors=SensorModel(force_step=0.0, torque_step=0.0)
    ),
}  # fmt: skip
"""What the command can print; the PUMA where no other arm is named."""


def by_parameter(name: str, outcome: Study) -> Table:
    """Make the table of one case."""
    table = Table('parameter', title=f'{name}: {len(outcome.error)} runs')
    for column in ('bound', 'RMSE/bound', 'bias/bound', 'std/bound', 'coverage'):
        table.add_column(column, justify='right')
    stated = np.mean(outcome.std[:, -1], axis=0) / outcome.bound
    rows = zip(
        (*PARAMETER_KEYS, *CHANNELS),
        outcome.bound,
        outcome.rmse,
        outcome.bias,
        stated,
        outcome.coverage,
        strict=True,
    )
    for parameter, bound, *ratios, coverage in rows:
        table.add_row(
            parameter, f'{bound:.2g}', *(f'{r:.2f}' for r in ratios), f'{100 * coverage:.1f} %'
        )
    return table


def by_case(outcomes: dict[str, Study]) -> Table:
    """Make a table of several cases, the worst of the ten parameters in each."""
    table = Table('case', title='worst of the ten parameters')
    for column in ('RMSE/bound', '|bias|/bound', 'least coverage', 'most'):
        table.add_column(column, justify='right')
    for name, outcome in outcomes.items():
        coverage = 100 * outcome.coverage[:PARAMETERS]
        table.add_row(
            name,
            f'{outcome.rmse[:PARAMETERS].max():.2f}',
            f'{np.abs(outcome.bias[:PARAMETERS]).max():.2f}',
            f'{coverage.min():.1f} %',
            f'{coverage.max():.1f} %',
        )
    return table


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument(
        'cases', nargs='*', metavar='CASE', help=f'all, or of {", ".join(CASES)}', default=[*BASE]
    )
    parser.add_argument('--runs', type=int, default=200)
    arguments = parser.parse_args()
    names = [*CASES] if arguments.cases == ['all'] else arguments.cases
    unknown = [name for name in names if name not in CASES]
    if unknown or arguments.runs < 1:
        parser.error(f'no case {", ".join(unknown)}' if unknown else 'at least one run')
    console = Console()
    outcomes = {}
    for name in names:
        with console.status(f'{name}, {arguments.runs} runs'):
            outcomes[name] = study(CASES[name], arguments.runs)
        if arguments.cases != ['all']:
            console.print(by_parameter(name, outcomes[name]))
    console.print(by_case(outcomes))


if __name__ == '__main__':
    main()
