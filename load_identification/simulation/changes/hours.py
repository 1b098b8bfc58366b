"""Long runs without changes, or with a drift of the offset."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from load_identification.interface.parameters import Parameters
from load_identification.motion.joint_path import JointPath, Move
from load_identification.motion.sines import Sines, random_sines
from load_identification.pipeline import settings
from load_identification.simulation.changes.draws import drawn_load, unit
from load_identification.simulation.changes.runs import (
    FASTEST,
    LIMITS,
    MOVE,
    RATE,
    filtered,
    moves,
    pieces,
)
from load_identification.simulation.robots import PUMA
from load_identification.simulation.sensors import WRIST_SENSOR, simulate
from load_identification.typing_aliases import FloatArray

DRIFT = 4.0 / 300.0
"""Drift of the force offset [N/s]."""


def nominal(minutes: int) -> tuple[list[str], float]:
    """Return the events in given minutes of ordinary motion, and the error of the mass [kg].

    The motion differs every minute: half of the motions are smooth and fast, half are moves from
    pose to pose with rests between.
    """
    stage = settings.payload_estimator(Parameters())
    robot, load = PUMA.robot(), drawn_load(np.random.default_rng(0), 1.2)
    for minute in range(minutes):
        parts: list[Sines | Move]
        if minute % 2:
            start = np.random.default_rng(minute).uniform(-0.5, 0.5, 6)
            parts = [random_sines(start, LIMITS, 60.0, minute)]
        else:
            p = [moves(60 * minute + k) for k in range(3)]
            path = [pose for each in p for pose in each]
            parts = []
            for a, b in pairwise(path):
                time = max(MOVE, float(np.max(np.abs(b - a) / FASTEST)) * 2.1)
                parts += [Move(a, b, time), Move(b, b, 1.0)]
        recording = simulate(robot, JointPath(tuple(parts)), load, WRIST_SENSOR, RATE, minute)
        later = replace(recording, stamps=recording.stamps + minute * 90_000_000_000)
        for piece in pieces(filtered(later)[0]):
            stage.update(piece)
    events = [f'{e.kind.value} at {e.stamp * 1e-9:.1f} s' for e in stage.events.since(0)]
    estimate = stage.estimate()
    return events, np.nan if estimate is None else float(estimate.values[0] - load.mass)


def drifting(minutes: int) -> FloatArray:
    """Return the mass in given minutes of drift, as a share of the truth, each 0.1 s.

    The force offset drifts steadily in a direction of the sensor, the torque offset by 0.02 m
    times as much. Once a minute, the arm moves slowly to another pose and back.
    """
    stage = settings.payload_estimator(Parameters())
    rng, robot = np.random.default_rng(0), PUMA.robot()
    load = drawn_load(rng, 1.2)
    direction = np.concatenate([unit(rng), 0.02 * unit(rng)])
    ratios = []
    for minute in range(minutes):
        p = moves(minute)
        rest = Move(p[3], p[3], 50.0)
        slow = JointPath((Move(p[3], p[4], 5.0), Move(p[4], p[3], 5.0), rest))
        recording = simulate(robot, slow, load, WRIST_SENSOR, RATE, minute)
        stamps = recording.stamps + minute * 60_000_000_000
        drift = DRIFT * (stamps * 1e-9)[:, None] * direction
        moved = replace(recording, stamps=stamps, wrench=recording.wrench + drift)
        for piece in pieces(filtered(moved)[0]):
            stage.update(piece)
            estimate = stage.estimate()
            if estimate is not None and estimate.identified[0]:
                ratios.append(estimate.values[0] / load.mass)
    return np.array(ratios)
