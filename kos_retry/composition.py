"""Builds the object graph; the only place that knows which adapter stands behind which port."""

from __future__ import annotations

import os
import time

from kos_retry import limits
from kos_retry.adapters import state
from kos_retry.adapters.checks import SuccessChecks
from kos_retry.adapters.clock import SystemClock, timestamp
from kos_retry.adapters.journal import SessionJournal
from kos_retry.adapters.process import standard
from kos_retry.adapters.process.runner import ProcessRunner, RunnerOptions
from kos_retry.adapters.process.signals import SignalPipe
from kos_retry.adapters.proposals import CommandProposer
from kos_retry.adapters.shell import Shell
from kos_retry.engine.redact import Redactor, secret_values
from kos_retry.loop import Loop, Unsupervised
from kos_retry.report.terminal import TerminalReporter, tell
from kos_retry.text.bounds import well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kos_retry.adapters.actions import ActionsFile
    from kos_retry.adapters.extraction.child import Host
    from kos_retry.adapters.extraction.extract import Extraction
    from kos_retry.adapters.extraction.transcripts import TranscriptText
    from kos_retry.adapters.observation import OutcomeObserver
    from kos_retry.adapters.store.memory import StoreMemory
    from kos_retry.model import Decision, FailureEnvelope
    from kos_retry.outcome import Broken, Outcome, Past, Proposal, Result
    from kos_retry.ports import AttemptRunner
    from kos_retry.settings import Raw, RunSettings


def run(argv: Sequence[str], settings: RunSettings, *, raw: Raw | None = None, past: Past | None = None) -> Result:
    """Run a command under the given settings and return how it ended.

    ``raw`` are the options as they were written, for whoever resumes the session; ``past`` is what a resumed one has behind it.
    """
    environment = dict(os.environ)
    session = settings.session or state.new_session_id(time.time(), os.urandom(4))
    root = state.state_directory(settings.state_dir, environment)
    directory = state.session_directory(root, session)
    redactor = Redactor(secret_values(environment, settings.mask_env) + _store_secrets(settings.store))
    shown_argv = [_shown(word, redactor) for word in argv]
    closed = standard.occupy()
    replayed = standard.spool_input() if settings.replay_stdin and standard.STDIN not in closed else None
    signal_pipe = SignalPipe()
    held = standard.Held() if settings.hold_output else None
    spool = standard.Spool(limits.TRANSCRIPT_BYTES) if settings.transcript else None
    actions = _actions_file(settings)
    # A state directory that cannot be used concerns journal, store and the next attempt alike; it is told once.
    warn_of_state = _Once()
    remembering = _Remembering(settings.store, root, shown_argv, warn_of_state)
    late = _Late(redactor, settings, remembering, spool, actions)
    left = None if settings.deadline is None else settings.deadline - (past.seconds_used if past else 0.0)
    options = RunnerOptions(
        timeout_seconds=settings.timeout,
        deadline_at=None if left is None else time.monotonic() + left,
        deadline_seconds=settings.deadline,
        grace_seconds=settings.kill_after,
        tty=settings.tty,
        warm_up=late.warm_up,
        warm_up_seconds=limits.WARM_UP_SECONDS,
        replayed_input=replayed,
        held=held,
        closed=closed,
        spool=spool,
    )
    shell = Shell(signal_pipe, options)
    loop = Loop(
        proposer=CommandProposer(
            argv,
            environment,
            session=session,
            directory=directory,
            delivery=settings.guidance,
            max_attempts=settings.max_attempts,
            redactor=redactor,
            warn=warn_of_state,
            actions=actions,
            retry_command=settings.retry_command,
            max_prompt_bytes=settings.max_prompt_bytes,
        ),
        runner=_runner(signal_pipe, options, settings),
        checks=SuccessChecks(
            verify=settings.verify,
            require=settings.require,
            forbid=settings.forbid,
            shell=shell,
            warn=tell,
            told_failed=late.told_failed if settings.transcript else None,
            reported=late.reported if settings.collect else None,
            done=settings.done,
        ),
        observer=late,
        judge=late,
        journal=SessionJournal(
            directory, session, redactor, warn_of_state, timestamp, shown_argv, raw, exact=shown_argv == list(argv)
        ),
        reporter=TerminalReporter(
            session=session,
            argv=shown_argv,
            started=timestamp(),
            settings=settings,
        ),
        clock=SystemClock(signal_pipe),
        memory=late,
        **_supervision(shell, settings, redactor, session),
        past=past,
        flaky_fails=settings.flaky_result == "fail",
        pivot_retries=settings.on_pivot == "retry",
    )
    try:
        return loop.run()
    finally:
        late.close()
        signal_pipe.close()
        if held is not None:
            held.release()


def _runner(signal_pipe: SignalPipe, options: RunnerOptions, settings: RunSettings) -> AttemptRunner:
    runner = ProcessRunner(signal_pipe, options)
    if not settings.collect:
        return runner
    from kos_retry.adapters.reports import Collected

    return Collected(runner, settings.collect)


