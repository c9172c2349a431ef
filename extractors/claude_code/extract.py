"""What Claude Code did and why it ended, from its `stream-json` or `json` output.

Only its own structured fields and messages tell why it failed. Results of tools are results, whatever they say.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.agents import Story, said, told_by
from kos_retry.sdk.events import Event, amount, count, part, parts, text, transcript
from kos_retry.sdk.provider import kind_of_status, reason_of_words, reset_of

CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
RESULTS = ("tool_result", "web_search_tool_result", "mcp_tool_result")
# Prose about a call that changes from one to the next; other tools have fields of this name that matter.
PROSE = {"Bash": "description", "Task": "description", "Agent": "description"}
ERRORS = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "account_on_hold": "auth",
    "verification_required": "auth",
    "cloud_credential_error": "auth",
    "billing_error": "billing",
    "overloaded": "transient",
    "server_error": "transient",
    "model_not_found": "config",
    "max_output_tokens": "context_window",
}
ENDINGS = {
    "error_max_turns": "turn_limit",
    "max_turns": "turn_limit",
    "error_max_budget_usd": "budget",
    "budget_exhausted": "budget",
    "error_max_structured_output_retries": "malformed_output",
    "malformed_tool_use_exhausted": "malformed_output",
    "prompt_too_long": "context_window",
    "blocking_limit": "context_window",
    "rapid_refill_breaker": "context_window",
    "model_error": "transient",
}
FIXES = {
    "auth": "check the credential: log in again, or renew the key",
    "billing": "settle the billing of the plan",
    "config": "name a model that exists and that this account may use",
    "budget": "raise the agent's own budget, or split the work",
}
YEAR_3000 = 32_503_680_000
# Older versions write the time behind the words.
_RESETS_AT = re.compile(r"\|(\d{10})\b")


class Trouble(NamedTuple):
    """An error of the provider: its name, its status, its words, and the wait before the agent's own retry."""

    name: str
    status: int | None
    words: str
    wait: float | None = None


