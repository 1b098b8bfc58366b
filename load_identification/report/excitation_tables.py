"""Tables that `plan_excitation` prints of a planned motion."""

from __future__ import annotations

import numpy as np
from rich import box
from rich.table import Table

from load_identification.arm.planning.plan_file import ExperimentPlan, Planned
from load_identification.motion.sines import Oscillation

MOST_ROWS = 40
"""Most experiments that are printed; the file has all."""


def summary(planned: Planned) -> str:
    """Return a summary of the plan in a few lines."""
    if planned.plan is None:
        what = 'Fourier motion of all joints'
        compared = 'best of those drawn'
    else:
        what = f'{len(planned.plan.experiments)} of {planned.candidates} feasible experiments'
        compared = 'all experiments'
    other = planned.compared
    beside = f'{compared} {other.log_determinant:.1f}', f'{compared} {other.condition:.4g}'
    if not np.isfinite(other.condition):
        beside = ('none of those drawn keeps clear and determines all',) * 2
    return (
        f'{what}, {planned.path.duration:.1f} s, for {planned.parameters} parameters\n'
        f'log-determinant of the information {planned.worth.log_determinant:.1f} '
        f'({beside[0]})\n'
        f'Frobenius condition number {planned.worth.condition:.4g} (at the very least '
        f'{planned.parameters}; {beside[1]})\n'
        f'Least clearance {1000.0 * planned.clearance:.0f} mm, {planned.nearest}\n'
        'Not checked: the way to the start, and what the description lacks.'
    )


def joint_table(planned: Planned) -> Table:
    """Make a table of each joint's motion and the used share of its limits."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column('joint', overflow='fold')
    for heading in ('start', 'from', 'to', 'velocity', 'accel.', 'torque'):
        table.add_column(heading, justify='right', no_wrap=True)
    motion, limits = planned.motion, planned.limits
    modelled = bool(planned.arm.nominal.any())
    for k, joint in enumerate(planned.arm.joints):
        q = motion.position[:, k]
        peaks = [
            f'{peak:.2f} {peak / limit:4.0%}'
            for peak, limit in (
                (np.abs(motion.velocity[:, k]).max(), limits.velocity[k]),
                (np.abs(motion.acceleration[:, k]).max(), limits.acceleration[k]),
            )
        ]
        effort = np.abs(planned.torque[:, k]).max()
        limit = planned.arm.effort_limits[k]
        share = f' {effort / limit:3.0%}' if 0.0 < limit < np.inf else ''
        peaks.append(f'{effort:.3g}{share}' if modelled else '')
        table.add_row(joint, *(f'{x:.2f}' for x in (q[0], q.min(), q.max())), *peaks)
    table.caption = (
        'SI units; per cent of the limits as scaled, and of the effort limit.'
        if modelled
        else 'SI units; per cent of the limits as scaled. The description has no inertias.'
    )
    table.caption_justify = 'left'
    return table


def experiment_table(plan: ExperimentPlan) -> Table:
    """Make a table of the experiments in order."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ('begin', 'motion', 'driven', 'read at', 'amplitude', 'Hz', 's'):
        numeric = heading in ('begin', 'amplitude', 'Hz', 's')
        table.add_column(heading, justify='right' if numeric else 'left', overflow='fold')
    rows = list(zip(plan.experiments, plan.begins, strict=True))
    for experiment, begin in rows[:MOST_ROWS]:
        motion, driven = experiment.motion, experiment.driven
        if isinstance(motion, Oscillation):
            amplitude, frequency = motion.amplitude[driven], f'{motion.frequency:.2f}'
        else:
            amplitude, frequency = abs(motion.goal - motion.start)[driven] / 2.0, ''
        table.add_row(
            f'{begin:.1f}',
            experiment.kind,
            plan.joints[driven],
            plan.joints[experiment.measured],
            f'{amplitude:.3f}',
            frequency,
            f'{motion.duration:.1f}',
        )
    if len(rows) > MOST_ROWS:
        table.add_row('…', f'and {len(rows) - MOST_ROWS} more')
    return table
