"""Whether gravity points where it is said to: poses at rest explained with its direction free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc

from load_identification.typing_aliases import FloatArray

CHANCE = 1e-4
"""Of so much less residual, were gravity where it is said to be, below which it is not [-]."""

LEAST = float(np.deg2rad(1.0))
"""An angle below this is an error of an ordinary cell [rad]."""

MOST_LEFT = 0.7
"""Of the residual: a cause that leaves more is not the one [-]."""

STEPS = 20
"""Of the fit of a turned sensor."""


@dataclass(frozen=True, eq=False)
class GravityDirection:
    """Gravity as the forces of a load in several poses show it.

    Attributes
    ----------
    gravity : (3,) array
        In the base, as strong as was said [m/s²].
    angle : float
        From where it was said to point [rad].
    residual, remaining : float
        Rms of force unexplained with gravity as said, and with this [N].
    """

    gravity: FloatArray
    angle: float
    residual: float
    remaining: float

    @property
    def words(self) -> str:
        """What is wrong and what to do."""
        return (
            f'gravity {np.rad2deg(self.angle):.1f}° off: residual {self.residual:.2g} -> '
            f'{self.remaining:.2g} N: set gravity to '
            f'[{", ".join(f"{value:.3f}" for value in self.gravity)}]'
        )


def other_gravity(
    rotation: FloatArray, force: FloatArray, gravity: FloatArray
) -> GravityDirection | None:
    """Return where gravity points, if that explains what is read and gravity as said does not.

    The load's weight in the base, whose direction is gravity's, and the offset are linear in what
    is read: f = R^T w + o. A sensor that is turned on its mount, f = (1 + [t]x) R^T g m + o, must
    not explain more.

    Parameters
    ----------
    rotation : (n, 3, 3) array
        From the sensor to the base.
    force : (n, 3) array
        Of the load on the sensor, offset included [N].
    gravity : (3,) array
        As it was said to be, in the base [m/s²].
    """
    free = 3 * len(force) - 6
    if free < 3:
        return None
    down = np.swapaxes(rotation, 1, 2)
    offset = np.tile(np.eye(3), (len(force), 1))
    pulled = (down @ gravity).reshape(-1, 1)
    said, _ = _fit(np.hstack([pulled, offset]), force)
    least, found = _fit(np.hstack([down.reshape(-1, 3), offset]), force)
    weight = found[:3]
    if least <= 0.0 or not weight.any():
        return None
    turned = weight * (np.linalg.norm(gravity) / np.linalg.norm(weight))
    cosine = float(turned @ gravity / (gravity @ gravity))
    angle = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
    chance = float(fdtrc(2, free, (said - least) / 2.0 / (least / free)))
    if angle < LEAST or chance > CHANCE or least > MOST_LEFT**2 * said:
        return None
    if _turned_sensor(down @ gravity, force) < least:
        return None
    size = force.size
    return GravityDirection(turned, angle, np.sqrt(said / size), np.sqrt(least / size))


def _fit(matrix: FloatArray, force: FloatArray) -> tuple[float, FloatArray]:
    """Return the sum of squares that a linear model leaves, and its solution."""
    found = np.linalg.lstsq(matrix, force.ravel(), rcond=None)[0]
    return float(np.sum((matrix @ found - force.ravel()) ** 2)), np.asarray(found)


def _turned_sensor(gravity: FloatArray, force: FloatArray) -> float:
    """Return the sum of squares that a sensor turned on its mount leaves; gravity (n, 3) in S."""
    offset = np.tile(np.eye(3), (len(force), 1))
    turn, left = np.eye(3), np.inf
    for _ in range(STEPS):
        now = gravity @ turn.T
        columns = np.cross(np.eye(3), now[:, None, :]).swapaxes(1, 2).reshape(-1, 3)
        left, found = _fit(np.hstack([now.reshape(-1, 1), columns, offset]), force)
        if not found[0]:
            break
        turn = _rotation(found[1:4] / found[0]) @ turn
    return left


def _rotation(vector: FloatArray) -> FloatArray:
    """Return the matrix of a small rotation vector (3,), made orthogonal [rad]."""
    x, y, z = vector
    u, _, v = np.linalg.svd(np.eye(3) + np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]))
    return np.asarray(u @ v)
