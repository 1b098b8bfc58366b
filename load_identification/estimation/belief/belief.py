"""The joint posterior of payload, offset and errors: one triangle per walk of the drift bank.

    y_k = (A_k + sum_j n_j D_jk) phi + o_k + H(u_k, x_k) h + b_k + K_k s_k + e_k

A belief is immutable: time updates and measurements return a new one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from load_identification.estimation import drift
from load_identification.estimation.belief.error_budget import Knowledge, known
from load_identification.estimation.belief.error_scales import RELAX_EVERY, relaxed
from load_identification.estimation.belief.linearisation import Start, keep, linearised
from load_identification.estimation.belief.model import FIELD, POUR_EVERY, Model
from load_identification.estimation.belief.motion_memory import MotionMemory
from load_identification.estimation.belief.noise_levels import NoiseLevels
from load_identification.estimation.belief.prediction import Prediction
from load_identification.estimation.measurement import GROUPS, PARAMETERS, Block
from load_identification.numerics.triangle import (
    combine_all,
    forget,
    forget_along,
    log_likelihoods,
    prior_triangle,
    root_covariance,
    std_of_last,
    time_updates,
    values,
    walk,
)
from load_identification.typing_aliases import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Belief:
    """A belief, and the blocks that are kept while the linearisation point is uncertain."""

    model: Model
    triangles: tuple[FloatArray, ...]
    """Square-root information of all unknowns, one triangle for each walk, each
    (size + 1, size + 1)."""
    scores: FloatArray
    """Log likelihoods of the walks, (k,)."""
    body: FloatArray
    """Linearisation point, (10,): the phi at which the columns of the systematic errors are
    evaluated."""
    about: FloatArray
    """Systematic errors, as known from loads before, at which the columns of phi are evaluated
    until phi is known, (N,): the product of a tilt and of a first moment still unknown is not
    small."""
    load: FloatArray
    """phi under which the pose field in the triangles is, see `PoseErrors.variances`, (10,)."""
    noise: NoiseLevels
    scales: FloatArray
    """Factors on the prior standard deviations of each class, (classes + 1,); that of the field is
    last."""
    prior: FloatArray
    """Variances of the systematic errors by their priors alone, those in the triangles, (N,)."""
    blur: FloatArray
    """Part of the information on systematic errors and phi that is due to noise of the
    accelerations, (N + 10, N + 10); see `error_budget.sharpened`."""
    memory: MotionMemory
    """What earlier motion does to the rows of a block, under the load `body`."""
    age: float = 0.0
    """Time since the load last changed [s]."""
    unrelaxed: float = 0.0
    """Time in motion since the systematic errors were last relaxed [s]."""
    start: Start | None = None
    """State before the kept blocks; None: no blocks are kept any more."""
    held: tuple[Block, ...] = ()
    held_noise: FloatArray | None = None
    """Noise with which the kept blocks were weighted, (2, 2)."""
    _newest: list[tuple[Block, FloatArray]] = field(default_factory=list, init=False)
    """The block asked for last, and its `rows`."""

    @classmethod
    def of_nothing(cls, model: Model, noise: NoiseLevels) -> Belief:
        """Return the prior, before any measurement."""
        scales = np.ones(FIELD + 1)
        parts = np.nan_to_num(model.bank.path_parts, nan=1.0)
        triangles = tuple(prior_triangle(model.std(scales, part)) for part in parts)
        scores, memory = np.zeros(len(triangles)), MotionMemory.of(model.systematic.play_std)
        return cls(
            model=model,
            triangles=triangles,
            scores=scores,
            body=np.zeros(PARAMETERS),
            about=np.zeros(model.systematic.size),
            load=np.zeros(PARAMETERS),
            noise=noise,
            scales=scales,
            prior=model.std(scales)[model.errors] ** 2,
            blur=model.no_blur,
            memory=memory,
            start=Start(triangles, scores, model.no_blur, np.zeros(PARAMETERS), memory),
        )

    @cached_property
    def weight(self) -> FloatArray:
        """Posterior weight of each walk, (k,)."""
        return drift.weights(self.scores, self.model.bank.first)

    @cached_property
    def best(self) -> int:
        """Index of the walk of largest weight, of equal ones the first, whatever the rounding."""
        return int(np.argmax((self.scores + self.model.bank.first).round(6)))

    @property
    def triangle(self) -> FloatArray:
        """The triangle of the walk of largest weight."""
        return self.triangles[self.best]

    @cached_property
    def values(self) -> FloatArray:
        """Most probable unknowns given that walk, (size,)."""
        return values(self.triangle)

    def values_of(self, member: int) -> FloatArray:
        """Return the most probable unknowns given the walk of a member, (size,)."""
        return self.values if member == self.best else values(self.triangles[member])

    @cached_property
    def knowledge(self) -> Knowledge:
        """Means and covariances of the mixture of all walks."""
        return known(self)

    @cached_property
    def compliance(self) -> float:
        """Size of the cell's compliance as far as it is known, see `ErrorPriors` [s²]."""
        errors = self.values[self.model.errors]
        return float(np.abs(errors[self.model.systematic.compliance]).sum())

    @property
    def delayed(self) -> FloatArray:
        """Errors (N,) at which the columns of phi are evaluated once it is known, of a delay."""
        return self.model.systematic.delayed(self.values[self.model.errors])

    @property
    def settled(self) -> bool:
        """Whether the linearisation point is final, so that no blocks are kept."""
        return self.start is None

    @cached_property
    def _path_variance(self) -> FloatArray:
        return self.model.path_variance(self.scales, self.weight, self.body)

    def moved(self, elapsed: float, angle: float) -> tuple[FloatArray, FloatArray]:
        """Return `Model.moved` of this belief."""
        return self.model.moved(elapsed, angle, self._path_variance)

    def after(self, block: Block) -> Belief:
        """Apply the time update to a block's time; at rest only clocks go on, no other error."""
        later = replace(
            self,
            triangles=tuple(time_updates(self.triangles, *self.moved(block.elapsed, block.angle))),
            scores=drift.discounted(self.scores, block.elapsed / self.model.relaxation),
            age=self.age + block.elapsed,
            unrelaxed=self.unrelaxed + (0.0 if block.rest else block.elapsed),
        )
        if later.unrelaxed // POUR_EVERY > self.unrelaxed // POUR_EVERY:
            later = replace(later, triangles=later.model.poured(later.triangles, later.body))
        due = later.age // RELAX_EVERY > self.age // RELAX_EVERY and later.unrelaxed >= 0.0
        # Not what the last motion has shown: an arm at rest would not show it again.
        due &= later.settled and self.model.systematic.size > 0
        return relaxed(later, 0.0 if block.rest else later.unrelaxed) if due else later

    def rows(self, block: Block) -> FloatArray:
        """Return `Model.rows` of a block at the linearisation point; not to be written to.

        The newest block is predicted, tested and combined one after the other.
        """
        if not (self._newest and self._newest[0][0] is block):
            rows = self.model.rows(self.memory.felt(block, self.body), self.body, self.about)
            self._newest[:] = [(block, rows)]
        return self._newest[0][1]

    def predicted(
        self, block: Block, elapsed: float = 0.0, angle: float = 0.0, member: int | None = None
    ) -> Prediction:
        """Predict a block by a member of the bank, without `member` the one of largest weight.

        The block may be later by `elapsed` [s], and farther by a travelled `angle` [rad].
        """
        place = self.best if member is None else member
        rows = self.rows(block)
        rows, shift = rows[:, :-1], rows[:, -1] - block.wrench
        moved = np.zeros((6, 6))
        if elapsed:
            keep, variances = self.moved(elapsed, angle)
            moved = rows[:, : len(keep)] * variances[place] @ rows[:, : len(keep)].T
            rows = np.hstack([rows[:, : len(keep)] * keep, rows[:, len(keep) :]])
        expected = rows @ self.values_of(place) - shift
        return Prediction(expected, self.triangles[place], rows, moved)

    @property
    def single(self) -> Belief:
        """The belief reduced to one member, to look for a change: see `drift.Bank.wary`."""
        place = self.model.bank.wary(self.scores)
        return replace(
            self,
            model=replace(self.model, bank=self.model.bank.only(place, self.weight)),
            triangles=(self.triangles[place],),
            scores=np.zeros(1),
            start=self.start and self.start.of([place], np.zeros(1)),
        )

    def banked(self, bank: Belief) -> Belief:
        """Return this single-walk belief with all walks and weights of another belief."""
        return replace(
            self,
            model=bank.model,
            triangles=self.triangles * len(bank.scores),
            scores=bank.scores,
            start=self.start and self.start.of([0] * len(bank.scores), bank.scores),
        )

    def with_block(self, block: Block, learn: bool = True) -> Belief:
        """Apply the measurement update of a block.

        With `learn`, update the noise levels too. Without, the block is of a hypothesis: those are
        compared with equal weights, so that its blocks are kept until `weighed`.
        """
        noise, later = self.noise.at(block.rest), self
        rows = self.model.weighted(self.rows(block), block, noise)
        if np.isfinite(memory := self.model.forgetting_time):
            older = (forget_along(t, rows, block.elapsed / memory) for t in self.triangles)
            later = replace(self, triangles=tuple(older))
        later = later.with_rows(rows, block, noise)
        if learn:
            later = replace(later, noise=later._learned_noise(block, rows, noise))
        if learn or later.settled:
            # Also between two evaluations of kept blocks, which may be seconds apart.
            later = replace(later, memory=later.memory.shown)
        return later._going_on() if later.settled else keep(later, block, learn)

    def _going_on(self) -> Belief:
        """Restart given-up members from the triangle of the best member."""
        bank = self.model.bank
        lost, scores = drift.given_up(self.scores, bank)
        if not (lost.any() and np.isfinite(self.model.relaxation)):
            return self
        anew = lost
        if bank.pouring[self.best]:
            # What it lets walk would be lost to the others: rough errors make it lead too.
            places = range(len(lost))
            loads = np.array([self.values_of(k)[self.model.body][:4] for k in places])
            differ = drift.differ(loads, *self.load_by(self.best), drift.ALIKE)
            anew = lost & ((bank.pouring > 0.0) | differ)
        pairs = zip(anew, self.triangles, strict=True)
        triangles = tuple(self.triangle if gone else own for gone, own in pairs)
        model = replace(self.model, bank=bank.after(lost))
        return replace(self, model=model, triangles=triangles, scores=scores)

    def load_by(self, member: int) -> tuple[FloatArray, FloatArray]:
        """Return mass and first moment by a member of the bank, and their std, (4,) each."""
        std = std_of_last(self.triangles[member], PARAMETERS)
        return self.values_of(member)[self.model.body][:4], std[:4]

    def with_rows(self, rows: FloatArray, block: Block, noise: FloatArray) -> Belief:
        """Process the weighted rows of a block."""
        joined = tuple(combine_all(self.triangles, rows))
        volume = np.log(np.repeat(noise, 3)[block.live]).sum()
        after, before = log_likelihoods([*joined, *self.triangles]).reshape(2, -1)
        age = 0.0 if block.rest else block.elapsed / self.model.forgetting_time
        return replace(
            self,
            triangles=joined,
            memory=self.memory.moved(block, self.body, self.noise),
            scores=self.scores + (after - before - volume),
            blur=np.exp(-age) * self.blur + self.model.blur(block, self.body, noise),
        )

    def _learned_noise(self, block: Block, rows: FloatArray, noise: FloatArray) -> NoiseLevels:
        """Learn the noise from the residual of rows in units of `noise`, less their leverage."""
        residual = np.full(6, np.nan)
        # A member that expects hardly any path errors would take them for noise.
        wary = self.model.bank.wary(self.scores)
        leverage = (root_covariance(self.triangles[wary], rows[:, :-1]) ** 2).sum(axis=0)
        away, spare = rows[:, :-1] @ self.values_of(wary) - rows[:, -1], np.zeros(6)
        residual[block.live] = away * noise[GROUPS[block.live]]
        spare[block.live] = np.maximum(1.0 - leverage, 0.0)
        scatter = block.scatter(self.values[self.model.body])
        free = spare.reshape(2, 3).sum(axis=1)
        return self.noise.learned(residual, free, block, scatter, self.settled or block.rest)

    def weighed(self) -> Belief:
        """Return the belief whose kept blocks weigh what noise under its own load allows."""
        return self if self.settled else linearised(self)

    def with_offset(self, rows: FloatArray) -> Belief:
        """Add information from before the first block: rows (6, size + 1) of unit variance."""
        return replace(self, triangles=tuple(combine_all(self.triangles, rows)))._begun_anew()

    def under(self, load: FloatArray) -> Belief:
        """Return the belief linearised at a load phi (10,), with its pose field."""
        triangles = self.model.under_load(self.triangles, self.load, load)
        return replace(self, triangles=triangles, body=load, load=load)

    def in_steps(self, steps: FloatArray) -> Belief:
        """Return the belief for wrenches with quantisation steps (2,) [N, N m]."""
        known = steps is self.model.steps
        return self if known else replace(self, model=replace(self.model, steps=steps))

    def widened(self, variance: FloatArray) -> Belief:
        """Return the belief with its covariance inflated by variances (size,) of the unknowns."""
        some = np.flatnonzero(variance)
        how = some, np.ones(len(some)), variance[some]
        triangles = tuple(walk(triangle, *how) for triangle in self.triangles)
        return replace(self, triangles=triangles)._without_blocks()

    def without(self, unknowns: IntArray) -> Belief:
        """Return the belief with some unknowns reset to their prior, continued from one walk.

        If the load is among them, blocks are kept again until it is known, for linearisation.
        """
        triangle = forget(self.triangle, unknowns, self.model.std(self.scales)[unknowns])
        lost = np.isin(self.model.places(self.model.body), unknowns)
        later = replace(self, triangles=(triangle,) * len(self.triangles))
        if not lost.any():
            return later._without_blocks()
        later = replace(
            later,
            body=np.where(lost, 0.0, self.values[self.model.body]),
            about=self.values[self.model.errors],
            age=0.0,
            blur=self.model.relaxed_blur(self.blur, 1.0, lost=True),
        )
        return later._begun_anew()

    @property
    def begun(self) -> Start:
        """The present state as the one before the blocks to keep."""
        return Start(self.triangles, self.scores, self.blur, self.load, self.memory)

    def _without_blocks(self) -> Belief:
        """Return the belief without kept blocks: replayed, they would undo what has changed."""
        return self if self.settled else self._begun_anew()

    def _begun_anew(self) -> Belief:
        """Return the belief that keeps the blocks from now on."""
        return replace(self, start=self.begun, held=(), held_noise=None)
