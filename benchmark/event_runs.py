"""Simulated runs in which a load changes, a sensor is re-zeroed, or something pushes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np

from load_identification.estimation.events import LOAD, OFFSET, RETURN
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.robot import FrameMotion, Robot
from load_identification.nodes.parameters import Parameters
from load_identification.signals.batches import FilteredBatch
from load_identification.tools.simulation import (
    Recording,
    SensorModel,
    load_wrench,
    measure,
    simulate,
)
from load_identification.tools.trajectories import Quintic, Trajectory, fourier_motion
from load_identification.typing_aliases import FloatArray

ROOT = Path(__file__).resolve().parents[1]
URDF = (ROOT / 'config' / 'puma.urdf').read_text(encoding='utf-8')
FRAME = 'ft_sensor'
RATE = 500.0
SENSORS = SensorModel(encoder_resolution=1e-5, force_step=0.0, torque_step=0.0)
LOWER = np.array([-1.5, -1.5, -1.0, -2.0, -1.5, -2.5])
UPPER = np.array([1.5, 0.5, 1.5, 2.0, 1.5, 2.5])
FASTEST = np.array([1.4, 0.9, 2.2, 3.5, 3.5, 4.5])

MOVING = 12.0
"""Duration of the motion in the course of which something happens [s]; it fades in and out."""

MOVE = 2.0
"""Duration of a move from pose to pose [s]."""

REST = 2.0
"""Rest in the middle of which something happens [s]."""

STEP = 0.1
"""Between two looks at the estimate [s]."""

OUTPUT_NS = 20_000_000
"""Between two filtered samples [ns]."""

DUE = {'moving': 0.3, 'resting': 0.6}
"""When a change should have been noticed [s]."""


@dataclass(frozen=True)
class Change:
    """What happens in a run.

    Attributes
    ----------
    load : tuple of two InertialParameters
        Before and after.
    offset : tuple of two (6,) arrays
        Before and after [N, N m].
    truth : str
        What has changed.
    push : (n, 6) array function of motion, or None
        External wrench on the sensor while it lasts [N, N m].
    lasts : float
        Of the push [s].
    takes : float
        From before to after, steadily [s].
    """

    load: tuple[InertialParameters, InertialParameters]
    offset: tuple[FloatArray, FloatArray]
    truth: str
    push: Callable[[FrameMotion], FloatArray] | None = None
    lasts: float = 0.0
    takes: float = 0.0


def drawn_load(rng: np.random.Generator, mass: float) -> InertialParameters:
    """Draw a box of a mass, held off-centre and turned."""
    sides = rng.uniform(0.04, 0.16, 3) * mass ** (1 / 3)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    moments = mass * (np.sum(sides**2) - sides**2) / 12.0
    centre = rng.uniform([-0.03, -0.03, 0.02], [0.03, 0.03, 0.08])
    return InertialParameters.from_center_of_mass(mass, centre, turn @ np.diag(moments) @ turn.T)


def unit(rng: np.random.Generator) -> FloatArray:
    """Draw a direction."""
    direction = rng.standard_normal(3)
    return np.asarray(direction / np.linalg.norm(direction), dtype=float)


def grasp(rng: np.random.Generator) -> Change:
    """Pick something up: the load grows by 0.1 to 2 kg."""
    held = drawn_load(rng, rng.uniform(0.5, 1.5))
    offset = np.array(SENSORS.offset)
    more = held + drawn_load(rng, rng.uniform(0.1, 2.0))
    return Change((held, more), (offset, offset), LOAD)


def release(rng: np.random.Generator) -> Change:
    """Put it down again."""
    change = grasp(rng)
    return replace(change, load=change.load[::-1])


def small_change(rng: np.random.Generator) -> Change:
    """Add or lose 5 % of the load, at its centre."""
    held = drawn_load(rng, rng.uniform(0.5, 3.0))
    sign = rng.choice([-1.0, 1.0])
    other = InertialParameters.from_vector(held.to_vector() * (1.0 + 0.05 * sign))
    offset = np.array(SENSORS.offset)
    return Change((held, other), (offset, offset), LOAD)


def rezero(rng: np.random.Generator) -> Change:
    """Step the offset by 1 to 10 N and 0.03 to 0.3 N m."""
    held = drawn_load(rng, rng.uniform(0.5, 2.0))
    offset = np.array(SENSORS.offset)
    step = np.concatenate([unit(rng) * rng.uniform(1, 10), unit(rng) * rng.uniform(0.03, 0.3)])
    return Change((held, held), (offset, offset + step), OFFSET)


def slowly(draw: Callable[[np.random.Generator], Change]) -> Callable[..., Change]:
    """Let a change take half a second: a gripper that closes slowly, a driver's slow zeroing."""
    return lambda rng: replace(draw(rng), takes=0.5)


