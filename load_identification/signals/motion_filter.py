"""From joint states and raw wrenches to the filtered motion and wrench of the sensor frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from load_identification.errors import FrameError
from load_identification.model.robot import Robot
from load_identification.signals.batches import CHANNELS, FilteredBatch, SynchronizedBatch
from load_identification.signals.channel_monitor import ChannelMonitor
from load_identification.signals.differentiator import Differentiator

CONVENTIONS = {'on_sensor': 1.0, 'on_load': -1.0}
"""Sign that turns a wrench of each convention into what the load exerts on the sensor."""


class MotionFilter:
    """The filter stage: channel monitor, differentiator, robot kinematics.

    Parameters
    ----------
    differentiator : Differentiator
    gravity : sequence of 3 floats
        In the root frame of the description [m/s²].
    wrench_convention : str
        A key of `CONVENTIONS`.
    """

    def __init__(
        self, differentiator: Differentiator, gravity: Sequence[float], wrench_convention: str
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self.waiting_for = 'the robot description'
        """What keeps samples from being used; empty when nothing does."""
        self.robot: Robot | None = None
        self._differentiator = differentiator
        self._monitor = ChannelMonitor()
        self._gravity = tuple(gravity)
        self._sign = CONVENTIONS[wrench_convention]
        self._description: str | None = None
        self._newest: int | None = None

    @property
    def delay(self) -> float:
        """By how much an output is older than the last sample it rests on [s]."""
        return self._differentiator.delay

    @property
    def absent_channels(self) -> tuple[str, ...]:
        """Wrench channels that have shown nothing so far."""
        return tuple(
            c for c, gone in zip(CHANNELS, self._monitor.absent, strict=True) if gone
        )

    def set_description(self, description: str, sensor_frame: str = '') -> None:
        """Use a robot description; with the sensor frame known, check that it is there.

        Raises
        ------
        DescriptionError
            If it cannot be used; the one in use stays.
        """
        robot = Robot(description, sensor_frame, self._gravity) if sensor_frame else None
        self._description, self.robot = description, robot
        self.waiting_for = '' if robot else 'the first wrench, for its frame'
        self.reset()

    def reset(self) -> None:
        """Forget every sample."""
        self._differentiator.reset()
        self._monitor.reset()
        self._newest = None

    def update(self, batch: SynchronizedBatch) -> FilteredBatch | None:
        """Take in synchronized samples and return what they complete, or None."""
        robot = self._ready_robot(batch)
        if robot is None:
            self.dropped['no_robot'] += len(batch.stamps)
            return None
        missing = [name for name in robot.joints if name not in batch.names]
        if missing:
            self.waiting_for = f'joint {", ".join(missing)} in the joint states'
            self.dropped['joint_missing'] += len(batch.stamps)
            return None
        if self._newest is not None and batch.stamps[0] <= self._newest:
            self.reset()
        self._newest = int(batch.stamps[-1])
        return self._filter(batch, robot)

    def _ready_robot(self, batch: SynchronizedBatch) -> Robot | None:
        if self.robot is None and self._description is not None:
            try:
                self.robot = Robot(self._description, batch.frame, self._gravity)
            except FrameError as error:
                self.waiting_for = str(error)
        return self.robot

    def _filter(self, batch: SynchronizedBatch, robot: Robot) -> FilteredBatch | None:
        columns = [batch.names.index(name) for name in robot.joints]
        position, velocity = batch.position[:, columns], batch.velocity[:, columns]
        known = np.isfinite(position).all(axis=1)
        self.dropped['joint_missing'] += int(np.sum(~known))
        if not known.any():
            return None
        self.waiting_for = ''
        position, velocity, wrench = position[known], velocity[known], batch.wrench[known]
        stuck = self._monitor.update(position, wrench)
        absent = self._monitor.absent
        self.dropped['wrench_channel_stuck'] += int(np.sum(stuck[:, ~absent].any(axis=1)))
        usable = SynchronizedBatch(
            names=robot.joints,
            frame=batch.frame,
            stamps=batch.stamps[known],
            position=position,
            velocity=velocity,
            wrench=np.where(stuck, np.nan, wrench),
        )
        out = self._differentiator.update(usable)
        if out is None:
            return None
        motion = robot.motion(out.position, out.velocity, out.acceleration)
        return FilteredBatch(
            frame=robot.sensor_frame,
            stamps=out.stamps,
            wrench=self._sign * out.wrench,
            linear_velocity=motion.linear_velocity,
            angular_velocity=motion.angular_velocity,
            linear_acceleration=motion.linear_acceleration,
            angular_acceleration=motion.angular_acceleration,
        )
