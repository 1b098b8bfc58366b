"""The arm that stood in the poses of a file, and what its sensor read there."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from load_identification.interface.batches import CHANNELS
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import Robot
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors, draw_cell, play, smooth_field
from load_identification.simulation.sensors import aluminium_block, load_wrench
from load_identification.typing_aliases import FloatArray

ARM = MOUNTS['six_joints']
GRAVITY = np.array(ARM.gravity)
TILTED = Rotation.from_rotvec(np.deg2rad(5.0) * np.array([0.6, 0.8, 0.0])).apply(GRAVITY)
STD = np.repeat([0.02, 0.0012], 3)
OFFSET = np.array([2.4, -1.7, 5.1, 0.06, -0.11, 0.03])
LIGHT = InertialParameters.from_center_of_mass(0.3, [0.0, 0.0, 0.05], np.zeros((3, 3)))

Identify = Callable[..., tuple[int, str, dict[str, Any]]]
"""The command, from positions, wrenches and options to status, words and estimate."""


def options(folder: Path) -> list[str]:
    description = folder / 'arm.urdf'
    description.write_text(ARM.urdf)
    return ['--description', str(description), '--sensor-frame', ARM.sensor_frame]


def poses(
    gravity: FloatArray,
    seed: int,
    count: int = 24,
    load: InertialParameters | None = None,
    moved: int = 6,
    groups: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return joint positions and single averages of an ordinary cell's wrench at each.

    Only the first `moved` joints differ between poses. With `groups`, poses are within 0.1 rad of
    so many, and written down group by group.
    """
    rng = np.random.default_rng(seed)
    cell = draw_cell(CellErrors(), gravity, 6, rng)
    arm = Robot(ARM.urdf, ARM.sensor_frame, cell.gravity.tolist())
    position = rng.uniform(ARM.lower, ARM.upper, (count, 6))
    position[:, moved:] = position[0, moved:]
    if groups:
        size = count // groups
        near = position[:groups].repeat(size, axis=0) + rng.uniform(-0.1, 0.1, (groups * size, 6))
        position = np.clip(near, ARM.lower, ARM.upper)
    still = np.zeros_like(position)
    motion = arm.motion(position + cell.zeros, still, still)
    wrench = load_wrench(load or aluminium_block(), motion) @ cell.response.T
    wrench += smooth_field(motion.gravity / np.linalg.norm(gravity), rng)
    wrench += STD * rng.standard_normal(wrench.shape) + OFFSET
    return position, wrench


def play_on_the_way(position: FloatArray, half: float) -> FloatArray:
    """Return the error of a sensor whose play is `half` [N] to each side, at each pose.

    The arm has moved from pose to pose in joint space.
    """
    steps = np.linspace(0.0, 1.0, 20, endpoint=False)[:, None]
    way = [before + (after - before) * steps for before, after in pairwise(position)]
    path = np.vstack([*way, position[-1:]])
    still = np.zeros_like(path)
    wrench = load_wrench(
        aluminium_block(), Robot(ARM.urdf, ARM.sensor_frame).motion(path, still, still)
    )
    return play(wrench, half * np.repeat([1.0, 0.03], 3))[:: len(steps)]


def rotations(position: FloatArray) -> FloatArray:
    """Return the rotations from the sensor to the base, as described."""
    arm = Robot(ARM.urdf, ARM.sensor_frame)
    still = np.zeros_like(position)
    return arm.motion(position, still, still).rotation


def write(path: Path, **columns: FloatArray) -> Path:
    names = ','.join(name.replace('_std', '.std') for name in columns)
    rows = np.column_stack(list(columns.values()))
    np.savetxt(path, rows, delimiter=',', header=names, comments='', fmt='%.9g')
    return path


def with_joints(path: Path, position: FloatArray, wrench: FloatArray) -> Path:
    return write(
        path,
        **dict(zip(Robot(ARM.urdf, ARM.sensor_frame).joints, position.T, strict=True)),
        **dict(zip(CHANNELS, wrench.T, strict=False)),
    )


def gravity_option(gravity: FloatArray) -> list[str]:
    return ['--gravity', *(f'{value:.9f}' for value in gravity)]
