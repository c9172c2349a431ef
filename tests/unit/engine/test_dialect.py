"""Expressions of another dialect: what they mean here, and which are refused."""

from __future__ import annotations

import contextlib
import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kos_retry.engine.dialect import FLAGS, translate

# What an expression finds, and what it does not.
_MEANINGS = {
    "plain": (r"^(\S+):(\d+): (.*)$", "a.c:3: no", "a.c: no"),
    "look-ahead": (r"a(?=b)(?!bc)", "abd", "abc"),
    "look-behind": (r"(?<!MSB)\d{4}", "CS1002", "no"),
    "positive-look-behind": (r"(?<=error )\d+", "error 3", "warning 3"),
    "named-group": (r"(?<code>E\d+)", "E12", "W12"),
    "quoted-name": (r"(?'code'E\d+)", "E12", "W12"),
    "named-reference": (r"(?<q>['\"])x\k<q>", "'x'", "'x\""),
    "quoted-named-reference": (r"(?<q>['\"])x\k'q'", "'x'", "'x\""),
    "numbered-reference": (r"(['\"])x\1", "'x'", "'x\""),
    "reference-to-a-group-that-took-no-part": (r"^(a)?b\1$", "b", "ba"),
    "control-character": (r"\cI", "\t", "I"),
    "escape-character": (r"\e\[0m", "\x1b[0m", "e[0m"),
    "hexadecimal": (r"\x41\u0042", "AB", "ab"),
    "zero": (r"a\0b", "a\0b", "a0b"),
    "end": (r"a\z", "a", "ab"),
    "start": (r"\Ab", "b", "ab"),
    "brace-that-is-a-character": (r"^a{b}{,2}$", "a{b}{,2}", "ab"),
    "options": (r"(?i)error", "ERROR", "warning"),
    "options-of-a-group": (r"(?i:error) x", "ERROR x", "ERROR X"),
    "digits-are-ascii": (r"^\d$", "3", "٣"),
    "words-are-ascii": (r"^\w$", "a", "é"),
    "lazy": (r"^(.*?),", "a,", "a"),
    "slash": (r"a\/b", "a/b", "ab"),
    "class": (r"^[^\s:]+$", "ab", "a:b"),
    "set-before-a-hyphen": (r"^[\w-.]+$", "a-b.c", "a+b"),
    "hyphen-last": (r"^[+-]$", "-", ","),
    "hyphen-first": (r"^[-+]$", "-", ","),
    "range-then-hyphen": (r"^[a-c-e]+$", "a-e", "d"),
    "range-of-signs": (r"^[+--]$", ",", "."),
    "bracket-in-a-class": (r"^[[(]$", "[", "]"),
    "hyphen-and-bracket-first": (r"^[-[]$", "[", "]"),
    "signs-that-would-be-sets": (r"^[a&&|~~]+$", "&|~", "b"),
    "backspace-in-a-class": (r"^[\b]$", "\b", "b"),
    "caret-inside-of-a-class": (r"^[a^]$", "^", "b"),
}


@pytest.mark.parametrize(("expression", "found", "missed"), _MEANINGS.values(), ids=_MEANINGS)
def test_expression_means_the_same(expression, found, missed):
    translated = re.compile(translate(expression), FLAGS)
    assert (True, False) == (translated.search(found) is not None, translated.search(missed) is not None)


_REFUSED = {
    "property": (r"\p{L}+", "the Unicode property \\p{…}"),
    "negated-property": (r"[\P{L}]", "the Unicode property \\P{…}"),
    "variable-look-behind": (r"(?<=a+)b", "a look-behind of variable length"),
    "atomic": (r"(?>a+)b", "the atomic group (?>"),
    "possessive": (r"a++b", "the possessive quantifier ++"),
    "possessive-count": (r"a{2,3}+b", "the possessive quantifier {2,3}+"),
    "condition": (r"(a)?(?(1)b|c)", "the condition (?("),
    "comment": (r"a(?#why)b", "the comment (?#"),
    "balancing": (r"(?<a-b>x)", "the balancing or numbered group (?<"),
    "numbered": (r"(?<1>x)", "the balancing or numbered group (?<"),
    "other-dialects-group": (r"(?P<n>x)", "the group (?P"),
    "branch-reset": (r"(?|a|b)", "the branch reset (?|"),
    "recursion": (r"a(?R)?", "the recursion (?R"),
    "unknown-group": (r"(?~a)", "the group (?~"),
    "explicit-capture": (r"(?n)(a)", "the group (?n"),
    "options-in-the-middle": (r"a(?i)b", "the options (?i) are supported at the start only"),
    "subtraction": (r"[\w-[aeiou]]", "the class subtraction -["),
    "subtraction-from-a-range": (r"[a-z-[aeiou]]", "the class subtraction -["),
    "named-class": (r"[[:alpha:]]", "the named class [:"),
    "empty-class": (r"[]", "the empty class []"),
    "full-class": (r"[^]", "the empty class [^]"),
    "range-to-a-set": (r"[a-\d]", "a range that ends in \\d"),
    "octal": (r"\012", "the octal escape \\01"),
    "half-character": (r"\ud83d\ude00", "the half character \\ud83d"),
    "unknown-escape": (r"\h+", "the escape \\h"),
    "contiguous": (r"\Ga", "the escape \\G"),
    "half-an-escape": (r"\x4", "the escape \\x"),
    "braced-code": (r"\u{1F600}", "the escape \\u"),
    "mixed-numbering": (r"(?<n>a)(b)", "a named group before one without a name"),
    "unclosed-group": (r"(a", "it is not a regular expression: "),
    "unclosed-class": (r"[a", "it is not a regular expression: a character class is not closed"),
    "backslash-last": ("a\\", "it is not a regular expression: it ends in a backslash"),
    "nothing-to-repeat": (r"*a", "it is not a regular expression: nothing to repeat"),
    "no-such-group": (r"(a)\2", "it is not a regular expression: invalid group reference"),
    "repeats-too-often": (r"a{999999999}{999999999}", "it is not a regular expression: "),
    "too-deep": ("(" * 2000 + ")" * 2000, "it is not a regular expression: it is nested too deeply"),
}


@pytest.mark.parametrize(("expression", "named"), _REFUSED.values(), ids=_REFUSED)
def test_construct_without_an_equal_is_refused_by_name(expression, named):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - what it says is looked at below
        translate(expression)
    assert named in str(caught.value)


_SIGNS = st.sampled_from(
    [*r"\\[](){}^$*+?|-&~:<>=!'#.,", "\\p", "\\k<n>", "(?<n>", "(?i", "[^", "a", "b", "d", "1", "é"]
)


@given(st.lists(_SIGNS, max_size=12).map("".join))
def test_any_text_is_translated_without_a_warning_or_refused(text):
    with warnings.catch_warnings(), contextlib.suppress(ValueError):
        warnings.simplefilter("error")
        # What is handed over is compiled again in another process.
        re.compile(translate(text), FLAGS)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=12))
def test_escaped_text_finds_itself(text):
    assert re.search(translate("".join(c if c.isalnum() else "\\" + c for c in text)), text, FLAGS)
