"""An arm that streams, and the process that hears it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope='module')
def live() -> Iterator[tuple[Any, Any]]:
    """Return a `ros_arm.Arm` and the single process that hears it, both for many tests."""
    from ros_arm import Arm, prepared, started
    from ros_group import Group

    with Group() as group:
        prepared(group)
        pipeline, _ = started(group)
        arm = Arm(group)
        arm.ready()
        yield arm, pipeline


@pytest.fixture
def arm(live: tuple[Any, Any]) -> Any:
    """Return the arm at rest with nothing held and no tool, its offset as in the beginning."""
    from ros_arm import NOTHING
    from ros_messages import OFFSET

    it = live[0]
    it.body, it.offset = NOTHING, OFFSET.copy()
    it.move_to(0)
    it.rest(0.3)
    it.call_in_silence('clear_tool')
    it.call_in_silence('reset')
    return it
