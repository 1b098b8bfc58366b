"""Recordings from cells with errors: the true motion of a path, measured with these errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.integrate import cumulative_trapezoid

from load_identification.interface.batches import FilteredBatch, JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion, Robot
from load_identification.motion.joint_path import JointMotion
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import WristFront
from load_identification.simulation.motions import Motion
from load_identification.simulation.robots import Arm
from load_identification.simulation.sensor_errors import (
    CABLE,
    NO_ERRORS,
    ROUGH,
    CellErrors,
    draw_cell,
    hysteresis,
    linear_field,
    low_passed,
    path_memory,
    play,
    random_field,
    smooth_field,
    sway,
    taut_cable,
)
from load_identification.simulation.sensors import WRIST_SENSOR, SensorModel, load_wrench
from load_identification.typing_aliases import FloatArray, IntArray

TIED = (
    *('smooth', 'linear', 'rough', 'path', 'hysteresis', 'play'),
    *('cables', 'taut cable', 'friction'),
)
"""Kinds of error that recur with the pose or the path."""

DAMPING = 0.03
"""Damping ratio of a structural resonance [-]."""

CLAMP = 0.05
"""Largest distance, along each axis, of a cable's clamp from the origin of S [m]."""

RUBBING, SLOW = 0.15, 0.01
"""Friction of the last joint that a sensor behind it measures, as in a UR5e, and the speed from
which it has its full size [N m, rad/s]."""

SPIKE = np.repeat([30.0, 1.5], 3)
"""Rms of a spike in each channel [N, N m]."""

SWING_HZ, SWING_ARM = 1.3, 0.05
"""Frequency and lever arm of a swinging liquid or hose [Hz, m]."""


@dataclass(frozen=True)
class Conditions:
    """Errors of a cell beyond white noise."""

    errors: CellErrors = NO_ERRORS
    """Standard deviations from which each cell is drawn."""
    tied: tuple[str, ...] = ()
    """Names in `TIED`."""
    drift: float = 0.0
    """Drift of the force over the whole motion, along the direction in S in which gravity turns
    during it; the torque drifts by 0.02 m times as much [N]."""
    compliance: float = 0.0
    """Frequency of a structural resonance of every joint; 0: stiff [Hz]."""
    eccentricity: float = 0.0
    """Amplitude of the error of each joint's angle, once per turn: gears, encoders, and what gives
    way under the arm's own weight [rad]."""
    jitter: float = 0.0
    """Largest error of the joint states' stamps, uniform; the joint states come at intervals of at
    least four times as much [s]."""
    clock: float = 0.0
    """Rate at which the clock that stamps the wrench gains on that of the joint states [-]."""
    spikes: float = 0.0
    """Rate of single wrench samples with errors of 30 N and 1.5 N m rms [1/s]."""
    swing: float = 0.0
    """Amplitude of the force of a swinging mass, in each direction [N]."""
    low_pass: tuple[str, float] | None = None
    """Filter of the sensor's driver, one of `LOW_PASSES`, and its cutoff [Hz]; it runs at the rate
    at which the path is sampled."""
    sensors: SensorModel = WRIST_SENSOR


@dataclass(frozen=True, eq=False)
class Path:
    """A sampled motion: encoder positions, and the true motion of S without any errors."""

    mount: Arm
    motion: Motion
    robot: Robot
    """According to the description."""
    stamps: IntArray
    """(n,) [ns]."""
    joints: JointMotion
    frame: FrameMotion


def sample(mount: Arm, motion: Motion, duration: float, rate: float) -> Path:
    """Sample a motion from its beginning for a duration [s], at a rate [Hz]."""
    stamps = np.round(np.arange(int(duration * rate) + 1) * 1e9 / rate).astype(np.int64)
    robot = mount.robot()
    joints = motion.trajectory.sample(stamps.astype(np.float64) * 1e-9)
    return Path(mount, motion, robot, stamps, joints, robot.motion(*joints, by_joints=False))


def record(
    path: Path, load: InertialParameters, conditions: Conditions, seed: int, part: int = 0
) -> tuple[JointBatch, WrenchBatch]:
    """Return the published joint states and wrenches of a path with one load; see `published`."""
    return published(path, partial(load_wrench, load), conditions, seed, part)


