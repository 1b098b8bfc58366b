"""Test hypotheses of the cause of a misfit on the same data, each by its residual."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from itertools import combinations, permutations, product
from typing import TypeAlias

import numpy as np

from load_identification.estimation.drift import drifts
from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.evidence import Evidence
from load_identification.estimation.misfit.fits import (
    WIDE,
    Problem,
    best_direction,
    best_rotation,
    least_squares,
    problem,
    without_component,
)
from load_identification.interface.batches import CHANNELS
from load_identification.model.regressor import wrench_regressor
from load_identification.model.robot import Robot
from load_identification.typing_aliases import FloatArray, IntArray

SMALL = float(np.deg2rad(4.0))
"""Largest turn that is learned as a cell's own error, with valid intervals [rad]."""

AS_WELL = 0.05
"""Excess of mean square residual up to which a hypothesis explains as much [-]."""


LEAST_LEFT = 0.05
"""Least residual in whose units a better fit counts [-]: that of a sound cell."""


class Kind(Enum):
    """Hypotheses of the cause; the value is its name in messages."""

    GRAVITY = 'gravity another'
    WEIGHTLESS = 'weight taken off by the driver'
    WORLD = 'wrench in the base frame'
    ROTATED = 'sensor turned against its frame'
    CHANNELS = 'axes of the wrench reversed or swapped'
    DEAD = 'a channel that does not follow the load'
    UNITS = 'units of torque and force'
    PLACE = 'sensor elsewhere than described'
    MOTIONLESS = 'linear acceleration missing'
    JOINTS = 'joints reversed or exchanged'
    CHANGED = 'changed'
    DRIFT = 'drift'
    COMPLIANT = 'compliance'


@dataclass(frozen=True, eq=False)
class Trial:
    """The fit under one hypothesis of the cause."""

    kind: Kind
    left: float
    """Mean square residual, in units of that from errors of an ordinary cell [-]."""
    information: FloatArray
    """Half the second derivative of the sum of squares by the free parameters of the cause,
    (k, k); (0, 0) if there are none."""
    words: Callable[[float], str]
    """Returns the message, for a standard deviation of the free parameters."""
    rows: tuple[FloatArray, FloatArray]
    """Matrix and wrench, whitened, corrected for the cause, (N, 6, 10) and (N, 6)."""
    small: bool = False
    """Whether the cause is a turn of at most `SMALL`."""
    size: float = 0.0
    """Value of the one free parameter, 0 in a sound set-up: the logarithm of a factor [-], or a
    mass [kg]."""
    lever: FloatArray = field(default_factory=partial(np.zeros, 3))
    """Position of the sensor in the frame that is described, (3,) [m]."""

    def std(self, crowd: float) -> float:
        """Return the largest std of the free parameters; `crowd` blocks count as one."""
        if not self.information.size:
            return 0.0
        least = max(float(np.linalg.eigvalsh(self.information)[0]), 1e-9)
        return float(np.sqrt(crowd * max(self.left, 1.0) / least))

    def sureness(self, crowd: float, better: float) -> float:
        """Return by how many standard deviations the one free parameter is not 0 [-].

        `better`: the chi-square by which the data fit better with it, in units of an ordinary cell
        [-]. A value that is hardly known may be many of its std from 0, and 0 fit as well.
        """
        by_fit = max(better, 0.0) / max(self.left, LEAST_LEFT)
        by_size = abs(self.size) / max(self.std(crowd), 1e-9)
        return min(by_size, float(np.sqrt(by_fit)))


NOTHING = np.empty((0, 0))

FOR_CHOICE = 60
"""Blocks for choosing the error in the joints that is then evaluated on all blocks."""


def trials(task: Problem, evidence: Evidence, gravity: FloatArray) -> list[Trial]:
    """Return the fit of the hypotheses that are never certain with a small misfit.

    `gravity` (3,) is that configured, in the root.
    """
    found = [*_turned(task, evidence), _channels(task, evidence), _dead(task)]
    found += [_changed(task), _drifting(task, evidence.time)]
    if evidence.carried.shape[3]:
        found += [_about_gravity(task, gravity), *_in_the_world(task, evidence, gravity)]
    return found


