"""Who has a say in a run: recovery steps, the gate, whoever is asked for help; all with real commands."""

from __future__ import annotations

import json
import os
import threading

import pytest
from builders import an_envelope

from kos_retry import limits
from kos_retry.adapters.process.runner import RunnerOptions
from kos_retry.adapters.shell import Shell
from kos_retry.adapters.supervision import CommandGate, CommandSupervisor, Ladder, fingerprint, still_to_try
from kos_retry.engine.decide import decide
from kos_retry.engine.redact import Redactor
from kos_retry.model import Policy
from kos_retry.outcome import Proposal

SECRET = "hunter2-hunter2"
_DECISION = decide([an_envelope("error: no plan")], Policy())


@pytest.fixture
def shell(signal_pipe):
    return Shell(signal_pipe, RunnerOptions(grace_seconds=0.2))


@pytest.fixture
def soon(monkeypatch):
    """Give nobody more than a moment to answer."""
    monkeypatch.setattr(limits, "GATE_SECONDS", 0.2)
    monkeypatch.setattr(limits, "ESCALATION_SECONDS", 0.2)


def a_proposal(**changes):
    given = {"attempt": 2, "argv": ["make"], "environment": {"PATH": os.environ["PATH"]}, **changes}
    return Proposal(**given)


# Steps, and what two calls in a row give: the step that ran, None where none is left.
_LADDERS = {
    "no steps": ([], [None, None]),
    "one step": (["true"], ["true", None]),
    "two steps": (["true a", "true b"], ["true a", "true b"]),
    "the same twice": (["true", "true"], ["true", "true"]),
    "one that fails makes way": (["exit 1", "true"], ["true", None]),
    "one that is not found makes way": (["no-such-step-here", "true"], ["true", None]),
    "one that is killed makes way": (["kill -KILL $$", "true"], ["true", None]),
    "all fail": (["exit 1", "exit 2"], [None, None]),
}


@pytest.mark.parametrize(("steps", "ran"), _LADDERS.values(), ids=_LADDERS)
def test_each_step_is_run_once_and_in_order(shell, steps, ran):
    ladder = Ladder(steps, shell, lambda _: None, lambda *_: None)
    took = [ladder.next_step(a_proposal()) for _ in ran]
    assert ran == [step.ran if step is not None else None for step in took]


def test_step_that_has_ended_is_recorded_with_its_exit_code(shell):
    recorded = []
    ladder = Ladder(["exit 4", "true", "true b"], shell, lambda _: None, lambda *step: recorded.append(step))
    ladder.next_step(a_proposal())
    assert [("exit 4", 4), ("true", 0)] == recorded


def test_step_is_told_before_it_runs_and_why_it_failed(shell):
    told = []
    Ladder(["exit 4"], shell, told.append, lambda *_: None).next_step(a_proposal())
    assert ["recovery step: exit 4", "the recovery step failed: it ended with exit code 4: exit 4"] == told


def test_step_that_hangs_is_ended_by_the_time_limit_of_attempts_and_makes_way(signal_pipe):
    told, recorded = [], []
    limited = Shell(signal_pipe, RunnerOptions(grace_seconds=0.2, timeout_seconds=0.2))
    step = Ladder(["sleep 321", "true"], limited, told.append, lambda *step: recorded.append(step)).next_step(
        a_proposal()
    )
    assert ("true", [("sleep 321", 124), ("true", 0)]) == (step.ran, recorded)
    assert "the recovery step failed: it did not end within 0.2s: sleep 321" in told


def test_step_knows_which_attempt_it_is_for(shell, tmp_path):
    environment = {"PATH": os.environ["PATH"], "KOS_RETRY_ATTEMPT": "2"}
    step = f"echo $KOS_RETRY_ATTEMPT >{tmp_path}/told"
    Ladder([step], shell, lambda _: None, lambda *_: None).next_step(a_proposal(environment=environment))
    assert "2\n" == (tmp_path / "told").read_text()


