"""Builds the object graph; the only place that knows which adapter stands behind which port."""

from __future__ import annotations

import os
import time

from kos_retry import limits
from kos_retry.adapters import state
from kos_retry.adapters.clock import SystemClock, timestamp
from kos_retry.adapters.journal import SessionJournal
from kos_retry.adapters.process.runner import ProcessRunner
from kos_retry.adapters.process.signals import SignalPipe
from kos_retry.adapters.proposals import CommandProposer
from kos_retry.engine.redact import Redactor, secret_values
from kos_retry.loop import Loop
from kos_retry.report.terminal import TerminalReporter, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kos_retry.adapters.extraction.extract import Extraction
    from kos_retry.adapters.observation import OutcomeObserver
    from kos_retry.model import Decision, FailureEnvelope
    from kos_retry.outcome import Outcome, Proposal, Result
    from kos_retry.settings import RunSettings


def run(argv: Sequence[str], options: RunSettings) -> Result:
    """Run a command under the given options and return how it ended."""
    environment = dict(os.environ)
    session = options.session or state.new_session_id(time.time(), os.urandom(4))
    directory = state.session_directory(state.state_directory(options.state_dir, environment), session)
    redactor = Redactor(secret_values(environment, options.mask_env))
    signal_pipe = SignalPipe()
    late = _Late(redactor, options)
    loop = Loop(
        proposer=CommandProposer(
            argv,
            environment,
            session=session,
            directory=directory,
            delivery=options.guidance,
            max_attempts=options.max_attempts,
            redactor=redactor,
            warn=tell,
        ),
        runner=ProcessRunner(
            signal_pipe,
            timeout_seconds=options.timeout,
            grace_seconds=options.kill_after,
            warm_up=(limits.WARM_UP_SECONDS, late.warm_up),
        ),
        observer=late,
        judge=late,
        journal=SessionJournal(directory, session, redactor, tell, timestamp),
        reporter=TerminalReporter(
            session=session,
            argv=[redactor.text(word) for word in argv],
            started=timestamp(),
            max_attempts=options.max_attempts,
            reports=options.report,
        ),
        clock=SystemClock(signal_pipe),
    )
    try:
        return loop.run()
    finally:
        late.close()
        signal_pipe.close()


class _Late:
    """Observer and judge, imported when the first attempt has failed or takes long enough that it may."""

    def __init__(self, redactor: Redactor, options: RunSettings) -> None:
        self._redactor = redactor
        self._options = options
        self._extraction: Extraction | None = None
        self._observer: OutcomeObserver | None = None

    def warm_up(self) -> None:
        """Load in a thread what a failure will need, while the command runs."""
        import _thread

        _thread.start_new_thread(self._load_quietly, ())

    def observe(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope:
        """Return the envelope of an attempt; see the port."""
        return self._load().observe(proposal, outcome)

    def decide(self, history: list[FailureEnvelope], seconds_used: float) -> Decision:
        """Return what follows from a history; see the port."""
        from kos_retry.engine.backoff import Schedule
        from kos_retry.engine.decide import decide
        from kos_retry.model import NextAttempt, Policy

        options = self._options
        policy = Policy(
            max_attempts=options.max_attempts or None,
            max_stagnant_attempts=options.max_stagnant_attempts,
            zero_delta_fail_fast=options.zero_delta_fail_fast,
            max_identical_signatures=options.max_identical_signatures,
            max_prompt_bytes=options.max_prompt_bytes,
            max_prompt_tokens=options.max_prompt_tokens,
            next_attempt=NextAttempt.SAME if options.guidance == "none" else NextAttempt.MAY_DIFFER,
        )
        schedule = Schedule(options.delay, options.backoff, options.max_delay, options.jitter, self._seed())
        return decide(history, policy, schedule=schedule, seconds_used=seconds_used)

    def close(self) -> None:
        """End what was started."""
        if self._extraction is not None:
            self._extraction.close()

    def _load(self) -> OutcomeObserver:
        if self._observer is None:
            from kos_retry.adapters.extraction.extract import Extraction
            from kos_retry.adapters.observation import OutcomeObserver

            self._extraction = Extraction(self._redactor)
            self._extraction.warm()
            self._observer = OutcomeObserver(self._redactor, self._extraction, _workspace())
        return self._observer

    def _load_quietly(self) -> None:
        """Import ahead of need; what is wrong is told by the failure path, which imports again."""
        try:
            import kos_retry.adapters.observation
            import kos_retry.engine.decide
            import kos_retry.report.render  # noqa: F401 - imported for the cache
        except Exception:  # noqa: BLE001, S110 - a thread nobody waits for has nobody to tell
            pass

    def _seed(self) -> int:
        return self._options.seed if self._options.seed is not None else int.from_bytes(os.urandom(8), "big")


def _workspace() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
