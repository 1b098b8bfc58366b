"""Hypotheses on the cause of a change, and the evidence for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property, reduce

import numpy as np
from scipy.special import chdtrc, chdtri

from load_identification.constants import STANDARD_GRAVITY
from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.model import WIDE_BODY, Model
from load_identification.estimation.belief.noise_levels import NOISE_MARGIN, scatter_of_any
from load_identification.estimation.events import EventKind
from load_identification.estimation.measurement import PARAMETERS, Block
from load_identification.model.regressor import wrench_regressor
from load_identification.numerics.triangle import root_covariance, std_of_last
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray

FARTHEST = 0.5
"""Largest distance from the sensor to the centre of mass of a load [m]."""

AS_BEFORE = 'it is that of before the last change'
"""Note of a load that is back: one put down soon after it was picked up."""

SLIPPED = 'slipped, its mass is unchanged'
"""Note of a slip, in addition to the event that the load has changed."""

UNSEEN = 'in a gap without samples, in which the load may have changed too'
"""Note of another offset after a gap."""

UNRESOLVED = 'after a change that was not resolved, in which the load may have changed too'
"""Note of another offset where not all blocks since the alarm belong to one change."""

KNOWN_MASS = 0.02
"""Largest relative standard deviation of the mass, before and after, with which a slip can be
distinguished from another load [-]."""

EXCLUDED = 1e-6
"""p-value of the misfit below which a hypothesis is excluded [-]."""

PLAUSIBLE = 1e-3
"""p-value of the misfit above which a hypothesis is plausible [-]."""

MARGIN = 25.0
"""Least chi-square by which every other hypothesis must fit worse [-]."""

SURE = 0.95
"""Probability that the noise is at most what a misfit shows [-]."""

AS_WELL = 4.0
"""Chi-square by which the simpler hypothesis may fit worse: a slip than another load, no change
than a little one [-]."""

HARDLY = 9.0
"""Chi-square by which another load or offset may fit better where nothing has changed, as a few of
their unknowns explain noise; beyond it more blocks are needed [-]."""

LITTLE_PART, LITTLE_WRENCH = 0.02, (0.25, 0.025)
"""A deviation is little up to this share of the weight (for torque at an arm of 0.1 m), or up to
this force and torque [-, N, N m]: wider intervals cover the uncertainty that it leaves."""

OUTSTANDING, LOUDEST = 300.0, 6.0
"""Ratio of the misfits of no change, another offset and a push to that of another load from which
only a load is possible; and increase of the noise variance that it may bring along, as it rings or
swings [-]."""

SCATTERED, MOST_SCATTERED = 2.0, 20.0
"""Factor by which the samples' scatter in motion may grow with a load before its noise is larger,
and the most that counts [-]."""

GROWN = 0.01
"""p-value of the misfit of a load below which it has brought noise along [-]."""

UNKNOWN_OFFSET = 100.0
"""Standard deviation that no sensor's offset has: it is not separated from a load [N, N m]."""

ARM = 0.1
"""Lever arm assumed for the torque of a little change [m]."""

WEIGHT = 4
"""Number of unknowns per axis of the world: a force along it, and its moments [kg, kg m]."""


class Hypothesis(Enum):
    """Cause of a change. Little: a small change of load or offset; slip: of the load, at equal
    mass; push: of neither, but a push that is constant in the world."""

    SAME = 'same'
    EARLIER = 'earlier'
    LOAD = 'load'
    OFFSET = 'offset'
    BOTH = 'both'
    LITTLE = 'little'
    SLIP = 'slip'
    PUSH = 'push'


@dataclass(frozen=True, eq=False)
class Candidate:
    """The belief that follows from a hypothesis, and its misfit to the blocks since."""

    belief: Belief
    before: float
    """Sum of squared residuals before the first of these blocks."""

    @classmethod
    def of(cls, belief: Belief) -> Candidate:
        """Return the candidate of a belief, before any block."""
        return cls(belief, float(belief.triangle[-1, -1] ** 2))

    @property
    def misfit(self) -> float:
        """Squared residuals since, in the allowed noise; chi-square if the hypothesis holds."""
        return (float(self.belief.triangle[-1, -1] ** 2) - self.before) / NOISE_MARGIN**2

    def after(self, block: Block) -> Candidate:
        """Return the candidate predicted to the time of a block."""
        return replace(self, belief=self.belief.after(block))

    def with_block(self, block: Block) -> Candidate:
        """Return the candidate updated by a block."""
        return replace(self, belief=self.belief.with_block(block, learn=False))

    def with_blocks(self, blocks: Sequence[Block]) -> Candidate:
        """Return the candidate updated by consecutive blocks; it is predicted to the first."""
        first, *later = blocks
        begun = self.with_block(first)
        return reduce(lambda each, block: each.after(block).with_block(block), later, begun)

    def weighed(self, rows: int, blocks: int, seen: Sequence[Block]) -> Belief:
        """Return the belief in another load, in the noise that blocks showed.

        That is the misfit, of so many rows of blocks, and how much the samples of those in `seen`
        scatter, whatever the load: its centre of mass may be unknown.
        """
        noise, spare = self.belief.noise, max(rows - PARAMETERS, 1)
        squares = max(NOISE_MARGIN**2 * self.misfit, 0.0)
        louder = np.sqrt(squares / spare) if chdtrc(spare, squares) < GROWN else 1.0
        # Not that of torque, which has the moments of inertia; nor at rest, as a grasp rings.
        scatter = scatter_of_any([block for block in seen if not block.rest])[0]
        usual = max(noise.sample(False)[0], noise.expected[0])
        louder = np.fmax(louder, min(np.sqrt(scatter) / usual, MOST_SCATTERED) / SCATTERED)
        if louder > 1.0:
            noise = noise.louder(np.full(2, louder), blocks)
        return replace(self.belief, noise=noise).weighed()


