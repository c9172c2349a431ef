"""Transcripts: whose format it is, what it tells, and what is made of it in an envelope."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from builders import ROOT, an_action

from kos_retry.adapters.extraction import transcripts
from kos_retry.adapters.extraction.extract import Extraction, bundled
from kos_retry.adapters.extraction.material import Material, Spool
from kos_retry.adapters.extraction.transcripts import (
    AUTO,
    TranscriptText,
    check_format,
    failing_tests,
    formats,
    reader_of,
)
from kos_retry.adapters.own_rules import OwnRules
from kos_retry.cli.instruments import Instruments
from kos_retry.cli.observe import envelope_of
from kos_retry.engine.redact import Redactor
from kos_retry.errors import InputError, UnknownNameError
from kos_retry.model import Category, CauseKind, OutcomeRow

_READERS = [m for m in bundled() if m.match.transcripts]
_CASES = {f"{m.id}-{p.name}": (m, p) for m in _READERS for p in sorted(m.directory.glob("fixtures/*")) if p.is_dir()}
_SECRET = "hunter2-and-more-of-it"


# Older versions of this format end one line earlier, without what was rejected: cut there, it is a whole one of theirs.
_TOLD_BY_THE_LAST_LINE = {"rejected"}
# The whole tells how the agent got over its trouble: cut before that, the trouble is the cause.
_GOT_OVER = {"recovered": {CauseKind.TRANSIENT}}


@pytest.fixture(scope="module")
def extraction():
    with Extraction(Redactor([_SECRET])) as running:
        yield running


def _observed(extraction, raw: bytes | str, exit_code: int = 0, name: str = AUTO, redactor=None, **fields):
    text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
    row = OutcomeRow.from_json({"exit_code": exit_code, "stdout": text, "transcript": name, **fields})
    return envelope_of(row, Instruments(redactor or Redactor([_SECRET]), extraction, OwnRules((), pytest.fail)))


def _recorded(directory: Path) -> tuple[bytes, dict, int]:
    request = json.loads((directory / "request.json").read_text())
    expected = json.loads((directory / "expected.json").read_text())
    return (directory / "stdout.log").read_bytes(), expected, request["attempt"]["exit_code"]


def _streams(directory: Path) -> dict[str, str]:
    path = directory / "stderr.log"
    return {"stderr": path.read_text()} if path.exists() else {}


def test_formats_are_what_the_manifests_declare():
    assert {"claude", "codex", "gemini", "opencode", "generic"} <= set(formats())


def test_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="there is no format 'klingon'; known are auto, action-log, "):
        check_format("klingon")
    check_format(AUTO)
    check_format("codex")
    check_format(None)


@pytest.mark.parametrize(("manifest", "directory"), _CASES.values(), ids=_CASES)
def test_format_of_every_recorded_transcript_is_found(manifest, directory):
    raw = _recorded(directory)[0]
    named = [manifest.match.argv[0], "-p"] if manifest.match.argv and not raw else []
    aside = _streams(directory).get("stderr", "")
    assert manifest.id == reader_of(bundled(), TranscriptText(AUTO, "stdout", raw), aside, named).id


@pytest.mark.parametrize(("manifest", "directory"), _CASES.values(), ids=_CASES)
def test_format_that_is_named_and_one_that_is_found_tell_the_same(extraction, manifest, directory):
    raw, _, code = _recorded(directory)
    kinds = [
        _observed(
            extraction,
            raw,
            code,
            name,
            command=[manifest.match.argv[0]] if manifest.match.argv else None,
            **_streams(directory),
        )
        for name in (AUTO, manifest.match.transcripts[0])
    ]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize(("manifest", "directory"), _CASES.values(), ids=_CASES)
def test_envelope_says_what_the_reader_says(extraction, manifest, directory):
    raw, expected, code = _recorded(directory)
    envelope = _observed(extraction, raw, code, manifest.match.transcripts[0], **_streams(directory))
    failed = expected.get("failed") or code != 0
    causes = [f["cause"]["kind"] for f in expected["findings"] if "cause" in f]
    assert (envelope.category is not Category.SUCCESS, envelope.transcript.failed) == (failed, expected.get("failed"))
    if envelope.category is Category.EXECUTION_FAILURE:
        assert causes == ([envelope.cause.kind] if envelope.cause else [])
    assert [a["name"] for a in expected["actions"]] == [a.name for a in envelope.executed_actions]
    assert expected["totals"]["malformed_lines"] == envelope.transcript.malformed_lines


@pytest.mark.parametrize("name", [m.match.transcripts[0] for m in _READERS])
def test_transcript_cut_anywhere_invents_nothing(extraction, name):
    """No action and no session that is not in the whole, no success that was not there, and no crash."""
    chance = random.Random(name)
    for manifest, directory in _CASES.values():
        if name not in manifest.match.transcripts:
            continue
        raw, whole, _ = _recorded(directory)
        cuts = [n + 1 for n, byte in enumerate(raw) if byte == 10][:12] + [
            chance.randrange(len(raw) + 1) for _ in range(4)
        ]
        for cut in cuts:
            for part in (raw[:cut], raw[cut:]):
                told = transcripts.read(
                    extraction,
                    Material(1, 1, None, False, (), "", {}),
                    TranscriptText(name, "stdout", part),
                    Redactor(),
                )
                assert told.failure is None
                assert {a.name for a in told.actions} <= {a["name"] for a in whole["actions"]}
                assert told.transcript.session in (None, whole.get("session"))
                if told.failed is False and directory.name not in _TOLD_BY_THE_LAST_LINE:
                    assert whole.get("failed") is False


@pytest.mark.parametrize(("manifest", "directory"), _CASES.values(), ids=_CASES)
def test_transcript_that_ends_early_tells_the_start_of_the_whole(extraction, manifest, directory):
    """Cut at every line and at ten bytes: the first of the same actions, not more of what was spent, and no other cause."""
    raw = _recorded(directory)[0]
    whole = _told(extraction, manifest, raw)
    chance = random.Random(directory.name)
    cuts = {n + 1 for n, byte in enumerate(raw) if byte == 10} | {chance.randrange(len(raw) + 1) for _ in range(10)}
    for cut in sorted(cuts):
        told = _told(extraction, manifest, raw[:cut])
        assert told.failure is None
        done = [_without_result(action) for action in whole.actions]
        assert [_without_result(action) for action in told.actions] == done[: len(told.actions)]
        for action, of_whole in zip(told.actions, whole.actions, strict=False):
            assert (action.ok, action.result) in ((None, None), (of_whole.ok, of_whole.result))
        assert told.transcript.session in (None, whole.transcript.session)
        assert told.transcript.actions <= whole.transcript.actions
        assert told.transcript.denied <= whole.transcript.denied
        _is_within(told.usage, whole.usage)
        assert _causes(told) <= _causes(whole) | _causes_of_the_cut(told, raw[:cut]) | _GOT_OVER.get(
            directory.name, set()
        )


def _told(extraction, manifest, raw):
    text = TranscriptText(manifest.match.transcripts[0], "stdout", raw)
    return transcripts.read(extraction, Material(1, 1, None, False, (), "", {}), text, Redactor())


def _without_result(action):
    return action.name, action.input


def _causes(told):
    return {finding.cause.kind for finding in told.findings if finding.cause is not None}


def _causes_of_the_cut(told, part):
    """Return the causes that there may be because the transcript ends before anything in it is whole."""
    if told.actions or told.usage or told.transcript.session:
        return set()
    return {CauseKind.MALFORMED_OUTPUT} if part.strip() else {CauseKind.NO_OUTPUT}


def _is_within(part, whole):
    for name in ("tokens", "input_tokens", "output_tokens", "turns", "cost_usd"):
        amount = getattr(part, name, None)
        assert amount is None or amount <= getattr(whole, name)


# What stands in the output, the exit code, the format, and what is concluded: category and cause.
_ENDINGS = {
    "nothing-printed": ("", 0, AUTO, Category.EXECUTION_FAILURE, CauseKind.NO_OUTPUT),
    "nothing-printed-in-a-format": ("\n \n", 0, "codex", Category.EXECUTION_FAILURE, CauseKind.NO_OUTPUT),
    "words-in-a-format": ("All done.\n", 0, "claude", Category.EXECUTION_FAILURE, CauseKind.MALFORMED_OUTPUT),
    "words-in-no-format": ("All done.\n", 0, AUTO, Category.SUCCESS, None),
    "other-json-in-no-format": ('{"action": 1, "level": "info"}\n', 0, AUTO, Category.SUCCESS, None),
    "events-of-another-format": ('{"type":"turn.started"}\n', 0, "opencode", Category.EXECUTION_FAILURE, CauseKind.MALFORMED_OUTPUT),
    "unknown-events-alone": ('{"type":"news"}\n', 0, "gemini", Category.EXECUTION_FAILURE, CauseKind.MALFORMED_OUTPUT),
    "no-end-and-success": ('{"type":"thread.started"}\n', 0, AUTO, Category.EXECUTION_FAILURE, None),
    "success-told-and-failure": ('{"kind":"finish","stop_reason":"done"}\n', 3, AUTO, Category.EXECUTION_FAILURE, None),
    "time-limit": ('{"type":"turn.started"}\n', 124, AUTO, Category.TIMEOUT, None),
    "cancelled": ('{"type":"turn.started"}\n', 130, AUTO, Category.CONTEXT_CANCELLED, None),
}  # fmt: skip


@pytest.mark.parametrize(("raw", "code", "name", "category", "cause"), _ENDINGS.values(), ids=_ENDINGS)
def test_ending(extraction, raw, code, name, category, cause):
    envelope = _observed(extraction, raw, code, name)
    assert (category, cause) == (envelope.category, envelope.cause.kind if envelope.cause else None)
    assert (category is Category.SUCCESS) == (envelope.error_message == "")


def test_what_a_tool_printed_is_never_the_providers_word(extraction):
    quoted = "error: 401 Unauthorized, usage limit reached, ECONNRESET, prompt is too long"
    for name, event in (
        ("claude", {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": quoted, "is_error": True}]}}),
        ("codex", {"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "x", "aggregated_output": quoted, "exit_code": 1, "status": "failed"}}),
        ("gemini", {"type": "tool_result", "tool_id": "1", "status": "error", "error": {"type": "x", "message": quoted}, "output": quoted}),
        ("opencode", {"type": "tool_use", "sessionID": "s", "part": {"tool": "bash", "callID": "1", "state": {"status": "error", "error": quoted}}}),
        ("generic", {"kind": "observation", "id": "1", "ok": False, "error": quoted}),
    ):  # fmt: skip
        line = json.dumps(event)
        for raw in (line, line + "\n" + line[:-30], line[40:]):
            assert None is _observed(extraction, line + "\n" + raw + "\n", 1, name).cause, name


def test_words_beside_the_transcript_are_evidence(extraction):
    envelope = _observed(extraction, '{"type":"turn.started"}\nFATAL: cannot open the state file\n', 1, "codex")
    assert "the transcript ends without a completed turn" == envelope.error_message
    assert (
        "FATAL: cannot open the state file"
        == _observed(extraction, '{"tool":"x","ok":true}\nFATAL: cannot open the state file\n', 1).error_message
    )


def test_unread_transcript_is_told_and_the_output_is_evidence(extraction):
    envelope = _observed(extraction, "panic: no room\n", 2)
    assert ("panic: no room", {"transcript": "the output is a transcript of no known format"}) == (
        envelope.error_message,
        envelope.extractors,
    )


def test_reader_that_fails_is_told(extraction, monkeypatch):
    monkeypatch.setattr(Spool, "put", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    envelope = _observed(extraction, '{"type":"turn.started"}\n', 1)
    assert "cannot spool the output: No space left on device" == envelope.extractors["codex"]


def test_actions_that_do_not_fit_are_counted(extraction):
    envelope = _observed(extraction, "".join(f'{{"tool":"t{n}","ok":true}}\n' for n in range(100)), 1)
    assert (64, 36, 100) == (len(envelope.executed_actions), envelope.omitted.actions, envelope.transcript.actions)


@pytest.mark.parametrize("secret", [_SECRET, _SECRET + '"\n'], ids=["plain", "escaped-in-json"])
def test_secret_in_a_transcript_is_not_told(extraction, secret):
    raw = json.dumps({"tool": "sh", "input": {"cmd": f"login {secret}"}, "ok": False, "result": secret})
    assert _SECRET not in _observed(extraction, raw, 1, redactor=Redactor([secret])).as_json()


@pytest.mark.parametrize("offset", range(0, len(_SECRET), 4))
def test_secret_that_a_cut_goes_through_is_not_told(extraction, offset):
    for lead in (256 - offset, 1024 - offset, 90_000 - 768 - offset, 90_000 - 3072 - offset):
        result = "a" * lead + _SECRET + "b" * (90_000 - lead - len(_SECRET))
        raw = json.dumps({"tool": "sh", "ok": False, "result": result})
        told = _observed(extraction, raw, 1).executed_actions[0].result
        assert (_SECRET[:5] in told, _SECRET[-5:] in told) == (False, False)


_RED = "FAILED tests/test_a.py::test_one - assert 0\nFAILED tests/test_a.py::test_two - assert 0\n2 failed in 0.1s"
_BOTH = ("tests/test_a.py::test_one", "tests/test_a.py::test_two")
# Actions in their order, and the tests that fail at the end.
_TEST_RUNS = {
    "none": ([], ()),
    "last-run-failed": ([("a", False, _RED)], _BOTH),
    "failed-then-other-work": ([("a", False, _RED), ("edit", True, "ok")], _BOTH),
    "failed-then-passed": ([("a", False, _RED), ("a", True, "2 passed in 0.1s")], ()),
    "passed-then-failed": ([("a", True, "2 passed in 0.1s"), ("a", False, _RED)], _BOTH),
    "later-run-of-another-kind": ([("a", False, _RED), ("b", False, "FAILED t/b.py::x - no\n1 failed in 1.0s")], ("t/b.py::x",)),
    "called-a-success-by-the-agent": ([("a", True, _RED)], _BOTH),
    "no-words": ([("a", False, None), ("b", False, {"x": 1})], ()),
}  # fmt: skip


@pytest.mark.parametrize(("done", "expected"), _TEST_RUNS.values(), ids=_TEST_RUNS)
def test_tests_that_fail_are_those_of_the_last_run(extraction, done, expected):
    actions = [an_action("shell", input={"cmd": cmd}, ok=ok, result=result) for cmd, ok, result in done]
    assert expected == failing_tests(extraction, actions)


def test_text_that_was_only_read_is_no_test_run(extraction):
    assert () == failing_tests(extraction, [an_action("read", input={"path": "log.txt"}, ok=True, result=_RED)])


def test_failing_tests_are_constraints_and_the_agent_failed_at_its_work(extraction):
    raw = (
        json.dumps({"tool": "shell", "input": {"cmd": "x"}, "ok": False, "result": _RED})
        + '\n{"kind":"finish","stop_reason":"max-turns"}\n'
    )
    envelope = _observed(extraction, raw)
    assert (Category.EXECUTION_FAILURE, CauseKind.TURN_LIMIT, _BOTH) == (
        envelope.category,
        envelope.cause.kind,
        envelope.failing_constraints,
    )


def test_work_that_ended_well_has_no_failing_tests(extraction):
    raw = (
        json.dumps({"tool": "shell", "input": {"cmd": "x"}, "ok": False, "result": _RED})
        + '\n{"kind":"finish","ok":true}\n'
    )
    envelope = _observed(extraction, raw)
    assert (Category.SUCCESS, (), 1) == (
        envelope.category,
        envelope.failing_constraints,
        len(envelope.executed_actions),
    )


def test_row_with_an_unknown_format_is_refused(extraction):
    with pytest.raises(InputError, match="there is no format"):
        _observed(extraction, "", 1, "klingon")


def test_readers_of_transcripts_are_not_asked_about_other_output(extraction):
    found = extraction.run(Material(1, 1, None, False, ("codex",), "", {"output": '{"type":"turn.started"}\n'}))
    assert not {m.id for m in _READERS} & {a.name for a in found.artifacts}


def test_documentation_names_every_format():
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    assert [] == [name for name in formats() if f"`{name}`" not in page]
