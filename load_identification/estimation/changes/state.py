"""State and scores of the change detection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from load_identification.estimation.changes.hypotheses import Hypothesis
from load_identification.estimation.identifiability import TURN_OR_MOVE

WHY_CHANGED = (
    f'load or offset changed: {TURN_OR_MOVE}, to tell which; if neither can be done, call '
    'reset if the load has changed, or with nothing but the tool on reset and calibrate_offset if '
    'the sensor was zeroed'
)
WHY_CONTACT = (
    'contact: an external wrench that no load and no offset explains: move without contact, first '
    'of all until the mass is known'
)


class State(Enum):
    """State of the change detection."""

    TRACKING = 'tracking'
    CHANGED = 'changed'
    CONTACT = 'contact'


@dataclass(frozen=True)
class Look:
    """The change detection after a block."""

    stamp: int
    """Stamp of the block [ns]."""
    state: State
    nis: float
    """Largest normalised innovation squared (NIS) of the newest windows over its gate; while a
    change is open, that of the alarm [-]."""
    scores: Mapping[Hypothesis, float]
    """Chi-square by which each hypothesis fits worse than the best [-]; empty: none is open."""
