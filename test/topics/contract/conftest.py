"""What the tests of the contract share: a graph fed as robots feed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope='module')
def fed() -> Iterator[Any]:
    """Yield a graph in which the inputs are published, one reliably, one not."""
    from ros_group import BEST_EFFORT, Group

    with Group() as group:
        group.publish_inputs(BEST_EFFORT)
        yield group
