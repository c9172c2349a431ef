"""Signatures that were given out stay what they are: another algorithm needs another version.

The file of a version holds what each sample was signed with. New samples are added with ``KOS_RETRY_WRITE_SIGNATURES=1``; a sample
whose signature changed fails whatever is set: raise `SIGNATURE_VERSION`, and a new file begins.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from builders import observed

from kos_retry.engine.sign import SIGNATURE_VERSION
from kos_retry.engine.tokens import TOKEN_CLASSES

_FILE = Path(__file__).parents[2] / "data" / f"signatures-{SIGNATURE_VERSION}.json"

_OUTPUTS = {
    "nothing": "",
    "no-error-words": "step one\nstep two\nbye\n",
    "error-at-the-start": "error: cannot load the queue\n" + "worker handled a request\n" * 50,
    "error-in-the-middle": "start\n" * 20 + "src/queue.c:7:3: error: 'total' undeclared\n" + "done\n" * 20,
    "chained-exceptions": "KeyError: 'queue'\n\nDuring handling:\n\nQueueError: no queue of that name\n",
    "wrapped-by-make": "queue.c:7: error: expected ';'\nmake: *** [Makefile:3: queue.o] Error 1\n",
    "stack-above-its-error": 'Traceback (most recent call last):\n  File "/srv/w/a.py", line 3, in load\nKeyError: 1\n',
    "stack-below-its-error": "QueueError: empty\n    at load (/srv/w/queue.js:7:3)\n    at main (/srv/w/main.js:1:1)\n",
    "colours": "\x1b[31merror\x1b[0m: the queue is \x1b[1mcorrupt\x1b[0m\n",
    "progress-bar": "10%\r50%\r100%\nerror: the queue is corrupt\n",
    "windows-line-ends": "error: the queue is corrupt\r\nbye\r\n",
    "decoy-that-passed": "test_failed_login PASSED\nerror handling: ok\nFAILED test_logout - no session\n",
    "announced": "The following checks failed:\n  lint\n  types\n",
    "two-errors": "error: no queue\nerror: no stack\n",
    "ten-errors": "".join(f"error: thing {name} is missing\n" for name in "abcdefghij"),
    "failed-test-with-detail": "--- FAIL: TestQueue (0.01s)\n    queue_test.go:7: expected 3, got 4\n",
    "assertion": "E   assert 3 == 4\nE    +  where 3 = total(queue)\n",
    "json-log": '{"level":"error","msg":"cannot load","time":"2026-03-01T08:15:42Z","pid":4411}\n',
    "key-value-log": 'level=error ts=2026-03-01T08:15:42Z msg="cannot load" pid=4411\n',
    "unicode": "Fehler: die Warteschlange \u2018a\u2019 fehlt\nerror: the queue \u201ca\u201d is missing\u2026\n",
    "very-long-line": "error: " + "x" * 10_000 + "\n",
    "usage": "usage: queue [-h] FILE\nqueue: error: unrecognized arguments: --fast\n",
    "killed": "run.sh: line 12:  4411 Killed   ./queue\n",
    "ports-and-addresses": "dial tcp 127.0.0.1:5432: connect: connection refused (from 10.0.4.2:49213)\n",
}
_SAMPLES = {
    **{f"output {name}": text for name, text in _OUTPUTS.items()},
    **{f"example of {c.name}": f"error: {c.example}\n" for c in TOKEN_CLASSES},
    **{f"counter-example of {c.name}": f"error: {c.counter}\n" for c in TOKEN_CLASSES},
}


def _known() -> dict[str, str]:
    return json.loads(_FILE.read_text(encoding="utf-8")) if _FILE.exists() else {}


def _signature(name: str) -> str:
    return observed(_SAMPLES[name]).signature


@pytest.fixture(scope="session", autouse=True)
def _written() -> None:
    if "KOS_RETRY_WRITE_SIGNATURES" in os.environ:
        told = {name: _signature(name) for name in sorted(_SAMPLES)} | _known()
        _FILE.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")


@pytest.mark.parametrize("name", sorted(_SAMPLES))
def test_signature_is_the_one_of_this_version(name):
    assert _known().get(name) == _signature(name)


def test_file_holds_at_least_a_hundred_signatures_and_no_sample_that_is_gone():
    known = _known()
    assert (True, []) == (len(known) >= 100, sorted(set(known) - set(_SAMPLES)))