def test_signal_ends_a_step_and_leaves_it_untried(shell, tmp_path):
    recorded = []
    step = f"echo $PPID >{tmp_path}/up; kill -INT {os.getpid()}; sleep 321"
    took = Ladder([step, "true"], shell, lambda _: None, lambda *step: recorded.append(step)).next_step(a_proposal())
    assert (2, None, []) == (took.cancelled_by, took.ran, recorded)


# A ladder, what was tried of it, and what is left.
_LEFT = {
    "nothing tried": (["a", "b"], [], ["a", "b"]),
    "the first": (["a", "b"], ["a"], ["b"]),
    "all": (["a", "b"], ["a", "b"], []),
    "the same twice": (["a", "a"], ["a"], ["a"]),
    "another ladder": (["c"], ["a", "b"], ["c"]),
    "a secret in it": ([f"login {SECRET}", "b"], ["login [redacted]"], ["b"]),
}


@pytest.mark.parametrize(("steps", "tried", "left"), _LEFT.values(), ids=_LEFT)
def test_what_was_tried_of_a_ladder_is_not_tried_again(steps, tried, left):
    assert left == still_to_try(steps, tried, Redactor([SECRET]))


def a_gate(command, shell):
    return CommandGate(command, shell, Redactor([SECRET]), "s1")


# What a gate does, and the stop reason and the words that it refuses with.
_GATES = {
    "exit code 0": ("true", None),
    "exit code 0, and only blanks": ("echo; echo ' '", None),
    "yes": ("""echo '{"verdict": "yes"}'""", None),
    "APPROVE": ("""echo '{"verdict": "APPROVE", "reason": "why not"}'""", None),
    "no gate": (None, None),
    "no": ("""echo '{"verdict": "no", "reason": "too late"}'""", ("gate_denied", "too late")),
    "no, without a reason": ("""echo '{"verdict": "reject"}'""", ("gate_denied", "it said no")),
    "exit code 3": ("exit 3", ("gate_denied", "it ended with exit code 3")),
    "exit code 3, with a reason": (
        """echo '{"reason": "too late"}'; exit 3""",
        ("gate_denied", "it ended with exit code 3: too late"),
    ),
    "yes, and exit code 3": ("""echo '{"verdict": "yes"}'; exit 3""", ("gate_denied", "it ended with exit code 3")),
    "killed": ("kill -KILL $$", ("gate_denied", "it ended with exit code 137")),
    "not found": ("no-such-gate-here", ("gate_denied", "it ended with exit code 127")),
    "words": ("echo yes", ("gate_denied", "its answer is no verdict")),
    "another verdict": ("""echo '{"verdict": "maybe"}'""", ("gate_denied", "its answer is no verdict")),
    "no verdict": ("echo '{}'", ("gate_denied", "its answer is no verdict")),
    "a list": ("""echo '["yes"]'""", ("gate_denied", "its answer is no verdict")),
    "a verdict that is no word": ("""echo '{"verdict": ["yes"]}'""", ("gate_denied", "its answer is no verdict")),
    "two answers": (
        """echo '{"verdict": "yes"}'; echo '{"verdict": "yes"}'""",
        ("gate_denied", "its answer is no verdict"),
    ),
    "nested too deeply": ("yes '[' | head -c 100000", ("gate_denied", "its answer is no verdict")),
    "no text": (r"printf '\377\376'", ("gate_denied", "its answer is no verdict")),
    "a yes to another attempt": (
        """echo '{"verdict": "yes", "fingerprint": "0"}'""",
        ("verdict_void", "the verdict is about another attempt"),
    ),
    "a no to another attempt": (
        """echo '{"verdict": "no", "fingerprint": "0", "reason": "too late"}'""",
        ("gate_denied", "too late"),
    ),
}


