"""Agents in a loop: a scripted one that repeats itself, goes in circles, gets on slowly, is content too early, uses up its plan or its money."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

# Does what its script says of this attempt (of the last one in the script, once there are no more), and keeps what it was told.
AGENT = """
import json, os, sys
attempt = int(os.environ["KOS_RETRY_ATTEMPT"])
with open(f"told.{attempt}", "w") as file:
    file.write(os.environ.get("KOS_RETRY_GUIDANCE", ""))
with open("script.json") as file:
    script = json.load(file)
for event in script[min(attempt, len(script)) - 1]:
    print(json.dumps(event))
"""
LOOP = ("--profile", "agent", "--transcript", "generic", "--delay", "0s", "--store", "none")


def did(*calls: dict[str, Any], ends: str = "max_turns", usage: dict[str, Any] | None = None, **more: Any) -> list[Any]:
    """Return an attempt: its calls, and how the agent itself says that it ended."""
    return [*calls, {"kind": "finish", "stop_reason": ends, "usage": usage or {}, **more}]


def edit(text: str) -> dict[str, Any]:
    return {"tool": "edit", "input": {"path": "cart.py", "text": text}, "ok": True, "result": "saved"}


def check(*failing: str) -> dict[str, Any]:
    """Return a call of the test runner, with what it says of these tests."""
    lines = [f"FAILED test_cart.py::test_{name} - assert 2 == 3" for name in failing]
    said = "\n".join(["=== short test summary info ===", *lines, f"=== {len(failing)} failed, 9 passed in 0.02s ==="])
    return {"tool": "shell", "input": {"command": "pytest -q"}, "ok": not failing, "result": said}


def named(*names: str) -> list[str]:
    return [f"`test_cart.py::test_{name}`" for name in names]


NAMES = ("tax", "rate", "sum", "total", "count")
WRITES = {"tool": "shell", "input": {"command": "touch right"}, "ok": True, "result": ""}
SPENDS = {"input_tokens": 300, "output_tokens": 100, "cost_usd": 0.4}


class Loop(NamedTuple):
    """A script, options of the run, how it has to end, the words of that, and what which attempt must have been told."""

    script: list[list[Any]]
    end: tuple[int, str, str | None, int]
    words: str = ""
    told: dict[int, list[str]] = {}
    options: tuple[str, ...] = ()


LOOPS = {
    "repeats its attempt": Loop(
        [did(edit("+ tax"), check("tax"))],
        (1, "failed", "zero_delta", 3),
        "3 attempts in a row fail the same way",
        {
            2: ["Go on.", *named("tax"), "Do not repeat `edit {", "tried once"],
            3: ["Change the approach.", "fails exactly like the one before", "Do not repeat `edit {", "tried twice"],
        },
    ),
    "repeats one call in its first attempt": Loop(
        [did(*[check("tax")] * 4), did(edit("* tax"), ends="done")],
        (0, "repaired", None, 2),
        "passed on attempt 2 after 1 failure: repaired after a change",
        {2: ["Change the approach.", "One action was done 4 times in a row", "pytest -q", *named("tax")]},
    ),
    "repeats one call as often as it may": Loop(
        [did(*[check("tax")] * 3), did(edit("* tax"), ends="done")],
        (0, "repaired", None, 2),
        told={2: ["Go on."]},
    ),
    "goes back and forth": Loop(
        [did(edit(text), check(name)) for text, name in (("a", "tax"), ("b", "rate"), ("a", "tax"))],
        (1, "failed", "identical_signatures", 3),
        "this failure was seen 2 times, with another in between",
        {3: ["Newly failing: `test_cart.py::test_rate`", "Fixed: `test_cart.py::test_tax`"]},
    ),
    "goes round in circles that are allowed to meet": Loop(
        [did(edit(text), check(name)) for text, name in (("a", "tax"), ("b", "rate")) * 2],
        (1, "failed", "oscillation", 4),
        "the last attempts repeat in a cycle of 2",
        {4: ["tried twice"]},
        ("--max-identical-signatures", "4"),
    ),
    "gets on slowly": Loop(
        [*(did(edit(str(n)), check(*NAMES[n:])) for n in range(5)), did(edit("5"), check(), ends="done")],
        (0, "repaired", None, 6),
        "passed on attempt 6 after 5 failures: repaired after a change",
        {
            2: ["Still to mend:", *named(*NAMES)],
            3: ["Still to mend:", *named(*NAMES[1:]), "Fixed: `test_cart.py::test_tax`"],
            4: ["4 failing constraints became 3", *named(*NAMES[2:])],
            6: named(*NAMES[4:]),
        },
    ),
    "changes numbers alone": Loop(
        [did(edit("+ tax"), ends="done")],
        (1, "failed", "no_novelty", 4),
        "the last 4 failures differ in numbers alone",
        {2: ["`rows`", "got 3"], 4: ["`rows`", "got 4"]},
        ("--verify", 'rows=set -- 3 9 4 8; shift $((KOS_RETRY_ATTEMPT - 1)); echo "expected 50, got $1"; exit 1'),
    ),
    "is content too early, and mends it when told": Loop(
        [did(edit("+ tax"), ends="done"), did(WRITES, ends="done")],
        (0, "repaired", None, 2),
        told={2: ["Look first at `right`", "Do not repeat `edit {"]},
        options=("--verify", "right=[ $KOS_RETRY_ATTEMPT = 2 ]"),
    ),
    "is content too early, again and again": Loop(
        [did(edit("+ tax"), ends="done")],
        (1, "failed", "zero_delta", 3),
        "3 attempts in a row fail the same way",
        {2: ["`right`"], 3: ["Change the approach.", "`right`"]},
        ("--verify", "right=false"),
    ),
    "says that it is done before it is": Loop(
        [did(edit("+ tax"), ends="done", words="ALL DONE"), did(edit("* tax"), ends="done", words="ALL DONE")],
        (0, "repaired", "done_signal", 2),
        told={2: ["`right`"]},
        options=("--done", "ALL DONE", "--verify", "right=[ $KOS_RETRY_ATTEMPT = 2 ]"),
    ),
    "does not say that it is done": Loop(
        [did(edit("+ tax"), ends="done"), did(edit("* tax"), ends="done", words="ALL DONE")],
        (0, "repaired", "done_signal", 2),
        told={2: ["`done`"]},
        options=("--done", "ALL DONE"),
    ),
    "uses up its plan": Loop(
        [did(edit("+ tax"), ends="quota", error="You've hit your usage limit. Try again at 9 PM.")],
        (1, "failed", "non_retryable", 1),
        "9 PM",
    ),
    "burns money": Loop(
        [did(edit(str(n)), check(name), usage=SPENDS) for n, name in enumerate(NAMES)],
        (1, "failed", "cost_budget", 2),
        "0.20 of 1.00 USD left, and an attempt costs 0.40 USD in the mean",
        {2: [*named("tax"), "0.60 USD"]},
        ("--max-cost-usd", "1"),
    ),
    "burns tokens": Loop(
        [did(edit(str(n)), check(name), usage=SPENDS) for n, name in enumerate(NAMES)],
        (1, "failed", "token_budget", 3),
        "1200 of 1200 tokens spent",
        {3: ["400 tokens"]},
        ("--max-tokens", "1200"),
    ),
    "fails call after call": Loop(
        [did(edit(name), check(name), check(name), check(name, "sum")) for name in NAMES],
        (1, "failed", "failure_budget", 1),
        "3 failed actions in a row, 3 allowed",
        options=("--max-failures", "3"),
    ),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_loop_ends_as_it_has_to_and_the_next_attempt_was_told(kos_retry, loop):
    done, end = run(kos_retry, loop.script, *loop.options)
    assert loop.end == (done.code, end["status"], end["stop_reason"], end["attempts"])
    assert loop.words in "\n".join(done.said)
    for attempt, phrases in loop.told.items():
        told = (kos_retry.home / f"told.{attempt}").read_text()
        assert [] == [phrase for phrase in phrases if phrase not in told]
    assert "" == (kos_retry.home / "told.1").read_text()
    assert not (kos_retry.home / f"told.{end['attempts'] + 1}").exists()


def run(kos_retry, script, *options):
    """Run the agent through a script; return how that ended, and the last record of the journal."""
    (kos_retry.home / "agent.py").write_text(AGENT)
    (kos_retry.home / "script.json").write_text(json.dumps(script))
    done = kos_retry("run", *LOOP, *options, "--", "python3", "agent.py")
    return done, kos_retry.end()


def test_guidance_is_sent_whole_with_every_attempt_and_asks_every_third_time_for_a_new_plan(kos_retry):
    """Agents compact away what they were told earlier: what still holds is said again."""
    run(kos_retry, [*(did(edit(str(n)), check(*NAMES[n:])) for n in range(5)), did(ends="done")])
    told = {n: (kos_retry.home / f"told.{n}").read_text() for n in range(2, 7)}
    for attempt, text in told.items():
        assert [] == [phrase for phrase in named(*NAMES[attempt - 2 :]) if phrase not in text]
        assert attempt - 1 == text.count("Do not repeat `edit {")
        assert text.startswith(f"## Attempt {attempt}\n")
    assert [3, 6] == [attempt for attempt, text in told.items() if "make a new plan" in text]
    assert ["- attempt 3", "- attempt 4", "- attempt 5"] == re.findall(r"^- attempt \d", told[6], re.MULTILINE)
