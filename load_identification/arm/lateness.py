"""Whether the efforts of an arm are late, or early, against the positions of its joints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from load_identification.arm.agreement import LEAST_GAIN, shows
from load_identification.arm.filtering import FilteredRecording
from load_identification.typing_aliases import FloatArray

STEP = 0.02
"""Between the delays tried; about the best it is halved [s]."""

MOST = 0.2
"""The longest delay tried [s]."""


def lateness(log: FilteredRecording, errors: Callable[[FilteredRecording], FloatArray]) -> float:
    """Return how late the efforts are by a fit that explains pieces left out [s].

    Zero unless it explains them clearly better. Its links are fitted anew for each delay: those of
    late efforts hide a part of it as inertia and friction. `errors` gives `Pieces.errors`.
    """
    cost = cache(lambda delay: errors(earlier(log, delay)))

    def likely(delay: float) -> bool:
        # Friction that builds up after reversals fits a little better later, too.
        least, gain = LEAST_GAIN * abs(delay) / STEP, np.mean(cost(0.0)[0] - cost(delay)[0])
        return bool(gain > least and shows(cost(delay), cost(0.0)))

    def best(delays: Iterable[float]) -> float:
        return min(delays, key=lambda delay: float(cost(delay)[0].mean()))

    # All of them: one step of a long delay hardly helps.
    delays = [sign * k * STEP for k in range(1, round(MOST / STEP) + 1) for sign in (1.0, -1.0)]
    if not any(map(likely, delays)):
        return 0.0
    found = best([0.0, *delays])
    return best([found, found - STEP / 2.0, found + STEP / 2.0])


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
        'another clock, or does friction build up after reversals?'
    )
