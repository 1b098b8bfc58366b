"""Derive the published payload from a belief: values, intervals, and which are identified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from load_identification.estimation import drift
from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.error_budget import (
    CAUSES,
    SOURCES,
    Knowledge,
    budget,
    by_cause,
    interval_factor,
)
from load_identification.estimation.belief.error_scales import conflict, like_a_tilt, unlikely
from load_identification.estimation.belief.remedies import Error, remedies
from load_identification.estimation.belief.tool import BODY, Tool, WithoutTool
from load_identification.estimation.identifiability import Excitation, Identifiability, judge
from load_identification.estimation.measurement import (
    PARAMETERS,
    TORQUE,
    finite_motion,
    make_block,
)
from load_identification.estimation.payload_estimate import (
    CalibrationValue,
    EstimatorSettings,
    PayloadEstimate,
    as_wide,
    in_message_order,
    possible,
)
from load_identification.estimation.systematic_errors import OF_AN_ARM
from load_identification.interface.batches import FilteredBatch
from load_identification.model.inertial_parameters import message_jacobian
from load_identification.typing_aliases import FloatArray

INERTIA = range(4, PARAMETERS)

CALIBRATION = SOURCES.index('calibration')
"""Place of the errors of the cell in a budget."""

WEIGHED = 4
"""Number of values that gravity shows: mass and centre of mass."""

UNEXPLAINED = 40.0
"""Variance of residuals over that of samples from which no error of the cell is named [-]: on a
moving base or with a hose the best of wrong explanations would be."""

DOES_NOT_FIT = (
    'does not fit: residuals in motion are {:.0f} times the noise, no cause is named: a hose, a '
    'moving base, something that touches?'
)

LOUD = 2.0
"""Factor on the std of all errors of the cell from which a warning is given [-]."""

CONTRADICT = (
    'what different poses show does not fit together: errors of the cell would be {:.1f} times '
    'those expected, and the intervals are wider by that; does something touch or pull?'
)

NONE_NAMED = 5.0
"""Factor on the std of all errors of the cell from which no single one is named [-]: so large,
they are what something else looks like."""

OUT_OF_STEP = 'inertia: not while wrench and motion are so far apart in time'
"""Why no inertia is claimed while the delay is known to be beyond all that is quantified."""

HIDDEN = (*OF_AN_ARM, 'joint_friction.')
"""Beginnings of the names of errors that are not shown; of friction, only the size is shown."""

SHOWN = 0.5
"""Ratio of posterior to prior std below which an error counts as determined by motion [-]."""


@dataclass(frozen=True, eq=False)
class Claim:
    """The payload according to a belief: everything on the sensor minus the tool."""

    belief: Belief
    tool: Tool
    excitation: Excitation
    """Excitation by payload and tool together."""
    settings: EstimatorSettings
    doubt: str = ''
    """Why the inertia may be wrong, so that it is not claimed; empty: it is not in doubt."""

    @cached_property
    def _within(self) -> tuple[Tool, Knowledge, Sequence[str]]:
        return self.tool.within(self.belief)

    @cached_property
    def without_tool(self) -> WithoutTool:
        """Parameters of the payload, their covariance, and its part by the tool alone."""
        tool, found, names = self._within
        return tool.taken_off(found, names)

    @property
    def parameters(self) -> FloatArray:
        """Inertial parameters of the payload, (10,)."""
        return self.without_tool.parameters

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of parameters and offset in the linear problem, (16, 16)."""
        covariance = self.without_tool.covariance.copy()
        covariance[BODY, BODY] += np.diag(self._alike) + self._held_back
        return covariance

    @cached_property
    def _held_back(self) -> FloatArray:
        """Covariance of what priors that the data refute hold back of phi, (10, 10)."""
        held = self.unlikely > 0.0
        if not held.any():
            return np.zeros((PARAMETERS, PARAMETERS))
        model, root = self.belief.model, self.belief.knowledge.root
        std = np.sqrt(self.belief.prior[held] / self.unlikely[held])
        along = root[model.body] @ root[model.errors][held].T / std
        return np.asarray(along @ along.T)

    @cached_property
    def unlikely(self) -> FloatArray:
        """How much data refute the prior of each error, see `error_scales.unlikely`, (N,)."""
        belief = self.belief
        return unlikely(belief.model, belief.knowledge.root, belief.values, belief.prior)

    @property
    def _alike(self) -> FloatArray:
        """Variance (10,) of the pose errors that act like a load, 0 where they cancel."""
        # The same act on a tool identified by this sensor.
        alone = not self.tool.parameters.any()
        return self.belief.model.pose.like_a_load if alone else np.zeros(PARAMETERS)

    @cached_property
    def conflict(self) -> float:
        """Factor on the variance by errors of the cell, see `error_scales.conflict` [-]."""
        belief = self.belief
        variance = belief.model.tied_variance(belief.prior, belief.load)
        return conflict(belief.model, belief.knowledge.root, belief.values, variance)

    @cached_property
    def _split(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Values, std and budget (4, 10) of the linear problem, and the factor on the std."""
        found = self.belief.knowledge
        parts = [self.covariance[BODY, BODY], found.noise, found.drift, self.without_tool.by_tool]
        values, deviations = in_message_order(self.parameters, np.array(parts))
        split = budget(*(deviations**2))
        more = (self.conflict - 1.0) * split[CALIBRATION]
        split[CALIBRATION] += more
        factor = interval_factor(split, float(found.freedom.min()))
        return values, np.sqrt(deviations[0] ** 2 + more), split, factor

    @cached_property
    def in_message_order(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values (10,), std (10,) and its budget (4, 10), intervals of 95 % at 1.96 std."""
        values, std, split, factor = self._split
        return values, factor * std, factor**2 * split

    @cached_property
    def causes(self) -> FloatArray:
        """Budget of mass and centre of mass by `CAUSES`, (causes, 4), NaN where unknown."""
        _, _, split, factor = self._split
        parts = np.full((len(CAUSES), WEIGHED), np.nan)
        known = WEIGHED if self.parameters[0] > 0.0 else 1
        rows = message_jacobian(self.parameters)[:known] if known > 1 else np.eye(1, PARAMETERS)
        split, factor = split[:, :known], factor[:known]
        found = by_cause(self.belief, self._within[0], rows, split, self._alike, self.unlikely)
        parts[:, :known] = factor**2 * found
        return parts

    @cached_property
    def errors_of_the_cell(self) -> Sequence[Error]:
        """Name, value, standard deviation and prior standard deviation of each error.

        Errors of an arm that weighs are left out; of friction, the size is included, not the
        shape.
        """
        found, errors = self.belief.knowledge, self.belief.model.systematic
        numbers = np.column_stack([found.errors, found.errors_std, errors.std]).tolist()
        return [
            (name, value, std, prior)
            for name, (value, std, prior) in zip(errors.names, numbers, strict=True)
            if not name.startswith(HIDDEN)
        ]

    def _shown(self) -> Mapping[str, CalibrationValue]:
        """Return the errors of the cell whose std is below `SHOWN` of the prior by motion.

        The sway only where anything rings. A negative compliance is none: noise of the
        accelerations, and delays, make it negative.
        """
        rings = self.belief.memory.sway.rings
        return {
            name: CalibrationValue(value, std)
            for name, value, std, prior in self.errors_of_the_cell
            if std < SHOWN * prior
            and (rings or name != 'sway')
            and (name != 'compliance' or value >= 0.0)
        }

    @property
    def unexplained(self) -> float:
        """Residual torque with which the torque caused by inertia is compared [N m]."""
        # Without a row of torque its residual is unknown.
        residual = float(np.nan_to_num(self.belief.noise.fast[TORQUE]))
        return max(residual, self.excitation.unexplained)

    @cached_property
    def judgement(self) -> Identifiability:
        """Which values are identified, and why the others are not."""
        values, std, _ = self.in_message_order
        return judge(
            values,
            std,
            self.settings.requirements,
            self.excitation.inertial_torque,
            self.unexplained,
            self.excitation.rate,
            self.doubt,
            self.excitation.level,
        )

    def estimate(
        self, stamp: int, frame: str, puzzle: str, warnings: tuple[str, ...], claimed: bool = True
    ) -> PayloadEstimate:
        """Return the estimate to be published.

        Parameters
        ----------
        stamp, frame, warnings : as in `PayloadEstimate`
        puzzle : str
            What else to check if the mass is not identified; empty: nothing.
        claimed : bool
            Whether what is known well enough may be called identified.
        """
        found, noise, judgement = self.belief.knowledge, self.belief.noise.overall, self.judgement
        values, std, parts = self.in_message_order
        covariance, reasons = as_wide(self.covariance, self.parameters, std), judgement.reasons
        identified = judgement.identified & claimed
        # A load that changes looks like errors of the cell.
        warnings = warnings if claimed else ()
        if puzzle and not identified[0]:
            reasons = (puzzle, *reasons)
        if identified[INERTIA].any():
            values, warning, refusal = possible(
                self.parameters, values, covariance[BODY, BODY], self.settings.bounding_ellipsoid
            )
            warnings += warning
            if refusal:
                identified, reasons = np.zeros_like(identified), refusal
        return PayloadEstimate(
            stamp=stamp,
            frame=frame,
            parameters=self.parameters,
            offset=found.offset,
            covariance=covariance,
            total=found.body,
            total_covariance=found.covariance[BODY, BODY] + self._held_back,
            values=values,
            std=std,
            identified=identified,
            reasons=reasons,
            warnings=warnings,
            reversed_sign=judgement.reversed_sign,
            withheld=None,
            residual_rms=noise[0],
            noise=noise[1],
            budget=parts,
            causes=self.causes,
            calibration=self._shown(),
            common=self._within[0].common(*self._within[1:]),
        )


def explained(
    belief: Belief, batch: FilteredBatch, position: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Split measured wrenches into a predicted and an external part.

    `position` (3,) is the displacement of the newest block [m].

    Returns
    -------
    predicted, external : (n, 6) arrays
        Reading caused by tool and payload without the offset, with the estimated errors of the
        sensor included, and the reading caused by contact alone; both as the load exerts them on
        the sensor [N, N m]. NaN where the motion is not finite; None if it is finite nowhere.
    """
    usable = finite_motion(batch)
    if not usable.any():
        return None
    offset = belief.knowledge.offset
    at = make_block(batch.select(usable), int(batch.stamps[0]))
    body = belief.values[belief.model.body]
    # The reading that tool and payload alone do not cause.
    read = belief.predicted(replace(at, position=position)).wrench - offset - at.matrix @ body
    predicted = read - batch.regressor @ body
    return predicted, batch.wrench - offset - predicted


def warnings(
    claim: Claim,
    zero: drift.Zero | None,
    stamp: int,
    ringing: str,
    late: bool,
    low_passed: bool,
) -> tuple[str, ...]:
    """Report what exceeds expectation: cell errors, one by one or together, ringing, offset drift.

    Parameters
    ----------
    claim : Claim
    zero : drift.Zero or None
        The offset when it was first determined.
    stamp : int
        Present time [ns].
    ringing : str
        Message about ringing; empty: none.
    late : bool
        Whether a delay of the wrench is reported already, see `time_delay`.
    low_passed : bool
        Whether a low-pass of the wrench is: poses seem to contradict each other then.
    """
    belief, settings = claim.belief, claim.settings
    errors = [e for e in claim.errors_of_the_cell if not (late and e[0] == 'delay')]
    doubtful = like_a_tilt(belief.scales)
    words = remedies(errors, np.array(settings.gravity), settings.wrench_delay, doubtful)
    beyond = belief.noise.beyond_samples
    if beyond > UNEXPLAINED and not low_passed:
        known = words and np.isfinite(beyond)
        words = [DOES_NOT_FIT.format(np.sqrt(beyond))] if known else []
    factor = np.sqrt(claim.conflict)
    words = [*(words if factor <= NONE_NAMED else []), ringing]
    if zero is not None:
        found = belief.knowledge
        variance = np.diag(found.covariance)[PARAMETERS:]
        usual = belief.model.pose.variance(belief.body)
        words.append(zero.words(stamp, found.offset, variance, usual))
    if factor > LOUD and not low_passed:
        words.append(CONTRADICT.format(factor))
    return tuple(filter(None, words))
