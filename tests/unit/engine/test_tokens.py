"""Every class of tokens, by the example and the look-alike that it brings along."""

from __future__ import annotations

import pytest

from kos_retry.engine.normalise import explain_line, normalise_line
from kos_retry.engine.tokens import TOKEN_CLASSES

_each = pytest.mark.parametrize("token_class", TOKEN_CLASSES, ids=lambda c: c.name)


@_each
def test_example_is_hit_by_its_class(token_class):
    assert token_class.name in [t.token_class for t in explain_line(token_class.example).tokens]


# Classes that mask some of what they take and protect the rest; what stands for both.
_MASK_SOME = {
    "name": ("pod api-5d8c7b9f4d-x2x7q died", "error[E0308] in test_case_1"),
    "host-port": ("localhost:49213 refused", "db:5432 refused"),
    "ip": ("dial 10.4.2.17 refused", "dial 127.0.0.1 refused"),
    "url": ("GET http://10.1.2.3:40213/cart", "GET https://api.example/cart"),
}


def _masked(line: str, name: str) -> list[bool]:
    """Return for each token that a class took whether it was masked."""
    return [t.mask is not None for t in explain_line(line).tokens if t.token_class == name]


@pytest.mark.parametrize("token_class", [c for c in TOKEN_CLASSES if c.name not in _MASK_SOME], ids=lambda c: c.name)
def test_example_is_masked_exactly_where_the_class_masks(token_class):
    assert (token_class.mask is not None) == any(_masked(token_class.example, token_class.name))


@pytest.mark.parametrize(("name", "lines"), _MASK_SOME.items(), ids=_MASK_SOME)
def test_class_masks_some_and_keeps_others(name, lines):
    assert [[True], [False]] == [_masked(line, name)[:1] for line in lines]


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
