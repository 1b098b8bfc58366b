"""From synchronized samples to the motion of the sensor frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import estimated
from swinging_arm import (
    CUTOFF,
    FRAME,
    GRAVITY,
    MAX_GAP,
    MOTION,
    OUTPUT_RATE,
    RATE,
    URDF,
    assert_same,
    feed,
    in_full_swing,
    motion_filter,
    sines,
    synchronized,
)

from load_identification.estimation.payload_estimate import EstimatorSettings
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import (
    CHANNELS,
    FilteredBatch,
    SynchronizedBatch,
    joined,
)
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath
from load_identification.signals.differentiator import Differentiator
from load_identification.signals.gravity import MotionOfUnknownRobot
from load_identification.signals.motion_filter import MotionFilter
from load_identification.signals.rest import standing
from load_identification.simulation.sensors import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)


@pytest.mark.parametrize('with_velocity', [True, False])
def test_the_motion_of_the_simulated_arm_is_recovered(
    recording: Recording, with_velocity: bool
) -> None:
    """From joint states without noise, with no more than the filter's own error."""
    out, place = in_full_swing(
        recording, feed(motion_filter(), synchronized(recording, with_velocity))
    )
    assert len(out.stamps) > 180
    for name in MOTION:
        truth = getattr(recording.motion, name)[place]
        # At 1 Hz, 0.05 of the cutoff, derivatives are short by 4e-8.
        np.testing.assert_allclose(
            getattr(out, name), truth, rtol=0, atol=5e-8 * np.abs(truth).max()
        )


@pytest.mark.parametrize('convention', ['on_sensor', 'on_load'])
def test_the_wrench_comes_out_low_passed_as_the_load_exerts_it_on_the_sensor(
    recording: Recording, convention: str
) -> None:
    offset = np.array([1.0, -2.0, 3.0, 0.1, -0.2, 0.3])
    on_sensor = recording.exact_wrench + offset
    sign = 1.0 if convention == 'on_sensor' else -1.0
    batch = replace(synchronized(recording), wrench=sign * on_sensor)
    out, place = in_full_swing(recording, feed(motion_filter(convention), batch))
    # Products of the joints' motions reach 3 Hz, 0.15 of the cutoff: values lose less than 1e-6.
    truth = on_sensor[place]
    scale = np.repeat([np.ptp(truth[:, :3]), np.ptp(truth[:, 3:])], 3)
    np.testing.assert_allclose((out.wrench - truth) / scale, 0.0, atol=1e-6)


@pytest.mark.parametrize('cuts', [None, []])
def test_a_backward_jump_starts_afresh(recording: Recording, cuts: list[int] | None) -> None:
    """Between two batches or within one, as where a queue is drained after a restart."""
    batch = synchronized(recording)
    fresh = feed(motion_filter(), batch, cuts)
    stage = motion_filter()
    first = stage.update(batch)
    assert first is not None
    assert_same(feed(stage, batch, cuts), fresh)

    twice = joined([batch.select(slice(0, 2000)), batch])
    stage = motion_filter()
    out = feed(stage, twice, cuts)
    begin = int(np.argmax(out.stamps == fresh.stamps[0])) if cuts == [] else None
    if begin is not None:
        assert_same(out, fresh)
        assert stage.dropped == {'stamp_not_increasing': 2000}
    else:
        again = np.flatnonzero(np.diff(out.stamps) < 0) + 1
        assert len(again) == 1
        np.testing.assert_array_equal(out.stamps[again[0] :], fresh.stamps)


def test_after_a_backward_jump_the_sensor_may_be_another(recording: Recording) -> None:
    """What was learned of its channels is forgotten too."""
    stage, batch = motion_filter(), synchronized(recording)
    feed(stage, batch)
    assert stage.absent_channels == ()
    lacking = replace(batch, wrench=np.where(np.arange(6) == 3, 0.0, batch.wrench))
    out = feed(stage, lacking)
    assert stage.absent_channels == ('tx',)
    assert np.isnan(out.wrench[:, 3]).all()
    assert stage.dropped['wrench_channel_stuck'] == 0


