"""Changes during all kinds of work, on robots of different shape, and what the estimator says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from load_identification.estimation.events import EventKind
from load_identification.interface.parameters import Parameters
from load_identification.model.inertial_parameters import to_message_order
from load_identification.pipeline import settings
from load_identification.simulation.cells import Conditions, Path, filtered, published, sample
from load_identification.simulation.changes.draws import (
    Change,
    grasp_of,
    long_push,
    release,
    rezero,
    rezero_to_zero,
    short_push,
    slip,
    swap,
    vertical_push,
)
from load_identification.simulation.changes.runs import STEP, Run, pieces
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import MOUNTS
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.typing_aliases import FloatArray

ROBOTS = ('puma', 'scara', 'seven_joints')
"""Robots, used in turn."""

RATE = 500.0
"""Sampling rate of joint states and wrenches [Hz]."""

EARLIEST = 8.0
"""Earliest time of a change [s]."""

AFTER = 8.0
"""Time of judgement after motion continues or a push ends [s]."""

NOTICED = 1.0
"""Time for detection of a change, after it or after motion continues [s]."""

CELL = Conditions(CellErrors(), ('smooth', 'path'))
"""A cell with errors from their priors."""

OUTPUT_NS = 20_000_000
"""Interval between filtered samples [ns]."""

CLAIMS = (EventKind.LOAD_CHANGED, EventKind.OFFSET_CHANGED)
"""Events that name a single cause."""


@dataclass(frozen=True)
class Scenario:
    """A change during some kind of work."""

    draw: Callable[[np.random.Generator], Change]
    motion: str
    """A key of `MOTIONS`. If it has pauses, the change comes in a pause."""
    limit: float = 1.0
    """Time for classification after motion continues or a push ends [s]."""


SCENARIOS = {
    'grasp of 1 kg, tool down': Scenario(grasp_of(1.0), 'tool-down'),
    'grasp of 1 kg, with pauses': Scenario(grasp_of(1.0), 'pauses'),
    're-zero to zero, tool down': Scenario(rezero_to_zero, 'tool-down'),
    're-zero to zero, with pauses': Scenario(rezero_to_zero, 'pauses'),
    'offset steps, tool down': Scenario(rezero, 'tool-down', 6.0),
    'offset steps, with pauses': Scenario(rezero, 'pauses', 6.0),
    'push 5 s, tool down': Scenario(long_push, 'tool-down', 6.0),
    'push 5 s, with pauses': Scenario(long_push, 'pauses', 6.0),
    'vertical push 5 s, tool down': Scenario(vertical_push, 'tool-down', 6.0),
    **{
        f'slip of {mm} mm, {label}': Scenario(slip(1e-3 * mm), motion, 2.0)
        for mm in (5, 10, 15)
        for label, motion in (('at rest', 'poses'), ('moving', 'rich'))
    },
    'grasp of 20 g, at rest': Scenario(grasp_of(0.02), 'poses', 2.0),
    'grasp of 20 g, moving': Scenario(grasp_of(0.02), 'rich', 2.0),
    'grasp of 3 kg, tool down': Scenario(grasp_of(3.0), 'tool-down'),
    'release, tool down': Scenario(release, 'tool-down'),
    'release, with pauses': Scenario(release, 'pauses'),
    'swap of 1 for 1.05 kg, tool down': Scenario(swap, 'tool-down', 2.0),
    'swap of 1 for 1.05 kg, with pauses': Scenario(swap, 'pauses', 2.0),
    'push 0.5 s, with pauses': Scenario(short_push, 'pauses', 3.0),
    'push 0.5 s, moving': Scenario(short_push, 'rich', 3.0),
}


def timing(path: Path, change: Change, rng: np.random.Generator) -> tuple[float, float]:
    """Return the time of the change, and from when it can be identified [s]."""
    holds, begins = path.motion.holds, path.motion.trajectory.begins
    if not holds:
        changed = EARLIEST + rng.uniform(0.0, 0.3)
        return changed, changed + change.lasts
    k = int(np.argmax(np.array(holds) > EARLIEST))
    begin, end = float(begins[2 * k]), holds[k]
    changed = begin + rng.uniform(0.2, 0.4) * (end - begin)
    return changed, changed + change.lasts if change.lasts else end


def run(scenario: Scenario, seed: int, conditions: Conditions = CELL) -> Outcome:
    """Simulate a run through all stages, with looks at the estimate every `STEP`."""
    rng = np.random.default_rng([seed, 2])
    change = scenario.draw(rng)
    mount = MOUNTS[ROBOTS[seed % len(ROBOTS)]]
    span = EARLIEST + AFTER + change.lasts + 6.0
    motion = MOTIONS[scenario.motion](mount, span, np.random.default_rng([seed, 0]))
    path = sample(mount, motion, span, RATE)
    changed, goes_on = timing(path, change, rng)
    times = np.asarray(path.stamps * 1e-9)
    exerted = partial(change.exerted, times=times, changed=changed)
    joints, wrenches = published(
        path, exerted, conditions, seed, zeroed=changed if change.zeroed else np.inf
    )
    batch, delay = filtered(mount, joints, wrenches, Parameters())
    due = max(changed + NOTICED, goes_on + NOTICED if change.push is None else 0.0)
    return outcome(Run(batch, delay, changed, goes_on, due, change), AFTER)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a run."""

    truth: EventKind
    """What has changed."""
    delay: float
    """Time from the change to its detection [s]; NaN: never."""
    noticed: float
    """The same; if motion has continued by then, time from that [s]."""
    names: dict[EventKind, float]
    """Time from motion after the change, or from the end of a push, to each kind of event [s]."""
    early: bool
    """Whether something was detected before the change."""
    looks: tuple[FloatArray, ...]
    """Errors of everything claimed at each look since detection was due, over their std, each (k,)
    [-]."""
    last: bool
    """Whether the mass is claimed at the last of them."""
    words: str
    """Words of the last event."""

    @property
    def z(self) -> FloatArray:
        """The errors at all looks."""
        return np.concatenate([np.zeros(0), *self.looks])

    @property
    def named(self) -> float:
        """Time to the right classification [s]; NaN: never."""
        return self.names.get(self.truth, np.nan)

    @property
    def wrong(self) -> bool:
        """Whether another single cause was named within 3 s."""
        others = (self.names.get(kind, np.inf) for kind in CLAIMS if kind is not self.truth)
        return any(time < 3.0 for time in others)

    @property
    def false_load(self) -> bool:
        """Whether a change of the load was named although there was none."""
        load = any(kind.changes_load for kind in self.names)
        return load and self.truth is not EventKind.LOAD_CHANGED

    @property
    def false_offset(self) -> bool:
        """Whether a change of the offset was named although there was none."""
        offset = any(kind.changes_offset for kind in self.names)
        return offset and self.truth is not EventKind.OFFSET_CHANGED


