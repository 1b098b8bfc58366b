"""The simulated arm: joint trajectories, the load's wrench, and what real sensors make of both.

The truth does not use the regressor of the estimator: the wrench is that of Pinocchio's spatial
inertia, f = I a + v x* (I v).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio

from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion, Robot
from load_identification.signals.batches import JointBatch, WrenchBatch
from load_identification.typing_aliases import FloatArray, IntArray

JointMotion = tuple[FloatArray, FloatArray, FloatArray]
"""Position, velocity and acceleration of the joints, (n, J) each [rad, rad/s, rad/s²]."""

PUMA_ENCODER_RESOLUTION = tuple(
    float(np.deg2rad(1.0 / counts)) for counts in (173.92, 239.59, 149.18, 211.21, 199.79, 106.51)
)
"""One count of a PUMA 560 joint encoder [rad].

Counts per degree: S. Graves, comp.robotics, October 1990; they are 1000 (joint 2: 800, joint 6:
500) counts per turn of the motor times the gear ratios of Corke and Armstrong-Hélouvry 1994.
"""

PUMA_LOWER = np.deg2rad([-20.0, -100.0, 40.0, -100.0, -95.0, -180.0])
PUMA_UPPER = np.deg2rad([120.0, -20.0, 140.0, 160.0, 95.0, 180.0])
"""Part of the range of config/puma.urdf in which the arm stays well above the floor [rad]."""

PAPER_START = np.deg2rad([0.0, 0.0, 0.0, -90.0, 0.0, 0.0])
PAPER_GOAL = np.deg2rad([90.0, -60.0, 90.0, 90.0, 90.0, 90.0])
"""The move of Atkeson, An and Hollerbach, section 3.1.2, in 2 s [rad]."""


def quintic(
    start: FloatArray, goal: FloatArray, duration: float, times: FloatArray
) -> JointMotion:
    """Move on a straight line in joint space by a polynomial of fifth order, from rest to rest.

    q = start + (goal - start) (10 s³ - 15 s⁴ + 6 s⁵), s = t / duration

    Before times of 0 [s] it stands at start, after the duration at goal, (J,) arrays [rad].
    """
    if not duration > 0.0:
        raise ParameterError(f'duration is {duration} s; it must be > 0')
    s = np.clip(np.asarray(times, dtype=np.float64) / duration, 0.0, 1.0)[:, None]
    way = goal - start
    return (
        start + way * (s**3 * (10.0 - 15.0 * s + 6.0 * s**2)),
        way * (30.0 * s**2 * (1.0 - s) ** 2) / duration,
        way * (60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)) / duration**2,
    )


@dataclass(frozen=True, eq=False)
class Quintic:
    """The move of `quintic` as a segment; a rest where start and goal are the same."""

    start: FloatArray
    goal: FloatArray
    duration: float

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since its beginning [s]."""
        return quintic(self.start, self.goal, self.duration, times)


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """A sum of sines about a centre, faded in and out by quintics; see `fourier_motion`.

    q = base(t) + fade(t) sum_k amplitude_k sin(angular_frequency_k t + phase_k)

    Attributes
    ----------
    start, center : (J,) arrays
        Where it starts, and the mean it goes to while fading in, and ends at [rad].
    duration, fade : float
        Whole time, and that of fading in and of fading out [s].
    amplitude, angular_frequency, phase : (J, K) arrays
        Of the sines [rad, rad/s, rad].
    """

    start: FloatArray
    center: FloatArray
    duration: float
    fade: float
    amplitude: FloatArray
    angular_frequency: FloatArray
    phase: FloatArray

    def base(self, times: FloatArray) -> JointMotion:
        """Return the move from start to center."""
        return quintic(self.start, self.center, self.fade, times)

    def waves(self, times: FloatArray) -> JointMotion:
        """Return the faded sines."""
        t = np.clip(times, 0.0, self.duration)
        angle = t[:, None, None] * self.angular_frequency + self.phase
        sine, cosine = np.sin(angle), np.cos(angle)
        amplitude, omega = self.amplitude, self.angular_frequency
        w = np.einsum('njk,jk->nj', sine, amplitude)
        wd = np.einsum('njk,jk->nj', cosine, amplitude * omega)
        wdd = -np.einsum('njk,jk->nj', sine, amplitude * omega**2)
        zero, one = np.zeros(1), np.ones(1)
        rise = quintic(zero, one, self.fade, t)
        fall = quintic(zero, one, self.fade, t - (self.duration - self.fade))
        f, fd, fdd = (up - down for up, down in zip(rise, fall, strict=True))
        return f * w, fd * w + f * wd, fdd * w + 2.0 * fd * wd + f * wdd

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since its beginning [s]."""
        (b, bd, bdd), (w, wd, wdd) = self.base(times), self.waves(times)
        return b + w, bd + wd, bdd + wdd


def fourier_motion(
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    velocity_limit: FloatArray,
    duration: float,
    seed: int,
    highest_frequency: float = 1.0,
    waves: int = 5,
) -> FourierMotion:
    """Draw a rich motion about the middle of a range, as large as range and velocity allow.

    Each joint has its own frequencies, with random phases and equal shares of velocity.

    Parameters
    ----------
    start, lower, upper : (J,) arrays
        Where the arm is, and the range it is to stay in [rad].
    velocity_limit : (J,) array
        [rad/s]
    duration : float
        Whole time, at least twice the fading; that takes 1 s, or the time in which half the
        velocity limit leads to the middle of the range [s].
    seed : int
        Of the frequencies and phases.
    highest_frequency : float
        The lowest is a tenth of it [Hz].
    waves : int
        Sines per joint.
    """
    if not np.all((lower <= start) & (start <= upper) & np.isfinite(upper - lower)):
        raise ParameterError(
            f'start is {start} rad; it must lie in a finite range, this is {lower} to {upper} rad'
        )
    center = (lower + upper) / 2.0
    # The quintic's peak velocity is 15/8 of its mean.
    fade = max(1.0, 2.0 * 15.0 / 8.0 * float(np.max(np.abs(center - start) / velocity_limit)))
    if not duration >= 2.0 * fade:
        raise ParameterError(f'duration is {duration} s; it must be at least {2.0 * fade:.2f} s')
    rng = np.random.default_rng(seed)
    omega = 2.0 * np.pi * highest_frequency * rng.uniform(0.1, 1.0, (len(start), waves))
    phase = rng.uniform(0.0, 2.0 * np.pi, omega.shape)
    unscaled = FourierMotion(start, center, duration, fade, 1.0 / omega, omega, phase)

    times = np.linspace(0.0, duration, int(200.0 * duration * max(1.0, highest_frequency)) + 1)
    (b, bd, _), (w, wd, _) = unscaled.base(times), unscaled.waves(times)
    room_for_position = np.where(w > 0.0, upper - b, b - lower)
    room = np.concatenate([room_for_position, velocity_limit - np.abs(bd)])
    need = np.abs(np.concatenate([w, wd]))
    ratio = np.divide(room, need, out=np.full_like(room, np.inf), where=need > 1e-9)
    # 1 % is kept for what lies between the 200 samples per period looked at here.
    scale = 0.99 * np.maximum(np.min(ratio, axis=0), 0.0)
    return replace(unscaled, amplitude=scale[:, None] / omega)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Segments one after another, each beginning where the last one ends."""

    segments: tuple[Quintic | FourierMotion, ...]

    @property
    def duration(self) -> float:
        """Time of all segments [s]."""
        return sum(segment.duration for segment in self.segments)

    def sample(self, times: FloatArray) -> JointMotion:
        """Return the motion at times (n,) since its beginning [s]; at rest outside."""
        ends = np.cumsum([segment.duration for segment in self.segments])
        index = np.minimum(np.searchsorted(ends, times, side='right'), len(ends) - 1)
        motion: JointMotion | None = None
        for i, segment in enumerate(self.segments):
            part = segment.sample(times[index == i] - (ends[i] - segment.duration))
            if motion is None:
                shape = (len(times), part[0].shape[1])
                motion = np.empty(shape), np.empty(shape), np.empty(shape)
            for whole, piece in zip(motion, part, strict=True):
                whole[index == i] = piece
        if motion is None:
            raise ParameterError('a trajectory needs at least one segment')
        return motion


