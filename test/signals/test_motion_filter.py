"""From synchronized samples to the motion of the sensor frame, and what it waits for."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from estimates import estimated

from load_identification.errors import DescriptionError
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
from load_identification.motion.sines import Sines
from load_identification.signals.differentiator import Differentiator
from load_identification.signals.gravity import MotionOfUnknownRobot
from load_identification.signals.jumps import LimitGate
from load_identification.signals.motion_filter import MotionFilter
from load_identification.signals.rest import standing
from load_identification.simulation.robots import SCARA, puma_description
from load_identification.simulation.sensors import (
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)
from load_identification.typing_aliases import IntArray

URDF = puma_description()
FRAME = 'ft_sensor'
GRAVITY = (0.0, 0.0, -9.80665)
RATE = 500.0
CUTOFF, OUTPUT_RATE, MAX_GAP = 20.0, 50.0, 0.1
FADE, DURATION = 1.0, 6.0
FREQUENCIES = np.array([0.23, 0.31, 0.47, 0.61, 0.83, 1.0])
START = 1_700_000_000_000_000_000
MOTION = ('linear_velocity', 'angular_velocity', 'linear_acceleration', 'angular_acceleration')


@pytest.fixture(scope='module')
def robot() -> Robot:
    return Robot(URDF, FRAME, GRAVITY)


def sines() -> Sines:
    """Return a sine of its own for each joint, the last of 1 Hz, at 0.9 rad/s."""
    center = np.deg2rad([50.0, -60.0, 90.0, 30.0, 40.0, 20.0])
    return Sines(
        start=center,
        center=center,
        duration=DURATION,
        fade=FADE,
        amplitude=(0.9 / (2.0 * np.pi * FREQUENCIES))[:, None],
        angular_frequency=(2.0 * np.pi * FREQUENCIES)[:, None],
        phase=np.arange(6.0)[:, None],
    )


@pytest.fixture(scope='module')
def recording(robot: Robot) -> Recording:
    """Exact joint states and wrenches with noise, at 500 Hz."""
    sensors = SensorModel(encoder_resolution=0.0, velocity_noise=0.0, force_step=0, torque_step=0)
    recording = simulate(robot, JointPath((sines(),)), aluminium_block(), sensors, RATE, seed=0)
    return replace(recording, stamps=recording.stamps + START)


def motion_filter(convention: str = 'on_sensor', described: bool = True) -> MotionFilter:
    stage = MotionFilter(Differentiator(CUTOFF, OUTPUT_RATE, MAX_GAP), GRAVITY, convention)
    if described:
        stage.set_description(URDF, FRAME)
    return stage


def synchronized(recording: Recording, with_velocity: bool = True) -> SynchronizedBatch:
    r = recording
    velocity = r.velocity if with_velocity else np.full_like(r.velocity, np.nan)
    return SynchronizedBatch(r.names, r.frame, r.stamps, r.position, velocity, r.wrench)


def feed(
    stage: MotionFilter, batch: SynchronizedBatch, cuts: Sequence[int] | None = None
) -> FilteredBatch:
    """Return all outputs of a batch fed in pieces, of 50 samples if not said."""
    edges = [*(range(0, len(batch.stamps), 50) if cuts is None else [0, *cuts])]
    edges.append(len(batch.stamps))
    parts = [slice(i, j) for i, j in itertools.pairwise(edges)]
    return joined([out for part in parts if (out := stage.update(batch.select(part)))])


def in_full_swing(recording: Recording, out: FilteredBatch) -> tuple[FilteredBatch, IntArray]:
    """Return outputs whose windows lie between the fades, and their places in the recording."""
    t = (out.stamps - START) * 1e-9
    chosen = (t > FADE + 0.1) & (t < DURATION - FADE - 0.1)
    kept = out.select(chosen)
    place = np.searchsorted(recording.stamps, kept.stamps)
    np.testing.assert_array_equal(recording.stamps[place], kept.stamps)
    return kept, place


def assert_same(one: FilteredBatch, other: FilteredBatch, rtol: float = 0.0) -> None:
    for name in ('stamps', 'wrench', *MOTION):
        a, b = getattr(one, name), getattr(other, name)
        atol = rtol * np.nanmax(np.abs(b)) if b.size else 0.0
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


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


def test_joints_come_in_any_order_among_others(recording: Recording) -> None:
    batch = synchronized(recording)
    whole = feed(motion_filter(), batch)
    order = [3, 0, 5, 1, 4, 2]
    gripper = np.full((len(batch.stamps), 1), np.nan)
    other = replace(
        batch,
        names=('gripper', *(batch.names[k] for k in order)),
        position=np.hstack([gripper, batch.position[:, order]]),
        velocity=np.hstack([gripper, batch.velocity[:, order]]),
    )
    assert_same(feed(motion_filter(), other), whole)


def test_without_a_description_it_waits_for_one(recording: Recording) -> None:
    stage, batch = motion_filter(described=False), synchronized(recording)
    assert stage.waiting_for == 'the robot description'
    assert stage.update(batch) is None
    assert stage.waiting_for == 'the robot description'
    assert stage.dropped == {'no_robot': len(batch.stamps)}
    stage.set_description(URDF)
    assert 'first wrench' in stage.waiting_for
    out = feed(stage, batch)
    assert stage.waiting_for == ''
    assert_same(out, feed(motion_filter(), batch))


def test_a_sensor_frame_that_is_given_goes_before_that_of_the_wrench(recording: Recording) -> None:
    batch = replace(synchronized(recording), frame='wrong')
    assert_same(feed(motion_filter(), batch), feed(motion_filter(), synchronized(recording)))


def test_a_frame_that_is_missing_is_named_and_waited_for(recording: Recording) -> None:
    stage = motion_filter(described=False)
    stage.set_description(URDF)
    batch = synchronized(recording)
    wrong = replace(batch, frame='ft_sensr')
    for _ in range(3):
        assert stage.update(wrong) is None
        assert "'ft_sensr'" in stage.waiting_for
        assert "'ft_sensor'" in stage.waiting_for
    assert stage.dropped == {'no_robot': 3 * len(batch.stamps)}
    # Another wrench, or another description, is what it waits for.
    out = feed(stage, batch)
    assert stage.waiting_for == ''
    assert_same(out, feed(motion_filter(), batch))

    stage.set_description(SCARA.urdf)
    assert stage.update(batch) is None
    assert f'{FRAME!r}' in stage.waiting_for
    stage.set_description(URDF)
    assert_same(feed(stage, batch), out)


@pytest.mark.parametrize('description', ['', 'no URDF'])
@pytest.mark.parametrize('frame', ['', FRAME])
def test_a_text_that_is_no_description_is_refused_and_the_one_in_use_stays(
    recording: Recording, description: str, frame: str
) -> None:
    batch, stage = synchronized(recording), motion_filter()
    with pytest.raises(DescriptionError):
        stage.set_description(description, frame)
    assert_same(feed(stage, batch), feed(motion_filter(), batch))


def test_a_chain_that_cannot_be_used_is_told_as_soon_as_the_frame_is_known(
    recording: Recording,
) -> None:
    floating = URDF.replace('"revolute"', '"floating"', 1)
    batch, stage = synchronized(recording), motion_filter()
    with pytest.raises(DescriptionError, match='floating'):
        stage.set_description(floating, FRAME)
    assert_same(feed(stage, batch), feed(motion_filter(), batch))
    # From the frame of the wrench: nothing stops, and what it waits for is said.
    stage.set_description(floating)
    assert stage.update(batch) is None
    assert 'floating' in stage.waiting_for


def test_joints_that_are_missing_are_named(recording: Recording) -> None:
    stage, batch = motion_filter(), synchronized(recording)
    kept = [0, 2, 3, 5]
    part = replace(
        batch,
        names=tuple(batch.names[k] for k in kept),
        position=batch.position[:, kept],
        velocity=batch.velocity[:, kept],
    )
    assert stage.update(part) is None
    assert batch.names[1] in stage.waiting_for
    assert batch.names[4] in stage.waiting_for
    assert batch.names[0] not in stage.waiting_for
    assert stage.dropped == {'joint_missing': len(batch.stamps)}
    assert_same(feed(stage, batch), feed(motion_filter(), batch))
    assert stage.waiting_for == ''


@pytest.mark.parametrize(
    ('kind', 'position', 'words'),
    [
        ('prismatic', 0.9, ''),
        ('prismatic', 250.0, 'axis at 250 m, its limits are 0 and 0.5: millimetres?'),
        ('revolute', -3.1, ''),
        ('revolute', -90.0, 'axis at -90 rad, its limits are 0 and 0.5: degrees?'),
        ('continuous', -90.0, ''),
    ],
)
def test_a_joint_far_beyond_its_limits_is_named(kind: str, position: float, words: str) -> None:
    description = (
        f'<robot name="r"><link name="base"/><link name="{FRAME}"/>'
        f'<joint name="axis" type="{kind}">'
        f'<parent link="base"/><child link="{FRAME}"/><axis xyz="1 0 0"/>'
        '<limit lower="0" upper="0.5" effort="1" velocity="1"/></joint></robot>'
    )
    stage = motion_filter(described=False)
    stage.set_description(description, FRAME)
    for place, said in ((position, words), (0.2, '')):
        stage.update(
            SynchronizedBatch(
                names=('axis',),
                frame=FRAME,
                stamps=np.array([START]),
                position=np.array([[place]]),
                velocity=np.array([[0.0]]),
                wrench=np.zeros((1, 6)),
            )
        )
        assert stage.implausible == said
    assert stage.dropped['joint_position_implausible'] == bool(words)


def test_degrees_near_zero_are_refused_with_those_that_no_joint_has() -> None:
    dropped: Counter[str] = Counter()
    gate, robot = LimitGate(dropped), Robot(URDF, FRAME, GRAVITY)
    stamps = START + np.arange(4000) * 10_000_000
    radians = np.deg2rad(30.0) * np.sin(0.005 * np.arange(4000.0))[:, None] * np.ones(6)
    degrees = np.rad2deg(radians)
    first = int(np.argmax(np.abs(degrees[:, 0]) > 12.0))
    parts = [slice(first, 1500), slice(1500, 1500), slice(1500, 2200)]
    assert not np.concatenate([gate.update(robot, stamps[p], degrees[p]) for p in parts]).any()
    assert gate.words.endswith('degrees?')
    # The driver is put right: positions jump.
    assert gate.update(robot, stamps[2200:2300], radians[2200:2300]).all()
    assert gate.words == ''
    assert dropped == {'joint_position_implausible': 2200 - first}
    # A glitch takes nothing else with it, and what stays within limits for 10 s counts again.
    glitch = radians[2300:2400].copy()
    glitch[50, 2] = 1000.0
    assert (~gate.update(robot, stamps[2300:2400], glitch)).sum() == 1
    slow = np.linspace(30.0, 0.0, 4000)[:, None] * np.ones(6)
    accepted = gate.update(robot, stamps, slow)
    last = int(np.argmin(slow[:, 0] > 5.2))
    assert not accepted[:last].any()
    assert accepted[last + 1000 :].all()


def test_samples_without_a_position_are_dropped_and_counted(recording: Recording) -> None:
    """Half a second without one joint is a gap: no window reaches across it."""
    batch = synchronized(recording)
    holed = replace(batch, position=batch.position.copy())
    holed.position[1000:1250, 3] = np.nan
    holed.position[2000, 0] = np.nan
    stage = motion_filter()
    out = feed(stage, holed)
    assert stage.dropped == {'joint_missing': 251}
    assert np.isfinite(out.angular_acceleration).all()
    stamps = batch.stamps[[1000, 1250]]
    assert not np.any((out.stamps > stamps[0]) & (out.stamps < stamps[1]))
    # About the single sample the polynomial is known well enough from the others.
    kept, place = in_full_swing(recording, out)
    late = kept.stamps > batch.stamps[1900]
    truth = recording.motion.angular_acceleration[place][late]
    np.testing.assert_allclose(
        kept.angular_acceleration[late], truth, rtol=0, atol=5e-7 * np.abs(truth).max()
    )


def test_a_channel_that_the_sensor_lacks_comes_out_as_nan(recording: Recording) -> None:
    batch = synchronized(recording)
    lacking = replace(batch, wrench=batch.wrench.copy())
    lacking.wrench[:, 3] = np.nan
    lacking.wrench[:, 4] = 0.0
    stage = motion_filter()
    out = feed(stage, lacking)
    assert stage.absent_channels == ('tx', 'ty')
    assert np.isnan(out.wrench[:, 3:5]).all()
    whole = feed(motion_filter(), batch)
    others = [0, 1, 2, 5]
    np.testing.assert_array_equal(out.wrench[:, others], whole.wrench[:, others])
    np.testing.assert_array_equal(out.linear_acceleration, whole.linear_acceleration)
    # That the sensor lacks them is no fault of a sample.
    assert stage.dropped['wrench_channel_stuck'] == 0


def test_a_saturated_channel_is_found_as_soon_in_one_batch_as_in_many(
    recording: Recording,
) -> None:
    batch = synchronized(recording)
    most = np.where(np.arange(6) == 2, np.quantile(batch.wrench[:, 2], 0.5), np.inf)
    batch = replace(batch, wrench=np.minimum(batch.wrench, most))
    one, many = motion_filter(), motion_filter()
    one.update(batch)
    for first in range(0, len(batch.stamps), 10):
        many.update(batch.select(slice(first, first + 10)))
    count = many.dropped['wrench_channel_stuck']
    assert count > 0.3 * len(batch.stamps)
    assert one.dropped['wrench_channel_stuck'] == pytest.approx(count, rel=0.05)


def test_a_channel_that_is_finite_no_more_is_named_counted_and_used_again(
    recording: Recording,
) -> None:
    batch = synchronized(recording)
    lost = replace(batch, wrench=batch.wrench.copy())
    lost.wrench[1000:1500, 4] = np.nan
    stage = motion_filter()
    first = feed(stage, lost.select(slice(0, 1400)))
    assert stage.absent_channels == ('ty',)
    rest = feed(stage, lost.select(slice(1400, None)))
    assert stage.absent_channels == ()
    assert stage.dropped == {'wrench_channel_stuck': 500}
    out = joined([first, rest])
    stamps, torque = out.stamps, out.wrench
    # No window that holds one of those samples gives a value, and every other does.
    delay = round(stage.delay * 1e9)
    inside = (stamps > batch.stamps[1000] - delay) & (stamps < batch.stamps[1499] + delay)
    np.testing.assert_array_equal(np.isnan(torque[:, 4]), inside)
    whole = feed(motion_filter(), batch)
    others = [0, 1, 2, 3, 5]
    np.testing.assert_array_equal(torque[:, others], whole.wrench[:, others])


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
