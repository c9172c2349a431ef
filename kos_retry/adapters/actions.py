"""The actions file: what the command appends to it, one action a line, is what it did."""

from __future__ import annotations

import os

from kos_retry.errors import InputError
from kos_retry.limits import ACTIONS_FILE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kos_retry.model import Action

_FAULT = "actions-file"


class Appended:
    """What was read of an actions file; ``faults`` says what could not be."""

    __slots__ = ("actions", "faults")

    def __init__(self, actions: tuple[Action, ...] = (), faults: dict[str, str] | None = None) -> None:
        self.actions = actions
        self.faults = faults or {}


class ActionsFile:
    """A file that the attempts of a run append to; what stood there before an attempt is none of its actions."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._start = 0

    def mark(self) -> None:
        """Remember where the file ends: an attempt starts."""
        try:
            self._start = os.stat(self.path).st_size
        except OSError:
            # It may appear yet.
            self._start = 0

    def appended(self) -> Appended:
        """Return what was appended since the mark; of a file that was written anew everything."""
        try:
            with open(self.path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                start = self._start if self._start <= size else 0
                file.seek(max(start, size - ACTIONS_FILE_BYTES))
                raw = file.read(ACTIONS_FILE_BYTES)
        except FileNotFoundError:
            return Appended()
        except OSError as error:
            return Appended(faults={_FAULT: f"{self.path}: {error.strerror}"})
        # Half a line is no action.
        return parsed(raw if size - start <= ACTIONS_FILE_BYTES else raw[raw.find(b"\n") + 1 :])


def parsed(raw: bytes) -> Appended:
    """Return the actions in JSON Lines of objects and texts; lines that hold none are counted."""
    import orjson

    from kos_retry.limits import MAX_ACTIONS
    from kos_retry.model import Action

    lines = [line for line in raw.split(b"\n") if line.strip()]
    found, broken = [], 0
    for line in lines:
        try:
            action = Action.from_json(_fields(orjson.loads(line)))
        except (ValueError, InputError):
            broken += 1
            continue
        if action.name:
            found.append(action)
        else:
            broken += 1
    faults = {_FAULT: f"{broken} of {len(lines)} lines are no actions"} if broken else {}
    return Appended(tuple(found[-MAX_ACTIONS:]), faults)


def _fields(value: object) -> object:
    """Return an action under the names of its fields; agents know some of them by others."""
    if isinstance(value, str) or not isinstance(value, dict):
        return value
    from kos_retry.limits import MAX_ACTION_INPUT_BYTES
    from kos_retry.sdk.agents import shortened

    names = {"action": "name", "tool": "name", "args": "input", "output": "result"}
    renamed = {names[key]: item for key, item in value.items() if key in names}
    kept = {**renamed, **{key: item for key, item in value.items() if key in ("name", "input", "ok", "result")}}
    return {k: shortened(v, MAX_ACTION_INPUT_BYTES) if k in ("input", "result") else v for k, v in kept.items()}
