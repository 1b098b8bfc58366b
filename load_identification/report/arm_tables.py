"""Printed tables of an identified arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from load_identification.arm.arm_estimate import ArmEstimate, DriveGains
from load_identification.arm.dynamics.base_parameters import IDENTIFIABLE, IN_COMBINATION
from load_identification.arm.dynamics.rows import ArmModel, Model
from load_identification.arm.identification import Session
from load_identification.arm.prediction import Prediction, relative_error
from load_identification.interface.names import INTERVAL, significant
from load_identification.report.tables import decimals

ROUNDING = 1e-9
"""Smaller magnitudes are rounding errors, as no quantity of an arm is as small [SI units]."""


def parameter_table(estimate: ArmEstimate, links: bool) -> Table:
    """Make the table of all links' ten parameters, or of friction and offsets, in SI units."""
    first, joints = estimate.model.links.stop, len(estimate.model.arm.joints)
    parameters = range(first) if links else range(first, len(estimate.names))
    section = max(1, len(parameters) // joints)
    headings = ('nominal',) * links + ('written', 'estimate', '± 95 %')
    table = _table('parameter', headings)
    table.add_column('determined', min_width=len(IDENTIFIABLE))
    number = {row: str(k) for k, row in enumerate(estimate.combined, start=1)}
    for count, i in enumerate(parameters, start=1):
        rows = estimate.combinations_of(i)
        kind = estimate.class_of(i)
        alone = len(rows) == 1 and np.count_nonzero(estimate.base.matrix[rows[0]]) == 1
        if kind == IN_COMBINATION and not alone:
            kind = f'in no. {", ".join(number[row] for row in rows)}'
        table.add_row(
            estimate.names[i],
            *([three_digits(estimate.model.nominal[i])] if links else []),
            three_digits(estimate.consistent[i]),
            *(
                with_interval(estimate.values[rows[0]], estimate.std[rows[0]])
                if alone
                else ('', '')
            ),
            estimate.model.units[i],
            kind,
            end_section=count % section == 0,
        )
    return table


def gain_table(model: Model, gains: DriveGains, excess: float) -> Table:
    """Make the table of drive gains, their intervals widened as those of the arm model."""
    table = _table('joint', ('gain', '± 95 %', '%'))
    half = INTERVAL * np.sqrt(excess) * gains.std
    for joint, gain, own, unit in zip(
        model.channels, gains.gains, half, model.channel_units, strict=True
    ):
        cells = f'{gain:.{decimals(own)}f}', f'{own:.{decimals(own)}f}'
        table.add_row(joint, *cells, significant(100.0 * own / abs(gain)), f'{unit} per unit')
    return table


def center_of_load(gains: DriveGains, excess: float) -> str:
    """Return the centre of mass of the load that revealed the gains, components ± 95 % [m]."""
    mass, *moment = zip(gains.load[:4], np.sqrt(excess) * gains.load_std[:4], strict=True)
    return ', '.join(
        ' ± '.join(filter(None, with_interval(c / mass[0], s / mass[0]))) for c, s in moment
    )


def combination_table(estimate: ArmEstimate) -> Table:
    """Make the table of the combinations that the data determine, in SI units."""
    table = _table('combination', ('nominal', 'estimate', '± 95 %'), numbered=True)
    nominal = estimate.base.to_base(estimate.model.nominal)
    texts = estimate.base.combinations
    for k, i in enumerate(estimate.combined, start=1):
        cells = with_interval(estimate.values[i], estimate.std[i])
        unit = estimate.model.units[estimate.base.independent[i]]
        table.add_row(str(k), texts[i], three_digits(nominal[i]), *cells, unit)
    return table


def error_table(prediction: Prediction) -> Table:
    """Make the table of prediction errors on data that were not fitted."""
    band = '' if prediction.bandwidth is None else f', up to {prediction.bandwidth:g} Hz'
    headings = ('measured', 'written', 'of range', 'unconstrained', 'nominal')
    table = _table(f'rms{band}', headings)
    measured = prediction.measured
    level = prediction.rms(measured)
    predictions = (prediction.consistent, prediction.predicted, prediction.nominal)
    errors = [prediction.rms(measured - each) for each in predictions]
    shares = prediction.of_range(prediction.consistent)
    for i, channel in enumerate(prediction.channels):
        share = f'{100.0 * shares[i]:.1f} %' if np.isfinite(shares[i]) else ''
        cells = [three_digits(error[i]) for error in errors]
        table.add_row(
            channel,
            three_digits(level[i]),
            cells[0],
            share,
            *cells[1:],
            prediction.units[i],
            end_section=i == len(prediction.channels) - 1,
        )
    if len(set(prediction.units)) == 1:
        total = [f'{100.0 * relative_error(measured, each):.2f} %' for each in predictions]
        table.add_row('relative, all', '', total[0], '', *total[1:], '')
    return table


def _table(first: str, headings: Sequence[str], numbered: bool = False) -> Table:
    """Make a table of a column of words, of numbers, and of their units."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    if numbered:
        table.add_column('no.', justify='right', no_wrap=True)
    table.add_column(first, no_wrap=not numbered)
    for heading in headings:
        table.add_column(heading, justify='right', no_wrap=True)
    table.add_column('unit', no_wrap=True)
    return table


def three_digits(value: float) -> str:
    """Return a number with three digits; rounding errors are zero."""
    return '0' if abs(value) < ROUNDING else f'{value:#.3g}'.rstrip('.')


def with_interval(value: float, std: float) -> list[str]:
    """Return a value and half of its interval, or the words for one that is not determined."""
    if not np.isfinite(std):
        return ['not determined', '']
    half = INTERVAL * std
    digits = decimals(half)
    return [f'{value:.{digits}f}', f'{half:.{digits}f}']


def print_session(console: Console, session: Session, parameters: bool) -> None:
    """Print an identification: its quality first, then all numbers if requested."""
    estimate, prediction = session.estimate, session.prediction
    model = estimate.model
    console.print('Identified' if session.identified else 'Not identified', style='bold')
    for warning in session.warnings:
        console.print(f'Warning: {warning}', style='bold yellow')
    console.print(f'\nPrediction of data that were not fitted: {prediction.source}', style='bold')
    console.print(error_table(prediction))
    console.print(f'Fitted     {session.fitted}')
    console.print(f'Method     {session.method}')
    console.print(
        f'Condition  {significant(estimate.condition)} (rows weighted, columns of length one)'
    )
    console.print(
        f'Written    physically consistent links, drawn to the description with weight '
        f'{estimate.weight:g}; the nearest are {estimate.misfit:.2g} standard deviations off'
    )
    if estimate.gains is not None:
        console.print('\nDrive gains: torque of an effort of one', style='bold')
        console.print(gain_table(model, estimate.gains, session.excess))
        center = center_of_load(estimate.gains, session.excess)
        console.print(
            f'Load       {estimate.gains.load[0]:g} kg as given; its centre of mass in '
            f'{model.arm.bodies[-1]}: {center} m'
        )
    if not parameters:
        return
    console.print('\nLinks, about the origin and in the axes of their frames', style='bold')
    console.print(parameter_table(estimate, links=True))
    if len(estimate.names) > model.links.stop:
        drives = isinstance(model, ArmModel)
        console.print('Friction and offsets' if drives else 'Offsets', style='bold')
        console.print(parameter_table(estimate, links=False))
    if estimate.combined:
        console.print('What is determined only in combination, by its number', style='bold')
        console.print(combination_table(estimate))
