"""An arm of seven joints that moves a payload."""

from __future__ import annotations

import pytest

from load_identification.simulation.weighing_arm import PAYLOAD, Run, run


@pytest.fixture(scope='module')
def loaded() -> Run:
    """Return 20 s with the payload."""
    return run(15.0, 5, PAYLOAD)
