"""An arm on a force/torque sensor, with and without differencing its velocities.

A PUMA stands on a six-axis sensor in MuJoCo. Two joints move, the others are held; encoders and
sensor are read every 8 ms. Coulomb and viscous friction, rotors and the lag of the drives make the
joint torques useless, and the sensor does not see them. The parameters come from one motion; how
well they predict the wrench on another one is printed: the root mean square error of each
channel in per cent of its range, mean over draws of the sensors' noise.

As in the paper, both sides through the same filters; and without any filter, prediction from the
true motion against the true wrench.

    python benchmark/base_sensor.py [--runs 20]

Liu, Iagnemma, Dubowsky and Morel 1998, sections 3 and 4.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.table import Table

from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.dynamics.base_parameters import arm_base_parameters
from load_identification.arm.dynamics.rows import WrenchModel
from load_identification.arm.filtering import FilteredRecording
from load_identification.arm.fit import identify_rows
from load_identification.arm.identification import identify
from load_identification.arm.methods.least_squares import motion_rows
from load_identification.arm.prediction import predict
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.interface.batches import CHANNELS
from load_identification.numerics.weighted_rows import WeightedRows
from load_identification.signals.low_pass import LowPass
from load_identification.simulation.in_mujoco.puma import (
    OFFSET,
    PLACEMENT,
    SAMPLING_NS,
    record,
    simulate,
    unknown_arm,
)
from load_identification.typing_aliases import FloatArray

FREE = Settings('acceleration_free')


def model_of(weightless: bool = False) -> WrenchModel:
    """Return the model of the arm of which nothing is known."""
    return WrenchModel(unknown_arm(), PLACEMENT, weightless)


Method = Callable[[Recording, Recording], ArmEstimate]


def by(settings: Settings) -> Method:
    """Return the method of these settings, the offset among the unknowns."""
    return lambda recording, rest: identify(model_of(), [recording], settings)


def free_with_replay(recording: Recording, rest: Recording) -> ArmEstimate:
    """Without accelerations, weight and offset removed by the static replay."""
    return identify(model_of(weightless=True), [recording.without_weight(rest)], FREE)


def free_but_early(recording: Recording, rest: Recording) -> ArmEstimate:
    """Without accelerations, a forward difference being the velocity at its first sample."""
    step = (np.diff(recording.stamps) * 1e-9)[:, None]
    velocity = np.diff(recording.whole().position, axis=0) / step
    early = recording.part(slice(None, -1)).changed(lambda x: replace(x, velocity=velocity))
    early = replace(early, has_velocities=True)
    return identify(model_of(), [early], FREE)


def twice(recording: Recording, rest: Recording, low_passed: bool = False) -> ArmEstimate:
    """Positions differenced twice, no filter or, low-passed, the filters of the first method."""
    q, step = recording.whole().position, SAMPLING_NS * 1e-9
    qd = (q[2:] - q[:-2]) / (2.0 * step)
    qdd = (q[2:] - 2.0 * q[1:-1] + q[:-2]) / step**2
    log = FilteredRecording(
        recording.seconds[1:-1], q[1:-1], qd, qdd, recording.whole().wrench[1:-1]
    )
    model = model_of()
    base = arm_base_parameters(model)
    rows = motion_rows(model, base, log)(model)
    if low_passed:
        stamps, matrix, values = recording.stamps[1:-1], rows.matrix, rows.values
        for bandwidth in FREE.bandwidths:
            matrix, values = (LowPass(bandwidth).update(stamps, x) for x in (matrix, values))
        rows = WeightedRows(matrix, values)
    return identify_rows([model], base, lambda _: [rows], FREE.solver)


METHODS: dict[str, Method] = {
    'acceleration-free': by(FREE),
    '… l 1, d 50 rad/s': by(Settings('acceleration_free', bandwidths=(1.0, 50.0))),
    '… static replay': free_with_replay,
    '… difference at its first sample': free_but_early,
    'differenced twice': twice,
    '… then low-passed alike': partial(twice, low_passed=True),
    'local polynomials, 20 Hz': by(Settings('least_squares')),
}


def errors(method: Method, seed: int) -> tuple[FloatArray, FloatArray]:
    """Identify from one motion and predict the other.

    Returns
    -------
    filtered, unfiltered : (6,) arrays
        Root mean square error of each channel in parts of its range: of filtered measurements,
        and of the true wrench from the true motion.
    """
    estimate = method(*record(simulate('identification'), seed))
    run = simulate('verification')
    recording, rest = record(run, seed + 1000)
    weightless = 'offset.fx' not in estimate.names
    if weightless:
        recording = recording.without_weight(rest)
    prediction = predict(estimate, [recording], FREE, 'verification')
    predicted = estimate.predict((run.q, run.qd, run.qdd))
    # What stands still weighs on the sensor in any method, as an offset.
    wrench = run.wrench - run.rest if weightless else run.wrench + OFFSET
    rms = np.sqrt(np.mean((predicted - wrench) ** 2, axis=0))
    filtered = prediction.of_range(prediction.predicted)
    return filtered, rms / np.ptp(run.wrench, axis=0)


def study(name: str, runs: int) -> tuple[FloatArray, FloatArray]:
    """Return the errors of a method over some draws of the noise, (runs, 6) each."""
    both = [errors(METHODS[name], seed) for seed in range(runs)]
    filtered, unfiltered = zip(*both, strict=True)
    return np.array(filtered), np.array(unfiltered)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=20, help='draws of the noise')
    runs = parser.parse_args().runs
    tables = [
        Table('method', title='error in per cent of the range, both sides filtered alike'),
        Table('method', title='error in per cent of the range, true motion and wrench'),
    ]
    for table in tables:
        for channel in (*CHANNELS, 'worst of all runs'):
            table.add_column(channel, justify='right')
    for name in METHODS:
        for table, ratio in zip(tables, study(name, runs), strict=True):
            shown = 100.0 * np.array([*ratio.mean(axis=0), ratio.max()])
            table.add_row(name, *(f'{value:.2f}' for value in shown))
    for table in tables:
        Console(width=110).print(table)
    return 0


if __name__ == '__main__':
    sys.exit(main())
