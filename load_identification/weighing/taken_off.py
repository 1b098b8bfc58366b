"""What a robot's driver takes off the wrench, as the weigher needs it."""

from __future__ import annotations

from typing import Protocol

from load_identification.typing_aliases import FloatArray


class TakenOff(Protocol):
    """What the robot's driver takes off the wrench."""

    @property
    def taken_off(self) -> FloatArray:
        """Inertial parameters (10,) of a body, about the origin of S."""

    @property
    def changing(self) -> bool:
        """Whether that is becoming another body: nothing can be weighed meanwhile."""
