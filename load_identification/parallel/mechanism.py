"""Kinematics and statics of a platform on six legs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from load_identification.interface.batches import Batch, joined
from load_identification.parallel.geometry_file import Geometry
from load_identification.typing_aliases import BoolArray, FloatArray

TOLERANCE = 1e-12
"""Largest difference of leg lengths at which a pose counts as found [m]."""

MOST_ITERATIONS = 20
"""Most iterations: from sample to sample, Newton needs two or three; more means failure."""

CHUNK = 100
"""Samples solved at once, each from the last pose before them: 0.1 s at 1 kHz."""


@dataclass(frozen=True, eq=False)
class PlatformPose(Batch):
    """Poses of S in the base frame."""

    position: FloatArray
    """P, (n, 3) [m]."""
    rotation: FloatArray
    """From S to the base frame, A^RL of eq, (n, 3, 3). 4 [-]."""
    found: BoolArray
    """False if no pose has these leg lengths, or none in the assembly of `home`, (n,)."""


@dataclass(frozen=True, eq=False)
class PlatformMotion:
    """Motion of S in the base frame; the angular parts are the same for every point."""

    linear_velocity: FloatArray
    angular_velocity: FloatArray
    """(n, 3) [m/s, rad/s]."""
    linear_acceleration: FloatArray
    angular_acceleration: FloatArray
    """p̈ of P, without gravity, and ω̇, (n, 3) [m/s², rad/s²]."""


class Mechanism:
    """A platform on six legs with a given geometry.

    A leg runs from b on the base to p + R a on the platform: s = p + R a - b, with length |s| and
    direction u. Its rate is u·(v + ω × r) with r = R a, so that the rows of the inverse Jacobian G
    are (u, r × u). Pushing forces f along the legs give the wrench Gᵀ f at P.

    Notes
    -----
    Merlet, Parallel Robots (reference 3 of Schulte and Gerland).
    """

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.radius = float(np.sqrt(np.mean(np.sum(geometry.platform**2, axis=1))))
        """Root mean square distance of the platform's joints from P [m]."""
        home = self.inverse_jacobian(geometry.home[None], np.eye(3)[None])
        self._assembly = np.linalg.slogdet(home)[0]

    @property
    def home(self) -> tuple[FloatArray, FloatArray]:
        """Position (3,) [m] and rotation (3, 3) from which any search can start."""
        return self.geometry.home, np.eye(3)

    def lengths(self, position: FloatArray, rotation: FloatArray) -> FloatArray:
        """Return the distances (n, 6) between the legs' joints in poses as `PlatformPose` [m]."""
        return self._legs(position, rotation)[2]

    def inverse_jacobian(self, position: FloatArray, rotation: FloatArray) -> FloatArray:
        """Return G (n, 6, 6), which maps (v, ω) of S in the base frame to leg rates."""
        arm, direction, _ = self._legs(position, rotation)
        return _jacobian(arm, direction)

    def pose(
        self, lengths: FloatArray, start: tuple[FloatArray, FloatArray] | None = None
    ) -> PlatformPose:
        """Find the poses for given leg lengths, by Newton's method on SE(3).

        Every sample of a chunk starts from the last pose found before the chunk, the first one
        from position (3,) and rotation (3, 3) of `start`, by default home. One that does not
        converge starts again from home. The lengths (n, 6) are between the legs' joints [m].
        """
        parts, near = [], start or self.home
        for first in range(0, max(len(lengths), 1), CHUNK):
            wanted = lengths[first : first + CHUNK]
            solved = self._newton(wanted, *near)
            failed = ~solved.found
            if failed.any():
                again = self._newton(wanted[failed], *self.home)
                solved.position[failed], solved.rotation[failed] = again.position, again.rotation
                solved.found[failed] = again.found
            good = np.flatnonzero(solved.found)
            if good.size:
                near = solved.position[good[-1]], solved.rotation[good[-1]]
            parts.append(solved)
        return joined(parts)

    def motion(
        self, pose: PlatformPose, rates: FloatArray, accelerations: FloatArray
    ) -> PlatformMotion:
        """Return twist and acceleration of S from rates and accelerations of the legs.

        l̈ = G (v̇, ω̇) + u·(ω × (ω × r)) + (|ṡ|² - l̇²) / l

        The pose must not be singular. Rates and accelerations of the leg lengths are (n, 6)
        [m/s, m/s²].
        """
        arm, direction, length = self._legs(pose.position, pose.rotation)
        jacobian = _jacobian(arm, direction)
        twist = _solve(jacobian, rates)
        omega = twist[:, None, 3:]
        swing = np.cross(omega, arm)
        tip = twist[:, None, :3] + swing
        bias = np.sum(direction * np.cross(omega, swing), axis=2)
        bias += (np.sum(tip**2, axis=2) - rates**2) / length
        change = _solve(jacobian, accelerations - bias)
        return PlatformMotion(twist[:, :3], twist[:, 3:], change[:, :3], change[:, 3:])

    def leg_motion(
        self, pose: PlatformPose, motion: PlatformMotion
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return lengths, rates and accelerations of the legs (n, 6): the inverse of `motion`."""
        arm, direction, length = self._legs(pose.position, pose.rotation)
        omega = motion.angular_velocity[:, None]
        swing = np.cross(omega, arm)
        tip = motion.linear_velocity[:, None] + swing
        tip_acceleration = (
            motion.linear_acceleration[:, None]
            + np.cross(motion.angular_acceleration[:, None], arm)
            + np.cross(omega, swing)
        )
        rates = np.sum(direction * tip, axis=2)
        across = (np.sum(tip**2, axis=2) - rates**2) / length
        return length, rates, np.sum(direction * tip_acceleration, axis=2) + across

    def wrench(self, pose: PlatformPose, forces: FloatArray) -> FloatArray:
        """Return the wrench that the legs exert on the platform at P, (n, 6) in S [N, N m].

        Forces (n, 6) along the legs are positive if a leg pushes [N].
        """
        return np.asarray(np.einsum('nji,nj->ni', self.to_legs(pose), forces))

    def leg_forces(self, pose: PlatformPose, wrenches: FloatArray) -> FloatArray:
        """Return the forces (n, 6, k) along the legs [N] that give wrenches: inverse of `wrench`.

        The wrenches (n, 6, k) are at P, in S [N, N m]; the pose must not be singular.
        """
        return np.asarray(np.linalg.solve(self.to_legs(pose).swapaxes(1, 2), wrenches))

    def to_legs(self, pose: PlatformPose) -> FloatArray:
        """Return G in S, (n, 6, 6): maps twists to leg rates; transposed, forces to wrenches."""
        jacobian = self.inverse_jacobian(pose.position, pose.rotation)
        rows = in_sensor_frame(pose.rotation, jacobian.reshape(len(jacobian), -1))
        return rows.reshape(jacobian.shape)

    def singularity_distance(self, pose: PlatformPose) -> FloatArray:
        """Return the distance of each pose from a singularity, (n,) [-].

        It is the smallest singular value of G with lengths in units of `radius`: the smallest norm
        of leg rates that a twist of norm one can have. At zero, some twist moves no leg and some
        wrench cannot be held by leg forces.
        """
        jacobian = self.inverse_jacobian(pose.position, pose.rotation)
        scaled = jacobian / np.repeat([1.0, self.radius], 3)
        return np.asarray(np.linalg.svd(scaled, compute_uv=False)[:, -1])

    def _legs(
        self, position: FloatArray, rotation: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return r (n, 6, 3), u (n, 6, 3) and the lengths (n, 6)."""
        arm = self.geometry.platform @ np.swapaxes(rotation, 1, 2)
        leg = position[:, None] + arm - self.geometry.base
        length = np.sqrt(np.sum(leg**2, axis=2))
        return arm, leg / length[..., None], length

    def _newton(
        self, lengths: FloatArray, position: FloatArray, rotation: FloatArray
    ) -> PlatformPose:
        """Solve for all samples at once, from a common start."""
        n = len(lengths)
        p, R = np.repeat(position[None], n, axis=0), np.repeat(rotation[None], n, axis=0)
        for iteration in range(MOST_ITERATIONS + 1):
            arm, direction, length = self._legs(p, R)
            jacobian = _jacobian(arm, direction)
            misfit = lengths - length
            close = np.abs(misfit).max(axis=1) <= TOLERANCE
            if close.all() or iteration == MOST_ITERATIONS:
                break
            step = _solve(jacobian, misfit)
            # Limit steps to the machine's size and turns to 1 rad; larger ones rarely help.
            size = np.hypot(
                np.linalg.norm(step[:, :3], axis=1) / self.radius,
                np.linalg.norm(step[:, 3:], axis=1),
            )
            step /= np.maximum(size, 1.0)[:, None]
            p = p + step[:, :3]
            R = rotation_exponential(step[:, 3:]) @ R
        # Singularities separate the assemblies; there the determinant changes its sign.
        with np.errstate(invalid='ignore'):
            found = close & (np.linalg.slogdet(jacobian)[0] == self._assembly)
        return PlatformPose(p, R, found)


def in_sensor_frame(rotation: FloatArray, vectors: FloatArray) -> FloatArray:
    """Express vectors (n, 3 k), given in the base frame, in S, three components each."""
    parts = vectors.reshape(len(vectors), -1, 3)
    return np.asarray(parts @ rotation).reshape(vectors.shape)


def rotation_exponential(angles: FloatArray) -> FloatArray:
    """Return the rotations (n, 3, 3) for rotation vectors (n, 3) [rad]."""
    return np.asarray(Rotation.from_rotvec(angles).as_matrix())


def _jacobian(arm: FloatArray, direction: FloatArray) -> FloatArray:
    return np.concatenate([direction, np.cross(arm, direction)], axis=2)


def _solve(jacobian: FloatArray, right: FloatArray) -> FloatArray:
    """Solve per sample; return the shortest solution if a matrix is exactly singular."""
    try:
        solution = np.linalg.solve(jacobian, right[..., None])
    except np.linalg.LinAlgError:
        solution = np.linalg.pinv(jacobian) @ right[..., None]
    return np.asarray(solution[..., 0], dtype=np.float64)
