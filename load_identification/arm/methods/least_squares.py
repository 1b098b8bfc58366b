"""Rows of filtered motion with accelerations, those of every sample at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from load_identification.arm.dynamics.base_parameters import BaseParameters
from load_identification.arm.dynamics.rows import Model
from load_identification.arm.recording import FilteredRecording
from load_identification.numerics.weighted_rows import WeightedRows
from load_identification.typing_aliases import BoolArray, FloatArray, IntArray


def motion_rows(
    models: Sequence[Model], base: BaseParameters, log: FilteredRecording
) -> Iterator[WeightedRows]:
    """Yield rows in the base parameters for models that differ in their drives alone.

    Parameters
    ----------
    models : sequence of Model
    base : BaseParameters
        Of each of them.
    log : FilteredRecording

    Atkeson, An and Hollerbach 1985, section 2; Khosla and Kanade 1987, eq. 11.
    """
    links, of_links, others = by_kind(models[0], base)
    own = models[0].link_rows(*log.motion)[..., of_links]
    for model in models:
        rest = model.other_rows(*log.motion)[..., others]
        yield WeightedRows(
            together(links, own, rest),
            model.measured(log.motion, log.measured),
            one_sensor=model.one_sensor,
        )


def by_kind(model: Model, base: BaseParameters) -> tuple[BoolArray, IntArray, IntArray]:
    """Tell base parameters kept of the links from the others.

    Returns
    -------
    links : (b,) bool array
        Which of the base parameters are the links'.
    of_links, others : int arrays
        Their columns in `Model.link_rows` and `Model.other_rows`.
    """
    links = base.independent < model.links.stop
    return links, base.independent[links], base.independent[~links] - model.links.stop


def together(links: BoolArray, of_links: FloatArray, others: FloatArray) -> FloatArray:
    """Return rows (n, k, b) of all base parameters from those of the links and of the others."""
    rows = np.empty((*of_links.shape[:2], len(links)))
    rows[..., links], rows[..., ~links] = of_links, others
    return rows
