"""Distances of an arm from itself, a floor, keep-out boxes, and the edge of its workspace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio

from load_identification.errors import FrameError, ParameterError
from load_identification.model.collision_geometry import collision_geometry
from load_identification.model.urdf import configurations, parse_description, ranges
from load_identification.motion.limits import TURN, Box, Limits
from load_identification.typing_aliases import FloatArray

DRAWS = 500
"""Random postures drawn to find pairs that touch in all of them, and whether any is free."""

UNCHANGED = 5e-3
"""Least change of a distance for it to depend on the motion [m]."""

SHORT = 3.0
"""Length of the links between two guessed ones, in radii, below which these count as neighbours:
about a joint with two or three axes, capsules touch although real links do not [-]."""

WORLD = 0
"""Pinocchio's index of the root, which does not move."""

PAYLOAD, FLOOR, BOX = 'the payload', 'the floor', 'a keep-out box'


class Clearance:
    """Distances between the links of an arm, and from them to their surroundings.

    Links have the collision geometry of the description, with meshes as convex hulls. Neighbours
    in the chain are left out, and so are pairs that touch in every drawn posture, pairs of links
    that are built nearer than the distance to be kept, and pairs whose distance does not depend on
    the motion. Not thread-safe: all computations share one workspace.

    Attributes
    ----------
    floor : float or None
        Height of the floor in the root frame; None: no floor [m].
    guessed : dict of str to str
        Links without geometry, each with what was not found; capsules replace them.
    guessed_radius : float
        Radius of these capsules [m].
    covered : tuple of str
        Links that the payload's ball touches in every posture; nothing is kept from them.
    """

    def __init__(
        self,
        urdf: str,
        joints: Sequence[str],
        *,
        floor: float | None,
        keep_out: Sequence[Box] = (),
        workspace: Box | None = None,
        tip_frame: str = '',
        payload_radius: float = 0.0,
        kept: float = 0.0,
    ) -> None:
        """Read a description.

        Parameters
        ----------
        joints : sequence of J str
            Moving joints, in the order of joint vectors; the others are locked at zero.
        floor : float, optional
            Height in the root frame of the plane that everything that moves stays above; None: no
            floor [m].
        keep_out : sequence of Box
            Boxes that nothing that moves may enter.
        workspace : Box, optional
            Box that the origin of the tip frame stays in.
        tip_frame : str
            A link of the description; used only with a workspace or a payload.
        payload_radius : float
            Radius of a ball about the origin of the tip frame, 0: none [m].
        kept : float
            Distance to be kept; links nearer to each other in every drawn posture are left out,
            because no posture could keep it [m].

        Raises DescriptionError if the text is not a URDF, or Pinocchio cannot compute distances;
        FrameError if no joint moves the tip frame; ParameterError if a link touches the floor or a
        keep-out box in every posture. Only the first link may stand on the floor.
        """
        whole = parse_description(urdf)
        locked = [k for k in range(1, whole.njoints) if whole.names[k] not in joints]
        shapes, self.guessed, self.guessed_radius = collision_geometry(whole, urdf)
        model, (shapes,) = pinocchio.buildReducedModel(
            whole, [shapes], locked, pinocchio.neutral(whole)
        )
        self.floor = floor
        self._model, self._shapes, self._workspace = model, shapes, workspace
        self._order = [list(joints).index(name) for name in list(model.names)[1:]]
        self._tip = self._tip_of(tip_frame) if workspace is not None or payload_radius else 0
        self._links = [shape.name.rsplit('_', 2)[0] for shape in shapes.geometryObjects]
        if payload_radius:
            self._add(PAYLOAD, pinocchio.coal.Sphere(payload_radius), self._tip)
        moving = [k for k, s in enumerate(shapes.geometryObjects) if s.parentJoint != WORLD]
        pairs = self._pairs_of_links()
        if floor is not None:
            plane = pinocchio.coal.Halfspace(np.array([0.0, 0.0, 1.0]), floor)
            pairs += [(k, self._add(FLOOR, plane)) for k in moving]
        for box in keep_out:
            shape = pinocchio.coal.Box(*(box.upper - box.lower))
            number = self._add(BOX, shape, place=(box.lower + box.upper) / 2.0)
            pairs += [(k, number) for k in moving]
        self._choose(pairs, kept)

    def distance(self, q: FloatArray) -> FloatArray:
        """Return the least clearance (n,) of postures (n, J), negative in collision [m].

        Parameters
        ----------
        q : (n, J) array
            [rad, m].
        """
        return np.array([self._least(posture)[0] for posture in self._configurations(q)])

    def gradient(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least clearance (n,) and its derivative (n, J) by the joint positions.

        d' = n . (J_2 - J_1), with n the direction from one nearest point to the other

        Parameters
        ----------
        q : (n, J) array
            [rad, m].
        """
        distance, slope = np.empty(len(q)), np.empty((len(q), len(self._order)))
        for k, posture in enumerate(self._configurations(q)):
            distance[k], pair = self._least(posture)
            pinocchio.computeJointJacobians(self._model, self._data)
            slope[k, self._order] = self._slope(pair)
        return distance, slope

    def nearest(self, q: FloatArray) -> str:
        """Name the nearest pair of bodies in a posture (J,)."""
        _, pair = self._least(self._configurations(q[None])[0])
        if pair < 0:
            box = self._workspace
            if box is None:
                return 'nothing'
            return f'the tool and the edge of the workspace from {box.lower} to {box.upper} m'
        names = [self._links[k] for k in self._numbers[pair]]
        return f'{names[0]} and {names[1]}'

    def room(self, limits: Limits) -> float:
        """Return the largest clearance of random postures within limits [m].

        Raises ParameterError if all of them are in collision.
        """
        shape = (DRAWS, len(limits.lower))
        q = np.random.default_rng(0).uniform(limits.lower, limits.upper, shape)
        distance = self.distance(q)
        best = int(np.argmax(distance))
        if distance[best] <= 0.0:
            raise ParameterError(
                f'none of {DRAWS} postures drawn within the limits is free; the best one lacks '
                f'{-distance[best]:.3f} m between {self.nearest(q[best])}: allow more room'
            )
        return float(distance[best])

    def _configurations(self, q: FloatArray) -> FloatArray:
        return configurations(self._model, np.asarray(q, dtype=np.float64)[:, self._order])

    def _tip_of(self, frame: str) -> int:
        """Return the index of the tip frame."""
        kind = pinocchio.FrameType.BODY
        moved = {
            f.name: k
            for k, f in enumerate(self._model.frames)
            if f.type == kind and f.parentJoint != WORLD
        }
        if frame not in moved:
            raise FrameError(
                f'frame {frame!r} is not a link that the joints move; those are: '
                f'{", ".join(moved)}'
            )
        return moved[frame]

    def _add(
        self,
        name: str,
        shape: pinocchio.coal.ShapeBase,
        frame: int = 0,
        place: FloatArray | None = None,
    ) -> int:
        """Add a shape at a frame or at a place in the root frame, and return its index."""
        self._links.append(name)
        at = self._model.frames[frame]
        here = at.placement if place is None else pinocchio.SE3(np.eye(3), place)
        body = pinocchio.GeometryObject(
            f'{name} {len(self._links)}', at.parentJoint, frame, here, shape
        )
        return int(self._shapes.addGeometryObject(body))

    def _pairs_of_links(self) -> list[tuple[int, int]]:
        """Return the pairs of shapes whose links are not neighbours."""
        joints = [int(shape.parentJoint) for shape in self._shapes.geometryObjects]
        above = {}
        for joint in joints:
            # Skip joints without a shape, so that the next link counts as the neighbour.
            parent = int(self._model.parents[joint])
            while parent != WORLD and parent not in joints:
                parent = int(self._model.parents[parent])
            above[joint] = parent
        guess = [link in self.guessed for link in self._links]
        short = SHORT * self.guessed_radius
        return [
            (a, b)
            for a, first in enumerate(joints)
            for b, second in enumerate(joints[:a])
            if first != second and above[first] != second and above[second] != first
            if not (guess[a] and guess[b] and self._length_between(first, second) < short)
        ]

    def _length_between(self, first: int, second: int) -> float:
        """Return the total length of the links between two joints of a chain [m]."""
        upper, lower = sorted((first, second))
        chain = list(self._model.supports[lower])
        if upper not in chain:
            return np.inf
        between = chain[chain.index(upper) + 2 :]
        ways = (self._model.jointPlacements[joint].translation for joint in between)
        return sum(float(np.linalg.norm(way)) for way in ways)

    def _choose(self, pairs: Sequence[tuple[int, int]], kept: float) -> None:
        """Keep the pairs whose distance depends on the motion."""
        self._set(pairs)
        lowest, highest = np.full(len(pairs), np.inf), np.full(len(pairs), -np.inf)
        for posture in self._configurations(self._draw()):
            distances = self._distances(posture)
            lowest, highest = np.minimum(lowest, distances), np.maximum(highest, distances)
        for (link, other), most in zip(pairs, highest, strict=True):
            joint = self._shapes.geometryObjects[link].parentJoint
            if most <= 0.0 and (
                self._links[other] == BOX
                or (self._links[other] == FLOOR and self._model.parents[joint] != WORLD)
            ):
                raise ParameterError(
                    f'{self._links[link]} touches {self._links[other]} in all of {DRAWS} postures '
                    'drawn; move it, or leave it out'
                )
        names = [{self._links[k] for k in pair} for pair in pairs]
        self.covered = tuple(
            (each - {PAYLOAD}).pop()
            for each, most in zip(names, highest, strict=True)
            if most <= 0.0 and PAYLOAD in each
        )
        links = [each.isdisjoint((PAYLOAD, FLOOR, BOX)) for each in names]
        chosen = (highest > np.where(links, kept, 0.0)) & (highest - lowest > UNCHANGED)
        self._set([pair for pair, is_chosen in zip(pairs, chosen, strict=True) if is_chosen])

    def _draw(self) -> FloatArray:
        """Draw random postures (n, J) within the limits of the description [rad, m]."""
        _, bounds = ranges(self._model)
        endless = ~np.isfinite(bounds).all(axis=0)
        bounds[:, endless] = [[-TURN], [TURN]]
        q = np.empty((DRAWS, bounds.shape[1]))
        q[:, self._order] = np.random.default_rng(0).uniform(bounds[0], bounds[1], q.shape)
        return q

    def _set(self, pairs: Sequence[tuple[int, int]]) -> None:
        self._numbers = list(pairs)
        self._shapes.removeAllCollisionPairs()
        for pair in pairs:
            self._shapes.addCollisionPair(pinocchio.CollisionPair(*pair))
        self._data, self._results = self._model.createData(), self._shapes.createData()

    def _distances(self, posture: FloatArray) -> FloatArray:
        """Return the distances of all pairs [m]."""
        pinocchio.computeDistances(self._model, self._data, self._shapes, self._results, posture)
        return np.array([result.min_distance for result in self._results.distanceResults])

    def _least(self, posture: FloatArray) -> tuple[float, int]:
        """Return the least distance and its pair; -1: the edge of the workspace."""
        distances = self._distances(posture)
        pair = int(np.argmin(distances)) if len(distances) else -1
        least = float(distances[pair]) if len(distances) else np.inf
        within = float(np.min(self._walls()))
        return (within, -1) if within < least else (least, pair)

    def _walls(self) -> FloatArray:
        """Return the distances (2, 3) of the tip from the walls of the workspace, inwards [m]."""
        if self._workspace is None:
            return np.full((2, 3), np.inf)
        point = self._point()
        return np.array([point - self._workspace.lower, self._workspace.upper - point])

    def _point(self) -> FloatArray:
        """Return the position (3,) of the tip in the root frame [m]."""
        placement = pinocchio.updateFramePlacement(self._model, self._data, self._tip)
        return np.array(placement.translation)

    def _slope(self, pair: int) -> FloatArray:
        """Return the derivative (J,) of a pair's distance in the last computed posture."""
        if pair < 0:
            side, axis = np.unravel_index(int(np.argmin(self._walls())), (2, 3))
            direction = np.eye(3)[axis] * (1.0 if side == 0 else -1.0)
            joint = int(self._model.frames[self._tip].parentJoint)
            return self._approach(joint, self._point(), direction)
        result = self._results.distanceResults[pair]
        first, second = (
            int(self._shapes.geometryObjects[k].parentJoint) for k in self._numbers[pair]
        )
        normal = np.array(result.normal)
        return self._approach(second, result.getNearestPoint2(), normal) - self._approach(
            first, result.getNearestPoint1(), normal
        )

    def _approach(self, joint: int, point: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the derivative (J,) of a point on a joint's link along a direction."""
        if joint == WORLD:
            return np.zeros(self._model.nv)
        frame = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
        jacobian = pinocchio.getJointJacobian(self._model, self._data, joint, frame)
        arm = np.array(point) - self._data.oMi[joint].translation
        return np.asarray(direction @ jacobian[:3] + np.cross(arm, direction) @ jacobian[3:])
