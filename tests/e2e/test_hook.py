"""`kos-retry hook`: what an agent's hooks are answered, and that they never stand in its way by themselves."""

from __future__ import annotations

import json
import re

import pytest
from builders import ROOT

from kos_retry.adapters.extraction.manifest import bundled, hook_formats
from kos_retry.cli.hook import OPTIONS

STOP = {"hook_event_name": "Stop", "stop_hook_active": False, "session_id": "theirs"}
MAKE = {
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "make", "description": "Build"},
    "tool_response": {"stdout": "nothing to do", "stderr": "", "interrupted": False},
}
FAILURE = {"exit_code": 1, "error_message": "KeyError: 'rate'", "failing_constraints": ["t::total"]}
PASS = {"exit_code": 0, "category": "success"}


@pytest.fixture
def ask(kos_retry):
    """Return a function that hands an event to the hook and returns the answer."""

    def call(event, *options, environment=None):
        done = kos_retry(
            "hook", "--session", "work", *options, stdin=json.dumps(event).encode(), environment=environment
        )
        assert (done.code, done.stderr) == (0, b"")
        return done.json

    return call


@pytest.fixture
def record(kos_retry):
    """Return a function that adds an envelope to the session."""
    return lambda envelope: kos_retry("next", "--session", "work", stdin=json.dumps(envelope).encode()).json


def test_agent_with_failing_work_is_sent_back_with_the_guidance(ask, record):
    guidance = record(FAILURE)["guidance"]
    assert {"decision": "block", "reason": guidance} == ask(STOP)
    assert "t::total" in guidance


def test_other_format_is_answered_in_its_own_shape(ask, record):
    guidance = record(FAILURE)["guidance"]
    assert {"decision": "deny", "reason": guidance} == ask({"hook_event_name": "AfterAgent", "stop_hook_active": False})


def test_agent_may_stop_when_the_work_has_passed(ask, record):
    record(FAILURE)
    record(PASS)
    assert {} == ask(STOP)


def test_agent_may_stop_when_help_is_called_for(ask, record):
    assert ["continue", "pivot_strategy", "escalate_to_supervisor"] == [
        record(FAILURE)["recommendation"] for _ in range(3)
    ]
    assert {} == ask(STOP)


def test_agent_may_stop_where_nothing_is_recorded(ask):
    assert {} == ask(STOP)


@pytest.mark.parametrize("again", [True, False])
def test_stopping_is_refused_a_few_times_in_a_row_and_no_more(ask, record, again):
    record(FAILURE)
    answers = [ask({**STOP, "stop_hook_active": again and n > 0}) for n in range(5)]
    assert [True, True, True, False, False] == [bool(answer) for answer in answers]


def test_new_failure_counts_on_while_the_agent_is_kept_going(ask, record):
    said = []
    for n in range(5):
        record({**FAILURE, "error_message": f"KeyError: 'k{'x' * n}'", "failing_constraints": []})
        said.append(bool(ask({**STOP, "stop_hook_active": n > 0})))
    assert [True, True, True, False, False] == said


def test_new_failure_is_told_to_an_agent_that_starts_anew(ask, record):
    record(FAILURE)
    for _ in range(4):
        ask(STOP)
    record({**FAILURE, "error_message": "TypeError: no"})
    assert "block" == ask(STOP)["decision"]


def test_call_that_is_repeated_too_often_is_told(ask):
    # Neither the prose of a call nor the time it took makes it another one.
    calls = [
        {**MAKE, "tool_input": {**MAKE["tool_input"], "description": f"{n}"}, "tool_response": {"stdout": f"in 0.{n}s"}}
        for n in range(4)
    ]
    answers = [ask(call) for call in calls]
    assert [{}, {}, {}] == answers[:3]
    told = answers[3]["hookSpecificOutput"]
    assert ("PostToolUse", True) == (told["hookEventName"], "4 times in a row" in told["additionalContext"])


def test_limit_of_repetitions_is_an_option(ask):
    options = ("--max-repeated-actions", "1")
    assert [False, True] == [bool(ask(MAKE, *options)) for _ in range(2)]


def test_work_between_two_calls_is_no_repetition(ask):
    edit = {**MAKE, "tool_name": "Edit", "tool_input": {"path": "a.c"}}
    assert [{}] * 8 == [ask(call) for _ in range(4) for call in (MAKE, edit)]


