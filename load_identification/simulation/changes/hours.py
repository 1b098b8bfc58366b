"""Long runs without changes, or with a drift of the offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from load_identification.interface.parameters import Parameters
from load_identification.motion.joint_path import JointPath, Move
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, Stages, record, sample
from load_identification.simulation.changes.draws import drawn_load, unit
from load_identification.simulation.changes.runs import RATE, filtered, moves, pieces
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS, PUMA
from load_identification.simulation.sensors import WRIST_SENSOR, simulate
from load_identification.typing_aliases import FloatArray

WORK = ('rich', 'pauses', 'poses', 'tool-down')
"""Kinds of motion of ordinary work."""

MASS = 1.2
"""Mass of the load [kg]."""

DRIFT = 4.0 / 300.0
"""Drift of the force offset [N/s]."""


def ordinary(
    robot: str, minutes: int, conditions: Conditions, seed: int = 0, work: Sequence[str] = WORK
) -> tuple[list[str], float]:
    """Return the events in given minutes of ordinary work, and the last error of the mass [kg].

    One cell with its errors, one load; after each minute half a minute passes without samples.

    Parameters
    ----------
    robot : str
        A key of `MOUNTS`.
    work : sequence of str
        Keys of `MOTIONS`, a minute each in turn.
    """
    mount = MOUNTS[robot]
    parameters = replace(Parameters(), gravity=mount.gravity)
    stages = Stages(parameters, mount.urdf, mount.sensor_frame)
    load = drawn_load(np.random.default_rng([seed, 1]), MASS)
    for minute in range(minutes):
        rng = np.random.default_rng([seed, 0, minute])
        motion = MOTIONS[work[minute % len(work)]](mount, 60.0, rng)
        joints, wrenches = record(
            sample(mount, motion, 60.0, 250.0), load, conditions, seed, minute
        )
        stamps = joints.stamps + minute * 90_000_000_000
        batch = stages.filtered(replace(joints, stamps=stamps), replace(wrenches, stamps=stamps))
        for piece in [] if batch is None else pieces(batch):
            stages.estimator.update(piece)
    estimator = stages.estimator
    events = [f'{e.kind.value} at {e.stamp * 1e-9:.1f} s' for e in estimator.events.since(0)]
    estimate = estimator.estimate()
    return events, np.nan if estimate is None else float(estimate.values[0] - MASS)


def drifting(minutes: int) -> FloatArray:
    """Return the mass in given minutes of drift, as a share of the truth, each 0.1 s.

    The force offset drifts steadily in a direction of the sensor, the torque offset by 0.02 m
    times as much. Once a minute, the arm moves slowly to another pose and back.
    """
    stage = settings.payload_estimator(Parameters())
    rng, robot = np.random.default_rng(0), PUMA.robot()
    load = drawn_load(rng, MASS)
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