def _about_gravity(task: Problem, gravity: FloatArray) -> Trial:
    """Test gravity along any direction."""
    upright = gravity / np.linalg.norm(gravity)
    direction, information = best_direction(task, upright)
    added = np.array([upright - direction, upright + direction])
    left, opposite = (task.with_acceleration(added)[0] / task.count).tolist()
    # At rest the opposite direction with a wrench of the other sign explains as much.
    say = partial(words.gravity, gravity, direction, opposite < 1.1 * left + AS_WELL)
    rows = task.matrix + task.by_acceleration @ added[0], task.wrench
    small = bool(upright @ direction > np.cos(SMALL))
    return Trial(Kind.GRAVITY, left, information, say, rows, small)


def _in_the_world(task: Problem, evidence: Evidence, gravity: FloatArray) -> list[Trial]:
    """Test a wrench expressed in a frame that is fixed in the root.

    At rest a frame turned by half a turn about gravity, with the centre of mass on the other side,
    explains as much.
    """
    parts = task.parts(evidence.carried.reshape(-1, 6, 9))
    upright = gravity / np.linalg.norm(gravity)
    half = 2.0 * np.outer(upright, upright) - np.eye(3)
    return _rotation(task, parts, Kind.WORLD, lambda turn, std: words.world(turn.T, std), half)


def _turned(task: Problem, evidence: Evidence) -> list[Trial]:
    """Test a sensor that is rotated relative to its frame."""
    wrench = evidence.wrench.reshape(-1, 2, 3)
    parts = np.einsum('ij,ngl->ngijl', np.eye(3), wrench).reshape(-1, 6, 9)
    return _rotation(task, task.parts(parts), Kind.ROTATED, words.rotated)


def _rotation(
    task: Problem,
    parts: FloatArray,
    kind: Kind,
    say: Callable[[FloatArray, float], str],
    alike: FloatArray | None = None,
) -> list[Trial]:
    """Test rotations, their entries weighting nine parts (N, 6, 9); reject a negative mass.

    The best one times `alike` (3, 3) is taken if it explains as much and turns less.
    """
    form, payload = task.form(parts)
    turn, information = best_rotation(form)
    left = _mean_square(form, turn, task)
    if alike is not None and np.trace(other := turn @ alike) > np.trace(turn):
        as_other = _mean_square(form, other, task)
        if as_other < 1.1 * left + AS_WELL:
            turn, left = other, as_other
    entries = turn.ravel()
    if payload[0] @ entries < 0.0:
        return []
    rows = task.matrix, parts @ entries
    small = kind is Kind.ROTATED and bool(np.trace(turn) > 1.0 + 2.0 * np.cos(SMALL))
    return [Trial(kind, left, information, partial(say, turn), rows, small)]


def _mean_square(form: FloatArray, turn: FloatArray, task: Problem) -> float:
    return float(turn.ravel() @ form @ turn.ravel()) / task.count


def _wrong_channels() -> FloatArray:
    """List the errors of channels in a driver: of force, of torque, or of both alike.

    They map measured to true force, and torque, (k, 2, 3, 3), in order of increasing change. A
    rotation of both is left out, as it has its own trial. So is a reversal of all channels of
    force or torque alone, which is equivalent to another load.
    """
    # Every way to swap and reverse three axes, (48, 3, 3).
    kinds = product(permutations(np.eye(3)), product((1.0, -1.0), repeat=3))
    axes = np.array([np.array(signs)[:, None] * np.array(rows) for rows, signs in kinds])
    same = np.broadcast_to(np.eye(3), axes.shape)
    mirrored = axes[np.linalg.det(axes) < 0.0]
    every = [(axes, same), (-axes, -same), (same, axes), (-same, -axes), (mirrored, mirrored)]
    found = np.concatenate([np.stack(pair, axis=1) for pair in every])
    trace = np.einsum('ngii->ng', found)
    found = found[np.any(np.abs(trace) < 3.0, axis=1)]
    kept = np.einsum('ngii->n', found)
    return found[np.argsort(-kept, kind='stable')]


