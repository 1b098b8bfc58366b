"""The estimate file: what `identify_load --output` writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import yaml

from load_identification.estimation.payload_estimate import UNKNOWN_STD
from load_identification.tools.offline import Identification
from load_identification.typing_aliases import BoolArray, FloatArray


def estimate_file(result: Identification) -> str:
    """Return the text of an estimate file: YAML, null for what is not identified."""
    estimate = result.estimate

    def part(columns: slice) -> dict[str, Any]:
        known = estimate.identified[columns]
        return {
            'value': _numbers(estimate.values[columns], known),
            'std': _numbers(estimate.std[columns], estimate.std[columns] < UNKNOWN_STD),
            'identified': known.tolist(),
        }

    force, torque = _numbers(estimate.residual_rms, np.isfinite(estimate.residual_rms))
    sections = {
        'frame': estimate.frame,
        'mass': {key: values[0] for key, values in part(slice(0, 1)).items()},
        'center_of_mass': part(slice(1, 4)),
        'inertia_about_center_of_mass': part(slice(4, 10)),
        'offset': {
            'value': _numbers(result.offset, result.offset_known),
            'std': _numbers(result.offset_std, result.offset_known),
        },
        'residual_rms': {'force': force, 'torque': torque},
        'samples': {
            'used': result.used,
            'dropped': {reason: n for reason, n in sorted(result.dropped.items()) if n},
        },
    }
    return ''.join(_section(name, content) for name, content in sections.items())


def _numbers(values: FloatArray, known: BoolArray) -> list[float | None]:
    """Return numbers with nine significant digits, None for what is not known."""
    return [float(f'{v:.9g}') if k else None for v, k in zip(values, known, strict=True)]


def _section(name: str, content: Any) -> str:
    """Return one line of an estimate file."""
    text: str = yaml.safe_dump(
        {name: content}, default_flow_style=True, sort_keys=False, width=10_000
    )
    return text.strip()[1:-1] + '\n'
