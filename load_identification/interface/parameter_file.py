"""ROS 2 parameter files: their sections and this package's parameters."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from load_identification.errors import ParameterError
from load_identification.interface.files import named, read_yaml
from load_identification.interface.parameters import TABLE, Parameters, check

ROS_PARAMETERS = ('use_sim_time', 'start_type_description_service')
"""Parameters of every node."""


def suggestion(name: str) -> str:
    """Return a hint for an unknown parameter name."""
    close = difflib.get_close_matches(name, TABLE, n=1)
    return f'; did you mean {close[0]}?' if close else ''


def from_yaml(path: Path, defaults: Mapping[str, Any] | None = None) -> Parameters:
    """Read a ROS 2 parameter file, with values under any node or wildcard.

    Parameters
    ----------
    defaults : mapping of str to any, optional
        Defaults that differ from the table.

    Raises ParameterError if the file cannot be read or contains an unknown or unusable parameter.
    """
    sections = read_sections(path)
    values = {name: value for _, section in sections for name, value in section.items()}
    if not values:
        raise ParameterError(f'parameter file {path}: no ros__parameters in it')
    ours = {name: value for name, value in values.items() if not of_ros(name)}
    for name in ours:
        if name not in TABLE:
            raise ParameterError(f'parameter file {path}: no parameter {name}{suggestion(name)}')
    with named(f'parameter file {path}'):
        for name, value in values.items():
            if isinstance(value, list) and {type(each) for each in value} == {int, float}:
                floats = reprlib.repr([float(each) for each in value])
                raise ParameterError(
                    f'{name} is {reprlib.repr(value)}; ROS wants floats: {floats}'
                )
        checked = {name: check(name, value) for name, value in ours.items()}
        return Parameters(**{**(defaults or {}), **checked})


def read_sections(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the sections of a ROS 2 parameter file: name of the node, and parameters.

    Raises ParameterError if the file cannot be read.
    """
    with named(f'parameter file {path}'):
        return list(_sections(read_yaml(path), ''))


def of_ros(name: str) -> bool:
    """Return whether a parameter is one that every node has."""
    return name in ROS_PARAMETERS or name.startswith('qos_overrides.')


def _sections(content: Any, node: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every ros__parameters section below, with its path of names."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key != 'ros__parameters':
                yield from _sections(value, f'{node}/{key.strip("/")}')
            elif isinstance(value, dict):
                yield node, value
