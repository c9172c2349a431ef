"""What a command prints or a caller sends can neither drive a terminal nor command a CI host through a line of ours."""

from __future__ import annotations

import json

import pytest

HOSTILE = (
    "\x1b[31merror: red alert\x1b[0m",
    "\x1b]0;owned\x07error: title",
    "error: \x9b31mred \x9d0;owned\x9c",
    "::error::file is gone",
    "  ::set-output name=x::error",
    "error: fine\r::error::not fine",
    "\x1b[1m::error::file is gone",
    "\u200b::error::file is gone",
    "##[error]file is gone",
    "error: see ##[error]file is gone",
    "error: #\x1b[1m#[error]file is gone",
    "error: one\u2028::error::two\x85::error::three\x0b::error::four",
)
# Every attempt prints the next of the arguments, and fails with another code. Nothing of it goes to standard error.
PRINT_IN_TURN = 'n=$KOS_RETRY_ATTEMPT; shift $((n - 1)); printf "%s\\n" "$1"; exit $n'


def controls(text):
    """Return the characters of a text that a terminal would obey."""
    return {c for c in text if c != "\n" and (c < " " or "\x7f" <= c <= "\x9f")}


def commands(text):
    """Return the lines of a text that a CI host would obey; some hosts look behind leading blanks."""
    return {line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line}


@pytest.fixture
def said(kos_retry):
    """Run a command with hostile output, and return what was said about it."""
    options = ("--session", "s1", "--delay", "0s", "--max-attempts", str(len(HOSTILE)))
    return kos_retry("run", *options, "--", "sh", "-c", PRINT_IN_TURN, "sh", *HOSTILE).stderr.decode()


def test_hostile_output_is_harmless_in_lines_of_our_own(said):
    assert (controls(said), commands(said)) == (set(), set())


def test_hostile_output_is_harmless_in_a_report(kos_retry, said):
    told = [kos_retry("report", "--format", form).stdout.decode() for form in ("text", "markdown")]
    assert [(controls(text), commands(text)) for text in told] == [(set(), set())] * 2


@pytest.mark.parametrize("name", ["diff", "explain", "next"])
def test_hostile_text_drives_no_terminal_in_what_people_read(kos_retry, tmp_path, name):
    for attempt in (1, 2):
        envelope = {"exit_code": attempt, "error_message": "\n".join(HOSTILE), "failing_constraints": HOSTILE[attempt:]}
        (tmp_path / str(attempt)).write_text(json.dumps(envelope))
    words = {"diff": ["1", "2"], "explain": ["1"], "next": ["1", "--format", "text"]}[name]
    assert controls(kos_retry(name, *words).stdout.decode()) == set()


HOSTILE_WORD = "none\n::error::\x1b[31m"
HOSTILE_CALLS = {
    "command name": (["run", "--", HOSTILE_WORD], ""),
    "option of run": (["run", f"--{HOSTILE_WORD}", "--", "true"], ""),
    "file name": (["next", HOSTILE_WORD], ""),
    "field name": (["next"], json.dumps({"history": [{}], "policy": {HOSTILE_WORD: 1}})),
    "value": (["next"], json.dumps({"category": HOSTILE_WORD})),
}


@pytest.mark.parametrize(("words", "stdin"), HOSTILE_CALLS.values(), ids=HOSTILE_CALLS.keys())
def test_hostile_input_is_harmless_in_a_message_about_it(kos_retry, words, stdin):
    said = kos_retry(*words, stdin=stdin.encode()).stderr.decode()
    assert (controls(said), commands(said)) == (set(), set())
