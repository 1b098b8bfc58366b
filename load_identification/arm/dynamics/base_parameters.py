"""Classify parameters: identifiable alone, only in combination, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.arm.dynamics.rows import Model
from load_identification.typing_aliases import FloatArray, IntArray

TorqueRegressor = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""A function from joint motion, (n, J) each, to the measurement's regressor (n, k, p)."""

IDENTIFIABLE = 'identifiable'
IN_COMBINATION = 'in combination'
NOT_IDENTIFIABLE = 'not identifiable'

STRUCTURE_TOLERANCE = 1e-8
"""Share of a column left unexplained by others, up to which it is dependent [-]. Random motion
leaves 1e-2 of an independent column and 1e-14, rounding, of a dependent one."""

COEFFICIENT_TOLERANCE = 1e-7
"""Smallest coefficient, as a share of the column, that counts in a combination [-]."""

SAMPLES_PER_PARAMETER = 2
"""Samples of random motion per parameter; each sample has as many rows as there are joints."""

_WITHIN_LINK = (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
"""Order of preference among a link's parameters, the most preferred first. The mass is regrouped
into the first moments and inertias it acts through; Izz is kept before Iyy and Ixx."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The identifiable combinations of parameters, ``beta = matrix phi``."""

    names: tuple[str, ...]
    """Names of the P parameters phi."""
    independent: IntArray
    """Indices of the parameters whose columns are kept, (b,). These columns of a regressor times
    beta equal the whole regressor times phi."""
    matrix: FloatArray
    """The columns `independent` are the identity, (b, P)."""
    classes: tuple[str, ...]
    """For each parameter `identifiable`, `in combination` or `not identifiable`."""

    @property
    def combinations(self) -> tuple[str, ...]:
        """Each of the b combinations as text, such as `link_3.Izz - link_3.Ixx`."""
        both = zip(self.matrix, self.independent.tolist(), strict=True)
        return tuple(_written(row, self.names, i) for row, i in both)

    def to_base(self, parameters: FloatArray) -> FloatArray:
        """Return the combinations beta (b,) of parameters (P,)."""
        return self.matrix @ parameters


def find_base_parameters(
    rows: FloatArray,
    names: Sequence[str],
    preference: Sequence[int] | IntArray | None = None,
    tolerance: float = STRUCTURE_TOLERANCE,
) -> BaseParameters:
    """Find the combinations of parameters that are identifiable from a regressor.

    Their number is the rank by pivoted QR of the columns, each scaled to unit length. Columns are
    selected in the order of preference: one is kept unless the columns kept before explain it.

    Parameters
    ----------
    rows : (r, P) array
        Regressor; r must be at least P to find all identifiable parameters. Random motion shows
        the structure of the arm; recorded motion shows what it excites.
    preference : sequence of int, optional
        All columns, the most preferred first. Default: in their order.
    tolerance : float
        Columns of which a smaller share is left unexplained are dependent on others [-].

    Gautier 1991, Numerical calculation of the base inertial parameters; Khosla and Kanade 1987,
    section 3.3.
    """
    size = rows.shape[1]
    order = np.arange(size) if preference is None else np.asarray(preference, dtype=np.int64)
    length = np.linalg.norm(rows, axis=0)
    seen = length > tolerance * length.max(initial=0.0)
    scaled = np.where(seen, rows / np.where(seen, length, 1.0), 0.0)
    if len(scaled) > size:
        scaled = scipy.linalg.qr(scaled, mode='r')[0][:size]
    diagonal = np.abs(np.diag(scipy.linalg.qr(scaled, mode='r', pivoting=True)[0]))
    rank = int(np.sum(diagonal > tolerance))
    kept = _select(scaled, order, tolerance, rank)

    shares = np.linalg.lstsq(scaled[:, kept], scaled, rcond=None)[0]
    shares[np.abs(shares) < COEFFICIENT_TOLERANCE] = 0.0
    # Undo the scaling to unit length; a column of zeros is part of no combination.
    matrix = shares * np.where(seen, length, 0.0) / length[kept, None]
    matrix[:, kept] = np.eye(rank)
    return BaseParameters(tuple(names), kept, matrix, _classes(matrix))


def arm_base_parameters(model: Model, seed: int = 0) -> BaseParameters:
    """Find the combinations of parameters that are identifiable from any (random) motion.

    The parameters nearest the root are kept, so a link's parameters are regrouped into its
    parent's. This is the usual regrouping, and that of Khosla and Kanade 1987.
    """
    motion = random_motion(len(model.arm.joints), SAMPLES_PER_PARAMETER * len(model.names), seed)
    # Slow motion within the friction's transition separates it from an offset in theory only.
    rows = model.in_any_motion().regressor(*motion).reshape(-1, len(model.names))
    return find_base_parameters(rows, model.names, preference(model))


def base_regressor(model: Model, base: BaseParameters) -> TorqueRegressor:
    """Return the measurement's regressor restricted to the base parameters."""

    def columns(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return np.asarray(model.regressor(q, qd, qdd)[:, :, base.independent])

    return columns


def preference(model: Model) -> IntArray:
    """Return the order of preference: drives or offsets, then links from the root, then rotors.

    A link's contribution to a wrench that is equal in every pose is assigned to the offset.
    """
    joints = len(model.arm.joints)
    links = [10 * link + place for link in range(joints) for place in _WITHIN_LINK]
    # The part of a rotor's inertia that a link's explains is assigned to the link: links first.
    drives = np.arange(model.links.stop, len(model.names))
    rotors = [i for i in drives if model.names[i].endswith('.rotor_inertia')]
    others = [i for i in drives if i not in rotors]
    return np.array([*others, *links, *rotors], dtype=np.int64)


def random_motion(
    joints: int, samples: int, seed: int = 0, rate: float = 3.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return random positions in [-pi, pi], velocities and accelerations (samples, joints).

    Velocities and accelerations have a standard deviation of `rate` [rad/s, m/s, and per s].
    """
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, (samples, joints))
    qd, qdd = rng.normal(0.0, rate, (2, samples, joints))
    return q, qd, qdd


def _select(scaled: FloatArray, order: IntArray, tolerance: float, rank: int) -> IntArray:
    """Return the columns, in order, that no earlier columns explain."""
    basis = np.empty((len(scaled), 0))
    kept: list[int] = []
    for column in order:
        left = scaled[:, column]
        for _ in range(2):  # twice, because one pass leaves rounding along the basis
            left = left - basis @ (basis.T @ left)
        length = float(np.linalg.norm(left))
        if length > tolerance:
            basis = np.column_stack([basis, left / length])
            kept.append(int(column))
    if len(kept) == rank:
        return np.array(kept, dtype=np.int64)
    # Without a clear gap, as in poorly excited data, use the columns that pivoting finds.
    return np.array(scipy.linalg.qr(scaled, mode='r', pivoting=True)[1][:rank], dtype=np.int64)


def _classes(matrix: FloatArray) -> tuple[str, ...]:
    """Classify each parameter by the combinations that contain it."""
    present = matrix != 0.0
    # A combination of one parameter is that which is kept of it.
    alone = present[present.sum(axis=1) == 1].any(axis=0) & (present.sum(axis=0) == 1)
    other = np.where(present.any(axis=0), IN_COMBINATION, NOT_IDENTIFIABLE)
    return tuple(np.where(alone, IDENTIFIABLE, other).tolist())


def _written(row: FloatArray, names: Sequence[str], kept: int) -> str:
    """Format a combination as a sum that begins with the parameter kept."""
    text = names[kept]
    for i in np.flatnonzero(row).tolist():
        if i != kept:
            size = f'{abs(row[i]):.6g}'
            factor = '' if size == '1' else f'{size} '
            text += f' {"-" if row[i] < 0.0 else "+"} {factor}{names[i]}'
    return text
