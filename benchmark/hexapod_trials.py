"""A load on a hexapod: machines and motions drawn, and identified in both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.parallel.excitation import plan_sines
from load_identification.parallel.geometry import FrictionSettings, Geometry
from load_identification.parallel.leg_filter import HexapodFilter
from load_identification.parallel.mechanism import Mechanism
from load_identification.parallel.two_step import BodyEstimate, TwoStepEstimator
from load_identification.signals.differentiator import Differentiator
from load_identification.simulation.hexapod import AMPLITUDE, FREQUENCY, GRAVITY, PLATFORM
from load_identification.simulation.in_mujoco.hexapod import (
    Run,
    Sensors,
    draw_friction,
    draw_load,
    leg_batch,
    simulate,
)
from load_identification.typing_aliases import FloatArray

PROCEDURES = ('one-step', 'two-step')
QUANTITIES = (
    'm', 'cx', 'cy', 'cz', 'I1', 'I2', 'I3',
    'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz',
)  # fmt: skip
"""Of the load: mass, centre of mass, principal moments, and the inertia entry by entry."""

SETTINGS = EstimatorSettings(force_noise=1.0, torque_noise=0.2)
"""Of the one-step estimator: what leg forces with friction are like [N, N m]."""


def truth(load: InertialParameters) -> FloatArray:
    """Return the true values of `QUANTITIES`."""
    entries = load.inertia_about_center_of_mass[np.triu_indices(3)]
    return np.concatenate([[load.mass], load.center_of_mass, load.principal().moments, entries])


def goals(true: FloatArray) -> FloatArray:
    """Return 1 % of the mass, 2 mm, 5 % of each principal moment, of truths (..., quantities)."""
    lengths = np.full((*true.shape[:-1], 3), 0.002)
    return np.concatenate([0.01 * true[..., :1], lengths, 0.05 * true[..., 4:7]], axis=-1)


def weightings(geometry: Geometry) -> dict[str, FrictionSettings]:
    """Return friction settings by the name of their weighting."""
    friction = geometry.friction
    if friction is None:
        raise RuntimeError('the geometry has no friction')
    # Speeds below which nothing is: every sample counts, and every leg's friction is learned.
    never = replace(friction, low_speed=-2.0, full_speed=-1.0)
    mean = replace(friction, measure='mean', low_speed=0.10, full_speed=0.15)
    return {'none': never, 'mean speed (paper)': mean, 'slowest leg': friction}


@dataclass(frozen=True)
class Trial:
    """A machine on two motions, and what it carries on the second.

    Attributes
    ----------
    load : InertialParameters
    alone, loaded : Run
    """

    load: InertialParameters
    alone: Run
    loaded: Run


def draw_trial(
    geometry: Geometry, seed: int, duration: float, folder: Path | None = None
) -> Trial:
    """Draw load, friction and phases, and simulate both motions where the folder lacks them."""
    mechanism, rng = Mechanism(geometry), np.random.default_rng(seed)
    load, friction = draw_load(rng), draw_friction(rng)
    runs = []
    for name, body in (('alone', PLATFORM), ('loaded', PLATFORM + load)):
        phase = rng.uniform(0.0, 2.0 * np.pi, 3)
        # The second motion is some time after the first.
        now = replace(friction, phase=rng.uniform(0.0, 2.0 * np.pi, 6))
        path = folder / f'{seed}-{duration:g}-{name}.npz' if folder is not None else None
        if path is not None and path.exists():
            runs.append(Run(**np.load(path)))
            continue
        motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, duration, phase)
        runs.append(simulate(mechanism, body, motion, now))
        if path is not None:
            np.savez(path, **vars(runs[-1]))
    return Trial(load, *runs)


Found = dict[tuple[str, str], tuple[FloatArray, FloatArray]]
"""Values and standard deviations of `QUANTITIES` by weighting and procedure."""


def quantities(load: BodyEstimate) -> tuple[FloatArray, FloatArray]:
    """Return the values of `QUANTITIES` and their standard deviations."""
    moments, moments_std = load.principal_moments()
    values, std = load.values, load.std
    return (
        np.concatenate([values[:4], moments, values[4:]]),
        np.concatenate([std[:4], moments_std, std[4:]]),
    )


def identify(
    geometry: Geometry,
    run: Run,
    sensors: Sensors,
    seed: int,
    procedures: Sequence[str] = PROCEDURES,
) -> dict[str, BodyEstimate]:
    """Identify what moves on the legs by some procedures, from one draw of the noise."""
    mechanism = Mechanism(geometry)
    stage = HexapodFilter(mechanism, Differentiator(20.0, 50.0, 0.1), GRAVITY.tolist(), 0.1)
    batch = stage.update(leg_batch(mechanism, run, sensors, seed))
    if batch is None:
        raise RuntimeError(f'no sample: {stage.dropped}')
    found = {}
    for procedure in procedures:
        one_step = procedure == 'one-step'
        estimator = PayloadEstimator(SETTINGS) if one_step else TwoStepEstimator()
        estimator.update(batch)
        estimate = estimator.estimate()
        if estimate is None:
            raise RuntimeError(f'no estimate: {stage.dropped}')
        found[procedure] = (
            estimate if isinstance(estimate, BodyEstimate) else BodyEstimate.of(estimate)
        )
    return found


def compare(
    geometry: Geometry,
    settings: dict[str, FrictionSettings],
    trial: Trial,
    seed: int,
    sensors: Sensors,
    procedures: Sequence[str] = PROCEDURES,
) -> Found:
    """Identify the load of a trial with every weighting, by some procedures."""
    found = {}
    for name, friction in settings.items():
        weighted = replace(geometry, friction=friction)
        platform = identify(weighted, trial.alone, sensors, 2 * seed, procedures)
        both = identify(weighted, trial.loaded, sensors, 2 * seed + 1, procedures)
        for procedure in procedures:
            found[name, procedure] = quantities(both[procedure] - platform[procedure])
    return found
