"""Set-ups that are wrong: gravity, frames, axes, units, joints, drift, compliance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from load_identification.estimation.misfit.evidence import orientation
from load_identification.estimation.misfit.fits import exponential
from load_identification.estimation.misfit.trials import Kind
from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion
from load_identification.simulation.cells import Conditions, Path, published, sample
from load_identification.simulation.changes.draws import drawn_load, unit
from load_identification.simulation.motions import Motion
from load_identification.simulation.robots import Mount
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray


@dataclass(frozen=True, eq=False)
class Fault:
    """What is wrong with a set-up.

    Attributes
    ----------
    kind : Kind or None
        What should be named.
    gravity : function of the gravity that is set, (3,), and a generator
        Returns the true one, in the root [m/s²].
    published : function of a path, a true wrench (n, 6) and a generator
        Returns what the driver makes of it.
    weight : bool
        Whether the wrench has the load's weight in it.
    external : function of a path, the true motion of S and a generator
        Returns what acts on the sensor besides the load, (n, 6) [N, N m].
    steady : bool
        The load stays the same.
    joints : function of joint states
        Returns what the robot's driver makes of them.
    cell : dict
        What is other than in the conditions, by the names of their fields.
    """

    kind: Kind | None
    gravity: Callable[[FloatArray, np.random.Generator], FloatArray] = lambda g, rng: g
    published: Callable[[Path, FloatArray, np.random.Generator], FloatArray] = lambda p, w, rng: w
    weight: bool = True
    external: Callable[[Path, FrameMotion, np.random.Generator], FloatArray] | None = None
    steady: bool = True
    joints: Callable[[JointBatch], JointBatch] = lambda joints: joints
    cell: dict[str, float] = field(default_factory=dict)


def drawn_turn(angle: float, rng: np.random.Generator) -> FloatArray:
    """Draw a rotation by an angle [rad], (3, 3)."""
    return np.asarray(exponential(angle * unit(rng)[None])[0])


def tilted(degrees: float) -> Fault:
    """Turn gravity against what is set."""

    def turn(gravity: FloatArray, rng: np.random.Generator) -> FloatArray:
        aside = np.cross(gravity, rng.standard_normal(3))
        axis = aside / np.linalg.norm(aside)
        return np.asarray(exponential(np.deg2rad(degrees) * axis[None])[0] @ gravity)

    return Fault(Kind.GRAVITY, gravity=turn)


def in_the_world(degrees: float) -> Fault:
    """Express the wrench in the root, turned about its vertical."""

    def publish(path: Path, wrench: FloatArray, rng: np.random.Generator) -> FloatArray:
        gravity = np.array(path.mount.gravity)
        axes = orientation(path.frame.gravity, path.frame.gravity_by_tilt, gravity)
        up = -gravity / np.linalg.norm(gravity)
        turn = exponential(np.deg2rad(degrees) * up[None])[0]
        parts = np.einsum('lk,nki,ngi->ngl', turn, axes, wrench.reshape(-1, 2, 3))
        return np.asarray(parts.reshape(-1, 6))

    return Fault(Kind.WORLD, published=publish)


def rotated(degrees: float) -> Fault:
    """Turn the sensor against its frame."""

    def publish(path: Path, wrench: FloatArray, rng: np.random.Generator) -> FloatArray:
        turn = drawn_turn(np.deg2rad(degrees), rng)
        return np.asarray((wrench.reshape(-1, 2, 3) @ turn.T).reshape(-1, 6))

    return Fault(Kind.ROTATED, published=publish)


def channels(*order: int, signs: str = '++++++') -> Fault:
    """Swap and reverse channels."""
    factor = np.array([1.0 if sign == '+' else -1.0 for sign in signs])
    return Fault(
        Kind.CHANNELS, published=lambda path, wrench, rng: factor * wrench[:, list(order)]
    )


def dead(channel: int) -> Fault:
    """Let a channel show noise alone."""

    def publish(path: Path, wrench: FloatArray, rng: np.random.Generator) -> FloatArray:
        noise = (0.1 if channel < 3 else 0.005) * rng.standard_normal(len(wrench))
        return np.where(np.arange(6) == channel, noise[:, None], wrench)

    return Fault(Kind.DEAD, published=publish)


def torque_times(factor: float) -> Fault:
    """Give torques in another unit."""
    factors = np.repeat([1.0, factor], 3)
    return Fault(Kind.UNITS, published=lambda path, wrench, rng: factors * wrench)


def joint_reversed(joint: int) -> Fault:
    """Publish a joint with the opposite sign."""

    def publish(joints: JointBatch) -> JointBatch:
        sign = np.where(np.arange(len(joints.names)) == joint, -1.0, 1.0)
        return replace(joints, position=sign * joints.position, velocity=sign * joints.velocity)

    return Fault(Kind.JOINTS, joints=publish)


def joints_exchanged(first: int, second: int) -> Fault:
    """Exchange the names of two joints, as an alphabet does."""

    def publish(joints: JointBatch) -> JointBatch:
        names = list(joints.names)
        names[first], names[second] = names[second], names[first]
        return replace(joints, names=tuple(names))

    return Fault(Kind.JOINTS, joints=publish)


SAME = (0, 1, 2, 3, 4, 5)

FAULTS: dict[str, Fault] = {
    'gravity 10°': tilted(10.0),
    'gravity 45°': tilted(45.0),
    'gravity 180°': tilted(180.0),
    'world': in_the_world(0.0),
    'world, 45°': in_the_world(45.0),
    'world, 180°': in_the_world(180.0),
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
    'torque / 10': torque_times(0.1),
    'torque x 9.8': torque_times(9.80665),
    'torque x 1000': torque_times(1000.0),
    'no weight': Fault(Kind.WEIGHTLESS, weight=False),
    'joint 2 reversed': joint_reversed(1),
    'joint 5 reversed': joint_reversed(4),
    'joints 2, 3 exchanged': joints_exchanged(1, 2),
    **{f'drift of {n} N': Fault(Kind.DRIFT, cell={'drift': float(n)}) for n in (6, 10, 20)},
    **{f'sway at {f} Hz': Fault(Kind.COMPLIANT, cell={'compliance': f}) for f in (3.0, 4.0, 5.0)},
}
"""Each cause at three sizes, or as it comes."""


def pushed(seconds: float) -> Fault:
    """Push with 20 N in one direction of the world, every five times as long."""

    def push(path: Path, frame: FrameMotion, rng: np.random.Generator) -> FloatArray:
        axes = orientation(frame.gravity, frame.gravity_by_tilt, np.array(path.mount.gravity))
        force = np.einsum('k,nki->ni', 20.0 * unit(rng), axes)
        wrench = np.hstack([force, np.cross(rng.uniform(-0.1, 0.1, 3), force)])
        on = (path.stamps * 1e-9 / seconds) % 5.0 > 4.0
        return np.asarray(on[:, None] * wrench)

    return Fault(None, external=push)


def handling(period: float) -> Fault:
    """Pick up another load of 0.3 to 2 kg and put it down again, one after the other."""

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
}
"""Set-ups with which nothing is wrong, in work."""


def recorded(
    mount: Mount,
    motion: Motion,
    seconds: float,
    load: InertialParameters,
    fault: Fault,
    conditions: Conditions,
    seed: int,
) -> tuple[JointBatch, WrenchBatch]:
    """Return what is published by a set-up with a fault, along a motion from its beginning."""
    rng = np.random.default_rng([seed, 9])
    true = fault.gravity(np.array(mount.gravity), rng)
    path = sample(replace(mount, gravity=tuple(true)), motion, seconds, 500.0)

    def exerted(frame: FrameMotion) -> FloatArray:
        if not fault.weight:
            frame = replace(frame, linear_acceleration=frame.linear_acceleration + frame.gravity)
        wrench = load_wrench(load, frame)
        return wrench if fault.external is None else wrench + fault.external(path, frame, rng)

    joints, wrenches = published(
        path, exerted, replace(conditions, **cast('dict[str, Any]', fault.cell)), seed
    )
    published_wrench = fault.published(path, wrenches.wrench, rng)
    return fault.joints(joints), replace(wrenches, wrench=published_wrench)
