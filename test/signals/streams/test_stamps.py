"""Stamps may repeat, jump and go wrong; what is let through increases, whatever they do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from load_identification.signals.stamps import StampGate
from load_identification.typing_aliases import IntArray

MS = 1_000_000
MAX_GAP = 100 * MS
START = 1_700_000_000_000 * MS


class Gate:
    """A gate that keeps what it lets through; each row carries the stamp it came with."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.passed: list[int] = []
        self.restarts = 0
        self._gate = StampGate(MAX_GAP, 'wrench', self.dropped)

    def feed(self, milliseconds: list[float], cuts: list[int] | None = None) -> Gate:
        """Take in stamps, in batches that end at the cuts; after a restart nothing is left."""
        stamps = np.array([START + round(ms * MS) for ms in milliseconds], dtype=np.int64)
        for part in np.split(stamps, cuts or []):
            out, rows, restarted = self._gate.update(part, part[:, None].astype(float))
            np.testing.assert_array_equal(rows[:, 0], out)
            if restarted:
                self.restarts += 1
                self.passed.clear()
            self.passed += out.tolist()
        return self

    def milliseconds(self) -> list[float]:
        """Return the stamps let through since the last restart."""
        return [(stamp - START) / MS for stamp in self.passed]


def steady(first: int, last: int, step: int = 1) -> list[float]:
    return [float(ms) for ms in range(first, last, step)]


