"""Subtract offset, tool and payload from the raw wrench, at its own stamps and unfiltered."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pinocchio

from load_identification.errors import FrameError
from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.payload_estimate import UNKNOWN_STD, PayloadEstimate
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import CONVENTIONS, Parameters
from load_identification.model.frames import same_frame
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.regressor import gravity_wrench, wrench_regressor
from load_identification.model.robot import FrameMotion, Robot
from load_identification.signals.joint_motion import JointMotionNow
from load_identification.signals.joint_track import BEYOND_ALL_SENSE
from load_identification.typing_aliases import FloatArray, IntArray

NONE, TOOL, PAYLOAD, LAST_PAYLOAD = 'none', 'tool', 'payload', 'last_payload'
"""States of the compensation: what is subtracted from the wrench (`compensation` in `status`)."""

LONGEST, MOST = 20_000_000, 100
"""Longest piece of input processed at once [ns]; a slow poll or a busy machine delivers more. The
pieces become longer where there would be more than `MOST` of them."""

Batch = TypeVar('Batch', JointBatch, WrenchBatch)


class LoadTakenOff:
    """The part of a wrench to subtract, which leaves contact: offset, tool and payload."""

    def __init__(self) -> None:
        self.state = NONE
        """`none`, `tool`, `payload` or `last_payload`."""
        self.body: FloatArray = np.zeros(PARAMETERS)
        """Tool and payload together, about the origin of S, (10,) [kg, kg m, kg m²]."""
        self.offset: FloatArray = np.full(6, np.nan)
        """Of the wrench that the load exerts on the sensor, (6,) [N, N m]; NaN: unknown."""
        self.by_driver: FloatArray = np.zeros(PARAMETERS)
        """Body whose weight the driver has already subtracted, (10,) [kg, kg m, kg m²]."""
        self.frame = ''
        """Sensor frame of all these; empty: not known."""

    def update(self, estimate: PayloadEstimate | None, tool: FloatArray, frame: str = '') -> None:
        """Update state, body and offset from an estimate and the tool's parameters (10,)."""
        if frame != self.frame:
            # The last payload is not known in another frame.
            self.state, self.frame = NONE, frame
        withheld = estimate is not None and estimate.withheld is not None
        if estimate is not None and not withheld:
            std = np.sqrt(np.diag(estimate.covariance)[PARAMETERS:])
            self.offset = np.where(std < UNKNOWN_STD, estimate.offset, np.nan)
        if withheld and self.state in (PAYLOAD, LAST_PAYLOAD):
            # The estimator claims nothing about the present load: keep the last body.
            self.state = LAST_PAYLOAD
        elif estimate is not None and estimate.identified[0] and estimate.total[0] > 0.0:
            self.state, self.body = PAYLOAD, _with_known_inertia(estimate, tool)
        else:
            self.state, self.body = TOOL if tool.any() else NONE, tool


def _with_known_inertia(estimate: PayloadEstimate, tool: FloatArray) -> FloatArray:
    """Return tool plus payload; the payload is a point mass if its inertia is not identified."""
    body = estimate.total.copy()
    if not estimate.identified[4:].all():
        body[4:] = tool[4:]
        mass = estimate.parameters[0]
        # After the payload is saved as the tool, the rest is zero to the last bit.
        if mass > 0.0:
            center = estimate.parameters[1:4] / mass
            point = InertialParameters.from_center_of_mass(mass, center, np.zeros((3, 3)))
            body[4:] += point.to_vector()[4:]
    return body


@dataclass(frozen=True, eq=False)
class _Instant:
    """Motion of S at a stamp [ns], and pose and twist of S seen from the requested frame."""

    stamp: int
    motion: FrameMotion
    rotation: FloatArray
    origin: FloatArray
    twist: FloatArray


