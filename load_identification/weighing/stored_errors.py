"""How stored tool and offset depend on the errors of the cell, read and written."""

from __future__ import annotations

from typing import Any

import numpy as np

from load_identification.errors import ParameterError
from load_identification.estimation.belief.tool import Shared
from load_identification.estimation.sensor_offset import OfErrors
from load_identification.interface.files import check_covariance, field, vector
from load_identification.typing_aliases import FloatArray

LARGEST = 1e6
"""Largest magnitude of a value or a standard deviation that is believed [SI unit]."""

LEAST_STD = 1e-12
"""Least standard deviation that is believed [SI unit]."""

ROUNDING = 1e-9
"""Error of a stored covariance that is left to rounding, as correlations [-]."""


def shared_of(section: Any) -> Shared | None:
    """Return how a tool depends on the errors of the sensor; files of before do not say it."""
    found = _numbers(section, 'tool', 11)
    if found is None:
        return None
    names, numbers = found
    alone = covariance_of(field(section, 'alone', 'tool.'), 'tool.alone', 10)
    return Shared(names, numbers[:, 0], numbers[:, 1:].T, alone)


def plain_shared(its: Shared) -> dict[str, Any]:
    """Return what `shared_of` reads."""
    each = zip(its.names, its.errors.tolist(), its.by_errors.T, strict=True)
    return {
        'errors': {name: [value, *by.tolist()] for name, value, by in each},
        'alone': its.alone.tolist(),
    }


def of_errors_of(section: Any) -> OfErrors | None:
    """Return how an offset depends on the errors of the cell; files of before do not say it."""
    found = _numbers(section, 'offset', 6)
    if found is None:
        return None
    level = vector(field(section, 'level', 'offset.'), 'offset.level', 6, -LARGEST, LARGEST)
    return OfErrors(found[0], found[1].T, level)


def plain_of_errors(its: OfErrors) -> dict[str, Any]:
    """Return what `of_errors_of` reads."""
    each = zip(its.names, its.by_errors.T.tolist(), strict=True)
    return {'errors': dict(each), 'level': its.level.tolist()}


def _numbers(section: Any, where: str, size: int) -> tuple[tuple[str, ...], FloatArray] | None:
    """Return the names of errors and `size` numbers for each of them; None: there are none."""
    errors = section.get('errors')
    if errors is None:
        return None
    if not isinstance(errors, dict):
        raise ParameterError(f'{where}.errors must have a list of numbers for each error')
    rows = [
        vector(each, f'{where}.errors.{name}', size, -LARGEST, LARGEST)
        for name, each in errors.items()
    ]
    return tuple(map(str, errors)), np.array(rows).reshape(-1, size)


def covariance_of(rows: Any, where: str, size: int) -> FloatArray:
    """Return a covariance (size, size) that is given as a list of rows.

    Raises ParameterError if it is none.
    """
    if not isinstance(rows, list) or len(rows) != size:
        raise ParameterError(f'{where} must be a list of {size} rows')
    names = (f'{where}[{i}]' for i in range(size))
    pairs, most = zip(rows, names, strict=True), LARGEST**2
    covariance = np.array([vector(row, name, size, -most, most) for row, name in pairs])
    if not (np.diag(covariance) >= LEAST_STD**2).all():
        raise ParameterError(f'{where} has variances that are not above 0')
    check_covariance(covariance, where, ROUNDING)
    return covariance
