"""Hold the values that weighing exchanges: a pose at rest, and the weight found."""

from __future__ import annotations

from dataclasses import dataclass

from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import StaticEstimate, StaticPose
from load_identification.weighing.verdict import Outlook


@dataclass(frozen=True, eq=False)
class Pose:
    """A pose at rest with the data needed for weighing; wrench as exerted by the load.

    Attributes
    ----------
    rest : StaticPose
    mean : (6,) array
        Mean wrench [N, N m].
    gravity : (3,) array
        In S [m/s²].
    offset, offset_covariance : (6,) and (6, 6) arrays
        Offset known before the arm came to rest in this pose.
    """

    rest: StaticPose
    mean: FloatArray
    gravity: FloatArray
    offset: FloatArray
    offset_covariance: FloatArray


@dataclass(frozen=True, eq=False)
class Weight:
    """The weighed payload.

    Attributes
    ----------
    payload : StaticEstimate
        Tool subtracted; covariance inflated where the poses do not fit one load.
    poses : int
        Number of poses used.
    pose : Pose
        The last of them.
    fits : bool
        Whether the wrench is consistent with a load at all.
    outlook : Outlook
        Predicted std of the mass with more data.
    """

    payload: StaticEstimate
    poses: int
    pose: Pose
    fits: bool
    outlook: Outlook