class Reader:
    """Reads one transcript."""

    def __init__(self, request: Request) -> None:
        self.story = Story(request)
        self.seen = False
        self.trouble: Trouble | None = None
        self.limit: Event | None = None
        self.denied: dict[str, str] = {}
        self.last: Event | None = None
        self.words = ""

    def feed(self, event: Event) -> None:
        """Take the next event; one of an unknown type is let be."""
        read = _READ.get(str(event.get("type")))
        if read is not None:
            self.seen = True
            self.story.session = text(event, "session_id") or self.story.session
            read(self, event)

    def system(self, event: Event) -> None:
        """Take a notice: the agent tries again by itself, or a tool was not permitted."""
        if event.get("subtype") == "api_retry":
            wait = amount(event, "retry_delay_ms")
            self.trouble = Trouble(
                text(event, "error"), count(event, "error_status"), "", None if wait is None else wait / 1000
            )
        elif event.get("subtype") == "permission_denied":
            self._deny(event)

    def assistant(self, event: Event) -> None:
        """Take a message of the model, or an error that is put as one."""
        blocks = parts(part(event, "message").get("content"))
        words = " ".join(text(block, "text") for block in blocks).strip()
        if text(event, "error") or event.get("is_api_error_message") is True:
            self.trouble = Trouble(text(event, "error"), None, words)
            return
        # Where the model speaks again, what went wrong before was mended.
        self.trouble = None
        self.words = words or self.words
        for block in blocks:
            if block.get("type") in CALLS:
                name = text(block, "name")
                self.story.action(text(block, "id"), name, _without_prose(name, block.get("input")))

    def user(self, event: Event) -> None:
        """Take the results of tools."""
        for block in parts(part(event, "message").get("content")):
            if block.get("type") in RESULTS:
                ok = block.get("is_error") is not True
                self.story.result(text(block, "tool_use_id"), ok, said(block.get("content")))

    def rate_limit(self, event: Event) -> None:
        """Take the state of a limit of the plan."""
        info = part(event, "rate_limit_info")
        self.limit = info if info.get("status") == "rejected" else None

    def result(self, event: Event) -> None:
        """Take the end."""
        self.last = event
        usage = part(event, "usage")
        self.story.spend(
            count(usage, "input_tokens"),
            count(usage, "output_tokens"),
            cost_usd=amount(event, "total_cost_usd"),
            turns=count(event, "num_turns"),
            cumulative=not _is_of_this_run(usage, event.get("modelUsage")),
        )
        for denial in parts(event.get("permission_denials")):
            self._deny(denial)

    def answer(self, malformed: int) -> Answer:
        """Return what the whole transcript says."""
        self.story.denied = len(self.denied)
        last = self.last or {}
        broken = not self.last or last.get("is_error") is True or bool(count(last, "api_error_status"))
        broken = broken or text(last, "subtype") not in ("", "success")
        silent = not (broken or self.words or text(last, "result") or self.story.started)
        if broken:
            self._blame_end(last)
        for tool in self.denied.values():
            fix = f"allow {tool} for this run, or have the agent do without it"
            self.story.blame("permission_denied", f"{tool} was not permitted", "tool-denied", fix=fix)
        if silent:
            self.story.blame("no_output", "the agent ended without a word and without an action", "result-empty")
        return self.story.answer(
            failed=broken or silent or bool(self.denied), message=self._message(last), malformed=malformed
        )

    def _deny(self, denial: Event) -> None:
        self.denied.setdefault(text(denial, "tool_use_id"), text(denial, "tool_name") or "a tool")

    def _blame_end(self, last: Event) -> None:
        ending = next((e for e in (text(last, "terminal_reason"), text(last, "subtype")) if e in ENDINGS), "")
        if ending:
            rule = "ended-" + ending.removeprefix("error_").replace("_", "-")
            self.story.blame(ENDINGS[ending], self._message(last), rule, fix=FIXES.get(ENDINGS[ending]))
            return
        status = count(last, "api_error_status")
        trouble = self.trouble or (Trouble("", status, self._message(last)) if last else None)
        if trouble is not None:
            words = trouble.words or (self._message(last) if last else "")
            self._blame_provider(trouble._replace(status=status or trouble.status, words=words))

    def _blame_provider(self, trouble: Trouble) -> None:
        """Blame an error by its name, else by its status, else by its words."""
        told = reason_of_words(trouble.words)
        kind = ERRORS.get(trouble.name) or (kind_of_status(trouble.status) if trouble.status else None)
        if kind in (None, "transient") and told:
            kind = told.kind
        if trouble.name == "rate_limit" or trouble.status == 429:
            kind = "quota" if self.limit or (told and told.kind == "quota") else "transient"
        if kind is None:
            # The same request is refused in the same way.
            kind = "deterministic" if trouble.name == "invalid_request" or trouble.status == 400 else ""
        if not kind and trouble.wait is not None:
            # No connection, and the agent itself was about to try again.
            kind = "transient"
        if kind:
            words = trouble.words or trouble.name.replace("_", " ")
            fix = self._until(words) if kind == "quota" else FIXES.get(kind)
            wait = trouble.wait if trouble.wait is not None else told.retry_after if told else None
            rule = f"api-{trouble.name or trouble.status or 'error'}".replace("_", "-")
            self.story.blame(kind, self._with_reset(words, kind), rule, fix=fix, retry_after=wait)

    def _until(self, words: str) -> str:
        """Return what to do about a limit, with the time of its reset."""
        written = _RESETS_AT.search(words)
        resets = count(self.limit or {}, "resetsAt") or (int(written[1]) if written else 0)
        if not 0 < resets < YEAR_3000:
            return reset_of(words)
        return (
            f"wait until {datetime.fromtimestamp(resets, UTC):%Y-%m-%dT%H:%M:%SZ}, when the limit resets, or raise it"
        )

    def _with_reset(self, words: str, kind: str) -> str:
        if kind != "quota" or not self.limit:
            return words
        which = text(self.limit, "rateLimitType").replace("_", " ")
        resets = count(self.limit, "resetsAt")
        return f"{words} ({which or 'a'} limit is used up" + (f", resets at {resets})" if resets else ")")

    def _message(self, last: Event) -> str:
        """Return the agent's own last words on how it ended."""
        if not last:
            return "the transcript ends without a result"
        errors = last.get("errors")
        told = "; ".join(e for e in errors if isinstance(e, str)) if isinstance(errors, list) else ""
        return told or text(last, "result") or self.words or text(last, "subtype").replace("_", " ")


_READ = {
    "system": Reader.system,
    "assistant": Reader.assistant,
    "user": Reader.user,
    "rate_limit_event": Reader.rate_limit,
    "result": Reader.result,
}


def extract(request: Request) -> Answer:
    """Answer with the actions, the usage, and the reason of a failure."""
    return told_by(Reader(request), transcript(request))


def _is_of_this_run(usage: Event, models: Any) -> bool:
    """Return whether the totals, which some versions carry on in a session, are those of this run alone.

    The tokens of the run stand in ``usage``, those behind the cost in ``modelUsage``: equal ones cover the same.
    """
    if not isinstance(models, dict):
        return False
    known = parts([*models.values()])
    pairs = (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens"))
    return all(count(usage, run) == sum(count(model, total) or 0 for model in known) for run, total in pairs)


def _without_prose(tool: str, given: Any) -> Any:
    return {k: v for k, v in given.items() if k != PROSE.get(tool)} if isinstance(given, dict) else given


if __name__ == "__main__":
    main(extract)
