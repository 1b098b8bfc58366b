"""The parameter file as it is shipped: complete, true to the code, and explained."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from checkout import ROOT

from load_identification.interface.parameter_file import from_yaml
from load_identification.interface.parameters import TABLE, Parameters, check

FILE = ROOT / 'config' / 'load_identification.yaml'
RANGE = re.compile(r'(-?\d[\d.e+-]*) to (-?\d[\de+-]*(?:\.\d+)?)')


@pytest.fixture(scope='module')
def values() -> dict[str, Any]:
    """Return the values in the file, which must stand under every node of any namespace."""
    document = yaml.safe_load(FILE.read_text(encoding='utf-8'))
    assert list(document) == ['/**']
    assert list(document['/**']) == ['ros__parameters']
    found: dict[str, Any] = document['/**']['ros__parameters']
    return found


def comments() -> dict[str, str]:
    """Return by parameter the comment above it; neighbouring lines share theirs."""
    found: dict[str, str] = {}
    words: list[str] = []
    after_value = False
    for line in FILE.read_text(encoding='utf-8').splitlines():
        text = line.strip()
        if text.startswith('#'):
            words = words if not after_value else []
            words.append(text.lstrip('# '))
        elif match := re.match(r'(\w+): ', text):
            found[match[1]] = ' '.join(words)
        else:
            words = []
        after_value = bool(text) and not text.startswith('#')
    return found


def test_every_parameter_is_in_the_file_and_no_other(values: dict[str, Any]) -> None:
    assert sorted(values) == sorted(TABLE)


@pytest.mark.parametrize('name', TABLE)
def test_a_value_is_the_default_of_the_code_and_of_its_type(
    name: str, values: dict[str, Any]
) -> None:
    # An integer for a number would make ROS call it an integer, and refuse lists of both.
    value, default = values[name], TABLE[name].default
    assert check(name, value) == default
    if isinstance(default, tuple):
        assert [type(v) for v in value] == [type(v) for v in default]
    else:
        assert type(value) is type(default)


def test_identify_load_reads_the_file_as_the_nodes_do() -> None:
    assert from_yaml(FILE) == Parameters()


@pytest.mark.parametrize('name', TABLE)
def test_a_comment_says_unit_and_range(name: str) -> None:
    comment, info = comments()[name], TABLE[name].metadata
    assert len(comment) > 40
    if info['unit']:
        assert f'[{info["unit"].replace(".", " ")}]' in comment
    if info['limits'] is not None:
        assert info['limits'] in [
            (float(low), float(high)) for low, high in RANGE.findall(comment)
        ]
    for choice in info['choices']:
        assert f'{choice}:' in comment
