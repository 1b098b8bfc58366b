"""Noise that another load is said to have brought along."""

from __future__ import annotations

import numpy as np
import pytest
from changed_loads import grasped, stage

from load_identification.estimation.changes.hypotheses import Hypothesis, hypotheses
from load_identification.estimation.measurement import make_block
from load_identification.interface.messages import NS
from load_identification.motion.joint_path import JointPath, Move
from load_identification.simulation.changes.runs import pieces

GRASP, LATER = 8.0, 9.0
"""Time of a grasp at rest, and from when the arm moves again [s]."""


@pytest.mark.parametrize(('louder', 'noisier'), [(1.0, 1.0), (30.0, 5.0)])
def test_it_is_what_no_load_explains(louder: float, noisier: float) -> None:
    """A load weighed at rest, its centre unknown along gravity, and two blocks of motion.

    What its inertia did in them had been taken for noise, ten times the true one, for minutes:
    grasps at rest went unnoticed, and the load of before stayed identified.
    """
    rest, a, b = np.zeros(6), np.linspace(-0.9, 0.8, 6), np.array([0.7, 0.5, -0.8, 0.9, -0.6, 0.4])
    to_and_fro = [(rest, a), (a, b), (b, rest)]
    moves = [Move(*ends, 0.8) for ends in 3 * to_and_fro]
    path = JointPath((*moves, Move(rest, rest, LATER - 7.2), Move(rest, b, 0.5), Move(b, a, 0.8)))
    batch, _ = grasped(path, 1, GRASP)
    estimator, blocks = stage(), []
    for piece in pieces(batch):
        begin = int(piece.stamps[0])
        if begin < (GRASP - 0.2) * NS:
            estimator.update(piece)
        elif begin > (GRASP + 0.2) * NS:
            noise = (louder - 1.0) * 0.05 * np.random.default_rng(begin).normal(size=(1, 6))
            signs = np.resize([1.0, -1.0], (len(piece.stamps), 1))
            moved = piece.with_wrench(piece.wrench + signs * noise)
            blocks.append(make_block(moved, begin - NS // 50))
    standing = [block for block in blocks if block.rest][:6]
    moving = [block for block in blocks if not block.rest][1:4]
    before, _ = estimator.state
    load = hypotheses(before, None, standing[0])[Hypothesis.LOAD].with_blocks(standing)
    found = load.weighed(36, 6, [*standing, *moving]).noise
    ratio = found.at(rest=False) / before.noise.at(rest=False)
    assert (ratio < 1.1).all() if noisier == 1.0 else ratio[0] > noisier, ratio
