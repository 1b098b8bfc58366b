"""When a planned path began in a recording, found from the joint positions."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from load_identification.arm.joint_motion import Path
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

COARSE = 0.05
"""Step of the search, and of what is compared in it [s]."""

WORST = 0.5
"""Largest share of the planned path's rms that a recording of it may be away from it [-]."""


def find_start(path: Path, times: FloatArray, position: FloatArray) -> float:
    """Return when a path began: where its positions differ least from those measured.

    A lag of the controller is part of what is found.

    Parameters
    ----------
    path : Path
    times : (n,) array
        Ascending [s].
    position : (n, J) array
        Measured [rad, m].

    Raises
    ------
    ParameterError
        Where the recording is shorter than the path, or shows no such motion.
    """
    latest = times[-1] - path.duration
    if latest < times[0] - COARSE:
        raise ParameterError(
            f'the recording lasts {times[-1] - times[0]:.1f} s; the planned path takes '
            f'{path.duration:.1f} s'
        )
    grid = np.arange(0.0, path.duration, COARSE)
    planned = path.sample(grid).position

    def distance(start: float) -> float:
        measured = np.column_stack([np.interp(grid + start, times, q) for q in position.T])
        return float(np.mean((measured - planned) ** 2))

    starts = np.arange(times[0] - COARSE, max(latest, times[0]) + 2.0 * COARSE, COARSE)
    best = starts[int(np.argmin([distance(start) for start in starts]))]
    found = scipy.optimize.minimize_scalar(
        distance, bounds=(best - COARSE, best + COARSE), method='bounded', options={'xatol': 1e-5}
    )
    spread = float(np.mean((planned - planned.mean(axis=0)) ** 2))
    if found.fun > WORST**2 * spread:
        raise ParameterError(
            f'the recording shows no motion like the planned one: the nearest, from {found.x:.2f} '
            f's, is {np.sqrt(found.fun):.3g} rad rms away from it; take the plan that was carried '
            'out'
        )
    return float(found.x)
