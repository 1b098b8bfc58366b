"""Does check_mass hold for a sensor with play, after motion that shows the play?

Each run, in an ordinary cell: the arm moves for 12 s, with a known tool of 0.9 kg (`tool`), with
the load and without any tool (`load`), or not at all (`none`). At rest, without the load, the
offset is calibrated; the load of 1.1 kg is put on, and weighed there and in three other poses.
Printed for each of these: the share of 95 % intervals that hold the truth, the worst error in
standard deviations, the mean error, and the median standard deviation.

    python benchmark/play_check.py [--runs 30] [--seed 0] [--half 0 0.1 0.15] [--before tool load]
"""

from __future__ import annotations

import argparse
from itertools import pairwise

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np

from load_identification.estimation.belief.tool import Tool
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.robot import FrameMotion
from load_identification.motion.joint_path import JointPath, Move
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import PayloadStage, WristFront
from load_identification.simulation.cells import Conditions, Path, published, sample
from load_identification.simulation.motions import Motion
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors, play
from load_identification.simulation.sensors import aluminium_block, load_wrench
from load_identification.typing_aliases import FloatArray

BEFORE = ('tool', 'load', 'none')
LOAD = aluminium_block()
TOOL = InertialParameters.from_center_of_mass(0.9, [0.0, 0.005, 0.05], np.diag([2e-3, 2e-3, 1e-3]))
TOOL_STD = np.repeat([1e-3, 1e-4, 1e-5], [1, 3, 6])
CELL = Conditions(CellErrors(), tied=('smooth', 'path'))
FIRST = np.deg2rad([0.0, -45.0, 135.0, 0.0, -60.0, 0.0])
REACH = np.deg2rad([40.0, 20.0, 20.0, 100.0, 60.0, 100.0])
TURNS = np.deg2rad([[0, 0, 0, 20, 15, -20], [40, 20, 0, -60, -40, 10], [-30, 0, 20, 100, 50, 20]])
MOVES = 10
PUT_DOWN, CALIBRATED, PUT_ON = 1.0, 3.0, 4.0
LOOKS = (5.5, 8.5, 11.5, 14.5)
"""Seconds after the motion; in the first pose, then in one other after the other."""


def work(seed: int, moves: bool) -> tuple[Path, float]:
    """Return the path, and when the motion before the calibration ends [s]."""
    mount, rng = MOUNTS['puma'], np.random.default_rng([seed, 7])
    before = [Move(FIRST, FIRST, 1.0)]
    goals = [FIRST, *(FIRST + REACH * rng.uniform(-1.0, 1.0, (MOVES - 1, 6))), FIRST]
    for one, other in pairwise(goals if moves else []):
        before += [Move(one, other, 0.9), Move(other, other, 0.3)]
    after = [Move(FIRST, FIRST, 5.6)]
    for one, other in pairwise([FIRST, *(FIRST + rng.permutation(TURNS))]):
        after += [Move(one, other, 1.4), Move(other, other, 1.6)]
    over = 1.0 + 1.2 * MOVES * moves
    path = sample(mount, Motion(JointPath((*before, *after))), over + LOOKS[-1] + 0.3, 250.0)
    return path, over


def weighed(seed: int, half: float, before: str) -> list[tuple[float, float]]:
    """Return error and standard deviation of the mass at each look [kg]."""
    path, over = work(seed, before != 'none')

    def exerted(frame: FrameMotion) -> FloatArray:
        times = path.stamps * 1e-9 - over
        on = (times >= PUT_ON) | ((before == 'load') & (times < PUT_DOWN))
        wrench = load_wrench(LOAD, frame) * on[:, None]
        if before == 'tool':
            wrench = wrench + load_wrench(TOOL, frame)
        return wrench + play(wrench, half * np.repeat([1.0, 0.04], 3))

    joints, wrenches = published(path, exerted, CELL, seed)
    parameters = Parameters()
    front = WristFront(settings.synchronizer(parameters), settings.motion_filter(parameters))
    front.motion_filter.set_description(path.mount.urdf, path.mount.sensor_frame)
    stage = PayloadStage(parameters)
    if before == 'tool':
        stage.estimator.set_tool(Tool(TOOL.to_vector(), np.diag(TOOL_STD**2)))
    weigher, found = stage.weigher, []
    for begin in range(0, len(path.stamps), 25):
        some, now = slice(begin, begin + 25), begin * 4e-3 - over
        stage.update(front.update([joints.select(some)], [wrenches.select(some)]))
        newest = weigher.monitor.newest or 0
        if stage.estimator.sensor_offset.calibrated is None and now >= CALIBRATED:
            weigher.set_calibrated(weigher.offset_from(weigher.average(newest - 1_000_000_000)))
        if len(found) < len(LOOKS) and now >= LOOKS[len(found)]:
            payload = weigher.weigh(newest - 500_000_000).payload
            found.append((payload.mass - LOAD.mass, payload.mass_std))
    return found


def main() -> None:
    """Print a line for each size of play and kind of motion."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=30, help='of each line')
    parser.add_argument('--seed', type=int, default=0, help='of the first run')
    parser.add_argument('--half', type=float, nargs='*', default=[0.0, 0.1, 0.15], help='[N]')
    parser.add_argument('--before', nargs='*', default=[*BEFORE[:2]], choices=BEFORE)
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    print('before  ± N  | held in each pose   | worst               | mean error, std [g]')
    for before in arguments.before:
        for half in arguments.half:
            each = np.array([weighed(seed, half, before) for seed in seeds])
            z = np.abs(each[..., 0] / each[..., 1])
            held = ' '.join(f'{x:4.2f}' for x in np.mean(z < 1.96, axis=0))
            worst = ' '.join(f'{x:4.1f}' for x in z.max(axis=0))
            error = ' '.join(f'{1e3 * x:5.1f}' for x in each[..., 0].mean(axis=0))
            std = ' '.join(f'{1e3 * x:4.1f}' for x in np.median(each[..., 1], axis=0))
            print(f'{before:6} {half:5.2f} | {held} | {worst} | {error}; {std}', flush=True)


if __name__ == '__main__':
    main()
