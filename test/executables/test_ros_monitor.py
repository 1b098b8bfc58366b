"""The live monitor, as a person starts it and in what it makes of a status."""

from __future__ import annotations

import io
import math
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from processes import DEADLINE
from rich.console import Console
from ros_group import LATCHED, Group
from ros_messages import NAMESPACE, OFFSET_KEYS, PARAMETER_KEYS

import load_identification
from load_identification.commands import load_monitor as monitor
from load_identification.commands.load_monitor_view import BARS, one_line, picture
from load_identification.nodes.client.monitor import MonitorState, Rate

CODE = str(Path(load_identification.__file__).resolve().parents[1])
VALUES = (1.1058, 0.012, 0.037, 0.047, 0.00237, 0.0001, -0.0001, 0.0014, 0.00094, 0.00146)
SHOW_SCREEN, LEAVE_SCREEN = '\x1b[?1049h', '\x1b[?1049l'


def status(words: str = '', **changed: str) -> DiagnosticStatus:
    """Return the status of an identified payload, but for what is changed."""
    values = {'state': 'identified', 'event': 'reset 12.5', 'samples.used': '500'}
    for key, value in zip(PARAMETER_KEYS, VALUES, strict=True):
        values |= {key: f'{value}', f'{key}.std': '0.0002', f'{key}.identified': 'true'}
    for key in OFFSET_KEYS:
        values |= {key: '2.5', f'{key}.std': '0.01'}
    values |= {key.replace('__', '.'): value for key, value in changed.items()}
    return DiagnosticStatus(
        message=words or 'mass 1.106 ± 0.001 kg',
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )


