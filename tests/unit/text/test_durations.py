"""Durations and sizes, as people write them."""

from __future__ import annotations

import pytest

from kos_retry.text.durations import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("0s", 0.0),
        ("7", 7.0),
        ("1.5", 1.5),
        ("500ms", 0.5),
        ("90s", 90.0),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("1h30m15s", 5415.0),
        ("1d", 86400.0),
        (".5s", 0.5),
        (" 2M ", 120.0),
    ],
)
def test_duration_is_read_in_seconds(text, seconds):
    assert seconds == parse_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "s",
        "-1s",
        "+1s",
        "1..5s",
        ".",
        ".s",
        "1h30",
        "5x",
        "1 m",
        "1m ago",
        "1e5",
        "nan",
        "inf",
        "\u0661s",
        "1µs",
        "4000d",
        "9" * 400,
    ],
)
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="is not a duration such as 500ms, 90s, 10m or 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0004, "0s"),
        (0.25, "0.25s"),
        (0.1234, "0.123s"),
        (0.9999, "1s"),
        (1, "1s"),
        (10, "10s"),
        (59.94, "59.9s"),
        (60, "1m"),
        (90, "1m30s"),
        (3600, "1h"),
        (3661, "1h1m1s"),
        (86400, "24h"),
    ],
)
def test_duration_is_written_in_its_shortest_form(seconds, text):
    assert text == format_duration(seconds)


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.25, 0.999, 1.0, 1.5, 59.9, 60.0, 61.0, 3599.0, 3600.0, 360_000.0])
def test_duration_survives_the_round_trip(seconds):
    assert seconds == pytest.approx(parse_duration(format_duration(seconds)), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("2048", 2048),
        ("2048b", 2048),
        ("64KiB", 65536),
        ("64kib", 65536),
        ("10MB", 10_000_000),
        ("1.5KiB", 1536),
        ("1GiB", 1024**3),
        (" 1kb ", 1000),
    ],
)
def test_size_is_read_in_bytes(text, size):
    assert size == parse_size(text)


@pytest.mark.parametrize("text", ["", "KiB", "-1", "1 KiB", "1KiBs", "1TiB", "1.2.3", "1e3", "nan", "٣", "9" * 400])
def test_what_is_no_size_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="is not a size such as 2048, 64KiB or 10MB"):
        parse_size(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1.0KiB"), (4 * 1024**2, "4.0MiB"), (5000 * 1024**3, "5000.0GiB")],
)
def test_size_is_written_in_the_largest_unit_that_keeps_it_readable(count, text):
    assert text == format_size(count)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 65536, 3 * 1024**2, 7 * 1024**3])
def test_size_in_whole_units_survives_the_round_trip(count):
    assert count == parse_size(format_size(count))
