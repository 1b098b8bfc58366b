"""Which efforts do not go together, of rows that are given."""

from __future__ import annotations

import numpy as np
import pytest

from load_identification.arm.agreement import Pieces, disagreement
from load_identification.numerics.nearest_links import FOLDS

FACTOR, ROWS = 8.0, 150


@pytest.mark.parametrize(('seen', 'told'), [(2.0, FACTOR), (0.16, 1.0)])
def test_a_joint_has_another_unit_where_others_feel_its_links(seen: float, told: float) -> None:
    """The last joint of a real arm has torques of its own, of which a link explains a part."""
    rng = np.random.default_rng(4)
    # Of one link, felt by two joints, the other of three by itself; nothing described.
    link, efforts = rng.normal(size=(2, 3, FOLDS * ROWS))
    noise = rng.normal(size=efforts.shape)
    products = np.zeros((FOLDS, 3, 4, 4))
    columns = np.zeros((3, FOLDS * ROWS, 4))
    columns[0, :, 0], columns[1, :, 0], columns[2, :, 1] = seen * link[0], link[1], link[2]
    columns[0, :, -1] = seen * link[0] + noise[0]
    columns[1, :, -1] = FACTOR * link[1] + 0.05 * noise[1]
    columns[2, :, -1] = link[2] + noise[2]
    for k, part in enumerate(np.split(columns, FOLDS, axis=1)):
        products[k] = part.transpose(0, 2, 1) @ part
    pieces = Pieces(products, np.full((FOLDS, 3), ROWS), np.zeros(0, dtype=np.int64))
    assert disagreement(pieces) == pytest.approx([1.0, told, 1.0], rel=0.1)
