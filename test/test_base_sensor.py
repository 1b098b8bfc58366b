"""An arm on a sensor: in MuJoCo, with friction that nobody models, and in exact data."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from load_identification.arm.arm import Arm
from load_identification.arm.base_recording import (
    BaseRecording,
    RestWrenches,
    base_recording,
    sensor_placement,
)
from load_identification.arm.base_sensor import (
    BaseEstimate,
    BaseSettings,
    identify_base,
    predict_base,
)
from load_identification.errors import (
    DescriptionError,
    FrameError,
    ParameterError,
    RecordingError,
)
from load_identification.signals.batches import SynchronizedBatch
from load_identification.tools.trajectories import Trajectory, fourier_motion
from load_identification.typing_aliases import FloatArray

sys.path.append(str(Path(__file__).resolve().parents[1] / 'benchmark'))
from base_sensor import (
    METHODS,
    OFFSET,
    PLACEMENT,
    puma_with_inertials,
    record,
    simulate,
    study,
    unknown_arm,
)

RUNS = 3
NOISELESS = 1e-4
"""Relative error of exact data at 250 Hz: what sampling costs, mostly in the first step."""


@cache
def truth() -> Arm:
    return Arm(puma_with_inertials())


@cache
def errors(name: str) -> tuple[FloatArray, FloatArray]:
    return study(name, RUNS)


def test_the_sensor_does_not_see_what_happens_in_the_joints() -> None:
    """MuJoCo's wrench is that of the links alone, though most of the torque goes elsewhere."""
    arm, run = truth(), simulate('identification')
    phi = arm.nominal.ravel()
    wrench = arm.base_wrench_regressor(run.q, run.qd, run.qdd, PLACEMENT) @ phi
    # But for what stands still, a constant.
    left = run.wrench - wrench
    assert np.abs(left - left.mean(axis=0)).max() < 1e-9 * np.abs(run.wrench).max()
    torque = arm.joint_torque_regressor(run.q, run.qd, run.qdd) @ phi
    unexplained = (run.torque - torque)[:, :2].std(axis=0) / run.torque[:, :2].std(axis=0)
    assert np.all(unexplained > 0.5)


def test_predicts_another_motion_within_five_per_cent() -> None:
    for ratio in errors('acceleration-free'):
        # What the issue asks for is 0.05; a fortieth of that is seen, so this holds a tenth.
        assert ratio.shape == (RUNS, 6)
        assert ratio.max() < 0.005


def test_is_clearly_better_than_differencing_twice() -> None:
    for ours, theirs in zip(errors('acceleration-free'), errors('differenced twice'), strict=True):
        assert np.all(5.0 * ours.mean(axis=0) < theirs.mean(axis=0))


def test_a_difference_taken_for_the_velocity_at_its_first_sample_costs_accuracy() -> None:
    early, middle = (
        errors(name)[1] for name in ('… difference at its first sample', 'acceleration-free')
    )
    assert np.all(2.0 * middle.mean(axis=0) < early.mean(axis=0))


def test_static_replay_and_offset_in_the_state_agree() -> None:
    replay = errors('… static replay')[1]
    assert replay.max() < 0.005


def test_intervals_hold_the_truth() -> None:
    """Of parameters seen alone, over draws of the noise: both filters correlate the rows."""
    arm, phi = unknown_arm(), truth().nominal.ravel()
    run = simulate('identification')
    inside: list[FloatArray] = []
    for seed in range(15):
        estimate = METHODS['acceleration-free'](arm, *record(run, seed))
        assert estimate.seen.sum() >= 5
        deviation = (estimate.parameters - phi)[estimate.seen] / estimate.std[estimate.seen]
        inside.append(np.abs(deviation) < 1.96)
    # 120 intervals, eight of each draw depending on one another: 95 % but for 4 %; and too wide
    # by a factor of two would be 100 % of them within half.
    assert np.mean(inside) > 0.85


@cache
def exact_recording(seed: int = 0, seconds: float = 6.0) -> BaseRecording:
    """Return a rich motion of all joints, without noise, at 250 Hz, velocities given."""
    arm = truth()
    count = len(arm.joints)
    middle = np.array([0.0, -0.8, 1.0, 0.2, 0.4, 0.0])
    motion = fourier_motion(
        middle, middle - 0.8, middle + 0.8, np.full(count, 2.0), seconds, seed, 0.8
    )
    t = np.arange(int(seconds * 250.0)) / 250.0
    q, qd, qdd = Trajectory((motion,)).sample(t)
    wrench = arm.base_wrench_regressor(q, qd, qdd, PLACEMENT) @ arm.nominal.ravel() + OFFSET
    return BaseRecording(np.round(t * 1e9).astype(np.int64), q, qd, wrench)


