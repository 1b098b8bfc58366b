"""A tool in a file is believed where a body can be what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from load_identification.model.inertial_parameters import InertialParameters
from load_identification.nodes.store import Stored, StoredTool, StoreError, load, save
from load_identification.typing_aliases import FloatArray

CYLINDER = InertialParameters.from_center_of_mass(
    0.8, np.array([0.0, 0.01, 0.05]), np.diag([2e-3, 2e-3, 5e-4])
).to_vector()
"""A tool [kg, kg m, kg m²]."""

KNOWN = np.array([5e-3, *[2e-4] * 3, *[5e-5] * 6])
"""Its standard deviations after some motion."""


def kept(path: Path, value: FloatArray, std: FloatArray) -> StoredTool | None:
    """Return a tool as it is loaded."""
    save(path, Stored(tool=StoredTool(value, np.diag(std**2), None, 1)))
    return load(path).tool


@pytest.mark.parametrize(
    ('entries', 'value'),
    [
        pytest.param([0], -3.0, id='a negative mass'),
        pytest.param([4], -0.004, id='a negative moment of inertia'),
        pytest.param([1, 2, 3], 50.0, id='a centre of mass far away'),
    ],
)
def test_a_tool_that_no_body_can_be_is_damage(
    tmp_path: Path, entries: list[int], value: float
) -> None:
    wrong = CYLINDER.copy()
    wrong[entries] = value
    path = tmp_path / 'arm.yaml'
    with pytest.raises(StoreError, match=r'tool\.value: no real body has it.*: moved to arm'):
        kept(path, wrong, KNOWN)
    assert not path.exists()


@pytest.mark.parametrize(
    ('value', 'std'),
    [
        pytest.param(CYLINDER, KNOWN, id='known'),
        # Its own moments of inertia are far less than their uncertainty.
        pytest.param(CYLINDER - 12.0 * KNOWN * (np.arange(10) == 9), KNOWN, id='thin'),
        pytest.param(
            CYLINDER * (np.arange(10) < 4) - (np.arange(10) >= 4),
            np.array([*KNOWN[:4], *[1e3] * 6]),
            id='inertia unknown',
        ),
        pytest.param(
            CYLINDER * (np.arange(10) < 1), np.array([1e-3, *[1e3] * 9]), id='mass alone'
        ),
    ],
)
def test_a_tool_that_a_body_can_be_within_its_uncertainty_is_loaded(
    tmp_path: Path, value: FloatArray, std: FloatArray
) -> None:
    tool = kept(tmp_path / 'arm.yaml', value, std)
    assert tool is not None
    np.testing.assert_array_equal(tool.parameters, value)
