"""Tables of an identified arm for a person to read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.table import Table

from load_identification.arm.base_parameters import IDENTIFIABLE, IN_COMBINATION
from load_identification.tools.arm_found import NORMAL_95, Found, Prediction
from load_identification.tools.tables import decimals

ROUNDING = 1e-9
"""Nothing of an arm is as small [SI units]."""


def link_table(found: Found) -> Table:
    """Make the table of every link's ten parameters, in SI units."""
    table = _table('parameter', ('nominal', 'buildable', 'estimate', '± 95 %'))
    return _filled(table, found, range(10 * len(found.arm.joints)), 10, nominal=True)


def other_table(found: Found) -> Table:
    """Make the table of all other parameters: friction and offsets, in SI units."""
    first, joints = 10 * len(found.arm.joints), len(found.arm.joints)
    others = range(first, len(found.names))
    table = _table('parameter', ('buildable', 'estimate', '± 95 %'))
    return _filled(table, found, others, max(1, len(others) // joints), nominal=False)


def _filled(
    table: Table, found: Found, parameters: Sequence[int], section: int, nominal: bool
) -> Table:
    """Add a row for each of some parameters, with a line after every section."""
    table.add_column('unit', no_wrap=True)
    table.add_column('told', min_width=len(IDENTIFIABLE))
    number = {row: str(k) for k, row in enumerate(found.combined, start=1)}
    for count, i in enumerate(parameters, start=1):
        rows = found.combinations_of(i)
        kind = found.class_of(i)
        alone = len(rows) == 1 and np.count_nonzero(found.base.matrix[rows[0]]) == 1
        if kind == IN_COMBINATION and not alone:
            kind = f'in no. {", ".join(number[row] for row in rows)}'
        table.add_row(
            found.names[i],
            *([_three(found.nominal[i])] if nominal else []),
            _three(found.consistent[i]),
            *(_value(found.values[rows[0]], found.std[rows[0]]) if alone else ('', '')),
            found.units[i],
            kind,
            end_section=count % section == 0,
        )
    return table


def combination_table(found: Found) -> Table:
    """Make the table of the combinations that measurements tell, in SI units."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column('no.', justify='right', no_wrap=True)
    table.add_column('combination')
    for heading in ('nominal', 'estimate', '± 95 %'):
        table.add_column(heading, justify='right', no_wrap=True)
    table.add_column('unit', no_wrap=True)
    nominal = found.base.to_base(found.nominal)
    texts = found.base.combinations
    for k, i in enumerate(found.combined, start=1):
        cells = _value(found.values[i], found.std[i])
        unit = found.units[found.base.independent[i]]
        table.add_row(str(k), texts[i], _three(nominal[i]), *cells, unit)
    return table


def error_table(prediction: Prediction) -> Table:
    """Make the table of prediction errors on data that were not fitted."""
    headings = ('measured', 'error', 'of range', 'buildable', 'nominal')
    table = _table('rms of', headings)
    table.add_column('unit', no_wrap=True)
    measured = prediction.measured
    level = prediction.rms(measured)
    predictions = (prediction.predicted, prediction.consistent, prediction.nominal)
    errors = [prediction.rms(measured - each) for each in predictions]
    # A joint that always stood has no measurement to compare with.
    columns = (column[np.isfinite(column)] for column in measured.T)
    span = [float(np.ptp(column)) if column.size else 0.0 for column in columns]
    for i, channel in enumerate(prediction.channels):
        share = f'{100.0 * errors[0][i] / span[i]:.1f} %' if span[i] > 0.0 else ''
        cells = [_three(error[i]) for error in errors]
        table.add_row(
            channel,
            _three(level[i]),
            cells[0],
            share,
            *cells[1:],
            prediction.units[i],
            end_section=i == len(prediction.channels) - 1,
        )
    if len(set(prediction.units)) == 1:
        shares = [f'{100.0 * prediction.relative_error(each):.2f} %' for each in predictions]
        table.add_row('relative, all', '', shares[0], '', *shares[1:], '')
    return table


def _table(first: str, headings: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify='right', no_wrap=True)
    return table


def _three(value: float) -> str:
    """Return a number with three digits; rounding errors are zero."""
    return '0' if abs(value) < ROUNDING else f'{value:#.3g}'.rstrip('.')


def _value(value: float, std: float) -> list[str]:
    """Return a value and half of its interval; of what is not told, that."""
    if not np.isfinite(std):
        return ['not told', '']
    half = NORMAL_95 * std
    digits = decimals(half)
    return [f'{value:.{digits}f}', f'{half:.{digits}f}']
