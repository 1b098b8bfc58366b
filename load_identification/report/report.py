"""Write the report of an identification: an HTML page and its figures as PNG files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from load_identification.errors import ParameterError
from load_identification.estimation.belief.error_budget import budget_words
from load_identification.estimation.payload_estimate import UNKNOWN_STD
from load_identification.interface.names import INTERVAL, significant
from load_identification.report.budget_figure import ROWS, budget_figure
from load_identification.report.changes_figure import changes_figure
from load_identification.report.information_figures import (
    LENGTH,
    condition_number,
    excitation_figure,
    identified_figure,
    spectrum_figure,
)
from load_identification.report.page import PAGE, Picture, minus, report_page
from load_identification.report.payload_figure import payload_figure
from load_identification.report.recorder import Recorder
from load_identification.report.series_figures import (
    estimates_figure,
    offset_figure,
    wrench_figure,
)
from load_identification.report.snapshot import Outcome, Snapshot
from load_identification.report.style import save
from load_identification.report.tables import decimals

BOX = (
    ' The uniform box of equal mass and inertia, and its principal axes 1 to 3 from the largest '
    'moment to the smallest.'
)


def write_report(folder: Path, recorder: Recorder, outcome: Outcome) -> Path:
    """Write page and figures and return the page's path.

    Parameters
    ----------
    folder : Path
        Made by `check_folder`.
    recorder : Recorder
        With at least one estimate.

    Raises ParameterError if they cannot be written.
    """
    try:
        pictures = [
            _write(folder, name, figure, title, caption)
            for name, figure, title, caption in _figures(recorder, outcome)
        ]
        page = folder / PAGE
        page.write_text(report_page(recorder, outcome, pictures), encoding='utf-8')
    except OSError as error:
        raise ParameterError(f'--report {folder} cannot be written: {error.strerror}') from error
    return page


def _write(folder: Path, name: str, figure: Figure | None, title: str, caption: str) -> Picture:
    path = folder / f'{name}.png'
    if figure is None:
        # A figure of an earlier run must not remain.
        path.unlink(missing_ok=True)
        return Picture(title, caption, None)
    save(figure, path)
    return Picture(title, caption, path)


def _figures(recorder: Recorder, outcome: Outcome) -> list[tuple[str, Figure | None, str, str]]:
    """Return file name, figure, title and caption of each figure, in the order of the page."""
    last = recorder.snapshots[-1]
    convention = 'on the sensor' if outcome.sign > 0 else 'on the load'
    seen = f'As the sensor reads it ({convention})'
    if outcome.by_efforts:
        seen = 'What the load exerts on the arm, as the efforts of the joints show it'
    detail = recorder.bin_width > 1
    spectrum = recorder.spectrum()
    centered = bool(last.identified[:4].all() and np.isfinite(last.covariance).all())
    return [
        (
            'wrench',
            wrench_figure(recorder.samples, recorder, outcome),
            'Measured and predicted wrench',
            f'{seen}, low-passed. Predicted: offset and identified '
            'payload along the measured motion. Upright dashed lines, here and below: something '
            'changed; dotted: identified, or no longer. The list of events says what.'
            + (f' Each point averages {recorder.bin_width} samples.' if detail else ''),
        ),
        (
            'wrench_detail',
            wrench_figure(recorder.liveliest, recorder, outcome, marks=False) if detail else None,
            'The liveliest stretch',
            'Every sample of the stretch of most angular acceleration.'
            if detail
            else 'The recording is short: the figure above shows every sample.',
        ),
        (
            'estimates',
            estimates_figure(recorder, outcome),
            'Estimates',
            'Each parameter while it is identified, with its 95 % band; without a line while the '
            'band is much wider than in the end.',
        ),
        (
            'identified',
            identified_figure(recorder, outcome),
            'What was identified when',
            'Identified is what its 95 % interval, and for the inertia the excitation too, '
            'allow. The uncertainty is what the 95 % interval was at that time.',
        ),
        (
            'payload',
            payload_figure(last, recorder.frame, outcome.truth) if centered else None,
            'The payload',
            'The centre of mass and the axes x, y, z of the sensor frame.'
            + (BOX if last.identified[4:].all() else '')
            if centered
            else 'Not drawn: the centre of mass is not identified.',
        ),
        (
            'error_budget',
            budget_figure(last),
            'Where the uncertainty comes from',
            _budget_caption(last),
        ),
        (
            'excitation',
            excitation_figure(recorder),
            'Excitation',
            f'The combinations of parameters that the data determine independently, the offset '
            f'unknown, in units of 1 kg and {LENGTH:g} m (first moments in {LENGTH:g} kg·m, '
            f'inertias in {LENGTH**2:g} kg·m²). '
            f'Condition number at the end: {significant(condition_number(last))}.',
        ),
        (
            'offset',
            offset_figure(recorder, outcome),
            'Offset and drift',
            _drift(recorder, outcome),
        ),
        ('changes', changes_figure(recorder), 'Change detection', _changes_caption(recorder)),
        (
            'spectrum',
            spectrum_figure(spectrum, outcome.parameters.cutoff_frequency)
            if spectrum is not None
            else None,
            'Spectrum of the residuals',
            _spectrum_caption(recorder, outcome),
        ),
    ]


def _budget_caption(last: Snapshot) -> str:
    """Return the sources of the interval of the mass in words."""
    name, scale, unit = ROWS[0]
    parts = scale**2 * last.causes[:, 0]
    if not (last.identified[0] and (words := budget_words(parts))):
        return 'Not drawn: the mass is not identified.'
    return (
        f'{name} ± {significant(INTERVAL * np.sqrt(parts.sum()))} {unit}: {words}. Each number, '
        'in the bars too, is half of the 95 % interval that the source alone would leave. Their '
        'squares add up, which is why the bars show shares of the variance.'
    )


def _changes_caption(recorder: Recorder) -> str:
    if not len(recorder.looks[0]):
        return 'Not drawn: not recorded from topics.'
    words = (
        'The normalised innovation squared over its gate, where it is above 0.001: an alarm needs '
        'more than 1.'
    )
    if not len(recorder.scored):
        return f'{words} There was none.'
    return (
        f'{words} Below, while a change is open (the longest four), by how much each hypothesis '
        'fits worse than the best: one that leads all others by 25 (dotted) is named. Little: a '
        'small change of load or offset; slip: of the load, at equal mass; push: of neither. '
        'Shaded: nothing is claimed.'
    )


def _drift(recorder: Recorder, outcome: Outcome) -> str:
    """Return in words how far the offset has drifted, if known at two times."""
    last = recorder.snapshots[-1]
    known = [s for s in recorder.snapshots if np.all(s.offset_std < 3.0 * last.offset_std)]
    if len(known) < 2 or not np.all(last.offset_std < UNKNOWN_STD):
        return 'The offset is not known at two times: no drift can be stated.'
    change = outcome.sign * (last.offset - known[0].offset)
    minutes = 1e-9 * (last.stamp - known[0].stamp) / 60.0
    noise = np.hypot(known[0].offset_std, last.offset_std)
    parts = []
    for name, unit, part in (('force', 'N', slice(0, 3)), ('torque', 'N·m', slice(3, 6))):
        k = int(np.argmax(np.abs(change[part]) / noise[part])) + part.start
        half = INTERVAL * float(noise[k])
        moved = minus(f'{change[k]:+.{decimals(half)}f}')
        parts.append(f'{name} {"xyz"[k % 3]} {moved} ± {significant(half)} {unit}')
    return f'Most moved within {significant(minutes)} min: {" and ".join(parts)}.'


def _spectrum_caption(recorder: Recorder, outcome: Outcome) -> str:
    spectrum = recorder.spectrum()
    if spectrum is None:
        return 'Too few whole stretches of raw samples with an identified mass for a spectrum.'
    method = f'Raw wrench less what is explained, {spectrum.segments} stretches averaged.'
    if not spectrum.resonances:
        return f'{method} No resonance stands out.'
    peaks = ' and '.join(f'{frequency:.1f} Hz' for frequency in spectrum.resonances)
    inside = min(spectrum.resonances) < 1.5 * outcome.parameters.cutoff_frequency
    advice = (
        'It lies in the band of the filter: damp it, move more smoothly, or lower '
        'cutoff_frequency.'
        if inside
        else 'The filter keeps it out of the estimate.'
    )
    return (
        f'{method} Vibration at {peaks}: the payload on the compliant sensor (section 4.2.2), the '
        f"arm's structure, or mains hum. {advice}"
    )
