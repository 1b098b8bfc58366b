"""docs/interface.md: every reason to drop a sample and every key of /diagnostics is in it."""

from __future__ import annotations

import ast
import re

from checkout import PACKAGE, ROOT


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
