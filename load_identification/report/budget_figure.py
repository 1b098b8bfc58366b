"""The figure of the error budget: what the payload's uncertainty comes from."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from load_identification.estimation.belief.error_budget import NAMES
from load_identification.interface.names import INTERVAL, significant
from load_identification.report.snapshot import Snapshot
from load_identification.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    PURPLE,
    SILVER,
    SKY,
    VERMILLION,
    new_figure,
    note,
)
from load_identification.typing_aliases import FloatArray

YELLOW = '#F0E442'
"""The last colour of the palette of Okabe and Ito."""

COLOURS = {
    'sensor gain': BLUE,
    'errors of the cell': BLUE,
    'drive gains': BLUE,
    'pose field': GREEN,
    'hysteresis and cables': ORANGE,
    'cross-talk': SKY,
    'arm model': SKY,
    'mounting': PURPLE,
    'base tilt': YELLOW,
    'joint zeros': VERMILLION,
    'noise': GREY,
    'drift': SILVER,
    'tool': BLACK,
}
"""Colours of the sources in their order in the figure; the others are drawn as one."""

REST = 'others'

LEAST_SHOWN, LEAST_LEFT, LEAST_LABELLED = 0.01, 0.002, 0.07
"""Shares of a variance from which a source is drawn on its own, what is left is drawn, and a bar
is labelled [-]."""

ROWS = (('mass', 1e3, 'g'), *((f'centre of mass {axis}', 1e3, 'mm') for axis in 'xyz'))
"""Name, factor and unit of each value."""

DARK = (BLUE, GREEN, VERMILLION, BLACK, GREY)
"""Colours on which white text is legible."""


def budget_figure(snapshot: Snapshot) -> Figure | None:
    """Draw the shares of the sources in the variances; None where no budget is known.

    Parameters
    ----------
    snapshot : Snapshot
        Its budget is by cause, or of the mass by source.
    """
    budget, identified = snapshot.causes, snapshot.identified
    known = [
        k
        for k in range(budget.shape[1])
        if identified[k] and np.isfinite(budget[:, k]).all() and budget[:, k].any()
    ]
    if not known:
        return None
    shares = grouped(budget[:, known] / budget[:, known].sum(axis=0))
    with new_figure(11.0, 1.4 + 0.62 * len(known)) as figure:
        ax = figure.subplots()
        for row, k in enumerate(known):
            half = INTERVAL * float(np.sqrt(budget[:, k].sum()))
            _draw_bar(ax, row, {name: each[row] for name, each in shares.items()}, k, half)
        ax.set_yticks(range(len(known)), [ROWS[k][0] for k in known])
        ax.set_ylim(len(known) - 0.5, -0.5)
        ax.set_xlim(0.0, 100.0)
        ax.set_xlabel('share of the variance [%]')
        ax.grid(False)
        ax.spines['left'].set_visible(False)
        ax.tick_params(axis='y', length=0)
        names = ax.get_legend_handles_labels()
        figure.legend(*names, loc='outside upper left', ncols=min(len(shares), 6))
    return figure


def grouped(shares: FloatArray) -> dict[str, FloatArray]:
    """Return the shares (n,) of each source that is drawn, in the order of the figure.

    Parameters
    ----------
    shares : (sources, n) array
        Of each source in the variance of each value.
    """
    of = dict(zip(NAMES[len(shares)], shares, strict=True))
    drawn = {name: of[name] for name in COLOURS if name in of and of[name].max() >= LEAST_SHOWN}
    rest = np.asarray(1.0 - sum(drawn.values()))
    return drawn | ({REST: rest} if rest.max() >= LEAST_LEFT else {})


def _draw_bar(ax: Axes, row: int, shares: dict[str, FloatArray], k: int, half: float) -> None:
    """Draw the bar of the value k, with the half-widths of its interval that sources make."""
    _, scale, unit = ROWS[k]
    begin = 0.0
    for name, share in shares.items():
        colour = COLOURS.get(name, LIGHT)
        width = 100.0 * float(share)
        label = name if row == 0 else None
        ax.barh(row, width, left=begin, height=0.66, color=colour, edgecolor='white', label=label)
        if share >= LEAST_LABELLED:
            part = scale * half * float(np.sqrt(share))
            ax.text(
                begin + width / 2.0,
                row,
                f'± {significant(part)}',
                ha='center',
                va='center',
                color='white' if colour in DARK else BLACK,
            )
        begin += width
    words, place = f'± {significant(scale * half)} {unit}', ('axes fraction', 'data')
    note(ax, words, (1.0, row), place, (6, 0), va='center', weight='bold')