def random_cuts(length: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    return sorted(rng.integers(0, length, rng.integers(1, length)).tolist())


def messy_stream(seed: int) -> list[float]:
    """Return a stream with everything that can be wrong with stamps, several times over."""
    rng = np.random.default_rng(seed)
    now, stamps = 500.0, []
    for _ in range(60):
        stamps += [now + k for k in range(int(rng.integers(1, 12)))]
        now = stamps[-1] + 1.0
        event = rng.integers(0, 7)
        if event == 0:
            stamps.append(now - 1.0)  # a duplicate
        elif event == 1:
            stamps.append(now - rng.uniform(2, 90))  # a little back
        elif event == 2:
            stamps.append(-START / MS)  # zero
        elif event == 3:
            stamps.append(now + rng.uniform(-1e6, 1e6))  # corrupt
        elif event == 4:
            now += rng.uniform(101, 5000)  # a gap
        elif event == 5 and now > 1000:
            now -= rng.uniform(101, 800)  # played again
        else:
            stamps += [now + 3e6, now, now + 3e6 + 1.0]  # another clock, interleaved
            now += 1.0
    return stamps


def test_a_steady_stream_passes_whole() -> None:
    gate = Gate().feed(steady(0, 300), random_cuts(300, 1))
    assert gate.milliseconds() == steady(0, 300)
    assert gate.dropped == Counter()


def test_the_rows_stay_with_their_stamps_whatever_their_shape() -> None:
    gate = StampGate(MAX_GAP, 'wrench', Counter())
    stamps = START + MS * np.array([0, 1, 1, 2])
    rows = np.arange(4 * 2 * 3, dtype=float).reshape(4, 2, 3)
    out, kept, _ = gate.update(stamps, rows)
    np.testing.assert_array_equal(out, stamps[[0, 1, 3]])
    np.testing.assert_array_equal(kept, rows[[0, 1, 3]])
    assert gate.update(stamps[:0], rows[:0])[1].shape == (0, 2, 3)


@pytest.mark.parametrize('again', [0.0, 1.0, 50.0, 100.0])
def test_a_stamp_repeated_or_a_little_back_is_dropped_and_counted(again: float) -> None:
    gate = Gate().feed([*steady(0, 200), 199.0 - again, *steady(200, 300)])
    assert gate.milliseconds() == steady(0, 300)
    assert gate.dropped == {'wrench_stamp_not_increasing': 1}


def test_zero_stamps_are_dropped_and_counted() -> None:
    zero = -START / MS
    gate = Gate().feed([zero, zero, *steady(0, 50), zero, *steady(50, 100), zero])
    assert gate.milliseconds() == steady(0, 100)
    assert gate.dropped == {'wrench_stamp_zero': 4}


@pytest.mark.parametrize('wrong', [-1e9, -101.0, 101.0, 1e9])
@pytest.mark.parametrize('batches', [[], [150], [151], [150, 151]])
def test_one_corrupt_stamp_changes_nothing(wrong: float, batches: list[int]) -> None:
    gate = Gate().feed([*steady(0, 150), 149.0 + wrong, *steady(150, 300)], batches)
    assert gate.milliseconds() == steady(0, 300)
    assert gate.dropped == {'wrench_stamp_jump': 1}
    assert gate.restarts == 0


@pytest.mark.parametrize('wrong', [-1e9, 1e9])
def test_a_corrupt_first_stamp_is_not_believed(wrong: float) -> None:
    gate = Gate().feed([wrong, *steady(0, 100)])
    assert gate.milliseconds() == steady(0, 100)
    assert gate.dropped == {'wrench_stamp_jump': 1}


def test_the_same_corrupt_stamp_twice_is_not_believed() -> None:
    gate = Gate().feed([*steady(0, 50), 1e7, 1e7, *steady(50, 100)])
    assert gate.milliseconds() == steady(0, 100)
    assert gate.restarts == 0
    assert gate.dropped.total() == 2


@pytest.mark.parametrize('gap', [101.0, 5000.0])
def test_after_a_gap_the_stream_goes_on_without_loss(gap: float) -> None:
    later = [ms + gap for ms in steady(100, 200)]
    gate = Gate().feed([*steady(0, 100), *later])
    assert gate.milliseconds() == [*steady(0, 100), *later]
    assert gate.restarts == 0
    assert gate.dropped == Counter()


@pytest.mark.parametrize('back', [102.0, 500.0, 1e6])
def test_a_confirmed_jump_back_starts_afresh_without_loss(back: float) -> None:
    again = [ms - back for ms in steady(600, 700)]
    gate = Gate().feed([*steady(0, 600), *again], random_cuts(700, 2))
    assert gate.milliseconds() == again
    assert gate.restarts == 1
    assert gate.dropped == Counter()


def test_each_loop_of_a_recording_starts_afresh() -> None:
    gate = Gate()
    for loop in range(3):
        gate.feed(steady(0, 500), random_cuts(500, loop))
        assert gate.milliseconds() == steady(0, 500)
        assert gate.restarts == loop
    assert gate.dropped == Counter()


@pytest.mark.parametrize('offset', [-1e7, -500.0, 500.0, 1e7])
def test_a_second_clock_interleaved_changes_nothing(offset: float) -> None:
    """The clock that was there first goes on, whichever is ahead."""
    own, other = steady(0, 400), [ms + offset for ms in steady(200, 400)]
    both = [ms for pair in zip(own[200:], other, strict=True) for ms in pair]
    gate = Gate().feed([*own[:200], *both])
    assert gate.milliseconds() == own
    assert gate.restarts == 0
    # The last is still held.
    assert gate.dropped == {'wrench_stamp_jump': 199}


@pytest.mark.parametrize('seed', range(20))
def test_what_is_let_through_increases_and_does_not_depend_on_the_cut(seed: int) -> None:
    stream = messy_stream(seed)
    whole = Gate().feed(stream)
    for cuts in (list(range(1, len(stream))), random_cuts(len(stream), seed)):
        cut = Gate().feed(stream, cuts)
        assert np.all(np.diff(np.array(cut.passed)) > 0)
        assert cut.passed == whole.passed
        assert cut.dropped == whole.dropped
    assert whole.dropped.total() > 0


def test_in_a_batch_that_starts_afresh_only_the_new_is_let_through() -> None:
    stamps: IntArray = START + MS * np.array([0, 1, 2, 1000, 1001, 500, 501, 502])
    out, _, restarted = StampGate(MAX_GAP, 'wrench', Counter()).update(stamps, stamps[:, None])
    assert restarted
    np.testing.assert_array_equal(out, stamps[5:])
