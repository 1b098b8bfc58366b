"""Collision geometry of a robot description, with each mesh as one to four convex hulls."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio
import scipy.spatial

from load_identification.errors import DescriptionError
from load_identification.model.urdf import parse_xml
from load_identification.typing_aliases import FloatArray, IntArray

GUESSED_SHARE = 0.07
"""Radius of a link without its mesh, as a share of the path length along all joints; the links of
a UR5 are about as thick [-]."""


CUTS = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Candidate cuts of a mesh in two, as shares of its length along x, y and z [-]."""

WORTH = 0.85
"""Largest volume of the halves' hulls for a cut to be made, as a share of the whole hull's [-]."""

DEPTH = 2
"""Most successive cuts of a mesh."""

THICKNESS = 1e-3
"""Thickness given to a mesh without volume, such as a sheet [m]."""


def collision_geometry(
    model: pinocchio.Model, urdf: str
) -> tuple[pinocchio.GeometryModel, dict[str, str], float]:
    """Read the collision shapes of all links.

    A link whose mesh is not found or cannot be read becomes capsules from its joint to the next
    ones; the last link becomes a ball. So does every link of a description without collision
    geometry.

    Parameters
    ----------
    model : pinocchio.Model
        Of the whole description.

    Returns
    -------
    pinocchio.GeometryModel
        Without collision pairs.
    dict of str to str
        The guessed links, each with what is wrong.
    float
        Radius of their capsules [m].

    Raise DescriptionError if Pinocchio cannot compute distances.
    """
    if not hasattr(pinocchio, 'coal'):
        raise DescriptionError(
            'distances between links need a Pinocchio of 3.4 or later that was built with coal; '
            f'{pinocchio.__version__} at {pinocchio.__file__} was not: pip install --user '
            '"pin>=3.4", on Ubuntu 24.04 and later with --break-system-packages'
        )
    root = parse_xml(urdf)
    guessed = _found_meshes(root)
    text = ElementTree.tostring(root, encoding='unicode')
    read = pinocchio.buildGeomFromUrdfString(model, text, pinocchio.GeometryType.COLLISION)
    geometry = pinocchio.GeometryModel()
    for body in read.geometryObjects:
        mesh = isinstance(body.geometry, pinocchio.coal.BVHModelBase)
        for number, shape in enumerate(_hulls(body.geometry) if mesh else [body.geometry]):
            part = pinocchio.GeometryObject(body)
            part.name, part.geometry = f'{body.name}_{number}', shape
            geometry.addGeometryObject(part)
    if not geometry.ngeoms and not guessed:
        bodies = [f for f in model.frames if f.type == pinocchio.FrameType.BODY]
        # The first of the links fixed to one another represents all.
        first = {f.parentJoint: f.name for f in reversed(bodies)}
        guessed = dict.fromkeys(first.values(), 'the description has no collision geometry')
    radius = GUESSED_SHARE * sum(
        float(np.linalg.norm(p.translation)) for p in model.jointPlacements
    )
    for link in guessed:
        for part in _capsules(model, link, radius):
            geometry.addGeometryObject(part)
    return geometry, guessed, radius


def _found_meshes(root: ElementTree.Element) -> dict[str, str]:
    """Replace mesh file names by paths, and remove meshes that are not found or unreadable.

    Returns
    -------
    dict of str to str
        Links without their meshes, each with what is wrong.
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
            # Pinocchio looks for a relative path elsewhere.
            path = next((path.absolute() for path in _places(name) if path.is_file()), None)
            if path is not None and _is_readable(path):
                mesh.set('filename', str(path))
            else:
                wrong = 'is not found' if path is None else f'cannot be read from {path}'
                lacking[link.get('name', '')] = f'{name} {wrong}'
                link.remove(collision)
    return lacking


def _is_readable(path: Path) -> bool:
    """Tell whether the file of a mesh holds triangles of finite size."""
    try:
        mesh = pinocchio.coal.MeshLoader().load(str(path), np.ones(3))
    except ValueError:
        return False
    return bool(np.isfinite(mesh.vertices()).all())


def _places(name: str) -> Iterator[Path]:
    """Yield the paths at which the file of a mesh may be."""
    scheme, _, rest = name.rpartition('://')
    if scheme not in ('package', 'model'):
        yield Path(rest)
        return
    package, _, inside = rest.partition('/')
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        yield Path(prefix, 'share', package, inside)
    for folder in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep):
        yield Path(folder, package, inside)


def _hulls(mesh: pinocchio.coal.BVHModelBase) -> list[pinocchio.coal.Convex]:
    """Return a mesh's hull, or its pieces' hulls where the hull is far larger than the mesh."""
    points = np.array(mesh.vertices())
    corners = [mesh.tri_indices(k) for k in range(mesh.num_tris)]
    triangles = np.array([(face[0], face[1], face[2]) for face in corners], dtype=np.int64)
    hulls = []
    for piece in _pieces(points, triangles, DEPTH):
        vertices = pinocchio.coal.StdVec_Vec3s()
        vertices.extend(piece.points[piece.vertices])
        hulls.append(pinocchio.coal.Convex.convexHull(vertices, True, 'Qt'))
    return hulls


def _pieces(points: FloatArray, triangles: IntArray, depth: int) -> list[scipy.spatial.ConvexHull]:
    """Cut triangles (t, 3) of points (n, 3) in two while that makes their hulls smaller."""
    whole = _hull(points[np.unique(triangles)])
    center = points[triangles].mean(axis=1)
    least, best = WORTH * whole.volume, None
    for axis, share in itertools.product(range(3), CUTS) if depth else ():
        low, high = center[:, axis].min(), center[:, axis].max()
        below = center[:, axis] < low + share * (high - low)
        if below.all() or not below.any():
            continue
        volume = sum(_hull(points[np.unique(triangles[s])]).volume for s in (below, ~below))
        if volume < least:
            least, best = volume, below
    if best is None:
        return [whole]
    return [
        *_pieces(points, triangles[best], depth - 1),
        *_pieces(points, triangles[~best], depth - 1),
    ]


def _hull(points: FloatArray) -> scipy.spatial.ConvexHull:
    """Return the convex hull of points (n, 3), thickened if they lie in a plane."""
    try:
        return scipy.spatial.ConvexHull(points)
    except scipy.spatial.QhullError:
        corners = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
        thick = points[:, None] + THICKNESS * corners
        return scipy.spatial.ConvexHull(thick.reshape(-1, 3))


def _capsules(
    model: pinocchio.Model, link: str, radius: float
) -> Iterator[pinocchio.GeometryObject]:
    """Yield capsules from a link's joint to the joints it carries, or to the links fixed to it."""
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
        yield pinocchio.GeometryObject(f'{link}_{number}_0', joint, frame, place, capsule)


def _turned_to(direction: FloatArray) -> FloatArray:
    """Return a rotation that turns the z axis to a direction (3,); a zero direction: identity."""
    if not direction.any():
        return np.eye(3)
    turn = pinocchio.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), direction)
    return np.array(turn.matrix())