def puma_trajectory(velocity_limit: FloatArray, duration: float, seed: int) -> Trajectory:
    """Rest for 1 s, do the paper's move in 2 s, then move richly for the duration [s] given."""
    rich = fourier_motion(PAPER_GOAL, PUMA_LOWER, PUMA_UPPER, velocity_limit, duration, seed)
    rest = Quintic(PAPER_START, PAPER_START, 1.0)
    return Trajectory((rest, Quintic(PAPER_START, PAPER_GOAL, 2.0), rich))


def aluminium_block() -> InertialParameters:
    """Return the block of table 1, 2 x 2 x 6 in and 1.106 kg, held off-centre and turned.

    The centre of mass is that of one row of the table (cx 1 mm, cy 37 mm, cz 47 mm), but for
    cx; the turn is chosen. All ten parameters differ from zero.
    """
    mass, sides = 1.106, 0.0254 * np.array([2.0, 2.0, 6.0])
    moments = mass * (np.sum(sides**2) - sides**2) / 12.0
    turn = pinocchio.rpy.rpyToMatrix(*np.deg2rad([25.0, -40.0, 60.0]))
    inertia = turn @ np.diag(moments) @ turn.T
    return InertialParameters.from_center_of_mass(mass, np.array([0.012, 0.037, 0.047]), inertia)


