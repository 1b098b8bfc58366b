"""The delay of the wrench against the joint states, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from load_identification.interface.parameters import TABLE

WORTH_A_WORD = 0.010
"""Delay from which a warning is given [s]: half the time over which the filter effectively
averages, 1 / (2 cutoff) = 25 ms at 20 Hz, rounded down. Its whole window is five times as long,
but most of it has almost no weight."""

LEAST, MOST = TABLE['wrench_delay'].metadata['limits']
"""Limits of `wrench_delay` [s]."""


@dataclass(frozen=True)
class DelayEstimate:
    """The delay of the wrench's stamps relative to those of the joint states."""

    value_s: float
    std_s: float
    """In the sense of the parameter `wrench_delay`, in addition to its setting: positive means
    that the wrench stamped t was measured at t - value [s]."""
    known: bool
    """Whether the standard deviation is small enough for the value to be used."""
    beyond: bool = False
    """Whether the delay exceeds `LARGEST` with certainty; `value_s` is then that, with its
    sign, unless `std_s` is finite."""

    @property
    def far(self) -> bool:
        """Whether it is beyond that, and known about."""
        return self.beyond and bool(np.isfinite(self.std_s))


UNKNOWN = DelayEstimate(0.0, np.inf, False)


def delay_warning(estimate: DelayEstimate, wrench_delay: float = 0.0) -> str:
    """Describe a delay and its remedy; empty if it is small or not significant.

    `wrench_delay` is the parameter's present value [s].
    """
    sense = 'older' if estimate.value_s > 0.0 else 'younger'
    size, error = 1e3 * abs(estimate.value_s), 1.96e3 * estimate.std_s
    if estimate.beyond and not estimate.far:
        return (
            f'wrench is more than {size:.0f} ms {sense} than the joint stamps: clocks of two '
            'hosts, stale data under fresh stamps, or a load that swings? synchronise the clocks '
            '(chrony, PTP)'
        )
    if estimate.beyond:
        set_to = wrench_delay + estimate.value_s
        words = f', or set wrench_delay to {set_to:.2f}' if LEAST <= set_to <= MOST else ''
        return (
            f'wrench is about {size:.0f} ms {sense} than the joint stamps: clocks of two hosts, '
            f'or stale data under fresh stamps? synchronise the clocks (chrony, PTP){words}'
        )
    if not estimate.known or size - error <= 1e3 * WORTH_A_WORD:
        return ''
    return (
        f'wrench is {size:.1f} ± {error:.1f} ms {sense} than the joint stamps: '
        f'set wrench_delay to {wrench_delay + estimate.value_s:.4f}'
    )
