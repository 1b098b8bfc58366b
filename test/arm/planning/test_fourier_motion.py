"""The Fourier motion: rest at both ends, limits in between, and a condition number that falls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio
import pytest

from load_identification.arm.planning.criteria import CONDITION
from load_identification.arm.planning.fourier import (
    FourierSettings,
    OptimisedMotion,
    optimise_fourier_motion,
)
from load_identification.errors import ParameterError
from load_identification.motion.clearance import Clearance
from load_identification.motion.joint_path import JointMotion
from load_identification.motion.limits import Box
from load_identification.simulation.excited_arm import Case, case, description
from load_identification.typing_aliases import FloatArray

SETTINGS = FourierSettings(duration=16.0, period=8.0, draws=15, descents=1, iterations=30, seed=1)
BOX = Box(np.array([0.1, -0.5, 0.1]), np.array([0.5, 0.6, 0.8]))


def inside(box: Box) -> Clearance:
    return Clearance(
        description(3),
        ('joint_1', 'joint_2', 'joint_3'),
        floor=0.1,
        workspace=box,
        tip_frame='link_3',
    )


@pytest.fixture(scope='module')
def arm() -> Case:
    return case(3)


def optimise(
    arm: Case,
    settings: FourierSettings = SETTINGS,
    clearance: Clearance | None = None,
    criterion: str = CONDITION,
) -> OptimisedMotion:
    return optimise_fourier_motion(
        arm.regressor, arm.limits, settings, np.ones(3), clearance, None, criterion
    )


@pytest.fixture(scope='module')
def found(arm: Case) -> OptimisedMotion:
    return optimise(arm)


@pytest.fixture(scope='module')
def boxed(arm: Case) -> OptimisedMotion:
    return optimise(arm, clearance=inside(BOX))


def sampled(found: OptimisedMotion) -> tuple[FloatArray, JointMotion]:
    times = np.linspace(0.0, found.motion.duration, 8001)
    return times, found.motion.sample(times)


@pytest.mark.parametrize('which', ['found', 'boxed'])
def test_starts_and_ends_at_rest_in_the_same_posture(
    which: str, request: pytest.FixtureRequest
) -> None:
    _, motion = sampled(request.getfixturevalue(which))
    np.testing.assert_allclose(motion.velocity[[0, -1]], 0.0, atol=1e-12)
    np.testing.assert_allclose(motion.acceleration[[0, -1]], 0.0, atol=1e-12)
    np.testing.assert_allclose(motion.position[0], motion.position[-1], atol=1e-12)


@pytest.mark.parametrize('which', ['found', 'boxed'])
def test_keeps_every_limit_of_the_joints(
    arm: Case, which: str, request: pytest.FixtureRequest
) -> None:
    _, motion = sampled(request.getfixturevalue(which))
    assert arm.limits.allow(motion.position).all()
    assert (np.abs(motion.velocity) <= arm.limits.velocity).all()
    assert (np.abs(motion.acceleration) <= arm.limits.acceleration).all()


def test_keeps_the_tool_in_the_workspace(arm: Case, boxed: OptimisedMotion) -> None:
    _, motion = sampled(boxed)
    model = pinocchio.buildModelFromXML(description(3))
    data = model.createData()
    for q in motion.position[::20]:
        pinocchio.forwardKinematics(model, data, q)
        point = data.oMi[3].translation
        assert (point > BOX.lower).all()
        assert (point < BOX.upper).all()
    assert inside(BOX).distance(motion.position[::20]).min() > 0.005


def test_velocity_and_acceleration_are_derivatives(found: OptimisedMotion) -> None:
    times, motion = sampled(found)
    for value, slope in (
        (motion.position, motion.velocity),
        (motion.velocity, motion.acceleration),
    ):
        central = (value[2:] - value[:-2]) / (times[2] - times[0])
        # step^2 / 6 = 7e-7 of a third derivative below 100.
        np.testing.assert_allclose(slope[1:-1], central, atol=1e-4)


@pytest.mark.parametrize('which', ['found', 'boxed'])
def test_is_conditioned_better_than_the_best_drawn(
    which: str, request: pytest.FixtureRequest
) -> None:
    motion = request.getfixturevalue(which)
    assert motion.worth.condition < 0.8 * motion.drawn.condition


def test_condition_number_is_that_of_what_friction_leaves(
    arm: Case, found: OptimisedMotion
) -> None:
    times = np.linspace(0.0, found.motion.duration, 2001)
    motion = found.motion.sample(times)
    columns = arm.regressor(*motion)
    information = np.zeros((15, 15))
    for joint in range(3):
        v = motion.velocity[:, joint]
        friction = np.column_stack([np.sign(v), np.ones_like(v), v])
        share = np.linalg.lstsq(friction, columns[:, joint], rcond=None)[0]
        left = columns[:, joint] - friction @ share
        information += left.T @ left
    values = np.linalg.eigvalsh(information)
    true = np.sqrt(np.sum(values) * np.sum(1.0 / values))
    # The optimiser takes 40 samples of a period and a sign that turns over 2 % of the velocity.
    assert found.worth.condition == pytest.approx(true, rel=0.1)


def test_the_same_seed_gives_the_same_motion_and_another_another(arm: Case) -> None:
    short = replace(SETTINGS, iterations=2)
    first, second = optimise(arm, short), optimise(arm, short)
    np.testing.assert_array_equal(first.motion.amplitude, second.motion.amplitude)
    other = optimise(arm, replace(short, seed=2))
    assert not np.allclose(first.motion.amplitude, other.motion.amplitude)


def test_the_periods_make_up_the_duration_asked_for(found: OptimisedMotion) -> None:
    assert found.motion.duration == pytest.approx(16.0)
    assert found.motion.cycles == 2


def test_a_workspace_out_of_reach_is_refused_with_its_corners(arm: Case) -> None:
    far = inside(Box(np.full(3, 2.0), np.full(3, 2.5)))
    with pytest.raises(ParameterError, match=r'edge of the workspace from \[2. 2. 2.\]'):
        optimise(arm, replace(SETTINGS, iterations=2), far)