@pytest.mark.parametrize(("command", "expected"), _GATES.values(), ids=_GATES)
def test_gate_lets_pass_or_refuses(shell, command, expected):
    refusal = a_gate(command, shell).ask(a_proposal(), _DECISION)
    assert expected == (None if refusal is None else (refusal.stop_reason, refusal.reason))


@pytest.mark.usefixtures("soon")
def test_gate_that_hangs_denies(shell):
    refusal = a_gate("sleep 321", shell).ask(a_proposal(), None)
    assert ("gate_denied", "it did not end within 0.2s") == (refusal.stop_reason, refusal.reason)


@pytest.mark.usefixtures("soon")
def test_yes_before_a_gate_hangs_is_none(shell):
    refusal = a_gate("""echo '{"verdict": "yes"}'; sleep 321""", shell).ask(a_proposal(), None)
    assert "gate_denied" == refusal.stop_reason


def test_gate_that_the_deadline_ends_has_not_denied(signal_pipe):
    late = Shell(signal_pipe, RunnerOptions(grace_seconds=0.2, deadline_at=0.0, deadline_seconds=5.0))
    assert "deadline" == a_gate("sleep 321", late).ask(a_proposal(), None).stop_reason


def test_time_limit_of_attempts_is_none_of_the_gate(signal_pipe):
    limited = Shell(signal_pipe, RunnerOptions(grace_seconds=0.2, timeout_seconds=0.2))
    assert None is a_gate("sleep 0.5", limited).ask(a_proposal(), None)


def test_signal_while_the_gate_is_asked_is_no_verdict(shell):
    refusal = a_gate(f"kill -TERM {os.getpid()}; sleep 321", shell).ask(a_proposal(), None)
    assert ("cancelled", 15) == (refusal.stop_reason, refusal.cancelled_by)


def test_yes_is_void_where_the_attempt_changes_while_the_gate_is_asked(shell, tmp_path):
    proposal = a_proposal()
    os.mkfifo(tmp_path / "asked")

    def change():
        (tmp_path / "asked").read_text()
        proposal.argv = ("make", "clean")
        (tmp_path / "changed").write_text("")

    changing = threading.Thread(target=change)
    changing.start()
    waits = f"echo now >{tmp_path}/asked; until [ -e {tmp_path}/changed ]; do sleep 0.01; done"
    refusal = a_gate(waits, shell).ask(proposal, None)
    changing.join()
    assert ("verdict_void", "the attempt changed after the verdict") == (refusal.stop_reason, refusal.reason)


def test_gate_reads_the_whole_proposal_without_secrets(shell, tmp_path):
    proposal = a_proposal(argv=["login", SECRET], guidance=f"do not say {SECRET}")
    a_gate(f"cat >{tmp_path}/asked", shell).ask(proposal, _DECISION)
    asked = json.loads((tmp_path / "asked").read_text())
    assert _DECISION.guidance == asked.pop("decision")["guidance"]
    assert {
        "attempt": 2,
        "session": "s1",
        "argv": ["login", "[redacted]"],
        "guidance": "do not say [redacted]",
        "fingerprint": fingerprint(proposal),
    } == asked


_SAME = {"attempt": 2, "argv": ["make", "all"], "environment": {"KOS_RETRY_ATTEMPT": "2", "PATH": "/bin"}}
# Changes of a proposal, and whether it is another one then.
_CHANGES = {
    "nothing": ({}, False),
    "a word": ({"argv": ["make", "clean"]}, True),
    "where words end": ({"argv": ["make all"]}, True),
    "order of words": ({"argv": ["all", "make"]}, True),
    "standard input": ({"stdin": b"told"}, True),
    "guidance": ({"guidance": "told"}, True),
    "number": ({"environment": {"KOS_RETRY_ATTEMPT": "3", "PATH": "/bin"}}, True),
    "variable of ours": ({"environment": {**_SAME["environment"], "KOS_RETRY_GUIDANCE": "told"}}, True),
    "order of variables": ({"environment": dict(reversed(_SAME["environment"].items()))}, False),
}


