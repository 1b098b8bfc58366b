"""Define the unknowns of payload, sensor and cell: order, priors, and rows of a block.

    y_k = (A_k + sum_j n_j D_jk) phi + o_k + H(u_k, x_k) h + b_k + K_k s_k + e_k

The unknowns that a time update changes at every block come first, the inertial parameters last;
see `numerics.triangle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from load_identification.estimation.belief.linearisation import LEVER
from load_identification.estimation.belief.noise_levels import by_group
from load_identification.estimation.drift import Bank
from load_identification.estimation.measurement import PARAMETERS, UNIT, Block
from load_identification.estimation.pose_errors import SLOW_ANGLE, PoseErrors, left
from load_identification.estimation.systematic_errors import CLASSES, SystematicErrors
from load_identification.numerics.triangle import walk
from load_identification.typing_aliases import FloatArray, IntArray

WIDE_BODY = np.array([1e3] * PARAMETERS)
WIDE_OFFSET = np.array([1e5] * 3 + [1e4] * 3)
"""Prior std too wide to bias any payload or offset [kg, kg m, kg m², N, N m]."""

SCALE_STEP = 1.2
"""A scale that has grown by this factor takes effect at once [-]; others by relaxation."""

POUR_EVERY = 1.0
"""Interval between two steps of the walk of the load [s]."""

FIELD = len(CLASSES)
"""Index of the field's scale, after those of the classes."""


