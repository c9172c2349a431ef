"""What a run needs once an attempt has failed: observer, judge and memory, imported as late as that.

Most runs pass, and none of this may cost them anything; see docs/decisions.
"""

from __future__ import annotations

import os

from kos_retry.report.terminal import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kos_retry.adapters.actions import ActionsFile
    from kos_retry.adapters.extraction.child import Host
    from kos_retry.adapters.extraction.extract import Extraction
    from kos_retry.adapters.extraction.transcripts import TranscriptText
    from kos_retry.adapters.observation import OutcomeObserver
    from kos_retry.adapters.process import standard
    from kos_retry.adapters.store.memory import StoreMemory
    from kos_retry.engine.redact import Redactor
    from kos_retry.model import Decision, FailureEnvelope
    from kos_retry.outcome import Broken, Outcome, Proposal, Result
    from kos_retry.settings import RunSettings

# What is imported while a command runs, the pieces of one step together. Models, signing and the store weigh as much again: they are
# imported while the extractors work.
_STEPS = (
    ("kos_retry.adapters.extraction.extract",),
    ("kos_retry.adapters.observation", "kos_retry.engine.evidence"),
)


class Remembering:
    """The memory of a run, made when a failure asks for it."""

    def __init__(self, store: str | None, root: str, shown_argv: Sequence[str], warn: Callable[[str], None]) -> None:
        self._store = store
        self._root = root
        self._shown_argv = shown_argv
        self._warn = warn
        self._made = False
        self._memory: StoreMemory | None = None

    def memory(self) -> StoreMemory | None:
        """Return the memory, None where the store is switched off."""
        if not self._made:
            self._made, self._memory = True, self._make()
        return self._memory

    def _make(self) -> StoreMemory | None:
        from kos_retry.adapters.store.location import locate
        from kos_retry.adapters.store.memory import StoreMemory

        location = locate(self._store, self._root)
        if location is None:
            return None
        # What goes wrong with a store of its own place is another matter than the state directory.
        return StoreMemory(location, self._shown_argv, tell if location.chosen else self._warn)


