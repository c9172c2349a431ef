"""Making the next attempt: the command, the environment, and the guidance delivered the way it was asked for."""

from __future__ import annotations

import os

from kos_retry import limits
from kos_retry.adapters import state
from kos_retry.adapters.shell import SHELL
from kos_retry.errors import StateError
from kos_retry.outcome import Proposal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from kos_retry.adapters.actions import ActionsFile
    from kos_retry.engine.redact import Redactor
    from kos_retry.model import Decision, FailureEnvelope
    from kos_retry.outcome import NextStep

_OWN = "KOS_RETRY_"
# Settings of ours that a nested run inherits on purpose.
_INHERITED = "KOS_RETRY_OPT_"


class CommandProposer:
    """Proposes the same command again, told what was learned.

    ``delivery`` is one of `kos_retry.settings.DELIVERIES`. Placeholders in the command (`{guidance}`, `{guidance_file}`,
    `{attempt}`, `{session}`) are filled in for the delivery ``arg`` alone, so that a command with braces in it
    stays as it is otherwise.
    """

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        session: str,
        state_directory: str,
        delivery: str,
        max_attempts: int,
        redactor: Redactor,
        warn: Any,
        actions: ActionsFile | None = None,
        retry_command: str | None = None,
        max_prompt_bytes: int = limits.MAX_PROMPT_BYTES,
    ) -> None:
        self._actions = actions
        self._retry_command = retry_command
        self._max_prompt_bytes = max_prompt_bytes
        self._argv = tuple(argv)
        self._environment = {k: v for k, v in environment.items() if not k.startswith(_OWN) or k.startswith(_INHERITED)}
        self._session = session
        self._state_directory = state_directory
        self._directory = state.session_directory(state_directory, session)
        self._delivery = delivery
        self._max_attempts = max_attempts
        self._redactor = redactor
        self._warn = warn
        # Processes that leave their group are known by it; a session's name can be in use twice on one machine.
        self._mark = os.urandom(8).hex()

    def can_differ(self) -> bool:
        """Return whether guidance is delivered; see the port."""
        return self._delivery != "none"

    def propose(
        self, attempt: int, history: list[FailureEnvelope], decision: Decision | None, step: NextStep
    ) -> Proposal:
        """Return the attempt with this number; see the port."""
        environment = {**self._environment, f"{_OWN}ATTEMPT": str(attempt), f"{_OWN}SESSION": self._session}
        environment[f"{_OWN}MAX_ATTEMPTS"] = str(self._max_attempts)
        environment[f"{_OWN}MARK"] = self._mark
        environment[state.VARIABLE] = self._state_directory
        if self._actions is not None:
            self._actions.mark()
            environment[f"{_OWN}ACTIONS_FILE"] = self._actions.path
        guidance = self._told(decision.guidance, step) if decision is not None else ""
        if history:
            self._leave_files(environment, history[-1], guidance)
        stdin = None
        argv = self._argv
        if self._retry_command is not None and history and names_all_that_failed(history[-1]):
            argv = (*SHELL, self._retry_command)
        if self._delivery == "arg":
            argv = self._filled(argv, attempt, guidance, environment)
        elif guidance and self._delivery == "append":
            argv = (*argv, guidance)
        elif guidance and self._delivery == "env":
            environment[f"{_OWN}GUIDANCE"] = guidance
        elif guidance and self._delivery == "stdin":
            stdin = guidance.encode("utf-8", "replace")
        return Proposal(attempt, argv, environment, stdin, guidance if self.can_differ() else "")

    def _told(self, guidance: str, step: NextStep) -> str:
        """Return the guidance with what was done since it was written in front, without secrets and within its bound."""
        from kos_retry.engine.guidance import with_news
        from kos_retry.text.escapes import printable

        news = (
            [f"A recovery step ran before this attempt: `{printable(step.ran).replace('`', chr(39))}`"]
            if step.ran
            else []
        )
        news += [f"From whoever was asked for help: {step.guidance.strip()}"] if step.guidance.strip() else []
        # What stands in the place of a secret may be longer than that.
        return with_news(
            [self._redactor.text(line) for line in news], self._redactor.text(guidance), self._max_prompt_bytes
        )

    def _filled(
        self, argv: Sequence[str], attempt: int, guidance: str, environment: Mapping[str, str]
    ) -> tuple[str, ...]:
        places = {
            "{guidance}": guidance,
            "{guidance_file}": environment.get(f"{_OWN}GUIDANCE_FILE", os.devnull),
            "{attempt}": str(attempt),
            "{session}": self._session,
        }
        return tuple(_fill(word, places) for word in argv)

    def _leave_files(self, environment: dict[str, str], latest: FailureEnvelope, guidance: str) -> None:
        """Write what the next attempt may read about the last one, and tell it where."""
        import orjson

        failing = "".join(f"{' '.join(name.split())}\n" for name in _to_run_again(latest))
        files = {
            "PREVIOUS_ENVELOPE": ("previous_envelope.json", orjson.dumps(latest.as_json()).decode()),
            "FAILING_FILE": ("failing.txt", self._redactor.text(failing)),
        }
        if self.can_differ():
            files["GUIDANCE_FILE"] = ("guidance.md", guidance)
        try:
            state.make_private(self._directory)
            for variable, (name, content) in files.items():
                path = os.path.join(self._directory, name)
                state.write_private(path, content.encode("utf-8", "replace"))
                environment[_OWN + variable] = path
        except StateError as error:
            self._warn(f"{error}; the next attempt is not told what happened")


def names_all_that_failed(latest: FailureEnvelope) -> bool:
    """Return whether running again what failed would be enough: everything that did is named, and nothing else went wrong.

    What crashed, was cut short or never ended may have more to fail that nobody has seen.
    """
    if not latest.failing_constraints or latest.signal is not None or latest.omitted.constraints:
        return False
    if latest.category not in ("constraint_violation", "verification_failed") or _checks(latest):
        return False
    return not any(f.get("kind") == "crash" or f.get("status") == "unfinished" for f in _findings(latest))


def _to_run_again(latest: FailureEnvelope) -> tuple[str, ...]:
    """Return the failing constraints without checks and the types of what was thrown: no test runner takes those for names."""
    types, checks = {f.get("error_type") for f in _findings(latest)}, _checks(latest)
    named = tuple(name for name in latest.failing_constraints if name not in checks)
    return tuple(name for name in named if name not in types) or named


def _checks(latest: FailureEnvelope) -> frozenset[str]:
    """Return the failing constraints that are checks of ours: where the command exited with 0, whatever nothing that it wrote names."""
    if latest.category != "verification_failed":
        return frozenset()
    told = {f.get(key) for f in _findings(latest) for key in ("test_id", "code", "error_type")}
    return frozenset(latest.failing_constraints) - told


def _findings(envelope: FailureEnvelope) -> list[dict[str, Any]]:
    """Return the findings of all extractors, as the artifacts hold them."""
    payloads = (a.payload for a in envelope.diagnostic_artifacts if isinstance(a.payload, dict))
    return [f for payload in payloads for f in payload.get("findings") or () if isinstance(f, dict)]


def _fill(word: str, places: Mapping[str, str]) -> str:
    """Fill the placeholders of one word in a single pass, so that what is filled in is not filled again."""
    out, at = [], 0
    while at < len(word):
        start = word.find("{", at)
        found = next((p for p in places if start >= 0 and word.startswith(p, start)), None)
        if start < 0:
            out.append(word[at:])
            break
        out.append(word[at:start])
        out.append(places[found] if found else "{")
        at = start + (len(found) if found else 1)
    return "".join(out)
