"""Names of the contract: keys of `status`, and ordered names of parameters and offsets."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

from load_identification.interface.batches import CHANNELS

INTERVAL = 1.96
"""Half width of a 95 % interval, in standard deviations; the meaning of ± in every output."""

FAULT = 'fault'
"""State in which a wrong set-up is named."""

PARAMETER_KEYS = (
    'mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz',
)  # fmt: skip
"""Keys of the ten parameters in message order."""

STAGES = {'mass': slice(0, 1), 'centre of mass': slice(1, 4), 'inertia': slice(4, 10)}
"""Groups of parameters that are identified one after the other, in this order."""

OFFSET_KEYS = tuple(f'offset.{channel}' for channel in CHANNELS)

COVARIANCE_LABELS = (
    'm', 'm*cx', 'm*cy', 'm*cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', *OFFSET_KEYS,
)  # fmt: skip

COMPENSATED = 'compensated'
"""Key of /diagnostics with the number of compensated wrenches; its node publishes no samples."""

DROPPED = 'samples.dropped.'
"""Prefix of the keys of `status` that count dropped samples, by reason."""

COUNT = re.compile('[0-9]{1,18}')
"""A number of samples, as `status` and `/diagnostics` have it."""

HEALTH = 'health.'
"""Prefix of the keys that state the health of a channel of the wrench."""


def told_apart(value: float, limit: float) -> tuple[str, str]:
    """Return two numbers as text, with as many digits from two on as tell them apart.

    Where two digits do not, both have as many decimals.
    """
    for n in range(2, 8):
        first, second = (significant(each, n) for each in (value, limit))
        if first != second:
            break
    if n > 2 and first != second:
        places = max(len(each.partition('.')[2]) for each in (first, second))
        return f'{float(first):.{places}f}', f'{float(second):.{places}f}'
    first, second = (t.rstrip('0').rstrip('.') if '.' in t else t for t in (first, second))
    return first, second


def significant(value: float, digits: int = 2) -> str:
    """Return a number with so many significant digits, however large without an exponent."""
    if not math.isfinite(value):
        return 'unknown'
    rounded = float(f'{value:.{digits}g}')
    places = digits - 1 - math.floor(math.log10(abs(rounded))) if rounded else 0
    return f'{rounded:.{max(0, places)}f}'


def in_words(counts: Counter[str]) -> str:
    """Return counts by reason as text, most frequent first."""
    return ', '.join(f'{reason} {count}' for reason, count in counts.most_common() if count)


def dropped_counts(values: Mapping[str, str]) -> Counter[str]:
    """Return the numbers of samples dropped, by reason, from the values of a status."""
    counts = starting(DROPPED, values).items()
    return Counter({reason: int(n) for reason, n in counts if COUNT.fullmatch(n)})


def starting(prefix: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values whose keys start with a prefix, by what follows it."""
    return {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
