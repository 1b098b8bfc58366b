"""Frames fixed to one another by a robot description or by transforms on /tf_static."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio

from load_identification.model.urdf import parse_xml
from load_identification.typing_aliases import FloatArray


def same_frame(one: str, other: str) -> bool:
    """Return whether two names of frames are equal, or one of them is not known (empty)."""
    return one == other or not (one and other)


def find_fixed_frame(urdf: str, frame: str, pattern: str) -> tuple[str, pinocchio.SE3] | None:
    """Find the one link with a matching name that the frame S is fixed to.

    Return its name and the pose of S in it, ``p = R p_S + t`` [m]; None if there is no such link
    or more than one.

    Parameters
    ----------
    urdf : text of a valid description.
    frame : link whose frame is S.
    pattern : regular expression for the whole name of the link.
    """
    model = pinocchio.buildModelFromXML(urdf)
    links = {f.name: f for f in model.frames if f.type == pinocchio.FrameType.BODY}
    if frame not in links:
        return None
    own = links[frame]
    fixed = [link for link in links.values() if link.parentJoint == own.parentJoint]
    found = [link for link in fixed if re.fullmatch(pattern, link.name)]
    return (found[0].name, found[0].placement.actInv(own.placement)) if len(found) == 1 else None


def with_frame(description: str, frame: str, transforms: Iterable[Any]) -> str:
    """Return a description with the frame as a new link, on a link that it is fixed to.

    All links that the frame is fixed to are fixed to one another, so that any of them serves. The
    description stays as it is if it has the frame, or if nothing fixes the frame to a link.

    Parameters
    ----------
    description : URDF.
    transforms : geometry_msgs/TransformStamped; the last one counts for each child frame.
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
    """Return parent, child, and the pose of the child in the parent."""
    q, t = transform.transform.rotation, transform.transform.translation
    rotation = pinocchio.Quaternion(q.w, q.x, q.y, q.z).normalized().matrix()
    placement = pinocchio.SE3(rotation, np.array([t.x, t.y, t.z]))
    return transform.header.frame_id.lstrip('/'), transform.child_frame_id.lstrip('/'), placement


def link_names(urdf: str) -> tuple[str, ...]:
    """Return the names of the links of a robot description.

    Raises DescriptionError if the text is not XML.
    """
    return tuple(element.get('name', '') for element in parse_xml(urdf).findall('link'))


def with_fixed_link(
    urdf: str, parent: str, link: str, rotation: FloatArray, translation: Sequence[float]
) -> str:
    """Return a robot description with one more link, fixed to an existing one.

    Parameters
    ----------
    urdf : text of the description.
    parent : name of the existing link.
    link : name of the new link.
    rotation : (3, 3) from the new link to its parent.
    translation : (3,) origin of the new link in its parent [m].
    """
    xyz = ' '.join(repr(float(x)) for x in translation)
    rpy = ' '.join(repr(float(x)) for x in pinocchio.rpy.matrixToRpy(rotation))
    joint = quoteattr(f'{parent}_to_{link}')
    addition = (
        f'<link name={quoteattr(link)}/><joint name={joint} type="fixed">'
        f'<parent link={quoteattr(parent)}/><child link={quoteattr(link)}/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/></joint>'
    )
    body, end, rest = urdf.rpartition('</robot')
    return body + addition + end + rest