def push_in_world(rng: np.random.Generator) -> Change:
    """Push with 20 N for 2 s in one direction of the world, at a point of the tool."""
    held = drawn_load(rng, rng.uniform(0.5, 2.0))
    offset = np.array(SENSORS.offset)
    direction, point = 20.0 * unit(rng), rng.uniform(-0.1, 0.1, 3)

    def push(motion: FrameMotion) -> FloatArray:
        # Gravity in S tells how S stands but for the turn about the vertical, which is drawn.
        down = motion.gravity / np.linalg.norm(motion.gravity, axis=1, keepdims=True)
        side = np.cross(down, np.array([0.3, 0.5, 0.8]))
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        force = direction[0] * down + direction[1] * side + direction[2] * np.cross(down, side)
        return np.hstack([force, np.cross(point, force)])

    return Change((held, held), (offset, offset), RETURN, push, 2.0)


def push_on_tool(rng: np.random.Generator) -> Change:
    """Push with 20 N for 2 s in one direction of the sensor: as an offset, until it ends."""
    change = push_in_world(rng)
    wrench = np.concatenate([20.0 * unit(rng), 2.0 * unit(rng)])
    return replace(change, push=lambda motion: np.broadcast_to(wrench, (len(motion.gravity), 6)))


SCENARIOS: dict[str, tuple[Callable[[np.random.Generator], Change], str]] = {
    'grasp, moving': (grasp, 'moving'),
    'release, moving': (release, 'moving'),
    '5 %, moving': (small_change, 'moving'),
    're-zero, moving': (rezero, 'moving'),
    'grasp in 0.5 s, moving': (slowly(grasp), 'moving'),
    're-zero in 0.5 s, moving': (slowly(rezero), 'moving'),
    'grasp, at rest': (grasp, 'resting'),
    'release, at rest': (release, 'resting'),
    '5 %, at rest': (small_change, 'resting'),
    're-zero, at rest': (rezero, 'resting'),
    'push 20 N, 2 s, fixed in the world': (push_in_world, 'moving'),
    'push 20 N, 2 s, fixed in the sensor': (push_on_tool, 'moving'),
}


def moves(seed: int) -> list[FloatArray]:
    """Draw six poses; the last two moves turn the sensor by 60° or more against gravity."""
    rng, robot = np.random.default_rng(seed), Robot(URDF, FRAME)
    poses = [rng.uniform(LOWER, UPPER) / 2.0]
    reach = 0.9 * FASTEST * MOVE * 8.0 / 15.0
    while len(poses) < 6:
        pose = np.clip(poses[-1] + rng.uniform(-reach, reach), LOWER, UPPER)
        zero = np.zeros((2, 6))
        gravity = robot.motion(np.array([poses[-1], pose]), zero, zero).gravity
        if len(poses) < 4 or gravity[0] @ gravity[1] < 0.5 * 9.80665**2:
            poses.append(pose)
    return poses


def motion_of(kind: str, seed: int) -> tuple[Trajectory, float, float]:
    """Return motion, when the change may come at the earliest, and when motion goes on [s]."""
    if kind == 'moving':
        start = np.random.default_rng(seed).uniform(-0.5, 0.5, 6)
        motion = fourier_motion(start, LOWER, UPPER, FASTEST, MOVING, seed)
        return Trajectory((motion,)), MOVING / 2.0, 0.0
    p = moves(seed)
    before = [Quintic(a, b, MOVE) for a, b in ((p[0], p[1]), (p[1], p[2]), (p[2], p[3]))]
    after = [Quintic(p[3], p[4], MOVE), Quintic(p[4], p[5], MOVE)]
    rested = 3 * MOVE
    return Trajectory((*before, Quintic(p[3], p[3], REST), *after)), rested + 0.5, rested + REST


