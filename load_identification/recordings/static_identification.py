"""Identify the payload from poses at rest, minutes apart, with one average wrench per pose."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from load_identification.errors import ParameterError, RecordingError
from load_identification.estimation.identifiability import TURN
from load_identification.estimation.misfit.evidence import averages, complete, ordinary
from load_identification.estimation.misfit.verdict import ALL_ROUND, FEWEST_POSES, LARGE, judged
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import CHANNELS, FilteredBatch
from load_identification.interface.parameters import CONVENTIONS, Parameters
from load_identification.model.plausible_positions import beyond_limits, beyond_words
from load_identification.model.robot import FrameMotion, Robot, tilted
from load_identification.pipeline import settings
from load_identification.recordings.odd_lines import UNITS, outlier, repeated, zeroed
from load_identification.recordings.poses import Poses, read_poses
from load_identification.recordings.result import Identification
from load_identification.recordings.static_scatter import likeliest, widened
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

NOTHING, VAGUE = 3.0, 0.05
"""Mass up to which nothing may be held, in standard deviations [-]; and the standard deviation of
a mass from which it is not known whether something is [kg]."""

PUZZLING = 5.0
"""Least misfit, see `Verdict`, from which a mass of nothing is not believed [-]."""

UNEXPLAINED = 0.3
"""Least share of the variation of force or torque left from which frames may be wrong [-]."""

IN_BASE = 'nothing is held, or the wrench has the axes of the base: then say --wrench-frame base'

DRIFTS = 'the offset drifts'
"""Beginning of the estimator's words on drift."""

AS_LARGE = 3.0
"""Ratio of residuals, in units of noise, up to which the smaller is said too [-]."""


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
    ordinary = likeliest(lasting, batch)
    each = (ordinary.explain(batch.select(slice(k, k + 1))) for k in range(len(wrench)))
    left = np.concatenate([split[1] for split in each if split is not None])
    odd, others = outlier(left, poses)
    # With one pose that is odd, the others scatter less than it makes them seem to.
    estimator = ordinary if odd else widened(ordinary, lasting.noise, batch)
    return _result(estimator, left, (odd, others), batch, poses, parameters, in_base)


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
    unlike: tuple[str, float],
    batch: FilteredBatch,
    poses: Poses,
    parameters: Parameters,
    in_base: bool,
) -> Identification:
    """Return what is said of the poses; `left` and `unlike` as taken and returned by `outlier`."""
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
    drifts = any(words.startswith(DRIFTS) for words in warnings)
    cause, (odd, others) = in_poses(found), unlike
    if drifts and found.startswith(DRIFTS):
        # A drift that the estimate has taken into account is no reason against it.
        cause = ''
    usual = settings.estimator_settings(parameters)
    scatter = ordinary(np.nan_to_num(batch.wrench), usual.noise, usual.errors.field)
    again = zeroed(batch.wrench, batch.gravity, batch.gravity_by_tilt, scatter, poses.lines)
    sure = estimate.std[0] < VAGUE
    empty = bool(sure and abs(estimate.values[0]) < NOTHING * estimate.std[0])
    puzzling = misfit * others > (PUZZLING if empty else LARGE)
    puzzling &= not drifts or again != ''
    varied = np.var(np.nan_to_num(poses.wrench), axis=0).reshape(2, 3).mean(axis=1)
    framed = bool((residual_rms > UNEXPLAINED * np.sqrt(varied)).any())
    asked = _questions(poses, in_base, framed)
    if turned and (again or (residual_rms > np.hypot(usual.noise, usual.errors.field)).any()):
        # The poses cover all directions: the residuals are what prevents identification.
        by = _deviation(residual_rms, estimator)
        off = again or f'the poses deviate by {by} from any payload; {asked}'
        reasons = [words.replace(TURN, off) for words in reasons]
    if puzzling and not cause:
        # Noise is drawn to them, and the mass to nothing.
        by = f'{residual_rms[0]:.2g} N and {residual_rms[1]:.2g} N·m'
        cause = again or f'no payload explains the poses: they deviate by {by}; {asked}'
    elif empty and not in_base:
        warnings += (IN_BASE,)
    if cause:
        # The estimate relies on the cell's errors, which do not explain the poses: withhold it.
        identified, reasons, warnings, calibration = np.zeros(10, dtype=bool), [cause], (), {}
    else:
        if again:
            warnings = tuple(words for words in warnings if not words.startswith(DRIFTS))
        said = ' '.join(reasons)
        warnings += tuple(words for words in (odd, again) if words and words not in said)
    warnings += repeated(poses)
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


def _questions(poses: Poses, in_base: bool, frame: bool) -> str:
    """Return what to ask where poses contradict each other; with `frame`, also after frames."""
    asked = ['was it touched', 'has the sensor play']
    if frame:
        asked = ['is the wrench in the base (--wrench-frame base)', 'was it touched']
        if in_base:
            asked = ['was it touched', 'is the wrench in the axes of the sensor after all']
        if poses.rotation.size:
            asked.append('are qx,qy,qz,qw in another order, or from base to sensor')
    return ', or '.join(asked) + '?'


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
