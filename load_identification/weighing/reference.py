"""Compare a weight with what this sensor has measured before, errors of both included.

    y_1 = B_1 x,  y_2 = B_2 (x + w) + G d

x are all unknowns at the time of the earlier measurement, w their changes since, and d is the
difference of the two loads. Whatever error of the sensor and of the cell is in both cancels.

What was known when a mass was published is remembered, to weigh that load again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from load_identification.estimation import drift
from load_identification.estimation.belief.error_budget import LEAST_BLUR, PRIOR_FREEDOM, sharpened
from load_identification.estimation.belief.model import FIELD
from load_identification.estimation.belief.tool import OF_THE_SENSOR, Tool
from load_identification.interface.names import INTERVAL
from load_identification.numerics.triangle import root_covariance, values
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.static_estimate import NOTHING_KNOWN, gravity_rows
from load_identification.weighing.weight import STATIC, Known, Pose

T_EQUIVALENT = float(stdtrit(PRIOR_FREEDOM, 0.975)) / INTERVAL
"""Factor by which the 95 % interval of a t distribution is wider than that of a normal one, with
the degrees of freedom of the error priors [-]."""

MOST_REFERENCES = 16
"""Number of references remembered of published masses, and of answered ones; those used least
recently go first."""

MOST_NUMBERS = 20_000
"""Number of published masses remembered."""

SOON_NS = 1_000_000_000
"""A load gets another reference after so long, then each time it is known twice as long [ns]."""

PUBLISHED, ANSWERED = '.9g', '.6g'
"""Digits of a mass on topics, and in the answer of a service."""


@dataclass(frozen=True, eq=False)
class Reference(Known):
    """What was known when a load was measured, of that load too."""

    tool: Tool
    """The tool that was subtracted."""
    still: bool
    """Whether the arm had stood still for a while."""

    def difference(self, pose: Pose) -> tuple[float, float]:
        """Return by how much the load in a later pose at rest is heavier, and the std [kg]."""
        found = self._difference(pose, np.zeros(4))
        # Gains act on the difference as well.
        found = self._difference(pose, found[0])
        pose_errors = self.belief.model.pose
        # Elsewhere an error that acts like a load in all poses may act otherwise.
        elsewhere = 1.0 - self._kept(pose.travelled) ** 2
        variance = found[1][0, 0] + elsewhere * pose_errors.like_a_load[0]
        return float(found[0][0]), float(T_EQUIVALENT * np.sqrt(variance))

    def _difference(self, pose: Pose, about: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the difference of mass and first moment, with its covariance."""
        belief, model = self.belief, self.belief.model
        elapsed = max(0.0, 1e-9 * (pose.rest.end - self.stamp))
        angle = max(0.0, pose.travelled - self.travelled)
        body = belief.body.copy()
        body[STATIC] += about
        live = pose.block.live
        keep, variances = self._changes(elapsed, angle)
        rows = model.rows(pose.block, body)[live, :-1]
        # A body's own columns are as they were.
        added = gravity_rows(pose.gravity[None])[0][live]
        noise = np.diag(pose.rest.standard_error[live] ** 2)
        means, covariances = [], []
        weight = belief.weight
        for place in np.flatnonzero(weight):
            mean, total = self._expected(belief.triangles[place], rows * keep)
            total += (rows * variances[place]) @ rows.T + noise
            solved = np.linalg.solve(total, added)
            inverse = np.linalg.inv(added.T @ solved + np.eye(4) / NOTHING_KNOWN**2)
            means.append(inverse @ (solved.T @ (pose.block.wrench[live] - mean)))
            covariances.append(inverse)
        used = weight[weight > 0.0]
        return drift.mixed(used / used.sum(), np.array(means), np.array(covariances))

    def _expected(self, triangle: FloatArray, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of combinations of the unknowns of a walk, rows (m, size)."""
        belief, model = self.belief, self.belief.model
        asked = np.concatenate([model.places(model.errors), model.places(model.body)])
        blurred = np.flatnonzero(np.diag(belief.blur))
        sharp, blur = asked[blurred], belief.blur[np.ix_(blurred, blurred)]
        root = root_covariance(triangle, np.vstack([rows, np.eye(model.size)[sharp]]))
        products, count, unknowns = root.T @ root, len(rows), values(triangle)
        mean, covariance = rows @ unknowns, products[:count, :count]
        its = products[count:, count:]
        if np.sum(its * blur) > LEAST_BLUR:
            change, more = sharpened(unknowns[sharp], its, blur, products[count:, :count])
            mean, covariance = mean + change, covariance + more
        return mean, covariance

    def _kept(self, travelled: float) -> float:
        """Return the share of the path's errors that is left at an angle travelled [rad]."""
        angle = max(0.0, travelled - self.travelled)
        return self.belief.model.pose.kept(angle if self.still else np.inf)

    def _changes(self, elapsed: float, angle: float) -> tuple[FloatArray, FloatArray]:
        """Return the factor kept of each unknown (size,), and variance added (k, size)."""
        belief, model = self.belief, self.belief.model
        moved, added = belief.moved(elapsed, angle)
        keep, variances = np.ones(model.size), np.zeros((len(added), model.size))
        keep[: len(moved)], variances[:, : len(moved)] = moved, added
        # Fast motion makes errors of the path look like noise, and smaller than they are.
        size = max(1.0, float(belief.scales[FIELD])) * model.pose.path_std_under(belief.body)
        keep[model.path] = kept = self._kept(self.travelled + angle)
        variances[:, model.path] = (1.0 - kept**2) * size**2
        errors = model.systematic
        its = np.array([not name.startswith(OF_THE_SENSOR) for name in errors.names], dtype=bool)
        places = model.places(model.errors)[its]
        left = np.exp(-elapsed / model.relaxation)
        keep[places] = left
        std = errors.std * belief.scales[errors.group]
        variances[:, places] = (1.0 - left**2) * std[its] ** 2
        return keep, variances


class Memory:
    """Tell by a mass as it was published which load it was of, and what was known then.

    The reference of a number is from when the number was published, or from before, but never
    from later: it must not follow a load that changes unnoticed.
    """

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, Reference] = OrderedDict()
        self._published: OrderedDict[Reference, None] = OrderedDict()
        self._answered: OrderedDict[Reference, None] = OrderedDict()
        self._last: Reference | None = None
        self._begun = self._due = 0

    def forget(self) -> None:
        """Forget all: the offset is another one."""
        self._numbers.clear()
        self._published.clear()
        self._answered.clear()
        self._last = None

    def interrupt(self) -> None:
        """Note that no load is identified now: the next one may be another."""
        self._last = None

    def note(self, mass: float, stamp: int, still: bool, now: Callable[[], Reference]) -> None:
        """Note a mass [kg] that is published, with the stamp of the newest sample in it [ns].

        `still`: whether the arm stands still for a while; `now` returns what is known now.
        """
        last = self._last
        if last is None:
            self._begun = stamp
        if last is None or stamp >= self._due or (still and not last.still):
            self._last = last = _slim(now())
            self._due = stamp + max(stamp - self._begun, SOON_NS)
        self._keep(f'{mass:{PUBLISHED}}', last, self._published)

    def answered(self, mass: float, reference: Reference) -> None:
        """Note a mass that a service answers [kg]."""
        self._keep(f'{mass:{ANSWERED}}', _slim(reference), self._answered)

    def of(self, mass: float, tool: Tool) -> Reference | None:
        """Return what was known of the load whose published mass this is [kg], with this tool."""
        for digits in PUBLISHED, ANSWERED:
            found = self._numbers.get(f'{mass:{digits}}')
            if found is not None and found.tool is tool:
                used = self._published if found in self._published else self._answered
                used.move_to_end(found)
                return found
        return None

    def _keep(self, number: str, reference: Reference, used: OrderedDict[Reference, None]) -> None:
        self._numbers[number] = reference
        self._numbers.move_to_end(number)
        used[reference] = None
        used.move_to_end(reference)
        if len(used) > MOST_REFERENCES:
            lost, _ = used.popitem(last=False)
            for name in [n for n, each in self._numbers.items() if each is lost]:
                del self._numbers[name]
        while len(self._numbers) > MOST_NUMBERS:
            self._numbers.popitem(last=False)


def _slim(reference: Reference) -> Reference:
    """Return the reference without what only further estimation needs."""
    return replace(
        reference, belief=replace(reference.belief, start=None, held=(), held_noise=None)
    )