WRONG_CHANNELS = _wrong_channels()


def _channels(task: Problem, evidence: Evidence) -> Trial:
    """Test channels that are reversed or swapped."""
    wrench = evidence.wrench
    parts = np.zeros((len(wrench), 6, 2, 3, 3))
    for axis in range(3):
        parts[:, axis, 0, axis] = wrench[:, :3]
        parts[:, 3 + axis, 1, axis] = wrench[:, 3:]
    parts = task.parts(parts.reshape(-1, 6, 18))
    form, payload = task.form(parts)
    entries = WRONG_CHANNELS.reshape(-1, 18)
    left = np.einsum('ni,ij,nj->n', entries, form, entries) / task.count
    left = np.where(entries @ payload[0] > 0.0, left, np.inf)
    best = int(np.argmax(left < 1.1 * left.min() + AS_WELL))
    say = words.channels(*WRONG_CHANNELS[best])
    rows = task.matrix, parts @ entries[best]
    return Trial(Kind.CHANNELS, float(left[best]), NOTHING, lambda _: say, rows)


DEAD = [*combinations(range(6), 1), *combinations(range(6), 2)]
ALIVE = np.array([~np.isin(np.arange(6), dead) for dead in DEAD])
"""Channels that are tested for being dead together, and which the others are, (k, 6)."""


def _dead(task: Problem) -> Trial:
    """Test one and two of the six channels for showing noise alone, without the load."""
    right = ALIVE @ np.einsum('nci,nc->ci', task.matrix, task.wrench)
    of_each = task.matrix.swapaxes(0, 1)
    of_channels = of_each.swapaxes(1, 2) @ of_each
    gram = np.tensordot(ALIVE, of_channels, 1) + WIDE
    payload = np.linalg.solve(gram, right[..., None])[..., 0]
    left = (float(np.sum(task.wrench**2)) - np.sum(payload * right, axis=1)) / task.count
    best = int(np.argmax(left < 1.1 * left.min() + AS_WELL))
    rows = task.matrix * ALIVE[best, :, None], task.wrench
    say = words.dead([CHANNELS[channel] for channel in DEAD[best]])
    return Trial(Kind.DEAD, float(left[best]), NOTHING, lambda _: say, rows)


def units(task: Problem) -> Trial:
    """Test torques that are inconsistent with the forces by a constant factor."""
    rows, wrench = task.matrix, task.wrench
    parts = [
        (rows[:, group].reshape(-1, PARAMETERS), wrench[:, group].ravel())
        for group in (slice(0, 3), slice(3, 6))
    ]
    (of_force, force), (of_torque, torque) = ((r.T @ r, r.T @ w) for r, w in parts)

    def cost(log: FloatArray) -> FloatArray:
        factor = np.exp(log)[:, None]
        gram = of_force + factor[..., None] ** 2 * of_torque + WIDE
        # With few blocks and a large factor, the scales differ beyond floating-point precision.
        gram += 1e-13 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(PARAMETERS)
        right = force + factor * torque
        payload = np.linalg.solve(gram, right[..., None])[..., 0]
        costs = float(np.sum(wrench**2)) - np.sum(payload * right, axis=1)
        return np.where(payload[:, 0] > 0.0, costs, float(np.sum(wrench**2)))

    log = np.linspace(np.log(1e-4), np.log(1e4), 121)
    for _ in range(4):
        costs, width = cost(log), log[1] - log[0]
        best = int(np.clip(np.argmin(costs), 1, len(log) - 2))
        low, here, high = costs[best - 1 : best + 2]
        curve = max((low - 2.0 * here + high) / 2.0, 1e-9)
        middle = log[best] + float(np.clip(width * (low - high) / (4.0 * curve), -width, width))
        log = middle + width * np.linspace(-1.0, 1.0, 9)
    left = float(cost(np.array([middle]))[0]) / task.count
    factor = float(np.exp(middle))
    matrix = rows * np.repeat([1.0, factor], 3)[:, None]
    say = partial(words.units, factor)
    information = np.array([[curve / width**2]])
    return Trial(Kind.UNITS, left, information, say, (matrix, wrench), size=float(middle))