@pytest.mark.parametrize(("changes", "another"), _CHANGES.values(), ids=_CHANGES)
def test_fingerprint_is_that_of_one_proposal(changes, another):
    assert another == (fingerprint(Proposal(**_SAME)) != fingerprint(Proposal(**{**_SAME, **changes})))


def test_fingerprints_of_words_that_are_no_text_differ():
    one, other = (Proposal(1, ["cat", os.fsdecode(b"a\xff" + end)], {}) for end in (b"", b"\xfe"))
    assert fingerprint(one) != fingerprint(other)


# What a supervisor does, and what it says to the next attempt; None where nobody sends the run on.
_SUPERVISORS = {
    "retry": ("""echo '{"verdict": "retry"}'""", ""),
    "RETRY with guidance": ("""echo '{"verdict": "RETRY", "guidance": "look again"}'""", "look again"),
    "guidance that is null": ("""echo '{"verdict": "retry", "guidance": null}'""", ""),
    "guidance with a secret": (f"""echo '{{"verdict": "retry", "guidance": "use {SECRET}"}}'""", "use [redacted]"),
    "halt": ("""echo '{"verdict": "halt"}'""", None),
    "guidance without a verdict": ("""echo '{"guidance": "look again"}'""", None),
    "nothing": ("true", None),
    "words": ("echo retry", None),
    "a list": ("""echo '["retry"]'""", None),
    "cut off": ("""printf '{"verdict": "retry'""", None),
    "nested too deeply": ("yes '[' | head -c 100000", None),
    "fails": ("exit 3", None),
    "retry, and fails": ("""echo '{"verdict": "retry"}'; exit 3""", None),
    "not found": ("no-such-supervisor-here", None),
    "nobody there": (None, None),
}


@pytest.mark.parametrize(("command", "expected"), _SUPERVISORS.values(), ids=_SUPERVISORS)
def test_supervisor_sends_the_run_on_or_does_not(shell, command, expected):
    recorded = []
    supervisor = CommandSupervisor(command, shell, Redactor([SECRET]), lambda _: None, recorded.append)
    step = supervisor.ask(a_proposal(), _DECISION)
    assert (command is not None, expected) == (supervisor.is_there, None if step is None else step.guidance)
    assert ([] if expected is None else [expected], expected is not None) == (
        recorded,
        step is not None and step.helped,
    )


# What a supervisor does that does not help, and what is told.
_TOLD = {
    "fails": ("exit 3", ["nobody helped: it ended with exit code 3"]),
    "hangs": ("sleep 321", ["nobody helped: it did not end within 0.2s"]),
    "says nothing": ("true", []),
}


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("command", "expected"), _TOLD.values(), ids=_TOLD)
def test_supervisor_that_does_not_help_is_told(shell, command, expected):
    told = []
    assert None is CommandSupervisor(command, shell, Redactor(), told.append, pytest.fail).ask(a_proposal(), _DECISION)
    assert expected == told


def test_signal_while_a_supervisor_is_asked_ends_the_run(shell):
    supervisor = CommandSupervisor(f"kill -INT {os.getpid()}; sleep 321", shell, Redactor(), pytest.fail, pytest.fail)
    assert 2 == supervisor.ask(a_proposal(), _DECISION).cancelled_by


def test_supervisor_reads_the_decision_without_secrets(shell, tmp_path):
    decision = decide([an_envelope(f"error: {SECRET} is wrong")], Policy())
    CommandSupervisor(f"cat >{tmp_path}/asked", shell, Redactor([SECRET]), pytest.fail, pytest.fail).ask(
        a_proposal(), decision
    )
    asked = json.loads((tmp_path / "asked").read_text())
    assert (2, "continue") == (asked["attempt"], asked["decision"]["recommendation"])
    assert SECRET in decision.guidance
    assert SECRET not in json.dumps(asked)
