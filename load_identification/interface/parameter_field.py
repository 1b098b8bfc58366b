"""How one parameter is declared."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def parameter(
    default: Any,
    description: str,
    used_by: tuple[str, ...],
    unit: str = '',
    limits: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    settable: bool = False,
) -> Any:
    """Declare one parameter as a dataclass field; settable ones may change at run time."""
    metadata = {
        'description': description,
        'used_by': used_by,
        'unit': unit,
        'limits': limits,
        'choices': choices,
        'settable': settable,
    }
    return field(default=default, metadata=metadata)
