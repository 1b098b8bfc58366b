"""What makes an estimate doubtful: no body can have it, or another method disagrees."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.consistency import BoundingEllipsoid, nearest_consistent
from load_identification.estimation.payload_estimate import (
    PARAMETERS,
    UNKNOWNS,
    in_message_order,
)
from load_identification.estimation.recursive_least_squares import RecursiveLeastSquares
from load_identification.estimation.total_least_squares import (
    disagreement,
    regressor_errors,
    total_least_squares,
)
from load_identification.model.inertial_parameters import to_message_order
from load_identification.typing_aliases import FloatArray

NAMES = ('mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
CHANNELS = 3
"""Of a group of rows."""


def possible(
    parameters: FloatArray,
    values: FloatArray,
    covariance: FloatArray,
    bounding_ellipsoid: BoundingEllipsoid | None,
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the values of the nearest body that can exist, and a warning where that differs.

    Parameters
    ----------
    parameters : (10,) array
        Of the payload.
    values : (10,) array
        The same in message order.
    covariance : (10, 10) array
        Of the parameters.
    bounding_ellipsoid : BoundingEllipsoid or None
    """
    nearest = nearest_consistent(parameters, covariance, bounding_ellipsoid)
    if not nearest.converged:
        return values, ('no real body has these parameters, nor was a near one found',)
    if not nearest.iterations:
        return values, ()
    away = f'{nearest.distance:.1f} standard deviations'
    words = f'no real body has the parameters estimated: this is the nearest, {away} away'
    return to_message_order(nearest.parameters), (words,)


def by_total_least_squares(
    memory: RecursiveLeastSquares,
    noise: FloatArray,
    motion_errors: FloatArray,
    tool: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return values and standard deviations, (10,) in message order, of the other method.

    Parameters
    ----------
    memory : RecursiveLeastSquares
        Of force and torque rows.
    noise : (2,) array
        Of these.
    motion_errors : (6, 6) array
        Covariance of the errors of linear and angular acceleration.
    tool : tuple of (10,) and (10, 10) arrays
        To be taken off, with its covariance.
    """
    body = slice(PARAMETERS)
    errors = np.zeros((UNKNOWNS, UNKNOWNS))
    samples = memory.telling_rows() / CHANNELS
    for level, count, error in zip(noise, samples, regressor_errors(motion_errors), strict=True):
        errors[body, body] += count / level**2 * error
    found = total_least_squares(memory.stack(noise).whole, errors)
    return in_message_order(found.values[body] - tool[0], found.covariance[body, body] + tool[1])


def second_opinion(
    memory: RecursiveLeastSquares,
    noise: FloatArray,
    motion_errors: FloatArray,
    tool: tuple[FloatArray, FloatArray],
    values: FloatArray,
    std: FloatArray,
) -> tuple[str, ...]:
    """Return where total least squares on the same rows disagrees beyond both intervals.

    Parameters
    ----------
    memory, noise, motion_errors, tool : as in `by_total_least_squares`
    values, std : (10,) arrays
        Of least squares, in message order.
    """
    if not values[0] > 0.0:
        return ()
    other = by_total_least_squares(memory, noise, motion_errors, tool)
    return tuple(disagreement(NAMES, (values, std), other))
