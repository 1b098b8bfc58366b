"""Leg states out of joint state messages, and the stage they go to; nothing of it needs rclpy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from load_identification.nodes.conversions import stamp_of
from load_identification.nodes.parameters import Parameters
from load_identification.parallel.geometry import read_geometry
from load_identification.parallel.hexapod_filter import HexapodFilter
from load_identification.parallel.mechanism import Mechanism
from load_identification.signals.batches import EffortBatch
from load_identification.signals.differentiator import Differentiator
from load_identification.typing_aliases import FloatArray

FORCE_NOISE, TORQUE_NOISE = 1.0, 0.2
"""What the estimator is to expect behind six legs with friction [N, N m]."""


def hexapod_filter(path: Path, parameters: Parameters) -> HexapodFilter:
    """Return the stage for a geometry file.

    Raises
    ------
    GeometryError
        If the file cannot be used.
    """
    cutoff, rate, max_gap = (
        parameters.cutoff_frequency,
        parameters.output_rate,
        parameters.max_gap,
    )
    differentiator = Differentiator(cutoff, rate, max_gap)
    mechanism = Mechanism(read_geometry(path))
    return HexapodFilter(mechanism, differentiator, parameters.gravity, max_gap)


def read_leg_states(messages: Iterable[Any], dropped: Counter[str]) -> Iterator[EffortBatch]:
    """Turn sensor_msgs/JointState messages into batches of one layout each.

    Parameters
    ----------
    messages : iterable of messages
    dropped : collections.Counter
        Where messages that contradict themselves are counted, by reason.
    """
    for names, group in groupby(messages, lambda message: tuple(message.name)):
        count = len(names)
        if not count or len(set(names)) != count:
            dropped['joint_state_names'] += len(list(group))
            continue
        whole = []
        for message in group:
            optional = (len(message.velocity), len(message.effort))
            if len(message.position) == count and all(n in (0, count) for n in optional):
                whole.append(message)
            else:
                dropped['joint_state_length'] += 1
        if whole:
            yield EffortBatch(
                names,
                np.array([stamp_of(message) for message in whole]),
                np.array([message.position for message in whole], dtype=float),
                _or_nan([message.velocity for message in whole], count),
                _or_nan([message.effort for message in whole], count),
            )


def _or_nan(rows: list[Any], count: int) -> FloatArray:
    """Return rows of numbers, NaN where a message carries none."""
    return np.array([row if len(row) else [np.nan] * count for row in rows], dtype=float)
