"""What the motion so far has shown, and what motion would help: gathered sample by sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from load_identification.estimation.advice import Advice, advise
from load_identification.estimation.excitation import Excitation, FastestMotion
from load_identification.estimation.identifiability import Identifiability, Requirements
from load_identification.estimation.measurement import regressor
from load_identification.estimation.predicted_covariance import Knowledge
from load_identification.estimation.time_delay import DelayEstimate, DelayEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.model.robot import RotationAxis
from load_identification.typing_aliases import FloatArray

UNNOTICED_NS = 600_000_000
"""How long a change may have gone unnoticed [ns]."""


class ExcitationMonitor:
    """The fastest motion, the lag between the streams, and advice on what to do next.

    Parameters
    ----------
    force_noise, torque_noise : float
        Expected standard deviation of a filtered sample [N, N m].
    """

    def __init__(self, force_noise: float, torque_noise: float) -> None:
        self._lag = DelayEstimator(force_noise, torque_noise)
        self.reset()

    def reset(self) -> None:
        """Forget what was shown of the load; the lag is that of the streams, and stays."""
        self._fastest = FastestMotion()
        self._before: FastestMotion | None = None
        self._newest: int | None = None
        self._rate = 0.0
        self._specific_force: FloatArray = np.zeros(3)

    @property
    def delay(self) -> DelayEstimate:
        """By how much the wrench's stamps are late, as far as motion has shown it."""
        return self._lag.estimate

    def update(self, batch: FilteredBatch) -> None:
        """Take in filtered samples of finite motion, one at least."""
        stamps, matrix = batch.stamps, regressor(batch)
        first = self._newest if self._newest is not None else int(stamps[0])
        span = int(stamps[-1]) - first
        if span > 0:
            self._rate = (len(stamps) - (self._newest is None)) * 1e9 / span
        self._newest = int(stamps[-1])
        self._specific_force = batch.linear_acceleration[-1]
        self._fastest.update(
            stamps,
            -matrix[:, 3:, 1:],
            batch.wrench[:, 3:],
            batch.angular_velocity,
            batch.angular_acceleration,
        )
        self._lag.update(batch)

    def begin_unresolved(self) -> None:
        """Set aside what was shown, or drop what came since: the load may have changed."""
        if self._before is None:
            if self._newest is not None:
                self._fastest.drop_since(self._newest - UNNOTICED_NS)
            self._before = self._fastest
        self._fastest = FastestMotion()

    def end_unresolved(self, another_load: bool) -> None:
        """Go on with what was shown before, unless it is another load."""
        if self._before is not None and not another_load:
            self._fastest = self._before
        self._before = None

    def excitation(self, parameters: FloatArray, tool: FloatArray | None = None) -> Excitation:
        """Return what the fastest motion shows of inertia; see `FastestMotion.excitation`."""
        return self._fastest.excitation(parameters, tool)

    def advice(
        self,
        parameters: FloatArray,
        information: FloatArray,
        noise: FloatArray,
        unexplained: float,
        judgement: Identifiability,
        required: Requirements,
        axes: Sequence[RotationAxis] = (),
        tool_covariance: FloatArray | None = None,
        pose_variance: FloatArray | None = None,
    ) -> Advice | None:
        """Return what motion would help most from the present pose; None before there is one.

        Parameters
        ----------
        parameters : (10,) array
            Of the payload, tool taken off.
        information : (16, 16) array
            Square root of that of parameters and offset.
        noise : (2,) array
        unexplained : float
            Torque left unexplained, as judged by [N m].
        judgement : Identifiability
        required : Requirements
        axes : sequence of RotationAxis
            About which the sensor can be turned; none: its own.
        tool_covariance : (10, 10) array, optional
        pose_variance : (6,) array, optional
            Of errors tied to the pose [N², N² m²].
        """
        if not self._rate:
            return None
        knowledge = Knowledge(
            parameters=parameters,
            information=information,
            noise=noise,
            specific_force=self._specific_force,
            unexplained=unexplained,
            rate=self._rate,
            tool_covariance=np.zeros((10, 10)) if tool_covariance is None else tool_covariance,
            pose_variance=np.zeros(6) if pose_variance is None else pose_variance,
        )
        return advise(knowledge, judgement, required, axes)
