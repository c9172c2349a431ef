"""What a caller hands to `observe`: one outcome as JSON."""

from __future__ import annotations

from typing import Annotated

from kos_retry.limits import MAX_NAME_BYTES
from kos_retry.model.action import Action
from kos_retry.model.base import Attempt, Json, Seconds, Wire, bounded, bounded_by
from kos_retry.model.envelope import Category, ExitCode
from kos_retry.text.bounds import well_formed

Text = Annotated[str, bounded_by(well_formed)]


class OutcomeRow(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attempt's raw outcome.

    ``output`` is what a terminal would have shown; ``stdout`` and ``stderr`` are the streams apart, where
    the caller has them. ``transcript`` names the format where the output (``stdout`` if it is there) is an agent's
    transcript. ``reports`` are paths of report files that this attempt wrote. An unknown key is an
    error: a field that is spelt wrong must not be lost.
    """

    id: Json = None
    attempt: Attempt = 1
    exit_code: ExitCode | None = None
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
