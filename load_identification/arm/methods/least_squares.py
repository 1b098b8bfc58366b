"""Build rows from filtered motion with accelerations, for all joints at once or joint by joint."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from load_identification.arm.dynamics.base_parameters import BaseParameters
from load_identification.arm.dynamics.rows import JointMotion, Model
from load_identification.arm.filtering import FilteredRecording
from load_identification.numerics.weighted_rows import WeightedRows

AT_ONCE = 4096
"""Number of samples whose columns are computed at once."""

LEAST_SHARE = 0.1
"""Least sensitivity of each joint to a direction in noise, as a share of its best sensitivity. A
poorly observed direction spoils all later stages; it is left to the joints nearer the base.
Without noise about 1e-6 is sufficient [-]."""


def motion_rows(
    model: Model, base: BaseParameters, log: FilteredRecording
) -> Callable[[Model], WeightedRows]:
    """Return a function that builds rows in the base parameters; models may differ in drives only.

    Its results share their memory: each call overwrites the previous result.

    Atkeson, An and Hollerbach 1985, section 2; Khosla and Kanade 1987, eq. 11.
    """
    links = base.independent < model.links.stop
    of_links, others = base.independent[links], base.independent[~links] - model.links.stop
    matrix = np.zeros((*log.measured.shape, len(links)))
    for first, motion in zip(range(0, len(matrix), AT_ONCE), pieces(log), strict=True):
        matrix[first : first + AT_ONCE, :, links] = model.link_rows(*motion)[..., of_links]
    matrix = model.with_one_offset(log.seconds, matrix)
    parts = [matrix[k : k + AT_ONCE] for k in range(0, len(matrix), AT_ONCE)]

    def rows_of(model: Model) -> WeightedRows:
        for part, motion in zip(parts, pieces(log), strict=True):
            part[..., ~links] = model.other_rows(*motion)[..., others]
        measured = model.measured(log.motion, log.measured)
        measured = model.with_one_offset(log.seconds, measured)
        return WeightedRows(matrix, measured, one_sensor=model.one_sensor)

    return rows_of


def pieces(log: FilteredRecording) -> Iterator[JointMotion]:
    """Yield the motion in pieces: all columns of all samples would take gigabytes."""
    for first in range(0, len(log.seconds), AT_ONCE):
        q, qd, qdd = (each[first : first + AT_ONCE] for each in log.motion)
        yield q, qd, qdd


def joint_stages(rows: WeightedRows) -> list[WeightedRows]:
    """Return the rows of each joint as a separate stage, the last joint (the tip) first.

    A joint's effort depends only on the links that it moves. The last joint identifies some of the
    last link's parameters. Each joint before it identifies more, given those already known. On
    line, one recording serves all joints. Off line, each may have its own, with the joints before
    it locked; few parameters then have to be resolved at once.

    Parameters
    ----------
    rows : WeightedRows
        Channels in the order of the joints, parents before their children.

    Khosla and Kanade 1987, sections 3.1 and 3.2, eq. 11.
    """
    joints = range(rows.values.shape[1])
    return [WeightedRows(rows.matrix[:, [j]], rows.values[:, [j]]) for j in reversed(joints)]
