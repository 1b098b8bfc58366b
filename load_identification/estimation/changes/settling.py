"""Leave out blocks of a change that belong neither to the old state nor to the new."""

from __future__ import annotations

from collections.abc import Sequence

from load_identification.estimation.belief.belief import Belief
from load_identification.estimation.changes.hypotheses import Candidate, Hypothesis, hypotheses
from load_identification.estimation.measurement import Block
from load_identification.interface.messages import NS

SETTLING = 0.35
"""Time after the alarm during which blocks are not used to identify the change [s]: a gripper that
closes, a driver that zeroes slowly."""

HASTY_NS = 3 * NS
"""Time within which a load is named before it is certain that it has settled [ns]."""

DROPPED = 5
"""Most blocks, at most half of all, by which it is then named, but from which it is not estimated:
what slips or swings into place goes on for a second, and a free load fits a few blocks of that."""


def settled_load(named: Hypothesis, seen: Sequence[tuple[Belief, Block]]) -> tuple[Candidate, int]:
    """Return a hypothesis on the load from the later blocks alone, and their number of rows.

    `seen` are the blocks by which it was named, each with the belief from before the change,
    predicted to its time.
    """
    (before, first), *later = seen[min(DROPPED, len(seen) // 2) :]
    kept = [first, *(block for _, block in later)]
    each = hypotheses(before, None, first)
    # The mass may be known a little less by then, too little for a slip.
    found = each.get(named, each[Hypothesis.LOAD]).with_blocks(kept)
    return found, sum(int(block.live.sum()) for block in kept)
