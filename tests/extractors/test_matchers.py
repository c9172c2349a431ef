"""What problem matchers make of an output: which line starts, goes on and ends a match, and who has a line."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kos_retry.adapters.extraction import host_main
from kos_retry.adapters.extraction.manifest import bundled_root
from kos_retry.engine.matchers import read_matchers, settle_owners
from kos_retry.sdk import Request

if TYPE_CHECKING:
    from conftest import Host

EXTRACTOR = bundled_root() / "matchers"
MAX_LINE_CHARS = 4096

HEAD = {"regexp": r"^(\S+)$", "file": 1}
ITEM = {"regexp": r"^ (\d+) (error|warning|hint) (.*)$", "line": 1, "severity": 2, "message": 3}
LINE = {"regexp": r"^(\S+?):(\d+): (.*)$", "file": 1, "line": 2, "message": 3}
STEPS = [
    {"regexp": r"^one (\S+)$", "file": 1},
    {"regexp": r"^two (\d+)$", "line": 1},
    {"regexp": r"^three (.*)$", "message": 1},
]


def matcher(*patterns: dict[str, Any], owner: str = "lint", **fields: str) -> dict[str, Any]:
    return {"owner": owner, "pattern": list(patterns), **fields}


def looping(owner: str = "lint") -> dict[str, Any]:
    return matcher(HEAD, ITEM | {"loop": True}, owner=owner)


def request_of(
    directory: Path, output: str | bytes | dict[str, str], *matchers: dict[str, Any], limit: int = 200
) -> dict[str, Any]:
    """Return what the extractor is asked where these matchers are configured, in rising precedence."""
    streams = output if isinstance(output, dict) else {"output": output}
    paths = {}
    for name, text in streams.items():
        (directory / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        paths[name] = {"path": str(directory / name)}
    return {
        "protocol": 1,
        "attempt": {"argv": ["make"], "exit_code": 1},
        "workspace": "/srv/app",
        "streams": paths,
        "reports": [],
        "limits": {"findings": limit},
        "options": {"matchers": settle_owners(read_matchers({"problemMatcher": list(matchers)}))},
    }


@pytest.fixture
def asked(host: Host, tmp_path: Path):
    """Return the extractor's answer."""

    def ask(output, *matchers, **given) -> dict[str, Any]:
        answer: dict[str, Any] = host.ask(EXTRACTOR, request_of(tmp_path, output, *matchers, **given))["answer"]
        return answer

    return ask


def places(answer: dict[str, Any]) -> list[str]:
    """Return the findings as ``path:line message``."""
    found = []
    for finding in answer["findings"]:
        location = finding.get("location", {})
        found.append(f"{location.get('path', '')}:{location.get('line') or ''} {finding['message']}")
    return found


