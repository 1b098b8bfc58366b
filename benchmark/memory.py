"""Resident memory over an hour of samples, fed fast; run `python benchmark/memory.py`.

The three stages of the pipeline get 3.6 million samples of the simulated arm at 1 kHz, one
minute of motion over and over with stamps that go on, a tenth of a second at a time. Printed:
resident memory after each six minutes of samples.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np

from load_identification.interface.parameters import Parameters
from load_identification.simulation.cells import Stages
from load_identification.simulation.motions import puma_recording
from load_identification.simulation.robots import PUMA

RATE = 1000
MINUTE = 60 * RATE
BATCH = 100


def resident() -> float:
    """Return the resident memory of this process [MB]."""
    pages = int(Path('/proc/self/statm').read_text(encoding='ascii').split()[1])
    return pages * 4096 / 1e6


def feed(minutes: int, every: int) -> list[float]:
    """Return the resident memory after each `every` of the minutes [MB]."""
    arm = puma_recording(60.0, RATE)
    stages = Stages(Parameters(), PUMA.urdf, PUMA.sensor_frame)
    memory = []
    for minute in range(minutes):
        shift = (minute + 1) * MINUTE * 1_000_000
        for start in range(0, MINUTE, BATCH):
            parts = (b.select(slice(start, start + BATCH)) for b in (arm.joints(), arm.wrenches()))
            stages.update(*(replace(part, stamps=part.stamps + shift) for part in parts))
        stages.estimator.estimate()
        if (minute + 1) % every == 0:
            memory.append(resident())
            print(f'{minute + 1:3d} min of samples: {memory[-1]:.1f} MB', flush=True)
    return memory


def main() -> int:
    """Print the memory and return 0 where it has stayed flat."""
    parser = argparse.ArgumentParser(description='Resident memory over an hour of samples.')
    parser.add_argument('--minutes', type=int, default=60)
    minutes = parser.parse_args().minutes
    memory = np.array(feed(minutes, max(1, minutes // 10)))
    growth = float(memory[-1] - memory[0])
    print(f'growth from the first to the last line: {growth:+.1f} MB')
    return 0 if growth < 2.0 else 1


if __name__ == '__main__':
    raise SystemExit(main())
