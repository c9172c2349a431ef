"""What holds for any text."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from strategies import any_text, lines, texts

from kos_retry.engine.evidence import choose_lines
from kos_retry.engine.normalise import _TELLTALE, normalise, normalise_line
from kos_retry.engine.redact import Redactor
from kos_retry.engine.tokens import TOKEN_CLASSES
from kos_retry.limits import MAX_EVIDENCE_LINES
from kos_retry.text.bounds import cut_bytes, well_formed
from kos_retry.text.durations import format_duration, format_size, parse_duration, parse_size
from kos_retry.text.escapes import plain_line, plain_text, printable
from kos_retry.text.jsonline import json_line
from kos_retry.text.lines import last_lines, lines_at
from kos_retry.text.outline import in_outline, outline

_LETTERS = st.text(st.sampled_from("abcXYZ019-_+/ =:\n"), max_size=40)
# Half a character is replaced on purpose.
_whole_text = any_text.map(well_formed)
_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _whole_text,
    lambda inner: st.lists(inner) | st.dictionaries(_whole_text, inner),
    max_leaves=20,
)


@given(lines)
def test_normalising_a_line_twice_changes_nothing(line):
    once = normalise_line(line)
    assert once == normalise_line(once)


@given(texts)
def test_normalising_a_text_twice_changes_nothing(text):
    once = normalise(text)
    assert once == normalise(once)


@settings(max_examples=50)
@example("a0://0.../", 10)
@given(lines, st.integers(2, 60))
def test_normalising_a_long_line_twice_changes_nothing(line, times):
    once = normalise_line(line * times)
    assert once == normalise_line(once)


@given(texts)
def test_plain_text_is_plain(text):
    assert plain_text(text) == plain_text(plain_text(text))


@given(texts)
def test_plain_text_holds_no_controls(text):
    assert [] == [c for c in plain_text(text) if unicodedata.category(c) == "Cc" and c not in "\n\t"]


@given(lines)
def test_printable_text_is_one_line(line):
    assert len(printable(line).splitlines()) <= 1


@given(lines)
def test_plain_line_adds_nothing(line):
    assert len(plain_line(line)) <= len(line)


@given(texts, texts)
def test_evidence_is_bounded_whatever_was_printed(one, other):
    assert len(choose_lines(one, other)) <= MAX_EVIDENCE_LINES


@given(texts)
def test_evidence_was_printed(text):
    shown = plain_text(text)
    # The functions of a stack are put on one line, each of them was printed.
    said = [part for line in choose_lines(text) for part in line.text.removeprefix("stack: ").split(" < ")]
    assert [] == [part for part in said if part not in shown]


@given(any_text, st.integers(-1, 300))
def test_cut_text_fits_and_is_a_prefix(text, limit):
    whole = well_formed(text)
    kept = cut_bytes(whole, limit)
    assert len(kept.encode()) <= max(0, limit)
    assert whole.startswith(kept)


@given(any_text, st.integers(0, 300))
def test_cut_leaves_out_no_character_that_fits(text, limit):
    whole = well_formed(text)
    kept = cut_bytes(whole, limit)
    assert kept == whole or len(whole[: len(kept) + 1].encode()) > limit


@given(any_text)
def test_well_formed_text_can_be_written(text):
    assert well_formed(text) == well_formed(text).encode().decode()


@given(_plain)
def test_json_line_is_what_json_reads(value):
    assert value == json.loads(json_line(value))


@given(_plain)
def test_json_line_is_one_ascii_line(value):
    line = json_line(value)
    assert line.isascii()
    assert "\n" not in line


@given(st.integers(0, 10**8))
def test_whole_seconds_survive_the_round_trip(seconds):
    assert float(seconds) == parse_duration(format_duration(seconds))


@given(st.floats(0, 10**8))
def test_any_duration_survives_the_round_trip_nearly(seconds):
    assert (
        abs(seconds - parse_duration(format_duration(seconds)))
        <= (0.0005 if seconds < 1 else 0.05 if seconds < 60 else 0.5) + 1e-9
    )


@given(st.integers(0, 2**50))
def test_any_size_survives_the_round_trip_nearly(count):
    assert abs(count - parse_size(format_size(count))) <= count * 0.05


@given(any_text)
def test_duration_is_read_or_refused(text):
    try:
        assert parse_duration(text) >= 0
    except ValueError as error:
        assert "is not a duration" in str(error)  # noqa: PT017 - both are right


@given(st.lists(_LETTERS, max_size=4), st.lists(_LETTERS, max_size=6))
def test_redacting_twice_changes_nothing(secrets, parts):
    redactor = Redactor(secrets)
    once = redactor.text(" ".join([*parts, *secrets]))
    assert once == redactor.text(once)


@given(st.lists(_LETTERS, max_size=4), st.lists(_LETTERS, max_size=6))
def test_no_secret_of_six_characters_is_left(secrets, parts):
    text = Redactor(secrets).text("".join([*parts, *secrets, *parts]))
    assert [] == [s for s in secrets if len(s.strip()) >= 6 and s in text]


@given(texts)
def test_redacting_any_output_twice_changes_nothing(text):
    redactor = Redactor(["hunter2-and-more"])
    assert redactor.text(text) == redactor.text(redactor.text(text))


_few = st.text(st.sampled_from("ab019 \n:"), max_size=60).map(str.encode)


@given(_few, _few.filter(lambda wanted: b"\n" not in wanted), _few)
def test_what_stands_in_a_text_stands_in_its_outline(before, wanted, after):
    assert in_outline(wanted) in outline(before + wanted + after)


def test_outline_of_lines_that_differ_in_digits_is_one_line():
    assert b"job 00 took 0s" == outline(b"\n".join(b"job %d took 3s" % n for n in range(10, 99)))


# What a class looks ahead for, the generator can only guess.
@settings(max_examples=20, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
@pytest.mark.parametrize("token_class", TOKEN_CLASSES, ids=lambda c: c.name)
def test_token_of_any_class_has_what_lines_are_sifted_by(token_class, data):
    """A line is not looked through for tokens where nothing tells of one: whatever a class takes has to have such a mark."""
    text = data.draw(st.from_regex(token_class.pattern))
    assert _TELLTALE.search(text) or not re.search(token_class.pattern, text)


_many_lines = st.one_of(
    st.text(st.sampled_from("a \n"), max_size=40),
    st.integers(0, 3000).map(lambda n: "\n".join(f"line {i}" for i in range(n))),
)


@given(_many_lines, st.integers(1, 3000), st.integers(0, 6))
def test_lines_are_read_by_their_number(text, number, count):
    assert text.split("\n")[number - 1 : number - 1 + count] == lines_at(text, number, count)


@given(_many_lines, st.integers(0, 6))
def test_last_lines_are_those_that_are_not_blank(text, count):
    full = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    assert (full[-count:] if count else []) == last_lines(text, count)
