"""Average a wrist sensor's equations over blocks of 0.1 s, w = -A phi + offset + errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.estimation.derivatives import Beside, derivatives
from load_identification.estimation.pose_errors import harmonics
from load_identification.interface.batches import FilteredBatch
from load_identification.model.regressor import SKEW, wrench_regressor
from load_identification.typing_aliases import BoolArray, FloatArray

PARAMETERS = 10
FORCE, TORQUE = 0, 1
"""The two groups of channels."""

GROUPS = np.repeat([FORCE, TORQUE], 3)
"""Group of each channel of the wrench."""

EQUAL = np.repeat([1.0, 0.06], 3)
"""Expected noise of each channel in units of that of force, used where rows of force and torque
are whitened together [-], [m]."""

UNIT = np.eye(6)
BY_ACCELERATION = wrench_regressor(UNIT[:, :3], np.zeros((6, 3)), UNIT[:, 3:]).reshape(6, -1)
"""A for linear and angular accelerations of 1 m/s² and 1 rad/s², one by one, (6, 60)."""

UNSEEN = 1.0
"""Time between the ends of two blocks from which the arm may have been anywhere [s]."""

REMEMBERED = 60.0
"""Time constant with which the reference of a displacement follows [s]; it is integrated."""


@dataclass(frozen=True, eq=False)
class Block:
    """Averages over the samples of a block, and the sensor's motion since the previous block."""

    stamp: int
    """Stamp of the newest sample [ns]."""
    elapsed: float
    """Time since the previous block [s]."""
    angle: float
    """Angle by which the sensor has turned since [rad]."""
    twist: FloatArray
    """Mean velocity of S, linear before angular, in S, (6,) [m/s, rad/s]."""
    position: FloatArray
    """Displacement of S from about where it was in the last minute, in S, (3,) [m]."""
    rest: bool
    """Whether the sensor is at rest."""
    matrix: FloatArray
    """-A, (6, 10): the regressor of the wrench that the load exerts on the sensor."""
    slope: FloatArray
    """Mean time derivative of `matrix` over the samples, (6, 10) [1/s]. That of a line through
    them would be 13 % off in brisk moves, and what a delay of some ms shows with it."""
    bend: FloatArray
    """Mean of its second time derivative, (6, 10) [1/s²]."""
    wrench: FloatArray
    """Mean wrench, (6,) [N, N m]; 0 for a channel without a sample."""
    weight: FloatArray
    """Sum of the samples' weights, (6,); 0: the channel has no information."""
    count: FloatArray
    """Effective number of samples, (sum of weights)² / sum of their squares, (6,)."""
    within: FloatArray
    """For force and torque, (2, 11, 11): sums over the samples of products of the rows [-A w],
    about their means."""
    samples: FloatArray
    """Degrees of freedom of `within`, (2,)."""
    direction: FloatArray
    """Direction of gravity in S, a unit vector, (3,)."""
    harmonics: FloatArray
    """Mean of its harmonics, see `pose_errors.harmonics`, (12,) [-]."""
    gravity_by_tilt: FloatArray
    """Derivatives of gravity in S, (3, 2) or (3, 0) [m/s² per rad]."""
    by_joint: FloatArray
    """Derivatives of `matrix` by the positions of the joints, (J, 6, 10)."""
    sensitivity: FloatArray
    by_gain: FloatArray
    by_slow: FloatArray
    """As in `FilteredBatch`, (6, k), (g, 6, 6) and (6, J)."""
    blur: FloatArray
    """Effect of the noise of joint positions on `matrix`, (J, 6, 10): J independent parts, each of
    one standard deviation."""
    side: FloatArray | None = None
    """Side of its play on which each channel is, see `Play`, (6,) [-]; None: unknown."""
    swaying: float = 0.0
    """Force that rings, in units of the inertial force, see `Sway` [-]."""
    root: FloatArray | None = None
    """W so that W (wrench - expected) has the noise of one sample, (6, 6); replaces `weight`."""

    @property
    def live(self) -> BoolArray:
        """Whether each channel has information, (6,)."""
        return self.weight > 0.0

    def inertial(self, body: FloatArray) -> FloatArray:
        """Return the wrench of a load phi (10,) less that of its weight, (6,) [N, N m]."""
        gravity = STANDARD_GRAVITY * self.direction
        weight = np.concatenate([body[0] * gravity, SKEW @ body[1:4] @ gravity])
        return np.asarray(self.matrix @ body - weight)

    def scatter(self, body: FloatArray) -> FloatArray:
        """Return the residual sums of squares about the mean, given phi (10,), (2,) [N², N² m²].

        The load's wrench by motion within the block does not count as scatter.
        """
        left = np.append(-body, 1.0)
        return np.asarray(np.maximum(left @ self.within @ left, 0.0))


def without_friction(
    batch: FilteredBatch, friction: FloatArray
) -> tuple[FilteredBatch, FloatArray]:
    """Subtract friction (3,) of the last joint from a sensor's batch; return also its mean (6,).

    The batch is unchanged where friction is unknown, (0,).
    """
    if not np.any(friction):
        return batch, np.zeros(6)
    each = batch.sensitivity @ friction
    return batch.with_wrench(batch.wrench - each), mean_of(each)


