"""What all wire types share: frozen values, strict numbers, and the spellings of the original accepted."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kos_retry.text.bounds import cut_bytes, well_formed
from kos_retry.text.jsonvalue import json_value

# `SizeBytes`, `MIMEType`, `ExitCode`: the original's structs without tags are written in Go's own case.
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z]|\b|_)|[A-Z]?[a-z0-9]+|[A-Z]+")


class Wire(BaseModel):
    """A frozen JSON object; fields it does not know are ignored when read."""

    # Validators are built when a type is first used: a failure uses half of them, and somebody waits for it.
    model_config = ConfigDict(
        frozen=True, extra="ignore", allow_inf_nan=False, validate_default=False, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _accept_original_spelling(cls, data: Any) -> Any:
        return settle_spelling(cls, data) if isinstance(data, dict) else data


def settle_spelling(cls: type[BaseModel], data: dict[Any, Any]) -> dict[str, Any]:
    """Return ``data`` under the names of our fields, without the nulls that stand for "not set"."""
    fields = cls.model_fields
    named = {k if k in fields else snake_case(k): v for k, v in data.items() if isinstance(k, str)}
    # Go writes an empty slice as null.
    return {k: v for k, v in named.items() if v is not None or (k in fields and fields[k].is_required())}


def snake_case(name: str) -> str:
    """Return ``name`` in snake_case: ``MIMEType`` becomes ``mime_type``."""
    if name.islower() or not name[:1].isupper() or len(name) > 64:
        return name
    return "_".join(word.lower() for word in _WORD.findall(name))


def bounded(limit: int) -> BeforeValidator:
    """Return a validator that makes a string well-formed and cuts it to ``limit`` bytes."""

    def cut(value: Any) -> Any:
        return cut_bytes(well_formed(value), limit) if isinstance(value, str) else value

    return BeforeValidator(cut)


# Any JSON value. `Any` is the honest type at this edge: a recursive alias would only restate it.
Json = Annotated[Any, BeforeValidator(json_value)]
MAX_COUNT = 2**63 - 1
Count = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]
MAX_ATTEMPT = 2**31 - 1
Attempt = Annotated[int, Field(strict=True, ge=1, le=MAX_ATTEMPT)]
MAX_SECONDS = 1e12
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS)]
