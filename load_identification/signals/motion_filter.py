"""Filter joint states and raw wrenches to the motion and wrench of the sensor frame.

The robot that moves it is built from a description once that frame is known.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from load_identification.errors import DescriptionError
from load_identification.interface.batches import (
    CHANNELS,
    FilteredBatch,
    SynchronizedBatch,
    joined,
)
from load_identification.interface.parameters import CONVENTIONS
from load_identification.model.regressor import friction_felt
from load_identification.model.robot import Robot, robot_number
from load_identification.model.urdf import parse_description
from load_identification.signals.differentiator import (
    SLOW,
    STILL,
    DifferentiatedBatch,
    Differentiator,
)
from load_identification.signals.jumps import JumpGate, LimitGate, SpikeGate
from load_identification.signals.rest import RestDetector, at_rest_without_motion
from load_identification.signals.sensor_health import ABSENT, SensorHealth
from load_identification.typing_aliases import IntArray

LEFT_OUT = 'velocity of {} left out: it is none of the positions: zeros or degrees?'
REPEATS = 'position of {} repeats while its velocity is not zero: encoder or driver?'
"""Warnings for joints whose velocity contradicts the positions."""

MANY_WRONG = 20
"""Upper limit of the count of velocities that contradict the positions minus those that agree."""


class DescribedRobot:
    """Build a robot from a description as soon as the sensor frame S is known.

    Parameters
    ----------
    gravity : sequence of 3 floats
        Gravity in the root frame of the description [m/s²].
    """

    def __init__(self, gravity: Sequence[float]) -> None:
        self.robot: Robot | None = None
        self.waiting_for = 'the robot description'
        """What prevents samples from being used; empty: nothing."""
        self.refused_frame: str | None = None
        """Frame of the wrench for which the description cannot be used."""
        self._gravity = tuple(gravity)
        self.description: str | None = None
        """The description in use; None: there is none yet."""
        self._named = False

    def set_description(self, description: str, sensor_frame: str = '') -> None:
        """Use a robot description; check that it has the sensor frame, if that is given.

        Raises DescriptionError if it cannot be used; the previous one is kept.
        """
        robot = Robot(description, sensor_frame, self._gravity) if sensor_frame else None
        if robot is None:
            parse_description(description)
        self.description, self.robot, self.refused_frame = description, robot, None
        self._named = bool(sensor_frame)
        self.waiting_for = '' if robot else 'the first wrench, for its frame'

    def for_frame(self, frame: str) -> Robot | None:
        """Return the robot, built for the wrench's frame if no sensor frame was given."""
        if self.robot is not None and not self._named and frame != self.robot.sensor_frame:
            self.robot = None
        if self.robot is None and self.description is not None and frame != self.refused_frame:
            try:
                self.robot = Robot(self.description, frame, self._gravity)
                self.refused_frame, self.waiting_for = None, ''
            except DescriptionError as error:
                self.refused_frame = frame
                self.waiting_for = f'a usable sensor frame: {error}'
        return self.robot


