"""The table of the faults tested: what was reported, and how soon it recovered."""

from __future__ import annotations

from typing import Any

COLUMNS = ('fault', 'processes', 'reported after', 'recovered after', 'worst error')


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what the tests of the matrix have noted."""
    reports = terminalreporter.stats.get('passed', []) + terminalreporter.stats.get('failed', [])
    rows = [dict(report.user_properties) for report in reports]
    rows = [[row[column] for column in COLUMNS] for row in rows if 'fault' in row]
    if rows:
        terminalreporter.section('faults: seconds of stamps, error in standard deviations')
        for row in [COLUMNS, ['---'] * len(COLUMNS), *sorted(rows)]:
            terminalreporter.write_line(f'| {" | ".join(row)} |')
