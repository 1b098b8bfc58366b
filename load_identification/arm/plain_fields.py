"""Numbers in and out of the plain values of a YAML file; errors name the field."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import yaml

from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray


def field(fields: Any, name: str, where: str = '') -> Any:
    """Return a field of a mapping.

    Parameters
    ----------
    fields : mapping
        Or what the file has in place of it.
    name : str
    where : str
        What leads to it in the file, such as `drive.`, for the error.

    Raises
    ------
    ParameterError
        If it is missing.
    """
    if not isinstance(fields, Mapping) or name not in fields:
        raise ParameterError(f'field {where}{name} is missing')
    return fields[name]


def number(value: Any, where: str) -> float:
    """Return a finite number.

    Raises
    ------
    ParameterError
        If it is none.
    """
    found = np.nan
    # YAML 1.1 reads 1e-3, without a point, as text.
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            found = float(value)
    if not np.isfinite(found):
        raise ParameterError(f'{where} is {value!r}; it must be a finite number')
    return found


def vector(values: Any, where: str, size: int) -> FloatArray:
    """Return finite numbers, (size,).

    Raises
    ------
    ParameterError
        If there are more or less, or one is none.
    """
    if not isinstance(values, list) or len(values) != size:
        raise ParameterError(f'{where} must be a list of {size} numbers')
    return np.array([number(value, where) for value in values])


def rounded(value: float) -> float:
    """Return a number with nine significant digits."""
    return float(f'{value:.9g}')


def numbers(values: FloatArray) -> list[float]:
    """Return numbers with nine significant digits each."""
    return [rounded(value) for value in values]


def line(value: Any) -> str:
    """Write a value on one line of YAML."""
    # As a list, for a document of a scalar alone ends with a line of dots.
    text = yaml.safe_dump([value], default_flow_style=True, sort_keys=False, width=1_000_000)
    return str(text.strip()[1:-1])
