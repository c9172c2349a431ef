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