OLD = (Hypothesis.SAME, Hypothesis.EARLIER)
"""Hypotheses under which an earlier belief holds."""

UNCHANGED = (Hypothesis.SAME, Hypothesis.EARLIER, Hypothesis.LITTLE)
"""Hypotheses without a change, or with one so small that wider intervals cover it."""

EVENTS = {
    Hypothesis.SAME: EventKind.UNCHANGED,
    Hypothesis.EARLIER: EventKind.UNCHANGED,
    Hypothesis.LITTLE: EventKind.UNCHANGED,
    Hypothesis.LOAD: EventKind.LOAD_CHANGED,
    Hypothesis.SLIP: EventKind.LOAD_CHANGED,
    Hypothesis.OFFSET: EventKind.OFFSET_CHANGED,
    Hypothesis.BOTH: EventKind.LOAD_AND_OFFSET_CHANGED,
}


def hypotheses(
    before: Belief, earlier: Belief | None, block: Block
) -> dict[Hypothesis, Candidate]:
    """Return the hypotheses on a change before a block, each with its prior belief."""
    model = before.model
    load = model.places(model.body)
    offset = np.concatenate([model.places(model.path), model.places(model.offset)])
    beliefs = {
        Hypothesis.SAME: before,
        Hypothesis.LOAD: before.without(load),
        Hypothesis.OFFSET: before.without(offset),
        Hypothesis.BOTH: before.without(np.concatenate([offset, load])),
        Hypothesis.PUSH: pushed(before, block),
    }
    if mass_is_known(before):
        beliefs[Hypothesis.SLIP] = before.without(load[1:])
    little = hardly_changed(before, block)
    if little is not None:
        beliefs[Hypothesis.LITTLE] = little
    if earlier is not None:
        beliefs[Hypothesis.EARLIER] = earlier
    return {h: Candidate.of(b) for h, b in beliefs.items()}


def hardly_changed(before: Belief, block: Block) -> Belief | None:
    """Return the belief if load, offset or both changed by the innovation of a block.

    None if the innovation is more than little. Load and offset need not be distinguished then.
    """
    away = np.where(block.live, block.wrench - before.predicted(block).wrench, 0.0).reshape(2, 3)
    force, torque = np.linalg.norm(away, axis=1)
    model = before.model
    part = LITTLE_PART * STANDARD_GRAVITY * abs(before.values[model.body.start])
    if force > max(part, LITTLE_WRENCH[0]) or torque > max(ARM * part, LITTLE_WRENCH[1]):
        return None
    std = np.zeros(model.size)
    std[model.offset] = np.repeat([force, torque], 3)
    # A slip by d changes m c by m d, and inertia about S by about 2 m c d.
    parts = np.array([force, *[torque] * 3, *[2.0 * ARM * torque] * 6])
    std[model.places(model.body)] = parts / STANDARD_GRAVITY
    return before.widened(std**2)


def still_possible(candidates: Mapping[Hypothesis, Candidate]) -> FloatArray:
    """Return the variance of the unknowns, (size,), that covers another load or offset.

    As far as one that fits better is away from no change, beyond its own uncertainty.
    """
    same = candidates[Hypothesis.SAME]
    model = same.belief.model
    variance = np.zeros(model.size)
    for cause, part in ((Hypothesis.LOAD, model.body), (Hypothesis.OFFSET, model.offset)):
        other, places = candidates[cause], model.places(part)
        if same.misfit - other.misfit > AS_WELL:
            apart = (other.belief.values - same.belief.values)[places]
            unsure = marginal_std(other.belief, places)
            variance[places] = np.maximum(apart**2 - unsure**2, 0.0)
    return variance


def mass_is_known(belief: Belief) -> bool:
    """Return whether the mass is certain enough for another mass to be detected."""
    mass = float(belief.values[belief.model.body.start])
    return bool(std_of_last(belief.triangle, PARAMETERS)[0] < KNOWN_MASS * mass)


