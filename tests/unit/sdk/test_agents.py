"""What a transcript tells: actions joined to results, usage, one reason out of several."""

from __future__ import annotations

import json

import pytest

from kos_retry.model import CauseKind, ExtractorAnswer
from kos_retry.sdk import Request, agents
from kos_retry.sdk.agents import RANKS, Story, cut_middle, said, shortened
from kos_retry.text.times import without_times


def _story(**attempt) -> Story:
    return Story(Request({"attempt": {"exit_code": 1, **attempt}}))


def _told(story: Story, failed: bool | None = True, **fields) -> ExtractorAnswer:
    return ExtractorAnswer.from_json(json.loads(json.dumps(story.answer(failed=failed, **fields).as_json())))


def test_result_is_joined_to_its_action_in_whatever_order():
    story = _story()
    story.action("1", "read", {"path": "a"})
    story.action("2", "edit", {"path": "b"})
    story.result("2", True, "done")
    story.result("1", False, "no such file")
    assert [("read", False, "no such file"), ("edit", True, "done")] == [
        (a.name, a.ok, a.result) for a in _told(story).actions
    ]


def test_action_without_a_result_has_an_unknown_outcome():
    story = _story()
    story.action("1", "build")
    assert [None] == [a.ok for a in _told(story).actions]


def test_action_that_is_told_twice_is_one():
    story = _story()
    story.action("1", "read", {})
    story.action("1", "read", {"path": "a"})
    story.result("1", True)
    story.action("1", "read", {"path": "b"})
    assert [{"path": "a"}] == [a.input for a in _told(story).actions]


def test_result_of_nothing_known_belongs_to_nothing():
    story = _story()
    story.action("1", "read")
    story.result("9", False, "x")
    assert [None] == [a.ok for a in _told(story).actions]


def test_result_without_an_id_is_the_last_actions():
    story = _story()
    story.action("", "a")
    story.action("", "b")
    story.result("", True, 1)
    assert [None, True] == [a.ok for a in _told(story).actions]


def test_latest_actions_are_kept_and_all_are_counted(monkeypatch):
    monkeypatch.setattr(agents, "MAX_ACTIONS", 3)
    story = _story()
    for n in range(10):
        story.action(str(n), f"step {n}")
    told = _told(story)
    assert (["step 7", "step 8", "step 9"], 10) == ([a.name for a in told.actions], told.totals["actions"])


def test_answer_is_bounded_whatever_the_actions_hold():
    story = _story()
    for n in range(agents.MAX_ACTIONS):
        story.action(str(n), "write", {"text": "\0" * 100_000, str(n): "é" * 100_000})
        story.result(str(n), True, "\0" * 100_000)
    assert len(json.dumps(story.answer(failed=True).as_json())) < 1024 * 1024


@pytest.mark.parametrize("kind", RANKS)
def test_every_reason_is_a_cause_of_the_wire(kind):
    story = _story()
    story.blame(kind, "words", "rule")
    (finding,) = _told(story).findings
    assert (CauseKind(kind), "rule", "words") == (finding.cause.kind, finding.cause.rule, finding.cause.evidence)


def test_weightiest_reason_is_the_cause_in_whatever_order():
    for order in (("turn_limit", "permission_denied", "auth"), ("auth", "permission_denied", "turn_limit")):
        story = _story()
        for kind in order:
            story.blame(kind, f"about {kind}", kind)
        assert ["about auth"] == [f.cause.evidence for f in _told(story).findings]


def test_later_reasons_of_a_kind_add_what_the_first_does_not_know():
    story = _story()
    story.blame("quota", "first", "one")
    story.blame("quota", "second", "two", fix="wait", retry_after=3)
    (finding,) = _told(story).findings
    assert ("first", "one", "wait", 3) == (
        finding.cause.evidence,
        finding.cause.rule,
        finding.cause.fix,
        finding.cause.retry_after_seconds,
    )


def test_reason_of_what_did_not_fail_is_none():
    story = _story()
    story.blame("transient", "was mended", "retry")
    assert () == _told(story, failed=False).findings


def test_failure_without_a_reason_has_the_words():
    assert ["it stopped"] == [f.message for f in _told(_story(), message=" it\n stopped ").findings]


def test_words_that_vary_without_meaning_are_evidence_only():
    story = _story()
    story.blame("context_window", "prompt is too long: 210044 tokens", "x")
    (finding,) = _told(story).findings
    assert ("context window", "prompt is too long: 210044 tokens") == (finding.message, finding.cause.evidence)