# Matchers, an output, and what is found in it.
RULES = {
    "one line": ([matcher(LINE)], "a:1: no\nfine\nb:2: never\n", ["a:1 no", "b:2 never"]),
    "several lines": ([matcher(*STEPS)], "one a\ntwo 2\nthree no\n", ["a:2 no"]),
    "a line between ends a match": ([matcher(*STEPS)], "one a\n\ntwo 2\nthree no\n", []),
    "a line between the last ones ends a match": ([matcher(*STEPS)], "one a\ntwo 2\n\nthree no\n", []),
    "a match can start again at once": ([matcher(*STEPS)], "one a\none b\ntwo 2\nthree no\n", ["b:2 no"]),
    "a finished match is over": ([matcher(HEAD, ITEM)], "a\n 1 error x\n 2 error y\n", ["a:1 x"]),
    "the last pattern may loop": ([looping()], "a\n 1 error x\n 2 error y\n 3 error z\n", ["a:1 x", "a:2 y", "a:3 z"]),
    "a loop ends with the first line that does not fit": ([looping()], "a\n 1 error x\n-- --\n 2 error y\n", ["a:1 x"]),
    "a loop goes on with another head": (
        [looping()],
        "a\n 1 error x\nb\n 2 error y\n",
        ["a:1 x", "b:2 y"],
    ),
    "the last pattern is tried first": (
        [matcher({"regexp": r"^(.*)$", "file": 1}, {"regexp": r"^( 1) (.*)$", "line": 1, "message": 2, "loop": True})],
        "a\n 1 x\n 1 y\n",
        ["a:1 x", "a:1 y"],
    ),
    "patterns without their head find nothing": ([looping()], " 1 error x\n", []),
    "a half match at the end finds nothing": ([matcher(*STEPS)], "one a\ntwo 2\n", []),
    "a match does not go on in another stream": ([looping()], {"stderr": "a\n", "stdout": " 1 error x\n"}, []),
    "a match does not go on behind a gap": ([looping()], "a\n[70 bytes omitted]\n 1 error x\n", []),
    "the mark of a gap is no line": (
        [matcher({"regexp": r"^\[(\d+) (.*)\]$", "message": 2})],
        "[70 bytes omitted]\n",
        [],
    ),
    "a match does not go on behind a long line": (
        [matcher({"regexp": r"^(\w+)$", "file": 1}, ITEM | {"loop": True})],
        "a\n" + "x" * (MAX_LINE_CHARS + 1) + "\n 1 error x\n",
        [],
    ),
    "a line may be so long": (
        [matcher({"regexp": r"^(\w)\w*$", "message": 1})],
        "x" * MAX_LINE_CHARS + "\n" + "y" * (MAX_LINE_CHARS + 1) + "\n",
        [": x"],
    ),
    "colours are gone before": ([matcher(LINE)], "\x1b[31ma\x1b[0m:1: \x1b[1mno\x1b[0m\n", ["a:1 no"]),
    "line ends of other systems are none of the line": ([matcher(LINE)], "a:1: no\r\n", ["a:1 no"]),
    "a line without its end is one": ([matcher(LINE)], "a:1: no", ["a:1 no"]),
    "the same thing twice is one finding": ([matcher(LINE)], "a:1: no\na:1: no\n", ["a:1 no"]),
    "a match may name no file": ([matcher({"regexp": r"^error: (.*)$", "message": 1})], "error: no\n", [": no"]),
    "a match without words is no finding": ([matcher(LINE)], "a:1:  \n", []),
    "the later matcher has the line": (
        [matcher(LINE, owner="early"), matcher({"regexp": r"^(.*)$", "message": 1}, owner="late")],
        "a:1: no\n",
        [": a:1: no"],
    ),
    "a later matcher of the same owner replaces": (
        [matcher({"regexp": r"^(.*)$", "message": 1}), matcher(LINE, owner="LINT")],
        "a:1: no\nfree\n",
        ["a:1 no"],
    ),
    "who has a line ends what the others began": (
        [looping("loops"), matcher({"regexp": r"^b:(1): (.*)$", "line": 1, "message": 2}, owner="lines")],
        "a\nb:1: no\n 2 error x\n",
        [": no"],
    ),
    "a match that says nothing leaves the line to the next": (
        [matcher(LINE, owner="early"), matcher({"regexp": r"^(a)(x)?", "message": 2}, owner="late")],
        "a:1: no\n",
        ["a:1 no"],
    ),
    "an unknown severity is no finding": ([looping()], "a\n 1 hint x\n 2 error y\n", ["a:2 y"]),
    "a notice is no finding": ([matcher(LINE, severity="notice")], "a:1: no\n", []),
    "a notice has its line": (
        [matcher({"regexp": r"^(.*)$", "message": 1}, owner="early"), matcher(LINE, owner="late", severity="notice")],
        "a:1: no\n",
        [],
    ),
    "half a line of escapes is no line": ([matcher(LINE)], "a:1: no" + "\x1b[31m" * 14_000 + " way\n", []),
}


@pytest.mark.parametrize(("matchers", "output", "found"), RULES.values(), ids=RULES)
def test_rule(asked, matchers, output, found):
    assert found == places(asked(output, *matchers))


def test_an_error_can_be_trusted_and_a_warning_is_a_guess(asked):
    answer = asked("a\n 1 warning x\n 2 error y\n 3 WARNING z\n", looping())
    assert [("y", "likely", "failed"), ("x", "guess", "warning")] == [
        (f["message"], f["confidence"], f["status"]) for f in answer["findings"]
    ]


