"""What the transcript of an agent tells: its actions with their results, its usage, and why it failed."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, Protocol

from kos_retry.sdk import Answer, Request
from kos_retry.sdk.events import Event, Events
from kos_retry.text.bounds import byte_length, cut_bytes
from kos_retry.text.jsonvalue import json_value
from kos_retry.text.times import without_times

# The latest actions are kept, each with so much of its input and result; all together fit into one answer.
MAX_ACTIONS = 64
MAX_INPUT_BYTES = 2048
MAX_RESULT_BYTES = 4096
MAX_ANSWER_BYTES = 768 * 1024
MAX_MESSAGE_BYTES = 1024
MAX_EVIDENCE_BYTES = 500

# Of several reasons the first one here counts: what a human has to settle, then what waiting mends, then what the agent did.
RANKS = (
    "auth",
    "billing",
    "quota",
    "config",
    "environment",
    "transient",
    "context_window",
    "budget",
    "permission_denied",
    "loop_detected",
    "turn_limit",
    "malformed_output",
    "no_output",
    "deterministic",
)
# What is said about these varies without end and changes nothing: the kind is all that a signature should see.
SAID_BY_KIND = frozenset({"context_window", "malformed_output", "no_output"})


class Reader(Protocol):
    """What reads the events of one format: whether it knew any of them, and what they tell."""

    story: Story
    seen: bool

    def feed(self, event: Event) -> None:
        """Take the next event."""

    def answer(self, malformed: int) -> Answer:
        """Return what the whole transcript says."""


def told_by(reader: Reader, events: Events) -> Answer:
    """Return what a reader makes of a transcript: the actions, the usage, and the reason of a failure."""
    for event in events:
        reader.feed(event)
    if not reader.seen:
        return reader.story.unreadable(blank=events.blank, malformed=events.malformed)
    return reader.answer(events.malformed)


class Story:
    """What a transcript tells, collected event by event."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._actions: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._reasons: dict[str, dict[str, Any]] = {}
        self.started = 0
        self.denied = 0
        self.session: str | None = None
        self.usage: dict[str, Any] | None = None

    def action(self, call: str, name: str, given: Any = None) -> None:
        """Take the start of an action; ``call`` is its id, an empty one where it has none."""
        told = {"name": name, "input": shortened(given, MAX_INPUT_BYTES)}
        if call in self._actions:
            # Told again, perhaps in full now.
            if self.is_open(call):
                self._actions[call].update(told)
            return
        self.started += 1
        self._actions[call or f"\0{self.started}"] = told
        if len(self._actions) > MAX_ACTIONS:
            self._actions.popitem(last=False)

    def result(self, call: str, ok: bool | None, given: Any = None) -> None:
        """Take the result of an action; one of an action that is not known belongs to nothing."""
        known = self._actions.get(call) if call else next(reversed(self._actions.values()), None)
        if known is not None:
            known.update(ok=ok, result=shortened(given, MAX_RESULT_BYTES))

    def is_open(self, call: str) -> bool:
        """Return whether an action has started and has no result yet."""
        return call in self._actions and "ok" not in self._actions[call]

    @property
    def has_reasons(self) -> bool:
        """Return whether anything was blamed."""
        return bool(self._reasons)

    def blame(
        self, kind: str, message: str, rule: str, *, fix: str | None = None, retry_after: float | None = None
    ) -> None:
        """Take a reason for a failure; whether it was one shows at the end. The first of a kind gives the words."""
        said = cut_bytes(" ".join(message.split()), MAX_MESSAGE_BYTES)
        reason = self._reasons.setdefault(kind, {"message": said, "rule": rule, "fix": None, "retry_after": None})
        reason["message"] = reason["message"] or said
        reason["fix"] = fix or reason["fix"]
        reason["retry_after"] = reason["retry_after"] if retry_after is None else retry_after

    def spend(
        self,
        tokens_in: int | None,
        tokens_out: int | None,
        *,
        cost_usd: float | None = None,
        turns: int | None = None,
        cumulative: bool = False,
    ) -> None:
        """Set what was spent; None is unknown, which is not zero."""
        known = [n for n in (tokens_in, tokens_out) if n is not None]
        given = {
            "tokens": sum(known) if known else None,
            "input_tokens": tokens_in,
            "output_tokens": tokens_out,
            "turns": turns,
            "cost_usd": cost_usd,
        }
        if any(value is not None for value in given.values()):
            self.usage = given | {"cumulative": cumulative}

    def answer(self, *, failed: bool | None, message: str = "", malformed: int = 0) -> Answer:
        """Return what was told; a failure has one finding, with its weightiest reason as the cause."""
        answer = Answer()
        answer.failed, answer.session, answer.usage = failed, self.session and cut_bytes(self.session, 256), self.usage
        answer.actions = self._latest_actions()
        answer.totals = {"actions": self.started, "denied": self.denied, "malformed_lines": malformed}
        if failed:
            kind = min(self._reasons, key=RANKS.index, default=None)
            self._tell(answer, kind, cut_bytes(" ".join(message.split()), MAX_MESSAGE_BYTES))
        return answer

    def unreadable(self, *, blank: bool, malformed: int) -> Answer:
        """Return the answer where nothing was recognised: no output at all, or one that is something else.

        A command that failed may have said why on its standard error: then that counts.
        """
        if self._request.exit_code == 0 or not self._said_elsewhere():
            if blank:
                self.blame("no_output", "the command printed nothing", "transcript-empty")
            else:
                self.blame("malformed_output", "the output is no transcript of this format", "transcript-unreadable")
        return self.answer(failed=True if self._reasons else None, malformed=malformed)

    def _said_elsewhere(self) -> bool:
        path = self._request.stream("stderr")
        if self._request.signal or self._request.timed_out:
            return True
        if path is None:
            return False
        with open(path, "rb") as stream:
            return bool(stream.read(65536).strip())

    def _tell(self, answer: Answer, kind: str | None, message: str) -> None:
        if kind is None:
            answer.add("agent", message=message or "the transcript tells of a failure", confidence="exact")
            return
        reason = self._reasons[kind]
        said = reason["message"] or message or kind
        cause = {
            "kind": kind,
            "rule": reason["rule"],
            "evidence": cut_bytes(said, MAX_EVIDENCE_BYTES),
            "fix": reason["fix"],
            "retry_after_seconds": reason["retry_after"],
        }
        told = {name: value for name, value in cause.items() if value is not None}
        words = kind.replace("_", " ")
        answer.add(
            "agent",
            error_type=kind,
            message=words if kind in SAID_BY_KIND else said,
            confidence="exact",
            cause=told,
        )

    def _latest_actions(self) -> list[dict[str, Any]]:
        kept: list[dict[str, Any]] = []
        left = MAX_ANSWER_BYTES
        for action in reversed(self._actions.values()):
            told = {name: value for name, value in action.items() if value is not None}
            left -= len(json.dumps(told))
            if left < 0:
                break
            kept.append(told)
        return kept[::-1]


