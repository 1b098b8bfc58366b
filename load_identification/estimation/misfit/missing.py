"""Test what is missing: weight in the wrench, or a lever, acceleration, gravity in the motion.

A sensor that moves otherwise than described is weighed against wrong units.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy.linalg import block_diag

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.misfit import words
from load_identification.estimation.misfit.evidence import Evidence
from load_identification.estimation.misfit.fits import WIDE, Problem, problem
from load_identification.estimation.misfit.plausible import divisor, fitted
from load_identification.estimation.misfit.trials import AS_WELL, NOTHING, Kind, Trial
from load_identification.typing_aliases import FloatArray

DISPLACED = 0.5
"""Expected distance of a sensor from where it is described, if it is elsewhere [m]."""

LEAST_WAY = 0.03
"""Least lever about which an arm turns its sensor [m]."""

PASSES = 3
"""Number of times the centre of mass is determined with the lever."""

LIKELIER = float(np.log(10.0))
"""Least logarithm of the odds of one cause against another [-]."""

RANGE = float(np.log(1e6))
"""Logarithm of the range of factors that are possible between units [-]."""

ARM = 0.15
"""Ordinary distance of a centre of mass from the sensor [m]."""


def weightless(task: Problem, gravity: FloatArray, added: float = 0.0) -> Trial:
    """Test weight that is taken off: all of the load's, or that of another mass elsewhere.

    `gravity` (3,) as configured, in the root; the root is known. `added` as in `Evidence` [kg]:
    where some is, too much may be.
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
    too_much = bool(added) and mass < 0.0 and found[0] > mass
    # Twice the weight taken off is gravity that points the other way.
    if (min(found[0], mass) <= 0.0 and not too_much) or reversed_ < as_well:
        left = np.inf
    say = partial(words.added_back, added) if too_much else words.taken_off
    return Trial(
        Kind.WEIGHTLESS,
        left,
        np.asarray(1.0 / np.linalg.inv(information)[:1, :1]),
        partial(say, abs(mass), taken[1:] / mass),
        (task.matrix, task.wrench - weight @ taken),
        size=mass,
    )


def displaced(task: Problem, evidence: Evidence) -> Trial:
    """Test a sensor that moves as if it were elsewhere on its link than described.

    An unknown lever r changes the acceleration of S: forces then fit the first moment m (c + r),
    while torques fit m c. So does linear acceleration that the source of the motion leaves out, as
    far as it is that of a fixed lever.
    """
    force = evidence.matrix[:, :3, 1:4]
    mass = divisor(float(task.alone()[1][0]))
    centre = np.zeros(3)
    # The force by the lever acts at the centre of mass, which the first passes determine.
    for _ in range(PASSES):
        torque = np.cross(centre, force, axisb=1, axisc=1)
        of_lever = task.parts(np.concatenate([force, torque], axis=1))
        prior = np.eye(3) / (mass * DISPLACED) ** 2
        found, known, left = task.with_columns(of_lever, prior)
        mass = divisor(float(found[0]))
        centre, moment = found[1:4] / mass, found[PARAMETERS:]
    return Trial(
        Kind.PLACE,
        left,
        mass**2 * known,
        partial(words.place, moment / mass),
        (task.matrix, task.wrench - of_lever @ moment),
        lever=moment / mass,
    )


