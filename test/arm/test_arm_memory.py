"""Whole arms out of long recordings: memory does not grow with the samples."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from arm_bags import JOINTS, NOMINAL, efforts, moved, stamps_of
from bags import description, write

from load_identification.arm.dynamics.friction import DriveModel
from load_identification.arm.dynamics.rows import ArmModel
from load_identification.arm.dynamics.tree import Arm
from load_identification.arm.filtering import filtered
from load_identification.arm.identification import identify_and_test
from load_identification.arm.recording import Recording
from load_identification.arm.settings import Settings
from load_identification.interface.batches import SynchronizedBatch
from load_identification.recordings.arm import read_efforts
from load_identification.recordings.reader import Topics, open_recording


def traced(work: Callable[[], object]) -> tuple[int, int]:
    """Return the memory that what is returned by some work takes, and the most meanwhile [B]."""
    tracemalloc.start()
    try:
        kept = work()
        gc.collect()
        return tracemalloc.get_traced_memory()
    finally:
        del kept
        tracemalloc.stop()


def test_no_numbers_of_a_recording_are_kept_while_it_is_read(tmp_path: Path) -> None:
    def read(path: Path) -> Recording:
        with open_recording(path, Topics(wrench='')) as recording:
            log = read_efforts(recording, JOINTS)
        assert sum(len(batch.stamps) for batch in log.read()) == len(log.stamps)
        return log

    held = []
    for seconds in (5.0, 20.0):
        motion = efforts(*moved(1, seconds, rate=500.0))
        path = write(tmp_path / f'{seconds:g}', [description(NOMINAL), *motion])
        held.append(traced(lambda path=path: read(path))[0])
    # Of 7500 samples more the stamps alone; nine numbers of each would be 0.54 MB.
    assert held[1] < held[0] + 3.5e5


def test_memory_hardly_grows_with_the_samples() -> None:
    model = ArmModel(Arm(NOMINAL), DriveModel('symmetric', 'symmetric', offset=True))
    peaks = []
    for rate in (250.0, 1000.0):
        times, *values = moved(1, 60.0, rate=rate)
        whole = SynchronizedBatch(JOINTS, '', stamps_of(times), *values)
        parts = [slice(k, k + 500) for k in range(0, len(times), 500)]
        log = Recording(
            'read', JOINTS, whole.stamps, lambda w=whole, p=parts: map(w.select, p), True, {},
            frozenset(JOINTS),
        )  # fmt: skip
        settings = Settings(cutoff=10.0, cutoffs=())
        peaks.append(traced(lambda x=log, s=settings: identify_and_test(model, [x], None, s))[1])
    # Four times as many samples: 1.02; 1.11 where their numbers are kept.
    assert peaks[1] < 1.05 * peaks[0]


def test_the_filter_takes_no_more_memory_for_a_longer_recording() -> None:
    n = 100_000
    position = np.sin(1e-3 * np.arange(n))[:, None] * np.ones(6)
    log = Recording.held(
        'long',
        tuple(f'joint_{j}' for j in range(6)),
        1_000_000 * (1 + np.arange(n)),
        position,
        np.full((n, 6), np.nan),
        position,
    )
    seconds: list[int] = []
    _, peak = traced(lambda: seconds.append(len(filtered([log] * 4, 20.0).seconds)))
    # Fewer than 10 per period of the cutoff: 400 s would have 80 000.
    assert seconds[0] == pytest.approx(40_000, rel=0.01)
    # What comes out is 6 MB; all at once was 850 MB each.
    assert peak < 60e6