def mean_of(values: FloatArray) -> FloatArray:
    """Return the mean over the samples (n, ...), as `np.mean` does in twice the time."""
    return np.asarray(np.add.reduce(values, axis=0) / len(values))


def finite_motion(batch: FilteredBatch) -> BoolArray:
    """Return which samples have finite accelerations and angular velocity, (n,)."""
    motion = batch.linear_acceleration, batch.angular_velocity, batch.angular_acceleration
    return np.asarray(np.all(np.isfinite(np.hstack(motion)), axis=1))


def make_block(
    batch: FilteredBatch,
    before: int,
    robust: FloatArray | None = None,
    taken: FloatArray | float = 0.0,
    beside: Sequence[Beside] = (),
) -> Block:
    """Average the samples of one block.

    Parameters
    ----------
    batch : FilteredBatch
        A batch of n samples with finite motion, n > 0.
    before : int
        Stamp of the newest sample of the previous block; of the first sample if there is none
        [ns].
    robust : (n, 6) array, optional
        Weights of the samples, see `prediction.robust_weights`.
    taken : (6,) array, optional
        Mean subtracted from the batch, see `without_friction`; it is added to the block.
    beside : sequence of Beside
        The samples just before and after, one each, as far as there are any: for the derivatives.
    """
    matrix = -batch.regressor
    used = np.isfinite(batch.wrench)
    wrench = np.where(used, batch.wrench, 0.0)
    weight: FloatArray = used.astype(float)
    if robust is not None:
        weight = weight * robust
    total = weight.sum(axis=0)
    safe = np.where(live := total > 0.0, total, 1.0)
    mean = np.einsum('nc,ncp->cp', weight, matrix) / safe[:, None]
    if not live.all():
        mean[~live] = matrix[:, ~live].mean(axis=0)
    value = (weight * wrench).sum(axis=0) / safe
    # Samples without whitening come from a sensor.
    root, errors = None, mean_of(np.concatenate([batch.sensitivity, batch.by_slow], axis=2))
    if batch.whitening.size:
        mean, value, errors, root = _whitened(batch, matrix, wrench, weight, mean, value)
    both = np.concatenate([matrix - mean, (wrench - value)[:, :, None]], axis=2)
    both *= weight[:, :, None] ** 0.5
    within = [rows.T @ rows for rows in (both[:, :3].reshape(-1, 11), both[:, 3:].reshape(-1, 11))]
    squares, count = np.sum(weight**2, axis=0), np.zeros(6)
    count[live] = total[live] ** 2 / squares[live]
    elapsed = 1e-9 * (int(batch.stamps[-1]) - before)
    still = bool(batch.rest.all())
    twist = mean_of(np.nan_to_num(np.hstack([batch.linear_velocity, batch.angular_velocity])))
    direction = _direction(batch)
    slope, bend = derivatives(batch.stamps, matrix, beside)
    return Block(
        stamp=int(batch.stamps[-1]),
        elapsed=elapsed,
        angle=0.0 if still else float(np.linalg.norm(twist[3:])) * elapsed,
        twist=twist,
        position=np.zeros(3),
        rest=still,
        matrix=mean,
        slope=slope,
        bend=bend,
        wrench=value + taken,
        weight=total,
        count=count,
        within=np.array(within),
        samples=np.maximum(used.sum(axis=0) - 1.0, 0.0).reshape(2, 3).sum(axis=1),
        direction=direction,
        harmonics=harmonics(direction),
        gravity_by_tilt=mean_of(batch.gravity_by_tilt),
        by_joint=_by_joint(batch),
        sensitivity=errors[:, : batch.sensitivity.shape[2]],
        by_slow=errors[:, batch.sensitivity.shape[2] :],
        by_gain=mean_of(batch.by_gain),
        blur=(mean_of(batch.acceleration_noise).T @ BY_ACCELERATION).reshape(-1, 6, 10),
        root=root,
    )


def _by_joint(batch: FilteredBatch) -> FloatArray:
    """Return the derivatives of -A by the joint positions at the mean motion, (J, 6, 10)."""
    change = mean_of(batch.motion_by_joint).T
    linear, angular, turning = change[:, :3], change[:, 3:6], change[:, 6:]
    velocity = mean_of(batch.angular_velocity)
    # A is linear in the accelerations, and quadratic in the angular velocity.
    there = wrench_regressor(linear, velocity + angular, turning)
    back = wrench_regressor(-linear, velocity - angular, -turning)
    return np.asarray(0.5 * (back - there))


def _direction(batch: FilteredBatch) -> FloatArray:
    """Return the direction of gravity; of the mean acceleration where gravity is unknown."""
    gravity = mean_of(batch.gravity)
    if not np.isfinite(gravity).all():
        gravity = -mean_of(batch.linear_acceleration)
    length = float(np.linalg.norm(gravity))
    return np.asarray(gravity / length) if length > 0.0 else np.array([0.0, 0.0, -1.0])


