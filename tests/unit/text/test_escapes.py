"""Terminal output as plain text."""

from __future__ import annotations

import pytest

from kos_retry.text.escapes import decode, plain_line, plain_text, printable, strip_escapes

_ESCAPES = {
    "colour": ("\x1b[1;31merror\x1b[0m: no", "error: no"),
    "colour-with-colons": ("\x1b[38:2::255:0:0merror\x1b[m", "error"),
    "cursor-and-erase": ("\x1b[2K\x1b[1Gdone\x1b[?25h", "done"),
    "hyperlink-ended-by-st": ("\x1b]8;;https://ci.example/1\x1b\\job\x1b]8;;\x1b\\ failed", "job failed"),
    "hyperlink-ended-by-bel": ("\x1b]8;;https://ci.example/1\x07job\x1b]8;;\x07 failed", "job failed"),
    "window-title": ("\x1b]0;building\x07failed", "failed"),
    "device-control-string": ("a\x1bP1$r0m\x1b\\b", "ab"),
    "application-command": ("a\x1b_Gf=100;AAAA\x1b\\b", "ab"),
    "character-set": ("\x1b(Bplain", "plain"),
    "save-and-restore": ("\x1b7a\x1b8b", "ab"),
    "c1-control-sequence": ("\x9b31merror\x9b0m", "error"),
    "c1-string": ("a\x9d8;;https://ci.example\x9cb", "ab"),
    "lone-escape-at-the-end": ("a\x1b", "a"),
}


@pytest.mark.parametrize(("raw", "shown"), _ESCAPES.values(), ids=_ESCAPES)
def test_escape_sequence_leaves_the_text_that_it_dressed(raw, shown):
    assert shown == strip_escapes(raw)


def test_unterminated_string_sequence_swallows_no_further_line():
    assert "second" in plain_text("\x1b]0;title without an end\nsecond\nthird\n").splitlines()


def test_unterminated_string_sequence_swallows_a_bounded_part_of_its_line():
    assert plain_text("\x1b]0;" + "x" * 100_000 + "error").endswith("error")


def test_text_without_escapes_is_left_alone():
    text = "café: naïve → ok\n"
    assert text == plain_text(text)


_SHOWN = {
    "progress-bar": ("10%\r50%\r100%", "100%"),
    "blanked-progress": ("downloading\r           \rdone", "done"),
    "trailing-carriage-return": ("error: no\r", "error: no"),
    "backspace": ("passx\b ed".replace(" ", ""), "passed"),
    "backspace-at-the-start": ("\b\bok", "ok"),
    "null-and-bell": ("a\x00b\x07c", "abc"),
    "delete": ("a\x7fb", "ab"),
    "tab-stays": ("a\tb", "a\tb"),
    "byte-order-mark": ("\ufefferror", "error"),
    "zero-width": ("er\u200bror", "error"),
    "right-to-left-override": ("a\u202etxt\u202c", "atxt"),
    "isolate": ("a\u2066b\u2069c", "abc"),
    "overstrike-across-escapes": ("\x1b[31m1%\x1b[0m\r\x1b[32m2%\x1b[0m", "2%"),
}


@pytest.mark.parametrize(("raw", "shown"), _SHOWN.values(), ids=_SHOWN)
def test_line_is_what_a_terminal_shows_in_the_end(raw, shown):
    assert shown == plain_line(raw)


@pytest.mark.parametrize(("raw", "shown"), _SHOWN.values(), ids=_SHOWN)
def test_text_of_one_line_is_read_like_the_line(raw, shown):
    assert shown == plain_text(raw)


def test_windows_line_ends_become_newlines():
    assert "a\nb\n" == plain_text("a\r\nb\r\n")


def test_carriage_return_reaches_back_to_its_own_line_only():
    assert "first\n100%\nlast" == plain_text("first\n10%\r100%\nlast")


def test_decoding_replaces_what_is_no_text():
    assert "a\ufffdb" == decode(b"a\xffb")


_UNSAFE = {
    "newline": ("a\nb", "a b"),
    "colour": ("\x1b[31mred\x1b[0m", "red"),
    "carriage-return": ("safe\rkos-retry: passed", "kos-retry: passed"),
    "control-sequence-without-escape": ("a\x9b2Jb", "ab"),
    "bidirectional-override": ("a\u202eb", "ab"),
    "line-separator": ("a\u2028b", "a b"),
}


@pytest.mark.parametrize(("raw", "safe"), _UNSAFE.values(), ids=_UNSAFE)
def test_printable_text_is_one_line_without_controls(raw, safe):
    assert safe == printable(raw)


@pytest.mark.parametrize(
    "raw",
    ["::set-output name=x::y", "  ::error::no", "##[error]no", "so ##[command]rm", "\x1b[0m::stop-commands::x"],
)
def test_printable_text_holds_no_command_that_a_ci_host_reads(raw):
    line = printable(raw)
    assert not line.startswith("::")
    assert "##[" not in line


@pytest.mark.parametrize("raw", ["##vso[task.complete result=Succeeded]", "so ##vso[task.setvariable variable=x]y"])
def test_printable_text_breaks_named_commands_apart_too(raw):
    assert "##vso[" not in printable(raw)
