"""The common style of the report's figures."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from PIL import Image

from load_identification.interface.names import STAGES
from load_identification.report.recorder import FOUND, LOST, Recorder
from load_identification.typing_aliases import FloatArray

BLACK, GREY, SILVER, LIGHT = '#222222', '#8a8a8a', '#bbbbbb', '#e2e2e2'
BLUE, ORANGE, GREEN, VERMILLION, PURPLE = '#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7'
SKY = '#56B4E9'
AXES = (BLUE, ORANGE, GREEN)
"""Colours of x, y, z. All are of the palette of Okabe and Ito, distinct with any colour vision."""

DPI = 100

LEVEL = 17
"""Step between the 16 levels of a colour channel."""

MOST_MARKS = 10
"""Most lines at what was identified or lost, and thick ones at changes: more hide the curves."""

FIRST_WORDS = tuple(f'{part} {FOUND}' for part in STAGES)
"""Events at which a group of parameters became identified."""

STYLE: Any = {
    'font.size': 11,
    'axes.titlesize': 12,
    'axes.titleweight': 'bold',
    'axes.titlelocation': 'left',
    'axes.labelsize': 11,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'axes.axisbelow': True,
    'axes.formatter.use_mathtext': True,
    'axes.formatter.limits': (-3, 4),
    'grid.color': '#e6e6e6',
    'legend.frameon': False,
    'legend.fontsize': 10,
    'lines.linewidth': 1.4,
    'figure.constrained_layout.use': True,
}


@contextlib.contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """Make a figure of a given size [in] in the report's style."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), dpi=DPI)
        FigureCanvasAgg(figure)
        yield figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as a small PNG."""
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, dpi=DPI, facecolor='white')
    picture = Image.open(buffer).convert('RGB')
    if not any(ax.name == '3d' or ax.images for ax in figure.axes):
        # Lines need few colours, shades many; equal levels in all channels keep grey grey.
        picture = picture.point(lambda value: LEVEL * round(value / LEVEL))
    picture.save(path, optimize=True)


def broken(seconds: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Insert NaN where samples are missing, so that no line crosses a gap."""
    if len(seconds) < 3:
        return seconds, values
    steps = np.diff(seconds)
    gaps = np.flatnonzero(steps > 5.0 * np.median(steps)) + 1
    return np.insert(seconds, gaps, np.nan), np.insert(values, gaps, np.nan, axis=0)


def seconds_of(recorder: Recorder) -> FloatArray:
    """Return the times of the estimates since the first sample, (n,) [s]."""
    return np.array([1e-9 * (s.stamp - recorder.first) for s in recorder.snapshots])


def spans(
    turns: Sequence[tuple[int, bool]], recorder: Recorder, stop: float
) -> list[tuple[float, float]]:
    """Return from when to when [s] something held, which changed at some stamps [ns]."""
    edges = [1e-9 * (stamp - recorder.first) for stamp, _ in turns]
    found: list[tuple[float, float]] = []
    for (_, holds), (begin, end) in zip(turns, pairwise([*edges, stop]), strict=True):
        if holds and begin <= end:
            joined = bool(found) and found[-1][1] == begin
            found.append((found.pop()[0] if joined else begin, end))
    return found


def show_whole_time(ax: Axes, recorder: Recorder) -> None:
    """Make a time axis reach from the first to the last sample, as in every other figure."""
    last = recorder.samples.seconds[-1] if recorder.count else 0.0
    ax.set_xlim(0.0, max(float(last), 1e-3))


def note(
    ax: Axes,
    words: str,
    at: tuple[float, float],
    coordinates: Any,
    away: tuple[float, float],
    **style: Any,
) -> None:
    """Write words at a place in coordinates of matplotlib, so many points away from it."""
    ax.annotate(words, at, xycoords=coordinates, xytext=away, textcoords='offset points', **style)


def plain_numbers(ax: Axes) -> None:
    """Label a logarithmic vertical axis by plain numbers, few enough to be read."""
    low, high = ax.get_ylim()
    steps = (1.0, 2.0, 5.0) if high < 300.0 * low else (1.0,)
    ax.yaxis.set_major_locator(LogLocator(subs=steps))
    ax.yaxis.set_major_formatter(lambda value, _: np.format_float_positional(value, 6, trim='-'))
    ax.yaxis.set_minor_formatter(NullFormatter())


def mark_changes(axes: Sequence[Axes], recorder: Recorder) -> None:
    """Draw a line at each change; events of identification or its loss are no changes."""
    changes = [event for event in recorder.events if not event.words.endswith((FOUND, LOST))]
    width, alpha = (1.0, 1.0) if len(changes) <= MOST_MARKS else (0.6, 0.4)
    for event in changes:
        for ax in axes:
            time = 1e-9 * (event.stamp - recorder.first)
            ax.axvline(
                time, color=VERMILLION, linewidth=width, alpha=alpha, linestyle='--', zorder=1
            )


def mark_events(axes: Sequence[Axes], recorder: Recorder) -> None:
    """Draw a line at each event, and write above the first axes what was identified when.

    More than `MOST_MARKS` times of identification or its loss are not drawn but counted.
    """
    mark_changes(axes, recorder)
    turns = [event for event in recorder.events if event.words.endswith((FOUND, LOST))]
    times = [1e-9 * (event.stamp - recorder.first) for event in turns]
    found = [
        f'{event.words.removesuffix(f" {FOUND}")} {time:.1f} s'
        for event, time in zip(turns, times, strict=True)
        if event.words in FIRST_WORDS
    ]
    words = f'identified: {", ".join(found)}' if 0 < len(found) <= len(STAGES) else ''
    marks = set(times)
    if len(marks) > MOST_MARKS:
        words, marks = f'identified or lost {len(marks)} times: not drawn', set()
    for ax in axes:
        for time in marks:
            ax.axvline(time, color=GREY, linewidth=0.9, linestyle=':', zorder=1)
    note(axes[0], words, (0.0, 1.0), 'axes fraction', (0, 4), va='bottom', size=10)