def angle_between(before: FloatArray | None, now: FloatArray) -> float:
    """Return the angle between two directions (3,) [rad]; 0 if there was none before."""
    return 0.0 if before is None else float(np.arccos(min(max(float(before @ now), -1.0), 1.0)))


def travelled(block: Block, before: Block | None) -> Block:
    """Return a block with its displacement, and the angle at least by which gravity has turned.

    After a time without samples nobody knows the path: it is taken for half a turn, after which
    path errors start anew, and for none that leads elsewhere. At rest no displacement is added
    that could be wrong, and none fades.
    """
    if before is None:
        return block
    if block.elapsed > UNSEEN:
        return replace(block, angle=max(block.angle, np.pi), position=before.position)
    shift, turn = 0.5 * block.elapsed * (before.twist + block.twist).reshape(2, 3)
    # x' = v - omega x x by the midpoint rule, with the reference fading.
    half = 0.5 * (SKEW @ turn)
    kept = 1.0 if before.rest and block.rest else np.exp(-block.elapsed / REMEMBERED)
    there = kept * (before.position - half @ before.position) + shift
    position = np.linalg.solve(np.eye(3) + half, there)
    angle = max(block.angle, angle_between(before.direction, block.direction))
    return replace(block, angle=angle, position=position)


def _whitened(
    batch: FilteredBatch,
    matrix: FloatArray,
    wrench: FloatArray,
    weight: FloatArray,
    mean: FloatArray,
    value: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return averages weighted by each sample's information, and the root of their information.

    The averages are of the regressor, the wrench, and its sensitivity to errors of an arm.

    With L_k = W_k^T W_k, in units of `EQUAL`: mean = (sum L_k)^-1 sum L_k x_k. Channels without
    a sample are left out.
    """
    used = weight > 0.0
    least = np.min(weight, axis=1, initial=1.0, where=used)
    roots = batch.whitening * np.sqrt(least)[:, None, None]
    roots = np.where(used[:, None, :], np.nan_to_num(roots), 0.0) / EQUAL[:, None]
    each = np.einsum('nij,nik->njk', roots, roots)
    whole = each.sum(axis=0)
    carried = np.concatenate([batch.sensitivity, batch.by_slow], axis=2)
    live, errors = np.flatnonzero(np.diag(whole) > 0.0), np.zeros(carried.shape[1:])
    if live.size:
        right = np.concatenate([matrix, wrench[..., None], carried], axis=2)
        sums = np.einsum('nij,njk->ik', each, right)[live]
        solved = np.linalg.solve(whole[np.ix_(live, live)], sums)
        mean, value = mean.copy(), value.copy()
        mean[live], value[live] = solved[:, :PARAMETERS], solved[:, PARAMETERS]
        errors[live] = solved[:, PARAMETERS + 1 :]
    return mean, value, errors, _root(whole)


def _root(whole: FloatArray) -> FloatArray:
    """Return W so that Wᵀ W is an information (6, 6), in units of `EQUAL`; zeros: none."""
    live, root = np.ix_(*[np.flatnonzero(np.diag(whole) > 0.0)] * 2), np.zeros((6, 6))
    root[live] = np.linalg.cholesky(whole[live]).T
    return EQUAL[:, None] * root


def merged(first: Block, second: Block) -> Block:
    """Merge two consecutive blocks into one, where they need not be distinguished any more."""
    weight = first.weight + second.weight
    a = np.divide(first.weight, weight, out=np.full(6, 0.5), where=weight > 0.0)[:, None]
    b = 1.0 - a
    # What no single channel determines: by the samples of all of them.
    whole = float(weight.sum())
    p = float(first.weight.sum()) / whole if whole > 0.0 else 0.5
    q = 1.0 - p
    direction = p * first.direction + q * second.direction
    length = float(np.linalg.norm(direction))
    root = None
    if first.root is not None and second.root is not None:
        one, other = first.root / EQUAL[:, None], second.root / EQUAL[:, None]
        root = _root(one.T @ one + other.T @ other)
    return Block(
        stamp=second.stamp,
        elapsed=first.elapsed + second.elapsed,
        angle=first.angle + second.angle,
        twist=p * first.twist + q * second.twist,
        position=p * first.position + q * second.position,
        rest=first.rest and second.rest,
        matrix=a * first.matrix + b * second.matrix,
        slope=a * first.slope + b * second.slope,
        bend=a * first.bend + b * second.bend,
        wrench=a[:, 0] * first.wrench + b[:, 0] * second.wrench,
        weight=weight,
        count=first.count + second.count,
        within=first.within + second.within,
        samples=first.samples + second.samples,
        direction=direction / length if length > 0.0 else second.direction,
        harmonics=p * first.harmonics + q * second.harmonics,
        gravity_by_tilt=p * first.gravity_by_tilt + q * second.gravity_by_tilt,
        by_joint=a * first.by_joint + b * second.by_joint,
        sensitivity=a * first.sensitivity + b * second.sensitivity,
        by_gain=p * first.by_gain + q * second.by_gain,
        by_slow=a * first.by_slow + b * second.by_slow,
        blur=np.sqrt(a**2 + b**2) * (first.blur + second.blur) / 2.0,
        root=root,
    )
