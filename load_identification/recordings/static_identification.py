"""Identify the payload from poses at rest, minutes apart, with one average wrench per pose."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from load_identification.errors import ParameterError, RecordingError
from load_identification.estimation.identifiability import TURN
from load_identification.estimation.misfit.evidence import averages, complete
from load_identification.estimation.misfit.verdict import ALL_ROUND, FEWEST_POSES, LARGE, judged
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import CHANNELS, FilteredBatch
from load_identification.interface.parameters import CONVENTIONS, Parameters
from load_identification.model.plausible_positions import beyond_limits, beyond_words
from load_identification.model.robot import FrameMotion, Robot, tilted
from load_identification.pipeline import settings
from load_identification.recordings.identification import Identification
from load_identification.recordings.poses import Poses, read_poses
from load_identification.recordings.static_scatter import likeliest
from load_identification.typing_aliases import FloatArray

APART_NS = 10_000_000_000
"""Time step between poses in the estimator, whose errors are learned every ten seconds and fade in
a hundred [ns]."""

APART = 120.0
"""Time between poses over which the offset may drift [s]."""

IN_SECONDS = re.compile(r' in (\d+) s\b')
"""Matches durations in messages of the estimator."""

ADVICE = (
    (
        'the base frame, not in the sensor frame: have the driver publish it in the sensor frame',
        'the base frame, not in the sensor frame: say --wrench-frame base',
    ),
    (
        'have the driver publish it in the sensor frame',
        'give it in the axes of the sensor, or those of the base with --wrench-frame base',
    ),
    (', or have the driver publish NaN there', ''),
    ('have the driver publish', 'give'),
    ('Have the driver publish', 'Give'),
    ('correct the driver', 'correct the columns'),
    ('in the driver', 'in the columns'),
    ('that the driver publishes', 'in the columns'),
    (
        'See parameter wrench_convention; or gravity: swift motion all round names that',
        'Give the wrench with the other sign, or --params with the other wrench_convention; if '
        'it is gravity that is reversed, --gravity. Poses at rest do not tell which',
    ),
    ('begin anew with reset or another recording', 'leave those poses out'),
    ('call reset, or turn', 'turn'),
    ('go on moving', 'add poses'),
    ('move faster, no', 'poses at rest do not show it: no'),
)
"""What the estimator advises those whose driver publishes, and what it means for a file."""

UNITS = ('N', 'N·m')
"""Of force and torque."""

AS_LARGE = 3.0
"""Ratio of residuals, in units of noise, up to which the smaller is said too [-]."""

STANDS_OUT = 5.0
"""Deviation at which a pose is reported, in units of the other poses' deviation [-]."""

ROUNDING, ALIKE = 1e-3, 1e-5
"""Deviation by few digits in units of the largest change between poses, and of any reading [-]."""


