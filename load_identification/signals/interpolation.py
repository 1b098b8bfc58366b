"""Position and velocity between samples."""

from __future__ import annotations

import numpy as np

from load_identification.typing_aliases import FloatArray, IntArray


def interpolate(
    stamps: IntArray,
    position: FloatArray,
    velocity: FloatArray,
    times: IntArray,
    max_gap: int,
) -> tuple[FloatArray, FloatArray]:
    """Return position and velocity at given times from samples around them.

    Parameters
    ----------
    stamps : (n,) int array
        Of the samples, not decreasing [ns].
    position, velocity : (n, J) arrays
        Samples [rad or m, rad/s or m/s]; velocity NaN where not known.
    times : (k,) int array
        Where to look [ns].
    max_gap : int
        Samples farther apart than this are not joined [ns].

    Returns
    -------
    position, velocity : (k, J) arrays
        NaN where no two samples bracket the time.
    """
    after = np.minimum(stamps.searchsorted(times), len(stamps) - 1)
    before = np.maximum(after - (stamps[after] != times), 0)
    gap, since = stamps[after] - stamps[before], times - stamps[before]
    nowhere = (gap > max_gap) | (since < 0) | (since > gap)
    step = gap[:, None] * 1e-9
    s = (since / np.maximum(gap, 1))[:, None]
    p0, v0, v1 = position[before], velocity[before], velocity[after]
    rise = position[after] - p0
    curve = s * (1 - s) * ((1 - s) * (step * v0 - rise) - s * (step * v1 - rise))
    q = p0 + s * rise + np.where(np.isfinite(curve), curve, 0.0)
    qd = v0 + s * (v1 - v0)
    q[nowhere], qd[nowhere] = np.nan, np.nan
    return q, qd