def only_a_load(misfit: Mapping[Hypothesis, float]) -> bool:
    """Return whether another load alone explains nearly everything, given the misfits."""
    others = (Hypothesis.SAME, Hypothesis.OFFSET, Hypothesis.PUSH)
    return min(misfit[h] for h in others) > OUTSTANDING * misfit[Hypothesis.LOAD]


def p_values(
    misfit: Mapping[Hypothesis, float], rows: int, louder: float
) -> dict[Hypothesis, float]:
    """Return the p-value of each misfit to some rows, in `louder` noise variance, all [-]."""
    return {h: float(chdtrc(rows, max(each / louder, 0.0))) for h, each in misfit.items()}


def lead(freest: float, spare: int) -> float:
    """Return the chi-square by which load, offset and push must lead each other [-].

    `MARGIN` in the allowed noise; less as far as the misfit of the freest hypothesis, to blocks
    with so many spare rows, shows that there is less noise, down to what was learned.
    """
    noise = freest / float(chdtri(spare, SURE))
    return MARGIN * min(max(noise, 1.0 / NOISE_MARGIN**2), 1.0)


def as_heavy(
    candidates: Mapping[Hypothesis, Candidate], misfit: Mapping[Hypothesis, float]
) -> bool:
    """Return whether the new load's mass is known well and agrees with that of the old one."""
    worse = misfit[Hypothesis.SLIP] - misfit[Hypothesis.LOAD]
    return worse < AS_WELL and mass_is_known(candidates[Hypothesis.LOAD].belief)


def is_load(belief: Belief) -> bool:
    """Return whether a belief allows a body on the sensor: a positive mass that is near."""
    body, std = belief.values[belief.model.body], std_of_last(belief.triangle, PARAMETERS)
    mass = body[0] + 3.0 * std[0]
    return bool(mass > 0.0 and np.linalg.norm(body[1:4]) < FARTHEST * mass + 3.0 * std[1:4].max())


def knows_more(belief: Belief, before: Belief) -> bool:
    """Return whether mass and offset are at least as certain as in the belief before."""
    return bool(np.all(main_std(belief) <= main_std(before)))


def offset_is_known(belief: Belief, live: BoolArray) -> bool:
    """Return whether the offset of the live channels (6,) is known at least roughly."""
    return bool(np.all(main_std(belief)[:-1][live] < UNKNOWN_OFFSET))


def main_std(belief: Belief) -> FloatArray:
    """Return the standard deviations of mass and offset, (7,) [kg, N, N m]."""
    model = belief.model
    return marginal_std(belief, np.append(model.places(model.offset), model.body.start))


def marginal_std(belief: Belief, places: IntArray) -> FloatArray:
    """Return the standard deviations of some unknowns, (k,)."""
    root = root_covariance(belief.triangle, np.eye(belief.model.size)[places])
    return np.asarray(np.sqrt(np.sum(root**2, axis=0)))


@dataclass(frozen=True, eq=False)
class Pushed(Model):
    """A model with a push that is constant in the world, at a point of the tool.

    It is a weight without inertia. Its unknowns are between the field's and the body's.
    """

    axes: int
    """Number of axes of the world along which it may act; gravity alone if no others are known."""

    @property
    def push(self) -> slice:
        """Indices of the push."""
        return slice(self.field.stop, self.field.stop + WEIGHT * self.axes)

    @cached_property
    def body(self) -> slice:
        """Indices of the inertial parameters, which are last."""
        return slice(self.push.stop, self.push.stop + PARAMETERS)

    def rows(self, block: Block, body: FloatArray, errors: FloatArray | None = None) -> FloatArray:
        """Return a block's unweighted rows [B y], (6, size + 1) [N, N m]."""
        rows = super().rows(block, body, errors)
        along = np.column_stack([STANDARD_GRAVITY * block.direction, block.gravity_by_tilt])
        still = np.zeros((self.axes, 3))
        columns = -wrench_regressor(-along.T[: self.axes], still, still)[..., :WEIGHT]
        rows[:, self.push] = np.concatenate(list(columns), axis=1)
        return rows


def pushed(belief: Belief, block: Block) -> Belief:
    """Return the belief with a push as additional unknown, with a wide prior."""
    known = {each.name: getattr(belief.model, each.name) for each in fields(Model)}
    model = Pushed(**known, axes=1 + block.gravity_by_tilt.shape[1])

    def wider(triangle: FloatArray) -> FloatArray:
        others = np.delete(np.arange(model.size + 1), np.arange(model.size)[model.push])
        out = np.zeros((model.size + 1,) * 2, order='F')
        out[np.ix_(others, others)] = triangle
        np.fill_diagonal(out[model.push, model.push], 1.0 / WIDE_BODY[0])
        return out

    start = belief.start and belief.start._replace(
        triangles=tuple(map(wider, belief.start.triangles))
    )
    return replace(belief, model=model, triangles=tuple(map(wider, belief.triangles)), start=start)