def identify_poses(path: Path, parameters: Parameters, in_base: bool) -> Identification:
    """Identify the payload from a file of poses; see `read_poses`.

    Parameters
    ----------
    parameters : Parameters
        `robot_description` and `sensor_frame` are needed if the file has joint positions.
    in_base : bool
        Whether the wrench is in the axes of the base (about the sensor's origin in either case).

    Raises LoadIdentificationError if the file or the description is unusable.
    """
    poses = read_poses(path)
    motion, robot, position = _motion(path, poses, parameters)
    sign = CONVENTIONS[parameters.wrench_convention]
    wrench, whitening = sign * poses.wrench, _whitening(poses, parameters)
    if in_base:
        if np.isnan(wrench[0]).sum() not in (0, 3):
            raise RecordingError(f'{path}: a torque in the base needs all of tx, ty, tz, or none')
        turn = np.zeros((len(wrench), 6, 6))
        turn[:, :3, :3] = turn[:, 3:, 3:] = np.swapaxes(motion.rotation, 1, 2)
        known = ~np.isnan(wrench)
        wrench = np.where(known, np.einsum('nij,nj->ni', turn, np.nan_to_num(wrench)), np.nan)
        whitening = whitening @ np.swapaxes(turn, 1, 2) if whitening.size else whitening
    still = np.zeros((len(wrench), 3))
    batch = FilteredBatch(
        frame=robot.sensor_frame if robot else parameters.sensor_frame or 'sensor',
        stamps=APART_NS * np.arange(1, 1 + len(wrench)),
        wrench=wrench,
        linear_velocity=still,
        angular_velocity=still,
        linear_acceleration=-motion.gravity,
        angular_acceleration=still,
        gravity=motion.gravity,
        rest=np.ones(len(wrench), dtype=bool),
        motion_by_joint=motion.motion_by_joint,
        gravity_by_tilt=motion.gravity_by_tilt,
        whitening=whitening,
        joint_motion=np.stack([position, *np.zeros((2, *position.shape))], axis=1),
        robot=robot,
    )
    # All poses have the same arm, load and sensor: their systematic errors are constant.
    lasting = settings.estimator_settings(parameters)
    longer = float(np.sqrt(APART / (1e-9 * APART_NS)))
    lasting = replace(
        lasting,
        changes=False,
        error_time=np.inf,
        force_drift=longer * lasting.force_drift,
        torque_drift=longer * lasting.torque_drift,
    )
    ordinary, estimator = likeliest(lasting, batch)
    each = (ordinary.explain(batch.select(slice(k, k + 1))) for k in range(len(wrench)))
    left = np.concatenate([split[1] for split in each if split is not None])
    return _result(estimator, left, batch, poses, parameters, in_base)


def _motion(
    path: Path, poses: Poses, parameters: Parameters
) -> tuple[FrameMotion, Robot | None, FloatArray]:
    """Return the sensor's motion in each pose, and robot and joint positions if given."""
    described = parameters.robot_description
    if poses.rotation.size:
        gravity, still = np.array(parameters.gravity), np.zeros((len(poses.lines), 3))
        down = np.swapaxes(poses.rotation, 1, 2)
        motion = FrameMotion(
            *(still,) * 4,
            gravity=down @ gravity,
            motion_by_joint=np.empty((len(poses.lines), 9, 0)),
            gravity_by_tilt=down @ tilted(gravity),
            rotation=poses.rotation,
            jacobian=np.empty((len(poses.lines), 6, 0)),
        )
        return motion, None, np.empty((len(poses.lines), 0))
    if not described or not parameters.sensor_frame:
        raise ParameterError(
            f'{path} has joint positions: --description URDF and --sensor-frame LINK say how the '
            'sensor lies (or the parameters robot_description and sensor_frame)'
        )
    robot = Robot(described, parameters.sensor_frame, parameters.gravity)
    if set(robot.joints) != set(poses.joints):
        raise RecordingError(
            f'{path} has the columns {", ".join(poses.joints)} beside those of the wrench; '
            f'{", ".join(robot.joints) or "no joints"} are between root and '
            f'{parameters.sensor_frame}'
        )
    position = poses.position[:, [poses.joints.index(name) for name in robot.joints]]
    for row, j in np.argwhere(beyond_limits(robot, position)):
        words = beyond_words(
            robot.joints[j], position[row, j], robot.position_limits[:, j], robot.prismatic[j]
        )
        raise RecordingError(f'{path}, line {poses.lines[row]}: {words}')
    return robot.motion(position, *np.zeros((2, *position.shape))), robot, position


def _whitening(poses: Poses, parameters: Parameters) -> FloatArray:
    """Return expected noise over standard error, (n, 6, 6); (n, 0, 0) without standard errors."""
    if np.isnan(poses.std).all():
        return np.empty((len(poses.lines), 0, 0))
    expected = np.repeat([parameters.force_noise, parameters.torque_noise], 3)
    return np.asarray(np.eye(6) * np.nan_to_num(expected / poses.std)[:, :, None])


