"""Find which errors of the cell most of a variance is due to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from load_identification.estimation.advice.predicted_covariance import (
    UNKNOWNS,
    Knowledge,
    joined,
    predicted_std,
    triangular,
)
from load_identification.typing_aliases import FloatArray

EXACT = 1e-3
"""Factor on the noise that makes it negligible [-]."""


def after_all(knowledge: Knowledge, rows: FloatArray) -> FloatArray:
    """Return the root of the information after all motions, without noise, (16 + N, 16 + N).

    It is that with rows (k, n, 6, 16 + N): what is open then is due to errors of the cell.
    """
    exact = replace(knowledge, noise=EXACT * knowledge.noise, pose_variance=np.zeros(6))
    known = np.eye(len(knowledge.information))[knowledge.pose] / EXACT**2
    exact = replace(exact, information=np.vstack([knowledge.information, known]))
    one = np.ones(1)
    return np.asarray(joined(exact, rows.reshape(1, -1, *rows.shape[2:]), one, one)[0])


def left_by_errors(knowledge: Knowledge, information: FloatArray) -> FloatArray:
    """Return the std in message order (10,), 0 where errors of the cell are not most of it."""
    std = predicted_std(knowledge, information[None])[0]
    known = std_if_known(knowledge, information, lambda _: True)
    return np.where(known < std / 2.0, std, 0.0)


def std_if_known(
    knowledge: Knowledge, information: FloatArray, known: Callable[[str], bool]
) -> FloatArray:
    """Return the std in message order (10,) if the errors of some names were known exactly."""
    open_ = [k for k, name in enumerate(knowledge.names) if not known(name)]
    kept = [*range(UNKNOWNS), *(UNKNOWNS + k for k in open_)]
    return np.asarray(predicted_std(knowledge, triangular(information[None, :, kept]))[0])


def leading_error(knowledge: Knowledge, information: FloatArray, place: int) -> tuple[str, float]:
    """Return the class of errors that most of a variance is due to, and the std without it.

    Parameters
    ----------
    place : int
        Of the parameter in message order.

    Returns
    -------
    tuple of str and float
        Name of the class, empty where none makes half of the variance; and the standard deviation
        if it were known exactly.
    """
    now = float(predicted_std(knowledge, information[None])[0, place])
    classes = dict.fromkeys(name.partition('.')[0] for name in knowledge.names)
    rest = {
        each: float(std_if_known(knowledge, information, of_class(each))[place])
        for each in classes
    }
    best = min(rest, key=rest.__getitem__, default='')
    return (best, rest[best]) if best and rest[best] ** 2 < now**2 / 2.0 else ('', now)


def of_class(name: str) -> Callable[[str], bool]:
    """Return a function that tells whether an error, by name, is of a class."""
    return lambda error: error.partition('.')[0] == name
