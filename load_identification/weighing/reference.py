"""Compare a weight with what this sensor has measured before, errors of both included.

    y_1 = B_1 x,  y_2 = B_2 (x + w) + G d

x are all unknowns at the time of the earlier measurement, w their changes since, and d is the
difference of the two loads. Whatever error of the sensor and of the cell is in both cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

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

PRIORS = float(stdtrit(PRIOR_FREEDOM, 0.975)) / INTERVAL
"""Factor for an interval of 95 %: the priors have so many degrees of freedom [-]."""


@dataclass(frozen=True, eq=False)
class Reference(Known):
    """What was known when a load was measured, of that load too.

    Attributes
    ----------
    tool : Tool
        The tool that was subtracted.
    still : bool
        Whether the arm had stood still for a while.
    """

    tool: Tool
    still: bool

    def difference(self, pose: Pose) -> tuple[float, float]:
        """Return by how much the load in a later pose at rest is heavier, and the std [kg]."""
        found = self._difference(pose, np.zeros(4))
        # Gains act on the difference as well.
        found = self._difference(pose, found[0])
        pose_errors = self.belief.model.pose
        # Elsewhere an error that acts like a load in all poses may act otherwise.
        elsewhere = 1.0 - self._kept(pose.travelled) ** 2
        variance = found[1][0, 0] + elsewhere * pose_errors.like_a_load[0]
        return float(found[0][0]), float(PRIORS * np.sqrt(variance))

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
        moved, added = model.moved(elapsed, angle, belief.scales, belief.weight)
        keep, variances = np.ones(model.size), np.zeros((len(added), model.size))
        keep[: len(moved)], variances[:, : len(moved)] = moved, added
        # Fast motion makes errors of the path look like noise, and smaller than they are.
        size = max(1.0, float(belief.scales[FIELD])) * model.pose.path_std
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
