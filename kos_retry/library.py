"""The loop around Python code: ``for attempt in attempts(policy): with attempt: …``, and the decision over a history.

The same loop as behind `run`, driven by the block: an exception is a failed attempt, observed and signed like a command's output. It is
swallowed where another attempt follows, and raised where none does.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from kos_retry.adapters.completion import complete
from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.engine.backoff import Schedule
from kos_retry.engine.decide import decide
from kos_retry.engine.observe import Evidence, observe
from kos_retry.engine.redact import Redactor
from kos_retry.loop import Loop, Unsupervised
from kos_retry.model import Decision, FailureEnvelope, Policy
from kos_retry.outcome import Captured, Outcome, Proposal, Result


def evaluate(history: Sequence[FailureEnvelope | Mapping[str, Any]], policy: Policy | None = None) -> Decision:
    """Return what to do after the last attempt of a history, oldest first.

    Envelopes may be as small as an exit code and a message: what is missing is computed, as `kos-retry next` does. Raises
    InputError for a mapping that is no envelope.
    """
    envelopes = tuple(
        e if isinstance(e, FailureEnvelope) else FailureEnvelope.from_json({"attempt": number, **e})
        for number, e in enumerate(history, 1)
    )
    with Extraction(Redactor()) as extraction:
        return decide(complete(envelopes, extraction), policy or Policy(), schedule=Schedule())


def attempts(policy: Policy | None = None, *, schedule: Schedule | None = None) -> Iterator[Attempt]:
    """Yield attempts until one passes or nothing speaks for another one.

    Each is a context manager, with ``with`` or ``async with``, around what is to be tried; the wait before the next one is in
    its exit. ``policy`` has no limit of attempts unless it says so. Breaking out of the loop ends it.
    """
    loop = _CodeLoop(policy or Policy(), schedule or Schedule())
    while loop.result is None:
        attempt = Attempt(loop)
        yield attempt
        if not attempt.entered:
            raise RuntimeError("an attempt was not made: put the work into 'with attempt:'")


class Attempt:
    """One attempt: its ``number`` from 1, and what was learned before it (None and "" on the first)."""

    def __init__(self, loop: _CodeLoop) -> None:
        self._loop = loop
        self._proposal = loop.propose()
        self._began = 0.0
        self.number = self._proposal.attempt
        self.decision: Decision | None = loop.decision
        self.entered = False

    @property
    def guidance(self) -> str:
        """Return the guidance for this attempt."""
        return self.decision.guidance if self.decision is not None else ""

    def __enter__(self) -> Self:
        self.entered, self._began = True, time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        swallowed = self._ended(error)
        time.sleep(self._loop.pause.take())
        return swallowed

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        swallowed = self._ended(error)
        await asyncio.sleep(self._loop.pause.take())
        return swallowed

    def _ended(self, error: BaseException | None) -> bool:
        """Take in how the block ended; return whether its exception is swallowed."""
        if error is not None and not isinstance(error, Exception):
            # An interrupt or a cancelled task is nobody's failure.
            return False
        self._loop.ended(self._proposal, error, time.monotonic() - self._began)
        return error is not None and self._loop.result is None


class _CodeLoop:
    """The loop, with the block's exceptions for outcomes."""

    def __init__(self, policy: Policy, schedule: Schedule) -> None:
        alone, code = Unsupervised(), _Code(policy, schedule)
        self.pause = _Pause()
        self.result: Result | None = None
        self._code = code
        self._loop = Loop(
            proposer=code,
            runner=code,
            checks=code,
            observer=code,
            judge=code,
            journal=code,
            reporter=code,
            clock=self.pause,
            memory=code,
            gate=alone,
            recovery=alone,
            supervisor=alone,
            # The block is another one whenever it looks at the guidance; nobody can tell from outside.
            pivot_retries=True,
        )

    @property
    def decision(self) -> Decision | None:
        """Return what was decided last."""
        return self._code.decision

    def propose(self) -> Proposal:
        """Return the next attempt."""
        return self._loop.propose()

    def ended(self, proposal: Proposal, error: Exception | None, seconds: float) -> None:
        """Take in how an attempt ended."""
        outcome = Outcome(0 if error is None else 1, time.time())
        outcome.duration_seconds = seconds
        self._code.error = error
        self.result = self._loop.conclude(proposal, outcome, self._code)


class _Pause:
    """A clock whose waits are made by the block's exit, so that they can be awaited."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def now(self) -> float:
        """Return seconds; see the port."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Note a wait; see the port."""
        self._seconds = seconds

    def take(self) -> float:
        """Return the wait that was noted, and forget it."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


class _Code:
    """All other ports of a loop around code: exceptions are observed, and nothing is recorded or told."""

    def __init__(self, policy: Policy, schedule: Schedule) -> None:
        self._policy = policy
        self._schedule = schedule
        self.error: Exception | None = None
        self.decision: Decision | None = None

    def propose(self, attempt: int, *_: Any) -> Proposal:
        """Return the attempt with this number; see the port."""
        return Proposal(attempt, (), {})

    def can_differ(self) -> bool:
        """Return that the block may differ; see the port."""
        return True

    def start(self, *_: Any) -> _Code:
        """Return itself: the block is the attempt; see the port."""
        return self

    def wait(self) -> Outcome:
        """Refuse: the block is waited for elsewhere; see the port."""
        raise NotImplementedError

    def captured(self) -> tuple[Captured, Captured]:
        """Return nothing: the block's output is its own; see the port."""
        return Captured(), Captured()

    def check(self, *_: Any) -> None:
        """Let a block that ended without an exception pass; see the port."""

    def observe(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope:
        """Return the envelope of an exception; see the port."""
        told = "".join(traceback.format_exception(self.error)) if self.error is not None else ""
        return observe(
            Evidence(
                attempt=proposal.attempt,
                exit_code=outcome.exit_code,
                outputs=(told,),
                duration_seconds=round(outcome.duration_seconds, 3),
                timestamp=datetime.fromtimestamp(outcome.started_at, UTC),
            )
        )

    def passed(self, *_: Any) -> None:
        """Tell nothing of a block that passed; see the port."""

    def decide(self, history: list[FailureEnvelope], seconds_used: float, _: Sequence[FailureEnvelope]) -> Decision:
        """Return what follows from a history; see the port."""
        self.decision = decide(history, self._policy, schedule=self._schedule, seconds_used=seconds_used)
        return self.decision

    def _nothing(self, *_: Any, **__: Any) -> None:
        """Record and tell nothing: that is for who wrote the block."""

    begin = resume = attempt = end = remember = output_lost = left_running = going_on = refused = _nothing
