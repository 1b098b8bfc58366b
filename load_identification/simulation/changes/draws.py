"""Random changes of a load or a sensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from load_identification.constants import STANDARD_GRAVITY
from load_identification.estimation.events import EventKind
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion
from load_identification.simulation.sensors import WRIST_SENSOR, box, load_wrench
from load_identification.typing_aliases import FloatArray

OFFSET = np.array(WRIST_SENSOR.offset)
"""Offset of the sensor before any change [N, N m]."""


@dataclass(frozen=True)
class Change:
    """A change in a run."""

    load: tuple[InertialParameters, InertialParameters]
    """Loads before and after."""
    offset: tuple[FloatArray, FloatArray]
    """Offsets before and after, each (6,) [N, N m]."""
    truth: EventKind
    """What has changed."""
    push: Callable[[FrameMotion], FloatArray] | None = None
    """External wrench on the sensor during the push, (n, 6) [N, N m]."""
    lasts: float = 0.0
    """Duration of the push [s]."""
    takes: float = 0.0
    """Duration of a steady transition from before to after [s]."""
    zeroed: bool = False
    """Whether the driver subtracts the sensor's reading at the change."""

    def exerted(self, motion: FrameMotion, times: FloatArray, changed: float) -> FloatArray:
        """Return what acts on the sensor at times (n,), for a change at a time [s].

        That is the load's wrench and the push, with the change of the offset, (n, 6) [N, N m].
        """
        part = np.clip((times - changed) / max(self.takes, 1e-9), 0.0, 1.0)[:, None]
        before = load_wrench(self.load[0], motion)
        after = load_wrench(self.load[1], motion) + self.offset[1] - self.offset[0]
        wrench = before + part * (after - before)
        if self.push is not None:
            lasting = (part > 0.0) & (times < changed + self.lasts)[:, None]
            wrench = wrench + lasting * self.push(motion)
        return wrench


def drawn_load(rng: np.random.Generator, mass: float) -> InertialParameters:
    """Draw a box of a given mass, held off-centre and turned."""
    sides = rng.uniform(0.04, 0.16, 3) * mass ** (1 / 3)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    return box(mass, sides, rng.uniform([-0.03, -0.03, 0.02], [0.03, 0.03, 0.08]), turn)


def unit(rng: np.random.Generator) -> FloatArray:
    """Draw a direction."""
    direction = rng.standard_normal(3)
    return np.asarray(direction / np.linalg.norm(direction), dtype=float)


def grasp(rng: np.random.Generator, mass: float | None = None) -> Change:
    """Pick up an object: the load grows by 0.1 to 2 kg, or by `mass`."""
    held = drawn_load(rng, rng.uniform(0.5, 1.5))
    more = held + drawn_load(rng, rng.uniform(0.1, 2.0) if mass is None else mass)
    return Change((held, more), (OFFSET, OFFSET), EventKind.LOAD_CHANGED)


def release(rng: np.random.Generator) -> Change:
    """Put it down again."""
    change = grasp(rng)
    return replace(change, load=change.load[::-1])


def small_change(rng: np.random.Generator) -> Change:
    """Add or lose 5 % of the load, at its centre."""
    held = drawn_load(rng, rng.uniform(0.5, 3.0))
    sign = rng.choice([-1.0, 1.0])
    other = InertialParameters.from_vector(held.to_vector() * (1.0 + 0.05 * sign))
    return Change((held, other), (OFFSET, OFFSET), EventKind.LOAD_CHANGED)


def swap(rng: np.random.Generator) -> Change:
    """Put down 1 kg and pick up a like object of 1.05 kg."""
    held = drawn_load(rng, 1.0)
    other = InertialParameters.from_vector(1.05 * held.to_vector())
    return Change((held, other), (OFFSET, OFFSET), EventKind.LOAD_CHANGED)


