"""The service of a driver, as the nodes will import it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope='module')
def ur_type(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the type of a UR's service, as the nodes will import it."""
    from ros_driver import UR, offered

    with offered(tmp_path_factory.mktemp('ur'), *UR) as service_type:
        yield service_type
