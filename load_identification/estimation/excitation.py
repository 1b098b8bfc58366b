"""Monitor the excitation sample by sample, and advise a motion that would help.

Evaluated is the fastest motion so far: the torque that inertia causes, and torque left
unexplained. A mean over all samples would be dominated by the rest between motions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from load_identification.estimation.advice.advice import advise, smoother
from load_identification.estimation.advice.predicted_covariance import (
    POSE,
    Knowledge,
    information_root,
    predicted_std,
)
from load_identification.estimation.belief.claim import Claim
from load_identification.estimation.belief.error_scales import exceeding
from load_identification.estimation.delay_estimate import DelayEstimate, delay_warning
from load_identification.estimation.identifiability import Excitation
from load_identification.estimation.pose_errors import harmonics
from load_identification.estimation.time_delay import DelayEstimator
from load_identification.estimation.wrench_low_pass import low_pass_warning
from load_identification.interface.batches import FilteredBatch
from load_identification.model.robot import RotationAxis
from load_identification.numerics.triangle import root_covariance
from load_identification.typing_aliases import FloatArray, IntArray

BLOCK_NS = 250_000_000
KEPT = 8
"""Number of blocks kept: 2 s of motion."""

FEWEST = 3
"""Least number of samples in a block."""

TORQUE_PARAMETERS = 9
"""Number of parameters in the rows of torque: first moment and inertia."""

INERTIA = slice(3, TORQUE_PARAMETERS)

MOST_WIDENED = 2.0
"""Limit of a published std over that of the information on which advice depends [-]."""

LEVEL = 0.1
"""Derivative of gravity by a joint, as a share of gravity, that counts as none [1/rad]."""

SLOW = 0.05
"""Largest acceleration of samples that show it, as a share of gravity [-]."""

UNNOTICED_NS = 600_000_000
"""Longest time for which a change may have gone undetected [ns]."""


@dataclass(eq=False)
class _Block:
    """Sums over the samples until `end` [ns]; a row of a Gram matrix is [A w] of one torque."""

    end: int
    gram: FloatArray = field(default_factory=lambda: np.zeros((TORQUE_PARAMETERS + 1,) * 2))
    sums: FloatArray = field(default_factory=lambda: np.zeros((3, TORQUE_PARAMETERS + 1)))
    counts: FloatArray = field(default_factory=lambda: np.zeros(3))
    energy: float = 0.0
    rate: float = 0.0


class FastestMotion:
    """The blocks of 0.25 s with the largest angular acceleration and squared rate.

    The Gram matrix of each block's rows [A w] of torque is kept. Caused and unexplained torque are
    therefore exact for any later estimate. Memory is fixed.
    """

    def __init__(self) -> None:
        self._kept: list[_Block] = []
        self._block = _Block(0)

    def update(
        self,
        stamps: IntArray,
        matrix: FloatArray,
        torque: FloatArray,
        angular_velocity: FloatArray,
        angular_acceleration: FloatArray,
    ) -> None:
        """Process samples.

        Parameters
        ----------
        stamps : (n,) int array
            Times of the samples [ns].
        matrix : (n, 3, 9) array
            Regressor of torque for first moment and inertia.
        torque : (n, 3) array
            NaN for an unusable channel [N m].
        angular_velocity, angular_acceleration : (n, 3) arrays
            Motion of S [rad/s, rad/s²].
        """
        blocks = stamps // BLOCK_NS
        rate = np.sum(angular_velocity**2, axis=1)
        energy = rate**2 + np.sum(angular_acceleration**2, axis=1)
        first = 0
        for last in (*(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(blocks)):
            end = (int(blocks[first]) + 1) * BLOCK_NS
            if end != self._block.end:
                self._keep_if_fast()
                self._block = _Block(end)
            mine = slice(first, last)
            if energy[mine].any():
                self._add(matrix[mine], torque[mine], float(energy[mine].sum()), rate[mine].max())
            first = last

    def _add(self, matrix: FloatArray, torque: FloatArray, energy: float, rate: float) -> None:
        rows = np.concatenate([matrix, torque[..., None]], axis=2)
        used = np.isfinite(torque)
        if not used.all():
            rows = np.where(used[..., None], rows, 0.0)
        flat, block = rows.reshape(-1, rows.shape[2]), self._block
        block.gram += flat.T @ flat
        block.sums += rows.sum(axis=0)
        block.counts += used.sum(axis=0)
        block.energy += energy
        block.rate = max(block.rate, rate)

    def _keep_if_fast(self) -> None:
        if self._block.counts.max() >= FEWEST:
            both = [*self._kept, self._block]
            self._kept = sorted(both, key=lambda block: block.energy, reverse=True)[:KEPT]

    def drop_since(self, stamp: int) -> None:
        """Forget blocks with samples newer than a stamp [ns], which may be of another load."""
        self._kept = [block for block in self._kept if block.end <= stamp]
        if self._block.end > stamp:
            self._block = _Block(self._block.end)

    def excitation(self, parameters: FloatArray, tool: FloatArray | None = None) -> Excitation:
        """Return the excitation of inertia by the fastest motion.

        `parameters` (10,) are those of tool and payload together; the torque of `tool` (10,) does
        not count as the payload's.
        """
        if not self._kept:
            return Excitation(0.0, 0.0, 0.0)
        counts = np.array([block.counts for block in self._kept])
        gram = np.sum([block.gram for block in self._kept], axis=0)
        inertia = np.zeros(TORQUE_PARAMETERS + 1)
        inertia[INERTIA] = parameters[4:] if tool is None else parameters[4:] - tool[4:]
        misfit = np.append(parameters[1:], -1.0)
        sums = np.array([block.sums @ misfit for block in self._kept])
        left = misfit @ gram @ misfit - np.sum(sums**2 / np.maximum(counts, 1.0))
        free = max(float(counts.sum() - np.sum(counts > 0.0)), 1.0)
        return Excitation(
            inertial_torque=float(np.sqrt(max(inertia @ gram @ inertia, 0.0) / counts.sum())),
            unexplained=float(np.sqrt(max(left, 0.0) / free)),
            rate=float(np.sqrt(max(block.rate for block in self._kept))),
        )


class ExcitationMonitor:
    """Monitor the fastest motion and the lag between the streams, and advise the next motion.

    `force_noise` and `torque_noise` are the expected std of a filtered sample [N, N m], and
    `wrench_delay` is that by which the streams are corrected [s].
    """

    def __init__(self, force_noise: float, torque_noise: float, wrench_delay: float = 0.0) -> None:
        self._lag = DelayEstimator(force_noise, torque_noise, wrench_delay)
        self._corrected = wrench_delay
        self.reset()

    def reset(self) -> None:
        """Forget the load's excitation; the lag belongs to the streams and is kept."""
        self._fastest = FastestMotion()
        self._before: FastestMotion | None = None
        self._lag.end_unresolved()
        self._newest: int | None = None
        self._rate, self._weighs_at_rest, self._level = 0.0, True, False
        self._specific_force: FloatArray = np.zeros(3)
        self._by_angle: FloatArray = np.zeros((3, 0))

    @property
    def delay(self) -> DelayEstimate:
        """Delay of the wrench's stamps, as far as motion has determined it."""
        return self._lag.estimate

    @property
    def low_passed(self) -> bool:
        """Whether motion has shown that the wrench is low-passed."""
        return self._lag.low_pass.found is not None

    @property
    def delay_words(self) -> str:
        """Warning of low-pass or delay, with what to set; empty if there is none to speak of."""
        if (low_pass := self._lag.low_pass.found) is not None:
            known = self.delay.value_s * self.delay.known
            return low_pass_warning(low_pass, known, self._corrected)
        return delay_warning(self.delay, self._corrected)

    def update(self, batch: FilteredBatch) -> None:
        """Process at least one filtered sample, all of finite motion."""
        stamps, matrix = batch.stamps, batch.regressor
        first = self._newest if self._newest is not None else int(stamps[0])
        span = int(stamps[-1]) - first
        if span > 0:
            self._rate = (len(stamps) - (self._newest is None)) * 1e9 / span
        self._newest = int(stamps[-1])
        known = np.isfinite(batch.gravity[-1])
        self._specific_force = np.where(known, -batch.gravity[-1], batch.linear_acceleration[-1])
        self._level = _keeps_level(batch, self._level)
        # Of the drives of an arm that weighs with its joints.
        self._weighs_at_rest = not batch.by_gain.shape[1]
        self._by_angle = np.hstack([batch.gravity_by_tilt[-1], -batch.motion_by_joint[-1, :3]])
        self._fastest.update(
            stamps,
            -matrix[:, 3:, 1:],
            batch.wrench[:, 3:],
            batch.angular_velocity,
            batch.angular_acceleration,
        )
        self._lag.update(batch)

    def begin_unresolved(self) -> None:
        """Set excitation and lag aside, or drop what came since: the load may have changed."""
        if self._before is None:
            if self._newest is not None:
                self._fastest.drop_since(self._newest - UNNOTICED_NS)
            self._before = self._fastest
        self._fastest = FastestMotion()
        self._lag.begin_unresolved()

    def end_unresolved(self, another_load: bool) -> None:
        """Restore them from before, the excitation unless the load is another one.

        Without `begin_unresolved`, the load has become another one slowly.
        """
        if another_load and self._before is None:
            self._fastest = FastestMotion()
        elif self._before is not None and not another_load:
            self._fastest = self._before
        self._before = None
        self._lag.end_unresolved()

    def excitation(self, parameters: FloatArray, tool: FloatArray | None = None) -> Excitation:
        """Return the excitation of inertia; see `FastestMotion.excitation`."""
        return replace(self._fastest.excitation(parameters, tool), level=self._level)

    def advice(self, claim: Claim, axes: Sequence[RotationAxis] = ()) -> str:
        """Return in words the motion that would help a claim most from the present pose.

        Empty if nothing is lacking, or before samples. `axes` are those about which the sensor can
        be turned; none: its own.
        """
        if not (self._rate and claim.judgement.lacking):
            return ''
        model = claim.belief.model
        mixing = model.systematic.by_wrench(np.eye(6))
        by_angle = model.systematic.by_angle(self._by_angle)
        # Held still, a pose shows no delay and no origin; in swings these are left as they were.
        seen = np.flatnonzero(mixing.any(axis=(0, 1)) | by_angle.any(axis=0))
        down = -self._specific_force / np.linalg.norm(self._specific_force)
        asked = np.eye(model.size)[
            [*model.places(model.body), *model.places(model.offset), *model.errors.start + seen]
        ]
        here = asked[:0]
        if model.pose.used:
            here = model.of_pose(harmonics(down), np.zeros(3))[:, :-1]
        root = root_covariance(claim.belief.triangle, np.vstack([asked, here]))
        knowledge = Knowledge(
            parameters=claim.parameters,
            information=information_root(root.T @ root),
            noise=claim.belief.noise.overall[1],
            specific_force=self._specific_force,
            unexplained=claim.unexplained,
            rate=self._rate,
            tool_covariance=claim.without_tool.by_tool,
            pose_variance=model.pose.variance(claim.belief.body),
            total=claim.belief.body,
            mixing=np.pad(mixing[..., seen], ((0, 0), (0, 0), (0, len(here)))),
            by_angle=np.pad(by_angle[:, seen], ((0, 0), (0, len(here)))),
            names=tuple(model.systematic.names[k] for k in seen) + POSE * bool(len(here)),
            weighs_at_rest=self._weighs_at_rest,
            level=self._level,
            exceeding=exceeding(claim.belief.scales),
        )
        now = predicted_std(knowledge, knowledge.information[None])[0]
        # What a tool has in common with the payload cancels.
        least = 0.0 if claim.tool.parameters.any() else 1.0
        widened = np.clip(claim.in_message_order[1] / now, least, MOST_WIDENED)
        knowledge = replace(knowledge, widened=widened)
        advised = advise(knowledge, claim.judgement, claim.settings.requirements, axes).text
        return '; '.join(filter(None, (advised, smoother(claim.judgement, claim.causes))))


def _keeps_level(batch: FilteredBatch, before: bool) -> bool:
    """Return whether no joint turns the sensor against gravity; `before` where that is not seen.

    Slow samples show it: accelerations depend on the joints too.
    """
    gravity = np.linalg.norm(batch.gravity, axis=1)
    slow = np.linalg.norm(batch.linear_acceleration + batch.gravity, axis=1) < SLOW * gravity
    by_joint = np.linalg.norm(batch.motion_by_joint[slow, :3], axis=1)
    if not by_joint.size:
        return before
    return bool((by_joint.max(axis=1) < LEVEL * gravity[slow]).any())
