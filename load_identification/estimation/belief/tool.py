"""A body that this sensor has identified before, and what it has in common with a later one.

An error n of the sensor spoils both alike: phi = a + S n. Of their difference it spoils what is
left, (S - S') n: a gain of one per cent the payload by one per cent, however heavy the tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from load_identification.estimation.measurement import PARAMETERS
from load_identification.typing_aliases import FloatArray, IntArray

if TYPE_CHECKING:
    from load_identification.estimation.belief.error_budget import Knowledge

BODY = slice(PARAMETERS)

OF_THE_SENSOR = ('gain', 'cross_talk')
"""Errors that stay: gravity, description, encoders and delay may be corrected meanwhile."""


@dataclass(frozen=True, eq=False)
class Shared:
    """How a body depends on the errors of the sensor that it was identified with.

    Attributes
    ----------
    names : tuple of str
        Of N errors, as in `SystematicErrors.names`.
    errors : (N,) array
        What they were taken for.
    by_errors : (10, N) array
        S: by how much the parameters move with each.
    alone : (10, 10) array
        Covariance of the parameters were these errors known.
    """

    names: tuple[str, ...]
    errors: FloatArray
    by_errors: FloatArray
    alone: FloatArray

    @classmethod
    def of(cls, found: Knowledge, names: Sequence[str]) -> Shared:
        """Return it of what is known now; `names` are those of all systematic errors."""
        kept = np.flatnonzero([name.startswith(OF_THE_SENSOR) for name in names])
        by_errors, alone = _split(found, kept)
        shared = tuple(names[k] for k in kept.tolist())
        return cls(shared, found.errors[kept], by_errors[BODY], alone[BODY, BODY])


@dataclass(frozen=True, eq=False)
class Tool:
    """A body that is taken off the payload.

    Attributes
    ----------
    parameters, covariance : (10,) and (10, 10) arrays
        As identified; zeros: none [kg, kg m, kg m²].
    shared : Shared or None
        None: its errors have nothing to do with those of the payload.
    """

    parameters: FloatArray
    covariance: FloatArray
    shared: Shared | None = None

    def taken_off(
        self, found: Knowledge, names: Sequence[str]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Take the tool off what is known of all that is carried.

        Parameters
        ----------
        found : Knowledge
        names : sequence of str
            Of its systematic errors.

        Returns
        -------
        parameters : (10,) array
            Of the payload.
        covariance : (16, 16) array
            Of payload and offset.
        part : (10, 10) array
            What of it comes from the tool alone.
        """
        its, covariance = self.shared, found.covariance.copy()
        if its is None or not set(its.names) <= set(names):
            covariance[BODY, BODY] += self.covariance
            return found.body - self.parameters, covariance, self.covariance
        places = np.array([names.index(name) for name in its.names], dtype=np.int64)
        by_errors, covariance = _split(found, places)
        by_errors[BODY] -= its.by_errors
        covariance += by_errors @ found.errors_covariance[np.ix_(places, places)] @ by_errors.T
        covariance[BODY, BODY] += its.alone
        # What is known better of the errors now is so of the tool as well.
        tool = self.parameters + its.by_errors @ (found.errors[places] - its.errors)
        return found.body - tool, covariance, its.alone


NO_TOOL = Tool(np.zeros(PARAMETERS), np.zeros((PARAMETERS, PARAMETERS)))


def _split(found: Knowledge, places: IntArray) -> tuple[FloatArray, FloatArray]:
    """Split what is known of body and offset by some errors.

    Returns
    -------
    by_errors : (16, k) array
    alone : (16, 16) array
        Covariance were these errors known.
    """
    among, along = found.errors_covariance[np.ix_(places, places)], found.with_errors[:, places]
    by_errors = np.asarray(np.linalg.solve(among, along.T).T)
    left = found.covariance - by_errors @ along.T
    # Members of the bank disagree on it by a little: no variance below zero.
    scale = np.sqrt(np.diag(found.covariance))
    values, axes = np.linalg.eigh(left / np.outer(scale, scale))
    axes *= scale[:, None]
    alone: FloatArray = (axes * np.maximum(values, 0.0)) @ axes.T
    return by_errors, alone
