"""Figures of an identified arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.assessment import Prediction
from load_identification.errors import ParameterError
from load_identification.interface.names import INTERVAL
from load_identification.report.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    VERMILLION,
    broken,
    new_figure,
    save,
)

PREDICTION, PARAMETERS, SINGULAR_VALUES = (
    'prediction.png',
    'parameters.png',
    'singular_values.png',
)

HIGHEST = 12.0
"""Largest height of the figure of parameters [in]."""


def write_figures(folder: Path, estimate: ArmEstimate, prediction: Prediction) -> list[Path]:
    """Draw all figures into an existing folder and return their paths.

    Raises
    ------
    ParameterError
        If a figure cannot be written.
    """
    try:
        draw_prediction(folder / PREDICTION, prediction)
        draw_parameters(folder / PARAMETERS, estimate)
        draw_singular_values(folder / SINGULAR_VALUES, estimate)
    except OSError as error:
        raise ParameterError(f'--report {folder} cannot be written: {error.strerror}') from error
    return [folder / name for name in (PREDICTION, PARAMETERS, SINGULAR_VALUES)]


def draw_prediction(path: Path, prediction: Prediction) -> None:
    """Draw measured and predicted values and their difference, channel by channel."""
    count = len(prediction.channels)
    with new_figure(10.0, 1.0 + 1.35 * count) as figure:
        axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        left = prediction.measured - prediction.predicted
        series = (
            ('measured', prediction.measured, GREY, 3.0),
            ('predicted', prediction.predicted, BLUE, 1.2),
            ('measured − predicted', left, VERMILLION, 1.0),
        )
        rms = prediction.rms(left)
        for i, (ax, channel) in enumerate(zip(axes, prediction.channels, strict=True)):
            for label, values, color, width in series:
                x, y = broken(prediction.seconds, values[:, i])
                ax.plot(x, y, color=color, linewidth=width, label=label)
            unit = prediction.units[i]
            ax.set_ylabel(f'[{unit}]')
            ax.set_title(
                f'{channel}: {rms[i]:.2g} {unit} rms left', fontsize=10, fontweight='normal'
            )
            ax.margins(x=0.01)
        axes[-1].set_xlabel('time [s]')
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
        save(figure, path)


def _draw_panel(ax: Axes, estimate: ArmEstimate, panel: list[int]) -> None:
    places = np.arange(len(panel))
    nominal = estimate.base.to_base(estimate.model.nominal)[panel]
    determined = np.isfinite(estimate.std[panel])
    half = INTERVAL * np.where(determined, estimate.std[panel], 0.0)
    ax.plot(nominal, places, 'o', color=ORANGE, markerfacecolor='none', label='nominal')
    ax.errorbar(
        np.where(determined, estimate.values[panel], np.nan),
        places,
        xerr=half,
        fmt='.',
        color=BLUE,
        capsize=2.5,
        label='identified, 95 % interval',
    )
    many = np.count_nonzero(estimate.base.matrix[panel], axis=1) > 1
    names = [estimate.names[i] for i in estimate.base.independent[panel]]
    ax.set_yticks(places, [f'{n} …' if more else n for n, more in zip(names, many, strict=True)])
    ax.tick_params(axis='y', labelsize=8)
    ax.set_ylim(len(panel) - 0.4, -0.6)
    ax.axvline(0.0, color=BLACK, linewidth=0.6)


def draw_singular_values(path: Path, estimate: ArmEstimate) -> None:
    """Draw the singular values of the rows as shares of the largest."""
    shares = estimate.singular_values / estimate.singular_values[0]
    with new_figure(7.0, 3.4) as figure:
        ax = figure.subplots()
        ax.semilogy(np.arange(1, len(shares) + 1), shares, 'o', color=BLUE, markersize=4)
        ax.set_xlabel('direction of the parameters, best determined first')
        ax.set_ylabel('singular value / largest [-]')
        ax.set_title(f'Rows weighted, columns of length one: condition {estimate.condition:.3g}')
        save(figure, path)
