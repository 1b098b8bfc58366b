"""The picture of a planned motion."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from load_identification.arm.planning.experiments import CENTRIFUGAL, COUPLING, GRAVITY, INERTIAL
from load_identification.arm.planning.plan_file import Planned
from load_identification.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    new_figure,
)

JOINT_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, BLACK, GREY)

KIND_COLOURS = {INERTIAL: BLUE, CENTRIFUGAL: ORANGE, COUPLING: GREEN, GRAVITY: PURPLE}

WIDTH, ROW, MARGIN = 11.0, 0.95, 1.2
"""Of the figure, of a joint's row, and of what is above and below them [in]."""

MOST_POINTS = 6000
"""Of a line: more are not seen."""


def excitation_figure(planned: Planned) -> Figure:
    """Draw each joint's position within its limits, and its velocity in parts of its limit.

    Experiments are coloured by what they excite.
    """
    times = np.linspace(0.0, planned.path.duration, len(planned.motion.position))
    step = max(1, len(times) // MOST_POINTS)
    joints = planned.arm.joints
    with new_figure(WIDTH, MARGIN + ROW * len(joints)) as figure:
        axes = figure.subplots(len(joints), 2, sharex=True, squeeze=False)
        for k, (joint, (left, right)) in enumerate(zip(joints, axes, strict=True)):
            colour = JOINT_COLOURS[k % len(JOINT_COLOURS)] if planned.plan is None else BLACK
            width = 1.2 if planned.plan is None else 0.7
            position = planned.motion.position[::step, k]
            left.plot(times[::step], position, color=colour, linewidth=width)
            velocity = 100.0 * planned.motion.velocity[::step, k] / planned.limits.velocity[k]
            right.plot(times[::step], velocity, color=colour, linewidth=width)
            for bound in (planned.limits.lower[k], planned.limits.upper[k]):
                left.axhline(bound, color=GREY, linestyle=':', linewidth=0.9)
            for bound in (-100.0, 100.0):
                right.axhline(bound, color=GREY, linestyle=':', linewidth=0.9)
            left.set_ylabel(joint, rotation=0, ha='right', va='center')
            right.set_yticks([-100.0, 0.0, 100.0])
            right.set_ylim(-125.0, 125.0)
            left.margins(x=0.01)
        axes[0, 0].set_title('Position [rad, m]')
        axes[0, 1].set_title('Velocity [% of the limit]')
        for ax in axes[-1]:
            ax.set_xlabel('time [s]')
        figure.align_ylabels(axes[:, 0])
        if planned.plan is not None:
            _mark_experiments(figure, list(axes.ravel()), planned)
    return figure


def _mark_experiments(figure: Figure, axes: list[Axes], planned: Planned) -> None:
    """Shade each experiment in the colour of its kind."""
    plan = planned.plan
    if plan is None:
        return
    for experiment, begin in zip(plan.experiments, plan.begins, strict=True):
        for ax in axes:
            ax.axvspan(
                begin,
                begin + experiment.motion.duration,
                color=KIND_COLOURS[experiment.kind],
                alpha=0.3,
                linewidth=0.0,
            )
    present = [kind for kind in KIND_COLOURS if kind in {e.kind for e in plan.experiments}]
    handles = [Patch(color=KIND_COLOURS[kind], alpha=0.3, label=kind) for kind in present]
    figure.legend(handles=handles, loc='outside upper center', ncols=len(handles))
