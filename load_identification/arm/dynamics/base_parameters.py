"""Which parameters measurements can tell: alone, only in combination, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.arm.dynamics.rows import Model
from load_identification.typing_aliases import FloatArray, IntArray

TorqueRegressor = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""From joint motion, (n, J) each, to the columns of what is measured (n, k, p)."""

IDENTIFIABLE = 'identifiable'
IN_COMBINATION = 'in combination'
NOT_IDENTIFIABLE = 'not identifiable'

STRUCTURE_TOLERANCE = 1e-8
"""What is left of a column, as a share of it, that others explain: random motion leaves 1e-2 of
an independent one and 1e-14, rounding, of the others."""

COEFFICIENT_TOLERANCE = 1e-7
"""Smallest part of a column, as a share of it, that counts in a combination."""

SAMPLES_PER_PARAMETER = 2
"""Of random motion; each has as many rows as there are joints."""

_WITHIN_LINK = (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
"""Order of preference among a link's parameters: what is kept comes first. The mass is given to
the first moments and inertias it acts through, and Izz is kept before Iyy and Ixx."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The combinations of parameters that measurements can tell: ``beta = matrix phi``.

    Attributes
    ----------
    names : tuple of str
        Of the P parameters phi.
    independent : (b,) int array
        Places of the parameters whose columns are kept. Column i of a regressor times beta_i is
        what the whole regressor times phi is.
    matrix : (b, P) array
        The identity in the columns `independent`.
    classes : tuple of str
        For each parameter `identifiable`, `in combination` or `not identifiable`.
    """

    names: tuple[str, ...]
    independent: IntArray
    matrix: FloatArray
    classes: tuple[str, ...]

    @property
    def combinations(self) -> tuple[str, ...]:
        """Each of the b combinations in words, such as `link_3.Izz - link_3.Ixx`."""
        return tuple(_written(row, self.names, i) for row, i in self._rows())

    def to_base(self, parameters: FloatArray) -> FloatArray:
        """Return the combinations beta (b,) of parameters (P,)."""
        return self.matrix @ parameters

    def _rows(self) -> list[tuple[FloatArray, int]]:
        return [(row, int(i)) for row, i in zip(self.matrix, self.independent, strict=True)]


def find_base_parameters(
    rows: FloatArray,
    names: Sequence[str],
    preference: Sequence[int] | IntArray | None = None,
    tolerance: float = STRUCTURE_TOLERANCE,
) -> BaseParameters:
    """Find the combinations of parameters that a regressor can tell.

    The number of them is the rank by QR with pivoting of the columns, each scaled to length one.
    Which columns are kept follows the preference: one is, unless those kept before explain it.

    Parameters
    ----------
    rows : (r, P) array
        Regressor, r at least P for all that is identifiable to be found. Of random motion it shows
        the structure of the arm; of recorded motion, what that excites.
    names : sequence of P str
    preference : sequence of int, optional
        All columns, the most wanted first. By default as they stand.
    tolerance : float
        Columns of which a smaller share is left are explained by others [-].

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

    shares = np.zeros((rank, size))
    shares[:] = np.linalg.lstsq(scaled[:, kept], scaled, rcond=None)[0]
    shares[np.abs(shares) < COEFFICIENT_TOLERANCE] = 0.0
    # Back from columns of length one; a column that is not seen has no share in anything.
    matrix = shares * np.where(seen, length, 0.0) / length[kept, None]
    matrix[:, kept] = np.eye(rank)
    return BaseParameters(tuple(names), kept, matrix, _classes(matrix, kept))


def arm_base_parameters(model: Model, seed: int = 0) -> BaseParameters:
    """Find the combinations of parameters that measurements of any motion can tell.

    Kept are the parameters nearest the root, so that those of a link go to its parent's: the
    usual regrouping, and that of Khosla and Kanade 1987.

    Parameters
    ----------
    model : Model
    seed : int
        Of the random motion.
    """
    motion = random_motion(len(model.arm.joints), SAMPLES_PER_PARAMETER * len(model.names), seed)
    # Slow motion within the transition of the friction tells it from an offset in theory alone.
    rows = model.with_transition(0.0).regressor(*motion).reshape(-1, len(model.names))
    return find_base_parameters(rows, model.names, preference(model))


def base_regressor(model: Model, base: BaseParameters) -> TorqueRegressor:
    """Return the columns of what is measured that belong to the base parameters."""

    def columns(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return np.asarray(model.regressor(q, qd, qdd)[:, :, base.independent])

    return columns


def preference(model: Model) -> IntArray:
    """Return the order in which parameters are kept: drives or offsets, then links from the root.

    What a link does to a wrench in every pose alike is the offset's.
    """
    joints = len(model.arm.joints)
    links = [10 * link + place for link in range(joints) for place in _WITHIN_LINK]
    # What a link's inertia explains of a rotor's is the link's, so rotors come after the links.
    drives = np.arange(model.links.stop, len(model.names))
    rotors = [i for i in drives if model.names[i].endswith('.rotor_inertia')]
    others = [i for i in drives if i not in rotors]
    return np.array([*others, *links, *rotors], dtype=np.int64)


def random_motion(
    joints: int, samples: int, seed: int = 0, rate: float = 3.0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return positions all around, velocities and accelerations (samples, joints), at random.

    Those have a standard deviation of `rate` [rad/s, m/s, and per s].
    """
    rng = np.random.default_rng(seed)
    q = rng.uniform(-np.pi, np.pi, (samples, joints))
    qd, qdd = rng.normal(0.0, rate, (2, samples, joints))
    return q, qd, qdd


def _select(scaled: FloatArray, order: IntArray, tolerance: float, rank: int) -> IntArray:
    """Return the first columns in the order that no earlier ones explain."""
    basis = np.empty((len(scaled), 0))
    kept: list[int] = []
    for column in order:
        left = scaled[:, column]
        for _ in range(2):  # twice, for once leaves rounding along the basis
            left = left - basis @ (basis.T @ left)
        length = float(np.linalg.norm(left))
        if length > tolerance:
            basis = np.column_stack([basis, left / length])
            kept.append(int(column))
    if len(kept) == rank:
        return np.array(kept, dtype=np.int64)
    # No clear gap, as in poorly excited data: then the columns that pivoting finds.
    return np.array(scipy.linalg.qr(scaled, mode='r', pivoting=True)[1][:rank], dtype=np.int64)


def _classes(matrix: FloatArray, kept: IntArray) -> tuple[str, ...]:
    """Class each parameter by the combinations it is part of."""
    present = matrix != 0.0
    alone = present.sum(axis=1) == 1
    out = []
    for column in range(matrix.shape[1]):
        rows = np.flatnonzero(present[:, column])
        if not len(rows):
            out.append(NOT_IDENTIFIABLE)
        elif column in kept and len(rows) == 1 and alone[rows[0]]:
            out.append(IDENTIFIABLE)
        else:
            out.append(IN_COMBINATION)
    return tuple(out)


def _written(row: FloatArray, names: Sequence[str], kept: int) -> str:
    """Write a combination as a sum, beginning with the parameter kept."""
    others = [int(i) for i in np.flatnonzero(row) if i != kept]
    text = names[kept]
    for i in others:
        size = f'{abs(row[i]):.6g}'
        factor = '' if size == '1' else f'{size} '
        text += f' {"-" if row[i] < 0.0 else "+"} {factor}{names[i]}'
    return text
