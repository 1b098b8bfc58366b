"""Build the robot of a description, for the frame of the wrenches."""

from __future__ import annotations

from collections.abc import Sequence

from load_identification.errors import DescriptionError
from load_identification.model.robot import Robot
from load_identification.model.urdf import parse_description


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
        """What is missing to build the robot; empty: nothing."""
        self.refused_frame: str | None = None
        """Frame of the wrench for which the description cannot be used."""
        self._gravity = tuple(gravity)
        self._description: str | None = None
        self._named = False

    def set_description(self, description: str, sensor_frame: str = '') -> None:
        """Use a robot description; check that it has the sensor frame, if that is given.

        Raises
        ------
        DescriptionError
            If it cannot be used; the previous one is kept.
        """
        robot = Robot(description, sensor_frame, self._gravity) if sensor_frame else None
        if robot is None:
            parse_description(description)
        self._description, self.robot, self.refused_frame = description, robot, None
        self._named = bool(sensor_frame)
        self.waiting_for = '' if robot else 'the first wrench, for its frame'

    def for_frame(self, frame: str) -> Robot | None:
        """Return the robot, built for the wrench's frame if no sensor frame was given."""
        if self.robot is not None and not self._named and frame != self.robot.sensor_frame:
            self.robot = None
        if self.robot is None and self._description is not None and frame != self.refused_frame:
            try:
                self.robot = Robot(self._description, frame, self._gravity)
                self.refused_frame, self.waiting_for = None, ''
            except DescriptionError as error:
                self.refused_frame, self.waiting_for = frame, str(error)
        return self.robot
