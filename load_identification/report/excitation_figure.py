"""The figure of a planned motion."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import Patch

from load_identification.arm.planning.experiments import CENTRIFUGAL, COUPLING, GRAVITY, INERTIAL
from load_identification.arm.planning.plan_file import Planned
from load_identification.report.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    PURPLE,
    VERMILLION,
    new_figure,
)

JOINT_COLOURS = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, BLACK, GREY)

KIND_COLOURS = {INERTIAL: BLUE, CENTRIFUGAL: ORANGE, COUPLING: GREEN, GRAVITY: PURPLE}

WIDTH, ROW, MARGIN = 11.0, 0.95, 1.2
"""Width of the figure, height of a joint's row, and height above and below the rows [in]."""

SCENE = 3.6
"""Height of the panels with poses [in]."""

POSES, MOST_POSES = 10, 4000
"""Numbers of drawn poses of the arm, and of drawn points on the path of its end."""

MOST_POINTS = 6000
"""Most points of a line: more would be invisible."""


def excitation_figure(planned: Planned) -> Figure:
    """Draw poses of the arm, and position and velocity of each joint within its limits.

    The colour of an experiment shows what it excites.
    """
    times = np.linspace(0.0, planned.path.duration, len(planned.motion.position))
    step = max(1, len(times) // MOST_POINTS)
    joints = planned.arm.joints
    with new_figure(WIDTH, SCENE + MARGIN + ROW * len(joints)) as whole:
        heights = SCENE, MARGIN + ROW * len(joints)
        parts: Any = whole.subfigures(2, 1, height_ratios=heights)
        above, figure = parts
        _draw_poses(above, planned)
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
    return whole


def _draw_poses(figure: SubFigure, planned: Planned) -> None:
    """Draw the arm at equal intervals, in front, side and top view, over the floor."""
    position = planned.motion.position
    lines = planned.arm.skeleton(position[:: 1 + len(position) // MOST_POSES])
    shown = np.linspace(0, len(lines) - 1, POSES).astype(np.int64)
    colours = mpl.colormaps['viridis'](np.linspace(0.0, 0.95, POSES))
    corners = np.append(lines.reshape(-1, 3), np.zeros((1, 3)), axis=0)
    for ax, (across, up), title in zip(
        figure.subplots(1, 3),
        ((0, 2), (1, 2), (0, 1)),
        ('Poses, dark first: x and z [m]', 'y and z [m]', 'x and y [m]'),
        strict=True,
    ):
        for pose, colour in zip(lines[shown], colours, strict=True):
            ax.plot(*pose[:, :, [across, up]].T, color=colour, linewidth=2.2, marker='.')
        ax.plot(*lines[:, -1, 1][:, [across, up]].T, color=GREY, linewidth=0.7)
        if planned.floor is not None and up == 2:
            ax.axhspan(min(corners[:, 2].min(), planned.floor) - 0.1, planned.floor, color=LIGHT)
        ax.set_title(title)
        ax.set_aspect('equal', adjustable='datalim')


def _mark_experiments(figure: SubFigure, axes: list[Axes], planned: Planned) -> None:
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
