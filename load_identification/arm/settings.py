"""Define the settings of an arm's identification."""

from __future__ import annotations

from dataclasses import dataclass, field

from load_identification.arm.methods.acceleration_free import BANDWIDTHS
from load_identification.arm.planning.plan_file import ExperimentPlan
from load_identification.numerics.weighted_solution import Solver

TRANSITION_VELOCITIES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
"""Candidate velocities over which Coulomb friction changes its sign; data select one
[rad/s, m/s]."""


@dataclass(frozen=True)
class Settings:
    """The settings of an arm's identification."""

    method: str = 'least_squares'
    """`least_squares`, `acceleration_free`, or, of joint efforts alone, `sequential` or
    `spectrum`."""
    cutoff: float = 20.0
    """Cutoff frequency of the low-pass of motion and measurement [Hz]."""
    cutoffs: tuple[float, ...] = ()
    """Candidates for `cutoff`. Held-out data select it, the effects of the drives, and the use of
    velocities; empty: nothing is selected [Hz]."""
    bandwidth: float = 20.0
    """Bandwidth at which predictions are tested [Hz]."""
    velocities: bool = True
    """Whether published velocities are used."""
    bandwidths: tuple[float, float] = BANDWIDTHS
    """Bandwidths l and d of the low-passes of `acceleration_free` [rad/s]."""
    plan: ExperimentPlan | None = None
    """For `spectrum`: the plan of the recorded experiments."""
    transition_velocities: tuple[float, ...] = TRANSITION_VELOCITIES
    """Candidates for the drives' transition velocity; empty: it is fixed [rad/s, m/s]."""
    solver: Solver = field(default_factory=Solver)
