"""What check_mass says of a mass holds in ordinary cells, and what two weighings share cancels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion
from load_identification.motion.joint_path import JointPath, Move
from load_identification.pipeline import settings
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.pipeline.wrist_front import WristFront
from load_identification.simulation.cells import Conditions, published, sample
from load_identification.simulation.motions import Motion
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import aluminium_block, load_wrench
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.weight import Weight

CELLS = 30
MASS = aluminium_block().mass
GRASP, CALIBRATED = 3.0, 2.0
"""When the load is put on, and when the offset is calibrated in the same pose [s]."""

TURNS = np.deg2rad([[0, 0, 0, 20, 15, -20], [40, 20, 0, -60, -40, 10], [-30, 0, 20, 100, 50, 20]])
LOOKS = (4.5, 7.5, 10.5, 13.5)
"""Ends of the rests: with the load on where it was calibrated, and in three other poses [s]."""


@dataclass(frozen=True)
class Weighed:
    """Weights at `LOOKS` in each cell."""

    weights: list[list[Weight]]

    def errors(self, look: int) -> FloatArray:
        """Return the errors of the mass in its standard deviations, (cells,)."""
        found = [run[look].payload for run in self.weights]
        return np.array([(each.mass - MASS) / each.mass_std for each in found])

    def values(self, look: int) -> tuple[FloatArray, FloatArray]:
        """Return mass and std relative to itself weighed again, (cells,) each."""
        found = [run[look] for run in self.weights]
        return np.array([w.payload.mass for w in found]), np.array([w.repeated_std for w in found])


def weigh_in_a_cell(seed: int) -> list[Weight]:
    """Calibrate, put the load on, and weigh it there and in three other poses."""
    mount = MOUNTS['puma']
    first = np.deg2rad([0.0, -45, 135, 0, -60, 0])
    poses = [first, *(first + np.random.default_rng([seed, 7]).permutation(TURNS))]
    moves = [Move(first, first, 4.6)]
    for before, after in pairwise(poses):
        moves += [Move(before, after, 1.4), Move(after, after, 1.6)]
    path = sample(mount, Motion(JointPath(tuple(moves))), 13.8, 250.0)

    def exerted(frame: FrameMotion) -> FloatArray:
        on = path.stamps * 1e-9 >= GRASP
        return load_wrench(aluminium_block(), frame) * on[:, None]

    conditions = Conditions(CellErrors(), tied=('smooth', 'path'))
    joints, wrenches = published(path, exerted, conditions, seed)
    parameters = Parameters()
    front = WristFront(settings.synchronizer(parameters), settings.motion_filter(parameters))
    front.motion_filter.set_description(mount.urdf)
    stage = PayloadStage(parameters)
    found: list[Weight] = []
    for begin in range(0, len(path.stamps), 25):
        some = slice(begin, begin + 25)
        stage.update(front.update([joints.select(some)], [wrenches.select(some)]))
        weigher, now = stage.weigher, begin * 4e-3
        if stage.estimator.sensor_offset.calibrated is None and now >= CALIBRATED:
            rest = weigher.average((weigher.monitor.newest or 0) - 1_000_000_000)
            gravity = weigher.gravity(rest.start, rest.end)
            weigher.set_calibrated(weigher.offset_from(rest, gravity))
        if len(found) < len(LOOKS) and now >= LOOKS[len(found)]:
            found.append(weigher.weigh((weigher.monitor.newest or 0) - 500_000_000))
    return found


@pytest.fixture(scope='module')
def cells() -> Weighed:
    """Return what is weighed in `CELLS` cells with errors drawn from their priors."""
    return Weighed([weigh_in_a_cell(seed) for seed in range(CELLS)])


def test_the_interval_holds_in_cells_with_ordinary_errors(cells: Weighed) -> None:
    for look in range(len(LOOKS)):
        errors = np.abs(cells.errors(look))
        # 95 % of 30, less three standard deviations; none beyond 4.
        assert np.mean(errors < 1.96) > 0.83, look
        assert errors.max() < 4.0


def test_the_parts_of_the_variance_add_up_and_most_is_of_the_cell(cells: Weighed) -> None:
    for run in cells.weights:
        for weight in run:
            assert np.sum(weight.budget) == pytest.approx(weight.payload.mass_std**2, rel=1e-6)
            assert weight.budget[2] > 0.5 * weight.budget.sum()


def test_where_it_was_calibrated_the_errors_of_the_pose_cancel(cells: Weighed) -> None:
    """Of 18 g in another pose 9 are left: 0.7 % of the mass, of the gains."""
    assert np.median([run[0].payload.mass_std for run in cells.weights]) < 0.0105


def test_a_mass_weighed_by_this_sensor_before_is_repeated(cells: Weighed) -> None:
    """What the sensor's gains do to it is in both: 2 mm where 9 would be said without that."""
    before, _ = cells.values(0)
    for look in (1, 2, 3):
        again, std = cells.values(look)
        # The first one's own noise is some 2 g.
        errors = np.abs(again - before) / np.hypot(std, 0.002)
        assert np.mean(errors < 1.96) > 0.83, look
        assert errors.max() < 4.0
