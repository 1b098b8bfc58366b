"""The compensated wrench: what is left of it in free motion, and how soon a push is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio
import pytest

from load_identification.estimation.belief.error_budget import Knowledge
from load_identification.estimation.payload_estimate import Withheld, nothing_claimed
from load_identification.interface.batches import JointBatch, WrenchBatch, joined
from load_identification.interface.parameters import Parameters
from load_identification.model.regressor import gravity_wrench
from load_identification.model.robot import Robot
from load_identification.motion.joint_path import JointPath
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.pipeline.compensation import (
    LAST_PAYLOAD,
    NONE,
    PAYLOAD,
    TOOL,
    Compensation,
    LoadTakenOff,
)
from load_identification.signals.joint_motion import JointMotionNow
from load_identification.simulation.motions import PUMA_LOWER, PUMA_UPPER
from load_identification.simulation.robots import puma_description
from load_identification.simulation.sensors import (
    WRIST_SENSOR,
    Recording,
    SensorModel,
    aluminium_block,
    simulate,
)
from load_identification.typing_aliases import FloatArray

ROBOT = Robot(puma_description(), 'ft_sensor')
OFFSET = np.array(WRIST_SENSOR.offset)
NOISE = np.repeat([WRIST_SENSOR.force_noise, WRIST_SENSOR.torque_noise], 3)
TICK = 10
"""Samples of 1 kHz between two ticks."""


def recording(highest: float, part: float = 1.0, sensors: SensorModel = WRIST_SENSOR) -> Recording:
    """Return 6 s at 1 kHz of the PUMA with the block, moving at up to so many Hz."""
    middle = (PUMA_LOWER + PUMA_UPPER) / 2.0
    limits = Limits(PUMA_LOWER, PUMA_UPPER, part * ROBOT.velocity_limits)
    motion = random_sines(middle, limits, 6.0, 1, highest)
    return simulate(ROBOT, JointPath((motion,)), aluminium_block(), sensors, 1000.0, seed=4)


@pytest.fixture(scope='module')
def brisk() -> Recording:
    """Motion up to 1 Hz."""
    return recording(1.0)


def known(sign: float = 1.0) -> LoadTakenOff:
    """Return the block and the offset as known; the offset is that of the raw wrench."""
    load = LoadTakenOff()
    load.state, load.body = 'payload', aluminium_block().to_vector()
    load.offset = sign * OFFSET
    return load


def inputs(sim: Recording, rows: slice) -> tuple[list[JointBatch], list[WrenchBatch]]:
    """Return some samples of a recording as they come."""
    return [sim.joints().select(rows)], [sim.wrenches().select(rows)]


def played(
    sim: Recording, parameters: Parameters, load: LoadTakenOff, tick: int = TICK
) -> tuple[FloatArray, FloatArray]:
    """Return stamps and compensated wrenches, tick by tick; none may be lost."""
    stage, found = Compensation(parameters), []
    for first in range(0, len(sim.stamps), tick):
        found += stage.update(*inputs(sim, slice(first, first + tick)), ROBOT, load)
        assert stage.waiting_for == ''
    assert sum(stage.dropped.values()) == 0
    whole = joined(found)
    return whole.stamps, whole.wrench


def rms(wrenches: FloatArray) -> FloatArray:
    """Return the root mean square of each channel but for the first moments, (6,)."""
    return np.asarray(np.sqrt(np.mean(wrenches[100:] ** 2, axis=0)))


@pytest.mark.parametrize('velocity_noise', [None, 1e-3, 0.0])
def test_free_motion_leaves_hardly_more_than_noise(velocity_noise: float | None) -> None:
    sim = recording(1.0, sensors=replace(WRIST_SENSOR, velocity_noise=velocity_noise or None))
    if velocity_noise == 0.0:
        # Some drivers fill in zeros.
        sim.velocity[:] = 0.0
    stamps, wrenches = played(sim, Parameters(compensate_inertia=True), known())
    np.testing.assert_array_equal(stamps, sim.stamps)
    assert (rms(wrenches) / NOISE).max() < 1.5


def test_what_has_waited_for_a_busy_machine_is_compensated_as_well(brisk: Recording) -> None:
    for tick in (500, 5000):
        _, wrenches = played(brisk, Parameters(compensate_inertia=True), known(), tick)
        assert (rms(wrenches) / NOISE).max() < 1.5


def test_what_the_driver_has_taken_off_is_not_taken_off_twice(brisk: Recording) -> None:
    load, held = known(), 0.5 * aluminium_block().to_vector()
    load.by_driver = held
    taken = brisk.wrench - gravity_wrench(brisk.motion.gravity, held)
    parameters = Parameters(compensate_inertia=True, wrench_convention='on_load')
    _, wrenches = played(replace(brisk, wrench=-taken), parameters, load)
    assert (rms(wrenches) / NOISE).max() < 1.5


def test_gravity_alone_leaves_the_inertial_forces(brisk: Recording) -> None:
    _, wrenches = played(brisk, Parameters(), known())
    block, gravity = aluminium_block(), brisk.motion.gravity
    weight = np.hstack([block.mass * gravity, np.cross(block.first_moment, gravity)])
    inertial = brisk.exact_wrench - weight
    assert rms(inertial)[:3].max() > 10.0 * NOISE[0]
    assert (rms(wrenches - inertial) / NOISE).max() < 1.5


@pytest.mark.parametrize('frame', ['ft_sensor', 'base_link', 'link_5'])
def test_another_frame_has_its_own_axes_and_origin(brisk: Recording, frame: str) -> None:
    parameters = Parameters(compensate_inertia=True)
    _, in_sensor = played(brisk, parameters, known())
    _, wrenches = played(brisk, replace(parameters, compensated_frame=frame), known())
    model = pinocchio.buildModelFromXML(puma_description())
    data = model.createData()
    here, there = (model.getFrameId(name) for name in ('ft_sensor', frame))
    for k in range(500, 6000, 377):
        pinocchio.framesForwardKinematics(model, data, brisk.exact.position[k])
        pose = data.oMf[there].actInv(data.oMf[here])
        force = pose.rotation @ in_sensor[k, :3]
        torque = pose.rotation @ in_sensor[k, 3:] + np.cross(pose.translation, force)
        np.testing.assert_allclose(wrenches[k], np.hstack([force, torque]), atol=5e-4)


def test_a_frame_that_other_joints_move_is_named() -> None:
    stage = Compensation(Parameters(compensated_frame='gripper'))
    sim = recording(0.1)
    assert stage.update(*inputs(sim, slice(20)), ROBOT, known()) == []
    assert "'gripper' is no link" in stage.waiting_for
    assert stage.unusable_frame(ROBOT) in stage.waiting_for
    # Before the first wrench it may be the sensor's own, which hangs on a link by /tf_static.
    assert stage.unusable_frame(None) == ''
    for frame in ('', 'ft_sensor', 'link_5'):
        assert Compensation(Parameters(compensated_frame=frame)).unusable_frame(ROBOT) == ''
    assert stage.dropped['not_compensated'] == 20


def test_nothing_is_compensated_far_from_a_joint_state(brisk: Recording) -> None:
    stage = Compensation(Parameters(max_gap=0.1))
    late = WrenchBatch(brisk.frame, brisk.stamps + 1_000_000_000, brisk.wrench)
    found = stage.update([brisk.joints()], [late], ROBOT, known())
    newest = brisk.stamps[-1] + 100_000_000
    assert found == [] or found[0].stamps[-1] <= newest
    later = WrenchBatch(brisk.frame, brisk.stamps[-10:] + 200_000_000, brisk.wrench[-10:])
    assert stage.update([], [later], ROBOT, known()) == []


def test_a_recording_played_again_is_compensated_again(brisk: Recording) -> None:
    stage, load = Compensation(Parameters()), known()
    for _ in range(2):
        for first in range(0, 1000, TICK):
            rows = slice(first, first + TICK)
            (out,) = stage.update(*inputs(brisk, rows), ROBOT, load)
            np.testing.assert_array_equal(out.stamps, brisk.stamps[rows])


def test_joint_states_without_a_position_are_waited_out(brisk: Recording) -> None:
    """A joint that was not known yet had ended the node at the second batch."""
    stage, given = Compensation(Parameters()), []
    for first in range(0, 60, TICK):
        (joints,), wrenches = inputs(brisk, slice(first, first + TICK))
        if first < 30:
            joints = replace(joints, position=np.full_like(joints.position, np.nan))
        given.append(len(stage.update([joints], wrenches, ROBOT, known())))
    assert given == [0, 0, 0, 1, 1, 1]


def test_channels_that_are_not_alive_and_what_no_sensor_reads_are_nan(brisk: Recording) -> None:
    joints, (wrenches,) = inputs(brisk, slice(9))
    raw = wrenches.wrench.copy()
    raw[3, 0], raw[5, 1] = np.inf, 1e300
    wrenches = replace(wrenches, wrench=raw)
    dead = (False,) * 5 + (True,)
    (out,) = Compensation(Parameters()).update(joints, [wrenches], ROBOT, known(), dead)
    assert np.isnan(out.wrench[:, 5]).all()
    assert np.argwhere(np.isnan(out.wrench[:, :5])).tolist() == [[3, 0], [5, 1]]
    assert not np.isinf(out.wrench).any()


@pytest.mark.parametrize('split', [False, True])
def test_joints_of_two_publishers_and_others_besides(brisk: Recording, split: bool) -> None:
    one, two = slice(0, 2), slice(2, None)
    track, found = JointMotionNow(0.1), []
    for k in range(1000, 2000):
        parts = (one, two) if split else (slice(None),)
        for part in parts:
            stamps = brisk.stamps[k : k + 1] - (4_000_000 if split and part is one else 0)
            row = (
                brisk.exact.position[k - 4 : k - 3]
                if part is one
                else (brisk.exact.position[k : k + 1])
            )
            names = (*brisk.names[part], 'finger')
            position = np.hstack([row[:, part], [[0.0]]])
            track.update([JointBatch(names, stamps, position, np.full_like(position, np.nan))])
        if k > 1100:
            now = track.newest(brisk.names)
            assert now.stamp == brisk.stamps[k]
            found.append(np.abs(now.position - brisk.exact.position[k]).max())
    assert max(found) < 1e-4


@pytest.mark.parametrize(
    ('frequency', 'delay_ms', 'gain'), [(1.0, 0.15, 0.01), (2.0, 0.5, 0.03), (5.0, 2.5, 0.15)]
)
def test_the_acceleration_has_the_delay_stated(
    frequency: float, delay_ms: float, gain: float
) -> None:
    times = np.arange(0.0, 2.0, 1e-3)
    omega = 2.0 * np.pi * frequency
    track, seen = JointMotionNow(0.1), []
    for t in times:
        velocity = np.array([[np.sin(omega * t)]])
        stamps = np.array([round(t * 1e9) + 1])
        track.update(
            [JointBatch(('a',), stamps, -np.cos(omega * np.array([[t]])) / omega, velocity)]
        )
        now = track.newest(('a',))
        seen.append(np.nan if now is None else now.acceleration[0] / omega)
    settled = times >= 2.0 - 1.0 / frequency
    phasor = np.linalg.lstsq(
        np.stack([np.cos(omega * times), np.sin(omega * times)], axis=1)[settled],
        np.array(seen)[settled],
        rcond=None,
    )[0]
    late = np.arctan2(phasor[1], phasor[0]) / omega
    assert abs(1e3 * late) < delay_ms
    assert abs(np.hypot(*phasor) - 1.0) < gain


@pytest.mark.parametrize('tool', [np.zeros(10), np.r_[0.3, np.zeros(9)]])
def test_what_is_taken_off_is_tool_then_payload_then_the_last(tool: FloatArray) -> None:
    load, total = LoadTakenOff(), aluminium_block().to_vector() + tool
    load.update(None, tool)
    before = TOOL if tool.any() else NONE
    assert load.state == before
    covariance = np.diag(np.full(16, 1e-6))
    nothing = np.zeros((10, 10))
    no_errors = np.zeros(0), np.zeros((0, 0)), np.zeros((16, 0))
    knowledge = Knowledge(
        total, OFFSET, covariance, nothing, nothing, *no_errors, np.ones(2), nothing
    )
    changed = nothing_claimed(
        knowledge, tool, np.zeros((2, 2)), 'changed', 5, 'ft_sensor', Withheld.CHANGED
    )
    load.update(changed, tool)
    assert load.state == before
    # A tool that comes or goes meanwhile is told, not doubted.
    load.update(changed, other := aluminium_block().to_vector())
    assert load.state == TOOL
    np.testing.assert_array_equal(load.body, other)
    found = replace(
        changed, withheld=None, covariance=covariance, identified=np.ones(10, dtype=bool)
    )
    load.update(replace(found, identified=np.zeros(10, dtype=bool)), tool)
    assert load.state == before
    np.testing.assert_array_equal(load.body, tool)
    load.update(found, tool)
    assert load.state == PAYLOAD
    np.testing.assert_array_equal(load.body, total)
    np.testing.assert_array_equal(load.offset, found.offset)
    load.update(changed, tool)
    assert load.state == LAST_PAYLOAD
    np.testing.assert_array_equal(load.body, total)
    load.update(replace(found, identified=np.arange(10) < 4), tool)
    np.testing.assert_allclose(load.body[:4], total[:4])
    assert load.body[4] < total[4]
    # Nothing hangs there, and noise makes it less.
    load.update(replace(found, total=-0.001 * total), tool)
    assert load.state == before
    # Just saved as the tool, to the last bit.
    none = replace(found, parameters=np.zeros(10), total=tool, identified=np.arange(10) < 1)
    load.update(none, tool)
    np.testing.assert_array_equal(load.body, tool)
    load.update(None, tool)
    assert load.state == before