def shown(
    state: MonitorState,
    publishers: int = 1,
    others: Sequence[str] = (),
    later: float = 0.0,
    width: int = 80,
) -> str:
    """Return the picture as text."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    now = later + (0.0 if math.isnan(state.heard) else state.heard)
    console.print(picture(state, NAMESPACE, 7, publishers, others, now))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def spark_line(state: MonitorState) -> str:
    """Return the line of the picture that draws the mass over time."""
    return next(line for line in shown(state).splitlines() if line.endswith(' kg, 30 s'))


def heard(*statuses: DiagnosticStatus, step: float = 1.0) -> MonitorState:
    state = MonitorState()
    for k, message in enumerate(statuses):
        state.take_status(message, 100.0 + step * k)
    return state


def test_all_of_it_fits_a_terminal_of_80_by_24() -> None:
    fine = {f'{key}.std': '0.0000068' for key in PARAMETER_KEYS[4:]}
    fine |= {f'{key}.std': '0.000012' for key in OFFSET_KEYS}
    text = shown(heard(status(samples__dropped__stamp_jump='3', **fine)))
    lines = text.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert '…' not in text
    for words in ('identified', '1.10580', 'kg·m²', 'reset 12.5', '500 used', 'stamp_jump 3'):
        assert words in text


def test_reasons_are_shown_and_values_that_are_not_identified_are_not() -> None:
    words = (
        'mass 1.106 ± 0.001 kg; inertia: its torque so far 0.0001 N·m rms; centre of mass z std 3'
    )
    text = shown(heard(status(words, izz__identified='false', izz='nan')))
    assert 'inertia: its torque so far' in text
    assert 'centre of mass z std 3' in text
    assert 'mass 1.106' not in text
    row = next(line for line in text.splitlines() if line.startswith('inertia zz'))
    assert 'not yet' in row
    assert 'nan' not in text


def test_spark_line_follows_the_mass() -> None:
    masses = ['nan', '1.0', '1.5', '2.0']
    state = heard(*(status(mass=m) for m in masses))
    line = spark_line(state)
    assert f'·{BARS[0]}{BARS[3]}{BARS[-1]}' in line
    assert '1.0000 to 2.0000 kg' in line


def test_mass_that_stands_still_draws_a_flat_line() -> None:
    state = heard(*(status(mass=f'{1.1 + 1e-6 * (k % 2)}') for k in range(8)))
    line = spark_line(state)
    assert len(set(line) & set(BARS)) == 1


def test_rates_are_counted_over_the_last_seconds() -> None:
    rate = Rate()
    assert math.isnan(rate.per_second(0.0))
    for k in range(101):
        rate.update(0.1 * k, 50 * k)
    assert rate.per_second(10.0) == pytest.approx(500.0)
    # A node that was started anew counts from zero.
    rate.update(10.1, 5)
    assert math.isnan(rate.per_second(10.1))
    rate.update(10.2, 15)
    assert rate.per_second(10.2) == pytest.approx(100.0)
    assert rate.per_second(20.0) == 0.0


def test_input_rates_come_from_the_diagnostics() -> None:
    state = heard(status())
    for k in range(3):
        values = [KeyValue(key='received/wrench', value=f'{1000 * k}')]
        state.take_diagnostics(DiagnosticStatus(values=values), 98.0 + k)
    assert '/wrench 1000/s' in shown(state)


@pytest.mark.parametrize('others', [(), ('/left/load_identification',)])
def test_nobody_is_said_to_be_heard(others: Sequence[str]) -> None:
    text = shown(MonitorState(), publishers=0, others=others, width=200)
    assert 'no node heard' in text
    assert ('/left/load_identification' in text) == bool(others)
    assert one_line(MonitorState(), 0) == 'no node heard'


def test_old_status_is_said_to_be_old() -> None:
    assert 'last status 7 s ago' in shown(heard(status()), publishers=0, later=7.0)
    assert 'ago' not in shown(heard(status()), later=1.0)


def test_unusable_numbers_do_no_harm() -> None:
    text = shown(heard(status(mass='about a kilo', samples__used='many', ixx__std='inf')))
    assert 'identified' in text


class Monitor:
    """`load_monitor` in a process of its own, on a terminal or not."""

    def __init__(self, group: Group, terminal: bool, *arguments: str) -> None:
        self._group = group
        self._read, write = pty.openpty() if terminal else os.pipe()
        self._text = b''
        environment: Mapping[str, str] = os.environ | {
            'ROS_DOMAIN_ID': str(group.domain),
            'PYTHONPATH': CODE,
            'PYTHONIOENCODING': 'utf-8',
            'TERM': 'xterm',
            'COLUMNS': '100',
            'LINES': '30',
        }
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'load_identification.commands.load_monitor', *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=write,
        )
        os.close(write)
        os.set_blocking(self._read, False)

    @property
    def output(self) -> str:
        """All it has written so far."""
        try:
            while part := os.read(self._read, 65536):
                self._text += part
        except OSError:
            # Nothing at present; or, of a terminal, its end.
            pass
        return self._text.decode(errors='replace')

    def wait_for(self, words: str) -> None:
        """Wait until it has written some words."""
        self._group.wait_for(lambda: words in self.output, f'{words!r}')

    def end(self, number: signal.Signals) -> int:
        """Send a signal and return its exit status."""
        self._process.send_signal(number)
        return self._process.wait(DEADLINE)

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        os.close(self._read)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_terminal_shows_what_is_published_and_comes_back(
    group: Group, number: signal.Signals
) -> None:
    run = Monitor(group, True)
    try:
        run.wait_for('no node heard')
        group.publisher(DiagnosticStatus, f'{NAMESPACE}/status', LATCHED).publish(status())
        run.wait_for('1.10580')
        run.wait_for('reset 12.5')
        assert SHOW_SCREEN in run.output
        assert run.end(number) == 0
        assert LEAVE_SCREEN in run.output
        assert 'Traceback' not in run.output
    finally:
        run.close()


def test_without_a_terminal_it_writes_plain_lines(group: Group) -> None:
    topic = '/left/load_identification/status'
    group.publisher(DiagnosticStatus, topic, LATCHED).publish(status())
    run = Monitor(group, False, '--namespace', 'left/load_identification')
    try:
        run.wait_for('identified  samples 500  mass 1.106 ± 0.001 kg')
        assert '\x1b' not in run.output
        assert run.end(signal.SIGINT) == 0
    finally:
        run.close()


def test_unusable_namespace_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        monitor.main(['--namespace', 'two arms'])
    assert caught.value.code == 2
    assert 'namespace' in capsys.readouterr().err