class Compensation:
    """Compensate batches of raw wrenches.

    Forward kinematics is computed once per batch (of at most 20 ms), at the newest joint state.
    The angular velocity extrapolates gravity from there to the stamps of the wrenches. With
    `compensate_inertia`, accelerations are interpolated between the last two joint states used.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.dropped: Counter[str] = Counter()
        self.given = 0
        """Number of wrenches compensated."""
        self.waiting_for = ''
        """Reason why wrenches are not compensated, in words; empty if they are."""
        self.position: FloatArray | None = None
        """Joint positions (J,) of the newest state used [rad or m]; None: unknown."""
        self._sign = CONVENTIONS[parameters.wrench_convention]
        self._delay = round(parameters.wrench_delay * 1e9)
        self._longest = round(parameters.max_gap * 1e9)
        self._frame = parameters.compensated_frame
        self._inertia = parameters.compensate_inertia
        self._joints = JointMotionNow(parameters.max_gap)
        self._robot: Robot | None = None
        self._before: _Instant | None = None
        self._now: _Instant | None = None

    def unusable_frame(self, robot: Robot | None) -> str:
        """Return why the requested frame cannot be given, in words; empty: nothing is known.

        While the sensor frame is not known, and so no robot, it may be the frame requested, and
        hang on a link by /tf_static.
        """
        if robot is None or self._frame in ('', robot.sensor_frame):
            return ''
        still = np.zeros(len(robot.joints))
        try:
            robot.seen_from(self._frame, still, still)
        except FrameError as error:
            return f'compensated_frame: {error}'
        return ''

    def update(
        self,
        joints: Iterable[JointBatch],
        wrenches: Iterable[WrenchBatch],
        robot: Robot | None,
        load: LoadTakenOff,
        dead: Sequence[bool] = (),
    ) -> list[WrenchBatch]:
        """Process new joint states and wrenches; return the compensated wrenches.

        Parameters
        ----------
        joints, wrenches : iterable of batches
            In order of arrival.
        robot : Robot or None
            S is the frame of the wrenches; None: not known yet.
        dead : sequence of 6 bool
            Dead channels, returned as NaN; empty: all channels are alive.
        """
        found: list[WrenchBatch] = []
        for some_joints, some_wrenches in _in_pieces(list(joints), list(wrenches)):
            self._joints.update(some_joints)
            if some_wrenches:
                self.waiting_for = self._move_on(robot)
                found += self._all_compensated(some_wrenches, load, dead)
        return found

    def _all_compensated(
        self, wrenches: Sequence[WrenchBatch], load: LoadTakenOff, dead: Sequence[bool]
    ) -> list[WrenchBatch]:
        """Return compensated wrenches in the requested frame; count those not compensated."""
        found = []
        for batch in wrenches:
            compensated = self._compensated(batch, load)
            count = 0 if compensated is None else len(compensated.stamps)
            self.given += count
            self.dropped['not_compensated'] += len(batch.stamps) - count
            if compensated is not None and count:
                if any(dead):
                    compensated.wrench[:, np.array(dead)] = np.nan
                found.append(self._in_frame(compensated))
        return found

    def _move_on(self, robot: Robot | None) -> str:
        """Compute the motion at the newest joint state; return what is missing for it."""
        if robot is not self._robot:
            self._robot, self._before, self._now = robot, None, None
        if robot is None:
            return 'the robot description'
        state = self._joints.newest(robot.joints)
        if state is None:
            self._now = None
            return 'joint states of all joints that carry the sensor'
        if self._now is not None and state.stamp == self._now.stamp:
            return ''
        q, qd = state.position, state.velocity
        self.position = q
        motion = robot.motion(q[None], qd[None], state.acceleration[None], by_joints=False)
        seen = np.eye(3), np.zeros(3), np.zeros(6)
        try:
            if self._frame not in ('', robot.sensor_frame):
                seen = robot.seen_from(self._frame, q, qd)
        except FrameError as error:
            self._now = None
            return f'a usable compensated_frame: {error}'
        self._before, self._now = self._now, _Instant(state.stamp, motion, *seen)
        return ''

    def _compensated(self, batch: WrenchBatch, load: LoadTakenOff) -> WrenchBatch | None:
        """Return the wrenches near enough to the newest joint state, compensated, in S."""
        now, robot = self._now, self._robot
        if now is None or robot is None or batch.frame != robot.sensor_frame:
            return None
        if not same_frame(load.frame, batch.frame):
            self.waiting_for = f'an estimate in {batch.frame!r}; the last is in {load.frame!r}'
            return None
        times = batch.stamps - self._delay
        ages = times - now.stamp
        near = np.abs(ages) <= self._longest
        if not near.any():
            self.waiting_for = (
                f'joint states nearer to the wrenches, which are {1e-9 * ages[-1]:.1f} s later: '
                'clocks of two hosts?'
            )
        t = ages[near][:, None] * np.float64(1e-9)
        # Rotation vector of S since the joint state, in S.
        turn = t * now.motion.angular_velocity + 0.5 * t**2 * now.motion.angular_acceleration
        gravity = _turned_by(-turn, now.motion.gravity[0])
        if self._inertia:
            linear, omega, alpha = self._accelerations(now, times[near])
        else:
            linear = omega = alpha = np.zeros_like(gravity)
        regressor = wrench_regressor(linear - gravity, omega, alpha)
        offset = np.where(np.isnan(load.offset), 0.0, load.offset)
        taken_off = self._sign * (offset - regressor @ load.body)
        if load.by_driver.any():
            taken_off -= self._sign * gravity_wrench(gravity, load.by_driver)
        raw = batch.wrench[near]
        sensible = np.where(np.abs(raw) < BEYOND_ALL_SENSE, raw, np.nan)
        return WrenchBatch(batch.frame, batch.stamps[near], sensible - taken_off)

    def _accelerations(self, now: _Instant, times: IntArray) -> tuple[FloatArray, ...]:
        """Return acceleration minus gravity, omega and alpha (n, 3) each at times [ns]."""
        before, share = self._before, np.ones((len(times), 1))
        if before is None or not 0 < now.stamp - before.stamp <= self._longest:
            before = now
        else:
            share[:, 0] = np.clip((times - before.stamp) / (now.stamp - before.stamp), 0.0, 1.0)

        def between(first: FloatArray, last: FloatArray) -> FloatArray:
            return first + share * (last - first)

        a, b = before.motion, now.motion
        return (
            between(a.linear_acceleration + a.gravity, b.linear_acceleration + b.gravity),
            between(a.angular_velocity, b.angular_velocity),
            between(a.angular_acceleration, b.angular_acceleration),
        )

    def _in_frame(self, batch: WrenchBatch) -> WrenchBatch:
        """Return wrenches in the axes of the requested frame, about its origin."""
        now = self._now
        if self._frame in ('', batch.frame) or now is None:
            return batch
        seconds = 1e-9 * (batch.stamps - self._delay - now.stamp)[:, None]
        turn = seconds * now.twist[3:]
        origin = now.origin + seconds * (now.rotation @ now.twist[:3])

        def turned(vectors: FloatArray) -> FloatArray:
            once = np.cross(turn, vectors)
            return np.asarray((vectors + once + 0.5 * np.cross(turn, once)) @ now.rotation.T)

        force, torque = turned(batch.wrench[:, :3]), turned(batch.wrench[:, 3:])
        wrench = np.hstack([force, torque + np.cross(origin, force)])
        return WrenchBatch(self._frame, batch.stamps, wrench)


def _in_pieces(
    joints: Sequence[JointBatch], wrenches: Sequence[WrenchBatch]
) -> Iterator[tuple[list[JointBatch], list[WrenchBatch]]]:
    """Cut the input into pieces short enough for one forward kinematics each."""
    stamps = [stamp for batch in wrenches if batch.stamps.size for stamp in batch.stamps[[0, -1]]]
    first, last = (min(stamps), max(stamps)) if stamps else (0, 0)
    length = max(LONGEST, (last - first) // MOST)
    if last - first <= length:
        yield [b for b in joints if b.stamps.size], [b for b in wrenches if b.stamps.size]
        return
    ends = np.arange(first + length, last, length)
    bounds = [np.iinfo(np.int64).min, *ends, np.iinfo(np.int64).max]
    for low, high in itertools.pairwise(bounds):
        yield _between(joints, low, high), _between(wrenches, low, high)


def _between(batches: Sequence[Batch], low: int, high: int) -> list[Batch]:
    """Return the samples that are later than `low` and not later than `high` [ns]."""
    found = [batch.select((batch.stamps > low) & (batch.stamps <= high)) for batch in batches]
    return [batch for batch in found if batch.stamps.size]


def _turned_by(turn: FloatArray, vector: FloatArray) -> FloatArray:
    """Rotate a vector (3,) by small rotation vectors (n, 3), to second order.

    v + r x v + r x (r x v) / 2, without `np.cross`, which costs as much as all the rest.
    """
    twice = turn * (turn @ vector)[:, None] - vector * np.sum(turn**2, axis=1)[:, None]
    return np.asarray(vector + turn @ pinocchio.skew(vector) + 0.5 * twice)
