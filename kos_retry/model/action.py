"""An action: what was executed before a failure."""

from __future__ import annotations

from typing import Annotated, Any

from kos_retry.limits import MAX_NAME_BYTES
from kos_retry.model.base import Json, Wire, bounded


class Action(Wire, frozen=True, kw_only=True):
    """One executed tool call or command.

    ``ok`` is None where it is not known whether the action succeeded. A bare string is read as a name,
    as the original writes its actions.
    """

    name: Annotated[str, bounded(MAX_NAME_BYTES)] = ""
    input: Json = None
    ok: bool | None = None
    result: Json = None

    @classmethod
    def settled(cls, data: Any) -> Any:
        """Return what the original and others write as an action under the names of our fields."""
        if isinstance(data, str):
            return {"name": data.strip()}
        if isinstance(data, dict) and "name" not in data and "tool" in data:
            data = {**data, "name": data["tool"]}
        return super().settled(data)
