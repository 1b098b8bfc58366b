"""Errors that a saved tool and a payload have in common cancel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import not_none
from set_ups import ORDINARY, along

from load_identification.estimation.belief.tool import Tool
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.model.robot import FrameMotion
from load_identification.simulation.cells import sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import FloatArray

GRIPPER, PART = 1.0, 0.3
"""Masses of the tool, and of what it picks up [kg]."""

SAVED, GRASP, DURATION = 5.0, 6.0, 11.0
"""Times at which the tool is saved, and at which the part is picked up, and their end [s]."""


@pytest.fixture
def work() -> tuple[PayloadEstimator, list[FilteredBatch]]:
    """An estimator that has saved the gripper as tool, and the samples that follow."""
    mount = MOUNTS['puma']
    motion = MOTIONS['pauses'](mount, DURATION, np.random.default_rng(2))
    path = sample(mount, motion, DURATION, 250.0)
    gripper, part = (drawn_load(np.random.default_rng(k), m) for k, m in ((0, GRIPPER), (1, PART)))

    def exerted(frame: FrameMotion) -> FloatArray:
        held = (path.stamps * 1e-9 >= GRASP)[:, None]
        return load_wrench(gripper, frame) + held * load_wrench(part, frame)

    estimator, batches = along(path, exerted, replace(ORDINARY, tied=('smooth',)), 2)
    later = [batch for batch in batches if batch.stamps[0] * 1e-9 > SAVED]
    for batch in batches[: len(batches) - len(later)]:
        estimator.update(batch)
    known = not_none(estimator.estimate_with_tool())
    assert known.identified[:4].all()
    estimator.set_tool(Tool(known.total, known.total_covariance, estimator.shared))
    return estimator, later


def test_a_tool_just_saved_leaves_nothing_and_a_light_part_is_identified(
    work: tuple[PayloadEstimator, list[FilteredBatch]],
) -> None:
    """The pose field of the tool counted a second time: 0.3 kg had never been identified."""
    estimator, batches = work
    tool, nothing = not_none(estimator.estimate_with_tool()), not_none(estimator.estimate())
    assert abs(nothing.values[0]) < 1e-9
    assert nothing.std[0] < 0.5 * tool.std[0]
    assert nothing.std[0] ** 2 == pytest.approx(nothing.budget[:, 0].sum())
    assert nothing.std[0] ** 2 == pytest.approx(nothing.causes[:, 0].sum())
    for batch in batches:
        estimator.update(batch)
    found = not_none(estimator.estimate())
    assert found.identified[0]
    assert found.std[0] < 0.008
    assert abs(found.values[0] - PART) < 3.0 * found.std[0]


def test_another_cell_has_less_in_common_with_a_tool(
    work: tuple[PayloadEstimator, list[FilteredBatch]],
) -> None:
    estimator, batches = work
    tool, errors = estimator.saved, estimator.state[0].model.systematic
    estimator.reset(keep_offset=False)
    estimator.update(batches[0])
    same = estimator.state[0]
    assert tool.within(same)[2] == same.model.tied_names
    # A description that moves the sensor otherwise.
    changed = replace(batches[1], robot_number=batches[1].robot_number + 1.0)
    estimator.update(changed)
    other = estimator.state[0]
    assert other.model.systematic.names == errors.names
    assert tool.within(other)[2] == errors.names
    assert tool.within(other)[0] is tool
