"""Masks and keep-rules of the configuration, and what they do to signatures."""

from __future__ import annotations

import pytest
from builders import observed

from kos_retry.adapters.own_rules import OwnRules, version
from kos_retry.engine.compare import compare
from kos_retry.engine.sign import SIGNATURE_VERSION
from kos_retry.limits import EXPRESSION_SECONDS
from kos_retry.settings import TokenRule

_ORDER = TokenRule("order", r"order-[a-z]+", keeps=False)
_TICKET = TokenRule("ticket", r"ticket ([A-Z]+)", keeps=False)
_PORT = TokenRule("port", r"port \d+", keeps=True)


def _signed(text: str, *rules: TokenRule, **fields):
    return OwnRules(rules, pytest.fail).signed([observed(text, **fields)])[0]


def _features(text: str, *rules: TokenRule) -> list[str]:
    return [f for f in _signed(text, *rules).features if f.startswith("message:")]


def test_mask_takes_what_no_class_takes():
    assert ["message:error: <order> rejected"] == _features("error: order-abc rejected\n", _ORDER)


def test_group_of_a_mask_is_all_that_it_takes():
    assert ["message:error: ticket <ticket> rejected"] == _features("error: ticket ABC rejected\n", _TICKET)


def test_keep_rule_protects_from_the_classes():
    assert ["message:error: port 49213 and seed <n>"] == _features("error: port 49213 and seed 17\n", _PORT)


def test_earlier_rule_has_the_text():
    broad = TokenRule("word", r"[a-z]+-[a-z]+", keeps=False)
    assert ["message:error: <order> rejected"] == _features("error: order-abc rejected\n", _ORDER, broad)


def test_mask_holds_for_constraints_too():
    one, other = (_signed("error: no\n", _ORDER, constraints=(f"order-{name} is paid",)) for name in ("abc", "xyz"))
    assert one.signature == other.signature


def test_failures_that_differ_in_what_is_masked_are_one():
    one, other = (_signed(f"error: order-{name} rejected\n", _ORDER) for name in ("abc", "xyz"))
    assert (one.signature, 0.0, ()) == (
        other.signature,
        compare(one, other).entropy_bits,
        compare(one, other).features_new,
    )


def test_failures_that_differ_in_what_is_kept_are_two():
    one, other = (_signed(f"error: cannot bind port {n}\n", _PORT) for n in (49213, 49214))
    assert one.signature != other.signature


_VERSIONS = {
    "another-pattern": [TokenRule("order", r"order-\d+", keeps=False)],
    "another-name": [TokenRule("name", r"order-[a-z]+", keeps=False)],
    "kept-instead": [TokenRule("order", r"order-[a-z]+", keeps=True)],
    "one-more": [_ORDER, _PORT],
    "other-order": [_PORT, _ORDER],
}


def test_without_rules_the_version_is_the_algorithms():
    assert (SIGNATURE_VERSION, ()) == (version([]), _signed("error: no\n").features)


def test_every_set_of_rules_has_a_version_of_its_own():
    versions = {version([_ORDER]), *(version(rules) for rules in _VERSIONS.values())}
    assert (1 + len(_VERSIONS), True) == (len(versions), all(v.startswith(f"{SIGNATURE_VERSION}+") for v in versions))


def test_signature_of_a_caller_is_kept():
    mine = observed("error: order-abc rejected\n").replace(signature="mine:1")
    assert "mine:1" == OwnRules([_ORDER], pytest.fail).signed([mine])[0].signature


def test_signature_that_standard_rules_made_is_made_anew():
    standard = observed("error: order-abc rejected\n")
    anew = OwnRules([_ORDER], pytest.fail).signed([standard])[0]
    assert version([_ORDER]) == anew.signature.partition(":")[0]


def test_expression_that_does_not_come_back_is_named_and_the_others_count():
    said = []
    endless = TokenRule("endless", r"(a+)+$", keeps=False)
    text = "error: " + "a" * 60 + "! order-abc rejected\n"
    signed = OwnRules([endless, _ORDER], said.append).signed([observed(text)])[0]
    assert (True, f"the expression '(a+)+$' was given up after {EXPRESSION_SECONDS:g}s") == (
        any("<order>" in f for f in signed.features),
        said[0].partition(":")[0],
    )
