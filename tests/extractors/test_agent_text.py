"""Which causes the plain text of an agent's command line tells, and whose words are not its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kos_retry.adapters.extraction.manifest import bundled_root

if TYPE_CHECKING:
    from conftest import Host

CAUSES = [
    ("You've hit your usage limit. Upgrade your plan or try again at 9:14 PM.", "quota"),
    ("You've hit your weekly limit · resets Mar 3, 9am", "quota"),
    ("Claude AI usage limit reached|1893456000", "quota"),
    ("5-hour limit reached ∙ resets 3pm", "quota"),
    ("rate_limit_event rejected: seven_day window", "quota"),
    ("TerminalQuotaError: You have exhausted your daily quota on this model.", "quota"),
    ("insufficient_quota: You exceeded your current quota, please check your plan", "quota"),
    ("litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota", "quota"),
    ("Credit balance is too low", "billing"),
    ("API Error: 402 Insufficient credits", "billing"),
    ("Invalid API key · Please run /login", "auth"),
    ("[ERROR] Please set an Auth method in your settings before running", "auth"),
    ("Error: ProviderAuthError: the key is gone", "auth"),
    ("OAuth token has expired. Please obtain a new token or refresh it.", "auth"),
    ("API Error: 403 your account may not do this", "auth"),
    ("FatalUntrustedWorkspaceError: untrusted", "config"),
    ("This folder is not trusted, and nobody is there to ask", "config"),
    ("ProviderModelNotFoundError: nothing-1", "config"),
    ("error_max_budget_usd: 0.50 spent", "budget"),
    ("Error: Exceeded USD budget (0.5)", "budget"),
    ("✗ Cost limit reached (2.00 USD)", "budget"),
    ("prompt is too long: 214991 tokens > 200000 maximum", "context_window"),
    ("litellm.ContextWindowExceededError: too much", "context_window"),
    ("Reached max turns (12)", "turn_limit"),
    ("Only 4 reflections allowed, stopping.", "turn_limit"),
    ("Agent stopped due to max iterations.", "turn_limit"),
    ("Loop detected, stopping execution", "loop_detected"),
    ("The model returned an empty response.", "no_output"),
    ("Error: received no content from the provider", "no_output"),
    ("The model returned an invalid tool call", "malformed_output"),
    ("API Error: 529 Overloaded", "transient"),
    ("Selected model is at capacity. Please try a different model.", "transient"),
    ("stream disconnected before completion: error sending request", "transient"),
    ("ERROR: exceeded retry limit, last status: 503 Service Unavailable", "transient"),
]

# The words of tests, of other tools, of logs that go on, and of those who talk about such things.
OTHERS = [
    "AssertionError: 'Invalid API key' not in page",
    "FAILED tests/test_limits.py::test_quota_exceeded_page",
    "usage limit reached ... FAILED",
    "Rate limit exceeded returns 429 (12 ms)",
    "invalid api key should be refused",
    "  Invalid API key",
    "+ Credit balance is too low",
    "expected: usage limit reached",
    "Error: bundle initial exceeded maximum budget. Budget 500.00 kB was not met by 12.00 kB",
    "asset size limit: The following asset(s) exceed the recommended size limit (244 KiB).",
    "WARNING: rate limit reached, using the cache",
    "I made the client wait where the rate limit is reached.",
    "grep: usage limit reached: No such file or directory",
    "redirect loop detected at /cart",
    "the scanner found an empty response from the cart",
    "STOP: maximum number of iterations reached",
    "uploads bucket quota exceeded",
    "Disk quota exceeded",
    "memory usage limit reached",
    "raise QuotaError('quota exceeded')",
    "3 of 9 turns are played",
]


@pytest.mark.parametrize(("line", "kind"), CAUSES)
def test_last_words_tell_the_cause(host: Host, tmp_path: Path, line: str, kind: str) -> None:
    (finding,) = _findings(host, tmp_path, f"I will look at the tests.\n{line}\n")

    assert (kind, "agent") == (finding["cause"]["kind"], finding["kind"])


@pytest.mark.parametrize("line", OTHERS)
def test_words_of_others_tell_nothing(host: Host, tmp_path: Path, line: str) -> None:
    assert [] == _findings(host, tmp_path, f"{line}\n")


def test_what_was_said_before_the_end_tells_nothing(host: Host, tmp_path: Path) -> None:
    work = "".join(f"step {n} is done\n" for n in range(8))

    assert [] == _findings(host, tmp_path, f"Credit balance is too low\n{work}")


def test_what_a_human_has_to_settle_outweighs_what_passes(host: Host, tmp_path: Path) -> None:
    (finding,) = _findings(host, tmp_path, "Credit balance is too low\nAPI Error: 529 Overloaded\n")

    assert "billing" == finding["cause"]["kind"]


def test_wait_that_is_named_is_told(host: Host, tmp_path: Path) -> None:
    (finding,) = _findings(host, tmp_path, "Rate limit reached for requests. Please try again in 20s.\n")

    assert 20.0 == finding["cause"]["retry_after_seconds"]


@pytest.mark.parametrize(
    ("line", "when"),
    [
        ("AI usage limit reached|1893456000", "2030-01-01T00:00:00Z"),
        ("rate_limit_event rejected: five_hour window, resets at 1893456000", "2030-01-01T00:00:00Z"),
        ("You've hit your usage limit. Try again at 9:14 PM.", "9:14 PM"),
    ],
)
def test_fix_of_a_used_up_limit_names_its_reset(host: Host, tmp_path: Path, line: str, when: str) -> None:
    (finding,) = _findings(host, tmp_path, line + "\n")

    assert when in finding["cause"]["fix"]


def _findings(host: Host, directory: Path, output: str) -> list[dict[str, Any]]:
    (directory / "output.log").write_text(output, encoding="utf-8")
    request = {
        "protocol": 1,
        "attempt": {"argv": ["agent"], "exit_code": 1},
        "streams": {"output": {"path": str(directory / "output.log")}},
    }
    findings: list[dict[str, Any]] = host.ask(bundled_root() / "agent_text", request)["answer"]["findings"]
    return findings
