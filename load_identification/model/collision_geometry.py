"""The collision geometry of a robot description, every mesh as its convex hull."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio

from load_identification.model.urdf import parse_xml
from load_identification.typing_aliases import FloatArray

GUESSED_SHARE = 0.07
"""Radius of a link whose mesh is not found, in parts of the way along all joints: a UR5's links
are about as thick [-]."""


def collision_geometry(
    model: pinocchio.Model, urdf: str
) -> tuple[pinocchio.GeometryModel, dict[str, str]]:
    """Read the collision shapes of all links.

    A link whose mesh is not found, and in a description without any collision geometry every
    link, becomes capsules from its joint to the next ones.

    Parameters
    ----------
    model : pinocchio.Model
        Of the whole description.
    urdf : str

    Returns
    -------
    pinocchio.GeometryModel
        Without pairs.
    dict of str to str
        The links guessed, with what was not found of each.
    """
    root = parse_xml(urdf)
    guessed = _found_meshes(root)
    text = ElementTree.tostring(root, encoding='unicode')
    geometry = pinocchio.buildGeomFromUrdfString(model, text, pinocchio.GeometryType.COLLISION)
    for shape in geometry.geometryObjects:
        if isinstance(shape.geometry, pinocchio.coal.BVHModelBase):
            shape.geometry.buildConvexHull(True, 'Qt')
            shape.geometry = shape.geometry.convex
    if not geometry.ngeoms and not guessed:
        bodies = [f for f in model.frames if f.type == pinocchio.FrameType.BODY]
        # Of links fixed to one another the first stands for all.
        first = {f.parentJoint: f.name for f in reversed(bodies)}
        guessed = dict.fromkeys(first.values(), 'the description has no collision geometry')
    radius = GUESSED_SHARE * sum(
        float(np.linalg.norm(p.translation)) for p in model.jointPlacements
    )
    for link in guessed:
        for shape in _capsules(model, link, radius):
            geometry.addGeometryObject(shape)
    return geometry, guessed


def _found_meshes(root: ElementTree.Element) -> dict[str, str]:
    """Name the files of meshes by their paths, and take out those that are not found.

    Returns
    -------
    dict of str to str
        What each link lacks.
    """
    lacking = {}
    for link in root.findall('link'):
        for visual in link.findall('visual'):
            link.remove(visual)
        for collision in link.findall('collision'):
            mesh = collision.find('geometry/mesh')
            if mesh is None:
                continue
            name = mesh.get('filename', '')
            path = next((str(path) for path in _places(name) if path.is_file()), None)
            if path is None:
                lacking[link.get('name', '')] = f'{name} is not found'
                link.remove(collision)
            else:
                mesh.set('filename', path)
    return lacking


def _places(name: str) -> Iterator[Path]:
    """List where the file of a mesh may be."""
    scheme, _, rest = name.rpartition('://')
    if scheme not in ('package', 'model'):
        yield Path(rest).absolute()
        return
    package, _, inside = rest.partition('/')
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        yield Path(prefix, 'share', package, inside)
    for folder in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep):
        yield Path(folder, package, inside)


def _capsules(
    model: pinocchio.Model, link: str, radius: float
) -> Iterator[pinocchio.GeometryObject]:
    """Lay capsules from a link's joint to the joints it carries, or to the links fixed to it."""
    frame = model.getFrameId(link, pinocchio.FrameType.BODY)
    joint = model.frames[frame].parentJoint
    ends = [
        np.array(model.jointPlacements[k].translation)
        for k in range(1, model.njoints)
        if model.parents[k] == joint
    ] or [np.array(f.placement.translation) for f in model.frames if f.parentJoint == joint]
    for number, end in enumerate(ends):
        capsule = pinocchio.coal.Capsule(radius, float(np.linalg.norm(end)))
        place = pinocchio.SE3(_turned_to(end), end / 2.0)
        yield pinocchio.GeometryObject(f'{link}_{number}', joint, frame, place, capsule)


def _turned_to(direction: FloatArray) -> FloatArray:
    """Return a rotation that turns the z axis to a direction (3,), which may be zero."""
    if not direction.any():
        return np.eye(3)
    turn = pinocchio.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), direction)
    return np.array(turn.matrix())
