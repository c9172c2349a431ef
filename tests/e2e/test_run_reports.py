"""Report files of a command: masked failures, stale ones, and running again only what failed."""

from __future__ import annotations

import json

import pytest

AT_ONCE = ("--delay", "0s")
PASSED = (
    '<testsuite name="s" tests="2"><testcase classname="c" name="one"/><testcase classname="c" name="two"/></testsuite>'
)
FAILED = (
    '<testsuite name="s" tests="2" failures="1"><testcase classname="c" name="one"/>'
    '<testcase classname="c" name="two"><failure message="boom">boom</failure></testcase></testsuite>'
)


@pytest.fixture
def report(tmp_path):
    """Leave both reports where a command can copy them to `out.xml`."""
    (tmp_path / "passed").write_text(PASSED)
    (tmp_path / "failed").write_text(FAILED)
    return tmp_path / "out.xml"


def run(kos_retry, line, *options):
    return kos_retry("run", *AT_ONCE, "--max-attempts", "1", *options, "--", "sh", "-c", line)


# What a command does, and how its run under `--collect` ends: the exit code, and what is said of reports and exit code.
VERDICTS = {
    "masked": ("cp failed out.xml", (1, "masked_failure")),
    "agrees": ("cp failed out.xml; exit 4", (4, "agrees")),
    "afterwards": ("cp passed out.xml; exit 4", (4, "failed_afterwards")),
    "none": ("exit 4", (4, None)),
}


@pytest.mark.parametrize(("line", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_reports_are_held_against_the_exit_code(kos_retry, report, line, expected):
    done = run(kos_retry, line, "--collect", "*.xml")
    assert (*expected, b"") == (done.code, kos_retry.attempts()[0]["envelope"]["reports"], done.stdout)


def test_masked_failure_names_the_test(kos_retry, report):
    run(kos_retry, "cp failed out.xml", "--collect", "*.xml")
    assert [True] == ["two" in name for name in kos_retry.attempts()[0]["envelope"]["failing_constraints"]]


@pytest.mark.parametrize("line", ["cp failed out.xml", "cp passed out.xml"])
def test_failure_in_a_report_that_was_not_asked_for_fails_nothing(kos_retry, report, line):
    assert 0 == run(kos_retry, line).code


def test_pass_that_the_report_confirms_is_one(kos_retry, report):
    assert (0, b"") == run(kos_retry, "cp passed out.xml", "--collect", "*.xml")[::2]


def test_report_of_an_earlier_run_masks_nothing(kos_retry, report):
    report.write_text(FAILED)
    assert 0 == run(kos_retry, "true", "--collect", "*.xml").code


def test_report_of_an_earlier_attempt_is_no_evidence_of_the_next(kos_retry, report):
    line = '[ "$KOS_RETRY_ATTEMPT" = 1 ] && cp failed out.xml && exit 1; echo "error: no memory"; exit 2'
    kos_retry("run", *AT_ONCE, "--max-attempts", "2", "--collect", "*.xml", "--", "sh", "-c", line)
    first, second = (record["envelope"] for record in kos_retry.attempts())
    assert ("agrees", "stale", True, False) == (
        first["reports"],
        second["reports"],
        "two" in str(first["failing_constraints"]),
        "two" in str(second["failing_constraints"]),
    )


def test_observe_collects_what_matches(kos_retry, report):
    report.write_text(FAILED)
    envelope = json.loads(kos_retry("observe", "--exit-code", "0", "--collect", "*.xml").stdout)
    assert ("masked_failure", True) == (envelope["reports"], "two" in str(envelope["failing_constraints"]))


# What the first attempt does, and which command is run the second time.
AGAIN = {
    "complete": ("cp failed out.xml; exit 1", "again"),
    "killed": ("cp failed out.xml; kill -KILL $$", "whole"),
    "nothing named": ("echo 'error: no plan'; exit 1", "whole"),
    "masked": ("cp failed out.xml", "again"),
}


@pytest.mark.parametrize(("line", "which"), AGAIN.values(), ids=AGAIN)
def test_only_a_complete_failing_set_is_run_again(kos_retry, report, tmp_path, line, which):
    command = f'[ "$KOS_RETRY_ATTEMPT" = 1 ] || {{ echo whole >ran; exit 0; }}; {line}'
    again = 'echo again >ran; cp "$KOS_RETRY_FAILING_FILE" failing'
    options = ("--collect", "*.xml", "--retry-command", again, "--retry-on", "signal:KILL")
    done = kos_retry("run", *AT_ONCE, *options, "--", "sh", "-c", command)
    assert (0, f"{which}\n") == (done.code, (tmp_path / "ran").read_text())
    assert (tmp_path / "failing").exists() == (which == "again")


# What the command of the first attempt does besides, what the file of what failed names then, and which command runs the second time.
CHECKED = {"a check alone": ("true", "", "whole"), "a check beside a test": ("cp failed out.xml", "two", "whole")}


@pytest.mark.parametrize(("line", "named", "which"), CHECKED.values(), ids=CHECKED)
def test_check_that_failed_is_no_test_to_run_again(kos_retry, report, tmp_path, line, named, which):
    command = f"""[ "$KOS_RETRY_ATTEMPT" = 1 ] || {{ echo whole >ran; rm -f out.xml; cp "$KOS_RETRY_FAILING_FILE" failing; exit 0; }}; {line}"""
    check = """types=[ -e ran ] || { echo "src/other.py:3:1: F401 'os' imported but unused"; exit 1; }"""
    options = ("--collect", "*.xml", "--retry-command", "echo again >ran", "--verify", check)
    done = kos_retry("run", *AT_ONCE, *options, "--", "sh", "-c", command)
    assert (0, f"{which}\n") == (done.code, (tmp_path / "ran").read_text())
    told = (tmp_path / "failing").read_text()
    assert (named in told, "types" in told, "other.py" in told) == (True, False, False)
    assert "types" in kos_retry.attempts()[0]["envelope"]["failing_constraints"]
