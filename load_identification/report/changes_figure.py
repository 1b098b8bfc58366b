"""The report's figure of the change detection."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from load_identification.estimation.changes.hypotheses import MARGIN as NAMED
from load_identification.estimation.changes.hypotheses import Hypothesis
from load_identification.report.recorder import LEVELS, Recorder
from load_identification.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    broken,
    mark_changes,
    new_figure,
    plain_numbers,
    show_whole_time,
    spans,
)
from load_identification.typing_aliases import FloatArray

HYPOTHESES = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, GREY, SKY, BLACK)
"""Colours of the hypotheses."""

PAUSE, MOST_STRETCHES, LEAST_SHARE = 5.0, 4, 0.1
"""Time without scores from which they are drawn apart [s], most parts drawn, and the share of the
whole time that they take up where all of it is drawn [-]."""

SMALLEST_NIS = 1e-3
"""Smallest NIS over its gate that is shown [-]."""


def changes_figure(recorder: Recorder) -> Figure | None:
    """Draw NIS, state and scores of the change detection; None if they are not recorded.

    The scores are drawn over the whole time, or, if they take up little of it, over the longest
    stretches that have some.
    """
    looks, scored = recorder.looks[2], recorder.scored
    if not len(looks):
        return None
    stretches = np.split(scored, 1 + np.flatnonzero(np.diff(scored[:, 0]) > PAUSE))
    stretches = sorted(stretches, key=len)[-MOST_STRETCHES:]
    stretches = sorted((s for s in stretches if len(s)), key=lambda s: float(s[0, 0]))
    lasting = sum(s[-1, 0] - s[0, 0] for s in stretches)
    if lasting > LEAST_SHARE * looks[-1, 0]:
        stretches = [scored]
    with new_figure(11.0, 6.0 if stretches else 3.4) as figure:
        grid = figure.add_gridspec(2 if stretches else 1, max(1, len(stretches)))
        upper = figure.add_subplot(grid[0, :])
        shown = np.where(looks[:, 2] > SMALLEST_NIS, looks[:, 2], np.nan)
        upper.semilogy(*broken(looks[:, 0], shown), color=BLUE, marker='.', markersize=3.0)
        upper.axhline(1.0, color=BLACK, linestyle=':')
        upper.set(xlabel='time [s]', ylabel='NIS over its gate')
        plain_numbers(upper)
        lower: list[Axes] = []
        for k, stretch in enumerate(stretches):
            ax = figure.add_subplot(grid[1, k], sharey=lower[0] if lower else None)
            _draw_scores(ax, stretch)
            ax.set_ylabel('' if lower else 'chi-square above the best')
            ax.set_xlabel('time [s]')
            lower.append(ax)
        for ax in (upper, *lower):
            _shade(ax, recorder, float(looks[-1, 0]))
            mark_changes([ax], recorder)
            show_whole_time(ax, recorder)
        for ax, stretch in zip(lower, stretches, strict=True):
            ax.xaxis.set_major_locator(MaxNLocator(3 if len(stretches) > 1 else 8))
            if stretch is not scored:
                room = max(1.0, 0.2 * float(np.ptp(stretch[:, 0])))
                ax.set_xlim(stretch[0, 0] - room, stretch[-1, 0] + room)
        pairs = [ax.get_legend_handles_labels() for ax in (upper, *lower)]
        drawn = {
            name: line for lines, names in pairs for line, name in zip(lines, names, strict=True)
        }
        if drawn:
            figure.legend(drawn.values(), drawn.keys(), loc='outside right center')
    return figure


def _draw_scores(ax: Axes, looks: FloatArray) -> None:
    for k, (hypothesis, color) in enumerate(zip(Hypothesis, HYPOTHESES, strict=True)):
        if np.isfinite(looks[:, 3 + k]).any():
            ax.plot(
                *broken(looks[:, 0], looks[:, 3 + k]),
                color=color,
                marker='.',
                label=hypothesis.value,
            )
    ax.axhline(NAMED, color=BLACK, linestyle=':')
    ax.set_yscale('symlog', linthresh=10.0)
    ax.set_ylim(bottom=0.0)
    ax.yaxis.set_major_locator(FixedLocator([0.0, 10.0, NAMED, 100.0, 1000.0, 10000.0]))
    ax.yaxis.set_major_formatter(lambda value, _: f'{value:.0f}')


def _shade(ax: Axes, recorder: Recorder, stop: float) -> None:
    """Shade while nothing is claimed."""
    for level, color in ((1, ORANGE), (2, VERMILLION)):
        turns = [(stamp, state is LEVELS[level]) for stamp, state in recorder.states]
        for begin, end in spans(turns, recorder, stop):
            ax.axvspan(begin, end, color=color, alpha=0.2, label=LEVELS[level].value)
