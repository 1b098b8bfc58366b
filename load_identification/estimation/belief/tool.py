"""Subtract a tool identified by the same sensor, including the errors that both have in common.

An error n of the sensor affects both bodies: phi = a + S n. Their difference is affected only by
(S - S') n: a gain of one per cent affects the payload by one per cent, however heavy the tool.
In the process that identified the tool, all errors that stay the same while the robot is described
alike act so, the pose field among them: what is learned of them later corrects the tool too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from load_identification.estimation.measurement import PARAMETERS
from load_identification.typing_aliases import FloatArray, IntArray

if TYPE_CHECKING:
    from load_identification.estimation.belief.belief import Belief
    from load_identification.estimation.belief.error_budget import Knowledge
    from load_identification.estimation.systematic_errors import SystematicErrors

BODY = slice(PARAMETERS)

COMMON = 'gain_common'
"""Name of the gain error of all channels together."""

OF_THE_SENSOR = ('gain', 'cross_talk')
"""Classes of lasting errors; gravity, description, encoders and delay may be corrected later."""

OF_THE_CELL = (*OF_THE_SENSOR, 'mounting', 'origin', 'base_tilt', 'joint_zero', 'field')
"""Classes of errors that stay the same while the robot is described alike."""

RECURS = 0.75
"""Share of the variance of the pose field, as a tool's error, that recurs with the payload [-]:
the pull of a cable depends on the joints, and only in part on how the sensor is turned. With all
of it, 93 % of the masses held in cells with such a cable; without any, no light part is
identified."""


@dataclass(frozen=True, eq=False)
class Shared:
    """Dependence of a body on the errors of the sensor that identified it."""

    names: tuple[str, ...]
    """Names of N errors, as in `SystematicErrors.names`."""
    errors: FloatArray
    """Estimates of the errors at that time, (N,)."""
    by_errors: FloatArray
    """S, (10, N): derivative of the parameters by each error."""
    alone: FloatArray
    """Covariance of the parameters given these errors, (10, 10)."""
    within: Within | None = field(default=None, kw_only=True)
    """The same with all errors of `OF_THE_CELL`; None: not known, as after a restart."""

    @classmethod
    def by(cls, belief: Belief) -> Shared:
        """Return the dependence of what a belief knows, that on all errors included."""
        model = belief.model
        lasting = cls.of(belief.knowledge, model.systematic.names)
        within = cls.of(*with_field(belief), OF_THE_CELL)
        by_field = within.of_field(len(model.pose.field_std)) @ belief.knowledge.root[model.field]
        other = (1.0 - RECURS) * by_field @ by_field.T
        within = replace(within, alone=within.alone + other)
        return replace(lasting, within=Within(within, model.systematic, belief.load))

    @classmethod
    def of(
        cls, found: Knowledge, names: Sequence[str], classes: tuple[str, ...] = OF_THE_SENSOR
    ) -> Shared:
        """Return the dependence at present on some of the errors of these names."""
        kept = np.flatnonzero([name.startswith(classes) for name in names])
        by_errors, alone = _split(found, kept)
        shared = tuple(names[k] for k in kept.tolist())
        return cls(shared, found.errors[kept], by_errors[BODY], alone[BODY, BODY])

    def of_field(self, size: int) -> FloatArray:
        """Return the derivative (10, size) by the pose field, which stands last."""
        return self.by_errors[:, len(self.names) - size :]


@dataclass(frozen=True, eq=False)
class Within:
    """Dependence of a body on all errors of the cell in which it was identified."""

    shared: Shared
    errors: SystematicErrors
    """Those of that cell: of another, or of a robot described otherwise, they are others."""
    load: FloatArray
    """Load under which the pose field acted, (10,)."""


class WithoutTool(NamedTuple):
    """What is known of the payload."""

    parameters: FloatArray
    """(10,)."""
    covariance: FloatArray
    """Of payload and offset together, (16, 16)."""
    by_tool: FloatArray
    """The part of it that comes from the tool alone, (10, 10)."""


@dataclass(frozen=True, eq=False)
class Tool:
    """A body that is subtracted from the payload."""

    parameters: FloatArray
    covariance: FloatArray
    """As identified, (10,) and (10, 10); zeros: none [kg, kg m, kg m²]."""
    shared: Shared | None = None
    """None: its errors are independent of those of the payload."""
    frame: str = field(default='', kw_only=True)
    """Sensor frame in which it was identified; empty: not known."""

    def of(self, frame: str) -> Tool:
        """Return the same tool, of this sensor frame if its own is not known."""
        return self if self.frame or not self.parameters.any() else replace(self, frame=frame)

    def within(self, belief: Belief) -> tuple[Tool, Knowledge, Sequence[str]]:
        """Return the tool, knowledge and names for `taken_off`, of all that both have in common.

        In the cell in which the tool was identified, the pose field is among the errors.
        """
        its, model = None if self.shared is None else self.shared.within, belief.model
        if its is None or its.errors is not model.systematic:
            return self, belief.knowledge, model.systematic.names
        shared, pose, then, now = its.shared, model.pose, its.load, belief.load
        # Angles that give way under the load make the field another one.
        other = pose.variances(now) + pose.variances(then) - 2.0 * pose.variances(now, then)
        along = shared.of_field(len(other))
        shared = replace(shared, alone=shared.alone + (along * other) @ along.T)
        return replace(self, shared=shared), *with_field(belief)

    def taken_off(self, found: Knowledge, names: Sequence[str]) -> WithoutTool:
        """Subtract the tool from the estimate of tool and payload together.

        Parameters
        ----------
        found : Knowledge
        names : sequence of str
            Names of its systematic errors.
        """
        its, covariance = self.shared, found.covariance.copy()
        if its is None or not set(its.names) <= set(names):
            covariance[BODY, BODY] += self.covariance
            return WithoutTool(found.body - self.parameters, covariance, self.covariance)
        places = _places(its.names, names)
        by_errors, covariance = _split(found, places)
        by_errors[BODY] -= its.by_errors
        covariance += by_errors @ found.errors_covariance[np.ix_(places, places)] @ by_errors.T
        covariance[BODY, BODY] += its.alone
        # Better present estimates of the errors correct the tool as well.
        tool = self.parameters + its.by_errors @ (found.errors[places] - its.errors)
        return WithoutTool(found.body - tool, covariance, its.alone)

    def by_errors(self, names: Sequence[str]) -> FloatArray:
        """Return the derivative (10, N) by errors of these names; zeros: independent of them."""
        along, its = np.zeros((PARAMETERS, len(names))), self.shared
        if its is not None and set(its.names) <= set(names):
            along[:, _places(its.names, names)] = its.by_errors
        return along

    def common(self, found: Knowledge, names: Sequence[str]) -> FloatArray:
        """Return the part (10, 10) of the payload's covariance due to the sensor's common gain.

        Of all errors of the sensor it alone acts alike in every pose.

        Parameters
        ----------
        found, names : as for `taken_off`
        """
        kept = np.flatnonzero([name == COMMON for name in names])
        among, along = found.errors_covariance[np.ix_(kept, kept)], found.with_errors[BODY, kept]
        its = self.shared
        if its is not None and COMMON in its.names and set(its.names) <= set(names):
            along = along - its.by_errors[:, [its.names.index(COMMON)]] @ among
        return np.asarray(along @ np.linalg.solve(among, along.T))


def with_field(belief: Belief) -> tuple[Knowledge, Sequence[str]]:
    """Return what a belief knows with the pose field among the errors, and the names of these."""
    model, found, root = belief.model, belief.knowledge, belief.knowledge.root
    field_root, errors_root = root[model.field], root[model.errors]
    both = errors_root @ field_root.T
    among = np.block([[found.errors_covariance, both], [both.T, field_root @ field_root.T]])
    along = np.concatenate([root[model.body], root[model.offset]]) @ field_root.T
    extended = replace(
        found,
        errors=np.append(found.errors, belief.values[model.field]),
        errors_covariance=among,
        with_errors=np.hstack([found.with_errors, along]),
    )
    return extended, model.tied_names


NO_TOOL = Tool(np.zeros(PARAMETERS), np.zeros((PARAMETERS, PARAMETERS)))


def _places(some: Sequence[str], names: Sequence[str]) -> IntArray:
    """Return the indices of some names among all."""
    index = {name: k for k, name in enumerate(names)}
    return np.array([index[name] for name in some], dtype=np.int64)


def _split(found: Knowledge, places: IntArray) -> tuple[FloatArray, FloatArray]:
    """Split the covariance of body and offset into the part of some errors and the remainder.

    Returns
    -------
    by_errors : (16, k) array
    alone : (16, 16) array
        Covariance given these errors.
    """
    among, along = found.errors_covariance[np.ix_(places, places)], found.with_errors[:, places]
    by_errors = np.asarray(np.linalg.solve(among, along.T).T)
    left = found.covariance - by_errors @ along.T
    # Members of the bank disagree slightly on it: negative variances are cut off.
    scale = np.sqrt(np.diag(found.covariance))
    values, axes = np.linalg.eigh(left / np.outer(scale, scale))
    axes *= scale[:, None]
    alone: FloatArray = (axes * np.maximum(values, 0.0)) @ axes.T
    return by_errors, alone
