"""The arm that stood in the poses of a file."""

from __future__ import annotations

from pathlib import Path

from load_identification.simulation.robots import MOUNTS

ARM = MOUNTS['six_joints']


def options(folder: Path) -> list[str]:
    description = folder / 'arm.urdf'
    description.write_text(ARM.urdf)
    return ['--description', str(description), '--sensor-frame', ARM.sensor_frame]