def published(
    path: Path,
    exerted: Callable[[FrameMotion], FloatArray],
    conditions: Conditions,
    seed: int,
    part: int = 0,
    zeroed: float = np.inf,
) -> tuple[JointBatch, WrenchBatch]:
    """Return the published joint states and wrenches along a path.

    The seed draws cell, fields and noise, each from its own generator, so that two conditions have
    the same values in what they share.

    Parameters
    ----------
    exerted : function of the true motion of S
        Wrench on the sensor, (n, 6) [N, N m].
    part : int
        Index of a part of a long recording from one cell; changes the noise only.
    zeroed : float
        Time from which the driver subtracts the sensor's reading at that time [s].
    """
    drawn = np.random.SeedSequence(seed).spawn(4 + 2 * part)
    for_cell, for_field, for_noise, for_joints = map(
        np.random.default_rng, (*drawn[:2], *drawn[-2:])
    )
    gravity = np.array(path.mount.gravity)
    cell = draw_cell(conditions.errors, gravity, len(path.robot.joints), for_cell)
    frame = path.frame
    bent = conditions.compliance or conditions.eccentricity
    if cell.lag or cell.zeros.any() or bent or conditions.errors.tilt:
        times = path.stamps.astype(np.float64) * 1e-9
        q, qd, qdd = path.motion.trajectory.sample(times - cell.lag) if cell.lag else path.joints
        if conditions.compliance:
            e = sway(qdd, conditions.compliance, DAMPING, float(times[1] - times[0]))
            q, qd, qdd = q + e[0], qd + e[1], qdd + e[2]
        if conditions.eccentricity:
            begin = np.random.default_rng([seed, 3]).uniform(0.0, 2.0 * np.pi, (1, q.shape[1]))
            q = q + conditions.eccentricity * np.sin(q + begin)
        true = Robot(path.mount.urdf, path.mount.sensor_frame, cell.gravity.tolist())
        frame = true.motion(q + cell.zeros, qd, qdd, by_joints=False)
    if cell.origin.any():
        frame = moved(frame, cell.origin)
    wrench = exerted(frame) @ cell.response.T
    for kind in conditions.tied:
        wrench = wrench + _tied(kind, path, frame, wrench, for_field)
    if conditions.drift:
        wrench = wrench + _drift(frame, conditions.drift)
    s = conditions.sensors
    wrench = wrench + np.array(s.offset)
    since = path.stamps * 1e-9 >= zeroed
    if since.any():
        wrench = wrench - since[:, None] * wrench[np.argmax(since)]
    wrench = wrench + s.noise * for_noise.standard_normal(wrench.shape)
    read = s.read_joints(*path.joints[:2], for_joints)
    joints = JointBatch(path.robot.joints, path.stamps, *read)
    if conditions.jitter:
        joints = _jittered(joints, conditions.jitter, for_joints)
    if conditions.spikes:
        duration = 1e-9 * float(path.stamps[-1] - path.stamps[0])
        hit = for_noise.integers(0, len(wrench), round(conditions.spikes * duration))
        wrench[hit] += SPIKE * for_noise.standard_normal((len(hit), 6))
    if conditions.swing:
        phase = for_noise.uniform(0.0, 2.0 * np.pi, 6)
        turn = 2.0 * np.pi * SWING_HZ * 1e-9 * (path.stamps - path.stamps[0])
        amplitude = conditions.swing * np.repeat([1.0, SWING_ARM], 3)
        wrench += amplitude * np.sin(turn[:, None] + phase)
    if conditions.low_pass:
        step = 1e-9 * float(path.stamps[1] - path.stamps[0])
        wrench = low_passed(wrench, *conditions.low_pass, step)
    gained = np.round(conditions.clock * (path.stamps - path.stamps[0])).astype(np.int64)
    stamps = path.stamps + gained
    return joints, WrenchBatch(path.robot.sensor_frame, stamps, s.stepped(wrench))


def moved(frame: FrameMotion, lever: FloatArray) -> FrameMotion:
    """Return the motion of a point at `lever` (3,) in a frame [m], with the frame's axes."""
    turning = np.cross(frame.angular_acceleration, lever)
    turning += np.cross(frame.angular_velocity, np.cross(frame.angular_velocity, lever))
    return replace(frame, linear_acceleration=frame.linear_acceleration + turning)


