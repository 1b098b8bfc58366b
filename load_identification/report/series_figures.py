"""The report's figures over time: wrenches, estimates, offset."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from load_identification.estimation.events import EventKind
from load_identification.estimation.payload_estimate import UNKNOWN_STD
from load_identification.interface.names import INTERVAL, STAGES
from load_identification.report.recorder import LOST, Recorder, Samples
from load_identification.report.snapshot import Outcome, Snapshot
from load_identification.report.style import (
    AXES,
    BLACK,
    BLUE,
    LIGHT,
    SILVER,
    VERMILLION,
    broken,
    mark_changes,
    mark_events,
    new_figure,
    seconds_of,
    show_whole_time,
)
from load_identification.typing_aliases import BoolArray, FloatArray

CHANGES = EventKind.CHANGE_DETECTED.words, EventKind.LOAD_CHANGED.words
"""Beginnings of events from which another payload may be held."""

MARGIN = 0.15
"""Space above and below the plotted values, as a share of their range."""

PLAIN = {'facecolor': 'white', 'edgecolor': 'none', 'pad': 2.0}
"""Ground of words that are written across lines."""

SHOWN_WIDTH = 4.0
"""Largest width of a band that must be fully visible, as a multiple of its final width."""


AS_GOOD_AS_AT_THE_END = 3.0
"""Largest standard deviation of a usable offset, as a multiple of the last one: before that, the
offset is not distinguished from the payload."""


def wrench_figure(
    samples: Samples, recorder: Recorder, outcome: Outcome, marks: bool = True
) -> Figure:
    """Draw measured and predicted force and torque, and the residuals; figures 4 and 5."""
    predicted = outcome.sign * predict(samples, recorder)
    wrench = outcome.sign * samples.wrench
    bands = outcome.sign * samples.low, outcome.sign * samples.high
    known = bool(np.isfinite(predicted).any())
    with new_figure(11.0, 8.4 if known else 6.4) as figure:
        axes = figure.subplots(4 if known else 3, 2, sharex=True)
        for column, (name, unit) in enumerate((('force', 'N'), ('torque', 'N·m'))):
            for row, axis in enumerate('xyz'):
                ax, k = axes[row, column], 3 * column + row
                ax.set_ylabel(f'{name} {axis} [{unit}]')
                _draw_measured(ax, samples.seconds, wrench[:, k], bands[0][:, k], bands[1][:, k])
                ax.plot(
                    *broken(samples.seconds, predicted[:, k]),
                    color=BLUE,
                    linewidth=1.1,
                    label='predicted' if known else 'nothing predicted: not identified',
                )
                if not np.isfinite(wrench[:, k]).any():
                    _say(ax, 'no signal')
                elif known and not np.isfinite(predicted[:, k]).any():
                    _say(ax, 'not identified: nothing to predict')
            if known:
                _draw_residuals(axes[3, column], samples, wrench - predicted, column, unit)
            axes[-1, column].set_xlabel('time [s]')
        # Above the panels, where it covers no curve.
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc='outside upper right', ncols=3)
        figure.align_ylabels(axes)
        # Labels late in a long recording are long.
        axes[0, 0].xaxis.set_major_locator(MaxNLocator(6))
        if marks:
            mark_events([*axes[:, 0], *axes[:, 1]], recorder)
            show_whole_time(axes[0, 0], recorder)
    return figure


def _draw_measured(
    ax: Axes, seconds: FloatArray, mean: FloatArray, low: FloatArray, high: FloatArray
) -> None:
    if np.nanmax(np.abs(high - low), initial=0.0) > 0.0:
        times, edges = broken(seconds, np.column_stack([low, high]))
        ax.fill_between(times, *edges.T, color=LIGHT, linewidth=0.0, label='measured, extremes')
        ax.plot(*broken(seconds, mean), color=SILVER, linewidth=3.0, label='measured, averaged')
    else:
        ax.plot(*broken(seconds, mean), color=SILVER, linewidth=4.0, label='measured')


def _draw_residuals(
    ax: Axes, samples: Samples, residual: FloatArray, column: int, unit: str
) -> None:
    for k, axis in enumerate('xyz'):
        ax.plot(
            *broken(samples.seconds, residual[:, 3 * column + k]),
            color=AXES[k],
            linewidth=0.8,
            label=axis,
        )
    mine = residual[:, 3 * column : 3 * column + 3]
    known = np.isfinite(mine)
    if known.any():
        # Open changes are to be clipped, as they tell nothing of the rest.
        limit = 1.5 * np.percentile(np.abs(mine[known]), 98.0)
        if limit > 0.0:
            ax.set_ylim(-limit, limit)
        # Above the panel, where it covers no curve.
        place = (1.0, 1.0)
        legend = ax.legend(loc='lower right', bbox_to_anchor=place, ncols=3, borderaxespad=0.0)
        for line in legend.get_lines():
            line.set_linewidth(2.0)
    ax.set_ylabel(f'residual [{unit}]')


def predict(samples: Samples, recorder: Recorder) -> FloatArray:
    """Return the wrench explained by payload and offset, (n, 6) on the sensor [N, N m].

    The payload is that of the last estimate; for a payload identified and lost again, or changed,
    that of the last estimate before. The offset is that of the time. NaN where nothing was
    identified.
    """
    predicted = np.full((len(samples.seconds), 6), np.nan)
    first, over = recorder.first, (f'mass {LOST}', *CHANGES)
    ends = sorted(1e-9 * (e.stamp - first) for e in recorder.events if e.words.startswith(over))
    known = [
        s
        for s in recorder.snapshots
        if s.identified[STAGES['mass']].all() and np.isfinite(s.total).all()
    ]
    for begin, end in pairwise([-np.inf, *(end for end in ends if end >= 0.0), np.inf]):
        held = [s for s in known if begin < 1e-9 * (s.stamp - first) <= end]
        inside = (samples.seconds > begin) & (samples.seconds <= end)
        if held:
            wrench = -samples.matrix[inside] @ held[-1].total
            predicted[inside] = wrench + _offset(samples.seconds[inside], held, first)
    return predicted


def _offset(seconds: FloatArray, held: list[Snapshot], first: int) -> FloatArray:
    """Return the offset at given times, (n, 6), from the estimates of one payload."""
    times = np.array([1e-9 * (s.stamp - first) for s in held])
    offsets = np.array([s.offset for s in held])
    std = np.array([s.offset_std for s in held])
    columns = []
    for offset, its_std in zip(offsets.T, std.T, strict=True):
        # An unknown standard deviation excludes no estimate.
        good = ~(its_std > AS_GOOD_AS_AT_THE_END * its_std[-1])
        columns.append(np.interp(seconds, times[good], offset[good]))
    return np.column_stack(columns)


PANELS = (
    ('mass [kg]',),
    ('centre x [mm]', 'centre y [mm]', 'centre z [mm]'),
    (r'$I_{xx}$ [kg·m²]', r'$I_{yy}$ [kg·m²]', r'$I_{zz}$ [kg·m²]'),
    (r'$I_{xy}$ [kg·m²]', r'$I_{xz}$ [kg·m²]', r'$I_{yz}$ [kg·m²]'),
)
PLACES = ((0,), (1, 2, 3), (4, 7, 9), (5, 6, 8))
"""Index in message order of each panel's value."""

