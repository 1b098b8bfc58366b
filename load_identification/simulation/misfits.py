"""Faulty set-ups: gravity, frames, axes, units, joints, drift, compliance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.estimation.misfit.evidence import orientation
from load_identification.estimation.misfit.fits import exponential
from load_identification.estimation.misfit.trials import Kind
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion
from load_identification.simulation.cells import Conditions, Path, moved, published, sample
from load_identification.simulation.changes.draws import drawn_load, unit
from load_identification.simulation.motions import Motion
from load_identification.simulation.robots import Arm
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray


@dataclass(frozen=True, eq=False)
class Fault:
    """A fault of a set-up."""

    kind: Kind | None
    """The fault that should be named."""
    gravity: Callable[[FloatArray, np.random.Generator], FloatArray] = lambda g, rng: g
    """Returns the true gravity in the root frame [m/s²]."""
    published: Callable[[Path, FloatArray, np.random.Generator], FloatArray] = lambda p, w, rng: w
    """Returns the wrench that the driver publishes."""
    weight: float = 1.0
    """Share of the load's weight that the wrench includes [-]."""
    external: Callable[[Path, FrameMotion, np.random.Generator], FloatArray] | None = None
    """Returns the wrench on the sensor besides the load's, (n, 6) [N, N m]."""
    steady: bool = True
    """Whether the load stays the same."""
    joints: Callable[[JointBatch], JointBatch] = lambda joints: joints
    """Returns the joint states that the robot's driver publishes."""
    lever: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position of the sensor in the frame S that is described, (3,) [m]."""
    cell: dict[str, float] = field(default_factory=dict)
    """Values that differ from the conditions, by field name."""


def tilted(degrees: float) -> Fault:
    """Turn gravity away from its set direction."""

    def turn(gravity: FloatArray, rng: np.random.Generator) -> FloatArray:
        aside = np.cross(gravity, rng.standard_normal(3))
        axis = aside / np.linalg.norm(aside)
        return np.asarray(exponential(np.deg2rad(degrees) * axis[None])[0] @ gravity)

    return Fault(Kind.GRAVITY, gravity=turn)


def in_the_world(degrees: float, tilted: bool = False) -> Fault:
    """Express the wrench in the root frame, turned about its vertical, or any axis if tilted."""

    def publish(path: Path, wrench: FloatArray, rng: np.random.Generator) -> FloatArray:
        gravity = np.array(path.mount.gravity)
        axes = orientation(path.frame.gravity, path.frame.gravity_by_tilt, gravity)
        up = unit(rng) if tilted else -gravity / np.linalg.norm(gravity)
        turn = exponential(np.deg2rad(degrees) * up[None])[0]
        parts = np.einsum('lk,nki,ngi->ngl', turn, axes, wrench.reshape(-1, 2, 3))
        return np.asarray(parts.reshape(-1, 6))

    return Fault(Kind.WORLD, published=publish)


def rotated(degrees: float) -> Fault:
    """Turn the sensor relative to its frame."""

    def publish(path: Path, wrench: FloatArray, rng: np.random.Generator) -> FloatArray:
        turn = exponential(np.deg2rad(degrees) * unit(rng)[None])[0]
        return np.asarray((wrench.reshape(-1, 2, 3) @ turn.T).reshape(-1, 6))

    return Fault(Kind.ROTATED, published=publish)


def channels(*order: int, signs: str = '++++++') -> Fault:
    """Swap and reverse channels."""
    factor = np.array([1.0 if sign == '+' else -1.0 for sign in signs])
    return Fault(
        Kind.CHANNELS, published=lambda path, wrench, rng: factor * wrench[:, list(order)]
    )


def dead(*channels: int) -> Fault:
    """Replace channels by noise."""

    def publish(path: Path, wrench: FloatArray, rng: np.random.Generator) -> FloatArray:
        noise = np.repeat([0.1, 0.005], 3) * rng.standard_normal(wrench.shape)
        return np.where(np.isin(np.arange(6), channels), noise, wrench)

    return Fault(Kind.DEAD, published=publish)


def times(force: float, torque: float) -> Fault:
    """Publish forces, and torques, in other units."""
    factors = np.repeat([force, torque], 3)
    return Fault(Kind.UNITS, published=lambda path, wrench, rng: factors * wrench)


def joint_reversed(joint: int) -> Fault:
    """Publish a joint with the opposite sign."""

    def publish(joints: JointBatch) -> JointBatch:
        sign = np.where(np.arange(len(joints.names)) == joint, -1.0, 1.0)
        return replace(joints, position=sign * joints.position, velocity=sign * joints.velocity)

    return Fault(Kind.JOINTS, joints=publish)


def joints_exchanged(first: int, second: int) -> Fault:
    """Exchange the names of two joints, as alphabetical sorting does."""

    def publish(joints: JointBatch) -> JointBatch:
        names = list(joints.names)
        names[first], names[second] = names[second], names[first]
        return replace(joints, names=tuple(names))

    return Fault(Kind.JOINTS, joints=publish)


def elsewhere(x: float, y: float, z: float) -> Fault:
    """Put the sensor elsewhere on its link than described [m]."""
    return Fault(Kind.PLACE, lever=(x, y, z))


def carried(newtons: float) -> Fault:
    """Have a balancer carry a part of the weight."""

    def lift(path: Path, frame: FrameMotion, rng: np.random.Generator) -> FloatArray:
        up = -newtons * frame.gravity / np.linalg.norm(frame.gravity, axis=1, keepdims=True)
        return np.hstack([up, np.cross(rng.uniform(-0.05, 0.05, 3), up)])

    return Fault(Kind.WEIGHTLESS, external=lift)


SAME = (0, 1, 2, 3, 4, 5)

FAULTS: dict[str, Fault] = {
    'gravity 10°': tilted(10.0),
    'gravity 45°': tilted(45.0),
    'gravity 180°': tilted(180.0),
    'world': in_the_world(0.0),
    'world, 45°': in_the_world(45.0),
    'world, 180°': in_the_world(180.0),
    'world, tilted 30°': in_the_world(30.0, tilted=True),
    'rotated 10°': rotated(10.0),
    'rotated 45°': rotated(45.0),
    'rotated 120°': rotated(120.0),
    'fx reversed': channels(*SAME, signs='-+++++'),
    'ty reversed': channels(*SAME, signs='++++-+'),
    'y axis reversed': channels(*SAME, signs='+-++-+'),
    'x, y swapped': channels(1, 0, 2, 4, 3, 5),
    'fy, fz swapped': channels(0, 2, 1, 3, 4, 5),
    'fx dead': dead(0),
    'fz dead': dead(2),
    'ty dead': dead(4),
    'fx, fz dead': dead(0, 2),
    'tx, ty dead': dead(3, 4),
    'torque / 10': times(1.0, 0.1),
    'torque x 9.8': times(1.0, STANDARD_GRAVITY),
    'torque x 1000': times(1.0, 1000.0),
    'all in mN': times(1000.0, 1000.0),
    'force in mN': times(1000.0, 1.0),
    'force in lbf': times(1.0 / 4.44822, 1.0),
    'force in kgf': times(1.0 / STANDARD_GRAVITY, 1.0),
    'sensor 0.1 m off': elsewhere(0.06, -0.05, 0.06),
    'sensor 0.3 m off': elsewhere(-0.1, 0.2, 0.2),
    'sensor 0.6 m off': elsewhere(0.3, 0.3, -0.4),
    'no weight': Fault(Kind.WEIGHTLESS, weight=0.0),
    'a third of the weight': Fault(Kind.WEIGHTLESS, weight=0.3),
    'half the weight': Fault(Kind.WEIGHTLESS, weight=0.5),
    'weight 5 N too small': carried(5.0),
    'joint 2 reversed': joint_reversed(1),
    'joint 5 reversed': joint_reversed(4),
    'joints 2, 3 exchanged': joints_exchanged(1, 2),
    **{f'drift of {n} N': Fault(Kind.DRIFT, cell={'drift': float(n)}) for n in (6, 10, 20)},
    **{f'sway at {f} Hz': Fault(Kind.COMPLIANT, cell={'compliance': f}) for f in (3.0, 4.0, 5.0)},
}
"""Each fault at three sizes, or in its only form."""


def pushed(seconds: float) -> Fault:
    """Push with 20 N in one direction of the world, with a period of five times the duration."""

    def push(path: Path, frame: FrameMotion, rng: np.random.Generator) -> FloatArray:
        axes = orientation(frame.gravity, frame.gravity_by_tilt, np.array(path.mount.gravity))
        force = np.einsum('k,nki->ni', 20.0 * unit(rng), axes)
        wrench = np.hstack([force, np.cross(rng.uniform(-0.1, 0.1, 3), force)])
        on = (path.stamps * 1e-9 / seconds) % 5.0 > 4.0
        return np.asarray(on[:, None] * wrench)

    return Fault(None, external=push)


def handling(period: float) -> Fault:
    """Pick up and put down different loads of 0.3 to 2 kg, one after the other."""

    def more(path: Path, frame: FrameMotion, rng: np.random.Generator) -> FloatArray:
        turn = (path.stamps * 1e-9 / period).astype(int)
        wrench = np.zeros((len(turn), 6))
        for k in range(1, int(turn.max()) + 1, 2):
            wrench[turn == k] = load_wrench(drawn_load(rng, rng.uniform(0.3, 2.0)), frame)[
                turn == k
            ]
        return wrench

    return Fault(None, external=more, steady=False)


SOUND: dict[str, Fault] = {
    'pushes of 0.5 s': pushed(0.5),
    'pushes of 5 s': pushed(5.0),
    'another load every 3 s': handling(3.0),
    'another load every 8 s': handling(8.0),
    'wrench sign reversed': replace(times(-1.0, -1.0), kind=None),
}
"""Set-ups in which no cause should be named: without a fault, at work, and with the other sign of
the wrench, which the mass shows."""


def recorded(
    mount: Arm,
    motion: Motion,
    seconds: float,
    load: InertialParameters,
    fault: Fault,
    conditions: Conditions,
    seed: int,
) -> tuple[JointBatch, WrenchBatch]:
    """Return the published data of a set-up with a fault, along a motion from its beginning."""
    rng = np.random.default_rng([seed, 9])
    true = fault.gravity(np.array(mount.gravity), rng)
    path = sample(replace(mount, gravity=tuple(true)), motion, seconds, 500.0)

    def exerted(frame: FrameMotion) -> FloatArray:
        frame = moved(frame, np.array(fault.lever))
        lost = (1.0 - fault.weight) * frame.gravity
        frame = replace(frame, linear_acceleration=frame.linear_acceleration + lost)
        wrench = load_wrench(load, frame)
        return wrench if fault.external is None else wrench + fault.external(path, frame, rng)

    joints, wrenches = published(
        path, exerted, replace(conditions, **cast('dict[str, Any]', fault.cell)), seed
    )
    published_wrench = fault.published(path, wrenches.wrench, rng)
    return fault.joints(joints), replace(wrenches, wrench=published_wrench)
