"""How an arm is identified."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from load_identification.arm.methods.acceleration_free import BANDWIDTHS
from load_identification.arm.planning.plan_file import ExperimentPlan
from load_identification.errors import ParameterError
from load_identification.numerics.weighted_solution import Solver

METHODS = ('least_squares', 'sequential', 'spectrum', 'acceleration_free')

TRANSITION_VELOCITIES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
"""Over which Coulomb friction may change its sign; the recording says which [rad/s, m/s]."""


@dataclass(frozen=True)
class Settings:
    """How an arm is identified.

    Attributes
    ----------
    method : str
        One of `METHODS`. `spectrum` and `sequential` are for joint efforts.
    cutoff : float
        Of the low-pass that motion and measurement go through [Hz].
    cutoffs : tuple of float
        From which that is chosen by held-out data, and with it the effects of the drives and
        whether velocities are used; empty: nothing is chosen [Hz].
    bandwidth : float
        At which predictions are tested [Hz].
    velocities : bool
        Whether published velocities are used.
    bandwidths : tuple of float
        l and d of the low-passes of `acceleration_free` [rad/s].
    plan : ExperimentPlan, optional
        Of `spectrum`: which experiments the recording is of.
    transition_velocities : tuple of float
        From which that of the drives is chosen; empty: it stays [rad/s, m/s].
    solver : Solver
    """

    method: str = 'least_squares'
    cutoff: float = 20.0
    cutoffs: tuple[float, ...] = ()
    bandwidth: float = 20.0
    velocities: bool = True
    bandwidths: tuple[float, float] = BANDWIDTHS
    plan: ExperimentPlan | None = None
    transition_velocities: tuple[float, ...] = TRANSITION_VELOCITIES
    solver: Solver = field(default_factory=Solver)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ParameterError(
                f'method is {self.method!r}; it must be one of {", ".join(METHODS)}'
            )
        if (self.method == 'spectrum') != (self.plan is not None):
            raise ParameterError('the method spectrum and a plan of experiments go together')
        for cutoff in (self.cutoff, *self.cutoffs, self.bandwidth):
            if not 0.0 < cutoff < np.inf:
                raise ParameterError(f'cutoff is {cutoff} Hz; it must be above 0')
