"""Wrong velocities over good encoders spoil no claim: it is as with none published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from ros_messages import PUMA, TRUTH, recording
from set_ups import wrist_front

from load_identification.interface.batches import JointBatch, WrenchBatch
from load_identification.interface.parameters import Parameters
from load_identification.pipeline import settings
from load_identification.typing_aliases import FloatArray

Change = Callable[[FloatArray, FloatArray], FloatArray]


def late(t: FloatArray, v: FloatArray) -> FloatArray:
    """Return velocities after a low-pass with a time constant of 30 ms."""
    out, keep = v.copy(), np.exp(-np.diff(t, prepend=t[0]) / 0.03)
    for k in range(1, len(v)):
        out[k] = keep[k] * out[k - 1] + (1.0 - keep[k]) * v[k]
    return out


def unknown(t: FloatArray, v: FloatArray) -> FloatArray:
    return np.full_like(v, np.nan)


@cache
def worst(change: Change) -> tuple[float, int, str]:
    """Return the worst error of what is identified [std], how often it is, and the warning."""
    r = recording()
    t = 1e-9 * (r.stamps - r.stamps[0])
    v = change(t, np.gradient(r.position, t, axis=0))
    front = wrist_front(PUMA)
    estimator = settings.payload_estimator(replace(Parameters(), systematic_errors='none'))
    errors: list[float] = []
    for k in range(0, len(t), 20):
        part = slice(k, k + 20)
        joints = JointBatch(r.names, r.stamps[part], r.position[part], v[part])
        samples = front.update([joints], [WrenchBatch(r.frame, r.stamps[part], r.wrench[part])])
        if samples.filtered is None:
            continue
        estimator.update(samples.filtered)
        estimate = estimator.estimate()
        if estimate is not None and estimate.identified[0]:
            z = np.abs(estimate.values - TRUTH) / estimate.std
            errors.append(float(z[estimate.identified].max()))
    return max(errors, default=0.0), len(errors), front.synchronizer.joints.wrong_velocities


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (late, 'lags its position by'),
        (lambda _, v: 1.1 * v, 'is 1.10 × the derivative'),
        (lambda _, v: np.degrees(v), '57.3'),
        (lambda _, v: v * [1.0, 1.0, 1.0, -1.0, 1.0, 1.0], 'velocity of joint_4 is -1.00'),
    ],
)
def test_wrong_velocities_are_named_and_spoil_no_claim(change: Change, words: str) -> None:
    error, count, said = worst(change)
    _, usual, nothing = worst(unknown)
    assert words in said
    assert nothing == ''
    assert error < 4.0
    assert count > 0.8 * usual