def dumbbell() -> InertialParameters:
    """Return the load of table 2; its mass and place are chosen, the paper gives none."""
    inertia = np.diag([0.0244, 0.0007, 0.0242])
    return InertialParameters.from_center_of_mass(2.0, np.array([0.0, 0.0, 0.06]), inertia)


def load_wrench(payload: InertialParameters, motion: FrameMotion) -> FloatArray:
    """Return the wrench (n, 6) that the load exerts on the sensor, in S about its origin [N, N m].

    -(I a + v x* (I v)), a the spatial acceleration of S less gravity
    """
    inertia = pinocchio.Inertia(
        payload.mass, payload.center_of_mass, payload.inertia_about_center_of_mass
    ).matrix()
    v, omega = motion.linear_velocity, motion.angular_velocity
    # A spatial acceleration is that of the point of the body passing the origin: p.. - omega x v.
    linear = motion.linear_acceleration - np.cross(omega, v)
    rate = np.hstack([linear, motion.angular_acceleration]) @ inertia
    momentum = np.hstack([v, omega]) @ inertia
    force = rate[:, :3] + np.cross(omega, momentum[:, :3])
    torque = rate[:, 3:] + np.cross(omega, momentum[:, 3:]) + np.cross(v, momentum[:, :3])
    return -np.hstack([force, torque])


@dataclass(frozen=True)
class SensorModel:
    """What the sensors add to the truth; the defaults are like a PUMA 560 and a wrist sensor.

    Attributes
    ----------
    encoder_resolution : float or tuple of J floats
        Step of the joint positions, 0 for none [rad].
    velocity_noise : float or None
        Standard deviation per sample of the joint velocities; None: not published [rad/s].
    force_noise, torque_noise : float
        Standard deviation per sample, white [N, N m].
    offset : tuple of six floats
        Added to every wrench [N, N m].
    force_step, torque_step : float
        Quantisation of the wrench, 0 for none [N, N m].
    """

    encoder_resolution: float | tuple[float, ...] = PUMA_ENCODER_RESOLUTION
    velocity_noise: float | None = None
    force_noise: float = 0.1
    torque_noise: float = 0.005
    offset: tuple[float, float, float, float, float, float] = (2.4, -1.7, 5.1, 0.06, -0.11, 0.03)
    force_step: float = 0.0125
    torque_step: float = 0.0005


