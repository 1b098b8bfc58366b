"""Tables of an identified arm for a person to read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.table import Table

from load_identification.arm.base_parameters import IDENTIFIABLE
from load_identification.tools.arm_found import NORMAL_95, Found, Prediction
from load_identification.tools.tables import decimals


def link_table(found: Found) -> Table:
    """Make the table of every link's ten parameters, in SI units."""
    table = _table('', ('nominal', 'buildable', 'estimate', '± 95 %'))
    return _filled(table, found, range(10 * len(found.arm.joints)), 10, nominal=True)


def other_table(found: Found) -> Table:
    """Make the table of all other parameters: friction and offsets, in SI units."""
    first, joints = 10 * len(found.arm.joints), len(found.arm.joints)
    others = range(first, len(found.names))
    table = _table('', ('buildable', 'estimate', '± 95 %'))
    return _filled(table, found, others, max(1, len(others) // joints), nominal=False)


def _filled(
    table: Table, found: Found, parameters: Sequence[int], section: int, nominal: bool
) -> Table:
    """Add a row for each of some parameters, with a line after every section."""
    table.add_column('unit', no_wrap=True)
    table.add_column('class: combination', min_width=len(IDENTIFIABLE))
    for count, i in enumerate(parameters, start=1):
        rows = found.combinations_of(i)
        kind = found.class_of(i)
        alone = len(rows) == 1 and np.count_nonzero(found.base.matrix[rows[0]]) == 1
        numbers = '' if alone or not rows else f': {", ".join(str(r + 1) for r in rows)}'
        table.add_row(
            found.names[i],
            *([f'{found.nominal[i]:.3g}'] if nominal else []),
            f'{found.consistent[i]:.3g}',
            *(_value(found.values[rows[0]], found.std[rows[0]]) if alone else ('', '')),
            found.units[i],
            f'{kind}{numbers}',
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
    for i, (text, kept) in enumerate(zip(texts, found.base.independent, strict=True)):
        if np.count_nonzero(found.base.matrix[i]) == 1:
            continue
        cells = _value(found.values[i], found.std[i])
        table.add_row(str(i + 1), text, f'{nominal[i]:.3g}', *cells, found.units[kept])
    return table


def error_table(prediction: Prediction) -> Table:
    """Make the table of prediction errors on data that were not fitted."""
    headings = ('measured', 'error', 'of range', 'buildable', 'nominal')
    table = _table('rms', headings)
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
        cells = [f'{error[i]:.3g}' for error in errors]
        table.add_row(
            channel,
            f'{level[i]:.3g}',
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


def _value(value: float, std: float) -> list[str]:
    """Return a value and half of its interval; of what is not told, that."""
    if not np.isfinite(std):
        return ['not told', '']
    half = NORMAL_95 * std
    digits = decimals(half)
    return [f'{value:.{digits}f}', f'{half:.{digits}f}']