def exact_replay(recording: BaseRecording, every: int) -> RestWrenches:
    arm = truth()
    q = recording.position[::every]
    rest = np.zeros_like(q)
    wrench = arm.base_wrench_regressor(q, rest, rest, PLACEMENT) @ arm.nominal.ravel() + OFFSET
    return RestWrenches(q, wrench)


def prediction_error(estimate: BaseEstimate, arm: Arm, settings: BaseSettings) -> float:
    recording = exact_recording(seed=1)
    rest = exact_replay(recording, 5) if np.isnan(estimate.offset).any() else None
    prediction = predict_base(arm, estimate, recording, settings, PLACEMENT, rest)
    return float(prediction.relative_error.max())


@pytest.mark.parametrize('with_replay', [False, True], ids=['state', 'replay'])
@pytest.mark.parametrize('method', ['acceleration_free', 'ls'])
def test_exact_data_are_explained_from_an_unknown_arm(method: str, with_replay: bool) -> None:
    recording, arm = exact_recording(), unknown_arm()
    rests = [exact_replay(recording, 5)] if with_replay else None
    settings = BaseSettings(method=method)
    estimate = identify_base(arm, [recording], settings, PLACEMENT, rests)
    # Polynomials of 20 Hz are flat to a part in a thousand where motion is; and in a replay the
    # weight between two stops is on a straight line, (w h)² / 8 with h five samples.
    allowed = 1e-3 if with_replay or method == 'ls' else NOISELESS
    assert prediction_error(estimate, arm, settings) < allowed
    phi = truth().nominal.ravel()
    scale = np.tile(np.repeat([1.0, 0.5, 0.25], [1, 3, 6]), 6) * 20.0
    error = np.abs(estimate.parameters - phi) / scale
    assert error[estimate.seen].max() < 10.0 * NOISELESS


def test_a_known_arm_stays_as_it_is() -> None:
    """What no row shows keeps its nominal value, and what rows show is the truth."""
    estimate = identify_base(truth(), [exact_recording()], None, PLACEMENT)
    phi = truth().nominal.ravel()
    np.testing.assert_allclose(estimate.parameters, phi, atol=1e-3 * np.abs(phi).max())
    assert estimate.rank < len(phi)
    assert not estimate.seen.all()
    np.testing.assert_allclose(estimate.offset, OFFSET, atol=0.01)


def test_the_arm_does_not_depend_on_where_its_sensor_is() -> None:
    recording, arm = exact_recording(), unknown_arm()
    # The same wrench, in the root frame: f = R f_s, t = R t_s + p × f.
    rotation, position = PLACEMENT
    force, torque = (part @ rotation.T for part in np.hsplit(recording.wrench, 2))
    moved = replace(recording, wrench=np.hstack([force, torque + np.cross(position, force)]))
    there = identify_base(arm, [recording], None, PLACEMENT)
    here = identify_base(arm, [moved])
    assert there.rank == here.rank
    np.testing.assert_array_equal(there.seen, here.seen)
    # Each fits its own channels' sampling errors.
    np.testing.assert_allclose(here.parameters[here.seen], there.parameters[here.seen], atol=1e-2)


def test_two_recordings_tell_more_than_one() -> None:
    run = simulate('identification')
    arm = unknown_arm()
    first, second = (record(run, seed)[0] for seed in (0, 1))
    one = identify_base(arm, [first], None, PLACEMENT)
    both = identify_base(arm, [first, second], None, PLACEMENT)
    ratio = both.std[both.seen & one.seen] / one.std[both.seen & one.seen]
    # 1 / sqrt 2, but for the noise that each finds.
    assert 0.6 < float(np.median(ratio)) < 0.8


def test_a_ridge_draws_weakly_seen_parameters_to_the_nominal_ones() -> None:
    recording, _ = record(simulate('identification'), 0)
    arm = unknown_arm()
    free, drawn = (
        identify_base(arm, [recording], BaseSettings(ridge=ridge), PLACEMENT)
        for ridge in (0.0, 1e-2)
    )
    assert np.linalg.norm(drawn.parameters) < 0.8 * np.linalg.norm(free.parameters)
    prediction = predict_base(arm, drawn, recording, BaseSettings(), PLACEMENT)
    assert prediction.relative_error.max() < 0.02


def test_replay_takes_weight_and_offset_off_between_its_stops_and_refuses_other_places() -> None:
    recording = exact_recording()
    replay = exact_replay(recording, 5)
    arm = truth()
    q = recording.position[:1000]
    rest = np.zeros_like(q)
    weight = arm.base_wrench_regressor(q, rest, rest, PLACEMENT) @ arm.nominal.ravel() + OFFSET
    # Between two stops, 20 ms and at most 0.04 rad apart: 0.04² / 8 of a weight of 200 N m.
    np.testing.assert_allclose(replay.at(q), weight, atol=0.05)
    with pytest.raises(RecordingError, match='static replay'):
        replay.at(q + 0.3)


