"""What arms and platforms that weigh by efforts have in common, from joint states to samples.

The friction of a joint at a velocity reversal, behind the differentiator's low-pass, is here too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from load_identification.interface.batches import EffortBatch, FilteredBatch, SynchronizedBatch
from load_identification.signals.channel_monitor import ChannelMonitor
from load_identification.signals.differentiator import (
    DifferentiatedBatch,
    Differentiator,
    polynomial_kernels,
)
from load_identification.signals.rest import RestDetector
from load_identification.signals.stamps import StampGate
from load_identification.signals.velocity.check import PublishedVelocities
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

REACH = 0.4
"""Share of half a window that matters: beyond it the low-pass only ripples, within a tenth [-]."""

STEPS = 400
"""Number of points at which the low-pass's step response is tabulated."""


class EffortStage(ABC):
    """The stage before the estimator where joints or legs weigh, in place of `MotionFilter`.

    Parameters
    ----------
    names : sequence of J str
        Joints or legs, in the order of all columns.
    differentiator : Differentiator
        Filters positions, velocities and efforts with one kernel and one delay.
    max_gap : float
        Longest gap between samples that is bridged [s].
    """

    kind = 'joint'
    """What each of `names` is: a joint or a leg."""

    def __init__(self, names: Sequence[str], differentiator: Differentiator, max_gap: float):
        self.names = tuple(names)
        self.dropped: Counter[str] = differentiator.dropped
        self.waiting_for = f'the first {self.kind} states'
        """Reason why samples are not used, in words; empty: none."""
        self._differentiator = differentiator
        self._velocities = PublishedVelocities(len(names))
        self._gate = StampGate(round(max_gap * 1e9), 'joint_states', self.dropped)
        self._monitor, self._rest = ChannelMonitor(len(names)), RestDetector()
        self._step = step_response(differentiator.delay)
        self._states: SynchronizedBatch | None = None
        self._reason = ''

    @property
    def delay(self) -> float:
        """Age of an output relative to the last sample it depends on [s]."""
        return self._differentiator.delay

    @property
    def bunched(self) -> str:
        """Warning that stamps are too clustered to be filtered, in words; empty: no."""
        return self._differentiator.bunches.words('/joint_states')

    @property
    def wrong_velocities(self) -> str:
        """Warning of published velocities that are not used, in words; empty: none."""
        return self._velocities.words(self.names)

    def reset(self) -> None:
        """Discard all samples."""
        for part in (self._differentiator, self._monitor, self._rest):
            part.reset()

    def update(self, batch: EffortBatch) -> FilteredBatch | None:
        """Take in joint states; return the samples that they complete, or None.

        Their weights are in `whitening`; the wrench of a sample of weight zero is NaN.
        """
        self._reason = ''
        states = self._states = self._usable(batch)
        if states is not None:
            self._rest.update(states.stamps, states.position)
        out = None if states is None else self._differentiator.update(states)
        result = None if out is None else self._resolve(out)
        if self._reason or result is not None:
            self.waiting_for = self._reason
        return result

    @abstractmethod
    def _usable(self, batch: EffortBatch) -> SynchronizedBatch | None:
        """Return the usable samples, with columns as `names`."""

    @abstractmethod
    def _resolve(self, out: DifferentiatedBatch) -> FilteredBatch | None:
        """Compute motion and wrench of the frame that carries the load."""

    def _ordered(self, batch: EffortBatch) -> EffortBatch | None:
        """Return the states with columns as `names`; None where a message lacks one of them."""
        missing = [name for name in self.names if name not in batch.names]
        # Messages that have none of them are ignored.
        if 0 < len(missing) < len(self.names):
            every = np.ones(len(batch.stamps), dtype=bool)
            words = f'{self.kind} {", ".join(missing)} in one message'
            self._count('leg_missing' if self.kind == 'leg' else 'joint_missing', every, words)
        if missing:
            return None
        return batch.select_joints([batch.names.index(name) for name in self.names])

    def _gated(self, states: EffortBatch, keep: npt.NDArray[np.bool_]) -> SynchronizedBatch | None:
        """Return states whose stamps are in order, of those to keep (n,).

        NaN are velocities that are not those of the positions, and efforts of dead and frozen
        sensors.
        """
        rows = np.hstack([states.position, states.velocity, states.effort])
        stamps, rows, restarted = self._gate.update(states.stamps[keep], rows[keep])
        if restarted:
            self.reset()
        if not stamps.size:
            return None
        position, velocity, effort = np.hsplit(rows, 3)
        velocity = self._velocities.without(stamps, position, velocity)
        stuck = self._monitor.update(position, effort)
        dumb = ', '.join(self.names[k] for k in np.flatnonzero(stuck.any(axis=0)))
        self._count('effort_stuck', stuck.any(axis=1), f'a live effort of {dumb}')
        effort = np.where(stuck, np.nan, effort)
        return SynchronizedBatch(self.names, '', stamps, position, velocity, effort)

    def _rested(self, stamps: IntArray) -> BoolArray:
        """Return whether nothing has moved within the filter's window about stamps (n,) [ns]."""
        half = round(self.delay * 1e9)
        return self._rest.rested(stamps - half, stamps + half)

    def _count(self, reason: str, bad: npt.ArrayLike, wanted: str) -> None:
        """Count samples (n,) that cannot be used; where `_decides`, say what is wanted instead."""
        marked = np.asarray(bad, dtype=bool)
        self.dropped[reason] += int(marked.sum())
        if marked.size and self._decides(marked):
            self._reason = wanted

    def _decides(self, bad: BoolArray) -> bool:
        """Tell whether samples that cannot be used are why there is nothing: all of them."""
        return bool(bad.all())


