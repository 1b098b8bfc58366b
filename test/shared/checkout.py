"""Where the files of this checkout are, and what they import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

NAME = 'load_identification'
ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / NAME
TESTS = ROOT / 'test'
SHARED = (TESTS / 'shared', TESTS / 'shared' / 'ros')
"""What tests of several rooms use, and what comes with it where topics are; see pyproject.toml."""


@cache
def imports(path: Path) -> tuple[str, ...]:
    """List the dotted names a file imports, `from a import b` as both `a` and `a.b`."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    package = path.relative_to(ROOT).with_suffix('').parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = '.'.join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f'{base}.{alias.name}' for alias in node.names)
