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


class NoRecordingLibraryError(RecordingError):
    """Neither rosbag2_py nor rosbags can be imported."""

    def __init__(self) -> None:
        super().__init__(
            'recordings need rosbag2_py, which comes with ROS 2, or the Python package rosbags, '
            'and neither can be imported: source ROS 2, or pip install rosbags'
        )
