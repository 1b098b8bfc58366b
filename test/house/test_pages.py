"""docs/interface.md has every reason and key; whatever docs/papers.md names is there."""

from __future__ import annotations

import ast
import re

from checkout import PACKAGE, ROOT

PAGE = ROOT / 'docs/papers.md'

NAMED = re.compile(r'`(?:python )?((?:\w+/)+\w+(?:\.\w+)?)(?::([A-Za-z_.0-9]+))?(?: --[^`]*)?`')
"""A file, or a module below load_identification/, and a name in it."""


def counted_reasons() -> set[str]:
    """List the reasons under which the nodes count what they drop, as far as the code tells."""
    found = set()
    rooms = ('interface', 'signals', 'estimation', 'weighing', 'parallel', 'arm')
    for room in (*rooms, 'pipeline', 'nodes'):
        for path in (PACKAGE / room).rglob('*.py'):
            for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
                found.update(reasons_of(node))
    return found


def reasons_of(node: ast.AST) -> list[str]:
    """Return the reasons that a piece of code counts."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
        counter, key = ast.unparse(node.target.value), node.target.slice
        return texts(key) if counter.endswith('dropped') else []
    if not isinstance(node, ast.Call):
        return []
    match ast.unparse(node.func):
        case 'self._count':
            return texts(node.args[0])
        case 'super().__init__' if len(node.args) > 3:  # of a SerializedReader
            return texts(node.args[3])
        case 'self._drop':
            streams = ('joint_states', 'wrench')
            return [f'{stream}_{text}' for stream in streams for text in texts(node.args[0])]
    return []


def texts(node: ast.AST) -> list[str]:
    """Return the texts that an expression is one of; none where it is put together."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=one, orelse=other):
            return texts(one) + texts(other)
    return []


def diagnostic_keys() -> set[str]:
    """List the keys with which nodes fill in /diagnostics, but for those made from names."""
    return {
        text
        for path in (PACKAGE / 'nodes').rglob('*.py')
        for function in ast.walk(ast.parse(path.read_text(encoding='utf-8')))
        if isinstance(function, ast.FunctionDef) and function.name == 'details'
        for table in ast.walk(function)
        if isinstance(table, ast.Dict)
        for key in table.keys
        if key is not None
        for text in texts(key)
    }


def section(title: str) -> str:
    """Return a section of the interface's description."""
    text = (ROOT / 'docs' / 'interface.md').read_text(encoding='utf-8')
    return text.partition(f'### {title}\n')[2].partition('\n#')[0]


def test_every_reason_to_drop_a_sample_is_in_the_interface_and_no_other() -> None:
    reasons = counted_reasons()
    assert {'wrench_stamp_zero', 'joint_state_malformed', 'filtered_stamp_stray'} <= reasons
    rows = re.findall(r'^\| (`.*?) \|', section('Why samples are dropped'), re.M)
    assert set(re.findall(r'`(\w+)`', ' '.join(rows))) == reasons


def test_every_key_of_diagnostics_is_in_the_interface() -> None:
    keys = diagnostic_keys()
    assert {'delay', 'wrench_lag', 'tool'} <= keys
    described = section('Keys of `/diagnostics`')
    assert [key for key in sorted(keys) if f'`{key}`' not in described] == []


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
