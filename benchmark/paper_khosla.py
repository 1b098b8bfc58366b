"""The experiment of Khosla and Kanade 1987 again: six joints, tachometers, a five-point filter.

Their recordings are lost, so a simulated CMU DD Arm II has as its truth what they estimated in
tables 4 to 6, and is identified from what they started with: positions from resolvers of 16 bits
and velocities from tachometers every 2 ms, accelerations from velocities by the parabola through
five points (section 5.1), two motions and two sets of initial values (section 5.3). Printed: what
each differentiator makes of the velocities, and the combinations of parameters that can be told,
with the paper's filter by least squares over all joints and joint by joint, and with our filter.
Tables 2 and 3: `benchmark/arm.py`. Exit status: 0 if the parameters that act are those of the
tables and least squares finds the torques of another motion within 1 %.

    python benchmark/paper_khosla.py [--seed 0]

The paper's figure of the arm and its motions are lost: lengths, twists of the wrist and motions
are made up, and so is the noise of the tachometers. How the mass 4 + 5 is shared out is, too.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from load_identification.arm.dynamics.base_parameters import NOT_IDENTIFIABLE, arm_base_parameters
from load_identification.arm.dynamics.rows import JointMotion
from load_identification.arm.filtering import FilteredRecording, filtered
from load_identification.arm.methods.least_squares import LEAST_SHARE, joint_stages, motion_rows
from load_identification.arm.prediction import relative_error
from load_identification.arm.recording import Recording
from load_identification.numerics.weighted_solution import Solver, solve
from load_identification.simulation.khosla_kanade import CMU_DD_ARM_II, PaperArm, Row, nearest
from load_identification.simulation.motions import smooth_motion
from load_identification.typing_aliases import FloatArray

STEP = 0.002
"""Between samples, section 5.1 [s]."""

RESOLVER = 2.0 * np.pi / 65536.0
TACHOMETER = 1e-3
"""Step of positions, of 16 bits a turn (section 4), and noise of velocities [rad, rad/s]."""

SECONDS, CUTOFF = 10.0, 20.0
"""Of a motion [s], and of our differentiator [Hz]."""

TABLES = {
    '6.Ixx': (0.000426, 0.002092), '6.Ixy': (0.0, 0.000011), '6.Ixz': (0.0, 0.000022),
    '6.Iyy': (0.000421, 0.001979), '6.Iyz': (0.0, 0.000010), '6.Izz': (0.000047, 0.000310),
    '6.mcx': (0.0, -0.000090), '6.mcy': (0.0, -0.000187), '6.mcz': (0.002199, 0.008709),
    '6.m': (0.269, 0.90018),
    '5.Ixx': (0.002018, 0.002602), '5.Ixy': (0.0, 0.000302), '5.Ixz': (0.0, -0.000108),
    '5.Iyy': (0.001049, 0.001349), '5.Iyz': (-0.000092, -0.000070),
    '5.Izz': (0.001396, 0.001211), '5.mcx': (0.0, 0.000981), '5.mcy': (0.005130, 0.006744),
    '5.mcz': (-0.016784, -0.019689), '5.m': (1.0, 1.0),
    '4.m': (1.817, 2.0895), '4.Ixx': (0.023775, 0.030765), '4.Ixy': (0.0, -0.00100),
    '4.Ixz': (0.0, 0.000302), '4.Iyy': (0.004055, 0.003655), '4.Iyz': (0.003083, 0.004207),
    '4.Izz': (0.021652, 0.029002), '4.mcx': (0.0, -0.002402), '4.mcy': (0.134764, 0.160372),
    '4.mcz': (0.043011, 0.081462),
    '3.Ixx': (0.014622, 0.015192), '3.Ixy': (0.0, 0.000726), '3.Ixz': (0.0, 0.000109),
    '3.Iyy': (0.006615, 0.006209), '3.Iyz': (0.001269, 0.001872),
    '3.Izz': (0.012432, 0.014080), '3.mcx': (0.0, 0.015242), '3.mcy': (-0.039703, -0.132251),
    '3.mcz': (-0.012487, -0.040521), '3.m': (2.801, 2.92106),
    '2.Iyy': (0.264736, 0.322156), '2.mcx': (-1.039971, -1.156482),
    '2.mcz': (0.008722, 0.008234), '2.m': (7.894, 8.2501),
    '1.Izz': (1.193645, 1.270784), '1.mcx': (-5.925900, -6.478305),
    '1.m': (19.753000, 20.152630),
}  # fmt: skip
"""Tables 4 to 6: initial and estimated value of each parameter [kg, kg m, kg m²]."""

WRIST = (
    Row(False, 0.5 * np.pi, 0.0, 0.2),
    Row(False, -0.5 * np.pi, 0.0, 0.0),
    Row(False, 0.0, 0.0, 0.1),
)

SIX_JOINTS = PaperArm(
    rows=(*CMU_DD_ARM_II.rows, *WRIST),
    true={name: estimated for name, (_, estimated) in TABLES.items()},
    initial={name: initial for name, (initial, _) in TABLES.items()},
)


def five_points(velocity: FloatArray) -> FloatArray:
    """Return the slopes of least-squares parabolas through five samples each, (n - 4, J).

    f'(x) = [-2 f(x - 2T) - f(x - T) + f(x + T) + 2 f(x + 2T)] / (10 T), section 5.1
    """
    v = velocity
    return (-2.0 * v[:-4] - v[1:-3] + v[3:-1] + 2.0 * v[4:]) / (10.0 * STEP)


def sensed(motion: JointMotion, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return what resolvers and tachometers say of a motion."""
    q, qd, _ = motion
    noise = TACHOMETER * np.random.default_rng(seed).standard_normal(qd.shape)
    return np.round(q / RESOLVER) * RESOLVER, qd + noise


