"""Output of the live monitor."""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Sequence

from rclpy.node import Node
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from load_identification.estimation.events import Event, EventKind
from load_identification.interface.names import OFFSET_KEYS, PARAMETER_KEYS, in_words
from load_identification.nodes.client.monitor import (
    HISTORY,
    HISTORY_STEP,
    MonitorState,
    StatusListener,
)
from load_identification.report.tables import OFFSETS, PARAMETERS, decimals
from load_identification.report.tables import Group as Rows

BARS = '▁▂▃▄▅▆▇'
"""Bars of rising height; their odd number puts a constant mass in the middle of one."""

STATE_STYLES = {
    'identified': 'bold green',
    'estimating': 'bold yellow',
    'waiting': 'bold yellow',
    'fault': 'bold reverse red',
}

MASS = re.compile(r'mass \S+ ± \S+ kg')
"""Beginning of the status if the mass is identified; omitted because the table shows it."""

LISTENING = 0.05
"""Interval between reads, which limits the resolution of the rates [s]."""

REFRESH, LINES = 0.25, 1.0
"""Refresh interval on a terminal, and interval between lines elsewhere [s]."""

DISCOVERY = 1.0
"""Time to discover publishers before their absence is reported [s]."""

STALE = 2.0
"""Age from which a status is reported as old [s]."""


def picture(
    state: MonitorState,
    namespace: str,
    domain: int,
    publishers: int,
    others: Sequence[str],
    now: float,
) -> Group:
    """Return the complete display at a time `now` [s, monotonic].

    Beside the state: the ROS domain, the number of pipelines that publish in the namespace, and
    the namespaces of others.
    """
    head = Text.assemble((namespace, 'bold'), f'   ROS domain {domain}   Ctrl-C ends   ')
    if not publishers:
        elsewhere = f'; there is one in {", ".join(others)} (--namespace)' if others else ''
        head.append(f'no node heard{elsewhere}', style='bold red')
    elif not state.values:
        head.append('waiting for its first status', style='yellow')
    if not state.values:
        return Group(head)
    name = state.values.get('state', '?')
    age = now - state.heard
    line = Text.assemble((name, STATE_STYLES.get(name, 'bold')))
    if age > STALE:
        line.append(f'   last status {age:.0f} s ago', style='bold red')
    side_by_side = Table.grid(padding=(0, 3, 0, 0))
    side_by_side.add_row(
        _table(state, 'payload', PARAMETERS, PARAMETER_KEYS),
        _table(state, 'offset', OFFSETS, OFFSET_KEYS),
    )
    return Group(
        head, line, *_reasons(state), side_by_side, _spark(state.mass), _footer(state, now)
    )


def one_line(state: MonitorState, publishers: int) -> str:
    """Return the state in one line, for use without a terminal."""
    if not publishers:
        return 'no node heard'
    return f'{state.values.get("state", "no status yet")}  samples {state.used}  {state.words}'


def _reasons(state: MonitorState) -> list[Text]:
    """Return the status without the mass, one line per part."""
    parts = [part for part in state.words.split('; ') if not MASS.fullmatch(part)]
    if not parts and state.values.get('state') == 'identified':
        return [Text('  all ten parameters identified', style='green')]
    return [Text(f'  {part}', style='yellow') for part in parts]


def _table(state: MonitorState, title: str, groups: Sequence[Rows], keys: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column(title)
    table.add_column('value', justify='right', no_wrap=True)
    table.add_column('std', justify='right', no_wrap=True)
    table.add_column('unit')
    rest = iter(keys)
    for group in groups:
        for name, key in zip(group.names, rest, strict=False):
            value, std = state.number(key), state.number(f'{key}.std')
            # The status does not say whether an offset is identified.
            known = state.values.get(f'{key}.identified', str(math.isfinite(value)).lower())
            table.add_row(
                name.replace('of mass ', ''),
                _rounded(value, std, group.scale) or 'not yet',
                _rounded(std, std, group.scale),
                group.unit,
                style='' if known == 'true' else 'dim',
            )
        table.add_section()
    return table


def _rounded(value: float, std: float, scale: float) -> str:
    """Return a value with the digits that its standard deviation justifies."""
    if not math.isfinite(value):
        return ''
    digits = min(decimals(scale * std), 7)
    return f'{scale * value:.{digits}f}'


def _spark(mass: Sequence[float]) -> Text:
    """Return the mass over the recent past as a line of bars."""
    known = [m for m in mass if math.isfinite(m)]
    text = Text('mass  ', style='bold')
    if not known:
        return text.append('not identified so far', style='dim')
    low, high = min(known), max(known)
    # A constant mass must not fill the line with changes of its last digit.
    span = max(high - low, 1e-3 * abs(high), 1e-6)
    middle = 0.5 * (low + high)
    for m in mass:
        if math.isfinite(m):
            place = (m - middle) / span + 0.5
            text.append(BARS[min(int(place * len(BARS)), len(BARS) - 1)], style='cyan')
        else:
            text.append('·', style='dim')
    seconds = HISTORY * HISTORY_STEP
    return text.append(f'  {middle - span / 2:.4f} to {middle + span / 2:.4f} kg, {seconds:.0f} s')


def _footer(state: MonitorState, now: float) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style='bold')
    rates = ', '.join(
        f'{name} {rate:.0f}/s'
        for name, counter in sorted(state.rates.items())
        if math.isfinite(rate := counter.per_second(now))
    )
    table.add_row('rates', rates or 'not yet')
    dropped = in_words(state.dropped) or 'none'
    table.add_row('samples', f'{state.used} used, dropped: {dropped}')
    event = Event.read(state.event)
    words = '' if event.kind is EventKind.NONE else f'  {state.words_of(event)}'
    table.add_row('event', f'{state.event}{words}')
    return table


def watch(node: Node, console: Console) -> None:
    """Show the status until interrupted."""
    listener = StatusListener(node)
    namespace, domain = node.get_namespace(), node.context.get_domain_id()
    begin = time.monotonic()
    # The previous screen is restored at the end.
    full = Live(console=console, auto_refresh=False, screen=True)
    with full if console.is_terminal else contextlib.nullcontext() as live:
        due = begin
        while True:
            time.sleep(LISTENING)
            listener.update()
            now = time.monotonic()
            publishers = listener.publishers
            if now < due or (not publishers and now - begin < DISCOVERY):
                continue
            due = now + (REFRESH if live is not None else LINES)
            if live is not None:
                others = listener.others if not publishers else ()
                shown = picture(listener.state, namespace, domain, publishers, others, now)
                live.update(shown, refresh=True)
            else:
                console.print(one_line(listener.state, publishers), soft_wrap=True)
