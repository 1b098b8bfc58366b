"""What is identified in a recording or in poses, and its file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from load_identification.estimation.events import Event
from load_identification.estimation.payload_estimate import UNKNOWN_STD, PayloadEstimate
from load_identification.interface.files import line, numbers
from load_identification.interface.parameters import CONVENTIONS, Parameters
from load_identification.typing_aliases import BoolArray, FloatArray


@dataclass(frozen=True)
class EarlierLoad:
    """A load that was identified and then changed."""

    until: int
    """When the change was detected [ns]."""
    estimate: PayloadEstimate
    """The last one in which the mass was identified, of looks at every second."""


@dataclass(frozen=True)
class Identification:
    """Result of identifying the payload in a recording."""

    estimate: PayloadEstimate
    start: int
    """Stamp of the first sample, or of the first one after a jump back [ns]."""
    used: int
    """Number of filtered samples used."""
    dropped: Counter[str]
    """Samples dropped, by reason."""
    absent_channels: tuple[str, ...]
    """Wrench channels without a signal."""
    events: tuple[Event, ...] = ()
    """The last detected changes of load or sensor."""
    earlier: tuple[EarlierLoad, ...] = ()
    """The last loads before the present one, oldest first."""
    remarks: tuple[str, ...] = ()
    """Units that cannot be, a delay between the streams, and motion that would have helped."""
    parameters: Parameters = field(default_factory=Parameters)
    """Parameters valid for the kind of sensing used."""
    by_efforts: bool = False
    """Whether the wrench is computed from efforts of joints or legs."""

    @property
    def offset(self) -> FloatArray:
        """Offset of the raw wrench, (6,) [N, N m]."""
        return CONVENTIONS[self.parameters.wrench_convention] * self.estimate.offset

    @property
    def offset_std(self) -> FloatArray:
        """Standard deviation of the offset, (6,) [N, N m]."""
        return np.sqrt(np.diag(self.estimate.covariance)[-6:])

    @property
    def offset_known(self) -> BoolArray:
        """Whether each offset is known, (6,)."""
        return self.offset_std < UNKNOWN_STD

    def estimate_file(self) -> str:
        """Return the text of the estimate file: YAML, with null for unknown values.

        Mass, centre of mass, and inertia about it as xx xy xz yy yz zz, in the axes of the sensor
        frame S [kg, m, kg m²]; the offset of the raw wrench, corrected = raw − offset, and the
        residuals of force and torque [N, N m]; the number of filtered samples, and of samples
        dropped, by reason.
        """
        estimate = self.estimate
        values = _known(estimate.values, estimate.identified)
        std = _known(estimate.std, estimate.std < UNKNOWN_STD)
        offset, offset_std = (_known(x, self.offset_known) for x in (self.offset, self.offset_std))
        force, torque = _known(estimate.residual_rms, np.ones(2, dtype=bool))

        def part(columns: slice) -> dict[str, list[Any]]:
            identified = estimate.identified[columns].tolist()
            return {'value': values[columns], 'std': std[columns], 'identified': identified}

        sections = {
            'frame': estimate.frame,
            'mass': {key: value[0] for key, value in part(slice(0, 1)).items()},
            'center_of_mass': part(slice(1, 4)),
            'inertia_about_center_of_mass': part(slice(4, 10)),
            'offset': {'value': offset, 'std': offset_std},
            'residual_rms': {'force': force, 'torque': torque},
            'samples': {
                'used': self.used,
                'dropped': {reason: n for reason, n in sorted(self.dropped.items()) if n},
            },
        }
        return ''.join(f'{name}: {line(content)}\n' for name, content in sections.items())


def _known(values: FloatArray, known: BoolArray) -> list[float | None]:
    """Return numbers with nine significant digits, None for unknown ones and not finite ones."""
    both = zip(numbers(values), known & np.isfinite(values), strict=True)
    return [value if its else None for value, its in both]
