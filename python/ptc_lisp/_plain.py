"""Plain forms of objects that tools return."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from typing import Any


def plain(value: Any) -> Any:
    """Returns a dict, list, str or number for a model, a dataclass, an enum and the like; `None` for other objects."""
    if isinstance(value, enum.Enum):
        return value.value if not isinstance(value.value, enum.Enum) else value.name
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        dumped = dump(mode="json")
        return dumped if isinstance(dumped, (dict, list, str, int, float)) else None
    if isinstance(value, uuid.UUID):
        return str(value)
    return None
