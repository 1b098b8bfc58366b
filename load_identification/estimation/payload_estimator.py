"""Identify the payload on a wrist sensor, block by block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from load_identification.estimation import drift, sensor_offset
from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.claim import OUT_OF_STEP, Claim, explained, warnings
from load_identification.estimation.belief.model import Model
from load_identification.estimation.belief.noise_levels import NoiseLevels
from load_identification.estimation.belief.robust_weighting import robust_block
from load_identification.estimation.belief.tool import NO_TOOL, Shared, Tool
from load_identification.estimation.changes.detection import ChangeDetection
from load_identification.estimation.changes.first_load import FirstLoad
from load_identification.estimation.changes.state import State
from load_identification.estimation.delay_estimate import DelayEstimate
from load_identification.estimation.events import EventKind, EventQueue
from load_identification.estimation.excitation import ExcitationMonitor
from load_identification.estimation.measurement import (
    PARAMETERS,
    Block,
    finite_motion,
    make_block,
    travelled,
    without_friction,
)
from load_identification.estimation.misfit.monitor import MisfitMonitor
from load_identification.estimation.payload_estimate import (
    EstimatorSettings,
    PayloadEstimate,
    Withheld,
    nothing_claimed,
)
from load_identification.estimation.pose_errors import PoseErrors
from load_identification.estimation.systematic_errors import carried_by, of_robot
from load_identification.estimation.usable_samples import UsableSamples
from load_identification.interface.batches import FilteredBatch, joined
from load_identification.model.frames import same_frame
from load_identification.model.robot import RotationAxis
from load_identification.signals.joint_noise import AVERAGED
from load_identification.typing_aliases import FloatArray

BLOCK_NS = round(1e9 * AVERAGED)
"""Length of a block [ns]: a third of the time within which a change must be detected."""

COARSEST = 10.0
"""Largest step of a quantiser, as a multiple of the expected noise; more is a change [-]."""

IMPLAUSIBLE = 10.0
"""Time from which a lasting contact of a moving sensor is implausible [s]."""


class PayloadEstimator:
    """Estimate payload and offset from filtered motion and wrench.

    The wrench that the load exerts on the sensor is -A phi + offset + errors, with A the
    regressor of eq. 12; see `belief.Belief` for the errors. Samples are processed in blocks of
    0.1 s.

    Parameters
    ----------
    settings : EstimatorSettings
    """

    def __init__(self, settings: EstimatorSettings) -> None:
        self.settings = settings
        self.newest = 0
        """Stamp of the newest sample, usable or not [ns]."""
        self.usable = UsableSamples()
        """Those that tell anything, how many they are, and since when none has."""
        self.dropped: Counter[str] = Counter()
        self.saved = NO_TOOL
        """The tool that was set last, in whatever sensor frame."""
        self._walk = walk = np.array([settings.force_drift, settings.torque_drift])
        self.sensor_offset = sensor_offset.SensorOffset(np.repeat(walk, 3))
        """The calibrated offset, and whether it still holds."""
        self.events = EventQueue()
        """Events of the load and the sensor, from samples and services."""
        noise = settings.force_noise, settings.torque_noise
        self._excitation = ExcitationMonitor(*noise, settings.wrench_delay)
        self.changes = ChangeDetection(self.events, settings.changes)
        e, gravity = settings.errors, np.array(settings.gravity)
        self.misfit = MisfitMonitor(gravity, settings.noise, e.field, e.joint_friction)
        """Names why no payload explains the measurement, if none does."""
        self._calibration = sensor_offset.CalibrationCheck(self.sensor_offset)
        self._steps = self._largest_steps = np.zeros(2)
        self._base, self._carried = False, (0, (0, 0, False, True), 0, 0.0)
        self._belief: Belief
        self._known: PayloadEstimate | None = None
        self.reset(keep_offset=False)

    def reset(self, keep_offset: bool = True) -> None:
        """Forget the payload; without `keep_offset` also the offset and the systematic errors."""
        self._excitation.reset()
        self.misfit.forget()
        self._known = None
        if keep_offset and self._block is not None:
            belief = self.changes.continued(self._belief)
            if self.changes.before is not None and not self.changes.distinguished:
                # The offset may be another one now, and hardly anything was known of it.
                self._begin(self.newest, self._belief.noise)
                return
            self._belief = belief.without(belief.model.places(belief.model.body))
            self.changes.forget()
            self._calibration.restart()
            self._gathered.clear()
            return
        self._block: int | None = None
        self._begin(0, NoiseLevels.of_expected(self.settings.noise))
        self._start, self.newest, self.frame = 0, 0, ''
        self.usable.restart()

    def _begin(self, stamp: int, noise: NoiseLevels, moved: bool = True) -> None:
        """Start from noise levels and a calibrated offset that holds, see `CalibrationCheck`."""
        s = self.settings
        self._known = None
        self._gathered: list[FilteredBatch] = []
        self._passed: tuple[tuple[int, FloatArray], ...] = ()
        self._ended, self._moved = stamp, -drift.TAKEN_BACK_NS
        self._first = FirstLoad(noise, self.events)
        self._newest_block: Block | None = None
        self._zero: drift.Zero | None = None
        joints, arm, slow, number = self._carried
        pose = PoseErrors(s.errors.field, s.errors.joint_zero)
        model = Model(
            systematic=of_robot(number, s.errors, joints, self._base, *arm),
            pose=pose,
            bank=drift.bank(self._walk, pose.used, not np.isfinite(s.error_time)),
            relaxation=s.error_time,
            forgetting_time=s.forgetting_time,
            steps=self._steps,
            slow=slow,
        )
        self._belief = self._calibration.begin(Belief.of_nothing(model, noise), stamp, moved)
        self.changes.forget()

    def expect_steps(self, steps: FloatArray) -> None:
        """Set the quantisation steps of force and torque, (2,) [N, N m]."""
        # The first step that is seen at all may be a grasp, hence the limit.
        self._largest_steps = steps
        self._steps = np.minimum(steps, COARSEST * self.settings.noise)
        self._belief = self._belief.in_steps(self._steps)

    @property
    def tool(self) -> Tool:
        """The tool that is subtracted; one of another sensor frame is not."""
        return self.saved if same_frame(self.saved.frame, self.frame) else NO_TOOL

    def set_tool(self, tool: Tool) -> None:
        """Subtract a tool from the payload from now on."""
        self.saved, self._known = tool.of(self.frame), None

    @property
    def state(self) -> tuple[Belief, int]:
        """What `estimate` is derived from, and the stamp of the newest sample in it [ns]."""
        return self.changes.settled(self._belief), self._ended

    @property
    def shared(self) -> Shared:
        """Dependence of tool and payload together on the errors of the sensor."""
        return Shared.by(self._belief)

    def set_offset(self, calibrated: sensor_offset.OffsetPrior) -> None:
        """Restart with a calibrated offset; the payload is forgotten."""
        self.sensor_offset.calibrate(calibrated)
        self._excitation.reset()
        self._begin(self.newest, self._belief.noise, moved=False)

    def offset(self) -> tuple[FloatArray, FloatArray]:
        """Return mean (6,) and covariance (6, 6) of the offset, as `without_load` [N, N m]."""
        found = self.changes.settled(self._belief).knowledge
        return found.offset, found.covariance[PARAMETERS:, PARAMETERS:]

    def without_load(self) -> Belief:
        """Return what is known besides the load, from before a change that is unresolved."""
        belief = self._calibration.trusted(self.changes.settled(self._belief), self.newest)
        return belief.without(belief.model.places(belief.model.body))

    def update(self, batch: FilteredBatch) -> None:
        """Process filtered samples; a stamp that is not newer, or another frame, restarts."""
        usable = finite_motion(batch)
        self.dropped['motion_not_finite'] += int(np.sum(~usable))
        if not usable.any():
            return
        batch = batch if usable.all() else batch.select(usable)
        self._start_if_new(batch)
        self.frame, self.newest = batch.frame, int(batch.stamps[-1])
        blocks = (batch.stamps - self._start) // BLOCK_NS
        for first, last in pairwise([0, *(np.flatnonzero(np.diff(blocks)) + 1), len(blocks)]):
            part = batch if last - first == len(blocks) else batch.select(slice(first, last))
            if (block := int(blocks[first])) != self._block:
                self._end_block(((int(part.stamps[0]), part.regressor[0]),))
                self._block = block
            self._gathered.append(part)
        self.usable.update(batch)

    def finish(self) -> None:
        """Process the unfinished block as a whole one, because no more samples will come."""
        self._end_block()

    def _start_if_new(self, batch: FilteredBatch) -> None:
        first, carried = int(batch.stamps[0]), carried_by(batch)
        jumped = first <= self.newest
        other = (batch.frame, carried) != (self.frame, self._carried)
        if self._block is not None and (jumped or other):
            self.reset(keep_offset=False)
            kind = EventKind.STAMPS_JUMPED_BACK if jumped else EventKind.SENSOR_FRAME_CHANGED
            self.events.add(kind, first)
        if self._block is None:
            self._block, self._start, self._carried = 0, first, carried
            self._base = bool(batch.gravity_by_tilt.shape[2])
            self.saved = self.saved.of(batch.frame)
            self.sensor_offset.enter(batch.frame)
            # Only now is it known how long ago a stored offset was measured.
            self._begin(first, NoiseLevels.of_expected(self.settings.noise))

    def _end_block(self, after: tuple[tuple[int, FloatArray], ...] = ()) -> None:
        """Predict, test, weight, combine and learn from one block; `after`: the next sample."""
        if not self._gathered:
            return
        known, model, measured = self._belief.values, self._belief.model, joined(self._gathered)
        samples, taken = without_friction(measured, known[model.friction])
        self._gathered, self._known = [], None
        beside, before, self._ended = (*self._passed, *after), self._ended, int(samples.stamps[-1])
        block = travelled(make_block(samples, before, None, taken, beside), self._newest_block)
        belief = self._belief.after(block)
        self.usable.end_block(block)
        if self.changes.state is State.TRACKING:
            block = robust_block(samples, block, belief, taken)
        self._newest_block, self._passed = block, ((self._ended, measured.regressor[-1]),)
        number = self.events.newest.number
        self._belief = self.changes.update(belief, block).in_steps(self._steps)
        self._excitation.update(samples)
        # In a wrong set-up, what is learned as friction may be its effect.
        calm = self.changes.before is None and not self.events.since(number)
        self.misfit.update(measured, calm, self._excitation.low_passed)
        self._see_to_events(number)
        told = self._largest_steps, bool(self.misfit.cause or self.misfit.suspicion)
        if self._first.changed(self._belief, block, *told, self.sensor_offset.holds):
            self._begin(self._ended, NoiseLevels.of_expected(self.settings.noise))
            self._first.known()
        if self._zero is None and self._belief.settled:
            offset, covariance = self.offset()
            self._zero = drift.Zero(block.stamp, offset, np.diag(covariance))
        tracking = self.changes.state is State.TRACKING
        if tracking and (other := self._calibration.update(self._belief, block)) is not None:
            self._belief = other
            self.events.add(EventKind.OFFSET_CHANGED, block.stamp)

    def _see_to_events(self, number: int) -> None:
        """Handle the events later than a number."""
        new = self.events.since(number)
        for event in new:
            if event.kind is EventKind.CHANGE_DETECTED:
                # An offset first determined within the last second may contain part of the change.
                if self._zero is not None and event.stamp - self._zero.stamp < 10 * BLOCK_NS:
                    self._zero = None
                self._excitation.begin_unresolved()
                self._calibration.restart()
            if event.kind.changes_offset:
                self._zero, self._moved = None, event.stamp
                self.sensor_offset.invalidate()
            elif event.kind is EventKind.UNCHANGED:
                if event.stamp - self._moved < drift.TAKEN_BACK_NS:
                    # That offset was a contact's, and what follows it is no drift.
                    self._zero = None
                self.sensor_offset.confirm(*self.offset(), event.stamp)
        if new and self.changes.state is State.TRACKING:
            self._excitation.end_unresolved(any(event.kind.changes_load for event in new))

    def estimate(self) -> PayloadEstimate | None:
        """Return the present estimate, None before the first usable sample; changes nothing."""
        if self.usable.newest is None:
            return None
        # Until another block ends, only the stamp changes, unless one is awaited after a gap.
        if self._known is None or self.usable.after_gap:
            self._known = self._claimed(self.tool, self.usable.newest)
        return replace(self._known, stamp=self.usable.newest)

    def estimate_with_tool(self) -> PayloadEstimate | None:
        """Return `estimate` of tool and payload together: as if there were no tool."""
        stamp = self.usable.newest
        return None if stamp is None else self._claimed(NO_TOOL, stamp)

    def _claimed(self, tool: Tool, stamp: int) -> PayloadEstimate:
        """Compute the estimate that may be published, with the stamp of the newest sample used."""
        belief = self.changes.settled(self._belief)
        withheld, why = self._withheld()
        if withheld is None:
            slowly, claim = self.changes.slowly.words(self._ended), self._claim(belief, tool)
            why = slowly or ('' if self.delay.far else self.misfit.puzzle)
            said = self._warnings(claim, self.misfit.ringing)
            return claim.estimate(stamp, self.frame, why, said, not slowly)
        # The cause suspected may be an error larger than expected; the warnings have its value.
        suspected = withheld is Withheld.SUSPECTED
        said = self._warnings(self._claim(belief, tool), '') if suspected else ()
        known = belief.knowledge, tool.parameters, belief.noise.overall
        return nothing_claimed(*known, why, stamp, self.frame, withheld, said)

    def _warnings(self, claim: Claim, ringing: str) -> tuple[str, ...]:
        late, low_passed = bool(self.delay_words), self._excitation.low_passed
        return warnings(claim, self._zero, self.newest, ringing, late, low_passed)

    def _claim(self, belief: Belief, tool: Tool) -> Claim:
        excitation = self._excitation.excitation(belief.knowledge.body, tool.parameters)
        doubt = OUT_OF_STEP if self.delay.beyond else self.misfit.doubt
        return Claim(belief, tool, excitation, self.settings, doubt)

    def _withheld(self) -> tuple[Withheld | None, str]:
        """Return why nothing is claimed, in words too; None if something is."""
        if self.usable.after_gap:
            return Withheld.CHANGED, self.usable.after_gap
        if self.misfit.cause:
            return Withheld.SET_UP_WRONG, self.misfit.cause
        if self.changes.before is not None:
            long = self.changes.open_for > IMPLAUSIBLE
            puzzles = (self.delay_words or self.misfit.puzzle,) if long else ()
            return Withheld.CHANGED, '; '.join(filter(None, (self.changes.why(), *puzzles)))
        return (Withheld.SUSPECTED, self.misfit.suspicion) if self.misfit.suspicion else (None, '')

    @property
    def delay(self) -> DelayEstimate:
        """Delay of the wrench's stamps, as far as motion has determined it."""
        return self._excitation.delay

    @property
    def delay_words(self) -> str:
        """Warning of that delay, with what to set; empty if it is small or not known."""
        return self._excitation.delay_words

    def advice(self, axes: Sequence[RotationAxis] = ()) -> str:
        """Describe the motion from the present pose that would help most; changes nothing.

        `axes` are those about which the sensor can be turned; none: its own.
        """
        slowly = self.changes.slowly.words(self._ended)
        if self._block is None or self.changes.before is not None or self.misfit.cause or slowly:
            return ''
        return self._excitation.advice(self._claim(self._belief, self.tool), axes)

    def explain(self, batch: FilteredBatch) -> tuple[FloatArray, FloatArray] | None:
        """Return `claim.explained` for samples, None before the first block; changes nothing."""
        settled, newest = self.changes.settled(self._belief), self._newest_block
        return None if newest is None else explained(settled, batch, newest.position)
