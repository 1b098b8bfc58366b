"""The estimate file, written by `identify_load --output`."""

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
    """Return the text of an estimate file: YAML, with null for unknown values.

    Parameters
    ----------
    frame : str
        The sensor frame S.
    payload : (10,) arrays
        Values, standard deviations, and whether each is identified: mass, centre of mass, and
        inertia about it as xx xy xz yy yz zz, axes of S. Values that are not identified and
        standard deviations that are not finite become null [kg, m, kg m²].
    offset : (6,) arrays
        Values and standard deviations of the offset of the raw wrench, corrected = raw − offset;
        not finite if unknown [N, N m].
    residual_rms : (2,) array
        Of force and torque; not finite if unknown [N, N m].
    used : int
        Number of filtered samples.
    dropped : mapping
        Number of samples dropped, by reason.
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
    """Return numbers with nine significant digits, None for values that are not finite."""
    return [v if np.isfinite(v) else None for v in numbers(values)]
