"""What an agent did, from a log of one JSON object an action: a format for agents that have none of their own.

Either an action, its observation and the end each have a line (`"kind"` tells which), or an action and its result stand in one.
Every field may be missing.
"""

from __future__ import annotations

from typing import Any

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.agents import Story, said, told_by
from kos_retry.sdk.events import Event, amount, count, part, text, transcript
from kos_retry.sdk.provider import reason_of_words

NAME = ("tool", "action", "name")
INPUT = ("input", "args", "arguments", "parameters", "params")
RESULT = ("result", "output", "observation", "error")
ID = ("id", "call_id", "tool_call_id")
SESSION = ("session_id", "session", "thread_id")
# What agents call the reason of their end, by what it means.
STOP_REASONS = {
    "turn_limit": "max_turns turn_limit max_steps step_limit max_iterations recursion_limit",
    "loop_detected": "loop loop_detected doom_loop stuck",
    "context_window": "context_window context_length context_length_exceeded prompt_too_long max_tokens length",
    "permission_denied": "permission_denied denied rejected",
    "quota": "quota usage_limit quota_exceeded",
    "billing": "billing payment_required insufficient_credits",
    "auth": "auth auth_error unauthorized authentication_failed",
    "transient": "rate_limit rate_limited overloaded network_error connection_error",
    "budget": "budget cost_budget cost_limit budget_exceeded max_budget",
    "malformed_output": "malformed_output format_error parse_error",
    "no_output": "no_output empty_output",
    "config": "config config_error",
}
KINDS = {word: kind for kind, words in STOP_REASONS.items() for word in words.split()}
# Words in a reason that is not known, which speak of a failure all the same.
FAILING = ("fail", "error", "abort", "cancel", "crash", "timeout", "exhausted", "exceeded")


class Reader:
    """Reads one log."""

    def __init__(self, request: Request) -> None:
        self.story = Story(request)
        self.seen = False
        self.stop_reason = ""
        self.failed: bool | None = None
        self.error = ""
        self.spent: dict[str, dict[str, float]] = {}
        self.ended = False

    def feed(self, event: Event) -> None:
        """Take the next event; one of an unknown kind is let be."""
        kind = text(event, "kind", "type").lower()
        if kind in ("observation", "tool_result"):
            self.story.result(text(event, *ID), _ok(event), _result(event))
        elif kind in ("finish", "end", "done", "result"):
            self._finish(event)
        elif name := _name(event, kind):
            self._action(name, event)
        else:
            return
        self.seen = True
        self.story.session = text(event, *SESSION) or self.story.session

    def answer(self, malformed: int) -> Answer:
        """Return what the whole log says; a log has no end of its own, so that nothing is missing where there is none."""
        spent = self.spent.get("", {}) if self.ended and "" in self.spent else _summed(self.spent)
        self.story.spend(
            int(spent["in"]) if "in" in spent else None,
            int(spent["out"]) if "out" in spent else None,
            cost_usd=round(spent["cost"], 9) if "cost" in spent else None,
        )
        reason = self.stop_reason.lower().replace("-", "_").replace(" ", "_")
        kind = KINDS.get(reason)
        if kind:
            self.story.blame(
                kind, self.error or f"stopped: {self.stop_reason}", f"stop-reason-{reason}".replace("_", "-")
            )
        elif told := reason_of_words(self.error):
            self.story.blame(told.kind, self.error, told.rule, fix=told.fix, retry_after=told.retry_after)
        failed = self.failed
        if kind or any(word in reason for word in FAILING):
            failed = True
        elif failed is None and self.ended:
            failed = False
        message = self.error or (f"stopped: {self.stop_reason}" if self.stop_reason else "")
        return self.story.answer(failed=failed, message=message, malformed=malformed)

    def _action(self, name: str, event: Event) -> None:
        call = text(event, *ID)
        inner = part(event, "action")
        self.story.action(call, name, next((e[key] for e in (event, inner) for key in INPUT if key in e), None))
        if _ok(event) is not None or any(key in event for key in RESULT):
            self.story.result(call, _ok(event), _result(event))
        self._spend(event, text(event, "message_id") or f"action {self.story.started}")

    def _finish(self, event: Event) -> None:
        self.ended = True
        self.stop_reason = text(event, "stop_reason", "reason", "status")
        self.error = text(event, "error") or text(part(event, "error"), "message")
        self.failed = None if _ok(event) is None else not _ok(event)
        self._spend(event, "")

    def _spend(self, event: Event, mark: str) -> None:
        usage = part(event, "usage") or event
        known = {
            "in": count(usage, "input_tokens", "prompt_tokens"),
            "out": count(usage, "output_tokens", "completion_tokens"),
            "cost": amount(usage, "cost_usd", "total_cost_usd"),
        }
        # Lines of one message repeat its usage: the last one counts.
        if told := {name: value for name, value in known.items() if value is not None}:
            self.spent[mark] = told


def extract(request: Request) -> Answer:
    """Answer with the actions, the usage, and the reason of a failure."""
    return told_by(Reader(request), transcript(request))


def _name(event: Event, kind: str) -> str:
    """Return the name of the action that a line tells of, an empty one where it tells of none."""
    if kind not in ("", "action", "tool_use", "tool_call"):
        return ""
    if inner := part(event, "action"):
        return text(inner, *NAME)
    # A name alone may be anybody's.
    keys = NAME if kind or any(key in event for key in (*INPUT, *RESULT, "ok")) else NAME[:2]
    return text(event, *keys)


def _ok(event: Event) -> bool | None:
    for key in ("ok", "success"):
        if isinstance(event.get(key), bool):
            return bool(event[key])
    if event.get("is_error") is not None or event.get("error"):
        return not (event.get("is_error") or event.get("error"))
    code = event.get("exit_code")
    return code == 0 if isinstance(code, int) else None


def _result(event: Event) -> Any:
    return next((said(event[key]) for key in RESULT if event.get(key) not in (None, "")), None)


def _summed(spent: dict[str, dict[str, float]]) -> dict[str, float]:
    out: dict[str, float] = {}
    for told in spent.values():
        for name, value in told.items():
            out[name] = out.get(name, 0) + value
    return out


if __name__ == "__main__":
    main(extract)
