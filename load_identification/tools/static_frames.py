"""A sensor frame that the description lacks, by what a recording has on /tf_static."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pinocchio

from load_identification.model.robot import link_names, with_fixed_link
from load_identification.nodes.conversions import vector


def with_frame(description: str, frame: str, transforms: Iterable[Any]) -> str:
    """Return a description with a frame as a further link, on the link that it is fixed to.

    All links that the frame hangs on are fixed to one another, so any of them will do.

    Parameters
    ----------
    description : str
        URDF.
    frame : str
    transforms : iterable of geometry_msgs/TransformStamped
        Of two of the same child the later counts.

    Returns
    -------
    str
        Unchanged where it has the frame already, or nothing fixes that to a link.
    """
    neighbours: dict[str, dict[str, pinocchio.SE3]] = {}
    for parent, child, placement in {t.child_frame_id: _read(t) for t in transforms}.values():
        neighbours.setdefault(child, {})[parent] = placement
        neighbours.setdefault(parent, {})[child] = placement.inverse()
    links = link_names(description) if neighbours else ()
    if frame in links:
        return description
    placed = {frame: pinocchio.SE3.Identity()}
    waiting = [frame]
    while waiting:
        name = waiting.pop()
        if name in links:
            found = placed[name]
            return with_fixed_link(description, name, frame, found.rotation, found.translation)
        for other, placement in neighbours.get(name, {}).items():
            if other not in placed:
                placed[other] = placement * placed[name]
                waiting.append(other)
    return description


def _read(transform: Any) -> tuple[str, str, pinocchio.SE3]:
    """Return parent, child, and where the child stands in the parent."""
    q = transform.transform.rotation
    rotation = pinocchio.Quaternion(q.w, q.x, q.y, q.z).normalized().matrix()
    placement = pinocchio.SE3(rotation, np.array(vector(transform.transform.translation)))
    return transform.header.frame_id.lstrip('/'), transform.child_frame_id.lstrip('/'), placement