def _result(
    estimator: PayloadEstimator,
    left: FloatArray,
    batch: FilteredBatch,
    poses: Poses,
    parameters: Parameters,
    in_base: bool,
) -> Identification:
    estimate = estimator.estimate()
    assert estimate is not None
    identified = estimate.identified & (np.arange(10) < 4)
    absent = np.isnan(poses.wrench[0])
    reasons = [in_poses(words) for words in estimate.reasons if not words.startswith('inertia')]
    if absent[3:].all():
        reasons = [words for words in reasons if not words.startswith('centre of mass')]
        reasons.append('centre of mass: it takes torques')
    if estimate.identified[0]:
        reasons.append('inertia: poses at rest do not show it')
    warnings, calibration = tuple(map(in_poses, estimate.warnings)), estimate.calibration
    residual_rms = np.sqrt(np.mean(left.reshape(-1, 2, 3) ** 2, axis=(0, 2)))
    found, turned, misfit = _cause(estimator, batch, np.array(parameters.gravity))
    cause, (outlier, others) = in_poses(found), _outlier(left, poses)
    frame = ', or is the wrench in the axes of the sensor after all' if in_base else ''
    order = ', or are qx,qy,qz,qw in another order, or from base to sensor'
    asked = f'was it touched, or has the sensor play{frame}{order if poses.rotation.size else ""}?'
    if turned:
        # The poses cover all directions: the residuals are what prevents identification.
        off = (
            f'the poses deviate by {_deviation(residual_rms, estimator)} from any payload; {asked}'
        )
        reasons = [words.replace(TURN, off) for words in reasons]
    if misfit * others > LARGE and not cause:
        # Noise is drawn to them, and the mass to nothing.
        by = f'{residual_rms[0]:.2g} N and {residual_rms[1]:.2g} N·m'
        base = '' if in_base else 'is the wrench in the base (--wrench-frame base), or '
        cause = f'no payload explains the poses: they deviate by {by}; {base}{asked}'
    if cause:
        # The estimate relies on the cell's errors, which do not explain the poses: withhold it.
        identified, reasons, warnings, calibration = np.zeros(10, dtype=bool), [cause], (), {}
    elif outlier:
        warnings += (outlier,)
    warnings += _repeated(poses)
    return Identification(
        estimate=replace(
            estimate,
            identified=identified,
            reasons=tuple(reasons),
            warnings=warnings,
            reversed_sign=estimate.reversed_sign and not cause,
            calibration=calibration,
            residual_rms=residual_rms,
        ),
        start=int(batch.stamps[0]),
        used=estimator.usable.count,
        dropped=Counter(),
        absent_channels=tuple(name for name, gone in zip(CHANNELS, absent, strict=True) if gone),
        parameters=parameters,
    )


def in_poses(words: str) -> str:
    """Return words of the estimator for a file of poses, which has no driver and no seconds."""
    for said, meant in ADVICE:
        words = words.replace(said, meant)
    return IN_SECONDS.sub(
        lambda seconds: f' in {round(1e9 * float(seconds[1]) / APART_NS)} poses', words
    )


def _cause(
    estimator: PayloadEstimator, batch: FilteredBatch, gravity: FloatArray
) -> tuple[str, bool, float]:
    """Return why no payload explains the poses, whether they cover all directions, the misfit.

    The words are empty if a payload explains them or if no cause is found; the misfit is that of
    `Verdict`.
    """
    samples = complete(batch)
    if not len(samples.stamps):
        return '', False, np.nan
    blocks = [samples.select(slice(k, k + 1)) for k in range(len(samples.stamps))]
    s = estimator.settings
    evidence = averages(blocks, gravity)
    verdict = judged(evidence, s.noise, s.errors.field, gravity, batch.robot, FEWEST_POSES)
    return verdict.words, evidence.directions >= ALL_ROUND, verdict.misfit


def _deviation(rms: FloatArray, estimator: PayloadEstimator) -> str:
    """Return in words the residual (2,) of force, of torque, or of both if either is large."""
    share = rms / estimator.settings.noise
    much = share >= np.nanmax(share) / AS_LARGE
    each = zip(rms, UNITS, much, strict=True)
    return ' and '.join(f'{value:.2g} {unit}' for value, unit, large in each if large)


def _outlier(left: FloatArray, poses: Poses) -> tuple[str, float]:
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


def _repeated(poses: Poses) -> tuple[str, ...]:
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
