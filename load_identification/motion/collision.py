"""Where the links of an arm are, for many postures at once, and a box for its tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio

from load_identification.errors import FrameError, ParameterError
from load_identification.model.urdf import parse_description
from load_identification.motion.limits import Limits
from load_identification.typing_aliases import FloatArray

REACH_DRAWS = 5000
"""Postures drawn to see whether the workspace is in reach."""


class Links:
    """Forward kinematics of the links that some joints move, the others locked at zero.

    Parameters
    ----------
    urdf : str
    joints : sequence of J str
        A parent before its children, as in the description.
    """

    def __init__(self, urdf: str, joints: Sequence[str]) -> None:
        whole = parse_description(urdf)
        locked = [k for k in range(1, whole.njoints) if whole.names[k] not in joints]
        self._model = model = pinocchio.buildReducedModel(whole, locked, pinocchio.neutral(whole))
        self._parents = [int(parent) - 1 for parent in list(model.parents)[1:]]
        self._placements = list(model.jointPlacements)[1:]
        self._axes = [_axis(model, k) for k in range(1, model.njoints)]

    def placements(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rotations to the root and origins of the links that the joints move.

        Parameters
        ----------
        q : (n, J) array
            [rad, m].

        Returns
        -------
        (n, J, 3, 3) and (n, J, 3) arrays
            [-, m].
        """
        n = len(q)
        rotation, position = np.empty((n, q.shape[1], 3, 3)), np.empty((n, q.shape[1], 3))
        for k, parent in enumerate(self._parents):
            linear, angular = self._axes[k]
            step = self._placements[k]
            turn = step.rotation @ _rotations(angular, q[:, k])
            way = step.translation + np.outer(q[:, k], step.rotation @ linear)
            if parent >= 0:
                before = rotation[:, parent]
                turn = before @ turn
                way = position[:, parent] + np.einsum('nij,nj->ni', before, way)
            rotation[:, k], position[:, k] = turn, way
        return rotation, position

    def frame(self, link: str) -> tuple[int, FloatArray]:
        """Return the place of the joint that moves a link, and the link's origin there (3,) [m].

        Raises
        ------
        FrameError
            Where no joint moves it.
        """
        kind = pinocchio.FrameType.BODY
        moved = {f.name: f for f in self._model.frames if f.type == kind and f.parentJoint > 0}
        if link not in moved:
            raise FrameError(
                f'frame {link!r} is not a link that the joints move; those are: {", ".join(moved)}'
            )
        found = moved[link]
        return int(found.parentJoint) - 1, np.array(found.placement.translation)


@dataclass(frozen=True, eq=False)
class Workspace:
    """A box in the root frame that a point of the arm is to stay in.

    Attributes
    ----------
    lower, upper : (3,) arrays
        Corners of the box [m].
    links : Links
    body : int
        The joint that moves the point, last of those that do.
    point : (3,) array
        In the frame of that joint's link [m].
    """

    lower: FloatArray
    upper: FloatArray
    links: Links
    body: int
    point: FloatArray

    @staticmethod
    def of_frame(
        links: Links, frame: str, lower: Sequence[float], upper: Sequence[float]
    ) -> Workspace:
        """Return a box for the origin of a link of the description.

        Raises
        ------
        FrameError
            Where the frame is no link that the arm moves.
        ParameterError
            Where the box is empty.
        """
        corners = np.array([lower, upper], dtype=np.float64)
        if corners.shape != (2, 3) or not np.all(corners[0] < corners[1]):
            raise ParameterError(
                f'workspace reaches from {list(lower)} to {list(upper)} m; it needs three numbers '
                'each, and the first corner below the second in x, y and z'
            )
        return Workspace(corners[0], corners[1], links, *links.frame(frame))

    def position(self, q: FloatArray) -> FloatArray:
        """Return where the point is (n, 3) in postures (n, J), in the root frame [m]."""
        rotation, position = self.links.placements(q)
        return np.asarray(position[:, self.body] + rotation[:, self.body] @ self.point)

    def outside(self, q: FloatArray) -> FloatArray:
        """Return how far outside the box the point is (n,), 0 within [m]."""
        position = self.position(q)
        beyond = np.maximum(np.maximum(self.lower - position, position - self.upper), 0.0)
        return np.asarray(np.linalg.norm(beyond, axis=1))

    def check_reach(self, limits: Limits, name: str) -> None:
        """Refuse a box that no posture drawn within the limits has the point, `name`, in.

        Raises
        ------
        ParameterError
        """
        shape = (REACH_DRAWS, len(limits.lower))
        q = np.random.default_rng(0).uniform(limits.lower, limits.upper, shape)
        position = self.position(q)
        if (self.outside(q) > 0.0).all():
            raise ParameterError(
                f'{name!r} is in the workspace from {self.lower} to {self.upper} m in none of '
                f'{REACH_DRAWS} postures within the limits; it comes from '
                f'{position.min(axis=0).round(2)} to {position.max(axis=0).round(2)} m'
            )


def _axis(model: pinocchio.Model, joint: int) -> tuple[FloatArray, FloatArray]:
    """Return what a joint moves its link by, linear and angular, (3,) each."""
    data = model.joints[joint].createData()
    model.joints[joint].calc(data, pinocchio.neutral(model))
    linear, angular = np.array(data.S).reshape(2, 3)
    return linear, angular


def _rotations(axis: FloatArray, angle: FloatArray) -> FloatArray:
    """Return the rotations (n, 3, 3) about an axis of length one, or of zero, by Rodrigues."""
    x, y, z = axis
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sine, versine = np.sin(angle)[:, None, None], (1.0 - np.cos(angle))[:, None, None]
    return np.asarray(np.eye(3) + sine * skew + versine * (skew @ skew))