def outcome(run: Run, after: float = 3.0 + STEP) -> Outcome:
    """Process a run in the estimator until some time after motion [s]; look every `STEP`."""
    stage = settings.payload_estimator(Parameters())
    truth = to_message_order(run.change.load[1].to_vector())
    at, early, last, seen = np.nan, False, False, 0
    names: dict[EventKind, float] = {}
    looks = []
    for piece in pieces(run.batch):
        stage.update(piece)
        now = stage.newest * 1e-9 + run.delay
        if now > run.moved + after:
            break
        new, seen = stage.events.since(seen), stage.events.newest.number
        if new and now < run.changed:
            early = True
        elif new and np.isnan(at):
            # With the first sample after the block that shows it.
            at = (new[-1].stamp + OUTPUT_NS) * 1e-9 + run.delay
        if now >= run.changed:
            names = {event.kind: now - run.moved for event in new} | names
        estimate = stage.estimate() if now > run.due else None
        if estimate is not None:
            known = estimate.identified
            looks.append((estimate.values - truth)[known] / estimate.std[known])
            last = bool(known[0])
    noticed = at - (run.moved if at >= run.moved else run.changed)
    words = stage.events.newest.words
    kind = run.change.truth
    return Outcome(kind, at - run.changed, noticed, names, early, tuple(looks), last, words)
