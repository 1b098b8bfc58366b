"""Identify an arm joint by joint, from the tip to the base."""

from __future__ import annotations

from load_identification.numerics.weighted_rows import WeightedRows

LEAST_SHARE = 0.1
"""Least sensitivity of each joint to a direction in noise, as a share of its best sensitivity. A
poorly observed direction spoils all later stages; it is left to the joints nearer the base.
Without noise about 1e-6 is sufficient [-]."""


def joint_stages(rows: WeightedRows) -> list[WeightedRows]:
    """Return the rows of each joint as a separate stage, the last joint first.

    A joint's effort depends only on the links that it moves. The last joint identifies some of the
    last link's parameters. Each joint before it identifies more, given those already known. On
    line, one recording serves all joints. Off line, each may have its own, with the joints before
    it locked; few parameters then have to be resolved at once.

    Parameters
    ----------
    rows : WeightedRows
        Channels in the order of the joints, parents before their children.

    Khosla and Kanade 1987, sections 3.1 and 3.2, eq. 11.
    """
    joints = range(rows.values.shape[1])
    return [WeightedRows(rows.matrix[:, [j]], rows.values[:, [j]]) for j in reversed(joints)]
