"""Test weight that is missing from the wrench, while the inertia is there."""

from __future__ import annotations

from functools import partial

import numpy as np

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.fits import WIDE, Problem
from load_identification.estimation.misfit.trials import AS_WELL, NOTHING, Kind, Trial
from load_identification.typing_aliases import FloatArray


def weightless(task: Problem, gravity: FloatArray) -> Trial:
    """Test weight that is taken off: all of the load's, or that of another mass elsewhere.

    `gravity` (3,) as configured, in the root; the root is known.
    """
    upright = gravity / np.linalg.norm(gravity)
    # Effect on the wrench of the mass and first moment that are taken off.
    weight = (task.by_acceleration @ upright)[..., :4]
    found, information, left = task.with_columns(weight, WIDE[:4, :4])
    taken = found[PARAMETERS:]
    mass = float(taken[0])
    without, reversed_ = task.with_acceleration(upright * [[1.0], [2.0]])[0] / task.count
    as_well = 1.1 * left + AS_WELL
    if without < as_well:
        bare = task.matrix + weight @ np.eye(4, PARAMETERS), task.wrench
        return Trial(
            Kind.WEIGHTLESS, without, NOTHING, lambda _: words.WEIGHTLESS, bare, size=mass
        )
    # Twice the weight taken off is gravity that points the other way.
    if min(found[0], mass) <= 0.0 or reversed_ < as_well:
        left = np.inf
    return Trial(
        Kind.WEIGHTLESS,
        left,
        np.asarray(1.0 / np.linalg.inv(information)[:1, :1]),
        partial(words.taken_off, mass, taken[1:] / mass),
        (task.matrix, task.wrench - weight @ taken),
        size=mass,
    )
