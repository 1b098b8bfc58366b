"""Stamps may repeat, jump and go wrong; what is let through increases, whatever they do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from load_identification.signals.stamps import StampGate

MS = 1_000_000
MAX_GAP = 100 * MS
START = 1_700_000_000_000 * MS


class Gate:
    """A gate that keeps what it lets through; each row carries the stamp it came with."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.passed: list[int] = []
        self._gate = StampGate(MAX_GAP, 'wrench', self.dropped)

    def feed(self, milliseconds: list[float], cuts: list[int] | None = None) -> Gate:
        """Take in stamps, in batches that end at the cuts; after a restart nothing is left."""
        stamps = np.array([START + round(ms * MS) for ms in milliseconds], dtype=np.int64)
        for part in np.split(stamps, cuts or []):
            out, rows, restarted = self._gate.update(part, part[:, None].astype(float))
            np.testing.assert_array_equal(rows[:, 0], out)
            if restarted:
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


ZERO, LONG = -START / MS, steady(0, 300)


def with_one(stamp: float) -> list[float]:
    return [*LONG[:150], stamp, *LONG[150:]]


def two_clocks(offset: float) -> list[float]:
    pairs = ((ms, ms + offset) for ms in LONG[100:])
    return [*LONG[:100], *(ms for pair in pairs for ms in pair)]


@pytest.mark.parametrize(
    ('fed', 'passed', 'dropped'),
    [
        (LONG, LONG, {}),
        *(
            (with_one(149.0 - back), LONG, {'wrench_stamp_not_increasing': 1})
            for back in (0.0, 1.0, 50.0, 100.0)
        ),
        ([ZERO, ZERO, *with_one(ZERO), ZERO], LONG, {'wrench_stamp_zero': 4}),
        # A corrupt one, also as the first or twice the same.
        *((with_one(wrong), LONG, {'wrench_stamp_jump': 1}) for wrong in (-1e9, 48.0, 251.0)),
        *(([wrong, *LONG], LONG, {'wrench_stamp_jump': 1}) for wrong in (-1e9, 1e9)),
        (
            [*LONG[:50], 1e7, 1e7, *LONG[50:]],
            LONG,
            {'wrench_stamp_jump': 1, 'wrench_stamp_not_increasing': 1},
        ),
        # After a gap the stream goes on; where it is played again it starts afresh.
        ([*LONG, 400.0, 401.0, 9e3, 9e3 + 1], [*LONG, 400.0, 401.0, 9e3, 9e3 + 1], {}),
        *(([*steady(500, 700), *LONG[k:]], LONG[k:], {}) for k in (0, 100, 298)),
        ([*LONG, *LONG, *LONG], LONG, {}),
        # Of two clocks the first is believed, whichever is ahead; the last stamp is still held.
        *(
            (two_clocks(offset), LONG, {'wrench_stamp_jump': 199})
            for offset in (-1e7, -500.0, 500.0, 1e7)
        ),
    ],
)
def test_one_stream_of_increasing_stamps_is_let_through_however_it_is_cut(
    fed: list[float], passed: list[float], dropped: dict[str, int]
) -> None:
    for cuts in ([], range(1, len(fed)), random_cuts(len(fed), 1)):
        gate = Gate().feed(fed, list(cuts))
        assert gate.milliseconds() == passed
        assert gate.dropped == dropped


def test_the_rows_stay_with_their_stamps_whatever_their_shape() -> None:
    gate = StampGate(MAX_GAP, 'wrench', Counter())
    stamps = START + MS * np.array([0, 1, 1, 2])
    rows = np.arange(4 * 2 * 3, dtype=float).reshape(4, 2, 3)
    out, kept, _ = gate.update(stamps, rows)
    np.testing.assert_array_equal(out, stamps[[0, 1, 3]])
    np.testing.assert_array_equal(kept, rows[[0, 1, 3]])
    assert gate.update(stamps[:0], rows[:0])[1].shape == (0, 2, 3)


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