@pytest.mark.parametrize('gravity', [GRAVITY, (9.8, 0.0, 0.0)], ids=['standing', 'on a wall'])
def test_gravity_of_the_root_frame_and_rest_come_with_the_motion(
    recording: Recording, gravity: tuple[float, float, float]
) -> None:
    """The arm stands before and after 6 s of motion."""
    stage = MotionFilter(Differentiator(CUTOFF, OUTPUT_RATE, MAX_GAP), gravity, 'on_sensor')
    stage.set_description(URDF, FRAME)
    out = stage.update(synchronized(recording))
    place = np.searchsorted(recording.stamps, out.stamps)
    still = np.zeros((len(place), 6))
    true = Robot(URDF, FRAME, gravity).motion(recording.position[place], still, still)
    np.testing.assert_allclose(out.gravity, true.gravity, rtol=0, atol=1e-4)
    still_by_joint = true.motion_by_joint[out.rest]
    np.testing.assert_allclose(out.motion_by_joint[out.rest], still_by_joint, rtol=0, atol=1e-3)
    moving = np.abs(recording.velocity[place]).max(axis=1) > 0.05
    assert moving.any()
    assert not (out.rest & moving).any()
    # An accelerometer reads the arm's own acceleration, the same on any wall, less gravity.
    swing, place = in_full_swing(recording, out)
    own = (recording.motion.linear_acceleration + recording.motion.gravity)[place]
    found = swing.linear_acceleration + swing.gravity
    np.testing.assert_allclose(found, own, rtol=0, atol=1e-6)


@pytest.mark.parametrize('jitter', [0.0, 1e-9], ids=['ours', 'an IMU'])
def test_motion_of_an_unknown_robot_gets_gravity_and_rest(
    recording: Recording, jitter: float
) -> None:
    """As where the samples came over topics, from our filter or from what is never quite still."""
    still = np.repeat(recording.position[:1], 1000, axis=0)
    stood = SynchronizedBatch(
        recording.names,
        recording.frame,
        recording.stamps[0] + np.arange(-1000, 0) * 2_000_000,
        still,
        np.zeros_like(still),
        recording.wrench[:1000],
    )
    stage = motion_filter()
    parts = [stage.update(stood), stage.update(synchronized(recording))]
    known = [part for part in parts if part is not None]
    for part in known:
        np.testing.assert_array_equal(part.rest, standing(part))
        at_rest = part.select(part.rest)
        np.testing.assert_array_equal(at_rest.linear_acceleration, -at_rest.gravity)
    sent = ('frame', 'stamps', 'wrench', *MOTION)
    completion = MotionOfUnknownRobot()
    over_topics = [FilteredBatch(**{name: getattr(part, name) for name in sent}) for part in known]
    heard = [
        completion.fill(replace(part, angular_velocity=part.angular_velocity + jitter))
        for part in over_topics
    ]
    rest, truth = (np.concatenate([part.rest for part in parts]) for parts in (heard, known))
    assert truth.sum() > 90
    if jitter:
        # Later by the tenth of a second without motion that makes a rest.
        assert rest.sum() >= truth.sum() - 8
        assert not (rest & ~truth).sum() > 6
    else:
        np.testing.assert_array_equal(rest, truth)
    off = np.concatenate([h.gravity - k.gravity for h, k in zip(heard, known, strict=True)])
    assert np.abs(off[1:]).max() < 0.05


def test_reset_forgets_every_sample(recording: Recording) -> None:
    stage, batch = motion_filter(), synchronized(recording)
    fresh = feed(motion_filter(), batch)
    feed(stage, batch)
    stage.reset()
    assert stage.absent_channels == CHANNELS
    assert_same(feed(stage, batch), fresh)


def test_noisy_velocities_over_good_encoders_do_not_spoil_the_estimate(robot: Robot) -> None:
    sensors = SensorModel(
        encoder_resolution=1e-5, velocity_noise=0.01, force_step=0, torque_step=0
    )
    drawn = simulate(robot, JointPath((sines(),)), aluminium_block(), sensors, RATE, seed=4)
    found = []
    for with_velocity in (True, False):
        estimator = PayloadEstimator(EstimatorSettings())
        estimator.update(feed(motion_filter(), synchronized(drawn, with_velocity)))
        estimate = estimated(estimator)
        found.append((estimate.values[0], estimate.std[0]))
    (mass, std), (other, least) = found
    # They were believed before: twice the std, and two out of six intervals missed the truth.
    assert std < 1.1 * least
    assert abs(mass - other) < 0.5 * least
