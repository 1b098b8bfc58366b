"""What weighing deals in: a pose at rest, and the weight found."""

from __future__ import annotations

from dataclasses import dataclass

from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import StaticEstimate, StaticPose
from load_identification.weighing.verdict import Outlook


@dataclass(frozen=True, eq=False)
class Pose:
    """A pose at rest with all that weighing needs of it; wrench as the load exerts it.

    Attributes
    ----------
    rest : StaticPose
    mean : (6,) array
        [N, N m]
    gravity : (3,) array
        In S [m/s²].
    offset, offset_covariance : (6,) and (6, 6) arrays
        As known before the arm came to rest there.
    """

    rest: StaticPose
    mean: FloatArray
    gravity: FloatArray
    offset: FloatArray
    offset_covariance: FloatArray


@dataclass(frozen=True, eq=False)
class Weight:
    """The payload as weighed.

    Attributes
    ----------
    payload : StaticEstimate
        Tool taken off; its covariance widened where the poses do not fit one load.
    poses : int
        Poses it rests on.
    pose : Pose
        The last of them.
    fits : bool
        Whether the wrench is that of a load at all.
    outlook : Outlook
        What more of it would tell.
    """

    payload: StaticEstimate
    poses: int
    pose: Pose
    fits: bool
    outlook: Outlook
