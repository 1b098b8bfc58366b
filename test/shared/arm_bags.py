"""Recordings of a simulated arm of three joints, for what identifies it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from bags import START, Recorded, states, write
from bags import description as described

from load_identification.arm.description import with_bodies
from load_identification.arm.dynamics.tree import Arm
from load_identification.interface.batches import EffortBatch
from load_identification.simulation.excited_arm import description, friction
from load_identification.simulation.motions import smooth_motion
from load_identification.simulation.robots import PinocchioArm
from load_identification.typing_aliases import FloatArray, IntArray

RATE = 100.0
GRAVITY = np.array([0.0, 0.0, -9.80665])
TRUTH = description(3)
JOINTS = ('joint_1', 'joint_2', 'joint_3')


def nominal_urdf(urdf: str) -> str:
    """Return the description with links that are wrong by a quarter, consistent ones."""
    arm = Arm(urdf)
    return with_bodies(urdf, arm, arm.nominal * np.array([[0.75], [1.25], [0.8]]))


NOMINAL = nominal_urdf(TRUTH)


def efforts(
    times: FloatArray, position: FloatArray, velocity: FloatArray | None, effort: FloatArray
) -> Iterator[Recorded]:
    """Yield joint states; without velocities or efforts where there are none."""
    nothing = np.full_like(position, np.nan)
    velocity = nothing if velocity is None else velocity
    effort = effort if len(effort) else nothing
    return states(EffortBatch(JOINTS, stamps_of(times), position, velocity, effort))


def arm_bag(
    path: Path, times: FloatArray, *values: FloatArray | None, urdf: str = NOMINAL
) -> Path:
    """Write a recording of a description and joint states."""
    return write(path, [described(urdf), *efforts(times, *values)])


def moved(
    seed: int, seconds: float, noise: float = 0.02, rate: float = RATE
) -> tuple[FloatArray, ...]:
    """Return times, position, velocity and effort of a motion, friction included."""
    rng = np.random.default_rng(seed)
    samples = round(rate * seconds)
    motion = smooth_motion(rng, 3, samples, 1.0 / rate)
    q, qd, _ = motion
    effort = PinocchioArm(TRUTH, GRAVITY).torque(motion) + friction(qd)
    return np.arange(samples) / rate, q, qd, effort + rng.normal(0.0, noise, q.shape)


def stamps_of(times: FloatArray) -> IntArray:
    return START + np.rint(1e9 * times).astype(np.int64)


def relative_errors(out: str) -> list[float]:
    """Return what the last line of the table of errors says: estimate, consistent, nominal."""
    (line,) = re.findall(r'relative, all.*', out)
    written, estimate, nominal = (float(x) for x in re.findall(r'([\d.]+) %', line))
    return [estimate, written, nominal]