class MotionFilter(DescribedRobot):
    """The filter stage: channel monitor, differentiator, robot kinematics.

    Parameters
    ----------
    gravity : sequence of 3 floats
        Gravity in the root frame of the description [m/s²].
    wrench_convention : str
        A key of `CONVENTIONS`.
    """

    def __init__(
        self, differentiator: Differentiator, gravity: Sequence[float], wrench_convention: str
    ) -> None:
        super().__init__(gravity)
        self.dropped: Counter[str] = differentiator.dropped
        self.taken = self.given = 0
        """Number of samples received, and number returned."""
        self._wrong_velocity = ''
        self.differentiator = differentiator
        self.health = SensorHealth(self.dropped)
        """Health of the channels of the wrench."""
        self._sign = CONVENTIONS[wrench_convention]
        self.limits = LimitGate(self.dropped)
        """Refuses implausible joint positions."""
        self.reset()

    @property
    def absent_channels(self) -> tuple[str, ...]:
        """Wrench channels that have had no values so far, or have none any more."""
        states = zip(CHANNELS, self.health.states, strict=True)
        return tuple(channel for channel, state in states if state == ABSENT)

    @property
    def implausible(self) -> str:
        """Warning of an implausible frame or joint position; empty: none."""
        robot = self.robot
        if robot is not None and not robot.joints:
            return f'no joint moves {robot.sensor_frame!r}: is it the frame of the wrench?'
        return self.limits.words

    @property
    def bunched(self) -> str:
        """Warning that stamps of the wrench are too clustered to be filtered; empty: no."""
        return self.differentiator.bunches.words('/wrench')

    @property
    def words(self) -> str:
        """Problems that do not stop the samples, in words; empty: none."""
        parts = self.health.words, self.implausible, self._wrong_velocity, self.bunched
        return '; '.join(filter(None, parts))

    def set_description(self, description: str, sensor_frame: str = '') -> None:
        super().set_description(description, sensor_frame)
        self.reset()

    def wait_for_joints(self, names: Sequence[str]) -> None:
        """Say that no sample is complete because the joint states lack these joints."""
        self.waiting_for = f'joint {", ".join(names)} in the joint states'

    def reset(self) -> None:
        """Forget every sample."""
        self._forget_motion()
        self.limits.reset()
        self.health.reset()
        self._spikes = SpikeGate(self.dropped)
        self._jumps = JumpGate(0, self.differentiator.max_gap, self.dropped)
        self._newest: int | None = None

    def _forget_motion(self) -> None:
        self.differentiator.reset()
        self._rest = RestDetector()
        self._contradictions: IntArray = np.zeros(0, dtype=np.int64)

    def update(self, batch: SynchronizedBatch) -> FilteredBatch | None:
        """Process synchronized samples and return the filtered ones completed, or None.

        A stamp that is not newer than the one before restarts the filter.
        """
        self.taken += len(batch.stamps)
        robot = self._ready_robot(batch.frame)
        if robot is None:
            self.dropped['no_robot'] += len(batch.stamps)
            return None
        usable = self._usable(batch, robot)
        if usable is None:
            return None
        if self._newest is not None and usable.stamps[0] <= self._newest:
            self.reset()
        self._newest = int(usable.stamps[-1])
        return self._filter(usable, robot)

    def _ready_robot(self, frame: str) -> Robot | None:
        """Return the robot for the frame of the wrench; another frame restarts the filter."""
        before = self.robot
        robot = self.for_frame(frame)
        if before is not None and robot is not before:
            self.reset()
        return robot

    def _usable(self, batch: SynchronizedBatch, robot: Robot) -> SynchronizedBatch | None:
        """Return the samples with all joints of the robot, in its order, stamps increasing."""
        missing = [name for name in robot.joints if name not in batch.names]
        if missing:
            self.wait_for_joints(missing)
            self.dropped['joint_missing'] += len(batch.stamps)
            return None
        self.waiting_for = ''
        columns = [batch.names.index(name) for name in robot.joints]
        position = batch.position[:, columns]
        used = np.all(np.isfinite(position), axis=1)
        if not used.all():
            self.dropped['joint_missing'] += int((~used).sum())
        used[used] = self.limits.update(robot, batch.stamps[used], position[used])
        back = np.flatnonzero(batch.stamps[1:] <= batch.stamps[:-1])
        if back.size:
            self.dropped['stamp_not_increasing'] += int(used[: back[-1] + 1].sum())
            used[: back[-1] + 1] = False
        if not used.any():
            return None
        return SynchronizedBatch(
            names=robot.joints,
            frame=batch.frame,
            stamps=batch.stamps[used],
            position=position[used],
            velocity=batch.velocity[:, columns][used],
            wrench=batch.wrench[used],
        )

    def _filter(self, batch: SynchronizedBatch, robot: Robot) -> FilteredBatch | None:
        stuck, old = self.health.update(batch.stamps, batch.position, batch.wrench, robot.down)
        if stuck.any():
            batch = replace(batch, wrench=np.where(stuck, np.nan, batch.wrench))
        if old.any():
            batch = batch.select(~old)
        batch = self._spikes.update(batch, self.health.scatters)
        out = self._differentiate(batch, robot)
        if out is None:
            return None
        self.given += len(out.stamps)
        self._judge_velocities(out, robot)
        half = round(self.differentiator.delay * 1e9)
        motion = robot.motion(out.position, out.velocity, out.acceleration)
        found = FilteredBatch(
            frame=robot.sensor_frame,
            stamps=out.stamps,
            wrench=self._sign * out.wrench,
            linear_velocity=motion.linear_velocity,
            angular_velocity=motion.angular_velocity,
            linear_acceleration=motion.linear_acceleration,
            angular_acceleration=motion.angular_acceleration,
            gravity=motion.gravity,
            rest=self._rest.without_begins(
                self._rest.rested(out.stamps - half, out.stamps + half),
                out.acceleration,
                out.acceleration_noise,
            ),
            motion_by_joint=motion.motion_by_joint,
            gravity_by_tilt=motion.gravity_by_tilt,
            joint_motion=np.stack([out.position, out.velocity, out.acceleration], axis=1),
            robot=robot,
            robot_number=np.full(len(out.stamps), float(robot_number(robot))),
            sensitivity=friction_felt(motion.jacobian, out.velocity, out.acceleration),
            acceleration_noise=motion.jacobian @ out.acceleration_noise,
        )
        return at_rest_without_motion(found)

    def _judge_velocities(self, out: DifferentiatedBatch, robot: Robot) -> None:
        """Warn of moving joints whose velocity has recently contradicted the positions."""
        moving = np.abs(out.velocity) > SLOW
        if len(self._contradictions) != len(robot.joints):
            self._contradictions = np.zeros(len(robot.joints), dtype=np.int64)
        change = np.sum(np.where(out.contradicted, 1, -1 * moving), axis=0)
        self._contradictions = np.clip(self._contradictions + change, 0, MANY_WRONG)
        wrong = self._contradictions > MANY_WRONG // 2
        still = wrong & out.contradicted[-1] & (np.abs(out.velocity[-1]) < STILL)
        self._wrong_velocity = '; '.join(
            words.format(', '.join(itertools.compress(robot.joints, which)))
            for words, which in ((LEFT_OUT, wrong & ~still), (REPEATS, still))
            if which.any()
        )

    def _differentiate(self, batch: SynchronizedBatch, robot: Robot) -> DifferentiatedBatch | None:
        """Differentiate consecutive samples; restart where joints have jumped."""
        joints = len(robot.joints)
        if len(self._jumps.limits) != joints:
            self._jumps = JumpGate(joints, self.differentiator.max_gap, self.dropped)
        self._jumps.set_limits(robot.velocity_limits)
        rows = np.hstack([batch.position, batch.velocity, batch.wrench])
        found = []
        for piece in self._jumps.update(batch.stamps, rows):
            if piece.fresh:
                self._forget_motion()
            position = piece.rows[:, :joints]
            self._rest.update(piece.stamps, position)
            out = self.differentiator.update(
                replace(
                    batch,
                    stamps=piece.stamps,
                    position=position,
                    velocity=piece.rows[:, joints : 2 * joints],
                    wrench=piece.rows[:, 2 * joints :],
                )
            )
            if out is not None:
                found.append(out)
        return joined(found) if found else None