def test_says_what_is_wrong_with_a_recording() -> None:
    good = exact_recording()
    arm = unknown_arm()
    broken = good.wrench.copy()
    broken[3, 2] = np.nan
    with pytest.raises(RecordingError, match='wrench is not finite in 1 of'):
        replace(good, wrench=broken)
    with pytest.raises(RecordingError, match='stamps'):
        replace(good, stamps=good.stamps[::-1])
    with pytest.raises(RecordingError, match='position'):
        replace(good, position=good.position[1:])
    with pytest.raises(RecordingError, match='six columns'):
        replace(good, wrench=good.wrench[:, :5])
    with pytest.raises(RecordingError, match='two stops'):
        RestWrenches(good.position[:1], good.wrench[:1])
    with pytest.raises(RecordingError, match='static replay is not finite'):
        RestWrenches(good.position, broken)
    with pytest.raises(RecordingError, match='no recording'):
        identify_base(arm, [])
    estimate = identify_base(arm, [good], None, PLACEMENT, [exact_replay(good, 5)])
    with pytest.raises(ParameterError, match='static replay'):
        predict_base(arm, estimate, good, None, PLACEMENT)
    assert good.velocity is not None
    short, shorter = (
        BaseRecording(good.stamps[:n], good.position[:n], good.velocity[:n], good.wrench[:n])
        for n in (50, 6)
    )
    whole = identify_base(arm, [good], None, PLACEMENT)
    with pytest.raises(RecordingError, match='too short'):
        predict_base(arm, whole, short, None, PLACEMENT)
    with pytest.raises(RecordingError, match='no whole window'):
        identify_base(arm, [shorter], BaseSettings(method='ls'), PLACEMENT)


def synchronized(recording: BaseRecording) -> SynchronizedBatch:
    """Return it as a driver would send it: joints turned round, another among them."""
    other = np.zeros((len(recording.stamps), 1))
    velocity = recording.velocity
    assert velocity is not None
    return SynchronizedBatch(
        names=('gripper', *truth().joints[::-1]),
        frame='base_sensor',
        stamps=recording.stamps,
        position=np.hstack([other, recording.position[:, ::-1]]),
        velocity=np.hstack([other, velocity[:, ::-1]]),
        wrench=-recording.wrench,
    )


def test_synchronized_samples_become_a_recording() -> None:
    recording = exact_recording()
    batch = synchronized(recording)
    batch.wrench[7, 3] = np.nan
    made = base_recording(batch, truth())
    kept = np.arange(len(recording.stamps)) != 7
    np.testing.assert_array_equal(made.stamps, recording.stamps[kept])
    np.testing.assert_array_equal(made.position, recording.position[kept])
    np.testing.assert_array_equal(made.wrench, recording.wrench[kept])
    assert recording.velocity is not None
    assert made.velocity is not None
    np.testing.assert_array_equal(made.velocity, recording.velocity[kept])
    batch.velocity[:, 2] = np.nan
    assert base_recording(batch, truth()).velocity is None
    opposite = base_recording(batch, truth(), 'on_load')
    np.testing.assert_array_equal(opposite.wrench, -made.wrench)
    with pytest.raises(RecordingError, match='no joint_6'):
        base_recording(replace(batch, names=('a', 'b', *batch.names[2:])), truth())


def test_the_description_says_where_the_sensor_is() -> None:
    mount = """
      <link name="base_sensor"/>
      <joint name="mount" type="fixed">
        <parent link="base_link"/><child link="base_sensor"/>
        <origin xyz="0.03 -0.02 -0.06" rpy="0 0 0.6435011087932844"/>
      </joint>
    </robot>"""
    urdf = puma_with_inertials()
    rotation, position = sensor_placement(urdf.replace('</robot>', mount), 'base_sensor')
    np.testing.assert_allclose(rotation, PLACEMENT[0], atol=1e-12)
    np.testing.assert_allclose(position, PLACEMENT[1], atol=1e-12)
    with pytest.raises(FrameError, match='no link'):
        sensor_placement(urdf, 'nowhere')
    with pytest.raises(DescriptionError, match='joint_1'):
        sensor_placement(urdf, 'link_1')


@pytest.mark.parametrize('bad', [{'method': 'guess'}, {'ridge': -1.0}, {'ridge': np.nan}], ids=str)
def test_refuses_settings_that_mean_nothing(bad: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(bad))):
        BaseSettings(**bad)
