"""The experiment of Liu, Iagnemma, Dubowsky and Morel 1998 again, on a simulated PUMA.

The arm stands on a six-axis sensor in MuJoCo; joints 1 and 2 move for 1.6 s, the others are held.
Encoders and sensor are read every 8 ms, weight and offset are taken off by a static replay, and
both sides go through the paper's filters, l = 1 and d = 50 rad/s. Printed are the twelve
parameters of the paper by least squares and by ridge regression, beside the truth, and how well
they predict another motion; drawn are the channels of figure 5. Exit status: 0 if the twelve
parameters are all there is to tell and the other motion is predicted within 5 % of each range.

    python benchmark/paper_liu.py [--ridge 0.01] [--seed 0] [--figure FILE.png]

The curves of the paper's figures 3 and 4 are lost; of the motions only range and length are known.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
import pinocchio
from rich.console import Console
from rich.table import Table

from load_identification.arm.arm_estimate import ArmEstimate
from load_identification.arm.dynamics.rows import WrenchModel
from load_identification.arm.dynamics.tree import FROM_PINOCCHIO, PARAMETERS, Arm
from load_identification.arm.identification import identify
from load_identification.arm.methods.acceleration_free import low_passed_rows
from load_identification.arm.prediction import Prediction
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.interface.names import INTERVAL
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.motion.joint_path import JointPath, Move, Piece
from load_identification.motion.sines import Sines
from load_identification.numerics.weighted_solution import Solver
from load_identification.report.arm_figures import draw_prediction
from load_identification.simulation.in_mujoco.puma import (
    HELD,
    PLACEMENT,
    follow,
    puma_with_inertials,
    record,
)
from load_identification.simulation.robots import puma_description
from load_identification.typing_aliases import FloatArray

JOINTS = ('joint_1', 'joint_2')
DURATION = 1.6
"""Of both motions, figures 3 to 5 [s]."""

BANDWIDTHS = (1.0, 50.0)
"""l and d, section 4 [rad/s]."""

ALLOWED = 0.05
"""Root mean square error of a channel as a share of its range [-]."""

SHOULDER, ASIDE = 0.672, 0.15005
"""Height of joint 2 over the root, and the paper's d2; that of config/puma.urdf is at joint 3 [m].
Any would do: d2 says only where the paper writes down what link 2 is."""

TWELVE = (
    ('m1 r1x', {'1.mcx': 1.0}, 0.1125),
    ('m1 r1z + d2 m2 + m2 r2z', {'1.mcz': 1.0, '2.m': ASIDE, '2.mcz': 1.0}, -4.2455),
    ('m2 (a2 + r2x)', {'2.mcx': 1.0}, 2.2202),
    ('m2 r2y', {'2.mcy': 1.0}, -0.1834),
    ('I1xy', {'1.Ixy': 1.0}, -0.2278),
    (
        'I1yy + m2 d2² + 2 d2 m2 r2z + I2xx',
        {'1.Iyy': 1.0, '2.m': ASIDE**2, '2.mcz': 2.0 * ASIDE, '2.Ixx': 1.0},
        1.2489,
    ),
    ('I1yz', {'1.Iyz': 1.0}, 0.1338),
    ('I2xy', {'2.Ixy': 1.0}, 0.1213),
    ('I2xz', {'2.Ixz': 1.0}, -0.1247),
    ('I2yy − I2xx', {'2.Iyy': 1.0, '2.Ixx': -1.0}, 0.8596),
    ('I2yz', {'2.Iyz': 1.0}, -0.0086),
    ('I2zz', {'2.Izz': 1.0}, 0.9867),
)
"""The paper's parameters, of which of the twenty about its frames they are sums, and its estimates
[kg m, kg m²]."""


def identification_motion() -> Piece:
    """Swing joints 1 and 2 within 50° and 40°, the ranges of figure 3, within a PUMA's torques."""
    center = np.concatenate([[0.2, -0.9], HELD])
    amplitude, frequency = np.zeros((6, 1)), np.zeros((6, 1))
    amplitude[:2, 0] = np.deg2rad([16.0, 11.0])
    frequency[:2, 0] = 2.0 * np.pi * np.array([0.9, 1.2])
    return Sines(center, center, DURATION, 0.5, amplitude, frequency, np.zeros((6, 1)))


def verification_motion() -> Piece:
    """Go from place to place and on, farther than joint 1 has swung."""
    a, b, c = (np.concatenate([place, HELD]) for place in ([-0.9, -0.5], [1.0, -1.2], [0.3, -0.6]))
    return JointPath((Move(a, b, 0.9), Move(b, c, DURATION - 0.9)))


def measured(motion: Piece, seed: int) -> Recording:
    """Return the wrench at joint 1 that motion causes, eq. 1 and 21, and the two joints."""
    recording, replay = record(follow(motion), seed)
    whole = recording.without_weight(replay).whole()
    rotation, position = PLACEMENT
    force, torque = (part @ rotation.T for part in np.hsplit(whole.wrench, 2))
    wrench = np.hstack([force, torque + np.cross(position, force)])
    q, qd = whole.position[:, :2], whole.velocity[:, :2]
    return Recording.held('motion', JOINTS, whole.stamps, q, qd, wrench)


