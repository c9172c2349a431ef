"""The commands beside `run`, joined by pipes as a script would."""

from __future__ import annotations

import json

import pytest

FAILED = {"exit_code": 1, "error_message": "error: the lamp is out"}
LOG = "step one\nerror: the lamp is out\nstep two\n"


def as_lines(*values: object):
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def test_what_observe_writes_next_reads(kos_retry, tmp_path):
    (tmp_path / "log").write_text(LOG)
    line = '"$0" observe --exit-code 1 --log log | "$0" next'
    decision = kos_retry.finish(["sh", "-c", line, kos_retry.path]).json
    assert (decision["recommendation"], "the lamp is out" in decision["guidance"]) == ("continue", True)


# Every form that a history can have, each with the status that its recommendation stands for.
HISTORIES = {
    "one envelope": (json.dumps(FAILED).encode(), "continue", 0),
    "array": (json.dumps([FAILED] * 2, indent=1).encode(), "pivot_strategy", 10),
    "lines": (as_lines(FAILED, FAILED, FAILED), "escalate_to_supervisor", 20),
    "history and policy": (json.dumps({"history": [FAILED], "policy": {"max_attempts": 1}}).encode(), "halt_loop", 30),
}


@pytest.mark.parametrize(("given", "recommendation", "status"), HISTORIES.values(), ids=HISTORIES.keys())
def test_next_reads_every_form_and_exits_with_its_recommendation(kos_retry, given, recommendation, status):
    done = kos_retry("next", "--exit-code", stdin=given)
    assert (done.json["recommendation"], done.code) == (recommendation, status)


def test_next_in_a_session_decides_over_all_that_it_was_told_and_records_it(kos_retry):
    codes = [
        kos_retry("next", "--session", "build", "--exit-code", stdin=json.dumps(FAILED).encode()).code for _ in range(3)
    ]
    told = [record["envelope"]["emitted_recommendation"] for record in kos_retry.attempts("build")]
    assert (codes, told) == ([0, 10, 20], ["continue", "pivot_strategy", "escalate_to_supervisor"])


def test_next_in_a_session_goes_on_from_a_run(kos_retry):
    kos_retry("run", "--session", "build", "--max-attempts", "1", "--", "sh", "-c", f"echo '{LOG}'; exit 1")
    envelope = kos_retry.attempts("build")[0]["envelope"]
    assert kos_retry("next", "--session", "build", "--exit-code", stdin=json.dumps(envelope).encode()).code == 10


ROWS = (
    {"id": "a", "exit_code": 1, "output": LOG},
    {"id": 2, "exit_code": "one"},
    "torn",
    {"id": None, "exit_code": 0},
)
QUESTIONS = ({"id": "a", "history": [FAILED]}, {"id": 2, "history": "none"}, "torn", {"id": None, "history": []})


def test_batch_names_the_line_of_a_fault_and_goes_on(kos_retry):
    done = kos_retry("observe", "--jsonl", stdin=as_lines(*ROWS))
    assert [line.split(":")[0] for line in done.said] == ["line 2", "line 3"]


@pytest.mark.parametrize(
    ("name", "rows", "answer"),
    [("observe", ROWS, "envelope"), ("next", QUESTIONS, "decision")],
    ids=["observe", "next"],
)
def test_batch_answers_every_line_in_order_under_its_id(kos_retry, name, rows, answer):
    lines = as_lines(*rows).replace(b'"torn"', b'{"id": "torn')
    answers = kos_retry(name, "--jsonl", stdin=lines).rows
    assert [(row["id"], *(key for key in row if key != "id")) for row in answers] == [
        ("a", answer),
        (2, "error"),
        (None, "error"),
        (None, answer),
    ]


ORIGINAL = {
    "Attempt": 1,
    "ExitCode": 2,
    "ErrorMessage": "build failed",
    "Category": "execution_failure",
    "FailingConstraints": None,
    "ExecutedActions": ["go build ./..."],
    "DiagnosticArtifacts": [
        {"Name": "vet", "SizeBytes": 17, "MIMEType": "application/json", "Payload": {"Issues": None}}
    ],
    "Timestamp": "2026-03-01T08:15:42.123456789+02:00",
    "Signature": "",
}


def test_next_reads_what_the_original_writes(kos_retry):
    kos_retry("next", "--session", "s1", stdin=json.dumps(ORIGINAL).encode())
    envelope = kos_retry.attempts("s1")[0]["envelope"]
    fields = ("exit_code", "category", "failing_constraints", "diagnostic_artifacts", "timestamp")
    assert {field: envelope[field] for field in fields} == {
        "exit_code": 2,
        "category": "execution_failure",
        "failing_constraints": [],
        "diagnostic_artifacts": [
            {"name": "vet", "size_bytes": 17, "mime_type": "application/json", "payload": {"Issues": None}}
        ],
        "timestamp": "2026-03-01T08:15:42.123457+02:00",
    }


def test_diff_says_what_was_fixed(kos_retry, tmp_path):
    (tmp_path / "old").write_text(json.dumps(FAILED | {"failing_constraints": ["lamp", "door"]}))
    new = json.dumps(FAILED | {"attempt": 2, "failing_constraints": ["door"]})
    delta = kos_retry("diff", "old", "-", "--format", "json", stdin=new.encode()).json
    assert (delta["constraints_fixed"], delta["constraints_still_failing"]) == (["lamp"], ["door"])


def test_run_observe_and_explain_give_one_signature(kos_retry):
    kos_retry("run", "--max-attempts", "1", "--", "sh", "-c", "printf '%s' \"$1\"; exit 1", "sh", LOG)
    observed = kos_retry("observe", "--exit-code", "1", "--log", "-", stdin=LOG.encode()).json["signature"]
    explained = kos_retry("explain", "--format", "json", stdin=LOG.encode()).json["signature"]
    assert [observed, explained] == [kos_retry.attempts()[0]["envelope"]["signature"]] * 2


def test_every_schema_that_is_listed_is_there(kos_retry):
    (name, *_) = kos_retry("schema").stdout.decode().split()
    assert kos_retry("schema", name).json["title"] == name


def test_every_extractor_that_is_listed_can_be_run(kos_retry):
    (name, *_) = [e["id"] for e in kos_retry("extractors", "list", "--format", "json").json["extractors"]]
    assert kos_retry("extractors", "run", name, "--log", "-", stdin=LOG.encode()).json["protocol"] == 1


def test_reader_that_closes_ends_a_command_without_a_word(kos_retry):
    running = kos_retry.start("schema", "FailureEnvelope")
    running.stdout.close()
    said = running.stderr.read()
    assert (running.wait(45), said) == (141, b"")