def accelerated(task: Problem, evidence: Evidence) -> tuple[float, FloatArray]:
    """Fit torques to the measured forces alone, for any linear acceleration and gravity.

    Whatever accelerates the load, the force acts at its centre of mass c: torques are c x f less
    what turns the load, with the measured force f. So they are while the mass changes.

    Returns
    -------
    left : float
        Mean square residual of the torques, in units of that of an ordinary cell [-].
    centre : (3,) array
        c [m].
    """
    force, torque = evidence.wrench[:, :3], evidence.wrench[:, 3:]
    by_centre = np.stack([np.cross(axis, force) for axis in np.eye(3)], axis=2)
    columns = np.concatenate([by_centre, evidence.matrix[:, 3:, 4:]], axis=2)
    whole = np.concatenate([columns, torque[..., None]], axis=2)
    rows = task.parts(np.concatenate([np.zeros_like(whole), whole], axis=1))
    rows = rows.reshape(task.count, -1)
    gram = rows.T @ rows
    free = gram[:-1, :-1] + block_diag(np.eye(3), WIDE[4:, 4:])
    found = np.linalg.solve(free, gram[:-1, -1])
    return float(gram[-1, -1] - found @ gram[:-1, -1]) / (task.count / 2), found[:3]


def turning_alone(evidence: Evidence) -> float:
    """Return the rms angular acceleration [rad/s²] if the source has no linear one; otherwise 0.

    Where the joints are known, the motion is computed here, and complete.
    """
    turning = float(np.sqrt(np.mean(np.sum(evidence.angular_acceleration**2, axis=1))))
    moves = float(np.ptp(np.linalg.norm(evidence.matrix[:, :3, 0], axis=1))) > LEAST_WAY * turning
    return 0.0 if moves or evidence.joint_motion.shape[2] else turning


def wrong_gravity(evidence: Evidence, gravity: FloatArray) -> str:
    """Report gravity (3,) that another source of the motion leaves out, or has in another unit."""
    # Estimated from the motion, so the first samples scatter.
    found = float(np.median(np.linalg.norm(evidence.gravity, axis=1)))
    set_, known = float(np.linalg.norm(gravity)), evidence.joint_motion.shape[2] > 0
    return '' if known or abs(found - set_) < set_ / 2.0 else words.no_gravity(found, set_)


def odds_of_units(units: Trial, place: Trial, count: int, crowd: float) -> float:
    """Return the logarithm of the odds of wrong units against a sensor elsewhere [-].

    Both explain that forces show another first moment than torques. The likelihood of each counts
    with the share of its prior that the data leave, and with that of its centre of mass.

    Parameters
    ----------
    units, place : Trial
    count : int
        Number of scalar measurements.
    crowd : float
        Number of blocks that count as one.
    """
    noise = crowd * max(min(units.left, place.left), 1.0)
    fit = count * (place.left - units.left) / (2.0 * noise)
    known = np.linalg.eigvalsh(place.information) * DISPLACED**2 / noise
    factor = float(np.log(np.sqrt(2.0 * np.pi) * min(units.std(crowd), RANGE) / RANGE))
    lever = -0.5 * float(np.sum(np.log(np.maximum(known, 1.0))))
    arms = [
        float(np.sum(payload[1:4] ** 2)) / divisor(float(payload[0])) ** 2
        for payload in (fitted(trial.rows, 1.0, 1.0)[0] for trial in (units, place))
    ]
    return fit + factor - lever - (arms[0] - arms[1]) / (2.0 * ARM**2)


def other_units(
    evidence: Evidence, units: Trial, task: Problem, strength: float, crowd: float
) -> tuple[str, ...]:
    """Return the units, the likeliest first, that are likelier with a sensor elsewhere as well.

    Forces of a sensor that moves otherwise than described show a first moment that is not the
    load's, and the factor is then that of no unit, or of a wrong one.

    Parameters
    ----------
    evidence, task : Evidence, Problem
    units : Trial
        The fit of the factor alone.
    strength : float
        Of gravity [m/s²].
    crowd : float
        Number of blocks that count as one.
    """
    found = []
    for factor, said in words.UNITS.items():
        by = np.repeat([1.0, factor], 3)
        published = replace(evidence, wrench=evidence.wrench / by)
        place = displaced(problem(published, task.scale / by, strength), published)
        found.append((odds_of_units(units, place, task.count, crowd), said))
    return tuple(said for odds, said in sorted(found) if odds < -LIKELIER)