def test_failed_call_may_be_repeated(ask):
    failed = {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": "make"}}
    errors = {**MAKE, "hook_event_name": "AfterTool", "tool_response": {"error": {"message": "no"}}}
    assert [{}] * 10 == [ask(call) for _ in range(5) for call in (failed, errors)]


@pytest.mark.parametrize(
    "options", [(), ("--session", "work", "--state-dir", "mine")], ids=["state-directory-of-the-user", "own-place"]
)
def test_kos_retry_inside_of_a_run_finds_its_session(kos_retry, options):
    """Wherever the run keeps it, and wherever the agent works."""
    (kos_retry.home / "stop.json").write_text(json.dumps(STOP))
    line = """
        cd / && kos-retry hook <"$HOME/stop.json" >>"$HOME/answers"
        kos-retry sessions show "$KOS_RETRY_SESSION" --format json >>"$HOME/shown"; exit 3
    """
    words = ("--max-attempts", "2", "--delay", "0s", *options, "--", "sh", "-c", line)
    assert kos_retry("run", *words, environment=_with_path(kos_retry)).code == 3
    first, second = map(json.loads, (kos_retry.home / "answers").read_text().splitlines())
    assert ({}, "block") == (first, second["decision"])
    assert '"status": "running"' in (kos_retry.home / "shown").read_text()


def test_run_inside_of_a_run_keeps_its_sessions_beside_it_and_leaves_retrying_to_it(kos_retry):
    line = "kos-retry run --session inner -- sh -c 'exit 3'"
    words = (
        "--max-attempts",
        "2",
        "--delay",
        "0s",
        "--session",
        "outer",
        "--state-dir",
        "mine",
        "--",
        "sh",
        "-c",
        line,
    )
    kos_retry("run", *words, environment=_with_path(kos_retry))
    kept = kos_retry.home / "mine" / "sessions"
    assert {"inner", "outer"} == {path.name for path in kept.iterdir()}
    inner = [json.loads(record)["type"] for record in (kept / "inner" / "journal.jsonl").read_text().splitlines()]
    assert ["begin", "attempt", "end"] * 2 == inner
    assert not kos_retry.state.exists()


_USELESS = {
    "no input": (b"", ()),
    "no JSON": (b"stop", ()),
    "no object": (b"[]", ()),
    "half": (b'{"hook_event_name": "St', ()),
    "unknown event": (b'{"hook_event_name": "Began"}', ()),
    "unknown option": (json.dumps(STOP).encode(), ("--colour", "red")),
    "option without a value": (json.dumps(STOP).encode(), ("--state-dir",)),
    "number that is none": (json.dumps(STOP).encode(), ("--max-repeated-actions", "some")),
    "bad name of a session": (json.dumps(STOP).encode(), ("--session", "../x")),
    "state directory that cannot be": (json.dumps(MAKE).encode(), ("--state-dir", "/dev/null")),
}


@pytest.mark.parametrize(("stdin", "options"), _USELESS.values(), ids=_USELESS)
def test_own_fault_never_keeps_an_agent_from_stopping(kos_retry, record, stdin, options):
    done = kos_retry("hook", "--session", "other", *options, stdin=stdin)
    assert (done.code, done.json, len(done.stderr.splitlines()) <= 1) == (0, {}, True)


@pytest.mark.parametrize("where", ["| true", ">&-", ">&- 2>&-", ">/dev/full"])
def test_agent_that_reads_no_answer_may_stop(kos_retry, record, where):
    record(FAILURE)
    (kos_retry.home / "stop.json").write_text(json.dumps(STOP))
    line = f"set -o pipefail; {kos_retry.path} hook --session work <stop.json {where}"
    done = kos_retry.finish(["bash", "-c", line])
    assert (done.code, b"Traceback" in done.stderr) == (0, False)


def test_options_may_be_written_either_way(ask):
    assert [False, True] == [bool(ask(MAKE, "--max-repeated-actions=1")) for _ in range(2)]


def test_help_of_the_hook_names_the_options_that_it_reads(kos_retry):
    said = kos_retry("hook", "--help").stdout.decode()
    assert set(OPTIONS) | {"--help"} == set(re.findall(r"(?<![\w-])--[a-z-]+", said))


def test_journal_that_cannot_be_read_lets_the_agent_stop(kos_retry, record):
    record(FAILURE)
    journal = kos_retry.directory("work") / "journal.jsonl"
    journal.unlink()
    journal.mkdir()
    done = kos_retry("hook", "--session", "work", stdin=json.dumps(STOP).encode())
    assert (done.code, done.json, len(done.said)) == (0, {}, 1)


def _with_path(kos_retry):
    return {"PATH": f"{kos_retry.path.rpartition('/')[0]}:{kos_retry.environment['PATH']}"}


@pytest.mark.parametrize("name", ["claude-settings.json", "gemini-settings.json"])
def test_settings_to_copy_name_events_that_are_answered(name):
    events = json.loads((ROOT / "examples" / "agents" / name).read_text())["hooks"]
    known = {n for m in bundled() if m.hook for n in (*m.hook.stop, *m.hook.called, *m.hook.failed)}
    commands = {hook["command"] for entries in events.values() for entry in entries for hook in entry["hooks"]}
    assert (set(), {"kos-retry hook"}) == (set(events) - known, commands)


def test_every_format_of_a_hook_is_found():
    assert [manifest.hook for manifest in bundled() if manifest.hook] == list(hook_formats())
