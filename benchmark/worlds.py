"""Coverage in worlds drawn at random: arm, sensor, rates, errors and motion.

    python benchmark/worlds.py [--runs 100] [--seed 0] [--worst 5]

Each run draws an arm of five to seven joints with slanted axes and base, a load of 0.2 to 8 kg, a
motion, and what a real cell may be like: noise from 0.02 to 0.5 N, encoders in steps of up to
1 mrad, joint velocities with and without noise, rates of 125 to 1000 Hz, an ordinary cell's
errors, fields, hysteresis, cables, drift, compliance, stamps that jitter, spikes, a load that
swings, vibration, ripple that comes with the joints, slow noise, the sensor's own low-pass, values
that are repeated, joint states that come more seldom or are lost, velocities of zero. Printed: of
all that was called identified the share that holds, in all and by motion, rate, encoders and what
else is present.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from reality import GROUPS, Look, judged, observed
from scipy.signal import lfilter

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import FrameMotion
from load_identification.simulation.cells import Conditions, Path, published, sample
from load_identification.simulation.changes.draws import drawn_load
from load_identification.simulation.motions import MOTIONS
from load_identification.simulation.robots import Arm, joint, robot
from load_identification.simulation.sensor_errors import CellErrors
from load_identification.simulation.sensors import SensorModel, load_wrench
from load_identification.typing_aliases import FloatArray

SECONDS = 21.0
LOOKS = (1.0, 2.0, 4.0, 10.0, 20.0)
"""After the motion begins [s]."""

KINDS = {'rich': 0.3, 'pauses': 0.35, 'poses': 0.15, 'tool-down': 0.12, 'little': 0.08}
AXES = ('0 0 1', '0 1 0', '0 0 1', '0 -1 0', '0 0 1', '0 1 0', '0 0 1')
LEVER = np.repeat([1.0, 0.04], 3)
"""Of disturbances: their torques in their forces [-, m]."""


def text(values: FloatArray) -> str:
    """Return numbers as a description has them."""
    return ' '.join(f'{v:.4f}' for v in values)


def drawn_arm(rng: np.random.Generator) -> Arm:
    """Draw an arm with a sensor at its end."""
    count = int(rng.integers(5, 8))
    slant = rng.uniform(-0.2, 0.2, 3) * (1.0 if rng.random() < 0.7 else 10.0)
    parts = [joint('mount', 'fixed', 'base', 'link_0', '0 0 0.3', text(slant))]
    for k in range(count):
        reach = rng.normal([0.0, 0.0, 0.05 if k > 2 else 0.25], 0.05)
        axis = AXES[k + 7 - count]
        if rng.random() < 0.2:
            axis = text(rng.standard_normal(3))
        turn = text(rng.normal(0.0, 0.1, 3))
        parts.append(
            joint(f'j{k}', 'revolute', f'link_{k}', f'link_{k + 1}', text(reach), turn, axis)
        )
    seat = text(rng.uniform(-3.0, 3.0, 3))
    parts.append(joint('ft', 'fixed', f'link_{count}', 'ft_sensor', '0 0 0.05', seat))
    fastest = np.exp(rng.uniform(np.log(0.4), np.log(3.0))) * rng.uniform(0.7, 1.3, count)
    half, center = rng.uniform(0.8, 2.5, count), rng.uniform(-0.4, 0.4, count)
    lower, upper = (tuple(limit.tolist()) for limit in (center - half, center + half))
    names = tuple(f'j{k}' for k in range(count))
    return Arm(robot('base', *parts), 'ft_sensor', names, lower, upper, tuple(fastest.tolist()))


def drawn_world(rng: np.random.Generator) -> tuple[Path, float, Conditions, list[str]]:
    """Draw path, mass of the load, sensor and errors; return what is present, in words, too."""
    mount = drawn_arm(rng)
    kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    rate = float(rng.choice([125.0, 250.0, 500.0, 1000.0]))
    path = sample(mount, MOTIONS[kind](mount, SECONDS, rng), SECONDS, rate)
    force = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))
    torque = force * float(np.exp(rng.uniform(np.log(0.01), np.log(0.06))))
    sensors = SensorModel(
        encoder_resolution=float(rng.choice([0.0, 1e-5, 1e-4, 1e-3])),
        velocity_noise=(None, 1e-4, 1e-3, 1e-2)[rng.integers(4)],
        force_noise=force,
        torque_noise=torque,
        force_step=float(rng.choice([0.0, force / 2.0, 0.05])),
        torque_step=float(rng.choice([0.0, torque / 2.0, 0.002])),
    )
    tied = ('smooth', 'rough', 'path', 'hysteresis', 'cables')
    conditions = Conditions(
        CellErrors(),
        tied=tuple(each for each in tied if rng.random() < 0.2),
        drift=float(rng.choice([0.0, 0.0, 0.3, 1.0])),
        compliance=float(rng.choice([0.0, 0.0, 0.0, 8.0, 15.0, 25.0])),
        jitter=float(rng.choice([0.0, 0.0, 0.0, 0.001, 0.002])),
        spikes=float(rng.choice([0.0, 0.0, 0.0, 0.2])),
        swing=float(rng.choice([0.0] * 8 + [0.2])),
        sensors=sensors,
    )
    named = ('drift', 'compliance', 'jitter', 'spikes', 'swing')
    present = [kind, f'{rate:g} Hz', *conditions.tied]
    present += [name for name in named if getattr(conditions, name)]
    present.append(f'encoders of {sensors.encoder_resolution:g} rad')
    mass = float(np.exp(rng.uniform(np.log(0.2), np.log(8.0))))
    return path, mass, conditions, present


def disturbance(path: Path, rng: np.random.Generator) -> tuple[FloatArray, list[str]]:
    """Draw what shakes the sensor besides the load: wrenches (n, 6) [N, N m], and their names."""
    times, rate = 1e-9 * path.stamps, 1e9 / float(path.stamps[1] - path.stamps[0])
    wrench, names = np.zeros((len(times), 6)), []
    if rng.random() < 0.3:
        size = np.exp(rng.uniform(np.log(0.05), 0.0)) * rng.standard_normal(6)
        phase = 2.0 * np.pi * rng.uniform(4.0, 60.0) * times[:, None]
        wrench += size * np.sin(phase + rng.uniform(0.0, 2.0 * np.pi, 6))
        names.append('vibration')
    if rng.random() < 0.3:
        size = np.exp(rng.uniform(np.log(0.02), np.log(0.2)))
        for column in path.joints[0].T:
            phase = rng.integers(20, 200) * column + rng.uniform(0.0, 2.0 * np.pi)
            wrench += size * rng.standard_normal(6) * np.sin(phase)[:, None]
        names.append('ripple')
    if rng.random() < 0.3:
        size, memory = np.exp(rng.uniform(np.log(0.01), np.log(0.1))), 3.0 * rate
        slow = lfilter([1.0], [1.0, -np.exp(-1.0 / memory)], rng.standard_normal(wrench.shape), 0)
        wrench += size * np.sqrt(2.0 / memory) * slow
        names.append('slow noise')
    return LEVER * wrench, names


def spoilt(
    joints: JointBatch, wrenches: WrenchBatch, rate: float, rng: np.random.Generator
) -> tuple[JointBatch, WrenchBatch, list[str]]:
    """Draw what drivers make of the streams; and its names."""
    names = []
    if rng.random() < 0.4:
        part = 1.0 - np.exp(-2.0 * np.pi * float(rng.choice([30.0, 73.0, 150.0])) / rate)
        first = wrenches.wrench[0]
        slow = lfilter([part], [1.0, part - 1.0], wrenches.wrench - first, axis=0)
        wrenches = replace(wrenches, wrench=slow + first)
        names.append("sensor's low-pass")
    if rng.random() < 0.2:
        times = int(rng.choice([2, 4]))
        held = np.repeat(wrenches.wrench[::times], times, axis=0)[: len(wrenches.stamps)]
        wrenches = replace(wrenches, wrench=held)
        names.append('repeated values')
    if rng.random() < 0.25:
        joints = joints.select(slice(None, None, 2))
        names.append('fewer joint states')
    if rng.random() < 0.2:
        late = np.round(0.3e9 / rate * rng.uniform(-1.0, 1.0, len(wrenches.stamps)))
        wrenches = replace(wrenches, stamps=wrenches.stamps + late.astype(np.int64))
        names.append("wrench's stamps")
    if rng.random() < 0.2:
        joints = joints.select(
            rng.random(len(joints.stamps)) >= float(rng.choice([0.1, 0.3, 0.6]))
        )
        names.append('joint states lost')
    if rng.random() < 0.15:
        joints = replace(joints, velocity=np.zeros_like(joints.velocity))
        names.append('velocities of zero')
    return joints, wrenches, names


def run(seed: int) -> tuple[tuple[str, ...], list[Look]]:
    """Draw a world, identify in it, and compare; returns what is present in it too."""
    rng = np.random.default_rng(seed)
    path, mass, conditions, present = drawn_world(rng)
    load = drawn_load(rng, mass)
    shaken, names = disturbance(path, rng)

    def exerted(motion: FrameMotion) -> FloatArray:
        return load_wrench(load, motion) + shaken

    rate = 1e9 / float(path.stamps[1] - path.stamps[0])
    joints, wrenches, more = spoilt(*published(path, exerted, conditions, seed), rate, rng)
    holds = path.motion.holds
    begins = holds[0] if holds else 0.0
    looks = [begins + t for t in LOOKS if begins + t < SECONDS]
    seen = observed(Parameters(), path.mount, joints, wrenches, looks)
    found = [judged(estimate, load, event) for estimate, event in seen]
    return (*present, *names, *more), found


def row(name: str, looks: Sequence[Look]) -> str:
    """Return a line of the table."""
    z = np.array([look.z for look in looks])
    claimed, away = np.isfinite(z), np.nan_to_num(np.abs(z))
    parts = []
    for group in GROUPS.values():
        count = int(claimed[:, group].sum())
        inside = int((claimed[:, group] & (away[:, group] <= 1.96)).sum())
        share = f'{inside / count:.3f}' if count else '    -'
        parts.append(f'{claimed[:, group].mean():.2f} {share}')
    events = np.mean([look.event for look in looks])
    last = f'{(away > 4.0).sum():3} {away.max():6.1f} | {events:.2f}'
    return f'{name:24} {len(looks):5} | {" | ".join(parts)} | {last}'


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--seed', type=int, default=0, help='of the first run')
    parser.add_argument('--worst', type=int, default=5, help='so many runs are told one by one')
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.runs)
    outcomes = {seed: run(seed) for seed in seeds}
    print(f'{"":24} {"looks":>5} | {" | ".join(f"{g:10}" for g in GROUPS)} | >4  worst | event')
    everything = [look for _, found in outcomes.values() for look in found]
    print(row('all', everything))
    for name in sorted({name for present, _ in outcomes.values() for name in present}):
        there = [found for present, found in outcomes.values() if name in present]
        print(row(name, [look for found in there for look in found]))

    def worst(seed: int) -> float:
        return float(np.nanmax(np.abs([*(look.z for look in outcomes[seed][1]), [0.0] * 10])))

    for seed in sorted(outcomes, key=worst, reverse=True)[: arguments.worst]:
        print(f'seed {seed}: {worst(seed):.1f} with {", ".join(outcomes[seed][0])}')


if __name__ == '__main__':
    main()
