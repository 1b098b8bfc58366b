"""Three processes that tests share, and the table of faults: what was reported, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

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


@pytest.fixture(scope='module')
def three() -> Iterator[Any]:
    """What the three nodes say, a `ros_pipeline.Pipeline`, and by name the process of each."""
    from ros_faults import in_three

    with in_three() as three:
        yield three
