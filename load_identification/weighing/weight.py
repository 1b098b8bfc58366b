"""Weigh in poses at rest with all that is known of offset, sensor and cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import chdtri

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.error_budget import budget, by_cause, interval_factor
from load_identification.estimation.belief.tool import BODY, Tool
from load_identification.estimation.measurement import PARAMETERS, Block, make_block
from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import (
    StaticEstimate,
    StaticPose,
    gravity_rows,
    static_estimate,
)

STATIC = slice(4)
"""Mass and first moment among the inertial parameters."""

NO_LOAD = 16.0
"""Misfit, in units of its expectation, at which a wrench at rest is not that of a load."""

MOST_POSES = 3
"""Most further poses that are suggested: so many earlier ones count."""

BY_CHANCE = 0.01
"""Probability of a misfit of one pose up to which it is chance and widens nothing [-]: of three
degrees of freedom it often is twice its expectation."""


class TakenOff(Protocol):
    """What the robot's driver takes off the wrench."""

    @property
    def taken_off(self) -> FloatArray:
        """Inertial parameters (10,) of a body, about the origin of S."""

    @property
    def changing(self) -> bool:
        """Whether that is becoming another body: nothing can be weighed meanwhile."""


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of offset, sensor and cell."""

    belief: Belief
    stamp: int
    """When that was known [ns]."""
    travelled: float
    """Angle by which the sensor has turned in all its motion until then [rad]."""


@dataclass(frozen=True, eq=False)
class Pose:
    """A pose at rest with the data needed for weighing; wrench as exerted by the load."""

    rest: StaticPose
    block: Block
    """Its mean wrench and the geometry of the pose."""
    gravity: FloatArray
    """In S, (3,) [m/s²]."""
    known: Known
    """Without the load, when the arm came to rest in this pose."""
    travelled: float
    """Angle by which the sensor has turned until it came there [rad]."""


def still_block(samples: FilteredBatch, gravity: FloatArray, wrench: FloatArray) -> Block:
    """Return a mean wrench (6,) at rest as a block, with the geometry of the pose's last sample.

    Mass and first moment alone act at rest, and no noise of accelerations.
    """
    last = len(samples.stamps) - 1
    block = make_block(samples.select(slice(last, None)), int(samples.stamps[last]))
    matrix = np.zeros_like(block.matrix)
    matrix[:, STATIC] = gravity_rows(gravity[None])[0]
    live = np.isfinite(wrench)
    return replace(
        block,
        rest=True,
        matrix=matrix,
        slope=np.zeros_like(matrix),
        bend=np.zeros_like(matrix),
        wrench=np.where(live, wrench, 0.0),
        weight=live.astype(float),
        direction=gravity / np.linalg.norm(gravity),
        blur=np.zeros_like(block.blur),
        root=None,
    )


@dataclass(frozen=True, eq=False)
class Weight:
    """The weighed payload."""

    payload: StaticEstimate
    """Tool subtracted; covariance inflated where the poses do not fit one load."""
    budget: FloatArray
    """Variance of its mass by source, see `error_budget.SOURCES`, (4,) [kg²]."""
    causes: FloatArray
    """The same by cause, see `error_budget.CAUSES`, (causes,) [kg²]."""
    repeated_std: float
    """Standard deviation of the mass without the sensor's common gain [kg]."""
    lasting: float
    common: float
    """Variance of the mass that no more poses reduce, of lasting errors of the cell and of the
    tool, and the part of it of the sensor's common gain [kg²]."""
    poses: int
    """Number of poses used."""
    pose: Pose
    """The last of them."""
    fits: bool
    """Whether the wrench is consistent with a load at all."""
    belief: Belief
    """Of the load and all else, after the last pose."""

    def outlook(self, repeated: bool = False) -> list[float]:
        """Predict the std of the mass after 1 to `MOST_POSES` more poses [kg].

        `repeated` as in `repeated_std`.
        """
        known = self.pose.known.belief
        errors = np.tile(self.pose.rest.standard_error, (MOST_POSES + 1, 1))
        # Errors tied to the first pose are in the offset known before it.
        errors[1:] = np.sqrt(errors[1:] ** 2 + known.model.pose.variance(self.belief.body))
        means = np.where(np.isfinite(errors), 0.0, np.nan)
        strength = float(np.linalg.norm(self.pose.gravity))
        down = self.pose.gravity / strength
        side = np.cross(down, np.eye(3)[np.argmin(np.abs(down))])
        side /= np.linalg.norm(side)
        # The pose itself, its opposite, then perpendicular ones.
        gravity = strength * np.array([down, -down, side, -side])
        offset = known.knowledge.covariance[PARAMETERS:, PARAMETERS:]
        lasting = self.lasting - self.common if repeated else self.lasting
        now = self.repeated_std**2 if repeated else float(self.budget.sum())
        found = (
            static_estimate(means[:n], errors[:n], gravity[:n], np.zeros(6), offset)
            for n in range(2, MOST_POSES + 2)
        )
        return [float(np.sqrt(min(one.covariance[0, 0] + lasting, now))) for one in found]


