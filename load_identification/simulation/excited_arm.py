"""A three-joint arm with friction that differs by direction, and recordings of it.

All numbers are made up. The torques are Pinocchio's RNEA and thus independent of the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from load_identification.arm.dynamics.base_parameters import (
    BaseParameters,
    TorqueRegressor,
    arm_base_parameters,
    base_regressor,
)
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.planning.criteria import (
    CONDITION,
    Design,
    design,
    ideal_blocks,
    judged,
    optimal_design,
)
from load_identification.arm.planning.experiments import feasible_experiments, locked_postures
from load_identification.arm.planning.plan_file import ExperimentPlan, plan_path
from load_identification.constants import GRAVITY_VECTOR
from load_identification.motion.joint_path import JointMotion
from load_identification.motion.limits import Limits, arm_limits
from load_identification.simulation.robots import PinocchioArm, inertial, joint
from load_identification.typing_aliases import FloatArray

BODIES = (
    inertial(6.0, '0.01 0.02 0.1', (0.06, 0.002, -0.003, 0.05, 0.001, 0.04)),
    inertial(5.0, '0.2 0.01 0.03', (0.02, 0.003, 0.004, 0.12, -0.002, 0.11)),
    inertial(2.5, '0.15 -0.01 0.02', (0.005, 0.001, -0.002, 0.03, 0.0005, 0.028)),
)
JOINTS = (
    ('0 0 0.4', '0 0 1', 2.5, 2),
    ('0 0.1 0.1', '0 1 0', 1.5, 2),
    ('0.45 0 0', '0 1 0', 2, 3),
)
"""Place [m], axis, range to each side [rad] and largest velocity [rad/s]."""


def description(joints: int) -> str:
    """Return the description of the first joints of the arm."""
    parts, links = '', ['base', 'link_1', 'link_2', 'link_3']
    for k, (xyz, axis, reach, velocity) in enumerate(JOINTS[:joints]):
        limit = f'lower="{-reach}" upper="{reach}" velocity="{velocity}" effort="150"'
        names = f'joint_{k + 1}', 'revolute', links[k], links[k + 1]
        parts += joint(*names, xyz, axis=axis, limit=limit, body=BODIES[k])
    return f'<robot name="arm"><link name="base"/>{parts}</robot>'


COULOMB = np.array([[6.0, 4.0], [8.0, 5.0], [3.0, 1.8]])
VISCOUS = np.array([[5.0, 3.0], [6.0, 3.5], [2.0, 1.2]])
"""Coulomb and viscous friction of each joint, forward and backward [N m, N m s/rad]."""


def friction(velocity: FloatArray) -> FloatArray:
    """Return the friction (n, 3) at velocities (n, 3): Vandanjon et al., eq. 5."""
    forward = COULOMB[:, 0] + VISCOUS[:, 0] * velocity
    backward = -COULOMB[:, 1] + VISCOUS[:, 1] * velocity
    return np.where(velocity > 0.0, forward, np.where(velocity < 0.0, backward, 0.0))


@dataclass(frozen=True, eq=False)
class Case:
    """An arm, its limits, and the columns of its base parameters."""

    arm: Arm
    limits: Limits
    base: BaseParameters
    regressor: TorqueRegressor
    truth: FloatArray


def case(joints: int) -> Case:
    """Return the arm of the first joints."""
    arm = Arm(description(joints))
    model = ArmModel(arm, DriveModel(coulomb='none', viscous='none'))
    base = arm_base_parameters(model)
    limits = arm_limits(arm).scaled(0.9, 0.9, 0.9)
    truth = base.to_base(model.nominal)
    return Case(arm, limits, base, base_regressor(model, base), truth)


AT_ONCE = 4096
"""Choices evaluated at once."""


def planned(found: Case, size: int, periods: int = 6) -> ExperimentPlan:
    """Choose experiments on a grid."""
    postures = locked_postures(found.limits, (1, 3, 3), seed=0)
    experiments = feasible_experiments(found.limits, postures, periods=periods)
    blocks = ideal_blocks(found.regressor, experiments, np.ones(len(found.arm.joints)))
    chosen = optimal_design(blocks, size, 0, CONDITION, starts=2).chosen
    return plan_path(found.arm.joints, [experiments[k] for k in chosen], found.limits)


def exhaustive(blocks: FloatArray, size: int) -> Design:
    """Choose the experiments of least Frobenius condition number by trying every choice."""
    single = np.einsum('nri,nrj->nij', blocks, blocks)
    choices, least, chosen = combinations(range(len(blocks)), size), np.inf, np.arange(size)
    while batch := list(islice(choices, AT_ONCE)):
        places = np.array(batch)
        condition, _ = judged(sum((single[column] for column in places.T), 0.0 * single[:1]))
        best = int(np.argmin(condition))
        if condition[best] < least:
            least, chosen = float(condition[best]), places[best]
    return design(blocks, chosen)


@dataclass(frozen=True, eq=False)
class Recording:
    """A true motion, its encoder readings, and the torque of inertia and gravity."""

    times: FloatArray
    motion: JointMotion
    position: FloatArray
    frictionless: FloatArray


def record(plan: ExperimentPlan, rate: float, lead: float = 0.0) -> Recording:
    """Simulate a plan after a rest of `lead` seconds; encoders have steps of 2e-5 rad."""
    times = np.arange(0.0, lead + plan.path.duration + 1.0, 1.0 / rate)
    motion = plan.path.sample(times - lead)
    arm = PinocchioArm(description(len(plan.joints)), np.array(GRAVITY_VECTOR))
    steps = 2e-5 * np.round(motion.position / 2e-5)
    return Recording(times, motion, steps, arm.torque(motion))