class Stages:
    """Front and estimator in series."""

    def __init__(self, parameters: Parameters, description: str, sensor_frame: str) -> None:
        self.filter = settings.motion_filter(parameters)
        self.filter.set_description(description, sensor_frame)
        self._front = WristFront(settings.synchronizer(parameters), self.filter)
        self.estimator = settings.payload_estimator(parameters)

    def filtered(self, joints: JointBatch, wrenches: WrenchBatch) -> FilteredBatch | None:
        """Return the filtered samples that these complete."""
        return self._front.update([joints], [wrenches]).filtered

    def update(self, joints: JointBatch, wrenches: WrenchBatch) -> None:
        """Estimate from all that was published since the last call."""
        batch = self.filtered(joints, wrenches)
        if batch is not None:
            self.estimator.update(batch)


def filtered(
    mount: Arm, joints: JointBatch, wrenches: WrenchBatch, parameters: Parameters
) -> tuple[FilteredBatch, float]:
    """Return the filter's output for everything published, and its delay [s]."""
    there = replace(parameters, gravity=mount.gravity)
    stages = Stages(there, mount.urdf, mount.sensor_frame)
    batch = stages.filtered(joints, wrenches)
    if batch is None:
        raise RuntimeError(f'nothing is left of {len(wrenches.stamps)} samples: too short')
    return batch, stages.filter.differentiator.delay


def _jittered(joints: JointBatch, jitter: float, rng: np.random.Generator) -> JointBatch:
    """Return joint states with errors in their stamps."""
    period = 1e-9 * float(joints.stamps[1] - joints.stamps[0])
    kept = slice(None, None, max(round(4.0 * jitter / period), 1))
    some = joints.select(kept)
    off = np.round(1e9 * jitter * rng.uniform(-1.0, 1.0, len(some.stamps))).astype(np.int64)
    return replace(some, stamps=some.stamps + off)


def _tied(
    kind: str, path: Path, frame: FrameMotion, wrench: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return errors tied to the pose or the path, (n, 6) [N, N m]."""
    direction = frame.gravity / np.linalg.norm(frame.gravity, axis=1, keepdims=True)
    if kind == 'smooth':
        return smooth_field(direction, rng)
    if kind == 'linear':
        return linear_field(direction, rng)
    if kind == 'rough':
        return random_field(direction, ROUGH, rng)
    if kind in ('path', 'cables'):
        step = np.diff(path.stamps, prepend=path.stamps[0]) * 1e-9
        angle = np.cumsum(np.linalg.norm(frame.angular_velocity, axis=1) * step)
        pull = 0.8 * random_field(path.joints[0], CABLE, rng) if kind == 'cables' else 0.0
        return pull + path_memory(angle, rng)
    if kind == 'hysteresis':
        return hysteresis(wrench, rng)
    if kind == 'play':
        return play(wrench)
    if kind == 'taut cable':
        velocity = np.einsum('nij,nj->ni', frame.rotation, frame.linear_velocity)
        times = 1e-9 * path.stamps
        pull = taut_cable(cumulative_trapezoid(velocity, times, axis=0, initial=0.0), rng)
        force = np.einsum('nij,ni->nj', frame.rotation, pull)
        return np.hstack([force, np.cross(rng.uniform(-CLAMP, CLAMP, 3), force)])
    if kind == 'friction':
        # S is fixed to the last link: the axis of its joint is the same in every pose.
        axis = path.robot.motion(*(each[:1] for each in path.joints)).jacobian[:, 3:, -1]
        torque = -RUBBING * np.tanh(path.joints[1][:, -1:] / SLOW) * axis
        return np.hstack([np.zeros_like(torque), torque])
    raise ValueError(f'no error {kind!r}; there are {", ".join(TIED)}')


def _drift(frame: FrameMotion, size: float) -> FloatArray:
    """Return a drift along the direction in which gravity turns, (n, 6) [N, N m]."""
    part = np.linspace(0.0, 1.0, len(frame.gravity))[:, None]
    axis = np.mean((part - 0.5) * frame.gravity, axis=0)
    axis /= np.linalg.norm(axis)
    return np.asarray(size * part * np.concatenate([axis, 0.02 * np.roll(axis, 1)]))
