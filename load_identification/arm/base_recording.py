"""What a force/torque sensor under an arm has recorded: a motion, and its static replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio

from load_identification.arm.acceleration_free import Placement
from load_identification.arm.arm import Arm
from load_identification.errors import DescriptionError, FrameError, RecordingError
from load_identification.model.robot import parse_description
from load_identification.signals.batches import CHANNELS, SynchronizedBatch
from load_identification.signals.motion_filter import CONVENTIONS
from load_identification.typing_aliases import FloatArray, IntArray

STOP = 0.01
"""Way over which readings of a slow replay are averaged to one stop [rad or m]."""


@dataclass(frozen=True, eq=False)
class BaseRecording:
    """An arm on its sensor, all at the same instants.

    Attributes
    ----------
    stamps : (n,) int array
        Increasing [ns].
    position : (n, J) array
        Joints in the order of the arm [rad or m].
    velocity : (n, J) array or None
        [rad/s or m/s]; None: to be had from differences of the positions.
    wrench : (n, 6) array
        Of the sensor on the arm, in the sensor's axes [N, N m].
    """

    stamps: IntArray
    position: FloatArray
    velocity: FloatArray | None
    wrench: FloatArray

    def __post_init__(self) -> None:
        n = len(self.stamps)
        arrays = {'position': self.position, 'wrench': self.wrench}
        if self.velocity is not None:
            arrays['velocity'] = self.velocity
        for name, array in arrays.items():
            if array.ndim != 2 or len(array) != n:
                raise RecordingError(f'{name} is {array.shape}; it must have {n} samples in rows')
            if not np.isfinite(array).all():
                bad = int(np.sum(~np.isfinite(array).all(axis=1)))
                raise RecordingError(f'{name} is not finite in {bad} of {n} samples')
        if self.wrench.shape[1] != len(CHANNELS):
            raise RecordingError(f'wrench is {self.wrench.shape}; it must have six columns')
        if n < 2 or np.any(np.diff(self.stamps) <= 0):
            raise RecordingError(f'{n} stamps; there must be two or more, each after the last')


@dataclass(frozen=True, eq=False)
class RestWrenches:
    """Readings at rest along a path, the static replay: weight and offset, nothing else.

    Attributes
    ----------
    position : (m, J) array
        Where the arm stood, in the order of the path [rad or m].
    wrench : (m, 6) array
        What the sensor read there, of the sensor on the arm [N, N m].

    Liu et al. 1998, eq. 20-21.
    """

    position: FloatArray
    wrench: FloatArray

    def __post_init__(self) -> None:
        m = len(self.position)
        if m < 2 or self.position.ndim != 2 or self.wrench.shape != (m, len(CHANNELS)):
            raise RecordingError(
                f'a static replay needs two stops or more, with a wrench each; position is '
                f'{self.position.shape} and wrench {self.wrench.shape}'
            )
        if not (np.isfinite(self.position).all() and np.isfinite(self.wrench).all()):
            raise RecordingError('the static replay is not finite')

    def at(self, position: FloatArray, tolerance: float = 0.02) -> FloatArray:
        """Return weight and offset (n, 6) at positions (n, J) on the path.

        Both depend on the position alone, so the nearest place on the path will do, whenever
        that was; between two stops along the straight line.

        Parameters
        ----------
        position : (n, J) array
        tolerance : float
            Largest distance from the path that is allowed [rad or m].

        Raises
        ------
        RecordingError
            If a position is further away.
        """
        start, way = self.position[:-1], np.diff(self.position, axis=0)
        square = np.sum(way**2, axis=1)
        between = np.empty((len(position), len(CHANNELS)))
        for k, sample in enumerate(position):
            ahead = np.sum((sample - start) * way, axis=1)
            share = np.clip(ahead / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
            distance = np.linalg.norm(start + share[:, None] * way - sample, axis=1)
            near = int(np.argmin(distance))
            if not distance[near] <= tolerance:
                raise RecordingError(
                    f'sample {k} is {distance[near]:.3g} rad from the path of the static replay; '
                    f'{tolerance} are allowed; replay the same motion'
                )
            part = share[near]
            between[k] = (1.0 - part) * self.wrench[near] + part * self.wrench[near + 1]
        return between


def rest_wrenches(replay: BaseRecording) -> RestWrenches:
    """Make a static replay of a recording of the motion replayed so slowly that nothing counts.

    Readings of a piece of the way are averaged, however long the arm took or stood there.
    """
    way = np.linalg.norm(np.diff(replay.position, axis=0, prepend=replay.position[:1]), axis=1)
    _, stop, count = np.unique(np.cumsum(way) // STOP, return_inverse=True, return_counts=True)
    both = np.hstack([replay.position, replay.wrench])
    mean = np.zeros((len(count), both.shape[1]))
    np.add.at(mean, stop, both / count[stop, None])
    position, wrench = np.hsplit(mean, [replay.position.shape[1]])
    return RestWrenches(position, wrench)


def base_recording(
    batch: SynchronizedBatch, arm: Arm, wrench_convention: str = 'on_sensor'
) -> BaseRecording:
    """Make a recording of wrenches with the joint states at their stamps.

    Samples that lack a position or a channel of the wrench are left out, and velocities where a
    joint has none throughout.

    Parameters
    ----------
    batch : SynchronizedBatch
        Joints in any order, others among them.
    arm : Arm
    wrench_convention : str
        A key of `CONVENTIONS`; the load is the arm.

    Raises
    ------
    RecordingError
        If a joint of the arm is not in it.
    """
    missing = [name for name in arm.joints if name not in batch.names]
    if missing:
        raise RecordingError(
            f'the joint states have no {", ".join(missing)}; they have {", ".join(batch.names)}'
        )
    columns = [batch.names.index(name) for name in arm.joints]
    position, velocity = batch.position[:, columns], batch.velocity[:, columns]
    used = np.isfinite(np.hstack([position, batch.wrench])).all(axis=1)
    moving = np.isfinite(velocity)
    published = bool(moving[used].any(axis=0).all())
    if published:
        used &= moving.all(axis=1)
    # The sign turns it into what the load exerts on the sensor; the sensor exerts the opposite.
    wrench = -CONVENTIONS[wrench_convention] * batch.wrench[used]
    return BaseRecording(
        batch.stamps[used], position[used], velocity[used] if published else None, wrench
    )


def sensor_placement(urdf: str, frame: str) -> Placement:
    """Return where a description has the sensor under the arm.

    Parameters
    ----------
    urdf : str
        Text of the description.
    frame : str
        A link that stands still: the root, or fixed to it.

    Raises
    ------
    FrameError
        If there is no such link.
    DescriptionError
        If it moves.
    """
    model = parse_description(urdf)
    if not model.existBodyName(frame):
        raise FrameError(f'the robot description has no link {frame!r} for the sensor')
    where = model.frames[model.getFrameId(frame, pinocchio.FrameType.BODY)]
    if where.parentJoint:
        raise DescriptionError(
            f'{frame!r} is moved by {model.names[where.parentJoint]!r}; a sensor under the arm '
            'stands still'
        )
    return np.array(where.placement.rotation), np.array(where.placement.translation)
