"""Units that are not SI are questioned, and no longer than they last."""

from __future__ import annotations

import numpy as np
from ros_arm import ROBOT, TRACK
from ros_messages import FRAME

from load_identification.interface.batches import FilteredBatch
from load_identification.model.robot import joint_axes
from load_identification.weighing.plausibility import Units


def test_newtons_after_millinewtons_are_believed_within_a_second() -> None:
    motion, count = TRACK.motion, len(TRACK.stamps)
    units, words = Units(), []
    scale = np.where(np.arange(count) < count // 2, 1e3, 1.0)
    rate = count / (1e-9 * (TRACK.stamps[-1] - TRACK.stamps[0]))
    for k in range(0, count, 10):
        rows = slice(k, k + 10)
        batch = FilteredBatch(
            FRAME,
            TRACK.stamps[rows],
            scale[rows, None] * TRACK.wrench[rows],
            *(getattr(motion, name)[rows] for name in ('linear_velocity', 'angular_velocity')),
            *(
                getattr(motion, name)[rows]
                for name in ('linear_acceleration', 'angular_acceleration')
            ),
            gravity=motion.gravity[rows],
        )
        units.update(batch, lambda k=k: joint_axes(ROBOT, TRACK.position[k]))
        words.append(units.words(None))
    half = len(words) // 2
    assert any('millinewtons' in said for said in words[:half])
    assert not any(words[half + round(1.1 * rate / 10) :])