def true_parameters() -> FloatArray:
    """Return those of links 1 and 2, what is held being part of link 2, by Pinocchio (20,)."""
    whole = pinocchio.buildModelFromXML(puma_with_inertials())
    held = np.concatenate([[0.0, 0.0], HELD])
    model = pinocchio.buildReducedModel(whole, [3, 4, 5, 6], held)
    bodies = [inertia.toDynamicParameters()[FROM_PINOCCHIO] for inertia in model.inertias]
    return np.concatenate(bodies[1:])


def to_paper() -> FloatArray:
    """Return the matrix (12, 20) from the parameters of both links to the paper's twelve.

    The paper's first frame stands at the shoulder, y downwards; its second on joint 2, d2 away.
    """
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    frames = ((turn, (0.0, 0.0, SHOULDER)), (np.eye(3), (0.0, 0.0, ASIDE)))
    carried = np.zeros((20, 20))
    for k, (rotation, translation) in enumerate(frames):
        columns = [
            InertialParameters.from_vector(unit).transformed(rotation, translation).to_vector()
            for unit in np.eye(10)
        ]
        carried[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = np.array(columns).T
    names = [f'{link}.{name}' for link in (1, 2) for name in PARAMETERS]
    rows = np.array([[terms.get(name, 0.0) for name in names] for _, terms, _ in TWELVE])
    return np.asarray(rows @ np.linalg.inv(carried))


def predicted(estimate: ArmEstimate, recording: Recording) -> Prediction:
    """Predict filtered wrenches from the first sample on: without a weight there is no offset."""
    rows, seconds, _ = low_passed_rows(estimate.model, estimate.base, [recording], BANDWIDTHS)
    values, model = rows.matrix @ estimate.values, estimate.model
    return Prediction(
        source='another motion of joints 1 and 2',
        channels=model.channels,
        units=model.channel_units,
        seconds=seconds,
        measured=rows.values,
        predicted=values,
        consistent=values,
        nominal=np.zeros_like(values),
        bandwidth=BANDWIDTHS[1] / (2.0 * np.pi),
    )


def main() -> int:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--ridge', type=float, default=0.01, help='of the ridge regression')
    parser.add_argument('--seed', type=int, default=0, help='of the noise')
    parser.add_argument('--figure', type=Path, help='figure 5 as PNG')
    arguments = parser.parse_args()
    model = WrenchModel(Arm(puma_description(), joints=JOINTS), weightless=True)
    first, second = (
        measured(motion, arguments.seed + 1000 * k)
        for k, motion in enumerate((identification_motion(), verification_motion()))
    )
    squares, ridge = (
        identify(
            model,
            [first],
            Settings('acceleration_free', bandwidths=BANDWIDTHS, solver=Solver(ridge=value)),
        )
        for value in (0.0, arguments.ridge)
    )
    paper, base = to_paper(), squares.base
    ranks = [int(np.linalg.matrix_rank(m)) for m in (paper, np.vstack([paper, base.matrix]))]
    same = ranks == [12, 12] and len(base.independent) == 12
    back = paper @ np.linalg.pinv(base.matrix)
    table = Table(
        *('parameter of the paper', "the paper's arm", 'true here', 'least squares', '± 95 %'),
        f'ridge {arguments.ridge:g}',
        title='Liu et al. 1998, section 4: twelve parameters of two joints [kg·m, kg·m²]',
    )
    true, std = paper @ true_parameters(), np.sqrt(np.diag(back @ squares.covariance @ back.T))
    columns = (true, back @ squares.values, INTERVAL * std, back @ ridge.values)
    for (text, _, theirs), *values in zip(TWELVE, *columns, strict=True):
        table.add_row(text, f'{theirs:.4f}', *(f'{value:.4f}' for value in values))
    console = Console(width=110)
    console.print(table)
    console.print(
        f'Independent in any motion: {len(base.independent)}, the same as the twelve: '
        f'{"yes" if same else "no"}. Condition number {squares.condition:.0f}.\n'
    )
    table = Table('error on the other motion, % of range', *model.channels)
    predictions = [predicted(estimate, second) for estimate in (squares, ridge)]
    shares = [prediction.of_range(prediction.predicted) for prediction in predictions]
    for name, share in zip(('least squares', f'ridge {arguments.ridge:g}'), shares, strict=True):
        table.add_row(name, *(f'{100.0 * value:.2f}' for value in share))
    console.print(table)
    console.print(
        'Here joint 3 gives way by 5 mrad under the motion though it is held, and the replay '
        'stops at every fifth sample, not at every one: so some intervals do not hold.'
    )
    if arguments.figure is not None:
        draw_prediction(arguments.figure, predictions[0])
    return 0 if same and shares[0].max() < ALLOWED else 1


if __name__ == '__main__':
    sys.exit(main())
