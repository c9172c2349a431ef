"""Any value as JSON that every reader takes."""

from __future__ import annotations

import math

from kos_retry.limits import MAX_JSON_DEPTH
from kos_retry.text.bounds import well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_SAFE_INT = 2**63


def json_value(value: Any, depth: int = 0) -> Any:
    """Return ``value`` as JSON that any reader takes: no NaN, no integer over 64 bits, bounded nesting.

    What does not fit becomes a string, so that nothing a caller sends makes an envelope unwritable.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, int):
        return value if -_MAX_SAFE_INT <= value < _MAX_SAFE_INT else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if depth >= MAX_JSON_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {well_formed(str(k)): json_value(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(v, depth + 1) for v in value]
    return well_formed(repr(value))