@dataclass(frozen=True, eq=False)
class Model:
    """The unknowns, their priors and their time update."""

    systematic: SystematicErrors
    pose: PoseErrors
    bank: Bank
    """Random walks of the offset and sizes of the path errors."""
    relaxation: float
    """Time constant of systematic errors, in motion, and of the discount of drift scores [s]."""
    forgetting_time: float
    """Time constant of forgetting under excitation [s]; infinite: never."""
    steps: FloatArray
    """Quantisation steps of force and torque, (2,); 0: none [N, N m]."""
    slow: int = field(default=0, kw_only=True)
    """Number of joint torques that have a slow error, of an arm that weighs."""

    @cached_property
    def of_torques(self) -> slice:
        """Indices of the slow errors of joint torques, in units of their standard deviations."""
        return slice(0, self.slow)

    @cached_property
    def path(self) -> slice:
        """Indices of the relaxing path states."""
        return slice(self.slow, self.slow + len(self.pose.path_std))

    @cached_property
    def offset(self) -> slice:
        """Indices of the offset."""
        return slice(self.path.stop, self.path.stop + 6)

    @cached_property
    def errors(self) -> slice:
        """Indices of the systematic errors."""
        return slice(self.offset.stop, self.offset.stop + self.systematic.size)

    @cached_property
    def friction(self) -> IntArray:
        """Indices of the friction of the last joint; empty if that joint is unknown."""
        return np.asarray(self.errors.start + self.systematic.friction)

    @cached_property
    def field(self) -> slice:
        """Indices of the pose field."""
        return slice(self.errors.stop, self.errors.stop + len(self.pose.field_std))

    @property
    def tied(self) -> slice:
        """Indices of systematic errors and pose field."""
        return slice(self.errors.start, self.field.stop)

    @cached_property
    def tied_names(self) -> tuple[str, ...]:
        """Names of systematic errors and pose field."""
        field = (f'field.{k}' for k in range(len(self.pose.field_std)))
        return *self.systematic.names, *field

    @cached_property
    def body(self) -> slice:
        """Indices of the inertial parameters, which come last."""
        return slice(self.field.stop, self.field.stop + PARAMETERS)

    @cached_property
    def size(self) -> int:
        """Number of unknowns."""
        return int(self.body.stop)

    @property
    def no_blur(self) -> FloatArray:
        """Initial `blur`, of no data: zeros, (N + 10, N + 10)."""
        return np.zeros((self.systematic.size + PARAMETERS,) * 2)

    def places(self, part: slice) -> IntArray:
        """Return the indices of a part."""
        return np.arange(part.start, part.stop)

    def std(self, scales: FloatArray, path_part: float = 1.0) -> FloatArray:
        """Return the prior standard deviations, (size,), scaled by a factor per class."""
        return np.concatenate(
            [
                np.ones(self.slow),
                path_part * scales[FIELD] * self.pose.path_std,
                WIDE_OFFSET,
                scales[self.systematic.group] * self.systematic.std,
                scales[FIELD] * self.pose.field_std,
                WIDE_BODY,
            ]
        )

    def path_variance(
        self, scales: FloatArray, weight: FloatArray, load: FloatArray
    ) -> FloatArray:
        """Return the variances of the path states for each member of the bank, (k, 6).

        `scales` (classes + 1,), `weight` (k,) of the members, and phi, `load` (10,).
        """
        path = max(1.0, float(scales[FIELD])) * self.pose.path_std_under(load)
        return np.asarray((self.bank.parts(weight)[:, None] * path) ** 2)

    def moved(
        self, elapsed: float, angle: float, path: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the time update of all that stands first: factor kept, and variance added.

        That is the slow errors of joint torques, the path states and the offset.

        Parameters
        ----------
        elapsed, angle : float
            Time, and angle travelled [s, rad].
        path : (k, 6) array
            `path_variance`.

        Returns
        -------
        keep, variances : (c,) and (k, c) arrays, c = 12 behind a sensor
        """
        kept = self.pose.kept(angle)
        keep = np.ones(self.offset.stop)
        keep[self.path] = kept
        keep[self.of_torques] = slow = left(angle, SLOW_ANGLE)
        variances = np.zeros((len(path), len(keep)))
        variances[:, self.path] = path * (1.0 - kept**2)
        variances[:, self.of_torques] = 1.0 - slow**2
        variances[:, self.offset] = self.bank.walks**2 * elapsed
        return keep, variances

    def poured(self, triangles: Sequence[FloatArray], body: FloatArray) -> tuple[FloatArray, ...]:
        """Return the members' triangles after the walks of a load phi, (10,), in `POUR_EVERY`."""
        size = body[0] * LEVER ** np.repeat([0.0, 1.0, 2.0], [1, 3, 6])
        places, keep = self.places(self.body), np.ones(PARAMETERS)
        return tuple(
            walk(triangle, places, keep, (pouring * size) ** 2 * POUR_EVERY)
            if pouring
            else triangle
            for triangle, pouring in zip(triangles, self.bank.pouring, strict=True)
        )

    def tied_variance(self, prior: FloatArray, load: FloatArray) -> FloatArray:
        """Return the variances (N + 76,) of systematic errors, `prior`, and field under a load."""
        return np.append(prior, self.pose.variances(load))

    def under_load(
        self, triangles: tuple[FloatArray, ...], before: FloatArray, load: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Return triangles after the pose field of a load phi has become that of another, (10,).

        See `PoseErrors.variances`.
        """
        if not (self.pose.used and self.pose.angle):
            return triangles
        old, new = map(self.pose.variances, (before, load))
        both = self.pose.variances(before, load)
        places, variance = self.places(self.field), np.maximum(new - both**2 / old, 0.0)
        return tuple(walk(triangle, places, both / old, variance) for triangle in triangles)

    def relaxed(
        self, kept: float, elapsed: float, before: FloatArray, scales: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the time update of the systematic errors: factor kept, and variance added.

        Parameters
        ----------
        kept : float
            Factor kept by the errors that change in motion only [-].
        elapsed : float
            Time for those that change at rest too [s].
        before, scales : (classes + 1,) arrays
            Scales until now and from now on.

        Returns
        -------
        keep, variance : (N,) arrays
        """
        errors = self.systematic
        keep = np.where(errors.walks, np.exp(-elapsed / self.relaxation), kept)
        old, new = before[errors.group] ** 2, scales[errors.group] ** 2
        grown = np.where(new > SCALE_STEP**2 * old, new - old, 0.0)
        return keep, errors.std**2 * (new * (1.0 - keep**2) + grown)

    def updates(
        self, keep: FloatArray, variance: FloatArray
    ) -> tuple[tuple[IntArray, FloatArray, FloatArray], ...]:
        """Return the arguments of `relax` and of `walk` for a time update as of `relaxed`.

        The load alone moves along with what relaxes. The pose field does not: it has a prior of
        its own, beyond which it would be carried by a well-known error that it is tied to.
        """
        walks, field = self.systematic.walks, len(self.pose.field_std)
        places = self.places(self.tied)
        still = np.append(np.where(walks, 1.0, keep), np.ones(field))
        added = np.append(np.where(walks, 0.0, variance), np.zeros(field))
        alone = places[: len(keep)][walks], keep[walks], variance[walks]
        return (places, still, added), alone

    def of_pose(self, harmonics: FloatArray, position: FloatArray) -> FloatArray:
        """Return the rows (6, size + 1) of the pose-dependent errors, see `PoseErrors.columns`."""
        rows = np.zeros((6, self.size + 1))
        if self.pose.used:
            rows[:, self.path] = UNIT
            rows[:, self.field] = self.pose.columns(harmonics, position)
        return rows

    def rows(self, block: Block, body: FloatArray, errors: FloatArray | None = None) -> FloatArray:
        """Return a block's rows [B y], (6, size + 1), before weighting [N, N m].

        Parameters
        ----------
        block : Block
        body : (10,) array
            Linearisation point, phi.
        errors : (N,) array, optional
            That of the systematic errors; zeros. Only those of base and joints count.
        """
        rows = self.of_pose(block.harmonics, block.position)
        rows[:, self.of_torques] = block.by_slow
        rows[:, self.offset] = UNIT
        rows[:, self.errors] = self.systematic.columns(block, body)
        rows[:, self.body] = block.matrix
        rows[:, -1] = block.wrench
        if errors is not None and errors.any():
            turned = self.systematic.turned(block, errors)
            rows[:, self.body] += turned
            rows[:, -1] += turned @ body
        return rows

    def variance(self, block: Block, noise: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the noise variances of a block's live channels, (live,) [N², N² m²]."""
        live = block.live
        unseen = np.repeat(self.steps, 3)[live] ** 2 / 12.0
        return np.asarray(np.repeat(noise, 3)[live] ** 2 / weight[live] + unseen)

    def blur(self, block: Block, body: FloatArray, noise: FloatArray) -> FloatArray:
        """Return the information that acceleration noise seems to add, (N + 10, N + 10).

        It is on systematic errors and phi. If a gain and phi cannot be distinguished, the noise is
        in the columns of both, and does not distinguish them either.

        Parameters
        ----------
        block : Block
        body : (10,) array
            phi.
        noise : (2,) array
            Noise of a sample [N, N m].
        """
        live, rows = block.live, block.blur
        wrench = rows @ body
        std = np.sqrt(self.variance(block, noise, block.weight))
        both = np.concatenate([self.systematic.by_wrench(wrench), rows], axis=2)
        flat = (both[:, live] / std[:, None]).reshape(-1, both.shape[2])
        # Its effect on the wrench is part of the known noise, and at most all of it.
        made = np.zeros(6)
        made[live] = (wrench[:, live] ** 2).sum(axis=0) / std**2
        most = by_group(made) / np.maximum(by_group(live.astype(float)), 1.0)
        return np.asarray(flat.T @ flat) / max(float(most.max()), 1.0)

    def relaxed_blur(self, blur: FloatArray, kept: float, lost: bool = False) -> FloatArray:
        """Return a blur after the share `kept` of the information on systematic errors is kept.

        As in `relax`, the information on phi given the errors stays: in the blur of the errors,
        M_ee = M_ep M_pp^-1 M_pe + rest, only the rest fades. With `lost`, phi is forgotten.
        """
        errors, body = slice(self.systematic.size), slice(self.systematic.size, None)
        scale = np.sqrt(np.maximum(np.diag(blur)[body], 1e-300))
        unit = np.linalg.pinv(blur[body, body] / np.outer(scale, scale), 1e-9, hermitian=True)
        along = blur[errors, body] / scale
        with_body = along @ unit @ along.T
        out = np.zeros_like(blur) if lost else blur.copy()
        rest = kept * (blur[errors, errors] - with_body)
        out[errors, errors] = rest if lost else with_body + rest
        return out

    def weighted(self, rows: FloatArray, block: Block, noise: FloatArray) -> FloatArray:
        """Return the `rows` of a block divided by their noise std, (live, size + 1)."""
        if block.root is not None:
            white = (block.root @ rows)[block.live]
            return np.asarray(white / np.repeat(noise, 3)[block.live][:, None])
        root = np.sqrt(self.variance(block, noise, block.weight))
        return np.asarray(rows[block.live] / root[:, None])
