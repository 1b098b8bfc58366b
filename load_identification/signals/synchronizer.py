"""The joint state at the stamp of each wrench."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from load_identification.signals.batches import JointBatch, SynchronizedBatch, WrenchBatch
from load_identification.signals.stamp_gate import StampGate
from load_identification.typing_aliases import FloatArray, IntArray

HOLD_NS = 1_000_000_000
"""How long a wrench waits for its joint state, and a joint state for a wrench, in stamps [ns]."""

MOST_JOINTS = 256
"""More names than this on one topic are no robot; the rest is dropped, so memory stays fixed."""


class Synchronizer:
    """Merges joint states of any number of publishers and looks them up at each wrench.

    Between two joint states the position follows the cubic Hermite polynomial through both
    positions and velocities, or a straight line where velocities are not published; the velocity
    a straight line. A gap longer than `max_gap` is not bridged.

    Parameters
    ----------
    wrench_delay : float
        By how much the wrench is older than its stamp says [s].
    max_gap : float
        [s].
    """

    def __init__(self, wrench_delay: float, max_gap: float) -> None:
        self.dropped: Counter[str] = Counter()
        self.required: frozenset[str] | None = None
        """Joints worth waiting for; None where the robot is not known: all that are alive."""
        self._delay = round(wrench_delay * 1e9)
        self._max_gap = round(max_gap * 1e9)
        self.reset()

    def reset(self) -> None:
        """Forget every sample and every publisher."""
        self._frame: str | None = None
        self._finite_seen = np.zeros(6, dtype=bool)
        self._joint_gates: dict[frozenset[str], StampGate] = {}
        self._wrench_gate = StampGate(self._max_gap, 'wrench', self.dropped)
        self._names: list[str] = []
        self._flush()

    def _flush(self) -> None:
        self._joint_stamps: IntArray = np.empty(0, dtype=np.int64)
        self._joint_values: FloatArray = np.empty((0, 2, len(self._names)))
        self._wrench_stamps: IntArray = np.empty(0, dtype=np.int64)
        self._wrenches: FloatArray = np.empty((0, 6))

    def update(
        self, joints: Iterable[JointBatch], wrenches: Iterable[WrenchBatch]
    ) -> SynchronizedBatch | None:
        """Take in what has come and return what has become complete, or None."""
        for joint_batch in joints:
            self._add_joints(joint_batch)
        for wrench_batch in wrenches:
            self._add_wrenches(wrench_batch)
        result = self._resolve()
        self._trim()
        return result

    def _add_joints(self, batch: JointBatch) -> None:
        names = batch.names
        for name in names:
            if name not in self._names and len(self._names) < MOST_JOINTS:
                self._names.append(name)
                column = np.full((len(self._joint_stamps), 2, 1), np.nan)
                self._joint_values = np.concatenate([self._joint_values, column], axis=2)
        key = frozenset(names)
        if key not in self._joint_gates:
            if len(self._joint_gates) >= MOST_JOINTS:
                self._joint_gates.clear()
            self._joint_gates[key] = StampGate(self._max_gap, 'joint_states', self.dropped)
        count = len(names)
        stamps, rows, restarted = self._joint_gates[key].update(
            batch.stamps, np.hstack([batch.position, batch.velocity])
        )
        if restarted:
            self._flush()
        known = [i for i, name in enumerate(names) if name in self._names]
        columns = [self._names.index(names[i]) for i in known]
        position, velocity = rows[:, :count][:, known], rows[:, count:][:, known]
        finite = np.isfinite(position)
        self.dropped['joint_state_not_finite'] += int(np.sum(~finite.all(axis=1)))
        values = np.full((len(stamps), 2, len(self._names)), np.nan)
        values[:, 0, columns] = np.where(finite, position, np.nan)
        values[:, 1, columns] = np.where(finite & np.isfinite(velocity), velocity, np.nan)
        in_order = not len(self._joint_stamps) or (
            len(stamps) > 0 and stamps[0] >= self._joint_stamps[-1]
        )
        self._joint_stamps = np.concatenate([self._joint_stamps, stamps])
        self._joint_values = np.concatenate([self._joint_values, values])
        if not in_order:
            order = np.argsort(self._joint_stamps, kind='stable')
            self._joint_stamps = self._joint_stamps[order]
            self._joint_values = self._joint_values[order]

    def _add_wrenches(self, batch: WrenchBatch) -> None:
        if self._frame is None and batch.stamps.size:
            self._frame = batch.frame
        if batch.frame != self._frame:
            self.dropped['wrench_frame_changed'] += len(batch.stamps)
            return
        finite = np.isfinite(batch.wrench)
        self._finite_seen |= finite.any(axis=0)
        # A channel that has never been finite is one the sensor does not have.
        usable = finite[:, self._finite_seen].all(axis=1) & self._finite_seen.any()
        self.dropped['wrench_not_finite'] += int(np.sum(~usable))
        stamps, rows, restarted = self._wrench_gate.update(
            batch.stamps[usable], np.where(finite, batch.wrench, np.nan)[usable]
        )
        if restarted:
            self._flush()
        self._wrench_stamps = np.concatenate([self._wrench_stamps, stamps])
        self._wrenches = np.concatenate([self._wrenches, rows])

    def _resolve(self) -> SynchronizedBatch | None:
        """Return the wrenches whose joint states are there."""
        if not self._wrench_stamps.size:
            return None
        times = self._wrench_stamps - self._delay
        ready = times <= self._complete_until()
        overdue = ~ready & (times < self._wrench_stamps[-1] - HOLD_NS)
        self.dropped['joint_state_missing'] += int(np.sum(overdue))
        stamps, wrenches, times = self._wrench_stamps[ready], self._wrenches[ready], times[ready]
        waiting = ~ready & ~overdue
        self._wrench_stamps, self._wrenches = self._wrench_stamps[waiting], self._wrenches[waiting]
        if not stamps.size:
            return None
        position, velocity = self._interpolate(times)
        known = np.isfinite(position)
        usable = known.any(axis=1)
        self.dropped['joint_state_gap'] += int(np.sum(~usable))
        if not usable.any():
            return None
        carried = known.any(axis=0)
        return SynchronizedBatch(
            names=tuple(name for name, c in zip(self._names, carried, strict=True) if c),
            frame=self._frame or '',
            stamps=stamps[usable],
            position=position[usable][:, carried],
            velocity=velocity[usable][:, carried],
            wrench=wrenches[usable],
        )

    def _complete_until(self) -> int:
        """Return the stamp up to which every joint worth waiting for is known [ns]."""
        if not self._joint_stamps.size:
            return np.iinfo(np.int64).min
        alive_after = self._joint_stamps[-1] - self._max_gap
        valid = np.isfinite(self._joint_values[:, 0, :])
        newest = self._joint_stamps[len(valid) - 1 - np.argmax(valid[::-1], axis=0)]
        newest = np.where(valid.any(axis=0), newest, np.iinfo(np.int64).min)
        waited_for = newest >= alive_after
        if self.required is not None:
            waited_for &= np.array([name in self.required for name in self._names])
        return int(newest[waited_for].min()) if waited_for.any() else int(self._joint_stamps[-1])

    def _interpolate(self, times: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities at `times`, NaN where no two joint states bracket one.

        Joints that came in the same messages are done together.
        """
        position = np.full((len(times), len(self._names)), np.nan)
        velocity = position.copy()
        valid = np.isfinite(self._joint_values[:, 0, :])
        if valid.all():
            patterns, member = np.ones((1, len(valid)), dtype=bool), np.zeros(valid.shape[1], int)
        else:
            patterns, member = np.unique(valid.T, axis=0, return_inverse=True)
        for index, rows in enumerate(patterns):
            if rows.any():
                columns = np.flatnonzero(member == index)
                position[:, columns], velocity[:, columns] = interpolate(
                    self._joint_stamps[rows],
                    self._joint_values[rows, 0][:, columns],
                    self._joint_values[rows, 1][:, columns],
                    times,
                    self._max_gap,
                )
        return position, velocity

    def _trim(self) -> None:
        """Let go of joint states that no wrench to come can need."""
        if not self._joint_stamps.size:
            return
        newest = self._joint_stamps[-1]
        if self._wrench_stamps.size:
            newest = min(newest, self._wrench_stamps[0] - self._delay)
        keep_from = max(newest - 2 * self._max_gap, self._joint_stamps[-1] - HOLD_NS)
        first = int(np.searchsorted(self._joint_stamps, keep_from))
        self._joint_stamps = self._joint_stamps[first:]
        self._joint_values = self._joint_values[first:]


