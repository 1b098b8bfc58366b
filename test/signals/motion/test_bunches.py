"""Samples read together and stamped as they are read: what is lost to them is counted and said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differentiated import START, at_rate, differentiator, feed, polynomials, sampled
from swinging_arm import feed as feed_filter
from swinging_arm import motion_filter, synchronized

from load_identification.simulation.sensors import Recording
from load_identification.typing_aliases import IntArray

WITHIN = 50_000
"""Time between stamps of samples that are read together [ns]."""


def read_together(stamps: IntArray, period: int) -> IntArray:
    """Return the stamps of samples that are read once a period [ns], and stamped then."""
    reads = stamps[0] + ((stamps - stamps[0]) // period + 1) * period
    return np.asarray(reads + WITHIN * (np.arange(len(stamps)) - np.searchsorted(reads, reads)))


@pytest.mark.parametrize('milliseconds', [20, 30, 40, 50, 60])
@pytest.mark.parametrize('rate', [100.0, 500.0])
def test_stamps_in_bunches_are_counted_and_said(milliseconds: int, rate: float) -> None:
    stamps = read_together(at_rate(rate, 3.0), milliseconds * 1_000_000)
    counts = []
    for cuts in ([], list(range(1, len(stamps), 7))):
        stage = differentiator(50.0)
        for batch in np.split(np.arange(len(stamps)), cuts):
            samples = sampled(stamps[batch], polynomials(1, 1)[0])
            assert stage.update(samples) is None
        counts.append(stage.dropped['stamps_bunched'])
        assert stage.bunches.words('/wrench') == (
            f'stamps of /wrench come in bunches every {milliseconds} ms: '
            'have the driver stamp samples when they are measured'
        )
    # One output in each bunch, but for those of the first and last half window.
    bunches = 3000 // milliseconds
    assert bunches - 8 <= counts[0] <= bunches
    assert counts[0] == counts[1]


def test_bunches_that_determine_the_motion_are_not_counted() -> None:
    """Of eight within the window a polynomial of degree 6 is determined."""
    stage = differentiator(50.0)
    out = feed(stage, sampled(read_together(at_rate(500.0, 3.0), 8_000_000), polynomials(1, 1)[0]))
    assert len(out.stamps) > 100
    assert not stage.dropped
    assert stage.bunches.words('/wrench') == ''


@pytest.mark.parametrize('gap', [0.03, 0.05, 0.09, 0.2])
def test_samples_that_are_missing_are_no_bunches(gap: float) -> None:
    """Once a second, or after each tenth of one."""
    stamps = at_rate(500.0, 6.0)
    for period in (1.0, gap + 0.1):
        stage = differentiator(50.0)
        kept = (stamps - START) * 1e-9 % period < period - gap
        feed(stage, sampled(stamps[kept], polynomials(1, 1)[0]))
        # Beside a long gap the polynomial is undetermined once or twice.
        assert stage.dropped['stamps_bunched'] <= 2.0 * 6.0 / period
        assert stage.bunches.words('/wrench') == ''


def test_the_motion_filter_says_it_until_stamps_are_right(recording: Recording) -> None:
    batch = synchronized(recording)
    half = len(batch.stamps) // 2
    early, late = batch.select(slice(half)), batch.select(slice(half, None))
    early = replace(early, stamps=read_together(early.stamps, 20_000_000))
    late = replace(late, stamps=late.stamps + 20_000_000)
    stage = motion_filter()
    assert stage.update(early) is None
    assert stage.words == stage.bunched
    assert 'stamps of /wrench come in bunches every 20 ms' in stage.bunched
    counted = stage.dropped['stamps_bunched']
    assert counted > 100
    feed_filter(stage, late)
    assert stage.words == ''
    assert stage.dropped['stamps_bunched'] < counted + 10
