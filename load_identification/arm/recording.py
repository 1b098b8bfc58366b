"""What an arm has done and felt, as it was measured: held in memory, or read from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from load_identification.arm.dynamics.transmission import Transmission
from load_identification.errors import RecordingError
from load_identification.interface.batches import SynchronizedBatch, joined
from load_identification.typing_aliases import FloatArray, IntArray

Change = Callable[[SynchronizedBatch], SynchronizedBatch]

STOP = 0.01
"""Way over which readings of a slow replay are averaged to one stop [rad or m]."""

FROM_PATH = 0.02
"""Largest distance from the path of a static replay [rad or m]."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Joint states with what was measured at the same instants, read again whenever needed.

    Only the stamps are in memory, so that its length hardly counts.
    """

    source: str
    """The recording, for errors."""
    joints: tuple[str, ...]
    stamps: IntArray
    """Increasing, (n,) [ns]."""
    read: Callable[[], Iterator[SynchronizedBatch]]
    """Yields all samples, in their order, as often as it is called; what was measured as wrenches
    of any size: efforts of the joints, or the wrench of a sensor under the arm on it, in its axes.
    NaN for what was not measured [N m, N], and for velocities that were not published."""
    has_velocities: bool
    """Whether any velocity was published."""
    farthest: Mapping[str, float] = field(default_factory=dict)
    """How far from zero each joint was [rad, m]."""
    varying: frozenset[str] = frozenset()
    """Joints whose effort ever changes."""
    began: int | None = None
    """Stamp of the first sample of the recording that this is a part of [ns]."""
    moved: frozenset[str] = frozenset()
    """Joints whose position changes by more than `FROM_ZERO`."""
    velocity_factors: Mapping[str, float] = field(default_factory=dict)
    """Joints whose velocities are a multiple of the derivative of the position, and which [-]."""
    velocity_lag: float = 0.0
    """How late published velocities are against the derivative of the positions [s]."""
    left_out: tuple[str, ...] = ()
    """Joint states that were not used although they have efforts, in words."""

    def __post_init__(self) -> None:
        if len(self.stamps) < 2 or np.any(np.diff(self.stamps) <= 0):
            words = 'there must be two or more, each after the last'
            raise RecordingError(f'{len(self.stamps)} stamps; {words}')

    @classmethod
    def held(
        cls,
        source: str,
        joints: tuple[str, ...],
        stamps: IntArray,
        position: FloatArray,
        velocity: FloatArray,
        measured: FloatArray,
    ) -> Recording:
        """Return a recording of samples in memory: (n, J), (n, J) and (n, k) arrays."""
        samples = SynchronizedBatch(joints, '', stamps, position, velocity, measured)
        return cls(
            source, joints, stamps, lambda: iter([samples]), bool(np.isfinite(velocity).any())
        )

    @property
    def seconds(self) -> FloatArray:
        """Times since the first sample of the recording, (n,) [s]."""
        return self.since_beginning(self.stamps)

    @property
    def _start(self) -> int:
        return int(self.stamps[0]) if self.began is None else self.began

    def since_beginning(self, stamps: IntArray) -> FloatArray:
        """Return times since the first sample of the recording [s]."""
        return np.asarray(1e-9 * (stamps - self._start), dtype=np.float64)

    def whole(self) -> SynchronizedBatch:
        """Return all of its samples."""
        return joined(list(self.read()))

    def part(self, samples: slice) -> Recording:
        """Return some of the samples, one after the other."""
        stamps = self.stamps[samples]

        def read() -> Iterator[SynchronizedBatch]:
            for batch in self.read():
                if batch.stamps[0] > stamps[-1]:
                    return
                inside = (batch.stamps >= stamps[0]) & (batch.stamps <= stamps[-1])
                if inside.any():
                    yield batch.select(inside)

        return replace(self, stamps=stamps, read=read, began=self._start)

    def changed(self, change: Change) -> Recording:
        """Return it with other values of the same instants."""
        return replace(self, read=lambda: map(change, self.read()))

    def of_joints(self, joints: Sequence[str]) -> Recording:
        """Return the columns of some joints, in their order, of positions and efforts.

        Raises RecordingError where it lacks one.
        """
        missing = [name for name in joints if name not in self.joints]
        if missing:
            raise RecordingError(
                f'the joint states of {self.source} have no efforts of {", ".join(missing)}; they '
                f'have those of {", ".join(self.joints) or "no joint"}'
            )
        columns = [self.joints.index(name) for name in joints]
        return self.changed(
            lambda x: replace(
                x,
                names=tuple(joints),
                **{n: getattr(x, n)[:, columns] for n in ('position', 'velocity', 'wrench')},
            )
        )

    def of_motors(self, transmission: Transmission | None) -> Recording:
        """Return it with the efforts of motors, where those published are of coupled joints."""
        if transmission is None:
            return self
        turn = transmission.motor_efforts
        return self.changed(lambda x: replace(x, wrench=turn(x.wrench, x.names)))

    def scaled(self, scale: FloatArray) -> Recording:
        """Return it with measurements in another unit, by a factor for each channel (k,)."""
        return self.changed(lambda x: replace(x, wrench=x.wrench * scale))

    def without_velocities(self) -> Recording:
        """Return it as if none had been published."""
        without = self.changed(lambda x: replace(x, velocity=np.full_like(x.velocity, np.nan)))
        return replace(without, has_velocities=False)

    def without_weight(self, replay: Recording) -> Recording:
        """Return it less what its static replay reads at the same places: weight and offset.

        Both depend on the position alone, so the nearest place on the path will do, whenever
        that was; between two stops along the straight line. The replay is the motion again, so
        slowly that nothing else counts, or `stilled`; its readings over a piece of the way are
        averaged, however long the arm took or stood there.

        Raises RecordingError if a position is further from the path than `FROM_PATH`, or there is
        no path.

        Liu et al. 1998, eq. 20-21.
        """
        place, wrench = _stops(replay)
        start, way = place[:-1], np.diff(place, axis=0)
        square = np.sum(way**2, axis=1)

        def lighter(batch: SynchronizedBatch) -> SynchronizedBatch:
            weight = np.empty_like(batch.wrench)
            for k, sample in enumerate(batch.position):
                ahead = np.sum((sample - start) * way, axis=1)
                share = np.clip(ahead / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
                distance = np.linalg.norm(start + share[:, None] * way - sample, axis=1)
                near = int(np.argmin(distance))
                if not distance[near] <= FROM_PATH:
                    raise RecordingError(
                        f'at {self.since_beginning(batch.stamps[k]):.3f} s {self.source} is '
                        f'{distance[near]:.3g} rad from the path of the static replay '
                        f'{replay.source}; {FROM_PATH} are allowed; replay the same motion'
                    )
                part = share[near]
                weight[k] = (1.0 - part) * wrench[near] + part * wrench[near + 1]
            return replace(batch, wrench=batch.wrench - weight)

        return self.changed(lighter)


def _stops(replay: Recording) -> tuple[FloatArray, FloatArray]:
    """Return where the replay was (m, J), and what the sensor read there (m, k)."""
    way, sums = 0.0, dict[float, FloatArray]()
    last: FloatArray | None = None
    for batch in replay.read():
        q = batch.position
        steps = np.diff(q, axis=0, prepend=q[:1] if last is None else last)
        along = way + np.cumsum(np.linalg.norm(steps, axis=1))
        way, last = float(along[-1]), q[-1:]
        both = np.hstack([batch.position, batch.wrench, np.ones((len(along), 1))])
        stops, first = np.unique(along // STOP, return_index=True)
        for stop, total in zip(stops.tolist(), np.add.reduceat(both, first), strict=True):
            sums[stop] = sums.get(stop, 0.0) + total
    if len(sums) < 2:
        raise RecordingError(
            f'{replay.source}: a static replay needs two stops or more, with a wrench each; it '
            f'has {len(sums)}'
        )
    mean = np.array(list(sums.values()))
    place, wrench = np.hsplit(mean[:, :-1] / mean[:, -1:], [len(replay.joints)])
    return place, wrench
