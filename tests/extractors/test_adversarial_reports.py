"""Report files as killed runs, other systems and careless tools leave them: no finding is invented, and bombs are refused."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kos_retry
from kos_retry.adapters.extraction.manifest import bundled_directories, bundled_root

if TYPE_CHECKING:
    from conftest import Case, Host

CUTS = 100
MEMORY_BYTES = 768 * 1024 * 1024
CPU_SECONDS = 20

# Where what is cut off reads as text, half a run has other names than a whole one.
READ_AS_TEXT = frozenset({"go", "tap", "cargo"})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "reported" in metafunc.fixturenames:
        cases = sorted(
            path.parent
            for place in bundled_directories()
            for path in place.glob("fixtures/*/request.json")
            if json.loads(path.read_text(encoding="utf-8"))["reports"]
        )
        metafunc.parametrize("reported", cases, ids=[f"{case.parents[1].name}-{case.name}" for case in cases])


@pytest.fixture
def changed(reported: Path, case_of: type[Case], host: Host, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that asks a case's extractor with its reports changed."""
    case = case_of(reported)

    def ask(change: Callable[[bytes], bytes]) -> dict[str, Any]:
        request = case.request()
        for number, report in enumerate(request["reports"]):
            raw = Path(report["path"]).read_bytes()
            report["path"] = str(tmp_path / str(number))
            Path(report["path"]).write_bytes(change(raw))
        reply = host.ask(case.extractor, request)
        assert "answer" in reply, reply
        answer: dict[str, Any] = reply["answer"]
        return answer

    return ask


def names(answer: dict[str, Any]) -> set[tuple[Any, ...]]:
    """Return what is told apart: the tests, and the problems with their places; not what a cut has left running."""
    return {
        (f.get("test_id"), f.get("code"), (f.get("location") or {}).get("line") if not f.get("test_id") else None)
        for f in answer["findings"]
        if f["status"] not in ("unfinished", "warning")
    }


def told(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings without their evidence, which moves when the bytes do."""
    return [{k: v for k, v in finding.items() if k != "evidence"} for finding in answer["findings"]]


def test_nothing_is_invented_whereever_a_report_is_cut_off(reported: Path, changed: Any) -> None:
    whole = names(changed(lambda raw: raw))

    for cut in range(CUTS):
        found = names(changed(lambda raw, cut=cut: raw[: len(raw) * cut // CUTS]))
        assert found <= whole or reported.parents[1].name in READ_AS_TEXT, cut


def test_line_ends_of_another_system_change_nothing(changed: Any) -> None:
    answer = changed(lambda raw: raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))

    assert told(answer) == told(changed(lambda raw: raw))


def test_a_byte_that_is_no_text_hides_no_failure(changed: Any) -> None:
    whole = changed(lambda raw: raw)

    answer = changed(_spoilt)

    assert len(answer["findings"]) == len(whole["findings"])
    assert answer.get("totals") == whole.get("totals")


def test_a_report_ten_times_over_tells_nothing_new(changed: Any) -> None:
    assert names(changed(lambda raw: raw * 10)) <= names(changed(lambda raw: raw))


def _spoilt(raw: bytes) -> bytes:
    """Return ``raw`` with a stray byte before each occurrence of words that stand in messages only."""
    for word in (b" is ", b" to ", b" was ", b" of "):
        raw = raw.replace(word, b"\xff" + word)
    return raw


CASES = b"<testcase name='t'><failure message='m'/></testcase>"
BOMBS: dict[str, list[bytes]] = {
    "nested XML": [b"<testsuite>" * 200_000],
    "nested cases": [b"<testsuite>", b"<testcase name='t'>" * 200_000],
    "long attribute": [b"<testsuite><testcase name='", b"x" * 40_000_000, b"'><failure/></testcase></testsuite>"],
    "long text": [b"<testsuite><testcase name='t'><failure>", b"x" * 60_000_000, b"</failure></testcase></testsuite>"],
    "many cases": [
        b"<testsuite>",
        b"".join(b"<testcase name='t%d'><failure/></testcase>" % n for n in range(250_000)),
        b"</testsuite>",
    ],
    "larger than is read": [b"<testsuite>", CASES * 1_500_000],
    "nested JSON": [b'{"runs":[' * 200_000],
    "many results": [b'{"version":"2.1.0","runs":[{"results":[', b'{"ruleId":"R","level":"error"},' * 300_000],
    "many lines": [b'{"$report_type":"TestReport","nodeid":"t","when":"call","outcome":"failed"}\n' * 200_000],
}
READERS = {"nested JSON": ("ctrf", "sarif", "lint_json"), "many results": ("sarif",), "many lines": ("reportlog",)}


@pytest.mark.parametrize(
    ("name", "reader"), [(name, reader) for name in BOMBS for reader in READERS.get(name, ("junit",))]
)
def test_a_bomb_is_survived_in_bounded_memory_and_time(name: str, reader: str, tmp_path: Path) -> None:
    (tmp_path / "report").write_bytes(b"".join(BOMBS[name]))

    answer = json.loads(_bounded(reader, tmp_path).stdout)

    assert len(answer["findings"]) <= 200


@pytest.mark.parametrize(
    "declared",
    [
        b'<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><testsuite name="&b;"/>',
        b'<!DOCTYPE t [<!ENTITY x SYSTEM "file://%s">]><testsuite><testcase name="t"><failure>&x;</failure></testcase></testsuite>',
        b'<!DOCTYPE t SYSTEM "file://%s"><testsuite/>',
        b'<!DOCTYPE t [<!ENTITY %% p SYSTEM "file://%s"> %%p;]><testsuite/>',
    ],
    ids=["entities", "external entity", "external definition", "parameter entity"],
)
def test_a_document_type_is_refused_and_what_it_names_stays_unread(declared: bytes, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret", encoding="utf-8")
    path = bytes(tmp_path / "secret")
    (tmp_path / "report").write_bytes(declared % path if b"%s" in declared else declared)

    done = _bounded("junit", tmp_path)

    assert done.returncode != 0
    assert "RefusedReportError" in done.stderr
    assert "the secret" not in done.stdout + done.stderr


def _bounded(extractor: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run an extractor on the report in ``directory`` under limits of memory and processor time."""
    request = {"attempt": {"exit_code": 1}, "reports": [{"path": str(directory / "report"), "relative": "report"}]}
    return subprocess.run(
        [sys.executable, str(bundled_root() / extractor / "extract.py")],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(kos_retry.__path__[0]).parent)},
        preexec_fn=_limit,
        check=False,
    )


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
