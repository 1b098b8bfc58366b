"""An arm fitted in slow motion, predicted at twice the speed, by the weight of its nominal links.

    python benchmark/faster_motion.py [--runs N]

Two simulated arms, torques by Pinocchio. Each run draws a motion of 10 s, at most 0.5 rad/s, and
another of 5 s at most 1 rad/s; noise of 0.1 N m in each torque sample at 250 Hz; friction with
Coulomb levels of 0.5 to 2 N m, of which the model lacks a ripple over the position, 30 % of the
level; and a description whose links are too heavy or too light by 30 % (one standard deviation).
The arm is identified as `identify_arm` does by default. Then its links are found again, from the
same rows, with other weights of the nominal links.

Printed: the rms error of the torques at twice the speed, of all joints, as a share of them, median
of the runs, by what is written (weight by cross-validation), by the weight of 1e-3 that was fixed
before, without the prior on masses as then and with it, by the best of all weights in each run,
which only who has the torques of the fast motion knows, by the unconstrained estimate, and by the
description without friction; and by how much what is written, and the best, reduce the error of
the weight before, without the prior: mean and median of the runs. 5 minutes.
"""

from __future__ import annotations

import argparse
import copy
from dataclasses import replace
from unittest.mock import patch

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from load_identification.arm import fit
from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.identification import identify, identify_and_test
from load_identification.arm.prediction import Prediction, predict, relative_error
from load_identification.arm.recording import Recording
from load_identification.arm.selection import BANDWIDTH, CUTOFFS
from load_identification.arm.settings import Settings
from load_identification.motion.limits import Limits
from load_identification.motion.sines import random_sines
from load_identification.numerics import nearest_links
from load_identification.numerics.nearest_links import PLAIN_WEIGHT, WEIGHTS
from load_identification.simulation.robots import (
    SEVEN_JOINTS,
    SIX_JOINTS,
    PinocchioArm,
)
from load_identification.simulation.robots import (
    Arm as Description,
)
from load_identification.typing_aliases import FloatArray

RATE, NOISE = 250.0, 0.1
"""Of the joint states [Hz], and of a torque sample [N m]."""

DURATION, FASTEST, HIGHEST = 10.0, 0.5, 0.25
"""Of the motion that is fitted [s, rad/s, Hz]."""

LEVELS, RIPPLE = (0.5, 2.0), 0.3
"""Coulomb and viscous friction [N m, N m s/rad], and the ripple as a share of the former [-]."""

MASSES_OFF = 0.3
"""Standard deviation of the logarithm of a nominal link's parameters over the true ones [-]."""

ARMS = {'six joints': SIX_JOINTS, 'seven joints': SEVEN_JOINTS}

WAYS = (
    'written',
    'weight 1e-3, no prior on masses',
    'weight 1e-3',
    'best weight',
    'unconstrained',
    'description',
)


class Simulated:
    """An arm with friction, and a description of it that is off, drawn from a seed."""

    def __init__(self, arm: Description, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        true, joints = Arm(arm.urdf, joints=arm.joints), len(arm.joints)
        off = np.exp(MASSES_OFF * self._rng.standard_normal((joints, 1)))
        self.nominal = copy.copy(true)
        self.nominal.nominal = off * true.nominal
        self._truth = PinocchioArm(arm.urdf, true.gravity, arm.joints)
        self._level, self._slope = self._rng.uniform(*LEVELS, (2, joints))
        self._waves = self._rng.integers(2, 8, joints)
        self._phase = self._rng.uniform(0.0, 2.0 * np.pi, joints)

    def moved(self, seed: int, speed: float) -> Recording:
        """Return a motion of a seed at a speed, with its torques."""
        times = np.arange(round(RATE * DURATION / speed)) / RATE
        reach = np.ones(len(self._level))
        limits = Limits(-reach, reach, FASTEST * reach)
        motion = random_sines(0.0 * reach, limits, DURATION, seed, HIGHEST)
        q, qd, qdd = motion.sample(speed * times)
        qd, qdd = speed * qd, speed**2 * qdd
        ripple = 1.0 + RIPPLE * np.sin(self._waves * q + self._phase)
        torque = self._truth.torque((q, qd, qdd)) + self._slope * qd
        torque += self._level * ripple * np.sign(qd) + NOISE * self._rng.standard_normal(q.shape)
        stamps = np.round(1e9 * (1.0 + times)).astype(np.int64)
        return Recording.held(f'seed {seed}', self.nominal.joints, stamps, q, qd, torque)


def errors(arm: Description, seed: int) -> FloatArray:
    """Return the errors at twice the speed, in the order of `WAYS`."""
    simulated = Simulated(arm, seed)
    slow, fast = simulated.moved(2 * seed, 1.0), simulated.moved(2 * seed + 1, 2.0)
    settings = Settings(cutoff=CUTOFFS[0], cutoffs=CUTOFFS, bandwidth=BANDWIDTH)
    model = ArmModel(simulated.nominal, DriveModel('symmetric', 'symmetric', offset=True))
    session = identify_and_test(model, [slow], fast, settings)
    with patch.object(fit, 'cross_validated_weight', return_value=PLAIN_WEIGHT) as asked:
        estimate = identify(session.estimate.model, [slow], session.settings)
    blocks, nominal, behind = asked.call_args.args

    def error(prediction: Prediction, predicted: FloatArray) -> float:
        return relative_error(prediction.measured, predicted)

    def weighted(weight: float) -> float:
        found = nearest_links.nearest_links(
            np.vstack(blocks), nominal, behind, weight, estimate.model.positive
        )
        own = replace(estimate, consistent=found)
        prediction = predict(own, [fast], session.settings, '')
        return error(prediction, prediction.consistent)

    with patch.object(nearest_links, 'MASS_STD', 1e9):
        before = weighted(PLAIN_WEIGHT)
    known, tried = session.prediction, [weighted(weight) for weight in WEIGHTS]
    three = (error(known, each) for each in (known.consistent, known.predicted, known.nominal))
    written, unconstrained, described = three
    return np.array([written, before, tried[-1], min(tried), unconstrained, described])


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--runs', type=int, default=20)
    runs = parser.parse_args().runs
    table = Table(title=f'error at twice the speed, %, median of {runs} runs')
    for name in ('', *WAYS, 'reduced, mean / median', 'by the best'):
        table.add_column(name, justify='right')
    console = Console(stderr=True)
    for name, arm in ARMS.items():
        found = np.array([errors(arm, seed) for seed in track(range(runs), name, console=console)])
        cells = [f'{100.0 * each:.2f}' for each in np.median(found, axis=0)]
        reduced = 100.0 * (1.0 - found[:, [0, 3]] / found[:, [1]]).T
        table.add_row(
            name, *cells, *(f'{np.mean(each):.0f} / {np.median(each):.0f} %' for each in reduced)
        )
    Console(width=110).print(table)


if __name__ == '__main__':
    main()
