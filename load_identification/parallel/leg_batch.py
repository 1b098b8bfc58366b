"""The batch that a parallel machine's actuators send."""

from __future__ import annotations

from dataclasses import dataclass

from load_identification.typing_aliases import FloatArray, IntArray


@dataclass(frozen=True)
class LegBatch:
    """Leg states of one layout, as they came.

    Attributes
    ----------
    names : tuple of str
        Of the J joints, in the order of the columns.
    stamps : (n,) int array
        Header stamps [ns].
    position, velocity, effort : (n, J) arrays
        [m, m/s, N], effort positive where a leg pushes; NaN where a message does not carry the
        value.
    """

    names: tuple[str, ...]
    stamps: IntArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
