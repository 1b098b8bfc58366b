"""Whether the efforts of an arm are late, or early, against the positions of its joints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from load_identification.arm.agreement import shows
from load_identification.arm.filtering import FilteredRecording
from load_identification.typing_aliases import FloatArray

STEP = 0.02
"""Between the delays tried; the last is halved [s]."""

MOST = 0.2
"""The longest delay tried [s]."""


def lateness(log: FilteredRecording, errors: Callable[[FilteredRecording], FloatArray]) -> float:
    """Return how late the efforts are by a fit that explains pieces left out [s].

    Zero unless it explains them clearly better. Its links are fitted anew for each delay: those of
    late efforts hide a part of it as inertia and friction.

    Parameters
    ----------
    log : FilteredRecording
    errors : callable
        `Pieces.errors` of a recording.
    """
    known = errors(log)
    best, least = 0.0, known
    for step in (STEP, -STEP):
        delay = step
        while abs(delay) <= MOST and shows(other := errors(earlier(log, delay)), least):
            best, least, delay = delay, other, delay + step
        if best:
            break
    for delay in (best - STEP / 2.0, best + STEP / 2.0) if best else ():
        other = errors(earlier(log, delay))
        if other[0].mean() < least[0].mean():
            best, least = delay, other
    return best


def earlier(log: FilteredRecording, delay: float) -> FilteredRecording:
    """Return a recording with what was measured earlier by a delay [s], NaN beyond its ends."""
    starts = np.flatnonzero(np.diff(log.seconds) <= 0.0) + 1
    parts = zip(np.split(log.seconds, starts), np.split(log.measured, starts), strict=True)
    measured = [
        np.stack([np.interp(t + delay, t, one, np.nan, np.nan) for one in values.T], axis=1)
        for t, values in parts
    ]
    return replace(log, measured=np.concatenate(measured))


def in_words(late: float) -> str:
    """Say how late efforts are, from `lateness`."""
    which, other = ('late', 'efforts') if late > 0.0 else ('early', 'positions')
    return (
        f'the efforts are about {1e3 * abs(late):.0f} ms {which} against the positions: so the '
        f'links explain them far better; are {other} low-passed by the driver, or stamped by '
        'another clock?'
    )
