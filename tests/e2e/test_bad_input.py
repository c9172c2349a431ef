"""Bad input ends a command with status 2, nothing on standard output, and one line that names field and place."""

from __future__ import annotations

import pytest

# The command line, standard input, and what the line must name.
BAD_INPUTS = {
    "truncated JSON": (["next"], '{"exit_code": 1,', ["standard input", "line 1, column "]),
    "truncated JSON Lines": (["next"], '{"exit_code": 1}\n{"exit_code"\n', ["standard input, line 2"]),
    "wrong type": (["next"], '{"exit_code": "one"}', ["exit_code: ", "'one'"]),
    "wrong type in an array": (["next"], '[{}, {"attempt": "x"}]', ["[1]", "attempt: "]),
    "unknown category": (["next"], '{"category": "sadness"}', ["category: ", "'sadness'"]),
    "negative attempt": (["next"], '{"attempt": -1}', ["attempt: ", "-1"]),
    "history is no array": (["next"], '{"history": {}}', ["history: "]),
    "unknown field of a policy": (["next"], '{"history": [{}], "policy": {"max_atempts": 1}}', ["'max_atempts'"]),
    "long line that is no JSON": (["next"], "x" * 5_000_000, ["standard input"]),
    "deep nesting": (["next"], "[" * 100_000, ["standard input"]),
    "nothing": (["next"], "", ["standard input"]),
    "missing file": (["next", "no-such-file"], "", ["no-such-file"]),
    "directory": (["next", "/"], "", ["/: "]),
    "session id": (["next", "--session", "../x"], "{}", ["session", "'../x'"]),
    "unknown option": (["next", "--no-such-option"], "{}", ["--no-such-option"]),
    "no way to end": (["observe"], "", ["--exit-code"]),
    "missing log": (["observe", "--exit-code", "1", "--log", "no-such-file"], "", ["no-such-file"]),
    "unknown signal": (["observe", "--signal", "NOISE"], "", ["signal: ", "'NOISE'"]),
    "nothing to compare": (["diff", "-", "-"], "", ["standard input"]),
    "envelope that is none": (["diff", "-", "/dev/null"], "[]", ["standard input"]),
    "unknown format": (["report", "--format", "prose"], "", ["--format", "'prose'", "markdown"]),
    "unknown session": (["report", "--session", "s9"], "", ["session 's9'"]),
    "unknown schema": (["schema", "Sadness"], "", ["schema 'Sadness'", "FailureEnvelope"]),
    "unknown extractor": (["extractors", "run", "sadness", "--log", "-"], "", ["extractor 'sadness'"]),
    "unknown command": (["sadness"], "", ["'sadness'"]),
}


@pytest.mark.parametrize(("words", "stdin", "named"), BAD_INPUTS.values(), ids=BAD_INPUTS.keys())
def test_bad_input_ends_with_one_line_that_names_it(kos_retry, words, stdin, named):
    done = kos_retry(*words, stdin=stdin.encode())
    said = done.stderr.decode()
    missing = [name for name in named if name not in said]
    assert (done.code, done.stdout, said.count("\n"), len(said) < 600, missing) == (2, b"", 1, True, [])