SCALES = (1.0, 1e3, 1.0, 1.0)
"""Units per SI unit in each row of panels."""


def estimates_figure(recorder: Recorder, outcome: Outcome) -> Figure:
    """Draw the ten parameters with their 95 % bands over time, and the truth if known."""
    inertia = any(s.identified[4:].any() for s in recorder.snapshots)
    rows = 4 if inertia else 2
    with new_figure(11.0, 2.2 * rows + 0.4) as figure:
        grid = figure.add_gridspec(rows, 3)
        shown: list[Axes] = []
        for row in range(rows):
            for column, label in enumerate(PANELS[row]):
                place = grid[row, column] if len(PANELS[row]) > 1 else grid[row, :]
                ax = figure.add_subplot(place, sharex=shown[0] if shown else None)
                _draw_estimate(ax, recorder, outcome, PLACES[row][column], SCALES[row])
                ax.set_ylabel(label)
                if row == rows - 1:
                    ax.set_xlabel('time [s]')
                shown.append(ax)
        show_whole_time(shown[0], recorder)
        mark_events(shown, recorder)
        words = 'estimate and its 95 % band'
        if outcome.truth is not None:
            words += ', dashed: truth'
        figure.suptitle(
            words + ('' if inertia else '; inertia never identified'), x=0.99, ha='right', size=11
        )
    return figure