def weighed(poses: Sequence[Pose], tool: Tool, single: bool = False) -> Weight:
    """Weigh one payload in poses at rest, from what was known before the first of them.

    Poses that do not fit one load (it has changed between them) widen the interval by their
    misfit. With `single`, one walk of the offset counts alone, see `Belief.single`.
    """
    gravity = np.array([pose.gravity for pose in poses])
    known = poses[0].known
    before = known.belief.single if single else known.belief
    belief = begun = before.under(_about(poses, gravity))
    stamp, travelled = known.stamp, known.travelled
    for pose in poses:
        elapsed = max(0.0, 1e-9 * (pose.rest.end - stamp))
        block = replace(pose.block, elapsed=elapsed, angle=pose.travelled - travelled)
        belief, live = belief.after(block), block.live
        rows = belief.model.rows(block, belief.body)[live]
        rows /= pose.rest.standard_error[live, None]
        belief = belief.with_rows(rows, block, np.ones(2))
        stamp, travelled = pose.rest.end, pose.travelled
    misfit = belief.triangle[-1, -1] ** 2 - begun.triangles[belief.best][-1, -1] ** 2
    spread = np.linalg.svd(gravity, compute_uv=False)
    # Of mass and first moment, gravity in one direction does not determine what is along it.
    determined = 4 if len(spread) > 1 and spread[1] > 0.05 * spread[0] else 3
    freedom = max(sum(int(pose.block.live.sum()) for pose in poses) - determined, 1)
    ratio = misfit / freedom
    found, names = belief.knowledge, belief.model.systematic.names
    parameters, covariance, tool_part = tool.taken_off(found, names)
    of_gain = float(tool.common(found, names)[0, 0])
    of_tool = float(tool_part[0, 0])
    along = found.with_errors[0]
    of_cell = float(along @ np.linalg.solve(found.errors_covariance, along))
    alike = np.zeros(PARAMETERS)
    if len(poses) > 1 and not tool.parameters.any():
        alike = belief.model.pose.like_a_load
    covariance = covariance[BODY, BODY] + np.diag(alike)
    parts = [covariance, found.noise, found.drift, tool_part]
    split = budget(*(np.diag(part)[:1] for part in parts))
    by_chance = misfit / chdtri(freedom, BY_CHANCE)
    misfits = max(1.0, by_chance if len(poses) == 1 else ratio)
    widened = misfits * float(interval_factor(split, np.inf)[0]) ** 2
    values, variance = parameters[STATIC], widened * covariance[STATIC, STATIC]
    return Weight(
        payload=StaticEstimate(values, variance),
        budget=widened * split[:, 0],
        causes=widened * by_cause(belief, tool, np.eye(1, PARAMETERS), split, alike)[:, 0],
        repeated_std=float(np.sqrt(misfits * (covariance[0, 0] - of_gain))),
        lasting=of_cell + of_tool,
        common=min(of_gain, of_cell + of_tool),
        poses=len(poses),
        pose=poses[-1],
        fits=bool(ratio < NO_LOAD),
        belief=belief,
    )


def _about(poses: Sequence[Pose], gravity: FloatArray) -> FloatArray:
    """Return about what is held (10,): the point at which the errors' effect is evaluated."""
    known = poses[0].known.belief.knowledge
    missing = np.array([np.where(pose.block.live, 0.0, np.nan) for pose in poses])
    found = static_estimate(
        np.array([pose.block.wrench for pose in poses]) + missing,
        np.array([pose.rest.standard_error for pose in poses]),
        gravity,
        known.offset,
        known.covariance[PARAMETERS:, PARAMETERS:],
    )
    return np.concatenate([found.values, np.zeros(PARAMETERS - len(found.values))])
