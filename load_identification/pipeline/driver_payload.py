"""The payload that the robot's driver assumes at the flange and subtracts from the wrench."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.model.frames import same_frame
from load_identification.model.regressor import gravity_wrench
from load_identification.typing_aliases import FloatArray

RECENT_NS = 300_000_000
"""Averaging window for the wrench before the driver is told of a payload [ns]."""

SEEN = 5.0
"""Smallest detectable step, in standard deviations of a filtered sample."""

COMPLETE, SAMPLES = 0.75, 5
"""The step is complete once `SAMPLES` consecutive samples show this share of the expected step."""

NOTHING = np.zeros(PARAMETERS)

PATIENCE_NS = 1_000_000_000
"""Time after its answer within which a driver that subtracts its payload has done so [ns]."""


@dataclass(eq=False)
class _Change:
    """A change of the driver's payload in progress."""

    body: FloatArray
    """Body that the driver is being told of, (10,) [kg, kg m, kg m²]."""
    before: FloatArray
    """Mean unexplained wrench before the change, (6,) [N, N m]; NaN where unknown."""
    told: int | None
    """Stamp at which the driver confirmed the body [ns]; None: not yet."""
    shares: list[float]
    """Share of the expected step in each filtered sample since; NaN: not informative."""


class DriverPayload:
    """Own the body that the driver holds, and add what it subtracts back to the wrench.

    The model is quasi-static: the driver subtracts the body's gravity wrench at the present pose
    and nothing of its inertia. The samples after the driver is told show whether it subtracts the
    body at all: the wrench steps or it does not. Samples are held back during this check.

    Parameters
    ----------
    estimator : PayloadEstimator
        Gives the explained part of a wrench.
    held : (10,) array, optional
        What the driver holds and subtracts at first, about the origin of S [kg, kg m, kg m²].
    """

    def __init__(self, estimator: PayloadEstimator, held: FloatArray | None = None) -> None:
        self._estimator = estimator
        settings = estimator.settings
        self._noise = np.repeat([settings.force_noise, settings.torque_noise], 3)
        self.held: FloatArray = np.zeros(PARAMETERS) if held is None else held
        """Body (10,) that the driver has been told of and has accepted."""
        self._taken_off: FloatArray = self.held
        self.frame = self._now = ''
        """Sensor frame in which both bodies are given; empty: not known yet."""
        self._recent: deque[FilteredBatch] = deque()
        self._change: _Change | None = None

    @property
    def taken_off(self) -> FloatArray:
        """Body (10,) missing from the wrench: `held`, or another body if the driver does not
        subtract `held`; zeros where it is known in another sensor frame only."""
        return NOTHING if self.elsewhere else self._taken_off

    @property
    def elsewhere(self) -> bool:
        """Whether what the driver holds is known in another sensor frame only."""
        some = bool(self.held.any() or self._taken_off.any())
        return some and not same_frame(self.frame, self._now)

    def restore(self, held: FloatArray, taken_off: FloatArray, frame: str = '') -> None:
        """Restore both bodies from before a restart, (10,) each, in a sensor frame."""
        # Identical arrays mark both as the same body.
        taken_off = held if np.array_equal(held, taken_off) else taken_off
        self.held, self._taken_off, self.frame = held, taken_off, frame

    def same(self, body: FloatArray) -> bool:
        """Return whether a body (10,) has the weight of `taken_off`, as far as can be seen."""
        down = STANDARD_GRAVITY * np.eye(3)
        step = gravity_wrench(down, self.taken_off - body) / self._noise
        return bool((np.abs(step) < SEEN).all())

    @property
    def changing(self) -> bool:
        """Whether the driver is being told of another body; samples are held back meanwhile."""
        return self._change is not None

    @property
    def gravity(self) -> FloatArray:
        """Gravity in S at the newest sample, (3,), NaN where unknown [m/s²]."""
        return self._recent[-1].gravity[-1] if self._recent else np.full(3, np.nan)

    def restored(self, batch: FilteredBatch) -> FilteredBatch:
        """Return filtered samples with the wrench that the driver subtracts added back.

        Bodies whose frame is not known are in that of the samples.
        """
        self._now, self.frame = batch.frame, self.frame or batch.frame
        if not self.taken_off.any():
            return batch
        wrench = batch.wrench + gravity_wrench(batch.gravity, self.taken_off)
        added = np.full(len(batch.stamps), self.taken_off[0])
        return replace(batch, wrench=wrench, added_back=added)

    def hold(self, body: FloatArray) -> None:
        """Record that the driver holds a body (10,), without having watched the wrench."""
        self._set(body, body if self.same(self.held) else self.taken_off)

    def _set(self, held: FloatArray, taken_off: FloatArray) -> None:
        self.held, self._taken_off, self.frame = held, taken_off, self._now

    def watch(self, batch: FilteredBatch) -> bool:
        """Process samples with the driver's share added back; return whether to hold them back.

        A change ends once the wrench has stepped, or when it is too late for a step.
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
        """Record that the driver has confirmed the body that it was told of."""
        if self._change is not None:
            self._change.told = int(self._recent[-1].stamps[-1]) if self._recent else 0

    def conclude(self) -> bool:
        """End a change; return whether the driver holds the new body, judged by the samples.

        It holds the body if it has confirmed it or if the wrench has stepped.
        """
        change, self._change = self._change, None
        if change is None:
            return False
        shares = [share for share in change.shares[-SAMPLES:] if np.isfinite(share)]
        stepped = self._stepped(change)
        if change.told is None and not (stepped and shares):
            return False
        # A step too small to be seen is too small to matter.
        seen = not shares or float(np.mean(shares)) > 0.5
        # One that holds nothing takes nothing off, even if it never did.
        unseen = self.taken_off if change.body.any() else NOTHING
        self._set(change.body, change.body if seen else unseen)
        return True

    def _stepped(self, change: _Change) -> bool:
        """Return whether the step is complete, or too small to be seen."""
        last = np.array(change.shares[-SAMPLES:])
        return len(last) == SAMPLES and not bool((last < COMPLETE).any())

    def _shares(self, change: _Change, batch: FilteredBatch) -> list[float]:
        """Return each sample's share of the expected step; NaN where the step is too small."""
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
