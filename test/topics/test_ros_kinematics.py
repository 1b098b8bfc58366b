"""Which `filtered/kinematics` the estimator accepts in fast motion: those of the moving robot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from rclpy.node import Node
from ros_group import Group

from load_identification.interface.batches import FilteredBatch
from load_identification.model.robot import Robot
from load_identification.nodes.transport.kinematics import KinematicsReader
from load_identification.simulation.robots import puma_description

RATE = 50.0
"""Of the filtered samples [Hz]."""


def spinning() -> FilteredBatch:
    """Return 10 s of an arm that turns about its first axis, its acceleration never slow."""
    t = np.arange(500) / RATE
    robot = Robot(puma_description(), 'ft_sensor')
    q, qd, qdd = (np.zeros((len(t), 6)) for _ in range(3))
    q[:] = [0.0, -0.4, 2.8, 0.3, 0.9, 0.2]
    q[:, 0], qd[:, 0] = 4.0 * t, 4.0
    w = 2.0 * np.pi * 0.7
    q[:, 4] += 0.5 * np.sin(w * t)
    qd[:, 4], qdd[:, 4] = 0.5 * w * np.cos(w * t), -0.5 * w * w * np.sin(w * t)
    motion = robot.motion(q, qd, qdd)
    names = ('linear_velocity', 'linear_acceleration', 'angular_velocity', 'angular_acceleration')
    names += ('gravity', 'motion_by_joint', 'gravity_by_tilt')
    return FilteredBatch(
        'ft_sensor',
        stamps=10**18 + np.round(1e9 * t).astype(np.int64),
        wrench=np.zeros((len(t), 6)),
        **{name: getattr(motion, name) for name in names},
    )


@pytest.fixture
def reader() -> Iterator[tuple[KinematicsReader, Counter[str]]]:
    with Group() as group:
        node, dropped = Node('reader', context=group.node.context), Counter[str]()
        yield KinematicsReader(node, dropped), dropped
        node.destroy_node()


Reader = tuple[KinematicsReader, Counter[str]]


def test_the_first_robot_is_accepted_in_fast_motion_too(reader: Reader) -> None:
    fast, (kinematics, dropped) = spinning(), reader
    speeding = np.linalg.norm(fast.linear_acceleration + fast.gravity, axis=1)
    assert speeding.min() > 0.5 * 9.81
    accepted = kinematics.fitting(fast)
    assert accepted.stamps[-1] == fast.stamps[-1]
    assert len(accepted.stamps) > len(fast.stamps) - 1.5 * RATE
    assert dropped == {'filtered_kinematics_undecided': len(fast.stamps) - len(accepted.stamps)}


@pytest.mark.parametrize('factor', [-1.0, 0.0, 1.62 / 9.81, 3.0])
def test_another_gravity_is_refused_in_fast_motion_and_named_after_a_while(
    reader: Reader, factor: float
) -> None:
    fast, (kinematics, dropped) = spinning(), reader
    other = {name: factor * getattr(fast, name) for name in ('gravity', 'gravity_by_tilt')}
    assert not len(kinematics.fitting(replace(fast, **other)).stamps)
    assert dropped['filtered_kinematics_undecided'] == 3 * RATE + 1
    assert dropped['filtered_kinematics_gravity'] == len(fast.stamps) - 3 * RATE - 1
    # The robot that moves is accepted afterwards.
    later = replace(fast, stamps=fast.stamps + 10 * 10**9)
    assert len(kinematics.fitting(later).stamps) > 0.85 * len(fast.stamps)


def test_a_sample_that_is_not_finite_does_not_keep_a_robot_out(reader: Reader) -> None:
    fast, (kinematics, _) = spinning(), reader
    broken = fast.linear_acceleration.copy()
    broken[3] = np.nan
    accepted = kinematics.fitting(replace(fast, linear_acceleration=broken))
    assert len(accepted.stamps) > len(fast.stamps) - 1.5 * RATE
