"""What holds for any outcome, any envelope and any history."""

from __future__ import annotations

import json
import random

import orjson
import pytest
from builders import an_envelope, observed
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import actions, envelopes, histories, json_values, policies, texts

from kos_retry.engine.actions import approach, fingerprint
from kos_retry.engine.backoff import JITTERS, Schedule
from kos_retry.engine.compare import compare, divergence_bits
from kos_retry.engine.decide import decide
from kos_retry.engine.observe import completed
from kos_retry.engine.rules import RULES
from kos_retry.engine.sign import signature
from kos_retry.engine.stagnation import assess, checkpoints
from kos_retry.model import Action, FailureEnvelope, Policy, Recommendation
from kos_retry.text.escapes import decode

_sets = st.sets(st.integers(0, 60), max_size=60)
_RULES = {rule.__name__ for rule in RULES} | {"no_history"}


@given(st.binary(max_size=400), st.binary(max_size=400), st.sampled_from([0, 1, 75, 124, 127, 130, 137]))
def test_any_output_gives_an_envelope(stdout, stderr, exit_code):
    envelope = observed(decode(stdout), decode(stderr), exit_code=exit_code)
    assert orjson.loads(orjson.dumps(envelope.as_json()))["signature"] == envelope.signature


@given(texts, texts)
def test_same_output_gives_the_same_envelope(stdout, stderr):
    assert observed(stdout, stderr) == observed(stdout, stderr)


@given(envelopes)
def test_any_envelope_survives_its_json(envelope):
    assert envelope == FailureEnvelope.from_json(envelope.as_json())


@given(envelopes)
def test_any_envelope_can_be_written(envelope):
    assert envelope == FailureEnvelope.from_json(orjson.loads(orjson.dumps(envelope.as_json())))


@given(envelopes)
def test_completing_twice_changes_nothing(envelope):
    assert completed(envelope) == completed(completed(envelope))


@given(histories, policies)
def test_any_history_gives_a_decision(history, policy):
    decision = decide(history, policy, schedule=Schedule())
    assert decision.reasons[0].rule in _RULES


@settings(max_examples=50)
@given(histories, policies)
def test_any_decision_can_be_written(history, policy):
    assert orjson.dumps(decide(history, policy).as_json())


@settings(max_examples=50)
@given(histories, policies)
def test_decision_is_the_same_every_time(history, policy):
    assert decide(history, policy) == decide(history, policy)


@given(histories, policies)
def test_guidance_keeps_both_bounds(history, policy):
    size = len(decide(history, policy).guidance.encode())
    assert size <= min(policy.max_prompt_bytes, 2 * policy.max_prompt_tokens)


@settings(max_examples=50)
@given(histories, st.sampled_from([0, 1]))
def test_guidance_keeps_the_smallest_bounds(history, bound):
    assert "" == decide(history, Policy(max_prompt_bytes=bound)).guidance


@settings(max_examples=50)
@given(histories, policies)
def test_halt_and_escalation_name_a_stop_reason(history, policy):
    decision = decide(history, policy)
    assert (decision.stop_reason is None) == (decision.recommendation is Recommendation.CONTINUE)


@given(st.lists(envelopes, max_size=1), policies)
def test_single_failure_never_stagnates(history, policy):
    assert not assess(history, policy).is_stagnant


@given(histories)
def test_there_is_one_checkpoint_an_attempt(history):
    assert [e.attempt for e in history] == [c.attempt for c in checkpoints(history)]


@given(envelopes, envelopes)
def test_delta_is_zero_exactly_where_its_bits_are(one, other):
    one, other = (e.replace(signature=signature(e), approach=approach(e.executed_actions)) for e in (one, other))
    delta = compare(one, other)
    assert delta.zero_delta == (delta.entropy_bits == 0)


@given(_sets, _sets)
def test_bits_are_zero_exactly_for_equal_sets(one, other):
    assert (one == other) == (divergence_bits(one, other) == 0.0)


@given(_sets, _sets)
def test_bits_are_symmetric_and_bounded(one, other):
    assert 0.0 <= divergence_bits(one, other) == divergence_bits(other, one) <= 1.0


@given(_sets, _sets)
def test_bits_are_one_exactly_for_sets_that_share_nothing(one, other):
    assert (one != other and not one & other) == (divergence_bits(one, other) == 1.0)


@given(
    st.lists(st.sampled_from("abcdefgh"), max_size=8, unique=True).flatmap(
        lambda names: st.tuples(st.just(names), st.permutations(names))
    )
)
def test_order_of_constraints_changes_nothing(orders):
    one, other = (an_envelope(failing_constraints=order) for order in orders)
    assert one.signature == other.signature


@settings(max_examples=50)
@given(
    histories,
    policies,
    st.builds(
        Schedule,
        delay_seconds=st.floats(0, 100),
        factor=st.floats(1, 4),
        max_delay_seconds=st.floats(0, 200),
        jitter=st.sampled_from(JITTERS),
        seed=st.integers(0, 99),
    ),
    st.floats(0, 200),
    st.floats(0, 200),
)
def test_no_wait_crosses_the_deadline(history, policy, schedule, used, deadline):
    policy = policy.replace(deadline_seconds=deadline)
    decision = decide(history, policy, schedule=schedule, seconds_used=used)
    assert decision.delay_seconds is None or used + decision.delay_seconds < deadline + 0.001


@settings(max_examples=50)
@given(histories, policies, st.sampled_from(["exit:0-255", "exit:1", "timeout", "category:unknown", "signal:KILL"]))
def test_condition_to_stop_on_wins_over_the_same_one_to_retry_on(history, policy, condition):
    both = policy.replace(stop_on=(condition,), retry_on=(condition,))
    assert "retry_on" != decide(history, both).reasons[0].rule


def _shuffled(value, draw: random.Random):
    if isinstance(value, dict):
        items = list(value.items())
        draw.shuffle(items)
        return {k: _shuffled(v, draw) for k, v in items}
    return [_shuffled(v, draw) for v in value] if isinstance(value, list) else value


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=8), json_values, max_size=6), st.randoms(use_true_random=False))
def test_order_of_keys_changes_no_action(given_input, draw):
    one, other = (Action(name="edit", input=i) for i in (given_input, _shuffled(given_input, draw)))
    assert fingerprint(one) == fingerprint(other)


@given(st.dictionaries(st.text(max_size=8), st.integers(-9, 9) | st.text(max_size=8), max_size=6))
def test_arguments_that_are_encoded_twice_are_the_same_action(given_input):
    assert fingerprint(Action(name="edit", input=given_input)) == fingerprint(
        Action(name="edit", input=json.dumps(given_input))
    )


@settings(max_examples=50)
@given(st.lists(actions, max_size=5))
def test_any_action_has_a_fingerprint(given_actions):
    read = [Action.from_json(a) for a in given_actions]
    assert len(read) == len([fingerprint(a) for a in read])


@pytest.mark.parametrize("jitter", JITTERS)
@given(
    delay=st.floats(0, 1e6),
    factor=st.floats(1, 1e6),
    cap=st.floats(0, 1e6),
    failures=st.integers(0, 10**6),
    seed=st.integers(0),
)
def test_wait_is_never_longer_than_the_cap(jitter, delay, factor, cap, failures, seed):
    assert 0 <= Schedule(delay, factor, cap, jitter, seed).delay(failures) <= cap