def shortened(value: Any, limit: int) -> Any:
    """Return a JSON value within about ``limit`` bytes; what is cut leaves its size and digest, so that two stay apart."""
    value = json_value(value)
    if isinstance(value, str):
        return cut_middle(value, limit)
    if value is None or _size(value) <= limit:
        return value
    cut = _with_short_texts(value, limit // 4)
    return cut if _size(cut) <= limit else cut_middle(json.dumps(value, ensure_ascii=False, sort_keys=True), limit)


def cut_middle(text: str, limit: int) -> str:
    """Return a text without its middle where it is longer than ``limit`` bytes; more of its end than of its start.

    Cuts fall on line ends where one is near, and times do not count in the digest: so two texts that differ in the time that
    something took do so after the cut as well.
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    from hashlib import blake2b

    start, end = limit // 4, len(raw) - (limit - limit // 4)
    start = raw.rfind(b"\n", start // 2, start) + 1 or start
    end = raw.find(b"\n", end, end + limit // 4) + 1 or end
    head, middle, tail = (part.decode("utf-8", "ignore") for part in (raw[:start], raw[start:end], raw[end:]))
    middle = without_times(middle)
    digest = blake2b(middle.encode(), digest_size=8).hexdigest()
    return f"{head.rstrip()}\n[{byte_length(middle)} bytes omitted, {digest}]\n{tail}"


def said(content: Any) -> Any:
    """Return what a result says: the texts of its blocks, or the value itself."""
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return content
    texts = [block["text"] for block in content if isinstance(block.get("text"), str)]
    return "\n".join(texts) if texts else content


def _with_short_texts(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return cut_middle(value, limit)
    if isinstance(value, dict):
        return {key: _with_short_texts(item, limit) for key, item in value.items()}
    return [_with_short_texts(item, limit) for item in value] if isinstance(value, list) else value


def _size(value: Any) -> int:
    return byte_length(json.dumps(value, ensure_ascii=False))
