"""What a caller hands to `observe`: one outcome as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

from kos_retry.limits import MAX_NAME_BYTES
from kos_retry.model.action import Action
from kos_retry.model.base import Attempt, Json, Seconds, Wire, bounded
from kos_retry.model.envelope import Category
from kos_retry.text.bounds import well_formed


def _text(value: Any) -> Any:
    return well_formed(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_text)]


class OutcomeRow(Wire):
    """One attempt's raw outcome.

    ``output`` is what a terminal would have shown; ``stdout`` and ``stderr`` are the streams apart, where
    the caller has them. ``transcript`` names the format where the output (``stdout`` if it is there) is an agent's
    transcript. ``reports`` are paths of report files that this attempt wrote. An unknown key is an
    error: a field that is spelt wrong must not be lost.
    """

    model_config = ConfigDict(extra="forbid")

    id: Json = None
    attempt: Attempt = 1
    exit_code: Annotated[int, Field(strict=True, ge=-(2**31), lt=2**32)] | None = None
    signal: Annotated[str, bounded(32)] | None = None
    output: Text | None = None
    stdout: Text | None = None
    stderr: Text | None = None
    transcript: Annotated[str, bounded(MAX_NAME_BYTES)] | None = None
    command: Text | tuple[Text, ...] | None = None
    cwd: Text | None = None
    reports: tuple[Text, ...] = ()
    executed_actions: tuple[Action, ...] = ()
    failing_constraints: tuple[Text, ...] = ()
    category: Category | None = None
    timed_out: bool = False
    duration_seconds: Seconds | None = None
