"""Derive the offset from a pose at rest, and its dependence on the errors of the cell."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.measurement import Block
from load_identification.estimation.sensor_offset import OfErrors, OffsetPrior
from load_identification.estimation.systematic_errors import SystematicErrors
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import QUIETEST, StaticPose, gravity_rows

ABSENT_STD = np.array([1e5] * 3 + [1e4] * 3)
"""Of the offset of a channel that the sensor lacks: nothing is known [N, N m]."""


def errors_in_reading(tool: Tool, still: Block, systematic: SystematicErrors) -> OfErrors | None:
    """Return how a reading at rest, less the tool, depends on the errors of the cell.

    None if they are not known in the pose, or if it is another robot's. The tool is all that is on
    the sensor, the block the geometry of the pose, see `weight.still_block`.
    """
    if not systematic.suits(still):
        return None
    # Errors of the sensor that identified the tool are in the reading as well, and cancel.
    of_tool = tool.by_errors(systematic.names)
    by_errors = systematic.columns(still, tool.parameters) + still.matrix @ of_tool
    if not np.isfinite(by_errors).all():
        return None
    level = np.zeros(6)
    if tool.shared is not None and of_tool.any():
        level = still.matrix @ tool.shared.by_errors @ tool.shared.errors
    return OfErrors(systematic.names, by_errors, level)


def offset_read(
    rest: StaticPose,
    wrench: FloatArray,
    gravity: FloatArray | None,
    tool: Tool,
    of_errors: OfErrors | None,
    noise: FloatArray,
) -> OffsetPrior:
    """Return the offset that a pose shows with nothing but the tool on the sensor.

    The tool's error is in it, and again in the tool taken off a payload later: in the reverse
    orientation both add up, to twice the standard deviation. Counted as if independent that takes
    three times the variance here, one there.

    `wrench` (6,) is the mean in that pose, as the load exerts it [N, N m]; `gravity` (3,) in S may
    be unknown where there is no tool [m/s²]; `of_errors` is that of `errors_in_reading`; `noise`
    (2,) is expected of a sample of force and torque [N, N m].
    """
    value, covariance = wrench, np.diag(rest.standard_error**2)
    if gravity is not None:
        rows = gravity_rows(gravity[None])[0]
        value = value - rows @ tool.parameters[:4]
        own = tool.covariance if tool.shared is None else tool.shared.alone
        covariance = covariance + 3.0 * rows @ own[:4, :4] @ rows.T
    absent = ~np.isfinite(value)
    covariance[absent] = covariance[:, absent] = 0.0
    covariance[absent, absent] = ABSENT_STD[absent] ** 2
    scatter = np.sqrt(np.mean(rest.scatter.reshape(2, 3) ** 2, axis=1))
    return OffsetPrior(
        np.where(absent, 0.0, value),
        covariance,
        rest.end,
        np.maximum(scatter, QUIETEST * noise),
        None if gravity is None else gravity / np.linalg.norm(gravity),
        of_errors,
    )
