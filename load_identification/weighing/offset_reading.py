"""Tell how an offset measured at rest depends on the errors of the cell."""

from __future__ import annotations

import numpy as np

from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.measurement import Block
from load_identification.estimation.sensor_offset import OfErrors
from load_identification.estimation.systematic_errors import SystematicErrors


def errors_in_reading(tool: Tool, still: Block, systematic: SystematicErrors) -> OfErrors | None:
    """Return how a reading at rest, less the tool, depends on the errors of the cell.

    Parameters
    ----------
    tool : Tool
        All that is on the sensor.
    still : Block
        Geometry of the pose, see `weight.still_block`.
    systematic : SystematicErrors

    Returns
    -------
    OfErrors or None
        None if the block is of another robot, or they are not known in it.
    """
    if not systematic.suits(still):
        return None
    by_errors, level = systematic.columns(still, tool.parameters), np.zeros(6)
    its = tool.shared
    if its is not None and set(its.names) <= set(systematic.names):
        # Errors of the sensor that identified the tool are in the reading as well, and cancel.
        by_tool = still.matrix @ its.by_errors
        by_errors[:, [systematic.names.index(name) for name in its.names]] += by_tool
        level = by_tool @ its.errors
    if not np.isfinite(by_errors).all():
        return None
    return OfErrors(systematic.names, by_errors, level)
