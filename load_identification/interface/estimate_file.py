"""The estimate file: what `identify_load --output` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from load_identification.interface.files import line, numbers
from load_identification.typing_aliases import BoolArray, FloatArray


def estimate_file(
    frame: str,
    payload: tuple[FloatArray, FloatArray, BoolArray],
    offset: tuple[FloatArray, FloatArray],
    residual_rms: FloatArray,
    used: int,
    dropped: Mapping[str, int],
) -> str:
    """Return the text of an estimate file: YAML, null for what is not known.

    Parameters
    ----------
    frame : str
        The sensor frame S.
    payload : (10,) arrays
        Values, standard deviations, and which are identified: mass, centre of mass, and inertia
        about it as xx xy xz yy yz zz, axes of S. A value that is not identified is left out, a
        standard deviation where it is not finite [kg, m, kg m²].
    offset : (6,) arrays
        Values and standard deviations of the offset of the raw wrench, corrected = raw − offset;
        not finite where nothing is known [N, N m].
    residual_rms : (2,) array
        Of force and torque; not finite where unknown [N, N m].
    used : int
        Filtered samples.
    dropped : mapping
        Samples dropped, by reason.
    """
    values, std, identified = payload

    def part(columns: slice) -> dict[str, list[Any]]:
        return {
            'value': _known(np.where(identified[columns], values[columns], np.nan)),
            'std': _known(std[columns]),
            'identified': identified[columns].tolist(),
        }

    force, torque = _known(residual_rms)
    sections = {
        'frame': frame,
        'mass': {key: value[0] for key, value in part(slice(0, 1)).items()},
        'center_of_mass': part(slice(1, 4)),
        'inertia_about_center_of_mass': part(slice(4, 10)),
        'offset': {'value': _known(offset[0]), 'std': _known(offset[1])},
        'residual_rms': {'force': force, 'torque': torque},
        'samples': {
            'used': used,
            'dropped': {reason: n for reason, n in sorted(dropped.items()) if n},
        },
    }
    return ''.join(f'{name}: {line(content)}\n' for name, content in sections.items())


def _known(values: FloatArray) -> list[float | None]:
    """Return numbers with nine significant digits, None for what is not finite."""
    return [v if np.isfinite(v) else None for v in numbers(values)]
