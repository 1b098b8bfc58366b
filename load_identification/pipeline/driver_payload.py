"""What the robot's driver believes that its flange carries, and takes off the wrench it sends."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.model.regressor import gravity_wrench
from load_identification.typing_aliases import FloatArray

RECENT_NS = 300_000_000
"""What the wrench was before the driver is told is an average over so much time [ns]."""

SEEN = 5.0
"""A step below so many standard deviations of a filtered sample is not looked for."""

COMPLETE, SAMPLES = 0.75, 5
"""The wrench has stepped where so many samples in a row have gone so far of what is expected."""

PATIENCE_NS = 1_000_000_000
"""A driver that takes its payload off the wrench has done so by then, since its answer [ns]."""


@dataclass(eq=False)
class _Change:
    """The driver is being told of another body.

    Attributes
    ----------
    body : (10,) array
        Of which it is told.
    before : (6,) array
        What the wrench was more than explained, before; NaN where that is not known [N, N m].
    told : int or None
        Stamp at which the driver had said that it holds it [ns].
    shares : list of float
        Of the step expected, how much each filtered sample since has gone; NaN: it says nothing.
    """

    body: FloatArray
    before: FloatArray
    told: int | None
    shares: list[float]


class DriverPayload:
    """Owns what the driver holds, and gives back what it takes off the wrench.

    Quasi-static: the driver is taken to subtract the gravity of the body at the present pose, and
    nothing of its inertia. Whether it takes it off at all is seen when it is told: the wrench
    steps by it or not, and as long as that is looked at samples are held back.

    Parameters
    ----------
    estimator : PayloadEstimator
        Says what is explained of a wrench.
    held : (10,) array, optional
        What the driver holds and takes off at first, about the origin of S [kg, kg m, kg m²].

    Attributes
    ----------
    held : (10,) array
        What the driver has been told and has taken.
    taken_off : (10,) array
        What the wrench comes without: `held`, or another body where the driver does not take that
        off.
    """

    def __init__(self, estimator: PayloadEstimator, held: FloatArray | None = None) -> None:
        self._estimator = estimator
        settings = estimator.settings
        self._noise = np.repeat([settings.force_noise, settings.torque_noise], 3)
        self.held: FloatArray = np.zeros(PARAMETERS) if held is None else held
        self.taken_off: FloatArray = self.held
        self._recent: deque[FilteredBatch] = deque()
        self._change: _Change | None = None

    def restore(self, held: FloatArray, taken_off: FloatArray) -> None:
        """Take what is known from before a restart, (10,) each."""
        self.held = held
        # The same array says that it is the same body.
        self.taken_off = held if np.array_equal(held, taken_off) else taken_off

    def same(self, body: FloatArray) -> bool:
        """Tell whether a body (10,) weighs as much as what is held, as far as can be seen."""
        down = 9.80665 * np.eye(3)
        step = gravity_wrench(down, self.held - body) / self._noise
        return bool((np.abs(step) < SEEN).all())

    @property
    def changing(self) -> bool:
        """Whether the driver is being told of another body: samples are held back meanwhile."""
        return self._change is not None

    @property
    def gravity(self) -> FloatArray:
        """Gravity in S at the newest sample, (3,), NaN where it is not known [m/s²]."""
        return self._recent[-1].gravity[-1] if self._recent else np.full(3, np.nan)

    def restored(self, batch: FilteredBatch) -> FilteredBatch:
        """Return filtered samples with what the driver takes off the wrench given back."""
        if not self.taken_off.any():
            return batch
        return replace(batch, wrench=batch.wrench + gravity_wrench(batch.gravity, self.taken_off))

    def hold(self, body: FloatArray) -> None:
        """Take note that the driver holds a body (10,), nobody having watched the wrench."""
        if self.same(self.taken_off):
            self.taken_off = body
        self.held = body

    def watch(self, batch: FilteredBatch) -> bool:
        """Take note of samples with what is taken off given back; tell whether to hold them back.

        Where the wrench has stepped, or will not any more, the change is concluded.
        """
        if self._recent and batch.stamps[0] <= self._recent[-1].stamps[-1]:
            self._recent.clear()
            self._change = None
        self._recent.append(batch)
        while self._recent[0].stamps[-1] < batch.stamps[-1] - RECENT_NS:
            self._recent.popleft()
        change = self._change
        if change is None:
            return False
        change.shares += self._shares(change, batch)
        if change.told is not None and (
            self._stepped(change) or batch.stamps[-1] >= change.told + PATIENCE_NS
        ):
            self.conclude()
        return True

    def begin(self, body: FloatArray) -> None:
        """Hold samples back from now on: the driver is being told of a body (10,)."""
        before = np.full(6, np.nan)
        explained = [self._estimator.explain(batch) for batch in self._recent]
        external = [each[1] for each in explained if each is not None]
        if external:
            before = np.concatenate(external).mean(axis=0)
        self._change = _Change(body, before, None, [])

    def told(self) -> None:
        """Take note that the driver has said that it holds what it was told of."""
        if self._change is not None:
            self._change.told = int(self._recent[-1].stamps[-1]) if self._recent else 0

    def conclude(self) -> bool:
        """End a change; tell whether the driver holds the new body, as far as samples show.

        It does where it has said so, or the wrench has stepped.
        """
        change, self._change = self._change, None
        if change is None:
            return False
        shares = [share for share in change.shares[-SAMPLES:] if np.isfinite(share)]
        stepped = self._stepped(change)
        if change.told is None and not (stepped and shares):
            return False
        self.held = change.body
        # Where no step can be seen there is none that matters.
        if not shares or float(np.mean(shares)) > 0.5:
            self.taken_off = change.body
        return True

    def _stepped(self, change: _Change) -> bool:
        """Tell whether the step is complete, or too small to be seen."""
        last = np.array(change.shares[-SAMPLES:])
        return len(last) == SAMPLES and not bool((last < COMPLETE).any())

    def _shares(self, change: _Change, batch: FilteredBatch) -> list[float]:
        """Return which part of the step each sample has gone; NaN where it is too small."""
        explained = self._estimator.explain(batch)
        if explained is None:
            return [np.nan] * len(batch.stamps)
        step = (explained[1] - change.before) / self._noise
        expected = gravity_wrench(batch.gravity, self.taken_off - change.body) / self._noise
        known = np.isfinite(step) & np.isfinite(expected)
        step, expected = np.where(known, step, 0.0), np.where(known, expected, 0.0)
        size = np.sum(expected**2, axis=1)
        seen = size > SEEN**2
        share = np.sum(step * expected, axis=1) / np.where(seen, size, 1.0)
        return [float(each) for each in np.where(seen, share, np.nan)]
