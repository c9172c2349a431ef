"""A sighting: one failure in one run of one command, and how that run ended."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta

from kos_retry.limits import STORE_TEXT_BYTES
from kos_retry.model.base import MAX_ATTEMPT, Attempt, Seconds, Wire, bounded_by
from kos_retry.text.bounds import cut_bytes, well_formed
from kos_retry.text.escapes import printable

Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Key = Annotated[str, Meta(pattern=r"^[!-~]{1,256}$")]


def _shown(text: str) -> str:
    return cut_bytes(printable(well_formed(text)), STORE_TEXT_BYTES)


# What other runners and their commands said ends on terminals, and in databases that refuse some characters.
Line = Annotated[str, bounded_by(_shown)]


class Sighting(Wire, frozen=True, kw_only=True):
    """What the store keeps of a failure that was seen in a run.

    ``origin`` is the store that recorded it and ``run`` the run, so that it is never counted twice. ``command`` is the command's
    fingerprint, ``command_line`` what people read. ``passed`` says how the run ended, after ``attempts``; ``changed`` whether
    its attempts differed, so that a pass is a repair. ``retries`` counts the attempts that followed this failure at once,
    ``retry_seconds`` their time with the waits before them. ``last`` marks the failure that the run ended with, or that
    its pass came after.
    """

    v: Literal[1] = 1
    origin: Id
    run: Id
    time: Annotated[datetime, Meta(tz=True)]
    command: Key
    command_line: Line = ""
    signature: Key
    coarse: Line = ""
    message: Line = ""
    passed: bool
    changed: bool = False
    last: bool = True
    attempts: Attempt
    retries: Annotated[int, Meta(ge=0, le=MAX_ATTEMPT)] = 0
    retry_seconds: Seconds = 0.0
    stop_reason: Annotated[str, Meta(pattern=r"^[a-z_]{0,64}$")] = ""