class FailurePath:
    """Observer, judge and memory, imported when the first attempt has failed or takes long enough that it may."""

    def __init__(
        self,
        redactor: Redactor,
        settings: RunSettings,
        remembering: Remembering,
        spool: standard.Spool | None,
        actions: ActionsFile | None,
    ) -> None:
        self._spool = spool
        self._actions = actions
        self._redactor = redactor
        self._settings = settings
        self._remembering = remembering
        self._host: Host | None = None
        self._warming = self._warm()
        self._extraction: Extraction | None = None
        self._observer: OutcomeObserver | None = None
        self._seed = settings.seed if settings.seed is not None else int.from_bytes(os.urandom(8), "big")

    def warm_up(self) -> bool:
        """Make ready the next piece of what a failure needs, while the command runs; return whether there is more."""
        return next(self._warming, False)

    def _warm(self) -> Iterator[bool]:
        """Start the extractors' host, then import step by step: no step keeps the command's output waiting for long."""
        host = self._started_host()
        yield True
        _load_extractors(host)
        for modules in _STEPS:
            yield True
            for name in modules:
                __import__(name)

    def _started_host(self) -> Host:
        from kos_retry.adapters.extraction.child import Host

        if self._host is None:
            self._host = Host()
            self._host.start()
        return self._host

    def observe(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope:
        """Return the envelope of an attempt; see the port."""
        import gc

        # What the first failure imports stays; looking through it for garbage again and again takes a fifth of the time.
        gc.disable()
        try:
            return self._load().observe(proposal, outcome)
        finally:
            gc.enable()

    def told_failed(self, proposal: Proposal, outcome: Outcome) -> bool:
        """Return whether the transcript of an attempt that exited with 0 tells of a failure."""
        return self._load().told_failed(proposal, outcome)

    def passed(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope | None:
        """Return what is known of an attempt that passed: nothing is imported for it that was not needed before."""
        return self._observer.passed(proposal, outcome) if self._observer is not None else None

    def reported(self, proposal: Proposal, outcome: Outcome) -> list[Broken]:
        """Return what the fresh reports of an attempt that exited with 0 say that failed."""
        return self._load().reported(proposal, outcome)

    def decide(
        self, history: list[FailureEnvelope], seconds_used: float, ledger: Sequence[FailureEnvelope]
    ) -> Decision:
        """Return what follows from a history; see the port."""
        from kos_retry.engine.backoff import Schedule
        from kos_retry.engine.decide import decide
        from kos_retry.model import NextAttempt, Policy

        settings = self._settings
        policy = Policy(
            max_attempts=settings.max_attempts or None,
            deadline_seconds=settings.deadline,
            retry_on=tuple(settings.retry_on),
            stop_on=tuple(settings.stop_on),
            # Every step of the ladder is to be tried before help is called for.
            max_stagnant_attempts=max(settings.max_stagnant_attempts, len(settings.pivot) + 1),
            zero_delta_fail_fast=settings.zero_delta_fail_fast,
            max_identical_signatures=settings.max_identical_signatures,
            max_prompt_bytes=settings.max_prompt_bytes,
            max_prompt_tokens=settings.max_prompt_tokens,
            max_cost_usd=settings.max_cost_usd,
            max_tokens=settings.max_tokens,
            reserve_budgets=True,
            max_failures=settings.max_failures,
            max_transient_retries=settings.max_transient_retries,
            max_repeated_actions=settings.max_repeated_actions,
            next_attempt=NextAttempt.MAY_DIFFER if _may_differ(settings) else NextAttempt.SAME,
        )
        schedule = Schedule(settings.delay, settings.backoff, settings.max_delay, settings.jitter, self._seed)
        memory = self._remembering.memory()
        known = memory.recall(history[-1]) if memory and history else None
        return decide(history, policy, schedule=schedule, seconds_used=seconds_used, known=known, ledger=ledger)

    def remember(self, result: Result) -> None:
        """Record how a run ended that failed at least once; see the port."""
        memory = self._remembering.memory()
        if memory is not None:
            memory.remember(result)

    def close(self) -> None:
        """End what was started."""
        if self._extraction is not None:
            self._extraction.close()
        elif self._host is not None:
            self._host.close()

    def _transcript(self) -> TranscriptText:
        """Return the transcript of the attempt that has just ended."""
        from kos_retry.adapters.extraction.transcripts import TranscriptText

        raw = self._spool.read() if self._spool is not None else b""
        return TranscriptText(self._settings.transcript or "", "stdout", raw)

    def _load(self) -> OutcomeObserver:
        if self._observer is None:
            # They start on the other core while this one imports.
            host = self._started_host()
            _load_extractors(host)
            from kos_retry.adapters.extraction.extract import Extraction
            from kos_retry.adapters.observation import OutcomeObserver

            options = {}
            if self._settings.matchers:
                from kos_retry.adapters.matchers import extractor_options

                options = extractor_options(self._settings.matchers)
            self._extraction = Extraction(self._redactor, *self._settings.extractors, host=host, options=options)
            conditions = [*self._settings.retry_on, *self._settings.stop_on]
            self._observer = OutcomeObserver(
                self._redactor,
                self._extraction,
                _workspace(),
                conditions,
                self._settings.token_rules,
                tell,
                transcript=self._transcript if self._spool is not None else None,
                actions=self._actions,
            )
        return self._observer


def _load_extractors(host: Host) -> None:
    """Have the host load the extractors that are asked about every failure."""
    from kos_retry.adapters.extraction.manifest import bundled

    for manifest in bundled():
        script = manifest.script()
        if manifest.match.always and script is not None:
            host.load(script)


def _may_differ(settings: RunSettings) -> bool:
    """Return whether a next attempt can be another one than the last."""
    return settings.guidance != "none" or bool(settings.pivot) or settings.retry_command is not None


def _workspace() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
