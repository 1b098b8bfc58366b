"""Figures of the information in the data: identification over time, excitation, spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter

from load_identification.estimation.events import EventKind
from load_identification.estimation.identifiability import MOMENTS, RELATIVE_MASS
from load_identification.estimation.payload_estimate import UNKNOWN_STD
from load_identification.interface.names import INTERVAL
from load_identification.pipeline.settings import requirements
from load_identification.report.recorder import Recorder
from load_identification.report.snapshot import Outcome, Snapshot
from load_identification.report.spectrum import Spectrum
from load_identification.report.style import (
    AXES,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    VERMILLION,
    mark_changes,
    new_figure,
    note,
    plain_numbers,
    seconds_of,
    show_whole_time,
    spans,
)
from load_identification.typing_aliases import FloatArray

LENGTH = 0.1
"""Length scale that makes first moments and inertias comparable with masses [m]."""

MAINS, MAINS_WIDTH = (50.0, 60.0), 0.6
"""Mains frequencies, and the largest distance of a mains peak from their multiples [Hz]."""

UNKNOWN_DIRECTION = 1e3
"""Standard deviation from which a direction counts as unknown, in units of 1 kg and `LENGTH`: as
wide as the prior of a mass."""

WIDEST = 30.0
"""Largest interval shown, in units of the required one [-]."""

FREQUENCIES = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
"""Ticks of the frequency axis [Hz]."""

UNITS = np.array([1.0] + [LENGTH] * 3 + [LENGTH**2] * 6)
PARAMETERS = (
    '$m$', r'$m\,c_x$', r'$m\,c_y$', r'$m\,c_z$',
    '$I_{xx}$', '$I_{xy}$', '$I_{xz}$', '$I_{yy}$', '$I_{yz}$', '$I_{zz}$',
)  # fmt: skip
VALUES = (
    'mass', 'centre x', 'centre y', 'centre z', 'inertia xx', 'inertia xy', 'inertia xz',
    'inertia yy', 'inertia yz', 'inertia zz',
)  # fmt: skip

ANOTHER_LOAD = tuple(
    kind.words
    for kind in (
        EventKind.LOAD_CHANGED,
        EventKind.LOAD_AND_OFFSET_CHANGED,
        EventKind.RESET,
        EventKind.SAVE_TOOL,
        EventKind.CLEAR_TOOL,
    )
)
"""Events that end earlier identifications."""


def identified_figure(recorder: Recorder, outcome: Outcome) -> Figure:
    """Draw since when each parameter has been identified, and its uncertainty over time."""
    seconds = seconds_of(recorder)
    with new_figure(11.0, 8.0) as figure:
        top, *rows = figure.subplots(4, 1, sharex=True, height_ratios=[1.7, 1.0, 1.0, 1.0])
        _draw_timeline(top, recorder)
        _draw_uncertainty(rows, seconds, recorder, outcome)
        mark_changes([top, *rows], recorder)
        rows[-1].set_xlabel('time [s]')
        show_whole_time(top, recorder)
    return figure


def _draw_timeline(ax: Axes, recorder: Recorder) -> None:
    stop = float(seconds_of(recorder)[-1])
    changes = [
        1e-9 * (event.stamp - recorder.first)
        for event in recorder.events
        if event.words.startswith(ANOTHER_LOAD)
    ]
    for k in range(len(VALUES)):
        color = (BLUE, *[ORANGE] * 3, *[GREEN] * 6)[k]
        ax.barh(k, stop, height=0.6, color='#eeeeee')
        turns = [(stamp, bool(known[k])) for stamp, known in recorder.turns]
        found = spans(turns, recorder, stop)
        bars = [(begin, end - begin) for begin, end in found]
        ax.broken_barh(bars, (k - 0.3, 0.6), color=color, linewidth=0.0)
        words, color = 'not identified', VERMILLION
        if found and found[-1][1] == stop:
            words, color = f'since {max([found[-1][0], *changes]):.1f} s', BLACK
        place = ('axes fraction', 'data')
        note(ax, words, (1.0, k), place, (6, 0), va='center', size=9.5, color=color)
        ax.set_ylim(len(VALUES) - 0.5, -0.5)
    ax.set_yticks(range(len(VALUES)), VALUES, fontsize=9.5)
    ax.grid(False)
    ax.set_title('identified')


def _draw_uncertainty(
    rows: list[Axes], seconds: FloatArray, recorder: Recorder, outcome: Outcome
) -> None:
    std = np.array([s.std for s in recorder.snapshots])
    std = np.where(std < UNKNOWN_STD, std, np.nan)
    last = recorder.snapshots[-1]
    known = last.identified[MOMENTS].all()
    largest = float(np.max((last.values - 2.0 * last.std)[MOMENTS])) if known else np.nan
    required = requirements(outcome.parameters)
    panels = (
        ('mass [kg]', [0], 1.0, max(required.mass, RELATIVE_MASS * last.values[0])),
        ('centre [mm]', [1, 2, 3], 1e3, required.center_of_mass),
        ('inertia [kg·m²]', list(range(4, 10)), 1.0, largest * required.inertia),
    )
    for ax, (label, columns, scale, limit) in zip(rows, panels, strict=True):
        for k, j in enumerate(columns):
            name = VALUES[j].split(' ')[-1]
            ax.semilogy(
                seconds,
                scale * INTERVAL * std[:, j],
                color=(*AXES, BLACK, GREY, VERMILLION)[k],
                linestyle='-' if k < 3 else '--',
                label=name,
            )
        if np.isfinite(limit):
            line = scale * INTERVAL * limit
            ax.axhline(line, color=BLACK, linestyle=':', label='required')
            # What is hardly known at first must not take up the panel.
            ax.set_ylim(top=min(ax.get_ylim()[1], WIDEST * line))
        plain_numbers(ax)
        ax.set_ylabel(f'± 95 %\n{label}')
        ax.legend(loc='center left', bbox_to_anchor=(1.0, 0.5), fontsize=9.5)
    rows[0].set_title('uncertainty')


def directions(snapshot: Snapshot) -> tuple[FloatArray, FloatArray]:
    """Return the independent combinations of the ten parameters, best determined first.

    They are the eigenvectors of their covariance with the offset unknown, in units of 1 kg and
    `LENGTH`.

    Returns
    -------
    std : (10,) array
        Standard deviation of each combination; NaN if the covariance is unknown.
    shares : (10, 10) array
        Row k: the share of each parameter in combination k; each row sums to one.
    """
    covariance = snapshot.covariance[:10, :10] / np.outer(UNITS, UNITS)
    if not np.isfinite(covariance).all():
        return np.full(10, np.nan), np.full((10, 10), np.nan)
    variance, vectors = np.linalg.eigh(covariance)
    return np.sqrt(np.maximum(variance, 0.0)), (vectors**2).T


def condition_number(snapshot: Snapshot) -> float:
    """Return the ratio of standard deviations of the worst to the best determined direction.

    It is the condition number of the weighted regressor in units of 1 kg and `LENGTH`; NaN while
    some direction is unknown.
    """
    std, _ = directions(snapshot)
    return float(std[-1] / std[0]) if 0.0 < std[-1] < UNKNOWN_DIRECTION else np.nan


def excitation_figure(recorder: Recorder) -> Figure:
    """Draw the information per direction, the motion, and the condition number."""
    with new_figure(11.0, 8.6) as figure:
        parts: Any = figure.subfigures(2, 1, height_ratios=[1.5, 1.0])
        upper, lower = parts
        _draw_directions(upper, recorder.snapshots[-1])
        condition, *motion = lower.subplots(1, 4, width_ratios=[3.4, 1.0, 1.0, 1.0])
        numbers = [condition_number(s) for s in recorder.snapshots]
        condition.semilogy(seconds_of(recorder), numbers, color=BLUE)
        mark_changes([condition], recorder)
        show_whole_time(condition, recorder)
        plain_numbers(condition)
        condition.set_title('condition number')
        condition.set_xlabel('time [s]')
        condition.set_ylabel('worst / best direction [-]')
        _draw_motion(motion, recorder)
    return figure


def _draw_directions(figure: SubFigure, snapshot: Snapshot) -> None:
    std, shares = directions(snapshot)
    heat, bars = figure.subplots(1, 2, sharey=True, width_ratios=[2.2, 1.0])
    heat.imshow(shares, cmap='Blues', vmin=0.0, vmax=1.0, aspect='auto')
    for row, column in zip(*np.nonzero(shares >= 0.1), strict=True):
        share = shares[row, column]
        heat.text(
            column,
            row,
            f'{100 * share:.0f}',
            ha='center',
            va='center',
            fontsize=9.5,
            color='white' if share > 0.55 else BLACK,
        )
    heat.set_xticks(range(10), PARAMETERS)
    heat.set_yticks(range(10), [f'{k + 1}' for k in range(10)])
    heat.grid(False)
    heat.set_ylabel('direction, best known first')
    heat.set_title('what each direction is made of [%]')
    shown = np.where(std < UNKNOWN_DIRECTION, std, np.nan)
    bars.barh(range(10), shown, color=BLUE, height=0.65, log=True)
    for k in np.flatnonzero(~np.isfinite(shown)):
        bars.text(0.02, k, 'nothing known', transform=bars.get_yaxis_transform(), va='center')
    bars.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    bars.xaxis.set_major_formatter(lambda value, _: f'{value:g}')
    bars.xaxis.set_minor_formatter(NullFormatter())
    bars.set_title('its standard deviation')
    bars.set_xlabel(f'in units of 1 kg and {LENGTH:g} m')


def _draw_motion(axes: list[Axes], recorder: Recorder) -> None:
    """Draw how strongly each axis of S was excited."""
    rms = np.sqrt(np.diagonal(recorder.squares, axis1=1, axis2=2) / max(recorder.count, 1))
    labels = ('gravity and\nacceleration', 'angular\nvelocity', 'angular\nacceleration')
    units = ('m/s²', 'rad/s', 'rad/s²')
    for ax, values, label, unit in zip(axes, rms, labels, units, strict=True):
        ax.bar(range(3), values, color=AXES, width=0.7)
        ax.set_xticks(range(3), list('xyz'))
        ax.set_title(label, fontsize=10.5)
        ax.set_ylabel(f'rms [{unit}]')
        ax.grid(False, axis='x')


def spectrum_figure(spectrum: Spectrum, cutoff: float) -> Figure:
    """Draw the spectrum of the raw wrench's residuals with its resonances marked."""
    with new_figure(11.0, 5.8) as figure:
        axes = figure.subplots(2, 1, sharex=True)
        for group, (ax, name, unit) in enumerate(
            zip(axes, ('force', 'torque'), ('N', 'N·m'), strict=True)
        ):
            for k, axis in enumerate('xyz'):
                density = spectrum.density[:, 3 * group + k]
                ax.semilogy(spectrum.frequency, density, color=AXES[k], linewidth=1.0, label=axis)
            ax.set_ylabel(f'{name} [{unit}/√Hz]')
            _show_whole_decades(ax, spectrum.density[:, 3 * group : 3 * group + 3])
            if cutoff < spectrum.frequency[-1]:
                ax.axvline(cutoff, color=GREY, linestyle='--')
            for frequency in spectrum.resonances:
                ax.axvline(frequency, color=VERMILLION, linewidth=6.0, alpha=0.2, zorder=0)
        axes[0].legend(loc='center left', bbox_to_anchor=(1.0, 0.5))
        _label_lines(axes[0], spectrum, cutoff)
        axes[0].set_xscale('log')
        axes[0].set_xlim(spectrum.frequency[0], spectrum.frequency[-1])
        axes[0].xaxis.set_major_locator(FixedLocator(FREQUENCIES))
        axes[0].xaxis.set_major_formatter(lambda value, _: f'{value:g}')
        axes[0].xaxis.set_minor_formatter(NullFormatter())
        axes[-1].set_xlabel('frequency [Hz]')
        axes[0].grid(True, which='minor', axis='x', color=LIGHT, linewidth=0.4)
    return figure


