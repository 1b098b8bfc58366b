"""What the services demand of the samples, where somebody else filters them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from load_identification.interface.batches import FilteredBatch
from load_identification.interface.parameters import Parameters
from load_identification.nodes.diagnostics import Report
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.pipeline.samples import Samples
from load_identification.weighing.conditions import STALE, Conditions, Refusal


def test_filtered_samples_alone_suffice_for_the_tool_and_the_others_say_what_they_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = PayloadStage(Parameters())
    require = Conditions(stage.weigher, Report, stage.estimator.estimate)
    require.watch()
    for check in (require.fresh, require.fresh_estimate):
        with pytest.raises(Refusal, match=r'^no wrench with joint states yet$'):
            check()
    stamps = np.arange(1, 11) * 20_000_000
    gravity, zeros = np.tile([0.0, 0.0, -9.80665], (10, 1)), np.zeros((10, 3))
    motion = zeros, zeros, -gravity, zeros, gravity
    stage.update(Samples(filtered=FilteredBatch('imu', stamps, np.zeros((10, 6)), *motion)))
    require.watch()
    require.fresh_estimate()
    with pytest.raises(
        Refusal, match=r'yet: filtered/\* alone .* publish synchronized/wrench and'
    ):
        require.fresh()
    now = time.monotonic() + STALE + 0.1
    monkeypatch.setattr(time, 'monotonic', lambda: now)
    with pytest.raises(Refusal, match=r'^filtered/\* 0\.6 s old$'):
        require.fresh_estimate()
