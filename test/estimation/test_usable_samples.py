"""What was known is confirmed by samples that tell of the load, and by nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from estimates import estimated

from load_identification.estimation.payload_estimator import BLOCK_NS
from load_identification.estimation.usable_samples import CONFIRMING, GAP, UNMEASURED
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.model.robot import Robot
from load_identification.pipeline import settings
from load_identification.simulation.changes.runs import FRAME, RATE, URDF, filtered, lively
from load_identification.simulation.sensors import WRIST_SENSOR, aluminium_block, simulate


def moved() -> FilteredBatch:
    """Return samples of 8 s in which an arm has moved a block."""
    motion = lively(1, 8.0)
    return filtered(
        simulate(Robot(URDF, FRAME), motion, aluminium_block(), WRIST_SENSOR, RATE, 0)
    )[0]


@pytest.mark.parametrize('silent', [0.8 * UNMEASURED, 1.2 * UNMEASURED])
def test_after_silence_some_blocks_confirm_what_was_known_before(silent: float) -> None:
    """Meanwhile somebody may have changed the load, which those blocks notice."""
    batch = moved()
    estimator = settings.payload_estimator(Parameters())
    half = len(batch.stamps) // 2
    estimator.update(batch.select(slice(None, half)))
    assert estimator.usable.missing_for(estimator.newest) < UNMEASURED
    rest = batch.select(slice(half, None))
    rest = replace(rest, stamps=rest.stamps + round(silent * 1e9))
    missing = []
    for stamp in np.arange(rest.stamps[0], rest.stamps[0] + 1_000_000_000, 100_000_000):
        chosen = (rest.stamps >= stamp) & (rest.stamps < stamp + 100_000_000)
        estimator.update(rest.select(chosen))
        missing.append(estimator.usable.missing_for(estimator.newest))
    lasting = [each > UNMEASURED for each in missing]
    # The third block after the silence is complete with the third tenth of a second.
    assert lasting == [silent > UNMEASURED] * (CONFIRMING - 1) + [False] * (11 - CONFIRMING)


@pytest.mark.parametrize('silent', [0.5 * GAP, 2.0 * GAP])
def test_after_a_gap_nothing_is_claimed_before_samples_show_that_the_load_is_the_same(
    silent: float,
) -> None:
    """A driver may publish joint states on change alone: a load is put on while the arm rests."""
    batch = moved()
    estimator = settings.payload_estimator(Parameters())
    half = len(batch.stamps) // 2
    estimator.update(batch.select(slice(None, half)))
    assert estimated(estimator).identified[0]
    rest = batch.select(slice(half, None))
    rest = replace(rest, stamps=rest.stamps + round(silent * 1e9))
    estimator.update(rest.select(rest.stamps < rest.stamps[0] + BLOCK_NS // 2))
    awaited = estimated(estimator)
    assert awaited.identified[0] == (silent < GAP)
    assert any('no sample came for 2.' in why for why in awaited.reasons) == (silent > GAP)
    estimator.update(rest.select(rest.stamps >= rest.stamps[0] + BLOCK_NS // 2))
    assert estimated(estimator).identified[0]


def test_a_few_samples_between_two_gaps_do_not_make_gaps_usual() -> None:
    batch = moved()
    estimator = settings.payload_estimator(Parameters())
    half = len(batch.stamps) // 2
    estimator.update(batch.select(slice(None, half)))
    for first, last in ((half, half + 3), (half + 3, half + 6)):
        burst = batch.select(slice(first, last))
        # All in one block.
        blocks = (estimator.newest - int(batch.stamps[0])) // BLOCK_NS + 20
        begin = int(batch.stamps[0]) + blocks * BLOCK_NS
        estimator.update(replace(burst, stamps=burst.stamps - burst.stamps[0] + begin))
        assert not estimated(estimator).identified.any()
