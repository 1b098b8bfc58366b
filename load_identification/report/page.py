"""The report as a single self-contained HTML page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from load_identification.errors import ParameterError
from load_identification.estimation.identifiability import MOMENTS
from load_identification.estimation.payload_estimate import UNKNOWN_STD
from load_identification.interface.names import INTERVAL, STAGES, in_words, significant
from load_identification.model.payload_export import Payload, payload_commands
from load_identification.report.recorder import Recorder
from load_identification.report.snapshot import Outcome
from load_identification.report.tables import (
    OFFSETS,
    PARAMETERS,
    by_time,
    decimals,
    interval_table,
    offset_title,
)

PAGE = 'report.html'

STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 70rem;
       padding: 1.5rem; }
h1 { margin: 0 0 .2rem; } h2 { margin: 2.6rem 0 .4rem; border-top: 1px solid #ddd;
     padding-top: 1.2rem; }
p.source { color: #666; margin: 0 0 1.4rem; }
div.cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
div.card { border: 1px solid #ddd; border-left: 6px solid #0072B2; border-radius: 4px;
           padding: .6rem 1rem; flex: 1 1 auto; }
div.card.missing { border-left-color: #D55E00; }
div.card b { display: block; color: #666; font-weight: normal; }
div.card span { font-size: 1.2rem; }
table { border-collapse: collapse; margin: .6rem 0; }
th { text-align: left; border-bottom: 2px solid #222; font-weight: 600; }
th, td { padding: .15rem .8rem .15rem 0; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.rule td { border-top: 1px solid #ccc; }
td.no { color: #D55E00; font-weight: 600; }
img { width: 100%; height: auto; }
pre { background: #f4f4f4; padding: .7rem 1rem; white-space: pre-wrap; border-radius: 4px;
      margin: .3rem 0; }
h3 { margin: 1.2rem 0 .3rem; }
p.note { color: #555; margin: .3rem 0; max-width: 60rem; }
p.refused { border-left: 6px solid #D55E00; padding-left: .8rem; }
div.columns { display: flex; flex-wrap: wrap; gap: 0 2.5rem; }
"""


class Picture(NamedTuple):
    """A picture of the page; without a file if there is nothing to draw: the caption says why."""

    title: str
    caption: str
    file: Path | None


