"""The figure of the payload: its body in space."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.shapes import Shape, shape_of
from load_identification.report.snapshot import Snapshot
from load_identification.report.style import (
    AXES,
    BLACK,
    BLUE,
    GREY,
    PURPLE,
    VERMILLION,
    new_figure,
)
from load_identification.typing_aliases import FloatArray

FACES = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))
"""Corners of each face of a box, numbered as by `itertools.product`."""


def payload_figure(snapshot: Snapshot, frame: str, truth: FloatArray | None) -> Figure:
    """Draw the box of equal inertia in S, and the 95 % ellipsoid of the centre of mass.

    Parameters
    ----------
    snapshot : Snapshot
        Its centre of mass is identified.
    frame : str
        Name of S.
    truth : (16,) array or None
    """
    body = InertialParameters.from_vector(snapshot.parameters)
    shape = shape_of(body, snapshot.covariance[:10, :10])
    inertia = bool(snapshot.identified[4:].all())
    with new_figure(11.0, 5.8) as figure:
        # Constrained layout wastes space around three-dimensional axes.
        figure.set_layout_engine('none')
        left: Any = figure.add_axes((0.0, 0.02, 0.52, 0.86), projection='3d')
        right: Any = figure.add_axes((0.53, 0.06, 0.42, 0.80), projection='3d')
        _frame_points(left, _draw_body(left, shape, inertia), 'mm')
        figure.text(0.03, 0.94, f'payload in {frame}', weight='bold', size=12)
        if not inertia:
            figure.text(0.03, 0.895, 'inertia not identified: no box', color=VERMILLION)
        elif shape.sides is None:
            figure.text(0.03, 0.895, 'no real body has this inertia', color=VERMILLION)
        else:
            figure.text(0.03, 0.915, _moments_in_words(shape), color=PURPLE, va='top')
        figure.text(0.53, 0.94, 'centre of mass, 95 % ellipsoid', weight='bold', size=12)
        _draw_ellipsoid(right, shape, truth)
    return figure


def _draw_body(ax: Any, shape: Shape, inertia: bool) -> FloatArray:
    """Draw sensor frame, centre of mass and, if identified, box and axes; return the points."""
    center = 1e3 * shape.center
    points = [np.zeros(3), center]
    if inertia and shape.sides is not None:
        signs = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
        corners = center + 1e3 * (signs * shape.sides) @ shape.axes.T
        _draw_box(ax, corners)
        points += list(corners)
        for k in range(3):
            # Beyond the box, so that short axes are visible.
            arm = 1e3 * (0.5 * shape.sides[k] + 0.2 * shape.sides.max()) * shape.axes[:, k]
            style = '-' if shape.cones[k].meaningful else ':'
            _draw_arrow(ax, center, arm, PURPLE, f'{k + 1}', style)
            points.append(center + arm)
    size = 0.35 * float(np.ptp(np.array(points), axis=0).max())
    for k, axis in enumerate('xyz'):
        _draw_arrow(ax, np.zeros(3), size * np.eye(3)[k], AXES[k], axis)
    ax.scatter(*center, color=VERMILLION, s=45, depthshade=False, zorder=10)
    ax.plot(*zip(np.zeros(3), center, strict=True), color=GREY, linestyle=':')
    return np.vstack([points, size * np.eye(3)])


def _draw_box(ax: Any, corners: FloatArray) -> None:
    faces = Poly3DCollection(
        [corners[list(face)] for face in FACES],
        facecolors=BLUE,
        edgecolors=BLUE,
        alpha=0.18,
        linewidths=1.2,
    )
    ax.add_collection3d(faces)


def _draw_arrow(
    ax: Any, origin: FloatArray, arm: FloatArray, color: str, name: str, style: str = '-'
) -> None:
    ends = zip(origin, origin + arm, strict=True)
    ax.plot(*ends, color=color, linewidth=2.2, linestyle=style)
    ax.text(*(origin + 1.13 * arm), name, color=color, ha='center', va='center', weight='bold')


def _draw_ellipsoid(ax: Any, shape: Shape, truth: FloatArray | None) -> None:
    """Draw the 95 % ellipsoid of the centre of mass."""
    radii = shape.uncertainty.semi_axes
    scale, unit = (1e6, 'µm') if radii.max() < 1e-4 else (1e3, 'mm')
    u, v = np.mgrid[0 : 2 * np.pi : 40j, 0 : np.pi : 20j]
    sphere = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)], axis=-1)
    surface = scale * (sphere * radii) @ shape.uncertainty.axes.T
    x, y, z = np.moveaxis(surface, -1, 0)
    ax.plot_surface(x, y, z, color=BLUE, alpha=0.22, linewidth=0)
    ax.plot_wireframe(x, y, z, color=BLUE, linewidth=0.4, rstride=4, cstride=8)
    ax.scatter(0, 0, 0, color=VERMILLION, s=45, depthshade=False, label='estimate')
    points = surface.reshape(-1, 3)
    if truth is not None:
        error = scale * (truth[1:4] - shape.center)
        ax.scatter(*error, color=BLACK, marker='x', s=60, depthshade=False, label='truth')
        points = np.vstack([points, error])
    ax.legend(loc='upper left', bbox_to_anchor=(0.0, 1.08))
    _frame_points(ax, points, unit)


def _frame_points(ax: Any, points: FloatArray, unit: str) -> None:
    """Give all axes labels and a common scale that fits the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.53 * float((high - low).max())
    for axis, middle in zip('xyz', 0.5 * (low + high), strict=True):
        getattr(ax, f'set_{axis}lim')(middle - half, middle + half)
        getattr(ax, f'set_{axis}label')(f'{axis} [{unit}]', labelpad=7)
        # Labels at the ends of two axes would meet.
        ticks = MaxNLocator(5).tick_values(middle - half, middle + half)
        ticks = ticks[np.abs(ticks - middle) < 0.75 * half]
        getattr(ax, f'{axis}axis').set_major_locator(FixedLocator(ticks))
    ax.tick_params(labelsize=10, pad=3)
    ax.tick_params(axis='z', pad=6)
    ax.set_box_aspect((1, 1, 1))
    ax.view_init(elev=22, azim=-58)


def _moments_in_words(shape: Shape) -> str:
    moments = ', '.join(f'$I_{k + 1}$ = {_short(shape.moments[k])}' for k in range(3))
    vague = [f'{k + 1}' for k in range(3) if not shape.cones[k].meaningful]
    words = f'\naxes {" and ".join(vague)} dotted: not distinguished' if vague else ''
    return f'{moments} kg·m²{words}'


def _short(moment: float) -> str:
    """Return a moment with three digits."""
    mantissa, exponent = f'{moment:.2e}'.split('e')
    return f'{mantissa}·10$^{{{int(exponent)}}}$'
