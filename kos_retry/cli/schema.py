"""`kos-retry schema`: the JSON Schema of every wire type."""

from __future__ import annotations

from typing import Any

import msgspec

from kos_retry.cli.output import write_json, write_text
from kos_retry.errors import UnknownNameError
from kos_retry.model import WIRE_TYPES

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str | None) -> None:
    """Write the schema of one wire type, or the names of all."""
    if name is None:
        write_text("".join(f"{known}\n" for known in sorted(WIRE_TYPES)))
    else:
        write_json(schema_of(name), indent=True)


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a wire type, as it is written; raises UnknownNameError for an unknown one."""
    if name not in WIRE_TYPES:
        raise UnknownNameError(f"schema '{name}': there is none; known are {', '.join(sorted(WIRE_TYPES))}")
    types = msgspec.json.schema(WIRE_TYPES[name])["$defs"]
    own = types.pop(name)
    return {"$schema": _DIALECT, **own, **({"$defs": types} if types else {})}