@dataclass(frozen=True)
class Run:
    """A recording with a change in it.

    Attributes
    ----------
    batch : FilteredBatch
        All of it, filtered.
    delay : float
        Of the filter [s].
    changed, moved : float
        When the change began, and when it had come and the arm moved [s].
    change : Change
    kind : str
        moving or resting.
    """

    batch: FilteredBatch
    delay: float
    changed: float
    moved: float
    change: Change
    kind: str


def filtered(recording: Recording) -> tuple[FilteredBatch, float]:
    """Return what the filter makes of a recording, and its delay [s]."""
    parameters = Parameters()
    synchronizer, stage = parameters.synchronizer(), parameters.motion_filter()
    stage.set_description(URDF, FRAME)
    samples = synchronizer.update([recording.joints()], [recording.wrenches()])
    batch = None if samples is None else stage.update(samples)
    if batch is None:
        raise RuntimeError('the recording is too short')
    return batch, stage.delay


def recorded(scenario: str, seed: int) -> Run:
    """Simulate a run."""
    draw, kind = SCENARIOS[scenario]
    rng = np.random.default_rng(seed)
    change = draw(rng)
    trajectory, earliest, goes_on = motion_of(kind, seed)
    changed = earliest + rng.uniform(0.0, 0.3)
    moved = max(changed + change.takes, goes_on)
    base = simulate(Robot(URDF, FRAME), trajectory, change.load[0], SENSORS, RATE, seed)
    times = base.stamps * 1e-9
    part = np.clip((times - changed) / max(change.takes, 1e-9), 0.0, 1.0)[:, None]
    other = load_wrench(change.load[1], base.motion) + change.offset[1] - change.offset[0]
    wrench = base.exact_wrench + part * (other - base.exact_wrench)
    if change.push is not None:
        lasting = (part > 0.0) & (times < changed + change.lasts)[:, None]
        wrench = wrench + lasting * change.push(base.motion)
    sensors = replace(SENSORS, offset=tuple(change.offset[0]))
    batch, delay = filtered(measure(replace(base, exact_wrench=wrench), sensors, seed))
    return Run(batch, delay, changed, moved, change, kind)


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Attributes
    ----------
    noticed : float
        From the change to its notice [s]; NaN: never.
    told : float
        From the motion after the change to the right answer [s]; NaN: never.
    wrong : bool
        Another answer was given before.
    early : bool
        Something was noticed before the change.
    held, claimed : int
        Parameters identified 3 s after motion began, whose interval holds the truth, and all.
    held_since, claimed_since : int
        The same of every look at the estimate since the change was due to be noticed.
    mass_error, mass_std : float
        3 s after [kg].
    """

    noticed: float
    told: float
    wrong: bool
    early: bool
    held: int
    claimed: int
    held_since: int
    claimed_since: int
    mass_error: float
    mass_std: float


def judged(estimate: PayloadEstimate, load: InertialParameters) -> tuple[int, int]:
    """Return how many identified parameters' intervals hold the truth, and how many there are."""
    truth = to_message_order(load.to_vector())
    known = estimate.identified
    inside = np.abs(estimate.values - truth)[known] <= 1.96 * estimate.std[known]
    return int(inside.sum()), int(known.sum())


def pieces(batch: FilteredBatch) -> list[FilteredBatch]:
    """Cut a batch into pieces of `STEP`."""
    edges = np.flatnonzero(np.diff((batch.stamps * 1e-9 / STEP).astype(int))) + 1
    names = [name for name in vars(batch) if isinstance(getattr(batch, name), np.ndarray)]
    cut = {name: np.split(getattr(batch, name), edges) for name in names}
    return [
        replace(batch, **{name: cut[name][k] for name in names}) for k in range(len(edges) + 1)
    ]


