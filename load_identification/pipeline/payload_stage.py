"""The stages in series: from joint states and wrenches to estimate, weight and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Protocol

import numpy as np

from load_identification.estimation.changes.state import Look
from load_identification.estimation.events import EventKind
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import (
    FilteredBatch,
    JointBatch,
    SynchronizedBatch,
    WrenchBatch,
)
from load_identification.interface.parameters import CONVENTIONS, Parameters
from load_identification.model.frames import same_frame
from load_identification.model.robot import Robot, RotationAxis, joint_axes
from load_identification.pipeline import settings
from load_identification.pipeline.driver_payload import DriverPayload
from load_identification.pipeline.leaps import Leaps
from load_identification.signals.motion_filter import MotionFilter
from load_identification.signals.synchronizer import Synchronizer
from load_identification.typing_aliases import FloatArray, IntArray
from load_identification.weighing.plausibility import Units
from load_identification.weighing.static_weigher import StaticWeigher

MOST_DELAY_NS = 2_000_000_000
"""Longest delay of any filter [ns]."""


@dataclass(frozen=True, eq=False)
class Samples:
    """The output of a front for one batch of input."""

    raw: SynchronizedBatch | None = None
    """Joint states with the raw wrench."""
    filtered: FilteredBatch | None = None
    """Filtered motion and wrench completed by this input."""
    robot: Robot | None = None
    """Its joints carry the sensor; None: unknown."""
    dead: tuple[bool, ...] = ()
    """Dead channels of the raw wrench; empty: unknown."""
    legs: tuple[str, ...] = ()
    """Names of the legs of a parallel machine; empty: it is none, or unknown."""

    @property
    def sliding(self) -> tuple[str, ...] | None:
        """Names of the joints that slide instead of turning; None: unknown."""
        if self.robot is None:
            return self.legs or None
        return tuple(np.array(self.robot.joints)[self.robot.prismatic].tolist())


class Observer(Protocol):
    """Observes the payload stage, as a report does."""

    def add_raw(self, stamps: IntArray, wrench: FloatArray) -> None:
        """Take in raw wrenches (n, 6), with the sign of the filtered ones [ns, N, N m]."""

    def pieces(self, batch: FilteredBatch) -> Iterator[FilteredBatch]:
        """Cut a batch into pieces after each of which an estimate may be wanted."""

    def add_samples(self, batch: FilteredBatch) -> None:
        """Take in filtered samples that the estimator has processed."""

    def add_event(self, stamp: int, words: str) -> None:
        """Take in an event with its stamp [ns]."""

    def add_looks(self, looks: Sequence[Look]) -> None:
        """Take in state and scores of the change detection after each new block."""

    def wants_estimate(self, stamp: int) -> bool:
        """Return whether an estimate is wanted at a stamp [ns]."""

    def add_estimate(self, estimate: PayloadEstimate) -> None:
        """Take in an estimate."""


class WristFront:
    """The front of an arm with a wrist sensor: synchronizer, sensor health and motion filter."""

    def __init__(self, synchronizer: Synchronizer, motion_filter: MotionFilter) -> None:
        self.synchronizer = synchronizer
        self.motion_filter = motion_filter

    @property
    def dropped(self) -> Counter[str]:
        """Samples dropped, by reason."""
        return self.synchronizer.dropped + self.motion_filter.dropped

    def update(self, joints: Iterable[JointBatch], wrenches: Iterable[WrenchBatch]) -> Samples:
        """Process joint states and wrenches; return the samples completed."""
        robot = self.motion_filter.robot
        # Those of an earlier description may come no more.
        self.synchronizer.follow({} if robot is None else robot.limits_by_joint)
        raw = self.synchronizer.update(joints, wrenches)
        if raw is None:
            if self.synchronizer.joints.missing:
                self.motion_filter.wait_for_joints(self.synchronizer.joints.missing)
            return Samples()
        filtered = self.motion_filter.update(raw)
        robot = self.motion_filter.robot
        return Samples(raw, filtered, robot, self.motion_filter.health.dead)


class PayloadStage:
    """Feed the estimator and the static weigher with the same samples, live or from a recording.

    Parameters
    ----------
    observer : Observer, optional
        Receives everything that passes.
    """

    def __init__(self, parameters: Parameters, observer: Observer | None = None) -> None:
        self.sign = CONVENTIONS[parameters.wrench_convention]
        """Sign between the raw wrench and the wrench that the load exerts on the sensor."""
        self.estimator = settings.payload_estimator(parameters)
        self.driver = DriverPayload(self.estimator, settings.driver_payload(parameters))
        self.weigher = StaticWeigher(self.estimator, self.sign, self.driver)
        self.units = Units()
        """Says whether the arm could carry what the wrench implies."""
        self.newest_raw: SynchronizedBatch | None = None
        """The last raw samples, with the joint positions."""
        self._robot: Robot | None = None
        self._observer = observer
        self._skip_until = 0
        self._leaps = Leaps()
        self._number = 0
        self._look = self.estimator.changes.looks[-1]
        self._raw_start = self._delay = 0

    def update(self, samples: Samples) -> FilteredBatch | None:
        """Process the output of a front.

        Returns
        -------
        FilteredBatch or None
            The filtered samples, with what the driver subtracts from the wrench added back.
        """
        if samples.raw is not None:
            self._take_raw(samples.raw, samples)
        if samples.filtered is None or not samples.filtered.stamps.size:
            return samples.filtered
        filtered = self.driver.restored(samples.filtered)
        self.units.update(filtered, self.axes)
        self.weigher.sense(filtered)
        before, count = self.driver.taken_off, len(filtered.stamps)
        if self.driver.watch(filtered):
            self.estimator.dropped['driver_payload_changing'] += count
            if not self.driver.changing:
                self.driver_payload_changed(before)
        else:
            self._take_filtered(filtered)
        return filtered

    def driver_payload_changed(self, before: FloatArray) -> None:
        """Restart the averages at rest; add an event if the driver takes another weight off.

        Parameters
        ----------
        before : (10,) array
            Body that the driver took off the wrench [kg, kg m, kg m²].
        """
        self.weigher.monitor.begin_anew()
        if not self.driver.same(before):
            self.estimator.events.add(EventKind.DRIVER_PAYLOAD_CHANGED, self.estimator.newest)

    def forget_payload(self, kind: EventKind) -> None:
        """Forget the payload, keep tool and offset; report `kind` as the event."""
        # Samples still in the filter are from before and would bias the new estimate.
        raw, filtered = self.weigher.monitor.newest, self.estimator.newest
        if raw is not None and filtered:
            self._skip_until = raw + min(max(raw - filtered, 0), MOST_DELAY_NS)
        self.estimator.reset()
        self.estimator.events.add(kind, filtered)

    def elsewhere(self) -> str:
        """Say what is known in another sensor frame only, and what to call; empty: nothing."""
        tool, offset = self.estimator.saved, self.estimator.sensor_offset.measured
        now, driver = self.estimator.frame, self.driver
        known = (
            ('tool saved', tool.frame, 'save_tool again, or clear_tool'),
            (
                'offset calibrated',
                '' if offset is None else offset.frame,
                'calibrate_offset again',
            ),
            ("driver's payload told", driver.frame if driver.elsewhere else '', 'clear_payload'),
        )
        return '; '.join(
            f'{what} in frame {frame!r} is not used in {now!r}: call {service}'
            for what, frame, service in known
            if not same_frame(frame, now)
        )

    def axes(self, described: Robot | None = None) -> tuple[RotationAxis, ...]:
        """Return the axes of the joints in the present pose, none where it is unknown.

        They are those of the robot that carries the sensor, or of one `described` elsewhere.
        """
        robot, newest = described or self._robot, self.newest_raw
        if robot is None or newest is None or not set(robot.joints) <= set(newest.names):
            return ()
        position = newest.position[-1, [newest.names.index(name) for name in robot.joints]]
        return joint_axes(robot, position) if np.isfinite(position).all() else ()

    def _take_raw(self, batch: SynchronizedBatch, samples: Samples) -> None:
        newest = self.weigher.monitor.newest
        if batch.stamps.size:
            self.newest_raw = batch
            if newest is None or batch.stamps[0] <= newest:
                self._raw_start = int(batch.stamps[0])
            if self._observer is not None:
                self._observer.add_raw(batch.stamps, self.sign * batch.wrench)
        if any(samples.dead):
            batch = replace(batch, wrench=np.where(samples.dead, np.nan, batch.wrench))
        self._robot = robot = samples.robot
        self.weigher.watch(batch, robot.joints if robot is not None else (), samples.sliding)

    def _take_filtered(self, batch: FilteredBatch) -> None:
        begin, newest = int(batch.stamps[0]), self.estimator.newest
        if not self._raw_start <= newest < begin:
            # A filter's first sample is half a window later than its first input.
            self._delay = min(max(begin - self._raw_start, 0), MOST_DELAY_NS)
        # No filter has such a delay: the stamps have jumped back.
        if begin <= newest or begin < self._skip_until - 2 * MOST_DELAY_NS:
            self._skip_until = 0
        first = int(np.searchsorted(batch.stamps, self._skip_until, 'right'))
        if first:
            batch = batch.select(slice(first, None))
        observer = self._observer
        pieces = (batch,) if observer is None else observer.pieces(batch)
        for piece in pieces if batch.stamps.size else ():
            self._estimate(piece)
            if observer is not None:
                self._tell(piece, observer)

    def _estimate(self, batch: FilteredBatch) -> None:
        """Update the estimator with samples; what leaps is not joined to what came before."""
        first = 0
        for leap in self._leaps.before(batch).tolist():
            if leap > first:
                self._estimate_piece(batch.select(slice(first, leap)))
            first = leap
            self.weigher.forget()
            estimate = self.estimator.estimate()
            # Once the mass is known, a change is detected, and resolved.
            if estimate is None or not (estimate.identified[0] or estimate.unresolved):
                self.estimator.reset(keep_offset=False)
        self._estimate_piece(batch.select(slice(first, None)) if first else batch)

    def _estimate_piece(self, piece: FilteredBatch) -> None:
        """Update the estimator with samples and with the quantisation step of the wrench.

        Each filtered sample gets the quantisation step found in the raw samples that it contains.
        """
        delay = self._delay
        for since, steps in self.weigher.quantiser.until(int(piece.stamps[-1]) + delay):
            first = int(np.searchsorted(piece.stamps, since - delay))
            if first:
                self.estimator.update(piece.select(slice(None, first)))
                piece = piece.select(slice(first, None))
            self.estimator.expect_steps(steps)
        self.estimator.update(piece)

    def _tell(self, piece: FilteredBatch, observer: Observer) -> None:
        """Pass events, samples and the estimate to the observer."""
        for event in self.estimator.events.since(self._number):
            observer.add_event(event.stamp, event.words)
        self._number = self.estimator.events.newest.number
        observer.add_samples(piece)
        looks = self.estimator.changes.looks
        new = list(takewhile(lambda look: look is not self._look, reversed(looks)))
        observer.add_looks(new[::-1])
        self._look = looks[-1]
        if observer.wants_estimate(self.estimator.newest):
            estimate = self.estimator.estimate()
            if estimate is not None:
                observer.add_estimate(estimate)
