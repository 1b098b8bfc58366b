"""Project on the phase of an oscillation, and remove means from a slow motion.

Vandanjon, Gautier and Desbats 1995, section 3.2; equation numbers are theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from load_identification.motion.joint_path import JointMotion
from load_identification.motion.sines import fourier_basis
from load_identification.typing_aliases import FloatArray

HARMONICS = 6
"""Number of harmonics of an experiment's frequency kept of a measured oscillation."""

GRAVITY_RANK = 1e-9
"""Directions of a centred slow motion weaker than this share of the strongest are rounding."""


def transform(columns: FloatArray, times: FloatArray, frequency: float) -> FloatArray:
    """Return the component (...,) of columns (n, ...) at a frequency: half its complex amplitude.

    M(f) = 1/T integral of M exp(-2 pi i f t). Over whole periods of a uniformly sampled signal
    it equals the discrete Fourier transform.
    """
    # Weights of the trapezoidal rule: half of both steps about a sample.
    weights = np.convolve(np.diff(times), [0.5, 0.5]) / (times[-1] - times[0])
    turning = weights * np.exp(-2j * np.pi * frequency * times)
    return np.asarray(np.tensordot(turning, columns, axes=1))


def spectrum(
    columns: FloatArray, reference: FloatArray, times: FloatArray, frequency: float
) -> FloatArray:
    """Project columns on the phase of a reference, in units of the reference.

    Sp(M, v, f)_k = |M_k(f)| cos(arg M_k(f) - arg v(f)) / |v(f)|

    The columns are M (n, k), the reference is v (n,), the times (n,) [s] are over whole periods of
    the frequency f [Hz]. Section 3.2, notation.
    """
    v = complex(transform(reference, times, frequency))
    return np.asarray(np.real(transform(columns, times, frequency) * np.conj(v)) / abs(v) ** 2)


def cut(
    times: FloatArray, values: FloatArray, begin: float, end: float
) -> tuple[FloatArray, FloatArray]:
    """Cut samples (n, k) to an exact interval; its ends are interpolated linearly."""
    inside = (times > begin) & (times < end)
    edges = np.array([begin, end])
    at_edges = np.stack([np.interp(edges, times, column) for column in values.T], axis=1)
    kept = np.concatenate([at_edges[:1], values[inside], at_edges[1:]])
    return np.concatenate([[begin], times[inside], [end]]), kept


def periodic_motion(
    times: FloatArray, position: FloatArray, moving: Sequence[int], frequency: float
) -> JointMotion:
    """Fit a Fourier series to the positions of the moving joints, and differentiate it exactly.

    Locked joints keep their mean position and have no velocity. Neither encoder steps nor
    differentiated noise thus enter the regressor. Positions (n, J) are measured [rad, m] at times
    (n,) over whole periods [s] of the frequency [Hz].
    """
    q = np.broadcast_to(position.mean(axis=0), position.shape).copy()
    qd, qdd = np.zeros_like(q), np.zeros_like(q)
    joints = list(moving)
    waves, rates, bends = fourier_basis(times, 1.0 / frequency, HARMONICS)
    # By least squares rather than projection: exact for any sample times.
    basis = np.column_stack([np.ones_like(times), waves])
    fitted = np.linalg.solve(basis.T @ basis, basis.T @ position[:, joints])
    q[:, joints] = basis @ fitted
    qd[:, joints], qdd[:, joints] = rates @ fitted[1:], bends @ fitted[1:]
    return JointMotion(q, qd, qdd)


def slow_motion(times: FloatArray, position: FloatArray, joint: int) -> JointMotion:
    """Return a motion at constant velocity: one joint as measured, the others at their mean."""
    q = np.broadcast_to(position.mean(axis=0), position.shape).copy()
    q[:, joint] = position[:, joint]
    qd = np.zeros_like(q)
    qd[:, joint] = np.polyfit(times - times[0], position[:, joint], 1)[0]
    return JointMotion(q, qd, np.zeros_like(q))


def centered_rows(columns: FloatArray, torque: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Remove the means, and reduce the result to as many rows as its rank.

    D^c X = Y^c. Its normal equations (eq. 14) equal those of the returned rows, whose condition
    number is not squared: from columns (n, p) and torques (n,) to rows (r, p), right-hand sides
    (r,), and the rms of the torque outside the range of the columns.

    Equations 13 and 14.
    """
    d, y = columns - columns.mean(axis=0), torque - torque.mean()
    u, s, vt = np.linalg.svd(d, full_matrices=False)
    strong = s > GRAVITY_RANK * max(float(s[0]), 1e-3)
    projected = u[:, strong].T @ y
    free = max(len(y) - 1 - int(np.sum(strong)), 1)
    left = y - u[:, strong] @ projected
    return s[strong, None] * vt[strong], projected, float(np.sqrt(left @ left / free))