SEVERITIES = {
    "none is an error": (matcher(LINE), "likely"),
    "the matcher's": (matcher(LINE, severity="warning"), "guess"),
    "the line's before the matcher's": (looping() | {"severity": "warning"}, "likely"),
    "an empty one is the matcher's": (
        matcher({"regexp": r"^(\S+?):(\d+): ((?:error)?)(.*)$", "severity": 3, "message": 4}, severity="warning"),
        "guess",
    ),
}


@pytest.mark.parametrize(("given", "confidence"), SEVERITIES.values(), ids=SEVERITIES)
def test_severity_is(asked, given, confidence):
    assert [confidence] == [f["confidence"] for f in asked("a\n 1 error x\na:1: no\n", given)["findings"]][:1]


CODES = {
    "a code": ("E12", "E12"),
    "a bare number": ("2322", "lint 2322"),
    "none": ("", "no cart"),
    "blanks": ("  ", "no cart"),
}


@pytest.mark.parametrize(("code", "name"), CODES.values(), ids=CODES)
def test_finding_is_named_by(asked, code, name):
    answer = asked(f"[{code}] no cart\n", matcher({"regexp": r"^\[(.*?)\] (.*)$", "code": 1, "message": 2}))
    assert [name] == [finding["code"] for finding in answer["findings"]]


# A file, the path that it is relative to, and what is told.
PATHS = {
    "as it is": ("src/a.c", "", "src/a.c"),
    "in the workspace": ("/srv/app/src/a.c", "", "src/a.c"),
    "elsewhere": ("/usr/include/a.h", "", "/usr/include/a.h"),
    "dots": ("./src/../a.c", "", "a.c"),
    "beside a project": ("a.c", "src/app/app.proj", "src/app/a.c"),
    "above a project": ("../a.c", "/srv/app/src/app.proj", "a.c"),
    "whole path of another project": ("/srv/app/a.c", "lib/lib.proj", "a.c"),
    "drive of another system": ("C:\\a.c", "lib/lib.proj", "C:\\a.c"),
    "project without a directory": ("a.c", "app.proj", "a.c"),
    "no file": ("", "src/app.proj", None),
}