def interpolate(
    stamps: IntArray,
    position: FloatArray,
    velocity: FloatArray,
    times: IntArray,
    max_gap: int,
) -> tuple[FloatArray, FloatArray]:
    """Return position and velocity at given times from samples around them.

    Parameters
    ----------
    stamps : (n,) int array
        Of the samples, not decreasing [ns].
    position, velocity : (n, J) arrays
        Samples [rad or m, rad/s or m/s]; velocity NaN where not known.
    times : (k,) int array
        Where to look [ns].
    max_gap : int
        Samples farther apart than this are not joined [ns].

    Returns
    -------
    position, velocity : (k, J) arrays
        NaN where no two samples bracket the time.
    """
    after = np.clip(np.searchsorted(stamps, times, side='left'), 0, len(stamps) - 1)
    exact = stamps[after] == times
    before = np.where(exact, after, after - 1)
    gap = stamps[after] - stamps[before]
    bracketed = exact | ((before >= 0) & (times <= stamps[after]) & (gap > 0) & (gap <= max_gap))
    before = np.maximum(before, 0)
    step = np.where(gap > 0, gap, 1)[:, None] * 1e-9
    s = np.where(gap > 0, (times - stamps[before]) / np.maximum(gap, 1), 0.0)[:, None]
    p0, p1, v0, v1 = position[before], position[after], velocity[before], velocity[after]
    linear = p0 + s * (p1 - p0)
    hermite = linear + s * (1 - s) * (
        (1 - s) * (step * v0 - (p1 - p0)) - s * (step * v1 - (p1 - p0))
    )
    q = np.where(np.isfinite(hermite), hermite, linear)
    qd = v0 + s * (v1 - v0)
    nowhere = ~bracketed[:, None]
    return np.where(nowhere, np.nan, q), np.where(nowhere, np.nan, qd)