def _changed(task: Problem) -> Trial:
    """Test a change of load and offset at some instant."""
    costs = [
        float(np.sum(least_squares(task.matrix[:cut], task.wrench[:cut]) ** 2))
        + float(np.sum(least_squares(task.matrix[cut:], task.wrench[cut:]) ** 2))
        for cut in np.linspace(1, len(task.wrench) - 1, 8).astype(int)
    ]
    left, rows = min(costs) / task.count, (task.matrix, task.wrench)
    return Trial(Kind.CHANGED, left, NOTHING, lambda _: '', rows)


def _drifting(task: Problem, time: FloatArray) -> Trial:
    """Test an offset that drifts linearly; `time` (N,) of the blocks [s]."""
    span = float(np.ptp(time))
    way = (time - time.mean()) / max(span, 1e-9)
    matrix, of_matrix = without_component(task.matrix, way)
    wrench, of_wrench = without_component(task.wrench, way)

    def say(_: float) -> str:
        flat = matrix.reshape(-1, PARAMETERS)
        payload = np.linalg.lstsq(flat, wrench.ravel(), rcond=None)[0]
        moved = of_wrench - of_matrix @ payload
        most = int(np.argmax(np.abs(moved)))
        return drifts(most, float((task.scale * moved)[most]), span)

    left = float(np.mean(least_squares(matrix, wrench) ** 2))
    return Trial(Kind.DRIFT, left, NOTHING, say, (matrix, wrench))


Wrong: TypeAlias = tuple[IntArray, FloatArray, str]
"""An error in J joints: the published column of each, (J,), their signs, (J,), and in words."""


def _wrong_joints(robot: Robot) -> Iterator[Wrong]:
    """Yield every joint of the opposite sign, and every pair exchanged."""
    count = len(robot.joints)
    for joint, name in enumerate(robot.joints):
        sign = np.where(np.arange(count) == joint, -1.0, 1.0)
        yield np.arange(count), sign, words.JOINT_REVERSED.format(name)
    for first, second in combinations(range(count), 2):
        order = np.arange(count)
        order[[first, second]] = second, first
        said = words.JOINTS_EXCHANGED.format(robot.joints[first], robot.joints[second])
        yield order, np.ones(count), said


def joint_trial(task: Problem, evidence: Evidence, robot: Robot) -> Trial:
    """Test every joint of the opposite sign and every pair exchanged; the mass must be positive.

    `task` is the problem of the evidence, which has the motion of the robot's joints.
    """

    def moved(wrong: Wrong, blocks: Evidence) -> Problem:
        order, sign, _ = wrong
        q, qd, qdd = np.moveaxis(sign * blocks.joint_motion[..., order], 1, 0)
        motion = robot.motion(q, qd, qdd, by_joints=False)
        matrix = -wrench_regressor(
            motion.linear_acceleration, motion.angular_velocity, motion.angular_acceleration
        )
        bare = replace(blocks, matrix=matrix, by_acceleration=matrix[..., None][..., :0])
        return problem(bare, task.scale, 1.0)

    few = evidence.select(slice(None, None, max(len(evidence.wrench) // FOR_CHOICE, 1)))
    best = min(_wrong_joints(robot), key=lambda wrong: _left(moved(wrong, few)))
    whole = moved(best, evidence)
    rows = whole.matrix, whole.wrench
    return Trial(Kind.JOINTS, _left(whole), NOTHING, lambda _: best[2], rows)


def _left(task: Problem) -> float:
    """Return the mean square residual of payload and offset; infinite for a negative mass."""
    found, payload = task.alone()
    return found if payload[0] > 0.0 else np.inf
