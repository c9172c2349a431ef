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
from kos_retry.failure_path import FailurePath, Remembering
from kos_retry.loop import Loop, Unsupervised
from kos_retry.report.terminal import TerminalReporter, tell
from kos_retry.text.bounds import well_formed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from kos_retry.adapters.actions import ActionsFile
    from kos_retry.outcome import Past, Result
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
    remembering = Remembering(settings.store, root, shown_argv, warn_of_state)
    late = FailurePath(redactor, settings, remembering, spool, actions)
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
        fell=os.path.join(directory, state.FELL),
    )
    shell = Shell(signal_pipe, options)
    journal = SessionJournal(
        directory,
        session,
        redactor,
        warn_of_state,
        timestamp,
        shown_argv,
        raw,
        exact=shown_argv == list(argv),
        seconds_used=past.seconds_used if past else 0.0,
    )
    loop = Loop(
        proposer=CommandProposer(
            argv,
            environment,
            session=session,
            state_directory=root,
            delivery=settings.guidance,
            max_attempts=settings.max_attempts,
            redactor=redactor,
            warn=warn_of_state,
            actions=actions,
            retry_command=settings.retry_command,
            max_prompt_bytes=min(settings.max_prompt_bytes, settings.max_prompt_tokens * limits.BYTES_PER_TOKEN),
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
        journal=journal,
        reporter=TerminalReporter(
            session=session,
            argv=shown_argv,
            started=timestamp(),
            settings=settings,
        ),
        clock=SystemClock(signal_pipe),
        memory=late,
        **_supervision(shell, settings, redactor, session, journal, past),
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


def _supervision(
    shell: Shell,
    settings: RunSettings,
    redactor: Redactor,
    session: str,
    journal: SessionJournal,
    past: Past | None,
) -> dict[str, Any]:
    """Return the ports of whoever has a say in the run; most runs have nobody, and import nothing for it."""
    if not (settings.gate or settings.pivot or settings.on_escalate):
        alone = Unsupervised()
        return {"gate": alone, "recovery": alone, "supervisor": alone}
    from kos_retry.adapters.supervision import CommandGate, CommandSupervisor, Ladder, still_to_try

    steps = still_to_try(settings.pivot, past.tried, redactor) if past else settings.pivot
    return {
        "gate": CommandGate(settings.gate, shell, redactor, session) if settings.gate else Unsupervised(),
        "recovery": Ladder(steps, shell, tell, journal.step),
        "supervisor": CommandSupervisor(settings.on_escalate, shell, redactor, tell, journal.help),
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