@pytest.mark.parametrize(("file", "base", "told"), PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("fixed", [False, True], ids=["told", "fixed"])
def test_path_of_a_file(asked, file, base, told, fixed):
    """``fixed``: the path that a file is relative to is the matcher's instead of the line's."""
    pattern = {"regexp": r"^<(.*)> no \[(.*)\]$", "file": 1, "message": 0}
    given = matcher(pattern, fromPath=base) if fixed else matcher(pattern | {"fromPath": 2})
    answer = asked(f"<{file}> no [{base}]\n", given)
    assert [told] == [finding.get("location", {}).get("path") for finding in answer["findings"]]


@pytest.mark.parametrize("number", ["0", "٣", "1" * 30, "-1", "x"])
def test_number_that_is_none_is_left_out(asked, number):
    answer = asked(f"a:{number}: no\n", matcher({"regexp": r"^(.*):(.*): (.*)$", "file": 1, "line": 2, "message": 3}))
    assert ["a: no"] == places(answer)


def test_evidence_is_the_lines_of_the_match(asked):
    output = "free\nä one\n 1 error x\n 2 error y\n"
    head = {"regexp": r"^ä (\S+)$", "file": 1}
    answer = asked(output, matcher(head, ITEM | {"loop": True}))
    quoted = [output.encode()[e["start"] : e["end"]].decode() for f in answer["findings"] for e in f["evidence"]]
    assert ["ä one\n 1 error x", " 2 error y"] == quoted


def test_findings_are_bounded_and_errors_go_first(asked):
    output = "a\n" + "".join(f" {n} warning w\n" for n in range(1, 9)) + "".join(f" {n} error e\n" for n in range(1, 4))
    assert ["a:1 e", "a:2 e", "a:3 e", "a:1 w", "a:2 w"] == places(asked(output, looping(), limit=5))


def test_without_matchers_nothing_is_found(asked):
    assert {"protocol": 1, "findings": []} == asked("a:1: no\n")


# --- expressions that take too long ------------------------------------------------------------------

_TRAP = "a" * 50 + "!\n"


def slow(owner: str) -> dict[str, Any]:
    return matcher({"regexp": r"^(a+)+$", "message": 1}, owner=owner)


@pytest.fixture
def brief(monkeypatch):
    """Load the extractor into this process and give an owner a fraction of its time; return how it is asked."""
    assert threading.current_thread() is threading.main_thread(), "signals interrupt the main thread only"
    script = host_main.load(str(EXTRACTOR / "extract.py"))
    monkeypatch.setattr(script, "OWNER_SECONDS", 0.1)
    return lambda request: script.extract(Request(request)).as_json()


def test_slow_owner_is_named_and_left_out_and_the_others_go_on(brief, tmp_path):
    answer = brief(request_of(tmp_path, f"a:1: no\n{_TRAP}b:2: never\n", matcher(LINE), slow("trap")))
    assert ["a:1 no", "b:2 never"] == places(answer)
    assert "left out what takes too long on this output: the expressions of 'trap'" == answer["incomplete"]


def test_slow_owner_says_nothing_at_all(brief, tmp_path):
    """What it says depends on the machine's speed otherwise."""
    assert [] == brief(request_of(tmp_path, "aaa\n" + _TRAP, slow("trap")))["findings"]


def test_slow_owner_in_the_middle_of_a_match_is_named(brief, tmp_path):
    later = matcher(HEAD, {"regexp": r"^(a+)+$", "message": 1, "loop": True}, owner="later")
    assert "'later'" in brief(request_of(tmp_path, "x\n" + _TRAP, later))["incomplete"]


def test_many_slow_owners_are_all_named_and_given_up(brief, tmp_path):
    with pytest.raises(TimeoutError, match="'d', 'c', 'b', 'a'"):
        brief(request_of(tmp_path, _TRAP, *(slow(owner) for owner in "abcde"[:4]), matcher(LINE)))


def test_quick_owner_is_not_blamed_for_a_slow_one(brief, tmp_path):
    answer = brief(request_of(tmp_path, "a:1: no\n" * 2_000 + _TRAP, matcher(LINE, owner="quick"), slow("trap")))
    assert "quick" not in answer["incomplete"]


# --- any output ------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        "a",
        "a:1: no",
        " 1 error x",
        " 2 warning y",
        "one b",
        "two 2",
        "three z",
        "[9 bytes omitted]",
        "\x1b[31m",
        "\xff",
        "::",
    ]
)
_ENDS = st.sampled_from(["\n", "\r\n", "\r", "", "\x00", "\u2028"])
_OUTPUTS = st.lists(st.tuples(_PIECES, _ENDS), max_size=30).map(lambda parts: "".join(p + e for p, e in parts))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(_OUTPUTS, st.integers(0, 200), st.integers(1, 5))
def test_wherever_lines_end_findings_are_bounded_and_were_printed(host, tmp_path, output, cut, limit):
    raw = output.encode("latin-1", "replace")[:cut]
    request = request_of(tmp_path, raw, matcher(*STEPS, owner="s"), matcher(LINE, owner="l"), looping("k"), limit=limit)
    answer = host.ask(EXTRACTOR, request)["answer"]
    assert len(answer["findings"]) <= limit
    for finding in answer["findings"]:
        (span,) = finding["evidence"]
        quoted = raw[span["start"] : span["end"]]
        assert finding["message"].encode()[:1] in quoted
        assert finding["message"].isprintable()


HOSTILE = {
    "one line of a megabyte": b"a:1: " + b"x" * 1_000_000,
    "twenty thousand lines": b"a:1: no\n" * 20_000,
    "twenty thousand different lines": b"".join(b"a:%d: no\n" % n for n in range(20_000)),
    "heads without items": b"a\n" * 20_000,
    "items without end": b"a\n" + b" 1 error x\n" * 20_000,
    "every byte": bytes(range(256)) * 64,
}


@pytest.mark.parametrize("output", HOSTILE.values(), ids=HOSTILE)
def test_hostile_output_is_survived(asked, output):
    answer = asked(output, matcher(*STEPS, owner="s"), matcher(LINE, owner="l"), looping("k"))
    assert len(answer["findings"]) <= 200
    assert "incomplete" not in answer
    assert len(json.dumps(answer)) < 1024 * 1024