def _supervision(shell: Shell, settings: RunSettings, redactor: Redactor, session: str) -> dict[str, Any]:
    """Return the ports of whoever has a say in the run; most runs have nobody, and import nothing for it."""
    if not (settings.gate or settings.pivot or settings.on_escalate):
        alone = Unsupervised()
        return {"gate": alone, "recovery": alone, "supervisor": alone}
    from kos_retry.adapters.supervision import CommandGate, CommandSupervisor, Ladder

    return {
        "gate": CommandGate(settings.gate, shell, redactor, session) if settings.gate else Unsupervised(),
        "recovery": Ladder(settings.pivot, shell, tell),
        "supervisor": CommandSupervisor(settings.on_escalate, shell, redactor, tell),
    }


def _shown(word: str, redactor: Redactor) -> str:
    """Return a word of the command as it may be shown: a secret in it is none the less one for an escape in its middle."""
    if word.isascii() and word.isprintable():
        return redactor.text(word)
    from kos_retry.text.escapes import plain_text

    return redactor.text(plain_text(well_formed(word)))


class _Once:
    """Tells the first warning and keeps the others to itself."""

    def __init__(self) -> None:
        self._told = False

    def __call__(self, message: str) -> None:
        if not self._told:
            self._told = True
            tell(message)


class _Remembering:
    """What the memory of a run is made of, when a failure asks for it."""

    def __init__(self, store: str | None, root: str, shown_argv: Sequence[str], warn: Callable[[str], None]) -> None:
        self._store = store
        self._root = root
        self._shown_argv = shown_argv
        self._warn = warn

    def memory(self) -> StoreMemory | None:
        """Return the memory, None where the store is switched off."""
        from kos_retry.adapters.store.location import locate
        from kos_retry.adapters.store.memory import StoreMemory

        location = locate(self._store, self._root)
        if location is None:
            return None
        # What goes wrong with a store of its own place is another matter than the state directory.
        return StoreMemory(location, self._shown_argv, tell if location.chosen else self._warn)


class _Late:
    """Observer, judge and memory, imported when the first attempt has failed or takes long enough that it may."""

    def __init__(
        self,
        redactor: Redactor,
        settings: RunSettings,
        remembering: _Remembering,
        spool: standard.Spool | None,
        actions: ActionsFile | None,
    ) -> None:
        self._spool = spool
        self._actions = actions
        self._redactor = redactor
        self._settings = settings
        self._remembering = remembering
        self._memory: StoreMemory | None = None
        self._host: Host | None = None
        self._extraction: Extraction | None = None
        self._observer: OutcomeObserver | None = None
        self._seed = settings.seed if settings.seed is not None else int.from_bytes(os.urandom(8), "big")

    def warm_up(self) -> None:
        """Start the extractors' host while the command runs; what a failure imports here would weigh on every long pass."""
        from kos_retry.adapters.extraction.child import Host

        self._host = Host()
        self._host.start()

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

    def reported(self, proposal: Proposal, outcome: Outcome) -> list[Broken]:
        """Return what the fresh reports of an attempt that exited with 0 say that failed."""
        return self._load().reported(proposal, outcome)

    def decide(self, history: list[FailureEnvelope], seconds_used: float) -> Decision:
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
        known = self._memory.recall(history[-1]) if self._memory else None
        return decide(history, policy, schedule=schedule, seconds_used=seconds_used, known=known)

    def remember(self, result: Result) -> None:
        """Record how a run ended that failed at least once; see the port."""
        if self._memory is not None:
            self._memory.remember(result)

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
            # Looking for plug-ins of the validator means reading every installed package's metadata; ours need none. The command
            # has its copy of the environment already.
            os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
            if self._host is None:
                # It starts on the other core while this one imports.
                self.warm_up()
            from kos_retry.adapters.extraction.extract import Extraction
            from kos_retry.adapters.observation import OutcomeObserver

            options = {}
            if self._settings.matchers:
                from kos_retry.adapters.matchers import extractor_options

                options = extractor_options(self._settings.matchers)
            self._extraction = Extraction(self._redactor, *self._settings.extractors, host=self._host, options=options)
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
            self._memory = self._remembering.memory()
        return self._observer


def _may_differ(settings: RunSettings) -> bool:
    """Return whether a next attempt can be another one than the last."""
    return settings.guidance != "none" or bool(settings.pivot) or settings.retry_command is not None


def _actions_file(settings: RunSettings) -> ActionsFile | None:
    if settings.actions is None:
        return None
    from kos_retry.adapters.actions import ActionsFile

    return ActionsFile(settings.actions)


def _store_secrets(store: str | None) -> list[str]:
    if store is None:
        return []
    from kos_retry.text.urls import passwords

    return passwords(store)


def _workspace() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