def step_response(half_window: float) -> tuple[FloatArray, FloatArray]:
    """Return times and step response of the differentiator's low-pass, densely sampled."""
    times = np.linspace(-half_window, half_window, STEPS)
    kernel = polynomial_kernels(times[None], np.ones((1, STEPS)))[0, :, 0]
    response = np.cumsum(kernel) - 0.5 * kernel
    response[0], response[-1] = 0.0, 1.0
    return times, response


def smoothed_sign(
    rate: FloatArray, acceleration: FloatArray, step: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Return the low-passed sign of a rate.

    Coulomb friction jumps at a velocity reversal, and the measured force is low-passed. Within the
    window the rate is rate + acceleration t. The sign therefore changes once, at
    t = -rate / acceleration, and the low-pass of a step is its step response.

    Parameters
    ----------
    rate, acceleration : (n, J) arrays
        At the centre of the window [rad/s or m/s, and per s].
    step : (k,) and (k,) arrays
        Times [s] from one end of the window to the other, and the step response there: from 0
        to 1.
    """
    times, response = step
    slope = np.where(np.abs(acceleration) > 0.0, acceleration, np.finfo(float).tiny)
    with np.errstate(over='ignore'):
        turn = np.clip(-rate / slope, times[0], times[-1])
    sign: FloatArray = np.sign(slope) * (1.0 - 2.0 * np.interp(turn, times, response))
    return np.where(acceleration == 0.0, np.sign(rate), sign)


def least_speed(
    rate: FloatArray, acceleration: FloatArray, half_window: float, reach: float = REACH
) -> FloatArray:
    """Return the least speed of each joint within the low-pass's window, (n, J).

    Parameters
    ----------
    rate, acceleration : (n, J) arrays
        At the centre of the window [rad/s or m/s, and per s].
    half_window : float
        Half of the low-pass's window [s].
    reach : float
        Share of `half_window` that matters [-].
    """
    return np.maximum(np.abs(rate) - reach * half_window * np.abs(acceleration), 0.0)


def share_known(speed: FloatArray, low: float, full: float) -> FloatArray:
    """Return the weight of known friction at a speed: 0 below `low`, 1 above `full`, smooth.

    s^2 (3 - 2 s), s = (speed - low) / (full - low)
    """
    s = np.clip((speed - low) / (full - low), 0.0, 1.0)
    return np.asarray(s**2 * (3.0 - 2.0 * s))
