"""Weighing at rest: poses with their gravity, and with what was known before each."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from load_identification.estimation.belief import play
from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.changes.state import State
from load_identification.estimation.events import EventKind
from load_identification.estimation.identifiability import Requirements
from load_identification.estimation.measurement import Block, finite_motion
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.estimation.sensor_offset import OffsetPrior
from load_identification.interface.batches import FilteredBatch, SynchronizedBatch
from load_identification.model.regressor import gravity_wrench
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.quantiser import Quantiser
from load_identification.weighing.reference import Memory, Reference
from load_identification.weighing.static_estimate import (
    NotAtRestError,
    StaticPose,
    errors_in_reading,
    offset_read,
)
from load_identification.weighing.static_monitor import IdleJoints, MotionHistory, StaticMonitor
from load_identification.weighing.weight import Known, Pose, TakenOff, Weight, still_block, weighed

EARLIER = (0, 1, 3)
"""Numbers of earlier poses that are tried for a weight; more tell hardly more: what is known when
the arm comes to rest contains them."""

ANOTHER_OFFSET = (
    *(kind for kind in EventKind if kind.changes_offset),
    *(EventKind.SENSOR_FRAME_CHANGED, EventKind.STAMPS_JUMPED_BACK),
)
"""Events with which poses and what was known are of another offset, robot or time."""

NOT_RESOLVED = (EventKind.CONTACT, EventKind.SAVE_TOOL, EventKind.CLEAR_TOOL)
"""Events that leave a change unresolved."""

SETTLED = 0.1
"""After so long at rest it is noted what is known besides the load [s]."""

FIRST_LOOK = 1.0
"""After so long at rest a pose is remembered, and again each time twice as long [s]."""

LONGEST_LOOK_NS = 2_000_000_000
"""A pose remembered rests on so much of it at most [ns]."""

SEEN_STILL = 1.0
"""After so long at rest the estimate knows the errors of the path [s]."""


class StaticWeigher:
    """Watches raw samples and filtered motion, and weighs what the arm holds at rest.

    Parameters
    ----------
    estimator : PayloadEstimator
        Knows offset and tool.
    sign : float
        From the raw wrench to what the load exerts on the sensor.
    driver : TakenOff
        Knows what the raw wrench comes without; nothing can be weighed while it is `changing`.
    """

    def __init__(self, estimator: PayloadEstimator, sign: float, driver: TakenOff) -> None:
        self.monitor = StaticMonitor()
        self.quantiser = Quantiser()
        """Knows how coarse the numbers of the raw wrench are."""
        self._idle = IdleJoints()
        self._estimator = estimator
        self._sign, self.driver = sign, driver
        self.noise = estimator.settings.noise
        self._handled = 0
        self._sensed: FilteredBatch | None = None
        self._motion = MotionHistory()
        self.memory = Memory()
        """Masses published, and what was known then."""
        self._change: tuple[int, float] | None = None
        # Slow noise [N, N m], and the stamp from which on no event has been reported [ns].
        self._slow, self._eventless = np.zeros(6), 0
        self._shown = np.full(6, np.nan)
        self.forget()

    def forget(self) -> None:
        """Forget every pose: the payload is another one, or the offset is."""
        self._forget_poses()
        self._known: Known | None = None
        self.memory.forget()

    def _forget_poses(self) -> None:
        """Forget them, but not what is known besides the load."""
        self._poses: deque[Pose] = deque(maxlen=EARLIER[-1])
        self._candidate: Pose | None = None
        self._next_look = FIRST_LOOK
        # In the pose in which it is to forget, the arm may have held something else.
        self._forgotten = self.monitor.newest

    def watch(
        self,
        batch: SynchronizedBatch,
        joints: Collection[str] = (),
        sliding: Collection[str] | None = None,
    ) -> None:
        """Take in raw samples.

        `joints` are those that carry the sensor, empty: not known; `sliding` those that slide,
        None: not known.
        """
        if not joints:
            self._idle.watch(batch)
            joints = tuple(name for name in batch.names if name not in self._idle.names)
        newest = self.monitor.newest
        if newest is not None and batch.stamps.size and batch.stamps[0] <= newest:
            self._motion.clear()
            self.forget()
            self._forgotten = None
            self._slow, self._eventless = np.zeros(6), 0
        if batch.stamps.size:
            self.quantiser.update(batch.stamps, batch.wrench)
        self._handle_events()
        rests = self.monitor.rests
        self.monitor.update(batch, joints, sliding)
        if self.monitor.rests != rests:
            self._moved()
        still = self.monitor.still_for() >= SETTLED
        if self._known is None and self._sensed is not None and still:
            self._known = self._known_now()
        if ((self.monitor.newest or 0) - self._since()) * 1e-9 >= self._next_look:
            self._next_look *= 2.0
            self._look()

    def _handle_events(self) -> None:
        """Give up all poses where the offset has been found to be another."""
        events = self._estimator.events.since(self._handled)
        self._handled = self._estimator.events.newest.number
        for event in events:
            if event.kind in ANOTHER_OFFSET:
                self.forget()
            self._eventless = self.monitor.newest or 0
            if event.kind is EventKind.SENSOR_FRAME_CHANGED:
                self._slow = np.zeros(6)
                self._shown = np.full(6, np.nan)
            # The next mass is of another load, or without another tool.
            self.memory.interrupt()
            if event.kind is EventKind.CHANGE_DETECTED:
                self._forget_poses()
                self._change = event.stamp, self._motion.travelled
            elif event.kind not in NOT_RESOLVED:
                self._change = None

    def _moved(self) -> None:
        """Remember the pose that the arm has left."""
        if self._candidate is not None:
            self._poses.append(self._candidate)
        self._candidate = self._known = None
        self._next_look = FIRST_LOOK

    def _since(self) -> int:
        """Return since when the arm stands still with the same payload, as far as known [ns]."""
        return max(self.monitor.since or 0, self._forgotten or 0)

    def _look(self) -> None:
        try:
            newest = self.monitor.newest or 0
            self._candidate = self._pose(max(self._since(), newest - LONGEST_LOOK_NS))
        except NotAtRestError:
            self._candidate = None

    def sense(self, batch: FilteredBatch) -> None:
        """Take in the filtered motion, for gravity at the poses."""
        if not batch.stamps.size:
            return
        self._sensed = batch
        self._idle.sense(batch)
        self._motion.add(batch)

    def remember(self, estimate: PayloadEstimate | None) -> None:
        """Note an estimate that is published, so that its load can be weighed against it."""
        self._handle_events()
        if estimate is None or estimate.unresolved or not estimate.identified[0]:
            self.memory.interrupt()
            return
        still = self.monitor.still_for() >= SEEN_STILL
        self.memory.note(
            float(estimate.values[0]), estimate.stamp, still, lambda: self._reference(still)
        )

    def remember_weight(self, weight: Weight) -> None:
        """Note a weight that is answered."""
        if weight.fits:
            pose, tool = weight.pose, self._estimator.tool
            here = Reference(weight.belief, pose.rest.end, pose.travelled, tool, still=True)
            self.memory.answered(weight.payload.mass, here)

    def _reference(self, still: bool) -> Reference:
        """Return what is known now."""
        belief, stamp = self._estimator.state
        travelled = self._motion.travelled_until(stamp)
        return Reference(belief, stamp, travelled, self._estimator.tool, still)

    def measured_as(self, mass: float) -> Reference | None:
        """Return what was known when a mass was published; None: it was not, or not lately [kg].

        Another offset or tool since then makes it another measurement.
        """
        self._handle_events()
        return self.memory.of(mass, self._estimator.tool)

    def set_calibrated(self, calibrated: OffsetPrior) -> None:
        """Use an offset as measured; the payload and all poses are forgotten."""
        self._estimator.set_offset(calibrated)
        self._handled = self._estimator.events.newest.number
        self.forget()

    def set_tool(self, tool: Tool) -> None:
        """Take a body off whatever is weighed and estimated from now on; zeros: none."""
        self._estimator.set_tool(tool)
        self.memory.interrupt()

    @property
    def sensed(self) -> int | None:
        """Stamp of the newest filtered sample [ns]; None: there is none yet."""
        return None if self._sensed is None else int(self._sensed.stamps[-1])

    @property
    def contact(self) -> bool:
        """Whether an external wrench acts that no load and no offset explains."""
        return self._estimator.changes.state is State.CONTACT

    @property
    def requirements(self) -> Requirements:
        """What it takes to call something identified."""
        return self._estimator.settings.requirements

    def unexplained(self) -> tuple[float, float]:
        """Return the force and the torque, now, that the estimate does not explain [N, N m]."""
        explained = None if self._sensed is None else self._estimator.explain(self._sensed)
        if explained is None:
            return np.nan, np.nan
        mean = np.nan_to_num(explained[1]).mean(axis=0)
        return float(np.linalg.norm(mean[:3])), float(np.linalg.norm(mean[3:]))

    def _known_now(self) -> Known:
        """Return what is known besides the load."""
        calibrated = self._estimator.sensor_offset.calibrated
        # Amid a change that is what was known before it.
        stamp, travelled = self._change or (self._estimator.newest, self._motion.travelled)
        if calibrated is not None:
            stamp = max(stamp, calibrated.stamp)
        belief = self._estimator.without_load()
        self._note_play(belief)
        return Known(belief, stamp, travelled)

    def average(self, since: int) -> StaticPose:
        """Average the samples of this rest from a stamp on [ns]; see `StaticMonitor.pose`.

        Noise slower than that is known from this rest, or the last long one without a contact.

        Raises NotAtRestError.
        """
        if self._estimator.changes.state is State.TRACKING:
            found = self.monitor.slow_scatter(max(self._since(), self._eventless))
            self._slow = self._slow if found is None else found
        return self.monitor.pose(since, self.noise, self.quantiser.steps).at_least(self._slow)

    def _pose(self, since: int) -> Pose:
        """Return the pose of this rest; NotAtRestError as of `average`, or without its gravity."""
        rest = self.average(since)
        gravity = self._motion.gravity(rest.start, rest.end)
        wrench = self._wrench(rest, gravity)
        block = self._still(gravity, wrench)
        if gravity is None or block is None:
            raise NotAtRestError('gravity unknown: no filtered motion of this pose')
        known = self._known or self._known_now()
        if not known.belief.model.systematic.suits(block):
            raise NotAtRestError('the robot has just become known: no estimate with it yet')
        rest = rest.with_play(self._note_play(known.belief), gravity)
        return Pose(rest, block, gravity, known, self._motion.travelled)

    def _note_play(self, belief: Belief) -> FloatArray:
        """Note and return the play (6,) of the channels of which motion has shown it, or once had.

        At each rest, because an arm that moves without a load shows none, and loses it.
        """
        self._shown = play.shown(belief, self._shown)
        calibrated = self._estimator.sensor_offset.calibrated
        once = np.zeros(6) if calibrated is None or calibrated.play is None else calibrated.play
        return np.where(np.isnan(self._shown), once, self._shown)

    def _wrench(self, rest: StaticPose, gravity: FloatArray | None) -> FloatArray:
        """Return the mean wrench (6,) as exerted, with what the driver takes off given back."""
        wrench: FloatArray = self._sign * rest.mean
        if gravity is not None:
            wrench = wrench + gravity_wrench(gravity[None], self.driver.taken_off)[0]
        return wrench

    def _still(self, gravity: FloatArray | None, wrench: FloatArray) -> Block | None:
        """Return a mean wrench as a block of the newest pose; None where its motion is unknown."""
        sensed = self._sensed
        if gravity is None or sensed is None or not (usable := finite_motion(sensed)).any():
            return None
        return still_block(sensed.select(usable), gravity, wrench)

    def weigh(self, since: int) -> Weight:
        """Weigh the payload in this pose, and in those before as far as that tells more.

        With every number of poses the offset is that from before the first of them, so nothing
        counts twice. Poses that do not fit one load (it has changed between them) widen the
        interval by their misfit, and so are left out where they do not help.

        The arm must have been at rest from the stamp `since` on [ns].

        Raises NotAtRestError.
        """
        self._handle_events()
        here, tool = self._pose(since), self._estimator.tool
        before, number = list(self._poses), len(self._poses)
        choices = [[*before[number - n :], here] for n in EARLIER if n <= number]
        if len(choices) == 1:
            return weighed(choices[0], tool)
        # One member of the bank suffices to choose by.
        best = min(choices, key=lambda poses: weighed(poses, tool, single=True).payload.mass_std)
        return weighed(best, tool)

    def offset_from(self, rest: StaticPose) -> OffsetPrior:
        """Return the offset that a pose shows with nothing but the tool on the sensor.

        Raises NotAtRestError if there is a tool and gravity is not known.
        """
        tool, gravity = self._estimator.tool, self._motion.gravity(rest.start, rest.end)
        if gravity is None and (tool.parameters.any() or self.driver.taken_off.any()):
            raise NotAtRestError('gravity unknown, so the tool cannot be taken off')
        wrench, of_errors = self._wrench(rest, gravity), None
        block = self._still(gravity, wrench)
        belief = self._estimator.without_load()
        if block is not None:
            of_errors = errors_in_reading(tool, block, belief.model.systematic)
        size = self._note_play(belief)
        rest = rest.with_play(size, gravity)
        read = offset_read(rest, wrench, gravity, tool, of_errors, self.noise)
        return replace(read, frame=self._estimator.frame, play=size if size.any() else None)