def _draw_estimate(
    ax: Axes, recorder: Recorder, outcome: Outcome, place: int, scale: float
) -> None:
    values, std, known = (
        np.array([getattr(s, name)[place] for s in recorder.snapshots])
        for name in ('values', 'std', 'identified')
    )
    seconds = seconds_of(recorder)
    # No line leads from one load to the next.
    changes = [
        1e-9 * (e.stamp - recorder.first) for e in recorder.events if e.words.startswith(CHANGES)
    ]
    parts = np.unique(np.searchsorted(seconds, changes))
    seconds, values, std, known = (
        np.insert(np.asarray(each, dtype=float), parts, gap)
        for each, gap in ((seconds, np.nan), (values, np.nan), (std, np.nan), (known, 0.0))
    )
    _draw_band(ax, seconds, scale * values, scale * std, known > 0.0)
    if outcome.truth is not None:
        _draw_truth(ax, scale * float(outcome.truth[place]))


def offset_figure(recorder: Recorder, outcome: Outcome) -> Figure:
    """Draw the sensor's offset with its 95 % band over time."""
    seconds = seconds_of(recorder)
    values = outcome.sign * np.array([s.offset for s in recorder.snapshots])
    std = np.array([s.offset_std for s in recorder.snapshots])
    known = std < UNKNOWN_STD
    with new_figure(11.0, 6.6) as figure:
        axes = figure.subplots(3, 2, sharex=True)
        for k, channel in enumerate((*'xyz', *'xyz')):
            ax, unit = axes[k % 3, k // 3], ('N', 'N·m')[k // 3]
            _draw_band(ax, seconds, values[:, k], std[:, k], known[:, k])
            if outcome.truth is not None:
                _draw_truth(ax, float(outcome.truth[10 + k]))
            ax.set_ylabel(f'{("force", "torque")[k // 3]} {channel} [{unit}]')
        mark_changes([*axes[:, 0], *axes[:, 1]], recorder)
        show_whole_time(axes[0, 0], recorder)
        words = 'offset and its 95 % band' + (
            ', dashed: truth' if outcome.truth is not None else ''
        )
        figure.suptitle(words, x=0.99, ha='right', size=11)
        for ax in axes[-1]:
            ax.set_xlabel('time [s]')
    return figure


def _draw_band(
    ax: Axes, seconds: FloatArray, values: FloatArray, std: FloatArray, known: BoolArray
) -> None:
    """Draw a value with its 95 % band where it is known."""
    shown, half = np.where(known, values, np.nan), INTERVAL * std
    low, high = shown - half, shown + half
    finite = np.isfinite(low) & np.isfinite(high)
    if not finite.any():
        _say(ax, 'not identified')
        ax.set_yticks([])
        return
    # Much wider bands, at the beginning and after each change, may exceed the panel.
    ends = np.flatnonzero(finite & ~np.append(finite[1:], False))
    final = half[ends[np.minimum(np.searchsorted(ends, np.arange(len(half))), len(ends) - 1)]]
    near = finite & (half <= SHOWN_WIDTH * final)
    ax.fill_between(seconds, low, high, color=BLUE, alpha=0.25, linewidth=0.0)
    ax.plot(seconds, np.where(near, shown, np.nan), color=BLUE)
    bottom, top = float(low[near].min()), float(high[near].max())
    room = MARGIN * max(top - bottom, 1e-12)
    ax.set_ylim(bottom - room, top + room)


def _draw_truth(ax: Axes, truth: float) -> None:
    ax.axhline(truth, color=VERMILLION, linestyle='--', linewidth=1.3)
    bottom, top = ax.get_ylim()
    room = MARGIN * (top - bottom)
    ax.set_ylim(min(bottom, truth - room), max(top, truth + room))


def _say(ax: Axes, words: str) -> None:
    ax.text(
        0.5, 0.5, words, transform=ax.transAxes, ha='center', va='center', color=BLACK, bbox=PLAIN
    )
