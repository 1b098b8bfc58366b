"""Loads that change slowly: not claimed meanwhile, whatever else it looks like."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from load_identification.simulation.changes import slow
from load_identification.typing_aliases import FloatArray


def filled(times: FloatArray) -> FloatArray:
    """Return the shares at times (n,) [s] where 0.3 kg are filled in within 25 s, 1 to 0."""
    return np.asarray(1.0 - np.clip((times - 8.0) / 25.0, 0.0, 1.0))


def test_a_load_that_is_poured_out_is_not_claimed() -> None:
    """Of 1.2 kg 0.3 kg in a minute had been drift of the offset: 25 std off, without an event."""
    found = slow.run(replace(slow.POURING, seconds=50.0), 'rich', 0)
    assert found.mass.size > 15
    assert np.abs(found.mass).max() < 4.0
    assert found.last == 0.0


def test_a_load_that_has_become_another_one_slowly_is_identified_anew() -> None:
    """What a gain error of 0.5 % makes had stayed that of the load before."""
    found = slow.run(replace(slow.POURING, share=filled, seconds=52.0), 'rich', 1)
    assert 'load changed: slowly' in found.said
    assert found.last == 1.0
    assert np.abs(found.mass[-8:]).max() < 3.0


def test_a_load_that_is_poured_out_with_the_tool_down_is_no_drift() -> None:
    """With gravity in one direction a fast walk of the offset explains it: 17 std off."""
    change, motion = slow.SLOW['pouring, tool down']
    found = slow.run(replace(change, seconds=72.0), motion, 3)
    assert found.mass.size > 15
    assert np.abs(found.mass).max() < 4.0


@pytest.mark.parametrize(('motion', 'seed'), [('pauses', 4), ('tool-down', 3)])
def test_a_load_that_is_filled_quickly_is_no_drift(motion: str, seed: int) -> None:
    """Once the mass was wrong, no walk of the load with a constant offset fitted: 8 and 11 std."""
    found = slow.run(replace(slow.POURING, share=filled, seconds=40.0), motion, seed)
    assert found.mass.size > 10
    assert np.abs(found.mass).max() < 4.0


@pytest.mark.parametrize('seed', [0, 2])
def test_a_load_that_is_poured_out_at_rest_is_not_claimed(seed: int) -> None:
    """It had been drift of the offset, and the mass claimed all the time: 31 std off."""
    change, motion = slow.SLOW['pouring, at rest']
    found = slow.run(change, motion, seed)
    assert found.mass.size > 30
    assert np.abs(found.mass).max() < 4.0
    assert found.last == 1.0
