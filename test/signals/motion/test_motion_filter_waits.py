"""What the motion filter waits for and refuses: descriptions, frames, joints and channels."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from swinging_arm import (
    FRAME,
    GRAVITY,
    START,
    URDF,
    assert_same,
    feed,
    in_full_swing,
    motion_filter,
    synchronized,
)

from load_identification.errors import DescriptionError
from load_identification.interface.batches import SynchronizedBatch, joined
from load_identification.model.robot import Robot
from load_identification.signals.jumps import LimitGate
from load_identification.simulation.robots import SCARA
from load_identification.simulation.sensors import Recording


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
    delay = round(stage.differentiator.delay * 1e9)
    inside = (stamps > batch.stamps[1000] - delay) & (stamps < batch.stamps[1499] + delay)
    np.testing.assert_array_equal(np.isnan(torque[:, 4]), inside)
    whole = feed(motion_filter(), batch)
    others = [0, 1, 2, 3, 5]
    np.testing.assert_array_equal(torque[:, others], whole.wrench[:, others])