def test_unknown_amounts_are_not_zero():
    story = _story()
    story.spend(None, None)
    assert None is _told(story).usage
    story.spend(10, None, cost_usd=0.0, cumulative=True)
    usage = _told(story).usage
    assert (10, 10, None, 0.0, True) == (
        usage.tokens,
        usage.input_tokens,
        usage.output_tokens,
        usage.cost_usd,
        usage.cumulative,
    )


# What a command printed on its standard error, how it ended, and what is made of an output that is no transcript.
_UNREADABLE = {
    "nothing-and-success": (None, {"exit_code": 0}, True, "no_output"),
    "words-and-success": (None, {"exit_code": 0}, False, "malformed_output"),
    "nothing-and-failure": (b"", {}, True, "no_output"),
    "nothing-and-a-complaint": (b"no network\n", {}, True, None),
    "nothing-and-success-with-a-complaint": (b"deprecated\n", {"exit_code": 0}, True, "no_output"),
    "killed": (None, {"signal": "SIGKILL", "exit_code": 137}, True, None),
    "timed-out": (None, {"timed_out": True, "exit_code": 124}, True, None),
}


@pytest.mark.parametrize(("stderr", "attempt", "blank", "kind"), _UNREADABLE.values(), ids=_UNREADABLE)
def test_output_that_is_no_transcript(tmp_path, stderr, attempt, blank, kind):
    streams = {}
    if stderr is not None:
        (tmp_path / "stderr").write_bytes(stderr)
        streams = {"stderr": {"path": str(tmp_path / "stderr")}}
    story = Story(Request({"attempt": {"exit_code": 1, **attempt}, "streams": streams}))
    answer = story.unreadable(blank=blank, malformed=2)
    assert ([kind] if kind else [], True if kind else None) == (
        [f["cause"]["kind"] for f in answer.findings],
        answer.failed,
    )


def test_short_value_is_kept_as_it_is():
    value = {"b": [1, None, {"a": "x"}], "a": 0.5}
    assert value == shortened(value, 100)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_000,
        {"path": "a", "text": "é" * 10_000},
        {"list": ["x" * 900] * 50},
        list(range(10_000)),
        {str(n): n for n in range(10_000)},
    ],
    ids=["text", "long-field", "many-texts", "many-numbers", "many-keys"],
)
def test_long_value_is_cut_and_stays_apart_from_its_like(value):
    cut = shortened(value, 2048)
    other = shortened(
        json.loads(json.dumps(value).replace("x", "y", 1).replace("\\u00e9", "e", 1).replace("77", "78", 1)), 2048
    )
    assert len(json.dumps(cut, ensure_ascii=False).encode()) < 2048 + 400
    assert cut != other


def test_short_fields_survive_beside_a_long_one():
    assert "a.c" == shortened({"path": "a.c", "text": "x" * 10_000}, 2048)["path"]


def test_what_no_reader_takes_becomes_text():
    assert json.dumps(shortened({"n": 2**80, "f": float("nan"), "s": "\ud800"}, 2048))


@pytest.mark.parametrize("at", [5, 150, 290], ids=["head", "middle", "tail"])
def test_times_are_no_difference_of_cut_texts(at):
    def cut(took: str, count: int) -> str:
        return without_times(
            cut_middle(
                "".join(f"line {n}\n" + (f"{count} ran in {took}\n" if n == at else "") for n in range(300)), 1024
            )
        )

    assert cut("0.42s", 7) == cut("112.5s", 7)
    assert cut("0.42s", 7) != cut("0.42s", 8)


def test_cut_text_keeps_more_of_its_end():
    cut = cut_middle("a" * 500 + "b" * 500, 100)
    assert (cut.startswith("a" * 25 + "\n[900 bytes omitted, "), cut.endswith("]\n" + "b" * 75)) == (True, True)


_SAID = {
    "text": ("x", "x"),
    "blocks": ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "a\nb"),
    "other-blocks": ([{"type": "image"}], [{"type": "image"}]),
    "list-of-texts": (["a"], ["a"]),
    "object": ({"a": 1}, {"a": 1}),
    "nothing": (None, None),
}


@pytest.mark.parametrize(("content", "expected"), _SAID.values(), ids=_SAID)
def test_texts_of_blocks_are_what_a_result_says(content, expected):
    assert expected == said(content)
