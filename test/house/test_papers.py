"""docs/papers.md: whatever it names is there."""

from __future__ import annotations

import ast
import re

from checkout import ROOT

PAGE = ROOT / 'docs/papers.md'

NAMED = re.compile(r'`(?:python )?((?:\w+/)+\w+(?:\.\w+)?)(?::([A-Za-z_.0-9]+))?(?: --[^`]*)?`')
"""A file, or a module below load_identification/, and a name in it."""


def defined(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Return what is defined by these statements, by name."""
    found: dict[str, ast.stmt] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            found |= {t.id: statement for t in statement.targets if isinstance(t, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = statement
    return found


def is_there(path: str, name: str) -> bool:
    """Tell whether there is a file, or module of the package, that defines a dotted name."""
    file = ROOT / path
    if not file.suffix:
        file = ROOT / 'load_identification' / f'{path}.py'
    if not file.is_file():
        return False
    body = ast.parse(file.read_text(encoding='utf-8')).body if name else []
    for part in name.split('.') if name else []:
        found = defined(body).get(part)
        if found is None:
            return False
        body = found.body if isinstance(found, ast.ClassDef) else []
    return True


def missing(text: str) -> list[str]:
    """Return what a page names that is not there."""
    return [':'.join(pair) for pair in NAMED.findall(text) if not is_there(*pair)]


def test_every_file_and_name_on_the_page_of_the_papers_is_there() -> None:
    text = PAGE.read_text(encoding='utf-8')
    assert missing(text) == []
    # Nothing in backticks that holds a slash has slipped through.
    spans = [span for span in re.findall(r'`([^`]+)`', text) if '/' in span]
    assert [span for span in spans if not NAMED.fullmatch(f'`{span}`')] == []
    assert len(spans) > 80


def test_the_page_has_every_numbered_equation_of_the_papers() -> None:
    sections = PAGE.read_text(encoding='utf-8').split('\n## ')[1:]
    for section, last in zip(sections, (22, 26, 15, 25, 4), strict=True):
        ranges = re.findall(r'(?<=[ (,|])(\d+)(?:–(\d+))?(?=[,:) |])', _first_cells(section))
        there = {k for a, b in ranges for k in range(int(a), int(b or a) + 1)}
        assert set(range(1, last + 1)) <= there, section.partition('\n')[0]


def _first_cells(section: str) -> str:
    """Return the first cells of the rows of a section's table that name equations."""
    cells = [line.split('|')[1] for line in section.splitlines() if line.startswith('| eq. ')]
    return ' | '.join(cells)