def _show_whole_decades(ax: Axes, density: FloatArray) -> None:
    positive = density[np.isfinite(density) & (density > 0.0)]
    if positive.size:
        low, high = np.log10(positive.min()), np.log10(positive.max())
        ax.set_ylim(10.0 ** np.floor(low - 0.1), 10.0 ** np.ceil(high + 0.1))


def _kind(frequency: float) -> str:
    """Return in words a probable source of vibration at a frequency [Hz]."""
    off = min(abs(frequency - base * round(frequency / base)) for base in MAINS)
    return 'mains hum?' if frequency > MAINS[0] / 2 and off < MAINS_WIDTH else 'resonance'


def _label_lines(ax: Axes, spectrum: Spectrum, cutoff: float) -> None:
    lines = [(f, f'{_kind(f)} {f:.1f} Hz', VERMILLION) for f in spectrum.resonances]
    if cutoff < spectrum.frequency[-1]:
        lines.append((cutoff, f'cutoff {cutoff:g} Hz', GREY))
    # One below the other, because they may be close together.
    for k, (frequency, words, color) in enumerate(sorted(lines)):
        place, away = ('data', 'axes fraction'), (4, -3 - 13 * k)
        note(ax, words, (frequency, 1.0), place, away, va='top', size=10, color=color)
