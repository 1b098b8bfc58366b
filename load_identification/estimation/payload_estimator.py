"""The payload on a wrist sensor, identified sample by sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np

from load_identification.estimation.delay import DelayEstimate
from load_identification.estimation.doubts import possible, second_opinion
from load_identification.estimation.drift import DriftWatch
from load_identification.estimation.events import (
    ANEW,
    BOTH,
    HELD,
    LOAD,
    OFFSET,
    Event,
    EventWatch,
)
from load_identification.estimation.guidance import Guidance
from load_identification.estimation.identification import Judgement, judge
from load_identification.estimation.known_offset import KnownOffset
from load_identification.estimation.momentum import MomentumRegressor
from load_identification.estimation.motion_noise import MotionNoise
from load_identification.estimation.payload_estimate import (
    PARAMETERS,
    UNKNOWNS,
    EstimatorSettings,
    PayloadEstimate,
    in_message_order,
    nothing_claimed,
)
from load_identification.estimation.recursive_least_squares import (
    RecursiveLeastSquares,
    Solution,
)
from load_identification.estimation.wrist_rows import (
    FORCE_COLUMNS,
    GROUPS,
    TORQUE,
    TORQUE_COLUMNS,
    all_rows,
    empty_memory,
    regressor,
    robust_weights,
)
from load_identification.model.joint_axes import RotationAxis
from load_identification.model.regressor import wrench_regressor
from load_identification.signals.batches import FilteredBatch
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

INERTIA = range(4, PARAMETERS)

BLOCK_NS = 100_000_000
"""Length of a block [ns]: a third of the time within which a change is to be noticed."""

AT_REST = np.array([2e-3, 0.02])
"""Largest angular velocity and acceleration of a sensor at rest [rad/s, rad/s²]."""

OPINION_BLOCKS = 10
"""Blocks after which the second opinion is asked again: it costs as much as an estimate."""

COARSEST = 10.0
"""A step of a quantiser is at most so many times the expected noise; more is a change [-]."""

UNWATCHED = (
    'samples come more slowly than the 10 Hz at which changes of load or offset are watched for'
)


class PayloadEstimator:
    """The estimator stage: payload and offset from filtered motion and wrench.

    The wrench that the load exerts on the sensor is -A phi + offset, with A the regressor of
    eq. 12: force rows involve mass, first moment and force offset, torque rows first moment,
    inertia and torque offset.
    """

    def __init__(self, settings: EstimatorSettings) -> None:
        self.settings = settings
        self.used = 0
        self.dropped: Counter[str] = Counter()
        self._tool = np.zeros(PARAMETERS)
        self._tool_covariance = np.zeros((PARAMETERS, PARAMETERS))
        self.besides: Callable[[FloatArray], FloatArray] = _nothing
        """Covariance of the payload that no residual shows, for a noise of force and torque (2,):
        that of whoever makes the wrench from something else."""
        self._seed: KnownOffset | None = None
        self._solution: Solution | None = None
        self._judgement: Judgement | None = None
        self._unexplained = 0.0
        self._guidance = Guidance(settings.force_noise, settings.torque_noise)
        self._least_squares: RecursiveLeastSquares
        self._watch = EventWatch(
            range(PARAMETERS), range(PARAMETERS, UNKNOWNS), self._empty, BLOCK_NS * 1e-9
        )
        momentum = settings.regressor == 'momentum'
        self._momentum = MomentumRegressor() if momentum else None
        self._steps = np.zeros(2)
        self.reset(keep_offset=False)

    @property
    def event(self) -> Event | None:
        """What happened last to the load or the sensor, as far as samples tell."""
        return self._watch.events[-1] if self._watch.events else None

    @property
    def events(self) -> tuple[Event, ...]:
        """The last events, newest last."""
        return tuple(self._watch.events)

    def reset(self, keep_offset: bool = True) -> None:
        """Forget the payload, and where asked all that samples have told of the offset."""
        self._solution = self._judgement = None
        self._opinion: tuple[str, ...] = ()
        self._opinion_due = 0
        self._guidance.reset()
        if self._momentum is not None:
            (self._momentum.begin_rows if keep_offset else self._momentum.reset)()
        if keep_offset and self._block is not None:
            self._least_squares = self._watch.before or self._least_squares
            self._least_squares.forget(range(PARAMETERS))
            self._watch.forget()
            return
        self._begin()
        self._block: int | None = None
        self._start = self._seen = 0
        self.newest = 0
        """Stamp of the newest sample used [ns]."""
        self._frame = ''

    def _empty(self, noise: FloatArray) -> RecursiveLeastSquares:
        memory = empty_memory(noise, self.settings.forgetting_time, HELD)
        self._let_drift(memory)
        return memory

    def _let_drift(self, memory: RecursiveLeastSquares) -> None:
        """Let the offset move as it has been seen to move at rest."""
        memory.walk = np.repeat([0.0, *self._drift.walk], [PARAMETERS, 3, 3])
        memory.rate = np.concatenate([np.zeros(PARAMETERS), self._drift.rate])

    def _begin(self) -> None:
        """Know nothing but an offset set from outside."""
        s = self.settings
        self._drift = DriftWatch(
            np.array([s.force_drift, s.torque_drift]), GROUPS, BLOCK_NS * 1e-9
        )
        self._drift.steps = self._steps
        self._least_squares = self._empty(np.array([s.force_noise, s.torque_noise]))
        self._past: Solution | None = None
        self._still = True
        self._pauses = 0
        self._specific_force = np.zeros(3)
        self._motion_noise = MotionNoise()
        self._watch.forget()
        if self._seed is not None:
            self._seed.place_in(self._least_squares)

    def expect_steps(self, steps: FloatArray) -> None:
        """Take force and torque for no finer than in such steps, (2,) [N, N m]."""
        s = self.settings
        # The first change that is seen at all may be a grasp.
        most = COARSEST * np.array([s.force_noise, s.torque_noise])
        self._steps = np.minimum(steps, most)
        self._watch.expect_steps(self._steps)
        self._drift.steps = self._steps

    def set_tool(self, parameters: FloatArray, covariance: FloatArray) -> None:
        """Take a body, (10,) with (10, 10) covariance, off the payload from now on."""
        self._tool = np.array(parameters, dtype=float)
        self._tool_covariance = np.array(covariance, dtype=float)

    @property
    def tool(self) -> tuple[FloatArray, FloatArray]:
        """Parameters (10,) and covariance (10, 10) of the tool; zeros: none."""
        return self._tool, self._tool_covariance

    def set_offset(self, offset: FloatArray, covariance: FloatArray, noise: FloatArray) -> None:
        """Begin anew with an offset known from elsewhere; the payload is forgotten.

        Parameters as those of `KnownOffset`.
        """
        self._seed = KnownOffset(offset, covariance, noise)
        self._solution = self._judgement = None
        self._opinion, self._opinion_due = (), 0
        self._guidance.reset()
        self._begin()

    def offset(self) -> tuple[FloatArray, FloatArray]:
        """Return what is known of the offset: mean (6,) and covariance (6, 6) [N, N m].

        As wide as the prior where nothing is known. While it is not told whether load or offset
        has changed, this is the offset of before.
        """
        solution = (self._watch.before or self._least_squares).solve()
        return solution.values[PARAMETERS:], solution.covariance[PARAMETERS:, PARAMETERS:]

    def update(self, batch: FilteredBatch) -> None:
        """Take in filtered samples; a stamp that is not newer or another frame starts afresh."""
        motion = np.hstack(
            [
                *(batch.linear_velocity, batch.linear_acceleration),
                *(batch.angular_velocity, batch.angular_acceleration),
            ]
        )
        # Linear velocities count in momentum form alone, angular accelerations without it.
        needed = motion[:, 3:] if self._momentum is None else motion[:, :9]
        usable: BoolArray = np.all(np.isfinite(needed), axis=1)
        self.dropped['motion_not_finite'] += int(np.sum(~usable))
        stamps, wrench = batch.stamps[usable], batch.wrench[usable]
        weight = None if (batch.weight == 1.0).all() else batch.weight[usable]
        if not stamps.size:
            return
        if self._block is not None and (stamps[0] <= self.newest or batch.frame != self._frame):
            self.reset(keep_offset=False)
        if self._block is None:
            self._block, self._start = 0, int(stamps[0])
        self._frame, self.newest = batch.frame, int(stamps[-1])
        motion = motion[usable]
        if self.settings.second_opinion and self._momentum is None:
            self._motion_noise.add(stamps, motion[:, [3, 4, 5, 9, 10, 11]])
        matrix = wrench_regressor(*np.hsplit(motion[:, 3:], 3))
        blocks = (stamps - self._start) // BLOCK_NS
        for block in np.unique(blocks).tolist():
            if block != self._block:
                self._end_block((block - self._block) * BLOCK_NS)
                self._block = block
            mine = blocks == block
            speed = np.nan_to_num(np.abs(motion[mine, 6:])).reshape(-1, 2, 3).max(axis=(0, 2))
            self._still &= bool(np.all(speed < AT_REST))
            self._specific_force += motion[mine, 3:6].sum(axis=0)
            rows = matrix[mine], wrench[mine]
            if self._momentum is not None:
                rows = self._momentum.update(stamps[mine], motion[mine, :9], wrench[mine])
            self._add(*rows, None if weight is None else weight[mine])
            self._seen = int(stamps[mine][-1])
            self._guide(batch, np.flatnonzero(usable)[mine], np.nan_to_num(matrix[mine]))
        self.used += len(stamps)

    def _guide(self, batch: FilteredBatch, places: IntArray, matrix: FloatArray) -> None:
        """Take in those samples of a batch that belong to one block."""
        if len(places) < len(batch.stamps):
            arrays = (f.name for f in fields(batch) if f.name != 'frame')
            batch = replace(batch, **{name: getattr(batch, name)[places] for name in arrays})
        self._guidance.update(batch, np.ones(len(places), dtype=bool), matrix)

    def _end_block(self, elapsed_ns: int) -> None:
        """Learn the noise, watch for events and drift; `elapsed_ns` is more after a pause."""
        elapsed, pause = elapsed_ns * 1e-9, elapsed_ns > BLOCK_NS
        memory = self._least_squares
        self._pauses = self._pauses + 1 if pause else 0
        past = memory.end_block(elapsed, pause)
        if self._trust_is_broken(past):
            self._seed = None
            self._begin()
            self._watch.tell(OFFSET, self._seen)
            return
        self._least_squares = self._watch.end_block(
            memory, past, elapsed, self._seen, self._specific_force, self._still
        )
        self._specific_force = np.zeros(3)
        if self._momentum is not None and self._least_squares is not memory:
            # Its memory reaches across what has changed.
            self._momentum.begin_rows()
        self._past = None if self._watch.before is not None else past
        if self._watch.before is not None:
            if self._least_squares is not memory:
                self._guidance.begin_doubt()
        else:
            kind = self.event.kind if self.event is not None else ''
            self._guidance.end_doubt(kind in (LOAD, BOTH, ANEW))
            if kind in (OFFSET, BOTH, ANEW) and self._least_squares is not memory:
                # What was set from outside is not the offset any more.
                self._seed = None
        if self._still and not pause and self._past is not None:
            mean = memory.newest(1)
            seen = mean.matrix[:, PARAMETERS:]
            whole = (seen**2).sum(axis=0)
            offset = np.divide(
                mean.values @ seen, whole, np.full(len(whole), np.nan), where=whole > 0
            )
            self._drift.add(offset)
            self._let_drift(self._least_squares)
        else:
            self._drift.interrupt()
        self._still = True

    def _trust_is_broken(self, past: Solution) -> bool:
        """Whether samples contradict an offset that was set from outside: re-zeroed since?"""
        if self._seed is None or self._watch.before is not None or self._drift.seen:
            return False
        age = (self._seen - self._start) * 1e-9
        return self._seed.contradicted_by(past, np.repeat(self._drift.walk**2 * age, 3))

    def _add(self, matrix: FloatArray, wrench: FloatArray, weight: FloatArray | None) -> None:
        rows = all_rows(matrix)
        if weight is not None:
            # As noisy as all others: what has no weight says nothing.
            scale = np.where(weight > 0.0, np.sqrt(weight), np.nan)[:, None]
            rows, wrench = scale[..., None] * rows, scale * wrench
        weights = None if self._past is None else robust_weights(rows, wrench, self._past)
        force, torque = FORCE_COLUMNS, TORQUE_COLUMNS
        self._least_squares.add(
            [(rows[:, :3, force], wrench[:, :3]), (rows[:, 3:, torque], wrench[:, 3:])], weights
        )

    def estimate(self) -> PayloadEstimate | None:
        """Return what is known now, or None before the first sample."""
        if self._block is None:
            return None
        if self._watch.known is not None and self._watch.before is not None:
            self._solution, self._judgement = self._watch.known, None
            return nothing_claimed(
                self._watch.known, self._tool, self._watch.why(), self.newest, self._frame
            )
        solution = self._solution = self._least_squares.solve()
        total, body = solution.values[:PARAMETERS], slice(PARAMETERS)
        parameters = total - self._tool
        # Errors of tool and total are taken for independent.
        covariance = solution.covariance.copy()
        other = self._tool_covariance + self.besides(solution.noise)
        covariance[body, body] += other
        slow = self._least_squares.slow_covariance(solution.noise)[body, body]
        both = np.array([covariance[body, body], slow + self._tool_covariance])
        values, (std, slow_std) = in_message_order(parameters, both)
        excitation = self._guidance.excitation(total, self._tool)
        # Without a row of torque nothing is known of its residual.
        residual = float(np.nan_to_num(solution.residual_rms[TORQUE]))
        self._unexplained = max(residual, excitation.unexplained)
        judgement = self._judgement = judge(
            values,
            np.maximum(std, slow_std),
            self.settings.requirements,
            excitation.inertial_torque,
            self._unexplained,
            excitation.rate,
        )
        warnings: tuple[str, ...] = (UNWATCHED,) if self._pauses >= HELD else ()
        if self.settings.second_opinion and self._momentum is None:
            if self._opinion_due <= self._block:
                self._opinion_due = self._block + OPINION_BLOCKS
                tool = self._tool, self._tool_covariance
                errors = self._motion_noise.covariance()
                self._opinion = second_opinion(
                    self._least_squares, solution.noise, errors, tool, values, std
                )
            warnings += self._opinion
        if judgement.identified[INERTIA].any():
            values, warning = possible(
                parameters, values, covariance[body, body], self.settings.bounding_ellipsoid
            )
            warnings += warning
        return PayloadEstimate(
            stamp=self.newest,
            frame=self._frame,
            parameters=parameters,
            offset=solution.values[PARAMETERS:],
            covariance=covariance,
            total=total,
            total_covariance=solution.covariance[body, body],
            values=values,
            std=std,
            identified=judgement.identified,
            reasons=judgement.reasons,
            warnings=warnings,
            reversed_sign=judgement.reversed_sign,
            untold=False,
            residual_rms=solution.residual_rms,
            noise=solution.noise,
        )

    @property
    def delay(self) -> DelayEstimate:
        """By how much the wrench's stamps are late, as far as motion has shown it."""
        return self._guidance.delay

    def advice(self, axes: Sequence[RotationAxis] = ()) -> str:
        """Return in words what motion would help most, from the present pose.

        Takes some milliseconds.

        Parameters
        ----------
        axes : sequence of RotationAxis
            About which the sensor can be turned; none: its own.
        """
        solution, judgement = self._solution, self._judgement
        if solution is None or judgement is None or not judgement.lacking:
            return ''
        memory, noise = self._least_squares, solution.noise
        advice = self._guidance.advice(
            solution.values[:PARAMETERS] - self._tool,
            (memory.stack(noise).factor, memory.slow_information(noise)),
            noise,
            self._unexplained,
            judgement,
            self.settings.requirements,
            axes,
            self._tool_covariance,
        )
        return advice.text if advice is not None else ''

    def explain(self, batch: FilteredBatch) -> tuple[FloatArray, FloatArray] | None:
        """Split measured wrenches by the last estimate.

        Returns
        -------
        predicted, external : (n, 6) arrays
            What tool and payload explain, and what contact alone would read; both as the load
            exerts them on the sensor [N, N m]. None before the first estimate.
        """
        if self._solution is None:
            return None
        values = self._solution.values
        predicted = -regressor(batch) @ values[:PARAMETERS]
        return predicted, batch.wrench - values[PARAMETERS:] - predicted


def _nothing(noise: FloatArray) -> FloatArray:
    return np.zeros((PARAMETERS, PARAMETERS))
