"""A finger of a gripper that opens and closes while the arm moves: a load that changes slowly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.estimation.events import EventKind
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.robot import FrameMotion
from load_identification.pipeline import settings
from load_identification.simulation.cells import filtered, published, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.changes.runs import pieces
from load_identification.simulation.changes.scenarios import CELL, RATE
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import BoolArray, FloatArray

ROBOTS = ('puma', 'six_joints', 'seven_joints')
"""Robots, used in turn."""

FINGER, WAY, TAKES = 0.25, 0.04, 0.4
"""Mass of the finger, its way and the time that it takes [kg, m, s]."""

FIRST, EVERY, SECONDS = 6.0, 4.0, 30.0
"""First movement, interval between two, and length of a run [s]."""

DUE = 1.2
"""Time after the begin of a movement in which it should be detected [s]."""


@dataclass(frozen=True)
class Moves:
    """Result of a run.

    Attributes
    ----------
    noticed : (k,) array of bool
        Whether each movement was detected within `DUE`.
    z : (n,) array
        Errors of everything claimed, except within `DUE`, over their std [-].
    claimed : float
        Share of these looks in which the centre of mass is identified [-].
    """

    noticed: BoolArray
    z: FloatArray
    claimed: float


def opened(times: FloatArray) -> FloatArray:
    """Return how far the finger is open at times (n,) [s], 0 to 1."""
    since = np.maximum(times - FIRST, 0.0) % (2.0 * EVERY)
    return np.asarray(np.clip(since / TAKES, 0.0, 1.0) - np.clip((since - EVERY) / TAKES, 0, 1))


def run(motion: str, seed: int) -> Moves:
    """Simulate a run through all stages in an ordinary cell, with looks every 0.5 s.

    Parameters
    ----------
    motion : str
        A key of `MOTIONS`.
    """
    mount = MOUNTS[ROBOTS[seed % len(ROBOTS)]]
    rng = np.random.default_rng([seed, 1])
    held = drawn_load(rng, float(np.exp(rng.uniform(*np.log([0.5, 3.0])))))
    ends = [
        held
        + InertialParameters.from_center_of_mass(FINGER, [0.02 + x, 0.0, 0.1], np.zeros((3, 3)))
        for x in (0.0, WAY)
    ]
    path = MOTIONS[motion](mount, SECONDS + 1.0, np.random.default_rng([seed, 0]))
    way = sample(mount, path, SECONDS, RATE)

    def exerted(frame: FrameMotion) -> FloatArray:
        part = opened(np.asarray(way.stamps * 1e-9))[:, None]
        return (1.0 - part) * load_wrench(ends[0], frame) + part * load_wrench(ends[1], frame)

    batch, delay = filtered(mount, *published(way, exerted, CELL, seed), Parameters())
    stage = settings.payload_estimator(Parameters())
    truth = [to_message_order(end.to_vector()) for end in ends]
    errors, claimed = [np.zeros(0)], []
    for k, piece in enumerate(pieces(batch)):
        stage.update(piece)
        now = stage.newest * 1e-9 + delay
        estimate = stage.estimate()
        if k % 5 or estimate is None or (now > FIRST and (now - FIRST) % EVERY < DUE):
            continue
        known, is_open = estimate.identified, bool(opened(np.array([now]))[0] > 0.5)
        errors.append((estimate.values - truth[is_open])[known] / estimate.std[known])
        claimed.append(known[1:4].all())
    seen = [
        event.stamp * 1e-9 + delay
        for event in stage.events.since(0)
        if event.kind is EventKind.CHANGE_DETECTED
    ]
    begins = np.arange(FIRST, SECONDS - DUE, EVERY)
    noticed = [any(begin <= at < begin + DUE for at in seen) for begin in begins.tolist()]
    return Moves(np.array(noticed), np.concatenate(errors), float(np.mean(claimed)))
