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