def check_folder(folder: Path) -> None:
    """Make the folder of a report, before the work rather than after it.

    Raises ParameterError if the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PAGE).touch()
    except OSError as error:
        raise ParameterError(f'--report {folder} cannot be written: {error.strerror}') from error


def report_page(recorder: Recorder, outcome: Outcome, pictures: Sequence[Picture]) -> str:
    """Return the whole page."""
    last = recorder.snapshots[-1]
    payload = Payload(recorder.frame, last.values, last.std, last.identified, last.reasons)
    offset, std = outcome.sign * last.offset, last.offset_std
    offset_known = np.isfinite(offset) & (std < UNKNOWN_STD)
    true, no = outcome.truth, 'not identified'
    truths = (None, None) if true is None else (true[:10], true[10:])
    parts = [
        f'<h1>Payload in {escape(recorder.frame)}</h1>',
        f'<p class="source">{escape(outcome.source)}</p>',
        _cards(payload),
        _list('Not identified', payload.reasons),
        _list('Note', outcome.notes),
        '<div class="columns">',
        '<div><h3>Payload, inertia about the centre of mass</h3>',
        _table(
            interval_table(PARAMETERS, last.values, last.std, last.identified, no, truths[0], True)
        ),
        f'</div><div><h3>{offset_title(outcome.by_efforts)}</h3>',
        _table(interval_table(OFFSETS, offset, std, offset_known, no, truths[1], True)),
        '</div></div>',
        _samples(outcome),
        *map(_picture, pictures),
        _events(recorder),
        _commands(payload, outcome),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<title>Payload: {escape(outcome.source)}</title><style>{STYLE}</style></head>\n'
        f'<body>\n{"".join(part + chr(10) for part in parts)}</body></html>\n'
    )


def _cards(payload: Payload) -> str:
    """Return the three main results, each as one line."""
    cards = []
    for (name, part), group in zip(STAGES.items(), PARAMETERS, strict=True):
        known = bool(payload.identified[part].all())
        words = 'not identified'
        if known:
            half = INTERVAL * group.scale * float(np.max(payload.std[part]))
            digits = decimals(half)
            numbers = ', '.join(f'{group.scale * v:.{digits}f}' for v in payload.values[part])
            brackets = ('(', ')') if len(payload.values[part]) > 1 else ('', '')
            words = f'{brackets[0]}{minus(numbers)}{brackets[1]} ± {half:.{digits}f} {group.unit}'
            if name == 'inertia':
                words += f', {_widest(payload, part)}'
        missing = '' if known else ' missing'
        cards.append(f'<div class="card{missing}"><b>{name}</b><span>{escape(words)}</span></div>')
    return f'<div class="cards">{"".join(cards)}</div>'


def _widest(payload: Payload, part: slice) -> str:
    """Return the widest interval of the inertia as a share of its largest moment."""
    largest = float(np.max(payload.values[MOMENTS]))
    half = INTERVAL * float(np.max(payload.std[part]))
    return f'{significant(100.0 * half / largest)} % of the largest moment'


def _list(title: str, sentences: Sequence[str]) -> str:
    if not sentences:
        return ''
    items = ''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)
    return f'<p class="note">{title}:</p><ul>{items}</ul>'


def _table(table: Table) -> str:
    """Return a printed table in HTML; what is outside its interval stands out."""
    numeric = [column.justify == 'right' for column in table.columns]
    heads = [str(column.header) for column in table.columns]
    rows = ['<tr>' + ''.join(map(_cell, heads, numeric, repeat('th'))) + '</tr>']
    rule = ''
    for row, *texts in zip(table.rows, *(column.cells for column in table.columns), strict=True):
        rows.append(f'<tr{rule}>' + ''.join(map(_cell, map(str, texts), numeric)) + '</tr>')
        rule = ' class="rule"' if row.end_section else ''
    return f'<table>{"".join(rows)}</table>'


def _cell(text: str, numeric: bool, tag: str = 'td') -> str:
    if numeric:
        return f'<{tag} class="number">{minus(text)}</{tag}>'
    return '<td class="no">no</td>' if text == 'no' else f'<{tag}>{text}</{tag}>'


def minus(number: str) -> str:
    """Return a number with a minus sign as wide as a plus."""
    return number.replace('-', '−')


def _samples(outcome: Outcome) -> str:
    dropped = in_words(outcome.dropped) or 'none'
    force, torque = outcome.residual_rms
    lines = [f'Samples: {outcome.used} used after filtering; dropped: {escape(dropped)}']
    if np.isfinite(outcome.residual_rms).all():
        lines.append(f'Residual: {force:.3g} N, {torque:.3g} N·m rms of all samples')
    if outcome.absent_channels:
        lines.append(f'No signal: {escape(", ".join(outcome.absent_channels))}')
    return ''.join(f'<p class="note">{line}</p>' for line in lines)


def _picture(picture: Picture) -> str:
    head = f'<h2>{escape(picture.title)}</h2><p class="note">{escape(picture.caption)}</p>'
    if picture.file is None:
        return head
    data = base64.b64encode(picture.file.read_bytes()).decode('ascii')
    return f'{head}<img alt="{escape(picture.title)}" src="data:image/png;base64,{data}">'


def _events(recorder: Recorder) -> str:
    """Return the table of events."""
    happened = by_time(((e.stamp, e.words) for e in recorder.events), recorder.first)
    rows = ''.join(
        f'<tr><td class="number">{seconds:.2f}</td><td>{escape(words)}</td></tr>'
        for seconds, words in happened
    )
    table = (
        '<p class="note">Changes stand where they were noticed; what they were was resolved later.'
        f'</p><table><tr><th class="number">time [s]</th><th>event</th></tr>{rows}</table>'
        if rows
        else '<p class="note">None.</p>'
    )
    gaps = recorder.gaps
    note = (
        f'<p class="note">{len(gaps)} gaps without samples, the longest {max(gaps):.1f} s, '
        f'{sum(gaps):.1f} s in all.</p>'
        if gaps
        else ''
    )
    return f'<h2>Events</h2>{table}{note}'


def _commands(payload: Payload, outcome: Outcome) -> str:
    """Return the commands to paste into descriptions and controllers."""
    parts = [
        '<h2>To paste</h2>',
        '<p class="note">SI units, inertia about the centre of mass. The numbers are what hangs '
        f'on the {"arm" if outcome.by_efforts else "sensor"}, less the tool where one is stored. '
        'A controller that wants all that hangs on its flange wants '
        f'{"" if outcome.by_efforts else "sensor, "}adapter and tool added.</p>',
    ]
    for command in payload_commands(payload, outcome.description):
        parts.append(f'<h3>{escape(command.target)}</h3>')
        if command.refusal:
            parts.append(f'<p class="refused">Refused: {escape(command.refusal)}</p>')
        else:
            parts.append(f'<p class="note">Numbers {escape(command.frame)}.</p>')
            parts.append(f'<pre>{escape(command.text)}</pre>')
    return ''.join(parts)
