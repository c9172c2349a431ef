"""What Gemini CLI did and why it ended, from its `stream-json` or `json` output.

A run that its loop guard stopped ends with exit code 0 and `success`: only a warning on the way says so. Where it
fails early, its JSON goes to standard error with a mark in front, and the exit code tells the kind.
"""

from __future__ import annotations

import re

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.agents import Story
from kos_retry.sdk.events import Event, Events, count, part, parts, text, transcript
from kos_retry.sdk.provider import reason_of_words, reset_of, wait_of

MARK = ("[ERROR] ",)
TYPES = {
    "FatalAuthenticationError": "auth",
    "FatalInputError": "config",
    "FatalSandboxError": "config",
    "FatalConfigError": "config",
    "FatalUntrustedWorkspaceError": "config",
    "FatalTurnLimitedError": "turn_limit",
    "FatalToolExecutionError": "environment",
    "TerminalQuotaError": "quota",
    "RetryableQuotaError": "transient",
    "ModelNotFoundError": "config",
}
EXIT_CODES = {
    41: "auth",
    42: "config",
    44: "config",
    52: "config",
    53: "turn_limit",
    54: "environment",
    55: "config",
}
# Events that tell of the end of a run although its result does not.
ENDINGS = (
    ("loop_detected", re.compile(r"(?i)\bloop detected\b")),
    ("turn_limit", re.compile(r"(?i)\bmax(?:imum)? session turns\b")),
    ("permission_denied", re.compile(r"(?i)\bagent execution stopped\b")),
    ("no_output", re.compile(r"(?i)\bempty response\b|\bno (?:response|finish reason)\b")),
    ("malformed_output", re.compile(r"(?i)\bmalformed (?:function|tool) call\b")),
    ("no_output", re.compile(r"(?i)\binvalid stream\b")),
)
# A hook sent the agent back to work: an end only if nothing comes after it.
_BLOCKED = re.compile(r"(?i)\bagent execution blocked\b")
FIXES = {
    "auth": "check the credential: log in again, or renew the API key",
    "config": "correct the settings or the call, or trust the folder",
    "environment": "repair the machine: look at free disk space first",
    "turn_limit": "raise the limit of turns, or split the work",
    "permission_denied": "look at the hook or the policy that stopped the agent",
}


class Reader:
    """Reads one transcript."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.story = Story(request)
        self.seen = False
        self.result: Event | None = None
        self.error: Event | None = None
        self.words = False
        self.blocked = ""

    def feed(self, event: Event) -> None:
        """Take the next event; one of an unknown type is let be."""
        kind = event.get("type")
        if kind is None and ("response" in event or "error" in event):
            self._document(event)
        elif kind == "init":
            self.story.session = text(event, "session_id") or None
        elif kind == "message":
            if event.get("role") == "assistant" and text(event, "content"):
                self.words, self.blocked = True, ""
        elif kind == "tool_use":
            self.blocked = ""
            self.story.action(text(event, "tool_id"), text(event, "tool_name"), event.get("parameters"))
        elif kind == "tool_result":
            given = text(event, "output") or text(part(event, "error"), "message")
            self.story.result(text(event, "tool_id"), event.get("status") == "success", given)
            self.story.denied += text(part(event, "error"), "type") == "policy_violation"
        elif kind == "error":
            self._warning(text(event, "message"), severe=event.get("severity") != "warning")
        elif kind == "result":
            self._end(event)
        else:
            return
        self.seen = True

    def answer(self, malformed: int) -> Answer:
        """Return what the whole transcript says."""
        if self.error is not None:
            self._blame(self.error)
        if self.blocked and self.result is not None:
            kind = "permission_denied"
            self.story.blame(kind, self.blocked, "event-permission-denied", fix=FIXES[kind])
        failed = self.error is not None or self.story.has_reasons or self.result is None
        if not failed and not (self.words or self.story.started):
            failed = True
            self.story.blame("no_output", "the agent ended without a word and without an action", "result-empty")
        if failed and not self.story.has_reasons and (kind := EXIT_CODES.get(self.request.exit_code or 0)):
            self.story.blame(kind, self._message(), f"exit-{self.request.exit_code}", fix=FIXES.get(kind))
        return self.story.answer(failed=failed, message=self._message(), malformed=malformed)

    def _message(self) -> str:
        return text(self.error or {}, "message") or "the transcript ends without a result"

    def _document(self, event: Event) -> None:
        """Take the one object of the format `json`."""
        self.story.session = text(event, "session_id") or self.story.session
        self.result = event
        self.words = self.words or bool(text(event, "response"))
        self.error = part(event, "error") or self.error
        models = [part(model, "tokens") for model in parts([*part(event, "stats", "models").values()])]
        if models:
            self.story.spend(_total(models, "prompt", "input"), _total(models, "candidates"))
        warnings = event.get("warnings")
        for warning in warnings if isinstance(warnings, list) else ():
            self._warning(warning if isinstance(warning, str) else "", severe=False)
        if self.words:
            self.blocked = ""

    def _end(self, event: Event) -> None:
        self.result = event
        stats = part(event, "stats")
        self.story.spend(count(stats, "input_tokens"), count(stats, "output_tokens"))
        if event.get("status") == "error" or part(event, "error"):
            self.error = part(event, "error") or self.error or {}

    def _warning(self, message: str, *, severe: bool) -> None:
        kind = next((kind for kind, words in ENDINGS if words.search(message[:2000])), None)
        if _BLOCKED.search(message[:2000]):
            self.blocked = message
        elif kind:
            self.story.blame(kind, message, f"event-{kind}".replace("_", "-"), fix=FIXES.get(kind))
        elif severe:
            self.error = {"message": message}

    def _blame(self, error: Event) -> None:
        """Blame an error by its type, else by its words."""
        message, name = text(error, "message"), text(error, "type")
        told = reason_of_words(message)
        kind = TYPES.get(name) or EXIT_CODES.get(count(error, "code") or 0) or (told.kind if told else None)
        if kind:
            rule = f"error-{name}" if name in TYPES else told.rule if told else "error-code"
            fix = reset_of(message) if kind == "quota" else FIXES.get(kind)
            self.story.blame(kind, message, rule, fix=fix, retry_after=wait_of(message))


def extract(request: Request) -> Answer:
    """Answer with the actions, the usage, and the reason of a failure."""
    events, reader = transcript(request, MARK), Reader(request)
    for event in events:
        reader.feed(event)
    # An error that is printed beside the transcript; the rest of standard error is nobody's protocol.
    for event in Events(request.stream("stderr"), MARK):
        if part(event, "error"):
            reader.feed(event)
    if reader.seen:
        return reader.answer(events.malformed)
    if kind := EXIT_CODES.get(request.exit_code or 0):
        message = f"ended with exit code {request.exit_code}"
        reader.story.blame(kind, message, f"exit-{request.exit_code}", fix=FIXES.get(kind))
        return reader.story.answer(failed=True, message=message, malformed=events.malformed)
    return reader.story.unreadable(blank=events.blank, malformed=events.malformed)


def _total(models: list[Event], *names: str) -> int | None:
    known = [n for n in (count(model, *names) for model in models) if n is not None]
    return sum(known) if known else None


if __name__ == "__main__":
    main(extract)
