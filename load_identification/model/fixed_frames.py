"""Links of a robot description that are fixed to one another."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pinocchio

from load_identification.typing_aliases import FloatArray


@dataclass(frozen=True, eq=False)
class FixedFrame:
    """A link that another one, S, is fixed to: ``p = rotation p_S + translation``.

    Attributes
    ----------
    name : str
    rotation : (3, 3) array
        From the axes of S to those of the link [-].
    translation : (3,) array
        Origin of S in the link [m].
    """

    name: str
    rotation: FloatArray
    translation: FloatArray


def find_fixed_frame(urdf: str, frame: str, pattern: str) -> FixedFrame | None:
    """Find the one link of a name that a frame S is fixed to.

    Parameters
    ----------
    urdf : str
        Text of a description that is known to be valid.
    frame : str
        Link whose frame is S.
    pattern : str
        Regular expression for the whole name of the link looked for.

    Returns
    -------
    FixedFrame or None
        None where there is no such link, or more than one.
    """
    model = pinocchio.buildModelFromXML(urdf)
    links = [f for f in model.frames if f.type == pinocchio.FrameType.BODY]
    own = next((link for link in links if link.name == frame), None)
    if own is None:
        return None
    found = [
        link
        for link in links
        if link.parentJoint == own.parentJoint and re.fullmatch(pattern, link.name)
    ]
    if len(found) != 1:
        return None
    placement = found[0].placement.actInv(own.placement)
    return FixedFrame(found[0].name, np.array(placement.rotation), np.array(placement.translation))
