"""How the next attempt is told what was learned."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from builders import a_history
from hypothesis import given
from hypothesis import strategies as st

from kos_retry.adapters.proposals import CommandProposer
from kos_retry.engine.decide import decide
from kos_retry.engine.redact import Redactor
from kos_retry.model import Policy
from kos_retry.outcome import NextStep
from kos_retry.settings import DELIVERIES

_HISTORY = list(a_history("error: no total", failing_constraints=["cart::total", "cart::tax"]))
_DECISION = decide(_HISTORY, Policy())


def _proposer(tmp_path, delivery="none", argv=("agent", "-p"), environment=None, **fields) -> CommandProposer:
    return CommandProposer(
        argv,
        environment or {},
        session="s1",
        state_directory=str(tmp_path),
        delivery=delivery,
        max_attempts=3,
        warn=pytest.fail,
        **{"redactor": Redactor(), **fields},
    )


def _second(tmp_path, delivery="none", **fields):
    return _proposer(tmp_path, delivery, **fields).propose(2, _HISTORY, _DECISION, NextStep())


def test_command_learns_which_attempt_it_is(tmp_path):
    environment = _second(tmp_path).environment
    assert ("2", "3", "s1") == tuple(environment[f"KOS_RETRY_{n}"] for n in ("ATTEMPT", "MAX_ATTEMPTS", "SESSION"))


def test_command_learns_where_the_sessions_are(tmp_path):
    environment = _second(tmp_path, environment={"KOS_RETRY_STATE_DIR": "/of/another/run"}).environment
    assert str(tmp_path) == environment["KOS_RETRY_STATE_DIR"]


def test_failing_constraints_are_one_a_line(tmp_path):
    path = Path(_second(tmp_path).environment["KOS_RETRY_FAILING_FILE"])
    assert "cart::total\ncart::tax\n" == path.read_text()


@pytest.mark.parametrize(
    ("failing", "expected"),
    [(["CartError", "cart::total"], "cart::total\n"), (["CartError"], "CartError\n")],
    ids=["beside-a-test", "alone"],
)
def test_type_of_what_was_thrown_is_nothing_to_run_again(tmp_path, failing, expected):
    finding = {"kind": "test", "test_id": "cart::total", "error_type": "CartError"}
    artifact = {"name": "x", "payload": {"findings": [finding]}}
    history = a_history("no total", failing_constraints=failing, diagnostic_artifacts=[artifact])
    path = _proposer(tmp_path).propose(2, history, _DECISION, NextStep()).environment["KOS_RETRY_FAILING_FILE"]
    assert expected == Path(path).read_text()


def test_first_attempt_has_no_files(tmp_path):
    environment = _proposer(tmp_path).propose(1, [], None, NextStep()).environment
    names = ("ATTEMPT", "MAX_ATTEMPTS", "SESSION", "STATE_DIR", "MARK")
    assert {f"KOS_RETRY_{name}" for name in names} == set(environment)


def test_attempts_of_a_run_share_a_mark_that_no_other_run_has(tmp_path):
    one, other = _proposer(tmp_path), _proposer(tmp_path)
    marks = [
        p.propose(n, [], None, NextStep()).environment["KOS_RETRY_MARK"] for p, n in ((one, 1), (one, 2), (other, 1))
    ]
    assert (True, False) == (marks[0] == marks[1], marks[0] == marks[2])


def test_variables_of_an_outer_run_are_not_inherited(tmp_path):
    outer = {"KOS_RETRY_GUIDANCE": "old", "KOS_RETRY_OPT_TIMEOUT": "5s", "HOME": "/h"}
    environment = _proposer(tmp_path, environment=outer).propose(1, [], None, NextStep()).environment
    assert (None, "5s", "/h") == tuple(environment.get(k) for k in outer)


_DELIVERED = {
    "stdin": lambda p: p.stdin.decode(),
    "env": lambda p: p.environment["KOS_RETRY_GUIDANCE"],
    "file": lambda p: Path(p.environment["KOS_RETRY_GUIDANCE_FILE"]).read_text(),
    "arg": lambda p: p.argv[-1],
    "append": lambda p: p.argv[-1],
}


@pytest.mark.parametrize("delivery", [d for d in DELIVERIES if d != "none"])
def test_guidance_arrives(tmp_path, delivery):
    proposal = _second(tmp_path, delivery, argv=("agent", "{guidance}"))
    assert _DECISION.guidance == _DELIVERED[delivery](proposal)


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_attempt_is_another_one_exactly_where_guidance_is_delivered(tmp_path, delivery):
    assert (delivery != "none") == _second(tmp_path, delivery).delivered


@pytest.mark.parametrize("delivery", [d for d in DELIVERIES if d != "arg"])
def test_braces_of_the_command_stay(tmp_path, delivery):
    assert "{guidance}" in _second(tmp_path, delivery, argv=("agent", "{guidance}")).argv


@pytest.mark.parametrize(
    ("word", "filled"),
    [("n={attempt}/{session}", "n=2/s1"), ("{x}{", "{x}{"), ("{{attempt}}", "{2}"), ("", "")],
)
def test_placeholders_are_filled_once(tmp_path, word, filled):
    assert filled == _second(tmp_path, "arg", argv=("agent", word)).argv[1]


_STEPS = st.builds(NextStep, st.none() | st.text(max_size=40), st.text(max_size=400) | st.just("```\nso\n"))


@given(step=_STEPS, limit=st.integers(0, 900), delivery=st.sampled_from(["stdin", "env", "arg", "append"]))
def test_guidance_is_never_longer_than_its_bound(step, limit, delivery):
    """Whatever recovery steps and supervisors add, and however much longer it gets where a secret was."""
    decision = decide(_HISTORY, Policy(max_prompt_bytes=limit))
    with tempfile.TemporaryDirectory() as directory:
        proposer = _proposer(
            Path(directory),
            delivery,
            ("agent", "{guidance}"),
            redactor=Redactor(["cart::"]),
            max_prompt_bytes=limit,
        )
        proposal = proposer.propose(2, _HISTORY, decision, step)
        told = _DELIVERED[delivery](proposal) if proposal.delivered or delivery == "arg" else ""
    assert len(told.encode()) <= limit
    assert "cart::" not in told


def test_quotation_gives_way_as_a_whole(tmp_path):
    limit = len(_DECISION.guidance.encode()) + 105
    proposer = _proposer(tmp_path, "append", max_prompt_bytes=limit)
    told = proposer.propose(2, _HISTORY, _DECISION, NextStep("make clean", "look at the cache first")).argv[-1]
    assert ("```" in _DECISION.guidance, "```" in told) == (True, False)
    assert "look at the cache first" in told
    assert _DECISION.guidance.partition("\nWhat it printed")[0] in told
