"""Identification joint by joint, from the tip to the base."""

from __future__ import annotations

from load_identification.numerics.weighted_rows import WeightedRows

LEAST_SHARE = 0.1
"""What each joint must see of a direction in noise, as a share of what it sees best: what a joint
sees poorly spoils all that come after it, and is left to the joints nearer the base. Without noise
1e-6 or so is enough [-]."""


def joint_stages(rows: WeightedRows) -> list[WeightedRows]:
    """Return the rows of each joint as a stage of its own, the last joint first.

    A joint's effort depends on what it moves alone. So the last joint tells some of the last
    link's parameters, and each joint before it, with what is known taken off, tells more. On
    line one recording serves all joints; off line each may have one in which the joints before it
    are locked: then little is left to tell apart at once.

    Parameters
    ----------
    rows : WeightedRows
        Channels in the order of the joints, parents before their children.

    Khosla and Kanade 1987, sections 3.1 and 3.2, eq. 11.
    """
    joints = range(rows.values.shape[1])
    return [WeightedRows(rows.matrix[:, [j]], rows.values[:, [j]]) for j in reversed(joints)]
