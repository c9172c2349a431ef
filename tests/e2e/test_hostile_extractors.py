"""Extractors that hang, crash, flood, lie or leave things behind: the run goes on, names them, and nothing of them survives."""

from __future__ import annotations

import json
import sys

import pytest

_ANSWER = '{"protocol": 1, "findings": [{"kind": "crash", "error_type": "Boom", "confidence": "exact"}]}'
_LATE = "no answer within 1s"
_FINDING = '{"kind": "crash", "message": "m", %s}'
# Leaves the group and the session; with the pipes of its parent, or without them.
_DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if CLOSES:
            os.closerange(0, 3)
        time.sleep(1000)
    os._exit(0)
os.wait()
sys.stdout.write('ANSWER')
""".replace("ANSWER", _ANSWER)


def _says(text: str) -> str:
    return f"printf '%s' '{text}'"


def _finds(field: str) -> str:
    return _says(f'{{"protocol": 1, "findings": [{_FINDING % field}]}}')


# A name, the shell script, and how its failure is told.
_FAILING = {
    "hangs": ("exec sleep 1000", _LATE),
    "hangs-deaf": ("trap '' TERM INT HUP; echo on >&2; while :; do sleep 1; done", f"{_LATE}: on"),
    "hangs-after-answering": (f"{_says(_ANSWER)}; exec >&-; sleep 1000", _LATE),
    "crashes": ("kill -SEGV $$", "it died of signal 11"),
    "fails": (f"echo 'no such luck' >&2; {_says(_ANSWER)}; exit 7", "exit code 7: no such luck"),
    "floods-output": ("yes '{}'", "the answer is larger than 1048576 bytes"),
    "floods-errors": ("yes noise >&2", f"{_LATE}: "),
    "cannot-start": (None, "cannot start "),
    "says-nothing": (":", "it answered nothing"),
    "says-nonsense": ("echo fine", "the answer is not JSON: "),
    "says-half": (_says(_ANSWER[:-9]), "the answer is not JSON: "),
    "says-twice": (f"{_says(_ANSWER)}; {_says(_ANSWER)}", "the answer is not JSON: "),
    "says-binary": ("head -c 4096 /dev/urandom", "the answer is not JSON: "),
    "nests-deep": ("awk 'BEGIN { for (i = 0; i < 200000; i++) printf \"[\" }'", "the answer is not JSON: "),
    "other-protocol": (_says('{"protocol": 2, "findings": []}'), "the answer is not valid: protocol: "),
    "wrong-shape": (_says("[]"), "the answer is not valid: "),
    "wrong-type": (_says('{"protocol": 1, "findings": [7]}'), "the answer is not valid: findings[0]: "),
    "unknown-kind": (
        _says('{"protocol": 1, "findings": [{"kind": "bug"}]}'),
        "the answer is not valid: findings[0].kind",
    ),
    "line-below-one": (
        _finds('"location": {"path": "a", "line": -1}'),
        "the answer is not valid: findings[0].location.line",
    ),
    "span-below-zero": (
        _finds('"evidence": [{"source": "stdout", "start": -1, "end": 1}]'),
        "the answer is not valid: findings[0].evidence[0].start",
    ),
    "span-beyond-the-end": (
        _finds('"evidence": [{"source": "stdout", "start": 0, "end": 999}]'),
        "the answer is not valid: findings[0].evidence: bytes 0 to 999 of 'stdout' are not there",
    ),
    "span-backwards": (
        _finds('"evidence": [{"source": "stdout", "start": 3, "end": 1}]'),
        "the answer is not valid: findings[0].evidence: bytes 3 to 1 of 'stdout' are not there",
    ),
    "span-of-nothing-known": (
        _finds('"evidence": [{"source": "/etc/passwd", "start": 0, "end": 9}]'),
        "the answer is not valid: findings[0].evidence: bytes 0 to 9 of '/etc/passwd' are not there",
    ),
    "leaves-a-child": (f"sleep 1000 & {_says(_ANSWER)}", "it left processes running, which were ended: sleep"),
    "leaves-a-daemon": (_DAEMON.replace("CLOSES", "False"), "it left processes running, which were ended: "),
    "leaves-a-silent-daemon": (_DAEMON.replace("CLOSES", "True"), "it left processes running, which were ended: "),
}
# What is odd and no failure.
_ANSWERING = {
    "talks-a-lot": f"head -c 1000000 /dev/zero | tr '\\0' x >&2; {_says(_ANSWER)}",
    "answers-unasked": f"exec <&-; {_says(_ANSWER)}",
    "exaggerates": 'awk \'BEGIN { printf "{\\"protocol\\":1,\\"findings\\":[{\\"kind\\":\\"crash\\",\\"message\\":\\"";'
    ' for (i = 0; i < 900000; i++) printf "x"; printf "\\"}]}" }\'',
}


def _extractor(directory, name, script):
    place = directory / name
    place.mkdir(parents=True)
    python = script is not None and script.lstrip().startswith("import")
    seconds = 1 if _FAILING.get(name, ("", ""))[1].startswith(_LATE) else 20
    command = ["/nowhere/at/all"] if script is None else [sys.executable if python else "sh", "{dir}/script"]
    (place / "script").write_text(script or "")
    (place / "extractor.toml").write_text(
        f'id = "{name}"\nprotocol = 1\nversion = "1"\npriority = 300\ntimeout = {seconds}\ncommand = {json.dumps(command)}\n'
    )
    return ["--extractor", str(place)]


@pytest.fixture(scope="module")
def told(shared_kos_retry):
    """Run one failing command with all of them; return how it ended, its envelope, and what is still running then."""
    scripts = {name: script for name, (script, _) in _FAILING.items()} | _ANSWERING
    options = [word for name in scripts for word in _extractor(shared_kos_retry.home / "own", name, scripts[name])]
    command = ["sh", "-c", "echo out; echo error: it broke >&2; exit 3"]
    done = shared_kos_retry("run", "--max-attempts", "1", *options, "--", *command)
    return done, shared_kos_retry.attempts()[0]["envelope"], shared_kos_retry.processes()


def test_the_commands_own_end_and_output_are_kept(told):
    done, _, _ = told
    assert (3, b"out\n") == (done.code, done.stdout)


@pytest.mark.parametrize(("name", "said"), [(name, said) for name, (_, said) in _FAILING.items()], ids=list(_FAILING))
def test_failed_extractor_is_named_with_the_reason(told, name, said):
    done, envelope, _ = told
    assert envelope["extractors"].get(name, "").startswith(said)
    assert any(line.startswith(f"extractor {name} failed: {said}".rstrip()) for line in done.said)


def test_no_other_extractor_failed(told):
    assert sorted(_FAILING) == sorted(told[1]["extractors"])


@pytest.mark.parametrize("name", _ANSWERING)
def test_odd_extractor_that_answers_is_heard(told, name):
    assert name in {artifact["name"] for artifact in told[1]["diagnostic_artifacts"]}


def test_what_they_say_is_bounded(told):
    assert len(json.dumps(told[1])) < 100_000


def test_nothing_of_them_survives(told):
    assert [] == told[2]
