"""What opencode did and why it ended, from `opencode run --format json`."""

from __future__ import annotations

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.agents import Story, told_by
from kos_retry.sdk.events import Event, amount, count, part, text, transcript
from kos_retry.sdk.provider import FIXES, kind_of_status, reason_of_words

TYPES = frozenset({"step_start", "step_finish", "tool_use", "text", "reasoning", "error", "done"})
NAMES = {
    "ProviderAuthError": "auth",
    "MessageOutputLengthError": "context_window",
    "ContextOverflowError": "context_window",
}
ENDINGS = {"length": "context_window"}


class Reader:
    """Reads one transcript."""

    def __init__(self, request: Request) -> None:
        self.story = Story(request)
        self.seen = False
        self.error: Event | None = None
        self.reason = ""
        self.words = False
        self.steps: set[str] = set()
        self.spent: dict[str, float] = {}

    def feed(self, event: Event) -> None:
        """Take the next event; one of an unknown type is let be."""
        kind, piece = text(event, "type"), part(event, "part")
        if kind not in TYPES or not (piece or "error" in event or "reason" in event or "sessionID" in event):
            return
        self.seen = True
        self.story.session = text(event, "sessionID") or self.story.session
        if kind == "step_start":
            self.reason = ""
        elif kind == "step_finish":
            self._step(piece)
        elif kind == "tool_use":
            self._tool(piece)
        elif kind == "text":
            self.words = self.words or bool(text(piece, "text"))
        elif kind == "error":
            self.error = part(event, "error")
        elif kind == "done":
            self._done(event)

    def answer(self, malformed: int) -> Answer:
        """Return what the whole transcript says."""
        spent = self.spent
        tokens = [int(spent[name]) if name in spent else None for name in ("input", "output")]
        self.story.spend(*tokens, cost_usd=round(spent["cost"], 9) if "cost" in spent else None, turns=len(self.steps))
        if self.error is not None:
            self._blame(self.error)
        elif self.reason in ENDINGS:
            self.story.blame(ENDINGS[self.reason], f"the last step ended by {self.reason}", "step-length")
        unfinished = self.reason in ("", "tool-calls", "error")
        failed = self.error is not None or unfinished or self.story.has_reasons
        if not failed and not (self.words or self.story.started):
            failed = True
            self.story.blame("no_output", "the agent ended without a word and without an action", "result-empty")
        data = part(self.error or {}, "data")
        message = text(data, "message") or text(self.error or {}, "name") or "the transcript ends within a step"
        return self.story.answer(failed=failed, message=message, malformed=malformed)

    def _step(self, piece: Event) -> None:
        self.reason = text(piece, "reason") or "unknown"
        mark = text(piece, "id") or f"step {len(self.steps)}"
        if mark in self.steps:
            return
        self.steps.add(mark)
        tokens = part(piece, "tokens")
        for name, value in (
            ("cost", amount(piece, "cost")),
            ("input", amount(tokens, "input")),
            ("output", amount(tokens, "output")),
        ):
            if value is not None:
                self.spent[name] = self.spent.get(name, 0) + value

    def _tool(self, piece: Event) -> None:
        call, state = text(piece, "callID", "id"), part(piece, "state")
        status = text(state, "status")
        self.story.action(call, text(piece, "tool"), state.get("input"))
        if status in ("completed", "error"):
            # A command that failed has completed all the same.
            ok = status == "completed" and part(state, "metadata").get("exit") in (None, 0)
            self.story.result(call, ok, state.get("output") or state.get("error"))

    def _done(self, event: Event) -> None:
        self.reason = text(event, "reason") or self.reason
        rejected = event.get("rejected")
        for _ in rejected if isinstance(rejected, list) else ():
            self.story.denied += 1
            fix = "allow what was asked for, or have the agent do without it"
            self.story.blame("permission_denied", "a permission was rejected", "permission-rejected", fix=fix)

    def _blame(self, error: Event) -> None:
        data = part(error, "data")
        message = text(data, "message") or text(error, "name")
        told = reason_of_words(message)
        status = count(data, "statusCode")
        kind = NAMES.get(text(error, "name")) or (told.kind if told else None)
        if status and kind in (None, "transient"):
            kind = kind_of_status(status) or kind
        if kind is None and data.get("isRetryable") is True:
            kind = "transient"
        if kind == "transient" and data.get("isRetryable") is False:
            # The provider knows better than its words.
            kind = "deterministic"
        if kind:
            fix = (told.fix if told and kind == "quota" else None) or FIXES.get(kind)
            rule = f"http-{status}" if status else told.rule if told else "provider-error"
            self.story.blame(kind, message, rule, fix=fix, retry_after=told.retry_after if told else None)


def extract(request: Request) -> Answer:
    """Answer with the actions, the usage, and the reason of a failure."""
    return told_by(Reader(request), transcript(request))


if __name__ == "__main__":
    main(extract)
