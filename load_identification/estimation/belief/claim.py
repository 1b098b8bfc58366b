"""What a belief lets one say of the payload: values, intervals, and whether they are enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from load_identification.estimation import drift
from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.belief.error_budget import budget, interval_factor
from load_identification.estimation.belief.tool import BODY, Tool
from load_identification.estimation.excitation import Excitation
from load_identification.estimation.identifiability import Identifiability, judge
from load_identification.estimation.measurement import (
    PARAMETERS,
    TORQUE,
    finite_motion,
    make_block,
    regressor,
)
from load_identification.estimation.payload_estimate import (
    CalibrationValue,
    EstimatorSettings,
    PayloadEstimate,
    as_wide,
    in_message_order,
    possible,
)
from load_identification.estimation.systematic_errors import OF_AN_ARM, error_words
from load_identification.interface.batches import FilteredBatch
from load_identification.typing_aliases import FloatArray

INERTIA = range(4, PARAMETERS)

SHOWN = 0.5
"""Posterior over prior standard deviation of an error below which motion shows it [-]."""


@dataclass(frozen=True, eq=False)
class Claim:
    """The payload by a belief: all that is carried, less the tool.

    Attributes
    ----------
    belief : Belief
    tool : Tool
    excitation : Excitation
        By the load with the tool.
    settings : EstimatorSettings
    """

    belief: Belief
    tool: Tool
    excitation: Excitation
    settings: EstimatorSettings

    @cached_property
    def _without_tool(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.tool.taken_off(self.belief.knowledge, self.belief.model.systematic.names)

    @property
    def parameters(self) -> FloatArray:
        """Of the payload, (10,)."""
        return self._without_tool[0]

    @property
    def tool_part(self) -> FloatArray:
        """What of their covariance comes from the tool alone, (10, 10)."""
        return self._without_tool[2]

    @cached_property
    def covariance(self) -> FloatArray:
        """Of parameters and offset, (16, 16), as the linear problem has it."""
        covariance = self._without_tool[1].copy()
        if not self.tool.parameters.any():
            # A tool found by this sensor was pulled at as well: the difference is the load's.
            covariance[BODY, BODY] += np.diag(self.belief.model.pose.like_a_load)
        return covariance

    @cached_property
    def in_message_order(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values (10,), std (10,) and its budget (4, 10), intervals of 95 % at 1.96 std."""
        found = self.belief.knowledge
        parts = [self.covariance[BODY, BODY], found.noise, found.drift, self.tool_part]
        values, deviations = in_message_order(self.parameters, np.array(parts))
        split = budget(*(deviations**2))
        factor = interval_factor(split, float(found.freedom.min()))
        return values, factor * deviations[0], factor**2 * split

    @property
    def unexplained(self) -> float:
        """Torque that the fit leaves, as the motion has it to compete with [N m]."""
        # Without a row of torque nothing is known of its residual.
        residual = float(np.nan_to_num(self.belief.noise.fast[TORQUE]))
        return max(residual, self.excitation.unexplained)

    @cached_property
    def judgement(self) -> Identifiability:
        """What of it is identified, and why the rest is not."""
        values, std, _ = self.in_message_order
        return judge(
            values,
            std,
            self.settings.requirements,
            self.excitation.inertial_torque,
            self.unexplained,
            self.excitation.rate,
        )

    def estimate(
        self, stamp: int, frame: str, puzzle: str, warnings: tuple[str, ...]
    ) -> PayloadEstimate:
        """Return what is published.

        Parameters
        ----------
        stamp, frame, warnings : as in `PayloadEstimate`
        puzzle : str
            What else to check where the mass is not identified; empty: nothing.
        """
        found, noise, judgement = self.belief.knowledge, self.belief.noise.overall, self.judgement
        values, std, parts = self.in_message_order
        covariance, reasons = as_wide(self.covariance, self.parameters, std), judgement.reasons
        identified = judgement.identified
        if puzzle and not judgement.identified[0]:
            reasons = (puzzle, *reasons)
        if judgement.identified[INERTIA].any():
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
            total_covariance=found.covariance[BODY, BODY],
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
            calibration=shown(self.belief),
        )


def explained(belief: Belief, batch: FilteredBatch) -> tuple[FloatArray, FloatArray] | None:
    """Split measured wrenches by what is known.

    Returns
    -------
    predicted, external : (n, 6) arrays
        What tool and payload make the sensor read besides its offset, its errors included as
        far as they are known, and what contact alone would; both as the load exerts them on
        the sensor [N, N m]. NaN where the motion is not finite. None where it nowhere is.
    """
    usable = finite_motion(batch)
    if not usable.any():
        return None
    offset = belief.knowledge.offset
    at = make_block(batch.select(usable), int(batch.stamps[0]))
    read = belief.non_payload_wrench(at) - offset
    predicted = read - regressor(batch) @ belief.values[belief.model.body]
    return predicted, batch.wrench - offset - predicted


def warnings(belief: Belief, zero: drift.Zero | None, stamp: int, ringing: str) -> tuple[str, ...]:
    """Say what is more than expected: a drift of the offset, an error of the cell.

    Parameters
    ----------
    belief : Belief
    zero : drift.Zero or None
        The offset when it was first known.
    stamp : int
        Of now [ns].
    ringing : str
        What rings, in words; empty: nothing.
    """
    words = [error_words(*error) for error in _errors_of_the_cell(belief)] + [ringing]
    if zero is not None:
        found = belief.knowledge
        variance = np.diag(found.covariance)[PARAMETERS:]
        words.append(zero.words(stamp, found.offset, variance, belief.model.pose.variance))
    return tuple(filter(None, words))


def shown(belief: Belief) -> Mapping[str, CalibrationValue]:
    """Return the errors of the cell of which motion shows at least half."""
    return {
        name: CalibrationValue(value, std)
        for name, value, std, prior in _errors_of_the_cell(belief)
        if std < SHOWN * prior
    }


def _errors_of_the_cell(belief: Belief) -> Iterator[tuple[str, float, float, float]]:
    """Yield names, values, standard deviations and those expected.

    None of an arm that weighs; of friction its size, not its shape.
    """
    found, errors = belief.knowledge, belief.model.systematic
    numbers = np.column_stack([found.errors, found.errors_std, errors.std]).tolist()
    for name, (value, std, prior) in zip(errors.names, numbers, strict=True):
        if not name.startswith((*OF_AN_ARM, 'joint_friction.')):
            yield name, value, std, prior
