"""Lines as the signature sees them."""

from __future__ import annotations

import pytest

from kos_retry.engine.normalise import explain_line, level, normalise, normalise_line

_MASKED = {
    "iso-timestamp": ("2026-03-01T08:15:42.118+01:00 ERROR refused", "<time> ERROR refused"),
    "clock": ("[08:15:42] refused", "[<time>] refused"),
    "duration": ("1 failed in 0.41s", "1 failed in <duration>"),
    "duration-of-parts": ("failed after 1m 32s", "failed after <duration>"),
    "address": ("object at 0x7f1c2a4b", "object at <address>"),
    "uuid": ("request 3F1C2D9E-0000-4a10-9c11-aaaaaaaaaaaa failed", "request <id> failed"),
    "temporary-directory": ("cannot open /tmp/tmpx81k/a.db", "cannot open <tmp>/a.db"),
    "mac-temporary-directory": (
        "cannot open /private/var/folders/x1/9q2/T/tmpab/a.db",
        "cannot open <tmp>/a.db",
    ),
    "workspace-root": ("/home/ci/build/src/cart.py:41: bad", "<dir>/cart.py:<n>: bad"),
    "line-number": ("src/cart.py:41: bad total", "src/cart.py:<n>: bad total"),
    "pid": ("worker pid 4312 exited", "worker pid <n> exited"),
    "ephemeral-port": ("localhost:49213 refused", "localhost:<port> refused"),
    "private-address": ("dial 10.4.2.17:5432 refused", "dial <ip>:5432 refused"),
    "seed": ("seed=918273", "seed <n>"),
    "progress": ("[812/2044] linking", "<n>/<n> linking"),
    "size": ("read 12.4 MiB", "read <size>"),
    "colour": ("\x1b[31merror\x1b[0m: no", "error: no"),
    "quotes": ("can\u2019t open \u201ca\u201d `b`", "can't open \"a\" 'b'"),
    "decomposed-letters": ("cafe\u0301 failed", "caf\u00e9 failed"),
    "width-of-a-rule": ("=" * 72 + " FAILURES " + "=" * 72, "==== FAILURES ===="),
    "blanks": ("  a \t  b  ", "a b"),
    "no-break-space": ("a\u00a0b", "a b"),
    "all-digits-of-a-double": ("Received: 81.32211876858943", "Received: <n>"),
    "progress-bar": ("10%\rerror: no", "error: no"),
}


@pytest.mark.parametrize(("line", "expected"), _MASKED.values(), ids=_MASKED)
def test_circumstance_is_masked(line, expected):
    assert expected == normalise_line(line)


@pytest.mark.parametrize(
    "line",
    [
        "request failed with status 503",
        "exited with exit code 137",
        "[Errno 13] Permission denied",
        "error[E0308]: mismatched types",
        "error TS2304: Cannot find name 'x'",
        "expected 3 got 4",
        "assert 41 == 42",
        "db:5432 refused",
        "needs version 2.31.0",
        "test_case_12[a-3] failed",
        "SQLSTATE 23505",
        "timed out after 600s",
        "killed by signal 9",
        "HRESULT 0x80070005",
        "127.0.0.1:8080 refused",
    ],
)
def test_meaning_is_kept(line):
    assert line == normalise_line(line)


_SAME = {
    "clock-and-duration": ("08:15:42 failed in 3s", "11:02:09 failed in 412ms"),
    "checkout": ("/home/a/w/x/src/m.rs:7:3: error", "/builds/b/y/src/m.rs:7:3: error"),
    "moved-line": ("src/m.rs:7:3: error", "src/m.rs:9:1: error"),
    "query": ("GET https://api.example/v1/cart?ts=17 gave up", "GET https://api.example/v1/cart?ts=18 gave up"),
    "container": ("container 3f1c2d9eaa10 died", "container 77ab0c1d2e3f died"),
}


@pytest.mark.parametrize(("one", "other"), _SAME.values(), ids=_SAME)
def test_same_failure_elsewhere_reads_the_same(one, other):
    assert normalise_line(one) == normalise_line(other)


_DIFFERENT = {
    "status": ("failed with status 500", "failed with status 404"),
    "exit-code": ("exit code 1", "exit code 2"),
    "value": ("expected 3 got 4", "expected 3 got 5"),
    "rule": ("E501 line too long", "E502 line too long"),
    "service-port": ("db:5432 refused", "cache:6379 refused"),
    "file": ("/home/a/w/x/src/m.rs:7: error", "/home/a/w/x/src/n.rs:7: error"),
    "version": ("needs 2.31.0", "needs 2.32.0"),
    "test": ("test_case_12 failed", "test_case_13 failed"),
    "limit": ("timed out after 30s", "timed out after 60s"),
}


@pytest.mark.parametrize(("one", "other"), _DIFFERENT.values(), ids=_DIFFERENT)
def test_different_failure_reads_differently(one, other):
    assert normalise_line(one) != normalise_line(other)


def test_text_loses_its_blank_lines():
    assert "a\nb" == normalise("a\n\n  \nb\n")


def test_line_is_bounded():
    assert 4096 == len(level("x" * 10_000))


def test_explanation_names_what_was_kept_and_what_was_masked():
    told = explain_line("pid 4312 left exit code 3")
    assert [("process", "pid 4312", "pid <n>"), ("code", "exit code 3", None)] == [
        (t.token_class, t.text, t.mask) for t in told.tokens
    ]


def test_explanation_places_every_token_in_the_levelled_line():
    told = explain_line("  pid 4312   exited at 08:15:42")
    assert [t.text for t in told.tokens] == [told.levelled[t.start : t.end] for t in told.tokens]