def recorded(motion: JointMotion, effort: FloatArray, seed: int) -> Recording:
    """Return what is recorded of a motion, efforts being as commanded."""
    q, qd = sensed(motion, seed)
    stamps = np.round(1e9 * STEP * np.arange(len(q))).astype(np.int64)
    names = SIX_JOINTS.model().arm.joints
    return Recording.held('simulated', names, stamps, q, qd, effort)


def by_five_points(recording: Recording) -> FilteredRecording:
    """Return it with accelerations as in the paper, and no other filter."""
    inside = slice(2, -2)
    whole = recording.whole()
    motion = (whole.position[inside], whole.velocity[inside], five_points(whole.velocity))
    return FilteredRecording(recording.seconds[inside], *motion, whole.wrench[inside])


def show_differentiators(console: Console, motion: JointMotion, recording: Recording) -> None:
    """Print how far accelerations are off, by differentiator."""
    qd, true = recording.whole().velocity, motion[2]
    ours = filtered([recording], CUTOFF)
    then = [np.interp(ours.seconds, recording.seconds, column) for column in true.T]
    table = Table('accelerations from the velocities', 'rms error [rad/s²]')
    for name, error in (
        ('difference of two neighbours', (qd[2:] - qd[:-2]) / (2.0 * STEP) - true[1:-1]),
        ('parabola through five (the paper)', five_points(qd) - true[2:-2]),
        (f'ours, {CUTOFF:g} Hz, positions too', ours.motion[2] - np.column_stack(then)),
    ):
        table.add_row(name, f'{np.sqrt(np.mean(error**2)):.4f}')
    console.print(table)


def main() -> int:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('--seed', type=int, default=0, help='of motions and noise')
    seed = parser.parse_args().seed
    paper, console = SIX_JOINTS, Console(width=132)
    model, carried = paper.model(), paper.from_paper_frames()
    base = arm_base_parameters(model)
    true, initial = (paper.vector(values) for values in (paper.true, paper.initial))
    motions = [
        smooth_motion(np.random.default_rng(seed + k), 6, round(SECONDS / STEP), STEP)
        for k in range(3)
    ]
    efforts = [model.predict(carried @ true, motion) for motion in motions]
    show_differentiators(console, motions[0], recorded(motions[0], efforts[0], seed))

    # The combinations about the paper's frames.
    told = paper.base()
    acting = {n for n, c in zip(told.names, told.classes, strict=True) if c != NOT_IDENTIFIABLE}
    found: dict[str, list[FloatArray]] = {}
    errors: dict[str, list[float]] = {}
    # The other set of initial values is zero: the paper does not say what its was.
    for k, first in product(range(2), (initial, np.zeros_like(initial))):
        recording = recorded(motions[k], efforts[k], seed + k)
        five, ours = (
            motion_rows(model, base, log)(model)
            for log in (by_five_points(recording), filtered([recording], CUTOFF))
        )
        for name, stages, least in (
            ('five points', [five], 1e-8),
            ('by joints', joint_stages(five), LEAST_SHARE),
            ('our filter', [ours], 1e-8),
        ):
            start = base.to_base(carried @ first)
            values = solve(stages, start, Solver(truncation=least)).values
            full = nearest(base, values, carried @ first)
            found.setdefault(name, []).append(told.matrix @ np.linalg.solve(carried, full))
            error = relative_error(efforts[2], model.predict(full, motions[2]))
            errors.setdefault(name, []).append(error)
    title = "Tables 4 to 6: the paper's estimates are the truth here [kg, kg·m, kg·m²]"
    table = Table(title=title, box=box.SIMPLE_HEAD)
    table.add_column('parameter or combination', no_wrap=True, width=30)
    for heading in ('initial', 'true', *(part for name in found for part in (name, 'farthest'))):
        table.add_column(heading, justify='right', no_wrap=True)
    for i, (row, text) in enumerate(zip(told.matrix, told.combinations, strict=True)):
        cells = []
        for values in found.values():
            four = np.array(values)[:, i]
            cells += [f'{four.mean():.5f}', f'{np.abs(four - four.mean()).max():.5f}']
        table.add_row(text, f'{row @ initial:.5f}', f'{row @ true:.5f}', *cells)
    console.print(table)
    wanted = told.matrix @ true
    for name, values in found.items():
        off = np.abs(np.array(values) - wanted).max(axis=0)
        within = int(np.sum(off <= 0.05 * np.abs(wanted)))
        console.print(
            f'{name}: {within} of {len(wanted)} within 5 % of the truth in all four experiments; '
            f'torques of another motion are off by {100.0 * max(errors[name]):.2f} % at most'
        )
    same = acting == set(TABLES)
    console.print(
        f'{len(acting)} parameters act, {"" if same else "not "}those of the tables, in '
        f'{len(wanted)} independent combinations. In the paper the values of four experiments are '
        'within 5 % of one another.'
    )
    return 0 if same and max(errors['five points']) < 0.01 else 1


if __name__ == '__main__':
    sys.exit(main())
