"""What Codex did and why it ended, from `codex exec --json`.

It has neither codes for its errors nor a reason for its end: only a turn that was completed is a success, and only the words of
its own errors tell why one failed.
"""

from __future__ import annotations

from typing import Any

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.agents import Story, said, told_by
from kos_retry.sdk.events import Event, count, part, text, transcript
from kos_retry.sdk.provider import FIXES, reason_of_words

# What of an item is its input, by its type; other items are no actions.
INPUTS = {
    "command_execution": ("command",),
    "file_change": ("changes",),
    "mcp_tool_call": ("server", "tool", "arguments"),
    "collab_tool_call": ("tool", "prompt"),
    "web_search": ("query",),
}


class Reader:
    """Reads one transcript."""

    def __init__(self, request: Request) -> None:
        self.story = Story(request)
        self.seen = False
        self.completed = False
        self.error = ""
        self.words = ""

    def feed(self, event: Event) -> None:
        """Take the next event; one of an unknown type is let be."""
        kind = event.get("type")
        if kind == "thread.started":
            self.story.session = text(event, "thread_id") or None
        elif kind == "turn.started":
            self.completed = False
        elif kind == "turn.completed":
            self._complete(part(event, "usage"))
        elif kind == "turn.failed":
            self.completed, self.error = False, text(part(event, "error"), "message") or self.error
        elif kind == "error":
            # Also a notice of a reconnection: whether it mattered shows at the end.
            self.error = text(event, "message") or text(part(event, "error"), "message") or self.error
        elif kind in ("item.started", "item.updated", "item.completed"):
            self._item(part(event, "item"), ended=kind == "item.completed")
        else:
            return
        self.seen = True

    def answer(self, malformed: int) -> Answer:
        """Return what the whole transcript says."""
        if self.completed:
            silent = not (self.words or self.story.started)
            if silent:
                self.story.blame("no_output", "the turn ended without a word and without an action", "turn-empty")
            return self.story.answer(failed=silent, malformed=malformed)
        if reason := reason_of_words(self.error):
            fix = reason.fix or FIXES.get(reason.kind)
            self.story.blame(reason.kind, self.error, reason.rule, fix=fix, retry_after=reason.retry_after)
        return self.story.answer(
            failed=True, message=self.error or "the transcript ends without a completed turn", malformed=malformed
        )

    def _complete(self, usage: Event) -> None:
        self.completed = True
        # The thread's running total.
        self.story.spend(count(usage, "input_tokens"), count(usage, "output_tokens"), cumulative=True)

    def _item(self, item: Event, *, ended: bool) -> None:
        kind, call = text(item, "type"), text(item, "id")
        if kind == "agent_message":
            self.words = text(item, "text") or self.words
        if kind not in INPUTS:
            return
        status = text(item, "status")
        if not (ended and self.story.is_open(call)):
            self.story.action(call, kind, {name: item[name] for name in INPUTS[kind] if item.get(name) is not None})
        if ended:
            self.story.denied += status == "declined"
            self.story.result(call, _ok(item, status), _result(item))


def extract(request: Request) -> Answer:
    """Answer with the actions, the usage, and the reason of a failure."""
    return told_by(Reader(request), transcript(request))


def _ok(item: Event, status: str) -> bool | None:
    if status in ("failed", "declined") or item.get("exit_code") not in (None, 0):
        return False
    return True if status == "completed" or not status else None


def _result(item: Event) -> Any:
    output = item.get("aggregated_output")
    if isinstance(output, str) and output:
        return output
    failure = text(part(item, "error"), "message")
    return failure or said(part(item, "result").get("content") or item.get("result"))


if __name__ == "__main__":
    main(extract)
