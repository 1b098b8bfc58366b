"""Printed tables of an estimate, in convenient units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from load_identification.interface.names import INTERVAL, significant
from load_identification.typing_aliases import BoolArray, FloatArray


@dataclass(frozen=True)
class Group:
    """Values with a common unit and number of decimals."""

    names: tuple[str, ...]
    """One per value."""
    unit: str
    scale: float = 1.0
    """Number of these units in one SI unit."""


PARAMETERS = (
    Group(('mass',), 'kg'),
    Group(tuple(f'centre of mass {axis}' for axis in 'xyz'), 'mm', 1e3),
    Group(tuple(f'inertia {entry}' for entry in ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')), 'kg·m²'),
)
"""The ten parameters in message order."""

OFFSETS = (
    Group(tuple(f'force {axis}' for axis in 'xyz'), 'N'),
    Group(tuple(f'torque {axis}' for axis in 'xyz'), 'N·m'),
)
"""The six offsets."""


def interval_table(
    groups: Sequence[Group],
    values: FloatArray,
    std: FloatArray,
    known: BoolArray,
    unknown: str,
    truth: FloatArray | None = None,
    errors: bool = False,
) -> Table:
    """Make a table of values with their 95 % intervals.

    Parameters
    ----------
    groups : sequence of Group
        Groups of the k values.
    values, std : (k,) arrays
        [SI units].
    known : (k,) bool array
        Values to show.
    unknown : str
        Text for the other values.
    truth : (k,) array, optional
        Adds columns with the truth and whether it lies in the interval [SI units].
    errors : bool
        Whether to add a column with the error in standard deviations too.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column('')
    for heading in ('estimate', '± 95 %'):
        table.add_column(heading, justify='right', no_wrap=True)
    table.add_column('unit')
    if truth is not None:
        for heading in ('truth', *(('error [std]',) if errors else ())):
            table.add_column(heading, justify='right', no_wrap=True)
        table.add_column('inside')
    first = 0
    for group in groups:
        rows = range(first, first + len(group.names))
        first = rows.stop
        half = {i: INTERVAL * group.scale * float(std[i]) for i in rows if known[i]}
        digits = decimals(min(half.values(), default=math.nan))
        for i, name in zip(rows, group.names, strict=True):
            cells = [unknown, '']
            if known[i]:
                cells = [f'{group.scale * values[i]:.{digits}f}', f'{half[i]:.{digits}f}']
            cells.append(group.unit)
            if truth is not None:
                error = values[i] - truth[i]
                inside = abs(error) <= INTERVAL * std[i]
                cells.append(f'{group.scale * truth[i]:.{digits}f}')
                if errors:
                    cells.append(f'{error / std[i]:.1f}' if known[i] else '')
                cells.append(('yes' if inside else 'no') if known[i] else '')
            table.add_row(name, *cells, end_section=i == rows.stop - 1)
    return table


def group_in_words(
    group: Group, values: Sequence[float], std: Sequence[float], between: str
) -> str:
    """Return values, unless there are many, and the widest 95 % interval.

    `values` and `std` are in SI units; the words `between` separate the values.
    """
    half = group.scale * INTERVAL * max(std)
    digits = decimals(half)
    numbers = between.join(f'{group.scale * value:.{digits}f}' for value in values)
    shown = f'{numbers} ' if len(values) <= 3 else ''
    return f'{shown}± {half:.{digits}f} {group.unit}'


def offset_title(by_efforts: bool) -> str:
    """Return the title of a table of offsets, of a sensor or of what weighs by efforts."""
    if by_efforts:
        return 'Offset of the wrench that the efforts show: corrected = shown − offset'
    return 'Offset of the raw wrench: corrected = raw − offset'


def verdict_of(number: str, share: str, verdict: str) -> str:
    """Return in words why a value outside its interval is not the verdict on all of a number."""
    return (
        f'Of {number} sound 95 % intervals one or more miss in about {share} of all runs: the '
        f'verdict\nis {verdict}.'
    )


def by_time(events: Iterable[tuple[int, str]], start: int) -> list[tuple[float, str]]:
    """Return events ordered by time: seconds since `start`, and all words of that stamp.

    Parameters
    ----------
    events : iterable of (int, str)
        Stamp [ns] and words, in the order in which they became known.
    start : int
        [ns]
    """
    in_order = sorted(events, key=lambda event: event[0])
    return [
        (1e-9 * (stamp - start), '; '.join(words for _, words in group))
        for stamp, group in itertools.groupby(in_order, key=lambda event: event[0])
    ]


def decimals(half_width: float) -> int:
    """Return the number of decimals for two significant digits of half an interval."""
    if not 0.0 < half_width < math.inf:
        return 6
    return len(significant(half_width).partition('.')[2])
