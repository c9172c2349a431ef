"""What the extractors of report files make of what their formats allow: one row a rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kos_retry.adapters.extraction.manifest import bundled_root

if TYPE_CHECKING:
    from conftest import Host


@pytest.fixture
def read(host: Host, tmp_path: Path) -> Any:
    """Return a function that has an extractor read one report."""

    def ask(extractor: str, report: Any, *, exit_code: int = 1) -> dict[str, Any]:
        raw = report if isinstance(report, bytes) else json.dumps(report).encode()
        (tmp_path / "report").write_bytes(raw)
        reply = host.ask(
            bundled_root() / extractor,
            {
                "attempt": {"exit_code": exit_code},
                "workspace": "/srv/app",
                "reports": [{"path": str(tmp_path / "report"), "relative": "report"}],
            },
        )
        answer: dict[str, Any] = reply["answer"]
        return answer

    return ask


def a_result(**fields: Any) -> dict[str, Any]:
    return {"ruleId": "R1", "level": "error", "message": {"text": "wrong."}, **fields}


def sarif(*results: dict[str, Any], **run: Any) -> dict[str, Any]:
    return {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "t"}}, "results": list(results), **run}]}


def at(uri: str, **fields: Any) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": uri, **fields}, "region": {"startLine": 7, "startColumn": 2}}
    return {"locations": [{"physicalLocation": place}]}


RULES = {
    "tool": {
        "driver": {
            "rules": [
                {
                    "id": "E1",
                    "defaultConfiguration": {"level": "error"},
                    "messageStrings": {"m": {"text": "{0} is not {1}, {2}"}},
                },
                {"id": "N1", "defaultConfiguration": {"level": "note"}},
            ],
            "globalMessageStrings": {"g": {"text": "global"}},
        },
        "extensions": [{"rules": [{"id": "X1", "defaultConfiguration": {"level": "error"}}]}],
    }
}


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param([a_result()], ["R1"], id="error"),
        pytest.param([a_result(level="warning"), a_result(ruleId="R2")], ["R2"], id="a warning beside an error"),
        pytest.param([a_result(level="warning")], ["R1"], id="only a warning"),
        pytest.param([a_result(level="note")], [], id="note"),
        pytest.param([a_result(level="none")], [], id="none"),
        pytest.param([{"ruleId": "R1", "message": {"text": "x"}}], ["R1"], id="no level is a warning"),
        *(
            pytest.param([a_result(kind=kind)], [], id=kind)
            for kind in ("pass", "notApplicable", "informational", "review", "open")
        ),
        pytest.param([a_result(kind="fail")], ["R1"], id="fail"),
        pytest.param([a_result(suppressions=[])], ["R1"], id="no suppression"),
        pytest.param([a_result(suppressions=[{"kind": "inSource"}])], [], id="suppressed"),
        pytest.param([a_result(suppressions=[{"status": "accepted"}])], [], id="suppression accepted"),
        pytest.param([a_result(suppressions=[{"status": "rejected"}])], ["R1"], id="suppression rejected"),
        pytest.param(
            [a_result(suppressions=[{"status": "rejected"}, {"kind": "inSource"}])], [], id="suppressed twice"
        ),
        pytest.param([a_result(baselineState="absent")], [], id="gone"),
        pytest.param(
            [a_result(baselineState="unchanged"), a_result(ruleId="R2", baselineState="new")], ["R2"], id="new"
        ),
        pytest.param([a_result(baselineState="unchanged")], ["R1"], id="nothing new"),
        pytest.param(["no object", None, 3, []], [], id="no results"),
    ],
)
def test_sarif_results_count_by_level_kind_suppression_and_baseline(read: Any, results: Any, expected: Any) -> None:
    assert [finding["code"] for finding in read("sarif", sarif(*results))["findings"]] == expected


def test_sarif_warnings_of_a_run_that_passed_are_not_told(read: Any) -> None:
    answer = read("sarif", sarif(a_result(level="warning")), exit_code=0)

    assert answer["findings"] == []
    assert answer["totals"] == {"errors": 0, "warnings": 1}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"ruleIndex": 0, "message": {"id": "m", "arguments": ["a", "b"]}}, ("E1", "a is not b, {2}")),
        ({"ruleId": "E1", "message": {"id": "g"}}, ("E1", "global")),
        ({"ruleId": "E1/sub", "message": {"text": "x"}}, ("E1/sub", "x")),
        ({"rule": {"id": "E1"}, "message": {"markdown": "**x**"}}, ("E1", "**x**")),
        ({"rule": {"index": 0, "toolComponent": {"index": 0}}, "message": {"text": "x"}}, ("X1", "x")),
        ({"ruleId": "E1", "message": {}}, ("E1", "E1")),
        ({"ruleIndex": 99, "level": "error", "message": {"text": "x"}}, (None, "x")),
        ({"ruleIndex": -1, "level": "error", "message": {"text": "x"}}, (None, "x")),
        ({"ruleId": "N1", "message": {"text": "x"}}, None),
    ],
)
def test_sarif_takes_level_and_words_from_the_rule(read: Any, result: Any, expected: Any) -> None:
    findings = read("sarif", sarif(result, **RULES))["findings"]

    assert [(f.get("code"), f["message"]) for f in findings] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (at("src/a.c"), "src/a.c"),
        (at("src/a%20b.c"), "src/a b.c"),
        (at("file:///srv/app/src/a.c"), "src/a.c"),
        (at("file:/srv/app/src/a.c"), "src/a.c"),
        (at("a.c", uriBaseId="SRC"), "src/a.c"),
        (at("a.c", uriBaseId="INNER"), "src/inner/a.c"),
        (at("a.c", uriBaseId="%SRCROOT%"), "a.c"),
        (at("a.c", uriBaseId="LOOP"), "a.c"),
        (at("file:///srv/app/a.c", uriBaseId="SRC"), "a.c"),
    ],
)
def test_sarif_places_are_relative_to_the_workspace(read: Any, where: Any, expected: str) -> None:
    bases = {
        "SRC": {"uri": "file:///srv/app/src/"},
        "INNER": {"uri": "inner/", "uriBaseId": "SRC"},
        "LOOP": {"uriBaseId": "LOOP"},
    }

    [finding] = read("sarif", sarif(a_result(**where), originalUriBaseIds=bases))["findings"]

    assert finding["location"] == {"path": expected, "line": 7, "column": 2}


def test_sarif_tells_of_a_tool_that_failed_itself(read: Any) -> None:
    told = {"level": "error", "message": {"text": "out of memory"}, "descriptor": {"id": "OOM"}}
    run = {"invocations": [{"executionSuccessful": False, "toolExecutionNotifications": [told]}]}

    [finding] = read("sarif", sarif(**run))["findings"]

    assert (finding["code"], finding["message"]) == ("OOM", "out of memory")


def ctrf(*tests: dict[str, Any], tool: str = "t", **summary: int) -> dict[str, Any]:
    return {"results": {"tool": {"name": tool}, "summary": summary, "tests": list(tests)}}


@pytest.mark.parametrize(
    ("test", "result"),
    [
        ({"status": "passed"}, "passed"),
        ({"status": "failed"}, "failed"),
        ({"status": "skipped"}, "skipped"),
        ({"status": "pending"}, "skipped"),
        ({"status": "other"}, "skipped"),
        ({"status": "other", "rawStatus": "todo"}, "skipped"),
        ({"status": "other", "rawStatus": "timed-out"}, "errored"),
        ({"status": "failed", "rawStatus": "teardown_failed"}, "errored"),
        ({"status": "other", "rawStatus": "in progress"}, "unfinished"),
        ({}, "skipped"),
    ],
)
def test_ctrf_results(read: Any, test: dict[str, Any], result: str) -> None:
    answer = read("ctrf", ctrf({"name": "n", **test}))

    assert {name for name, number in answer["totals"].items() if number} == {result}
    status = {"failed": "failed", "errored": "error", "unfinished": "unfinished"}.get(result)
    assert [finding["status"] for finding in answer["findings"]] == ([status] if status else [])


def test_ctrf_counts_flaky_tests_and_trusts_the_summary_where_only_failures_are_listed(read: Any) -> None:
    report = ctrf({"name": "a", "status": "passed", "flaky": True}, {"name": "b", "status": "failed"}, passed=40)

    assert read("ctrf", report)["totals"] == {"passed": 40, "skipped": 0, "failed": 1, "errored": 0, "flaky": 1}


@pytest.mark.parametrize(
    ("test", "tool", "expected"),
    [
        ({"name": "a/t.py::test_x", "suite": ["a/t.py"]}, "pytest", "a/t.py::test_x"),
        ({"name": "cart adds", "suite": "cart.js > cart", "filePath": "/srv/app/cart.js"}, "jest", "cart › adds"),
        ({"name": "adds", "suite": ["cart", "totals"]}, "other", "cart > totals > adds"),
        ({"name": "cart > adds", "suite": ["cart"]}, "other", "cart > adds"),
        ({"name": "cartographer", "suite": ["cart"]}, "other", "cart > cartographer"),
        ({"name": "adds", "suite": [None, 3, {}]}, "other", "3 > adds"),
        ({"name": "adds"}, "other", "adds"),
    ],
)
def test_ctrf_names(read: Any, test: dict[str, Any], tool: str, expected: str) -> None:
    [finding] = read("ctrf", ctrf({"status": "failed", **test}, tool=tool))["findings"]

    assert finding["test_id"] == expected


@pytest.mark.parametrize("report", [{}, [], {"results": []}, {"results": {"tests": {}}}, {"results": {"tests": []}}, 3])
def test_what_is_no_ctrf_is_not_read(read: Any, report: Any) -> None:
    assert read("ctrf", report) == {"protocol": 1, "findings": []}


def phases(*rows: tuple[str, str, str]) -> bytes:
    start = [{"$report_type": "SessionStart"}]
    told = [{"$report_type": "TestReport", "nodeid": n, "when": w, "outcome": o} for n, w, o in rows]
    return "".join(json.dumps(row) + "\n" for row in [*start, *told]).encode()


SET_UP = ("t.py::a", "setup", "passed")
CALLED = ("t.py::a", "call", "passed")
TORN_DOWN = ("t.py::a", "teardown", "passed")


@pytest.mark.parametrize(
    ("rows", "results"),
    [
        pytest.param([SET_UP, CALLED, TORN_DOWN], {"passed"}, id="passed"),
        pytest.param([SET_UP, ("t.py::a", "call", "failed"), TORN_DOWN], {"failed"}, id="failed"),
        pytest.param([("t.py::a", "setup", "failed"), TORN_DOWN], {"errored"}, id="not set up"),
        pytest.param([SET_UP, CALLED, ("t.py::a", "teardown", "failed")], {"errored"}, id="not torn down"),
        pytest.param(
            [SET_UP, ("t.py::a", "call", "failed"), ("t.py::a", "teardown", "failed")],
            {"failed"},
            id="the failure counts",
        ),
        pytest.param([("t.py::a", "setup", "skipped"), TORN_DOWN], {"skipped"}, id="skipped"),
        pytest.param([SET_UP, ("t.py::a", "call", "skipped"), TORN_DOWN], {"skipped"}, id="expected to fail"),
        pytest.param([SET_UP], {"unfinished"}, id="died in the call"),
        pytest.param([SET_UP, CALLED], {"unfinished"}, id="died in teardown"),
        pytest.param([SET_UP, ("t.py::a", "call", "failed")], {"failed"}, id="failed, then died in teardown"),
        pytest.param(
            [SET_UP, ("t.py::a", "call", "rerun"), TORN_DOWN, SET_UP, CALLED, TORN_DOWN],
            {"passed", "flaky"},
            id="flaky",
        ),
        pytest.param(
            [SET_UP, ("t.py::a", "call", "rerun"), TORN_DOWN, SET_UP], {"unfinished"}, id="died when it was run again"
        ),
        pytest.param([("t.py::a", "???", "failed")], {"failed"}, id="worker died"),
        pytest.param([], set(), id="nothing ran"),
    ],
)
def test_reportlog_phases(read: Any, rows: list[tuple[str, str, str]], results: set[str]) -> None:
    totals = read("reportlog", phases(*rows))["totals"]

    assert {name for name, number in totals.items() if number} == results


def test_what_was_started_and_never_ended_is_a_finding(read: Any) -> None:
    [finding] = read("reportlog", phases(SET_UP))["findings"]

    assert (finding["kind"], finding["status"], finding["test_id"]) == ("test", "unfinished", "t.py::a")


PROBLEM = {"line": 3, "message": "wrong", "code": "R1", "severity": "error"}
PLACED = {"path": "a.x", "line": 3, "column": 5}


@pytest.mark.parametrize(
    ("report", "place", "code"),
    [
        pytest.param([{**PROBLEM, "filename": "a.x", "column": 5}], PLACED, "R1", id="flat"),
        pytest.param(
            [{"filename": "a.x", "message": "wrong", "code": "R1", "location": {"row": 3, "column": 5}}],
            PLACED,
            "R1",
            id="position in an object",
        ),
        pytest.param(
            {"Issues": [{"FromLinter": "R1", "Text": "wrong", "Pos": {"Filename": "a.x", "Line": 3, "Column": 5}}]},
            PLACED,
            "R1",
            id="capitals",
        ),
        pytest.param(
            {
                "files": [
                    {
                        "path": "a.x",
                        "offenses": [{"message": "wrong", "cop_name": "R1", "location": {"line": 3, "column": 5}}],
                    }
                ]
            },
            PLACED,
            "R1",
            id="the file round its problems",
        ),
        pytest.param(
            {"files": {"/srv/app/a.x": {"messages": [{"message": "wrong", "line": 3, "identifier": "R1"}]}}},
            {**PLACED, "column": None},
            "R1",
            id="the file as a key",
        ),
        pytest.param(
            {
                "results": [
                    {"path": "a.x", "check_id": "R1", "start": {"line": 3, "col": 5}, "extra": {"message": "wrong"}}
                ]
            },
            PLACED,
            "R1",
            id="words in an object",
        ),
        pytest.param(
            {
                "generalDiagnostics": [
                    {"file": "a.x", "rule": "R1", "message": "wrong", "range": {"start": {"line": 2, "character": 4}}}
                ]
            },
            PLACED,
            "R1",
            id="positions from 0",
        ),
        pytest.param(
            [{"description": "wrong", "check_name": "R1", "location": {"path": "a.x", "lines": {"begin": 3}}}],
            {**PLACED, "column": None},
            "R1",
            id="lines that begin",
        ),
        pytest.param(
            {
                "message": "wrong",
                "code": {"value": "R1"},
                "location": {"path": "a.x", "range": {"start": {"line": 3, "column": 5}}},
            },
            PLACED,
            "R1",
            id="one object",
        ),
        pytest.param(
            b'checking...\n{"file": "a.x", "line": 3, "column": 4, "end_column": 9, "message": "wrong", "hint": null, "code": "R1"}\n',
            PLACED,
            "R1",
            id="a line of its own, columns from 0",
        ),
    ],
)
def test_problems_are_found_whatever_the_shape(read: Any, report: Any, place: Any, code: str) -> None:
    answer = read("lint_json", report)

    assert [(f["location"], f["code"], f["message"]) for f in answer["findings"]] == [(place, code, "wrong")]
    assert answer["totals"] == {"errors": 1, "warnings": 0}


@pytest.mark.parametrize(
    "report",
    [
        pytest.param([{**PROBLEM, "ruleId": "R1", "filePath": "a.x"}], id="another extractor's"),
        pytest.param([{**PROBLEM, "file": "a.x", "severity": "note"}], id="a note"),
        pytest.param([{**PROBLEM, "file": "a.x", "status": "failed"}], id="a test"),
        pytest.param([PROBLEM], id="no file"),
        pytest.param([{"file": "a.x", "line": 3, "message": "wrong"}], id="neither a rule nor a level"),
        pytest.param([{"file": "a.x", "line": 3, "code": "R1"}], id="no words"),
        pytest.param([{"file": "a.x", "line": 0, "message": "wrong", "code": "R1"}], id="no line"),
        pytest.param({"file": {"file": {"file": 3}}, "message": [PROBLEM]}, id="nothing where it should be"),
        pytest.param(b'[{"file": "a.x", "line": 3, "code": "R1", "message": "wrong", "end', id="cut off"),
    ],
)
def test_what_is_no_problem_is_not_told(read: Any, report: Any) -> None:
    assert read("lint_json", report) == {"protocol": 1, "findings": []}


@pytest.mark.parametrize(
    ("levels", "exit_code", "told"),
    [
        (["error", "warning"], 1, ["error"]),
        (["warning", "info"], 1, ["warning", "info"]),
        (["warning"], 0, []),
        (["error"], 0, ["error"]),
        (["major", "warning"], 1, ["major"]),
    ],
)
def test_warnings_are_told_where_nothing_else_failed_the_run(
    read: Any, levels: list[str], exit_code: int, told: list[str]
) -> None:
    report = [{**PROBLEM, "file": "a.x", "code": level, "severity": level} for level in levels]

    answer = read("lint_json", report, exit_code=exit_code)

    assert [finding["code"] for finding in answer["findings"]] == told
    assert sum(answer["totals"].values()) == len(levels)


def test_jest_names_are_told_apart_by_their_files_and_files_by_why_they_do_not_load(read: Any) -> None:
    failed = {"ancestorTitles": ["cart"], "title": "adds", "status": "failed", "failureMessages": ["Error: no\n at f"]}
    report = {
        "numTotalTests": 2,
        "numRuntimeErrorTestSuites": 1,
        "testResults": [
            {"name": "/srv/app/a.js", "status": "failed", "assertionResults": [failed]},
            {"name": "/srv/app/b.js", "status": "failed", "assertionResults": [failed]},
            {
                "name": "/srv/app/c.js",
                "status": "failed",
                "assertionResults": [],
                "message": "  ● Test suite failed to run\n\n    boom\n",
            },
        ],
    }

    findings = read("test_json", report)["findings"]

    assert [f["test_id"] for f in findings] == ["a.js › cart › adds", "b.js › cart › adds", "c.js: boom"]


@pytest.mark.parametrize("report", [{}, [], {"testResults": []}, {"stats": {}}, {"examples": {}, "version": "3"}, 3])
def test_what_no_test_runner_writes_is_not_read(read: Any, report: Any) -> None:
    assert read("test_json", report) == {"protocol": 1, "findings": []}


def suite(*cases: str, name: str = "s") -> bytes:
    return f"<testsuite name='{name}'>{''.join(cases)}</testsuite>".encode()


def case(inner: str = "", **attributes: str) -> str:
    given = "".join(f" {key}='{value}'" for key, value in {"classname": "C", "name": "t", **attributes}.items())
    return f"<testcase{given}>{inner}</testcase>"


FAILED = case("<failure message='m' type='E'/>")


@pytest.mark.parametrize(
    ("report", "exit_code", "results"),
    [
        pytest.param(suite(case()), 0, {"passed"}, id="passed"),
        pytest.param(suite(FAILED), 1, {"failed"}, id="failure"),
        pytest.param(suite(case("<error/>")), 1, {"errored"}, id="error"),
        pytest.param(suite(case("<skipped/>")), 1, {"skipped"}, id="skipped"),
        pytest.param(suite(case("<failure/><error/>")), 1, {"errored"}, id="the worst counts"),
        pytest.param(suite(case(status="notrun")), 1, {"skipped"}, id="not run"),
        pytest.param(suite(case(status="DISABLED")), 1, {"skipped"}, id="disabled"),
        pytest.param(suite(case(status="run")), 1, {"passed"}, id="run"),
        pytest.param(suite(case("<flakyFailure/>")), 0, {"passed", "flaky"}, id="failed at first"),
        pytest.param(suite(case("<flakyError/>")), 0, {"passed", "flaky"}, id="error at first"),
        pytest.param(suite(case("<rerunFailure/>")), 1, {"failed"}, id="failed again"),
        pytest.param(suite(FAILED, case()), 0, {"passed", "flaky"}, id="run again in a run that passed"),
        pytest.param(suite(FAILED, case()), 1, {"failed"}, id="of one name in a run that failed"),
        pytest.param(suite(case(), FAILED), 0, {"failed"}, id="failed at last"),
        pytest.param(suite("<error message='m'/>"), 1, {"errored"}, id="the suite itself"),
        pytest.param(b"<testsuites/>", 1, set(), id="no tests"),
        pytest.param(suite(FAILED)[:-20], 1, {"failed"}, id="cut off in a failure that is told"),
        pytest.param(
            suite(case(), case(name="u"))[:-20], 1, {"passed"}, id="cut off in a case of which nothing is known"
        ),
    ],
)
def test_junit_results(read: Any, report: bytes, exit_code: int, results: set[str]) -> None:
    answer = read("junit", report, exit_code=exit_code)

    assert {name for name, number in answer["totals"].items() if number} == results
    assert bool(answer["findings"]) == bool(results & {"failed", "errored"})


@pytest.mark.parametrize(
    ("report", "message"),
    [
        pytest.param(suite(case("<failure message='m'>text</failure>")), "m", id="the attribute"),
        pytest.param(suite(case("<failure>text</failure>")), "text", id="the text"),
        pytest.param(suite(case("<failure><![CDATA[a < b]]></failure>")), "a < b", id="CDATA"),
        pytest.param(
            suite(case("<failure/><system-out>out</system-out>")), "failed without a message", id="not the output"
        ),
        pytest.param(
            suite(case("<failure message=''/><system-out>a&#10;out</system-out>", status="fail")),
            "out",
            id="the output where the tool puts it there",
        ),
        pytest.param(suite(case("<failure message='x.c:7&#10;wrong'/>")), "wrong", id="not the place"),
        pytest.param(suite(case("<failure type='test timeout'/>")), "test timeout", id="a type that is no name"),
        pytest.param(suite(case("<failure message='&#27;[31mred&#27;[0m'/>")), "red", id="escapes as references"),
        pytest.param(suite(case("<failure message='m\x1b[0m\x00'/>")), "m?", id="control characters"),
        pytest.param(
            suite(case("<failure message='a&#xD83D;&#xDE00;b'/>")), "a" + "?" * 16 + "b", id="halves of a character"
        ),
        pytest.param(suite(case("<failure message='a &lt; b'/>")), "a < b", id="other references stay"),
        pytest.param(
            suite(case("<failure message='m'/>")).replace(b"'m'", b"'m\xff'"), "m?", id="a byte that is no text"
        ),
        pytest.param(b"\xef\xbb\xbf" + suite(FAILED), "m", id="byte order mark"),
        pytest.param(suite(FAILED).decode().encode("utf-16"), "m", id="UTF-16"),
        pytest.param(b"\n\n<?xml version='1.0'?>" + suite(FAILED), "m", id="empty lines in front"),
        pytest.param(b"WARN: a < b\n<?xml version='1.0'?>" + suite(FAILED), "m", id="output in front"),
        pytest.param(b"<?xml version='1.1' encoding='UTF-8'?>" + suite(FAILED), "m", id="XML 1.1"),
        pytest.param(
            b"<?xml version='1.0' encoding='ISO-8859-1'?>"
            + suite(case("<failure message='K?ln'/>")).replace(b"?", b"\xf6"),
            "Köln",
            id="ISO-8859-1",
        ),
        pytest.param(suite("<p:testcase name='t'><p:failure message='m'/></p:testcase>"), "m", id="prefixes"),
    ],
)
def test_junit_messages(read: Any, report: bytes, message: str) -> None:
    answer = read("junit", report)

    assert [finding["message"] for finding in answer["findings"]] == [message]


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (suite(FAILED), "C.t"),
        (suite(case("<failure/>", **{"class": "C"})), "C::t"),
        (suite(case("<failure/>", classname="shop", name="a::b"), name="shop"), "shop a::b"),
        (suite(case("<failure/>", classname="", name="t")), "s.t"),
        (suite(case("<failure/>", name="adds prices")), "C > adds prices"),
    ],
)
def test_junit_names(read: Any, report: bytes, expected: str) -> None:
    [finding] = read("junit", report)["findings"]

    assert finding["test_id"] == expected


def test_junit_evidence_is_the_failure_whatever_stands_in_front(read: Any) -> None:
    report = b"a warning\n<?xml version='1.0'?>" + suite(case("<failure message='\x1bm&#27;'>text</failure>"))

    [finding] = read("junit", report)["findings"]

    [span] = finding["evidence"]
    assert report[span["start"] : span["end"]].startswith(b"<failure")
    assert report[span["end"] :].startswith(b"</failure>")


@pytest.mark.parametrize("size", range(65_500, 65_560, 7))
def test_junit_is_mended_where_it_is_read_in_pieces(read: Any, size: int) -> None:
    report = suite(
        case("<failure message='m'>" + "x" * size + "&#27;&amp;ü&#xD800;</failure>"), case("<error/>", name="u")
    )

    assert [finding["test_id"] for finding in read("junit", report)["findings"]] == ["C.t", "C.u"]
