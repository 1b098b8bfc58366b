"""Drive gains from two recordings, one of them with a load that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from load_identification.arm.dynamics.base_parameters import BaseParameters
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.methods.least_squares import motion_rows
from load_identification.arm.recording import FilteredRecording
from load_identification.errors import ParameterError
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.typing_aliases import FloatArray, IntArray

ROUNDS = 30
"""Most rounds of reweighting."""

SETTLED = 1e-6
"""Relative change of the gains that ends them."""


@dataclass(frozen=True, eq=False)
class DriveGains:
    """What multiplies a drive's signal to give its torque, and the arm's parameters.

    Attributes
    ----------
    gains : (J,) array
        [N m or N per unit of the signal].
    values : (b,) array
        Base parameters of the unloaded arm.
    covariance : (J + b, J + b) array
        Of the gains, then the base parameters, were the noise white.
    noise : (J,) array
        Standard deviation of each joint's signal, in its unit.
    """

    gains: FloatArray
    values: FloatArray
    covariance: FloatArray
    noise: FloatArray

    @property
    def std(self) -> FloatArray:
        """Standard deviations of the gains (J,)."""
        return np.sqrt(np.diag(self.covariance)[: len(self.gains)])


def identify_drive_gains(
    model: ArmModel,
    base: BaseParameters,
    unloaded: FilteredRecording,
    loaded: FilteredRecording,
    link: int,
    load: InertialParameters,
) -> DriveGains:
    """Identify drive gains and base parameters by total least squares.

    ``signal_j gain_j = W_j beta (+ the torque of the known load)``. The noise is in the signals,
    which stand with the unknowns: least squares would find gains too small. Minimised is
    the misfit over the noise that the gains make of that of the signals; columns without noise
    are eliminated first. The load sets the scale.

    Parameters
    ----------
    model : ArmModel
    base : BaseParameters
        Of the model.
    unloaded, loaded : FilteredRecording
        With the signals of the drives in place of efforts.
    link : int
        Link that carries the load, by its place in the arm.
    load : InertialParameters
        In the frame of that link.

    Raises
    ------
    ParameterError
        Where the load does not show in the recording.

    Gautier, Vandanjon and Presse 1994, reference [3] of Vandanjon, Gautier and Desbats 1995.
    """
    size = len(base.independent)
    runs = [(unloaded, np.zeros(10)), (loaded, load.to_vector())]
    equations = _equations(model, base, runs, link)
    shown = max(float(e.gram[-2, -2]) for e in equations)
    if not shown > 0.0:
        raise ParameterError('the known load makes no torque in the recording: it must be moved')
    gains, residual = np.ones(len(equations)), np.ones(len(equations))
    for _ in range(ROUNDS):
        before = gains
        gains, values = _solved(equations, size, residual, gains)
        residual = _residual_rms(equations, gains, values)
        if np.all(np.abs(gains - before) <= SETTLED * np.abs(gains)):
            break
    noise = residual / np.abs(gains)
    return DriveGains(gains, values, _covariance(equations, size, gains, values, noise), noise)


@dataclass(frozen=True, eq=False)
class _JointEquations:
    """The rows [A y] of one joint, as their normal equations [A y]^T [A y].

    Attributes
    ----------
    columns : (c,) int array
        Unknowns involved: base parameters, then the known torque.
    gram : (c + 1, c + 1) array
        The signal last.
    samples : int
    """

    columns: IntArray
    gram: FloatArray
    samples: int


def _equations(
    model: ArmModel,
    base: BaseParameters,
    runs: Sequence[tuple[FilteredRecording, FloatArray]],
    link: int,
) -> list[_JointEquations]:
    """Reduce the columns of runs, each with the load it carries (10,)."""
    known = np.zeros(len(model.names))
    blocks = []
    for run, load in runs:
        known[10 * link : 10 * link + 10] = load
        (rows,) = motion_rows([model], base, run)
        torque = model.predict(known, run.motion)
        blocks.append(np.dstack([rows.matrix, torque, rows.values]))
    whole = np.concatenate(blocks)
    out = []
    for joint in range(whole.shape[1]):
        own = whole[np.isfinite(whole[:, joint, -1]), joint]
        used = own[:, :-2].any(axis=0)
        kept = np.flatnonzero([*used, True, True])
        out.append(_JointEquations(kept[:-1], own[:, kept].T @ own[:, kept], len(own)))
    return out


def _solved(
    equations: list[_JointEquations], size: int, residual: FloatArray, gains: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return gains and base parameters for weights by the residuals of the last round."""
    joints = len(equations)
    exact, mixed = np.zeros((size + 1, size + 1)), np.zeros((size + 1, joints))
    square, spread = np.zeros((joints, joints)), np.zeros((joints, joints))
    for joint, (e, level) in enumerate(zip(equations, residual, strict=True)):
        exact[np.ix_(e.columns, e.columns)] += e.gram[:-1, :-1] / level**2
        mixed[e.columns, joint] = e.gram[:-1, -1] / level**2
        square[joint, joint] = e.gram[-1, -1] / level**2
        spread[joint, joint] = e.samples / gains[joint] ** 2
    length = np.sqrt(np.diag(exact))
    length[length == 0.0] = 1.0
    share = np.linalg.lstsq(exact / length / length[:, None], mixed / length[:, None], rcond=None)
    explained = share[0] / length[:, None]
    left = square - mixed.T @ explained
    _, vectors = scipy.linalg.eigh(0.5 * (left + left.T), spread)
    direction = vectors[:, 0]
    others = explained @ direction
    return direction / others[-1], others[:-1] / others[-1]


def _residual_rms(
    equations: list[_JointEquations], gains: FloatArray, values: FloatArray
) -> FloatArray:
    """Return the root mean square of ``gain signal - torque`` of each joint."""
    unknowns = np.append(values, 1.0)
    out = []
    for e, gain in zip(equations, gains, strict=True):
        signed = np.append(unknowns[e.columns], -gain)
        least = 1e-16 * gain**2 * e.gram[-1, -1]  # of simulated data without noise
        out.append(np.sqrt(max(float(signed @ e.gram @ signed), least) / max(e.samples, 1)))
    return np.array(out)


def _covariance(
    equations: list[_JointEquations],
    size: int,
    gains: FloatArray,
    values: FloatArray,
    noise: FloatArray,
) -> FloatArray:
    """Return the inverse information of gains and base parameters at the solution.

    ``signal = (W beta + known) / gain + noise``, differentiated by both.
    """
    joints, unknowns = len(gains), np.append(values, 1.0)
    matrix = np.zeros((joints + size, joints + size))
    for joint, (e, gain, level) in enumerate(zip(equations, gains, noise, strict=True)):
        own = e.columns[:-1]
        gram, x = e.gram[:-1, :-1] / (gain * level) ** 2, unknowns[e.columns]
        place = joints + own
        matrix[np.ix_(place, place)] += gram[:-1, :-1]
        matrix[place, joint] = matrix[joint, place] = -(gram @ x)[:-1] / gain
        matrix[joint, joint] = x @ gram @ x / gain**2
    scale = 1.0 / np.sqrt(np.diag(matrix))
    inverse = np.linalg.solve(scale[:, None] * matrix * scale, np.eye(joints + size))
    return np.asarray(scale[:, None] * inverse * scale, dtype=np.float64)