def rezero(rng: np.random.Generator) -> Change:
    """Step the offset by 1 to 10 N and 0.03 to 0.3 N m."""
    held = drawn_load(rng, rng.uniform(0.5, 2.0))
    step = np.concatenate([unit(rng) * rng.uniform(1, 10), unit(rng) * rng.uniform(0.03, 0.3)])
    return Change((held, held), (OFFSET, OFFSET + step), EventKind.OFFSET_CHANGED)


def slowly(draw: Callable[[np.random.Generator], Change]) -> Callable[..., Change]:
    """Make a change take half a second: a slowly closing gripper, a driver's slow zeroing."""
    return lambda rng: replace(draw(rng), takes=0.5)


def push_in_world(rng: np.random.Generator) -> Change:
    """Push with 20 N for 2 s in one direction of the world, at a point of the tool."""
    held = drawn_load(rng, rng.uniform(0.5, 2.0))
    direction, point = 20.0 * unit(rng), rng.uniform(-0.1, 0.1, 3)

    def push(motion: FrameMotion) -> FloatArray:
        force = direction @ motion.rotation
        return np.hstack([force, np.cross(point, force)])

    return Change((held, held), (OFFSET, OFFSET), EventKind.UNCHANGED, push, 2.0)


def push_on_tool(rng: np.random.Generator) -> Change:
    """Push with 20 N for 2 s in one direction of the sensor: like an offset until it ends."""
    change = push_in_world(rng)
    wrench = np.concatenate([20.0 * unit(rng), 2.0 * unit(rng)])
    return replace(change, push=lambda motion: np.broadcast_to(wrench, (len(motion.gravity), 6)))


def grasp_of(mass: float) -> Callable[[np.random.Generator], Change]:
    """Pick up a given mass [kg]."""
    return partial(grasp, mass=mass)


def slip(distance: float) -> Callable[[np.random.Generator], Change]:
    """Let 1 kg slip in the gripper by a distance [m], in any direction."""

    def draw(rng: np.random.Generator) -> Change:
        held = drawn_load(rng, 1.0)
        slipped = InertialParameters.from_center_of_mass(
            1.0, held.center_of_mass + distance * unit(rng), held.inertia_about_center_of_mass
        )
        return Change((held, slipped), (OFFSET, OFFSET), EventKind.LOAD_CHANGED)

    return draw


def rezero_to_zero(rng: np.random.Generator) -> Change:
    """Zero the sensor under load: from then on it reads zero in this pose."""
    held = drawn_load(rng, rng.uniform(0.5, 2.0))
    return Change((held, held), (OFFSET, OFFSET), EventKind.OFFSET_CHANGED, zeroed=True)


def long_push(rng: np.random.Generator) -> Change:
    """Push with 5 to 20 N for 5 s in one direction of the world, at a point of the tool."""
    force, weaker = push_in_world(rng), rng.uniform(0.25, 1.0)
    steady = force.push

    def push(motion: FrameMotion) -> FloatArray:
        return weaker * steady(motion) if steady is not None else np.zeros((0, 6))

    return replace(force, push=push, lasts=5.0)


def short_push(rng: np.random.Generator) -> Change:
    """Push as in `long_push` for half a second."""
    return replace(long_push(rng), lasts=0.5)


def vertical_push(rng: np.random.Generator) -> Change:
    """Push down or lift with 5 to 20 N for 5 s at a point of the tool, like a weight there."""
    held = drawn_load(rng, rng.uniform(0.5, 2.0))
    size = rng.uniform(5.0, 20.0) * rng.choice([-1.0, 1.0]) / STANDARD_GRAVITY
    point = rng.uniform(-0.1, 0.1, 3)

    def push(motion: FrameMotion) -> FloatArray:
        force = size * motion.gravity
        return np.hstack([force, np.cross(point, force)])

    return Change((held, held), (OFFSET, OFFSET), EventKind.UNCHANGED, push, 5.0)
