"""Loads that change slowly: a finger of a gripper, and what is poured out, moving or at rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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
from load_identification.simulation.motions import MOTIONS, RESTED
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensors import load_wrench
from load_identification.typing_aliases import BoolArray, FloatArray

JOINTED = ('puma', 'six_joints', 'seven_joints')
"""Robots, used in turn."""

FINGER, WAY, TAKES = 0.25, 0.04, 0.4
"""Mass of the finger, its way and the time that it takes [kg, m, s]."""

FIRST, EVERY = 6.0, 4.0
"""First movement of the finger, and interval between two [s]."""

DUE = 1.2
"""Time after the begin of a movement of the finger in which it should be detected [s]."""

FULL, LEFT, BEGIN, POURS = 1.2, 0.75, 10.0, 60.0
"""Mass before pouring, share that is left, begin, and time that it takes [kg, -, s, s]."""


@dataclass(frozen=True)
class SlowLoad:
    """A load that turns into another one."""

    loads: Callable[[np.random.Generator], tuple[InertialParameters, InertialParameters]]
    """Draws the load at shares 0 and 1."""
    share: Callable[[FloatArray], FloatArray]
    """Returns which part of the second load is held at each time, (n,), 0 to 1 [-]."""
    begins: FloatArray
    """Begins of its parts, each to be detected within `DUE`, (k,); nothing is judged meanwhile
    [s]."""
    seconds: float
    """Length of a run [s]."""
    robots: tuple[str, ...] = JOINTED
    """Used in turn."""


def finger_loads(rng: np.random.Generator) -> tuple[InertialParameters, InertialParameters]:
    """Draw 0.5 to 3 kg between a closed and an open finger."""
    held = drawn_load(rng, float(np.exp(rng.uniform(*np.log([0.5, 3.0])))))
    closed, opened = (
        held
        + InertialParameters.from_center_of_mass(FINGER, [0.02 + x, 0.0, 0.1], np.zeros((3, 3)))
        for x in (0.0, WAY)
    )
    return closed, opened


def opened(times: FloatArray) -> FloatArray:
    """Return how far the finger is open at times (n,) [s], 0 to 1."""
    since = np.maximum(times - FIRST, 0.0) % (2.0 * EVERY)
    return np.asarray(np.clip(since / TAKES, 0.0, 1.0) - np.clip((since - EVERY) / TAKES, 0, 1))


def poured_loads(rng: np.random.Generator) -> tuple[InertialParameters, InertialParameters]:
    """Draw a load before and after."""
    full = drawn_load(rng, FULL)
    return full, InertialParameters.from_vector(LEFT * full.to_vector())


def poured(times: FloatArray) -> FloatArray:
    """Return how much has been poured out at times (n,) [s], 0 to 1."""
    return np.asarray(np.clip((times - BEGIN) / POURS, 0.0, 1.0))


def poured_at_rest(times: FloatArray) -> FloatArray:
    """Return how much has been poured out at times (n,) [s] from an arm that is held, 0 to 1."""
    return np.asarray(np.clip((times - RESTED + 35.0) / 30.0, 0.0, 1.0))


FINGERS = SlowLoad(finger_loads, opened, np.arange(FIRST, 30.0 - DUE, EVERY), 30.0)
POURING = SlowLoad(poured_loads, poured, np.empty(0), BEGIN + POURS + 20.0)

SLOW = {
    'finger, rich': (FINGERS, 'rich'),
    'finger, pauses': (FINGERS, 'pauses'),
    'pouring, rich': (POURING, 'rich'),
    'pouring, pauses': (POURING, 'pauses'),
    'pouring, tool down': (POURING, 'tool-down'),
    'pouring, SCARA': (replace(POURING, robots=('scara',)), 'pauses'),
    'pouring, at rest': (replace(POURING, share=poured_at_rest), 'held'),
}
"""Changes, each with a key of `MOTIONS`."""


@dataclass(frozen=True)
class SlowOutcome:
    """Result of a run."""

    noticed: BoolArray
    """Whether each part of the change was detected within `DUE`, (k,)."""
    z: FloatArray
    mass: FloatArray
    """Errors of everything claimed, and of the masses among it, over their std, (n,), (m,) [-]."""
    claimed: float
    """Share of looks in which the centre of mass is identified [-]."""
    last: float
    """The same of the last tenth of them [-]."""
    said: tuple[str, ...]
    """The events in words."""


def run(change: SlowLoad, motion: str, seed: int) -> SlowOutcome:
    """Simulate a run through all stages in an ordinary cell, with looks every 0.5 s.

    Parameters
    ----------
    motion : str
        A key of `MOTIONS`.
    """
    mount = MOUNTS[change.robots[seed % len(change.robots)]]
    ends = change.loads(np.random.default_rng([seed, 1]))
    path = MOTIONS[motion](mount, change.seconds + 1.0, np.random.default_rng([seed, 0]))
    way = sample(mount, path, change.seconds, RATE)

    def exerted(frame: FrameMotion) -> FloatArray:
        part = change.share(np.asarray(way.stamps * 1e-9))[:, None]
        return (1.0 - part) * load_wrench(ends[0], frame) + part * load_wrench(ends[1], frame)

    parameters = replace(Parameters(), gravity=mount.gravity)
    batch, delay = filtered(mount, *published(way, exerted, CELL, seed), parameters)
    stage = settings.payload_estimator(parameters)
    vectors = [end.to_vector() for end in ends]
    errors, masses, claimed = [np.zeros(0)], [np.zeros(0)], []
    for k, piece in enumerate(pieces(batch)):
        stage.update(piece)
        measured = stage.newest * 1e-9
        now = measured + delay
        since = now - change.begins
        if k % 5 or np.any((since > 0.0) & (since < DUE)):
            continue
        estimate = stage.estimate()
        if estimate is None:
            continue
        part = float(change.share(np.array([measured]))[0])
        truth = to_message_order((1.0 - part) * vectors[0] + part * vectors[1])
        known = estimate.identified
        errors.append((estimate.values - truth)[known] / estimate.std[known])
        masses.append(errors[-1][: int(known[0])])
        claimed.append(known[1:4].all())
    events = stage.events.since(0)
    seen = [e.stamp * 1e-9 + delay for e in events if e.kind is EventKind.CHANGE_DETECTED]
    noticed = [any(begin <= at < begin + DUE for at in seen) for begin in change.begins.tolist()]
    return SlowOutcome(
        np.array(noticed, dtype=bool),
        np.concatenate(errors),
        np.concatenate(masses),
        float(np.mean(claimed)),
        float(np.mean(claimed[-len(claimed) // 10 :])),
        tuple(event.words for event in events),
    )
