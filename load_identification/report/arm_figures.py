"""Figures of an identified arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.prediction import Prediction
from load_identification.errors import ParameterError
from load_identification.interface.names import INTERVAL, significant
from load_identification.report.arm_tables import three_digits, with_interval
from load_identification.report.page import minus
from load_identification.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILLION,
    broken,
    new_figure,
    note,
    save,
)
from load_identification.typing_aliases import FloatArray

PREDICTION, PARAMETERS, SINGULAR_VALUES = (
    'prediction.png',
    'parameters.png',
    'singular_values.png',
)

HIGHEST = 12.0
"""Largest height of the figure of parameters [in]."""

MOST_WIDE = 10.0
"""Half-width of an interval, in median ones of its panel, up to which the axis contains it [-]."""


def write_figures(folder: Path, estimate: ArmEstimate, prediction: Prediction) -> list[Path]:
    """Draw all figures into an existing folder and return their paths.

    Raises ParameterError if a figure cannot be written.
    """
    try:
        draw_prediction(folder / PREDICTION, prediction, 'predicted by what is written')
        draw_parameters(folder / PARAMETERS, estimate)
        draw_singular_values(folder / SINGULAR_VALUES, estimate)
    except OSError as error:
        raise ParameterError(f'--report {folder} cannot be written: {error.strerror}') from error
    return [folder / name for name in (PREDICTION, PARAMETERS, SINGULAR_VALUES)]


def draw_prediction(path: Path, prediction: Prediction, label: str = 'predicted') -> None:
    """Draw what is measured, what consistent links predict, and the difference, by channel."""
    count = len(prediction.channels)
    with new_figure(10.0, 1.0 + 1.35 * count) as figure:
        axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        left = prediction.measured - prediction.consistent
        series = (
            ('measured', prediction.measured, GREY, 3.0),
            (label, prediction.consistent, BLUE, 1.2),
            ('measured − predicted', left, VERMILLION, 1.0),
        )
        rms = prediction.rms(left)
        for i, (ax, channel) in enumerate(zip(axes, prediction.channels, strict=True)):
            for name, values, color, width in series:
                x, y = broken(prediction.seconds, values[:, i])
                ax.plot(x, y, color=color, linewidth=width, label=name)
            unit = prediction.units[i]
            ax.set_ylabel(f'[{unit}]')
            words = f'{channel}: {three_digits(rms[i])} {unit} rms left'
            ax.set_title(words, fontsize=10, fontweight='normal')
            ax.margins(x=0.01)
        axes[-1].set_xlabel('time [s]')
        figure.align_ylabels(axes)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside upper left', ncols=3)
        figure.suptitle(f'Not fitted: {prediction.source}', x=0.99, ha='right', fontsize=10)
        save(figure, path)


def draw_parameters(path: Path, estimate: ArmEstimate) -> None:
    """Draw the combinations with their 95 % intervals, one panel per unit."""
    kept = estimate.base.independent
    present = {estimate.model.units[i] for i in kept}
    units = [unit for unit in dict.fromkeys(estimate.model.units) if unit in present]
    panels = {
        u: [r for r in np.argsort(kept) if estimate.model.units[kept[r]] == u] for u in units
    }
    rows = max(len(panel) for panel in panels.values())
    with new_figure(3.6 * len(units), min(HIGHEST, 1.2 + 0.24 * rows)) as figure:
        axes = figure.subplots(1, len(units), squeeze=False)[0]
        for ax, (unit, panel) in zip(axes, panels.items(), strict=True):
            _draw_panel(ax, estimate, panel)
            ax.set_xlabel(f'[{unit}]')
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside upper left', ncols=3)
        words = '…: first of a combination, which --parameters writes out'
        figure.suptitle(words, x=0.99, ha='right', fontsize=10)
        save(figure, path)


def _draw_panel(ax: Axes, estimate: ArmEstimate, panel: list[int]) -> None:
    places = np.arange(len(panel))
    nominal = estimate.base.to_base(estimate.model.nominal)[panel]
    written = estimate.base.to_base(estimate.consistent)[panel]
    determined = np.isfinite(estimate.std[panel])
    half = INTERVAL * np.where(determined, estimate.std[panel], 0.0)
    values = np.where(determined, estimate.values[panel], np.nan)
    ax.plot(nominal, places, 'o', color=ORANGE, markerfacecolor='none', label='nominal')
    ax.plot(written, places, 'x', color=GREEN, label='written')
    ax.errorbar(
        values,
        places,
        xerr=half,
        fmt='.',
        color=BLUE,
        capsize=2.5,
        label='unconstrained, 95 % interval',
    )
    many = np.count_nonzero(estimate.base.matrix[panel], axis=1) > 1
    names = [estimate.names[i] for i in estimate.base.independent[panel]]
    ax.set_yticks(places, [f'{n} …' if more else n for n, more in zip(names, many, strict=True)])
    ax.tick_params(axis='y', labelsize=8)
    ax.set_ylim(len(panel) - 0.4, -1.0)
    ax.axvline(0.0, color=BLACK, linewidth=0.6)
    _clip(ax, np.array([nominal, written]), values, half)


def _clip(ax: Axes, others: FloatArray, values: FloatArray, half: FloatArray) -> None:
    """Limit the axis to what is known, and write what is beyond it."""
    known = np.isfinite(values)
    near = known & (half <= MOST_WIDE * np.median(half[known] if known.any() else half))
    shown = np.concatenate([others.ravel(), (values - half)[near], (values + half)[near]])
    room = 0.06 * (np.ptp(shown) or 1.0)
    low, high = shown.min() - room, shown.max() + room
    ax.set_xlim(low, high)
    for k in np.flatnonzero((values - half < low) | (values + half > high)):
        right = values[k] > 0.5 * (low + high)
        words = minus(' ± '.join(with_interval(values[k], half[k] / INTERVAL)))
        words, edge = (f'{words} →', 1.0) if right else (f'← {words}', 0.0)
        style = {'ha': 'right' if right else 'left', 'va': 'bottom', 'size': 8, 'color': BLUE}
        note(
            ax, words, (edge, int(k)), ('axes fraction', 'data'), (-3 if right else 3, 3), **style
        )


def draw_singular_values(path: Path, estimate: ArmEstimate) -> None:
    """Draw the singular values of the rows as shares of the largest."""
    shares = estimate.singular_values / estimate.singular_values[0]
    with new_figure(7.0, 3.4) as figure:
        ax = figure.subplots()
        ax.semilogy(np.arange(1, len(shares) + 1), shares, 'o', color=BLUE, markersize=4)
        ax.set_xlabel('direction of the parameters, best determined first')
        ax.set_ylabel('singular value / largest [-]')
        ax.set_title(
            f'Rows weighted, columns of length one: condition {significant(estimate.condition)}'
        )
        save(figure, path)
