"""Names of the contract: keys of `status`, parameters and offsets in order."""

from __future__ import annotations

from collections import Counter

from load_identification.interface.batches import CHANNELS

INTERVAL = 1.96
"""Half of a 95 % interval, in standard deviations: what ± means wherever a person reads it."""

PARAMETER_KEYS = (
    'mass', 'com.x', 'com.y', 'com.z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz',
)  # fmt: skip
"""Of the ten parameters as the message carries them."""

STAGES = {'mass': slice(0, 1), 'centre of mass': slice(1, 4), 'inertia': slice(4, 10)}
"""What is identified one after the other, in their order."""

OFFSET_KEYS = tuple(f'offset.{channel}' for channel in CHANNELS)

COVARIANCE_LABELS = (
    'm', 'm*cx', 'm*cy', 'm*cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', *OFFSET_KEYS,
)  # fmt: skip

COMPENSATED = 'compensated'
"""Key of /diagnostics: how many wrenches have been; the node that has it gives no samples."""

DROPPED = 'samples.dropped.'
"""Beginning of the keys of `status` under which dropped samples are counted, by reason."""

HEALTH = 'health.'
"""Beginning of the keys that say what a channel of the wrench is worth."""


def in_words(counts: Counter[str]) -> str:
    """Return counts by reason, most frequent first."""
    return ', '.join(f'{reason} {count}' for reason, count in counts.most_common() if count)