@dataclass(frozen=True, eq=False)
class Recording:
    """A simulated recording and the truth behind it.

    Attributes
    ----------
    names : tuple of str
        The J joints, in the order of the columns.
    frame : str
        Sensor frame S.
    stamps : (n,) int array
        [ns]
    position, velocity : (n, J) arrays
        As published [rad, rad/s]; velocity NaN where it is not.
    wrench : (n, 6) array
        As published, raw: on the sensor, with offset [N, N m].
    exact : JointMotion
        True position, velocity and acceleration of the joints.
    motion : FrameMotion
        True motion of S.
    exact_wrench : (n, 6) array
        True wrench of the load on the sensor, without offset [N, N m].
    """

    names: tuple[str, ...]
    frame: str
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    wrench: FloatArray
    exact: JointMotion
    motion: FrameMotion
    exact_wrench: FloatArray

    def joints(self) -> JointBatch:
        """Return the published joint states."""
        return JointBatch(self.names, self.stamps, self.position, self.velocity)

    def wrenches(self) -> WrenchBatch:
        """Return the published wrenches."""
        return WrenchBatch(self.frame, self.stamps, self.wrench)


def _quantized(values: FloatArray, step: FloatArray) -> FloatArray:
    """Round to multiples of the steps (one per column); a step of 0 rounds nothing."""
    safe = np.where(step > 0.0, step, 1.0)
    return np.where(step > 0.0, np.round(values / safe) * safe, values)


def measure(recording: Recording, sensors: SensorModel, seed: int) -> Recording:
    """Return the same truth as published by the sensors given, with the noise of this seed."""
    q, qd, _ = recording.exact
    resolution = np.atleast_1d(np.asarray(sensors.encoder_resolution, dtype=np.float64))
    if len(resolution) not in (1, q.shape[1]):
        raise ParameterError(
            f'encoder_resolution has {len(resolution)} values; it must have 1 or {q.shape[1]}'
        )
    # Two streams: publishing velocities or not leaves the noise of the wrench as it is.
    for_wrench, for_velocity = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    noise = np.repeat([sensors.force_noise, sensors.torque_noise], 3)
    wrench = recording.exact_wrench + np.array(sensors.offset)
    wrench = wrench + noise * for_wrench.standard_normal(wrench.shape)
    velocity = np.full_like(qd, np.nan)
    if sensors.velocity_noise is not None:
        velocity = qd + sensors.velocity_noise * for_velocity.standard_normal(qd.shape)
    return replace(
        recording,
        position=_quantized(q, resolution),
        velocity=velocity,
        wrench=_quantized(wrench, np.repeat([sensors.force_step, sensors.torque_step], 3)),
    )


def simulate(
    robot: Robot,
    trajectory: Trajectory,
    payload: InertialParameters,
    sensors: SensorModel,
    rate: float,
    seed: int,
) -> Recording:
    """Move the robot with the payload on its sensor along the whole trajectory.

    For many recordings of one motion, `measure` one of them again with other seeds.

    Parameters
    ----------
    rate : float
        Samples per second, joint states and wrenches at the same stamps, which begin at 0 [Hz].
    seed : int
        Of all noise.
    """
    if not rate > 0.0:
        raise ParameterError(f'rate is {rate} Hz; it must be > 0')
    stamps = np.round(np.arange(int(trajectory.duration * rate) + 1) * 1e9 / rate).astype(np.int64)
    exact = trajectory.sample(stamps.astype(np.float64) * 1e-9)
    motion = robot.motion(*exact)
    wrench = load_wrench(payload, motion)
    truth = Recording(
        robot.joints, robot.sensor_frame, stamps, exact[0], exact[1], wrench, exact, motion, wrench
    )
    return measure(truth, sensors, seed)
