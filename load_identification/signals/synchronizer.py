"""Synchronise joint states with wrenches: the joint state at the stamp of each wrench."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from load_identification.interface.batches import JointBatch, SynchronizedBatch, WrenchBatch
from load_identification.signals.joint_track import BEYOND_ALL_SENSE, NEVER, JointTrack
from load_identification.signals.stamps import StampGate
from load_identification.signals.two_sources import TwoSources
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

LATENCY = 1_000_000_000
"""Longest delay of a joint state after the wrench, and vice versa [ns]."""

MOST_FOREIGN, FOREIGN_NS = 200, 500_000_000
"""Number of consecutive wrenches of another frame after which the sensor has a new frame; a tenth
of them is enough over this time [ns]."""

GIVEN_UP = 500
"""Consecutive wrenches without a finite value after which the sensor has lost a channel."""

REFUSED = {
    'joint_state_names': '/joint_states dropped: a joint named twice, or none: robot driver?',
    'joint_state_length': '/joint_states dropped: arrays of different lengths: robot driver?',
    'joint_state_malformed': '/joint_states dropped: another definition of the message?',
    'wrench_malformed': '/wrench dropped: another definition of the message?',
    'wrench_not_finite': '/wrench dropped: NaN, infinite or above 1e6: sensor driver?',
}
"""Warnings for unusable messages, by reason; shown where no usable ones arrive."""

SHARE = 0.2
"""Share of the wrenches dropped for one reason from which on it is said [-]."""

MOSTLY = {
    'wrench_stamp_not_increasing': 'stamps not later than the one before: several read together '
    'and stamped then, sent out of order, or two publishers? have the driver stamp samples when '
    'they are measured'
}
"""Causes of dropping so many, by reason, in words; of others the reason is named."""

CLOCKS = 0.2
"""Difference of stamps beyond which two streams are reported to have different clocks [s]."""

ONE_A_POSE = 800_000_000
"""Interval from which samples may be one of each pose at rest [ns]."""


class Synchronizer:
    """Merge joint states of any number of publishers and interpolate them at each wrench.

    Gaps longer than `max_gap` are not bridged, nor are those across which the joints have jumped.
    A joint without samples for `max_gap`, while others continue, is not waited for. If a stream
    restarts, all earlier samples of every stream are forgotten.

    Parameters
    ----------
    wrench_delay : float
        The wrench was measured by this earlier than its stamp says [s].
    max_gap : float
        Longest gap that is bridged [s].
    """

    def __init__(self, wrench_delay: float, max_gap: float) -> None:
        self.dropped: Counter[str] = Counter()
        self.given = 0
        """Number of samples returned."""
        self.received = 0
        """Number of wrenches received."""
        self.apart = 0.0
        """Stamp of the newest wrench minus that of the newest joint state, as one came [s]."""
        self._delay = round(wrench_delay * 1e9)
        self._max_gap = round(max_gap * 1e9)
        self._hold = LATENCY + self._max_gap
        self.joints = JointTrack(self._max_gap, self._hold, self.dropped)
        self.sources = TwoSources()
        """Says where two publishers contradict each other."""
        self._change_frame(None)

    def follow(self, joints: Mapping[str, float]) -> None:
        """Wait only for these joints: names, and velocity limits [rad/s, m/s]."""
        self.joints.follow(joints)
        self.sources.follow(joints)

    def _change_frame(self, frame: str | None) -> None:
        """Set the sensor's frame; wrenches of another frame are forgotten."""
        self.frame = frame
        """Frame of the wrenches used; None before the first."""
        self._foreign, self._foreign_since, self._foreign_frame = 0, 0, ''
        # Per channel: whether it was ever finite, and for how many wrenches it has not been.
        self._finite_seen = np.zeros(6, dtype=bool)
        self._silent: IntArray = np.zeros(6, dtype=np.int64)
        self._wrench_gate = StampGate(self._max_gap, 'wrench', self.dropped)
        self._flush()

    def _flush(self) -> None:
        self.joints.flush()
        self._wrench_stamps: IntArray = np.empty(0, dtype=np.int64)
        self._wrenches: FloatArray = np.empty((0, 6))
        self._newest_wrench = self._newest_heard = NEVER

    def update(
        self, joints: Iterable[JointBatch], wrenches: Iterable[WrenchBatch]
    ) -> SynchronizedBatch | None:
        """Process new messages and return the samples completed, or None."""
        joints = list(joints)
        self.sources.update(joints)
        states = self.joints.accept(joints)
        stamps, rows, restarted = self._accept_wrenches(wrenches)
        of_joints, of_wrench = self.joints.newest_heard, self._wrench_gate.heard
        if states and of_joints is not None and of_wrench is not None:
            self.apart = (of_wrench - of_joints) * 1e-9
        if restarted or any(new.restarted for new in states):
            self._flush()
        for new in states:
            self.joints.add(new)
        self._wrench_stamps = np.concatenate([self._wrench_stamps, stamps])
        self._wrenches = np.concatenate([self._wrenches, rows])
        newest = int(self._wrench_stamps[-1]) if self._wrench_stamps.size else self._newest_wrench
        if newest != NEVER:
            # A wrench that came and is not finite, or waits in the gate, has the right clock too.
            self.joints.drop_after(max(newest, self._newest_heard) + self._hold)
        result = self._resolve()
        self._trim()
        return result

    def _accept_wrenches(
        self, batches: Iterable[WrenchBatch]
    ) -> tuple[IntArray, FloatArray, bool]:
        """Pass usable wrenches through their stamp gate."""
        stamps, values = [np.empty(0, dtype=np.int64)], [np.empty((0, 6))]
        batches = [batch for batch in batches if batch.stamps.size]
        self.received += sum(len(batch.stamps) for batch in batches)
        for batch in batches:
            if self.frame is None:
                self.frame = batch.frame
            if batch.frame != self.frame:
                self.dropped['wrench_frame_changed'] += len(batch.stamps)
                own = [int(each.stamps[-1]) for each in batches if each.frame == self.frame]
                if max(own, default=NEVER) >= batch.stamps[0]:
                    # The sensor in use goes on: there are two.
                    continue
                if not self._foreign:
                    self._foreign_since = int(batch.stamps[0])
                self._foreign += len(batch.stamps)
                self._foreign_frame = batch.frame
                lasting = int(batch.stamps[-1]) - self._foreign_since >= FOREIGN_NS
                if self._foreign >= (MOST_FOREIGN // 10 if lasting else MOST_FOREIGN):
                    self._change_frame(batch.frame)
                continue
            self._foreign = 0
            usable = self._usable(batch.wrench)
            self._newest_heard = int(batch.stamps[-1])
            stamps.append(batch.stamps[usable])
            values.append(batch.wrench[usable])
        wrench = np.concatenate(values)
        # A channel that is still not finite here is one that the sensor does not have.
        wrench = np.where(np.abs(wrench) < BEYOND_ALL_SENSE, wrench, np.nan)
        return self._wrench_gate.update(np.concatenate(stamps), wrench)

    def _usable(self, wrench: FloatArray) -> BoolArray:
        """Return which wrenches are finite in every channel that was finite and is not lost.

        Also those without a finite value once all are lost: sensor health has to know it.
        """
        finite: BoolArray = np.abs(wrench) < BEYOND_ALL_SENSE
        if finite.all():
            self._finite_seen[:], self._silent[:] = True, 0
            return finite[:, 0]
        seen = np.logical_or.accumulate(np.vstack([self._finite_seen, finite]))[1:]
        self._finite_seen = seen[-1]
        row = np.arange(len(wrench))[:, None]
        last = np.maximum.accumulate(np.where(finite, row, -1))
        silent = row - last + np.where(last < 0, self._silent, 0)
        self._silent = silent[-1]
        alive = seen & (silent <= GIVEN_UP)
        usable: BoolArray = (finite == alive).all(axis=1) & seen.any(axis=1)
        self._count('wrench_not_finite', ~usable)
        return usable

    def _count(self, reason: str, dropped: BoolArray) -> None:
        if dropped.any():
            self.dropped[reason] += int(dropped.sum())

    def _resolve(self) -> SynchronizedBatch | None:
        """Return the wrenches whose joint states are available."""
        if not self._wrench_stamps.size:
            return None
        times = self._wrench_stamps - self._delay
        ready = times <= self.joints.complete_until()
        overdue = ~ready & (times < self._wrench_stamps[-1] - self._hold)
        self._count('joint_state_missing', overdue)
        stamps, wrenches, times = self._wrench_stamps[ready], self._wrenches[ready], times[ready]
        waiting = ~ready & ~overdue
        self._newest_wrench = int(self._wrench_stamps[-1])
        self._wrench_stamps, self._wrenches = self._wrench_stamps[waiting], self._wrenches[waiting]
        if not stamps.size:
            return None
        position, velocity = self.joints.at(times)
        known = np.isfinite(position)
        usable = np.any(known, axis=1)
        self._count('joint_state_gap', ~usable)
        if not usable.any():
            return None
        self.given += int(usable.sum())
        carried = np.any(known, axis=0)
        return SynchronizedBatch(
            names=tuple(itertools.compress(self.joints.names, carried)),
            frame=self.frame or '',
            stamps=stamps[usable],
            position=position[usable][:, carried],
            velocity=velocity[usable][:, carried],
            wrench=wrenches[usable],
        )

    def _trim(self) -> None:
        """Drop joint states that no future wrench can need."""
        if not self.joints.stamps.size:
            return
        last = int(self.joints.stamps[-1])
        oldest = int(self._wrench_stamps[0]) if self._wrench_stamps.size else self._newest_wrench
        # A wrench may need two joint states before those around it.
        reach = min(last, oldest - self._delay) - 3 * self._max_gap
        self.joints.trim(max(reach, last - self._hold - 2 * self._max_gap))

    @property
    def often_dropped(self) -> str:
        """Which reason of `MOSTLY` many of all wrenches so far were dropped for; empty: none."""
        return '; '.join(
            f'{self.dropped[reason]} of {self.received} wrenches dropped: {why}'
            for reason, why in MOSTLY.items()
            if self.dropped[reason] > SHARE * self.received
        )

    def out_of_step(self, apart: float) -> str:
        """Return a warning if the stamps of the two streams are far apart [s]; empty otherwise."""
        if abs(apart) <= CLOCKS:
            return ''
        side = 'ahead of' if apart > 0 else 'behind'
        return (
            f'stamps {abs(apart):.1f} s {side} /joint_states: clocks of two hosts? '
            'synchronise them (chrony, PTP)'
        )

    def why_nothing(self, dropped: Counter[str]) -> str:
        """Return why all input is dropped, in words; empty if no reason is known.

        Parameters
        ----------
        dropped : collections.Counter
            Recently dropped messages and samples, by reason.
        """
        reason = dropped.most_common(1)[0][0] if dropped else ''
        if self._foreign and 'wrench_frame_changed' in dropped:
            return (
                f'all of /wrench dropped: frame {self._foreign_frame!r} in place of '
                f'{self.frame!r}: another sensor?'
            )
        refused = [each for each, _ in dropped.most_common() if each in REFUSED]
        if refused:
            return f'all of {REFUSED[refused[0]]}'
        if self.joints.missing:
            # Who requires them says which.
            return ''
        for topic, count, period, heard in (
            ('/joint_states', 'joint_states', self.joints.period, self.joints.newest_heard),
            ('/wrench', 'wrench', self._wrench_gate.period, self._wrench_gate.heard),
        ):
            if reason == f'{count}_stamp_zero':
                if (heard or 0) < 0:
                    return f'all of {topic} dropped: negative stamps: which clock has the driver?'
                return f'all of {topic} dropped: stamps of zero: no header.stamp filled in?'
            if reason == f'{count}_stamp_not_increasing':
                return f'all of {topic} dropped: stamps stand still: a driver or a clock paused?'
            if period > self._max_gap:
                table = '; or if each is a pose at rest, give a table: identify_load --static'
                return (
                    f'all of {topic} dropped: published every {period * 1e-9:.2f} s: '
                    f'set max_gap to {3e-9 * period:.1g}{table * (period > ONE_A_POSE)}'
                )
        clocks = self.out_of_step(self.apart)
        if clocks:
            return f'all of /wrench dropped: {clocks}'
        if reason == 'joint_state_jump':
            return (
                'all of /joint_states dropped: positions jump farther than joints can move: '
                'degrees, two publishers, or poses without the motion between?'
            )
        return f'all of the input dropped: {reason}, see docs/interface.md' if reason else ''
