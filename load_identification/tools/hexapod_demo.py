"""The command `hexapod_demo`: a simulated hexapod, its platform alone and then with a load."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

from load_identification.errors import LoadIdentificationError
from load_identification.estimation.payload_estimator import EstimatorSettings, PayloadEstimator
from load_identification.model.inertial_parameters import InertialParameters, to_message_order
from load_identification.model.regressor import wrench_regressor
from load_identification.nodes.leg_states import hexapod_filter
from load_identification.nodes.parameters import Parameters
from load_identification.parallel.body_estimate import BodyEstimate
from load_identification.parallel.excitation import OrientationSines, plan_sines
from load_identification.parallel.geometry import read_geometry
from load_identification.parallel.hexapod_filter import counting
from load_identification.parallel.leg_batch import LegBatch
from load_identification.parallel.mechanism import Mechanism, in_sensor_frame
from load_identification.parallel.two_step import TwoStepEstimator
from load_identification.tools.tables import PARAMETERS, interval_table

PLATFORM = InertialParameters.from_center_of_mass(
    9.0, [0.002, -0.001, -0.015], np.diag([0.19, 0.20, 0.38])
)
LOAD = InertialParameters.from_center_of_mass(
    22.26, [0.030, -0.020, 0.0081], np.diag([0.2277, 0.4642, 0.6910])
)
"""A steel plate of 0.50 x 0.35 x 0.0162 m with the mass of Schulte and Gerland's load."""

RATE = 1000.0
AMPLITUDE, FREQUENCY = np.deg2rad([20.0, 20.0, 26.0]), np.array([0.60, 0.77, 0.47])
COULOMB, HUMP, STRIBECK_SPEED, VISCOUS = 22.0, 22.0, 0.015, 60.0
"""Friction of a leg [N, N, m/s, N s/m], the Coulomb level varying by 15 % within a minute."""

FORCE_NOISE, LENGTH_NOISE, RATE_NOISE = 2.0, 5e-6, 5e-4
"""Standard deviations per sample [N, m, m/s]."""

STORY = 4.0
"""Largest deviation of a good estimate: truth may lie outside one 95 % interval in twenty."""


def leg_states(
    mechanism: Mechanism, body: InertialParameters, motion: OrientationSines, seed: int
) -> LegBatch:
    """Return what the sensors in the legs tell while a body follows a motion.

    Inverse dynamics, legs without mass, plus friction and noise.
    """
    rng = np.random.default_rng(seed)
    times = np.arange(int(motion.duration * RATE)) / RATE
    pose, moving = motion.sample(times)
    length, rate, _ = mechanism.leg_motion(pose, moving)
    gravity = np.array(Parameters().gravity)
    in_base = np.hstack(
        [
            moving.linear_acceleration - gravity,
            moving.angular_velocity,
            moving.angular_acceleration,
        ]
    )
    regressor = wrench_regressor(*np.split(in_sensor_frame(pose.rotation, in_base), 3, axis=1))
    unit = np.broadcast_to(np.eye(6), (len(times), 6, 6))
    per_leg = np.stack([mechanism.wrench(pose, unit[:, k]) for k in range(6)], axis=2)
    force = np.linalg.solve(per_leg, regressor @ body.to_vector()[:, None])[..., 0]
    phase = rng.uniform(0.0, 2.0 * np.pi, 6)
    level = COULOMB * (1.0 + 0.15 * np.sin(2.0 * np.pi * times[:, None] / 60.0 + phase))
    dry = level + HUMP * np.exp(-((rate / STRIBECK_SPEED) ** 2))
    force = force + dry * np.tanh(rate / 1e-3) + VISCOUS * rate
    stamps = 1_000_000_000 + np.round(times * 1e9).astype(np.int64)
    noisy = [
        clean + std * rng.standard_normal(clean.shape)
        for clean, std in ((length, LENGTH_NOISE), (rate, RATE_NOISE), (force, FORCE_NOISE))
    ]
    return LegBatch(mechanism.geometry.legs, stamps, *noisy)


def pieces(batch: LegBatch) -> Iterator[LegBatch]:
    """Cut a batch into pieces of 50 ms, as a node would see them."""
    step = int(0.05 * RATE)
    for first in range(0, len(batch.stamps), step):
        part = slice(first, first + step)
        yield LegBatch(
            batch.names,
            batch.stamps[part],
            batch.position[part],
            batch.velocity[part],
            batch.effort[part],
        )


def identify(
    path: Path, legs: LegBatch, console: Console, what: str
) -> tuple[BodyEstimate, BodyEstimate]:
    """Identify what moves on the legs, in one step and in two.

    Raises
    ------
    LoadIdentificationError
        If there is nothing to identify.
    """
    stage = hexapod_filter(path, Parameters())
    one, two = PayloadEstimator(EstimatorSettings()), TwoStepEstimator()
    for piece in track(list(pieces(legs)), what, console=console, transient=True):
        platform = stage.process(piece)
        if platform is not None:
            one.update(counting(platform))
            two.update(platform.filtered, platform.weight)
    first, second = one.estimate(), two.estimate()
    if first is None or second is None:
        raise LoadIdentificationError(f'no estimate: waiting for {stage.waiting_for}')
    dropped = ', '.join(f'{reason} {n}' for reason, n in stage.dropped.most_common() if n)
    console.print(f'{what}: {one.used} samples; weight zero: {dropped or "none"}')
    return BodyEstimate.of(first), second


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; exit status 0 only where both estimates hold."""
    parser = argparse.ArgumentParser(prog='hexapod_demo', description=__doc__)
    parser.add_argument('mechanism', type=Path, metavar='GEOMETRY.yaml', help='geometry file')
    parser.add_argument('--duration', type=float, default=30.0, help='of each motion, s')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        mechanism = Mechanism(replace(read_geometry(options.mechanism), platform_body=None))
        motion = plan_sines(mechanism, AMPLITUDE, FREQUENCY, options.duration)
        degrees = ', '.join(f'{a:.1f}' for a in np.rad2deg(motion.amplitude))
        console.print(f'Sinusoids of {degrees} degrees in roll, pitch and yaw, within the limits')
        found = [
            identify(
                options.mechanism,
                leg_states(mechanism, body, motion, options.seed + k),
                console,
                what,
            )
            for k, (what, body) in enumerate(
                (('platform alone', PLATFORM), ('platform and load', PLATFORM + LOAD))
            )
        ]
    except LoadIdentificationError as error:
        console.print(f'hexapod_demo: error: {error}')
        return 2
    truth = to_message_order(LOAD.to_vector())
    good = True
    for k, name in enumerate(('one step (all ten parameters at once)', 'two steps (the paper)')):
        load = found[1][k] - found[0][k]
        console.print(f'\nLoad, {name}, inertia about its centre of mass', style='bold')
        known = np.ones(10, dtype=bool)
        console.print(interval_table(PARAMETERS, load.values, load.std, known, '', truth))
        good &= bool((np.abs(load.values - truth) <= STORY * load.std).all())
        good &= abs(load.values[0] / LOAD.mass - 1.0) <= 0.01
    return 0 if good else 1


if __name__ == '__main__':
    raise SystemExit(main())
