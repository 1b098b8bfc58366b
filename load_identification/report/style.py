"""The common style of the report's figures."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from load_identification.interface.names import STAGES
from load_identification.report.recorder import FOUND, LOST, Recorder
from load_identification.typing_aliases import FloatArray

BLACK, GREY, SILVER, LIGHT = '#222222', '#8a8a8a', '#bbbbbb', '#e2e2e2'
BLUE, ORANGE, GREEN, VERMILLION, PURPLE = '#0072B2', '#E69F00', '#009E73', '#D55E00', '#CC79A7'
AXES = (BLUE, ORANGE, GREEN)
"""Colours of x, y, z. All are of the palette of Okabe and Ito, distinct with any colour vision."""

DPI = 100

LEVEL = 17
"""Step between the 16 levels of a colour channel."""

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


def mark_changes(axes: Sequence[Axes], recorder: Recorder) -> None:
    """Draw a line at each change; events of identification or its loss are no changes."""
    for event in recorder.events:
        if not event.words.endswith((FOUND, LOST)):
            for ax in axes:
                time = 1e-9 * (event.stamp - recorder.first)
                ax.axvline(time, color=VERMILLION, linewidth=1.0, linestyle='--', zorder=1)


def mark_events(axes: Sequence[Axes], recorder: Recorder) -> None:
    """Draw a line at each event, and write above the first axes what was identified when."""
    mark_changes(axes, recorder)
    found = []
    for event in recorder.events:
        time = 1e-9 * (event.stamp - recorder.first)
        if event.words.endswith((FOUND, LOST)):
            for ax in axes:
                ax.axvline(time, color=GREY, linewidth=0.9, linestyle=':', zorder=1)
        if event.words in FIRST_WORDS:
            found.append(f'{event.words.removesuffix(f" {FOUND}")} {time:.1f} s')
    if 0 < len(found) <= len(STAGES):
        words = f'identified: {", ".join(found)}'
        note(axes[0], words, (0.0, 1.0), 'axes fraction', (0, 4), va='bottom', size=10)