def outcome(run: Run) -> Outcome:
    """Carry a run through the estimator and look at it every `STEP`."""
    stage = PayloadEstimator(Parameters().estimator_settings())
    noticed = told = np.nan
    wrong = early = False
    now_held = now_claimed = held = claimed = 0
    error = std = np.nan
    due = DUE[run.kind]
    for piece in pieces(run.batch):
        stage.update(piece)
        estimate = stage.estimate()
        if estimate is None:
            continue
        now = estimate.stamp * 1e-9 + run.delay
        kind = stage.event.kind if stage.event is not None else ''
        if kind and now < run.changed:
            early = True
        elif stage.event is not None and np.isnan(noticed):
            # With the first sample after the block that shows it.
            noticed = (stage.event.stamp + OUTPUT_NS) * 1e-9 + run.delay - run.changed
        if kind == run.change.truth and np.isnan(told):
            told = now - run.moved
        wrong |= now < run.moved + 3.0 and kind in {LOAD, OFFSET} - {run.change.truth}
        if run.changed + due < now <= run.moved + 3.0 + STEP:
            now_held, now_claimed = judged(estimate, run.change.load[1])
            held, claimed = held + now_held, claimed + now_claimed
            error = float(estimate.values[0] - run.change.load[1].mass)
            std = float(estimate.std[0])
    return Outcome(noticed, told, wrong, early, now_held, now_claimed, held, claimed, error, std)


def study(scenario: str, runs: int) -> list[Outcome]:
    """Return the outcomes of seeded runs."""
    return [outcome(recorded(scenario, seed)) for seed in range(runs)]


def nominal(minutes: int, seed: int = 0) -> tuple[list[str], float]:
    """Return the events in so many minutes of ordinary motion, and the error of the mass [kg].

    Every minute another motion: half of them smooth and fast, half moves from pose to pose with
    rests between.
    """
    stage = PayloadEstimator(Parameters().estimator_settings())
    robot, load = Robot(URDF, FRAME), drawn_load(np.random.default_rng(seed), 1.2)
    events = []
    for minute in range(minutes):
        chosen = seed + minute
        if minute % 2:
            start = np.random.default_rng(chosen).uniform(-0.5, 0.5, 6)
            parts = [fourier_motion(start, LOWER, UPPER, FASTEST, 60.0, chosen)]
        else:
            p = [moves(60 * chosen + k) for k in range(3)]
            path = [pose for each in p for pose in each]
            parts = []
            for a, b in pairwise(path):
                time = max(MOVE, float(np.max(np.abs(b - a) / FASTEST)) * 2.1)
                parts += [Quintic(a, b, time), Quintic(b, b, 1.0)]
        recording = simulate(robot, Trajectory(tuple(parts)), load, SENSORS, RATE, chosen)
        later = replace(recording, stamps=recording.stamps + minute * 90_000_000_000)
        for piece in pieces(filtered(later)[0]):
            before = stage.event
            stage.update(piece)
            if stage.event is not before and stage.event is not None:
                events.append(f'{stage.event.kind} at {stage.event.stamp * 1e-9:.1f} s')
    estimate = stage.estimate()
    return events, np.nan if estimate is None else float(estimate.values[0] - load.mass)


def drifting(minutes: int, rate: float = 4.0 / 300.0, seed: int = 0) -> FloatArray:
    """Return the mass in so many minutes of drift, as a part of the truth, each half second.

    The force offset drifts steadily, in a direction of the sensor, and the torque offset by 0.02 m
    times as much; once a minute the arm moves slowly to another pose and back.
    """
    stage = PayloadEstimator(Parameters().estimator_settings())
    rng, robot = np.random.default_rng(seed), Robot(URDF, FRAME)
    load = drawn_load(rng, 1.2)
    direction = np.concatenate([unit(rng), 0.02 * unit(rng)])
    ratios = []
    for minute in range(minutes):
        p = moves(seed + minute)
        rest = Quintic(p[3], p[3], 50.0)
        slow = Trajectory((Quintic(p[3], p[4], 5.0), Quintic(p[4], p[3], 5.0), rest))
        recording = simulate(robot, slow, load, SENSORS, RATE, minute)
        stamps = recording.stamps + minute * 60_000_000_000
        drift = rate * (stamps * 1e-9)[:, None] * direction
        moved = replace(recording, stamps=stamps, wrench=recording.wrench + drift)
        for piece in pieces(filtered(moved)[0]):
            stage.update(piece)
            estimate = stage.estimate()
            if estimate is not None and estimate.identified[0]:
                ratios.append(estimate.values[0] / load.mass)
    return np.array(ratios)
