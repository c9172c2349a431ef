"""Commands that have a say in a run: the gate, the recovery steps, and whoever is asked for help.

What they print goes to our standard error; only an answer on standard output of one that is asked is kept for us.
"""

from __future__ import annotations

from kos_retry import limits
from kos_retry.outcome import NextStep, Refusal
from kos_retry.text.jsonline import json_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from kos_retry.adapters.shell import Shell
    from kos_retry.engine.redact import Redactor
    from kos_retry.model import Decision
    from kos_retry.outcome import Outcome, Proposal

_ALLOW = frozenset({"yes", "allow", "approve"})
_DENY = frozenset({"no", "deny", "reject"})


class Ladder:
    """Recovery steps in the order in which they were given; each is run once, and one that fails makes way for the next.

    ``record`` takes every step that has ended, with its exit code.
    """

    def __init__(
        self,
        commands: Sequence[str],
        shell: Shell,
        tell: Callable[[str], None],
        record: Callable[[str, int], None],
    ) -> None:
        self._left = list(commands)
        self._shell = shell
        self._tell = tell
        self._record = record

    def next_step(self, proposal: Proposal) -> NextStep | None:
        """Run the next step; see the port."""
        while self._left:
            command = self._left.pop(0)
            self._tell(f"recovery step: {command}")
            outcome = self._shell.run(command, proposal)
            if outcome.cancelled_by is not None:
                return NextStep(cancelled_by=outcome.cancelled_by)
            self._record(command, outcome.exit_code)
            if outcome.succeeded:
                return NextStep(ran=command)
            self._tell(f"the recovery step failed: {_ended(outcome)}: {command}")
        return None


class CommandGate:
    """Asks a command before every attempt; without one everything may pass.

    The command reads the proposal with its fingerprint, and answers with its exit code (0 is yes), or in JSON with a ``verdict``, the
    ``fingerprint`` it is about and a ``reason``. No answer in time, and one that makes no sense, is a no; where the time of the whole run is up, it has
    not answered.
    """

    def __init__(self, command: str | None, shell: Shell, redactor: Redactor, session: str) -> None:
        self._command = command
        self._shell = shell
        self._redactor = redactor
        self._session = session

    def ask(self, proposal: Proposal, decision: Decision | None) -> Refusal | None:
        """Ask about one attempt; see the port."""
        if self._command is None:
            return None
        asked = fingerprint(proposal)
        question = {
            "attempt": proposal.attempt,
            "session": self._session,
            "fingerprint": asked,
            "argv": [self._redactor.text(word) for word in proposal.argv],
            "guidance": proposal.guidance,
            "decision": decision.as_json() if decision is not None else None,
        }
        outcome, said = self._shell.ask(
            self._command, proposal, _line(self._redactor.value(question)), limits.GATE_SECONDS
        )
        if outcome.cancelled_by is not None:
            return Refusal("cancelled", "a signal came while the gate was asked", outcome.cancelled_by)
        if outcome.at_deadline:
            return Refusal("deadline", "the time was up before the gate had answered")
        if not outcome.succeeded:
            return Refusal("gate_denied", _ended(outcome) + _reason(said))
        return self._verdict(said, asked) or (
            None if fingerprint(proposal) == asked else Refusal("verdict_void", "the attempt changed after the verdict")
        )

    def _verdict(self, said: bytes, asked: str) -> Refusal | None:
        if not said.strip():
            return None
        answer = _object(said)
        word = str(answer.get("verdict", "")).lower() if answer else ""
        if word in _DENY:
            return Refusal("gate_denied", str(answer.get("reason") or "it said no"))
        if word not in _ALLOW:
            return Refusal("gate_denied", "its answer is no verdict")
        if answer.get("fingerprint", asked) != asked:
            return Refusal("verdict_void", "the verdict is about another attempt")
        return None


class CommandSupervisor:
    """Asks a command for help; without one nobody is there.

    It reads the decision, and may answer in JSON: ``{"verdict": "retry", "guidance": "…"}`` or ``{"verdict": "halt"}``. No answer ends
    the run as it would have ended. ``record`` takes what it says when it sends the run on.
    """

    def __init__(
        self,
        command: str | None,
        shell: Shell,
        redactor: Redactor,
        tell: Callable[[str], None],
        record: Callable[[str], None],
    ) -> None:
        self._record = record
        self._command = command
        self._shell = shell
        self._redactor = redactor
        self._tell = tell

    @property
    def is_there(self) -> bool:
        """Return whether there is a command; see the port."""
        return self._command is not None

    def ask(self, proposal: Proposal, decision: Decision) -> NextStep | None:
        """Ask for help; see the port."""
        if self._command is None:
            return None
        question = self._redactor.value({"attempt": proposal.attempt, "decision": decision.as_json()})
        outcome, said = self._shell.ask(self._command, proposal, _line(question), limits.ESCALATION_SECONDS)
        if outcome.cancelled_by is not None:
            return NextStep(cancelled_by=outcome.cancelled_by)
        if not outcome.succeeded:
            self._tell(f"nobody helped: {_ended(outcome)}")
            return None
        answer = _object(said)
        if str(answer.get("verdict", "")).lower() == "retry":
            guidance = self._redactor.text(str(answer.get("guidance") or ""))
            self._record(guidance)
            return NextStep(guidance=guidance, helped=True)
        return None


def still_to_try(commands: Sequence[str], tried: Sequence[str], redactor: Redactor) -> list[str]:
    """Return the steps of a ladder that a resumed session has not tried; ``tried`` are as its journal tells them."""
    left = list(commands)
    for step in tried:
        known = next((command for command in left if redactor.text(command) == step), None)
        if known is not None:
            left.remove(known)
    return left


def fingerprint(proposal: Proposal) -> str:
    """Return what identifies an attempt: its words, its standard input, what it is told, and its environment as we set it."""
    import hashlib

    own = {name: value for name, value in proposal.environment.items() if name.startswith("KOS_RETRY_")}
    stdin = (proposal.stdin or b"").decode("utf-8", "replace")
    told = [list(proposal.argv), stdin, proposal.guidance, sorted(own.items())]
    return hashlib.sha256(json_line({"proposal": told}).encode("ascii")).hexdigest()


def _line(question: Any) -> bytes:
    return json_line(question).encode("ascii") + b"\n"


def _object(said: bytes) -> dict[str, Any]:
    import json

    try:
        answer = json.loads(said)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _ended(outcome: Outcome) -> str:
    if outcome.timed_out:
        return f"it did not end within {outcome.limit_seconds:g}s"
    return f"it ended with exit code {outcome.exit_code}"


def _reason(said: bytes) -> str:
    reason = _object(said).get("reason")
    return f": {reason}" if isinstance(reason, str) and reason else ""
