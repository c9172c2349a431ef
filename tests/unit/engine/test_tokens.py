"""Every class of tokens, by the example and the look-alike that it brings along."""

from __future__ import annotations

import pytest

from kos_retry.engine.normalise import explain_line, normalise_line
from kos_retry.engine.tokens import TOKEN_CLASSES

_each = pytest.mark.parametrize("token_class", TOKEN_CLASSES, ids=lambda c: c.name)


@_each
def test_example_is_hit_by_its_class(token_class):
    assert token_class.name in [t.token_class for t in explain_line(token_class.example).tokens]


@_each
def test_example_is_masked_exactly_where_the_class_masks(token_class):
    hits = [t for t in explain_line(token_class.example).tokens if t.token_class == token_class.name]
    assert (token_class.mask is not None) == any(t.mask is not None for t in hits)


@_each
def test_look_alike_is_not_masked_by_the_class(token_class):
    hits = [t for t in explain_line(token_class.counter).tokens if t.token_class == token_class.name]
    assert [] == [t for t in hits if token_class.mask is None or t.mask is not None]


@_each
def test_masking_twice_changes_nothing(token_class):
    once = normalise_line(token_class.example)
    assert once == normalise_line(once)


@_each
def test_example_keeps_its_words(token_class):
    masked = explain_line(token_class.example)
    assert not masked.text.replace("<", "").isspace()
    assert any(c.isalpha() for c in masked.text)


def test_names_of_classes_are_unique():
    names = [c.name for c in TOKEN_CLASSES]
    assert sorted(set(names)) == sorted(names)


def test_order_of_the_classes(snapshot):
    """The first class that matches takes the text: the order is meaning."""
    assert snapshot == [f"{c.name}: {'keeps' if c.mask is None else 'masks'}" for c in TOKEN_CLASSES]
