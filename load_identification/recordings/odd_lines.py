"""Lines of a sheet of poses that are unlike the others."""

from __future__ import annotations

import numpy as np

from load_identification.recordings.poses import Poses
from load_identification.typing_aliases import FloatArray, IntArray
from load_identification.weighing.static_estimate import gravity_rows

UNITS = ('N', 'N·m')
"""Of force and torque."""

STANDS_OUT = 5.0
"""Deviation at which a pose is reported, in units of the other poses' deviation [-]."""

ROUNDING, ALIKE = 1e-3, 1e-5
"""Deviation by few digits in units of the largest change between poses, and of any reading [-]."""

FEWEST, CLEAR, CLEARER = 3, 4.0, 2.0
"""Least number of poses on either side of a step of the offset; by how much the mean square is
less with the step than without it, and than with a steady drift or another gravity [-]."""


def outlier(left: FloatArray, poses: Poses) -> tuple[str, float]:
    """Return in words which pose is an outlier, by force or else by torque; empty if none is.

    And the share of the mean square that the others leave, 1 without one [-]. `left` (n, 6) is
    what payload and offset leave in each pose [N, N m].
    """
    parts = zip(np.hsplit(left, 2), np.hsplit(np.nan_to_num(poses.wrench), 2), strict=True)
    for what, unit, (part, read) in zip(('force', 'torque'), UNITS, parts, strict=True):
        size = np.linalg.norm(part, axis=1)
        k = int(np.argmax(size))
        others = np.sqrt(np.mean(np.delete(size, k) ** 2)) if len(size) > 3 else np.inf
        floor = max(ROUNDING * np.ptp(read, axis=0).max(), ALIKE * np.abs(read).max())
        if size[k] > max(STANDS_OUT * others, floor):
            return (
                f'line {poses.lines[k]}: the {what} deviates by {size[k]:.2g} {unit} from what '
                f'the other poses say, they by {others:.2g} {unit}: was something else there, '
                'or is a number mistyped?'
            ), float(others**2 / np.mean(size**2))
    return '', 1.0


def repeated(poses: Poses) -> tuple[str, ...]:
    """Return in words which lines have the pose and the wrench of an earlier line."""
    pose = poses.rotation.reshape(-1, 9) if poses.rotation.size else poses.position
    rows = np.hstack([poses.wrench, pose])
    first = {row.tobytes(): line for row, line in zip(rows[::-1], poses.lines[::-1], strict=True)}
    return tuple(
        f'line {line} repeats line {first[row.tobytes()]} to the last digit: was it written down '
        'twice?'
        for row, line in zip(rows, poses.lines, strict=True)
        if first[row.tobytes()] != line
    )


def zeroed(
    wrench: FloatArray,
    gravity: FloatArray,
    by_tilt: FloatArray,
    scatter: FloatArray,
    lines: IntArray,
) -> str:
    """Return in words between which lines the offset has changed at once; empty if it has not.

    In lines ordered by orientation, another gravity or errors tied to the pose look like that.

    Parameters
    ----------
    wrench : (n, 6) array
        That the load exerts on the sensor, with the offset [N, N m]; NaN for a missing channel.
    gravity : (n, 3) array
        In the sensor frame [m/s²].
    by_tilt : (n, 3, 2) array
        Its derivatives by a tilt of the base [m/s² per rad].
    scatter : (6,) array
        Residual std in an ordinary cell [N, N m].
    lines : (n,) array
        Of the file.
    """
    seen, n = ~np.isnan(wrench[0]), len(wrench)
    root = np.diag(1.0 / scatter[seen])
    read = (wrench[:, seen] @ root).ravel()
    by_load, *tilted = (
        root @ gravity_rows(each)[:, seen] for each in (gravity, *np.moveaxis(by_tilt, 2, 0))
    )
    matrix = np.concatenate([by_load, np.tile(root, (n, 1, 1))], axis=2)

    def fit(*more: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean square with more columns, each (n, seen, k), and what they count."""
        rows = np.concatenate([matrix, *more], axis=2).reshape(len(read), -1)
        found = np.linalg.lstsq(rows, read)[0]
        return float(np.mean((rows @ found - read) ** 2)), found[matrix.shape[2] :]

    later = np.arange(n) >= np.arange(FEWEST, n - FEWEST + 1)[:, None]
    if not len(later):
        return ''
    fits = [fit(each[:, None, None] * root) for each in later]
    k = int(np.argmin([left for left, _ in fits]))
    left, step = fits[k]
    others = fit(np.arange(float(n))[:, None, None] * root)[0], fit(*tilted)[0]
    if left * CLEAR > fit()[0] or left * CLEARER > min(others):
        return ''
    if np.abs(step @ root).max() < STANDS_OUT:
        return ''
    whole = np.zeros(6)
    whole[seen] = step
    sizes = ' and '.join(
        f'{np.linalg.norm(part):.2g} {unit}'
        for part, unit in zip(np.split(whole, 2), UNITS, strict=True)
        if part.any()
    )
    return (
        f'the offset changes by {sizes} between lines {lines[FEWEST + k - 1]} and '
        f'{lines[FEWEST + k]}: was the sensor zeroed there? Put the lines before and after in '
        'files of their own'
    )
