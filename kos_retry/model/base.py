"""What all wire types share: frozen values, strict numbers, and the spellings of the original accepted."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple, Self, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from kos_retry.errors import InputError
from kos_retry.model.faults import fault
from kos_retry.text.bounds import cut_bytes, well_formed
from kos_retry.text.jsonvalue import json_value

# `SizeBytes`, `MIMEType`, `ExitCode`: the original's structs without tags are written in Go's own case.
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z]|\b|_)|[A-Z]?[a-z0-9]+|[A-Z]+")


class Wire(Struct, frozen=True, kw_only=True):
    """A frozen JSON object; fields it does not know are ignored when read.

    The constructor takes values of the fields' types, and bounds them; `from_json` checks the types as well.
    """

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return a JSON value as this type; values of wire types may stand in it already.

        Raises InputError that names the first field that is wrong, and what it should have been.
        """
        own = cls.settled(data)
        try:
            return msgspec.convert(own, cls)
        except msgspec.ValidationError as error:
            raise InputError(fault(str(error), cls, own)) from error

    def as_json(self) -> dict[str, Any]:
        """Return the value as a JSON object."""
        value: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return value

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values in some fields; their types are not checked."""
        return msgspec.structs.replace(self, **changes)

    def __post_init__(self) -> None:
        """Bound what came in."""
        for name, bound in _shape(type(self)).bounds.items():
            value = getattr(self, name)
            # What is empty has nothing to bound, and most of what is read back is bounded already.
            if value and (kept := bound(value)) is not value:
                self._set(name, kept)

    def _set(self, name: str, value: Any) -> None:
        """Set a field of a value that is being made."""
        msgspec.structs.force_setattr(self, name, value)

    @classmethod
    def settled(cls, data: Any) -> Any:
        """Return ``data`` under the names of our fields, without the nulls that stand for "not set".

        What is no object is left for the caller to refuse.
        """
        if not isinstance(data, dict):
            return data
        required, nested, _ = _shape(cls)
        fields = cls.__struct_fields__
        named = {k if k in fields else snake_case(k): v for k, v in data.items() if isinstance(k, str)}
        # Go writes an empty slice as null.
        out = {k: v for k, v in named.items() if v is not None or k in required}
        for name, kind in nested.items():
            if name in out:
                value = out[name]
                several = isinstance(value, (list, tuple))
                out[name] = [kind.settled(v) for v in value] if several else kind.settled(value)
        return out


def snake_case(name: str) -> str:
    """Return ``name`` in snake_case: ``MIMEType`` becomes ``mime_type``."""
    if name.islower() or not name[:1].isupper() or len(name) > 64:
        return name
    return "_".join(word.lower() for word in _WORD.findall(name))


def bounded_by(bound: Callable[[Any], Any]) -> Meta:
    """Return the annotation of a value that is put through ``bound`` whenever it is set."""
    return Meta(extra={"bound": bound})


def bounded(limit: int) -> Meta:
    """Return the annotation of a string that is made well-formed and cut to ``limit`` bytes."""
    return bounded_by(lambda value: cut_bytes(well_formed(value), limit))


class _Shape(NamedTuple):
    """What reading a type needs to know of its fields: which have to be there, which hold wire types, and what bounds them."""

    required: frozenset[str]
    nested: dict[str, type[Wire]]
    bounds: dict[str, Callable[[Any], Any]]


@cache
def _shape(kind: type[Wire]) -> _Shape:
    fields = msgspec.structs.fields(kind)
    return _Shape(
        frozenset(f.name for f in fields if f.required),
        {f.name: nested for f in fields if (nested := _wire_in(f.type)) is not None},
        {f.name: bound for f in fields if (bound := _bound_of(f.type)) is not None},
    )


def _wire_in(hint: Any) -> type[Wire] | None:
    """Return the wire type that a field holds, alone or several of it."""
    if isinstance(hint, type) and issubclass(hint, Wire):
        return hint
    return next((found for part in get_args(hint) if (found := _wire_in(part)) is not None), None)


def _bound_of(hint: Any) -> Callable[[Any], Any] | None:
    """Return what bounds the values of a field, each where there are several."""
    if get_origin(hint) is Annotated:
        return next((m.extra["bound"] for m in hint.__metadata__ if isinstance(m, Meta) and m.extra), None)
    # The last part of "one or several" is the one that takes several.
    bound = next((found for part in reversed(get_args(hint)) if (found := _bound_of(part)) is not None), None)
    if bound is None or get_origin(hint) is not tuple:
        return bound
    return lambda values: tuple(map(bound, values)) if isinstance(values, (tuple, list)) else bound(values)


# Any JSON value. `Any` is the honest type at this edge: a recursive alias would only restate it.
Json = Annotated[Any, bounded_by(json_value)]
MAX_COUNT = 2**63 - 1
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
MAX_ATTEMPT = 2**31 - 1
Attempt = Annotated[int, Meta(ge=1, le=MAX_ATTEMPT)]
MAX_SECONDS = 1e12
Seconds = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
