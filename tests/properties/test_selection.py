"""Looking for many strings in a long text finds what looking for each of them finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kos_retry.adapters.extraction.selection import Output

_texts = st.text(st.sampled_from("ab01 \n\t:é\r"), max_size=60)


@given(_texts, _texts.filter(bool))
def test_string_is_held_where_it_stands(text, wanted):
    assert (wanted in text) == Output(text).holds(wanted)


@given(_texts, _texts.filter(bool), _texts)
def test_string_that_was_put_in_is_held(before, wanted, after):
    assert Output(before + wanted + after).holds(wanted)
