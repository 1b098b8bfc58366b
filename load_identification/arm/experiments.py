"""Planning of experiments: every exciting motion at every posture of a grid, and a choice of them.

Vandanjon, Gautier and Desbats 1995, section 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from load_identification.arm.arm import Arm
from load_identification.arm.excitation import (
    KINDS,
    Experiment,
    MotionSettings,
    exciting_motions,
)
from load_identification.arm.joint_motion import JointMotion, Move, Oscillation, Path, Piece
from load_identification.arm.limits import Limits, Workspace
from load_identification.arm.projection import centered_rows, spectrum, transform
from load_identification.arm.spectrum import TorqueRegressor
from load_identification.errors import ParameterError
from load_identification.typing_aliases import FloatArray

SAMPLES = 33
"""Of an ideal motion: one period, or the way of a slow motion; both ends count."""

LARGEST_BLOCK = 2
"""Rows of an experiment: one of an oscillation, sine and cosine of the angle of a slow motion."""

MOST_POSTURES = 400
"""Of a grid; out of a larger one as many are drawn."""

AT_ONCE = 64
"""Experiments simulated together."""

REST = 0.5
"""Before an experiment, for the arm to come to rest [s]."""


@dataclass(frozen=True, eq=False)
class ExperimentPlan:
    """Experiments one after another, and the way between them.

    Attributes
    ----------
    joints : tuple of str
    experiments : tuple of Experiment
    begins : (n,) array
        When each begins, its swelling included, since the beginning of the path [s].
    path : Path
    """

    joints: tuple[str, ...]
    experiments: tuple[Experiment, ...]
    begins: FloatArray
    path: Path


def locked_postures(
    limits: Limits, levels: int | Sequence[int], seed: int, most: int = MOST_POSTURES
) -> FloatArray:
    """Return a grid of postures (g, J), the centres of equal parts of each joint's range.

    Parameters
    ----------
    limits : Limits
    levels : int or sequence of J int
        Parts of each range.
    seed : int
        Of the draw from a grid of more than `most` postures.
    most : int
    """
    counts = np.broadcast_to(np.asarray(levels, dtype=np.int64), limits.lower.shape)
    if not (counts >= 1).all():
        raise ParameterError(f'levels of the grid are {levels}; they must be >= 1')
    total = int(np.prod(counts))
    chosen = np.arange(total)
    if total > most:
        chosen = np.sort(np.random.default_rng(seed).choice(total, most, replace=False))
    places = np.stack(np.unravel_index(chosen, tuple(counts)), axis=1)
    share = (places + 0.5) / counts
    return np.asarray(limits.lower + share * (limits.upper - limits.lower))


def feasible_experiments(
    arm: Arm,
    limits: Limits,
    settings: MotionSettings,
    postures: FloatArray,
    workspace: Workspace | None = None,
    kinds: Sequence[str] = KINDS,
) -> list[Experiment]:
    """Return every exciting motion at every posture that the limits allow.

    A slow motion runs through the range of its joint wherever the grid puts that joint: it is
    kept once.

    Parameters
    ----------
    arm : Arm
    limits : Limits
    settings : MotionSettings
    postures : (g, J) array
        [rad, m].
    workspace : Workspace, optional
    kinds : sequence of str
    """
    found: dict[tuple[object, ...], Experiment] = {}
    for posture in postures:
        for experiment in exciting_motions(posture, limits, settings, kinds):
            ends = tuple(np.concatenate([experiment.start, experiment.goal]).tolist())
            found.setdefault(
                (experiment.kind, experiment.driven, experiment.measured, *ends), experiment
            )
    everything = list(found.values())
    if workspace is None or not everything:
        return everything
    q = np.concatenate([e.ideal(SAMPLES)[1].position for e in everything])
    outside = workspace.outside(arm, q).reshape(-1, SAMPLES).max(axis=1)
    return [e for e, beyond in zip(everything, outside, strict=True) if beyond <= 0.0]


def ideal_blocks(
    regressor: TorqueRegressor, experiments: Sequence[Experiment], noise: FloatArray
) -> FloatArray:
    """Return the rows that experiments would give, in units of their errors.

    The motion is the planned one; of an oscillation one period is simulated.

    Parameters
    ----------
    regressor : TorqueRegressor
        Its p columns must be independent.
    experiments : sequence of Experiment
    noise : (J,) array
        Noise density of the measured torques, or anything in proportion [N m s^(1/2)].

    Returns
    -------
    (N, 2, p) array
        The second row is zero for all but slow motions.
    """
    blocks = []
    for first in range(0, len(experiments), AT_ONCE):
        part = experiments[first : first + AT_ONCE]
        ideal = [experiment.ideal(SAMPLES) for experiment in part]
        motions = zip(*(motion for _, motion in ideal), strict=True)
        joined = JointMotion(*(np.concatenate(arrays) for arrays in motions))
        columns = regressor(*joined)
        for k, (experiment, (times, motion)) in enumerate(zip(part, ideal, strict=True)):
            own = columns[k * SAMPLES : (k + 1) * SAMPLES, experiment.measured]
            rows = _ideal_rows(experiment, times, motion, own) / noise[experiment.measured]
            blocks.append(np.vstack([rows, np.zeros((LARGEST_BLOCK - len(rows), rows.shape[1]))]))
    return np.array(blocks)


def _ideal_rows(
    experiment: Experiment, times: FloatArray, motion: JointMotion, columns: FloatArray
) -> FloatArray:
    """Return the rows (r, p) of one experiment, for noise of unit density."""
    begin, end = experiment.motion.window
    if not isinstance(experiment.motion, Oscillation):
        rows, _, _ = centered_rows(columns, np.zeros(len(times)))
        return np.asarray(rows[:LARGEST_BLOCK] * np.sqrt((end - begin) / len(times)))
    reference = experiment.reference(motion)
    frequency = experiment.harmonic * experiment.motion.frequency
    strength = abs(complex(transform(reference, times, frequency))) * np.sqrt(end - begin)
    return np.asarray(strength * spectrum(columns, reference, times, frequency)[None])


def plan_path(
    joints: tuple[str, ...], experiments: Sequence[Experiment], limits: Limits
) -> ExperimentPlan:
    """Put experiments one after another, each time going on to the nearest one left.

    Parameters
    ----------
    joints : tuple of str
    experiments : sequence of Experiment
        The first is begun with.
    limits : Limits
    """
    left = list(experiments)
    if not left:
        raise ParameterError('there are no experiments to plan; there must be one at least')
    ordered = [left.pop(0)]
    while left:
        ways = [Move.within(ordered[-1].goal, e.start, limits).duration for e in left]
        ordered.append(left.pop(int(np.argmin(ways))))
    pieces: list[Piece] = []
    begins, time, place = [], 0.0, ordered[0].start
    for experiment in ordered:
        for piece in (
            Move.within(place, experiment.start, limits),
            Move(experiment.start, experiment.start, REST),
        ):
            pieces.append(piece)
            time += piece.duration
        begins.append(time)
        pieces.append(experiment.motion)
        time += experiment.motion.duration
        place = experiment.goal
    return ExperimentPlan(joints, tuple(ordered), np.array(begins), Path(tuple(pieces)))
