"""The formats in which agents ask their hooks, as manifests describe them: a `[hook]` table is data, no code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from kos_retry.errors import ManifestError

Kind = Literal["stop", "called", "failed"]
_KINDS: tuple[Kind, ...] = ("stop", "called", "failed")
_FIELDS = ("event", "again", "tool", "input", "response", "error")
_ANSWERS = ("block", "context")


class HookEvent(NamedTuple):
    """What a hook is asked about: the agent wants to stop, a call went well, or one failed.

    ``again`` says whether a hook keeps the agent going already, None where the agent does not say.
    """

    kind: Kind
    name: str
    again: bool | None = None
    tool: str = ""
    input: Any = None
    response: Any = None


class HookFormat(NamedTuple):
    """One format: which fields say what, which names the events have, and the shapes of the answers.

    ``event`` is the field with the event's name, ``again`` the flag that a hook keeps the agent going already, ``tool``, ``input`` and
    ``response`` describe a call; one that has something in ``error`` failed. A dot leads into an object. In the answers ``block``
    (go on) and ``context`` (know this), `{text}` and `{event}` are filled in.
    """

    event: str
    stop: tuple[str, ...]
    called: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    again: str = ""
    tool: str = ""
    input: str = ""
    response: str = ""
    error: str = ""
    block: Mapping[str, Any] = {}
    context: Mapping[str, Any] = {}

    def read(self, data: Mapping[str, Any]) -> HookEvent | None:
        """Return the event in what a hook was handed, None where it is none that this format knows."""
        name = _at(data, self.event)
        kind = next((kind for kind in _KINDS if name in getattr(self, kind)), None)
        if kind is None or not isinstance(name, str):
            return None
        again, tool = _at(data, self.again), _at(data, self.tool)
        return HookEvent(
            kind="failed" if kind == "called" and _at(data, self.error) else kind,
            name=name,
            again=again if isinstance(again, bool) else None,
            tool=tool if isinstance(tool, str) else "",
            input=_at(data, self.input),
            response=_at(data, self.response),
        )

    def answer(self, shape: Literal["block", "context"], event: HookEvent, text: str) -> dict[str, Any]:
        """Return the answer of one of the two shapes."""
        filled = _filled(getattr(self, shape), {"{text}": text, "{event}": event.name})
        return filled if isinstance(filled, dict) else {}


def read_hook_format(value: Any) -> HookFormat:
    """Return the format that a manifest's table describes; raises ManifestError that names the key."""
    if not isinstance(value, dict):
        raise ManifestError("should be a table")
    for key, given in value.items():
        if key not in HookFormat._fields:
            raise ManifestError(f"{key}: there is no such key; known are {', '.join(HookFormat._fields)}")
        if key in _FIELDS and not (isinstance(given, str) and given):
            raise ManifestError(f"{key}: should be a string that is not empty")
        if key in _KINDS and not _are_texts(given):
            raise ManifestError(f"{key}: should be a list of strings")
        if key in _ANSWERS and not isinstance(given, dict):
            raise ManifestError(f"{key}: should be a table")
    for key in ("event", "stop"):
        if key not in value:
            raise ManifestError(f"{key}: the key is missing")
    fields: dict[str, Any] = {key: tuple(given) if key in _KINDS else given for key, given in value.items()}
    return HookFormat(**fields)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _at(data: Any, path: str) -> Any:
    """Return what stands at a path of dots, None where nothing does."""
    for step in path.split(".") if path else ():
        if not isinstance(data, dict):
            return None
        data = data.get(step)
    return data if path else None


def _filled(shape: Any, places: Mapping[str, str]) -> Any:
    if isinstance(shape, dict):
        return {key: _filled(value, places) for key, value in shape.items()}
    return places.get(shape, shape) if isinstance(shape, str) else shape
