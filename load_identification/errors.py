"""What this package raises at its boundary: always with the bad value and what is allowed."""

from __future__ import annotations


class LoadIdentificationError(ValueError):
    """Base of every error this package raises on purpose."""


class ParameterError(LoadIdentificationError):
    """A parameter has a value that cannot be used."""


class DescriptionError(LoadIdentificationError):
    """A robot description cannot be used."""


class FrameError(DescriptionError):
    """A frame is not a link of the robot description."""


class RecordingError(LoadIdentificationError):
    """A recording cannot be read or lacks a topic."""


class NoRosbagsError(RecordingError):
    """The Python package rosbags is missing: no ROS distribution packages it."""

    def __init__(self) -> None:
        super().__init__(
            'recordings need the Python package rosbags, which is not installed: pip install '
            '--user rosbags, on Ubuntu 24.04 and later with --break-system-packages'
        )
