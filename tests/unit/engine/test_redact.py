"""Removing secrets."""

from __future__ import annotations

import base64

import pytest

from kos_retry.engine.redact import REDACTED, Redactor, secret_values

_SECRET = "hunter2-and-more"

# Built in pieces, so that nothing that scans this file takes them for real ones.
_SHAPES = {
    "forge-token": "gh" + "p_" + "a1B2" * 9,
    "forge-fine-token": "github" + "_pat_" + "a1B2_" * 8,
    "forge-token-of-another": "gl" + "pat-" + "a1B2-c3D4-e5F6-g7H8",
    "chat-token": "xox" + "b-1234567890-abcdefghij",
    "cloud-key": "AK" + "IA" + "ABCDEFGH12345678",
    "api-key": "AI" + "za" + "a1B2c3D4" * 4,
    "model-key": "sk" + "-ant-" + "a1B2c3D4" * 4,
    "payment-key": "sk" + "_live_" + "a1B2c3D4" * 4,
    "registry-token": "np" + "m_" + "a1B2c3D4" * 5,
    "index-token": "py" + "pi-" + "a1B2c3D4" * 8,
    "vault-token": "hv" + "s." + "a1B2c3D4" * 4,
    "host-token": "dop" + "_v1_" + "a1b2c3d4" * 4,
    "mail-key": "SG" + "." + "a1B2c3D4" * 3 + "." + "e5F6g7H8" * 5,
    "web-token": "ey" + "JhbGciOiJIUzI1NiJ9" + "." + "eyJzdWIiOiIxMjM0In0" + "." + "c2lnbmF0dXJlLWhlcmU",
}


@pytest.mark.parametrize("secret", _SHAPES.values(), ids=_SHAPES)
def test_shape_of_a_credential_is_removed(secret):
    assert f"got {REDACTED} back" == Redactor().text(f"got {secret} back")


# Longer than what is searched as it stands.
_LOG = "2026-03-01T08:15:42Z worker 7 handled request 4711 of queue orders\n" * 1000


@pytest.mark.parametrize("secret", _SHAPES.values(), ids=_SHAPES)
def test_shape_of_a_credential_is_removed_from_a_long_text(secret):
    assert f"{_LOG}got {REDACTED} back\n{_LOG}" == Redactor().text(f"{_LOG}got {secret} back\n{_LOG}")


def test_long_text_without_a_secret_stays():
    assert _LOG == Redactor([_SECRET]).text(_LOG)


def test_keys_are_redacted_however_often_they_come():
    redactor = Redactor([_SECRET])
    assert [{f"a {REDACTED}": 1}] * 3 == [redactor.value({f"a {_SECRET}": 1}) for _ in range(3)]


def test_keys_are_redacted_however_many_there_are():
    redactor = Redactor([_SECRET])
    keys = redactor.value({f"{n} {_SECRET}": n for n in range(5000)})
    assert {f"{n} {REDACTED}": n for n in range(5000)} == keys


_NAMED = {
    "header": ("Authorization: Bearer abcdefgh12345678", f"Authorization: {REDACTED}"),
    "basic-header": ("authorization: Basic dXNlcjpwYXNz", f"authorization: {REDACTED}"),
    "url": ("https://user:s3cr3t@db.example/x", f"https://{REDACTED}@db.example/x"),
    "assignment": ("DB_PASSWORD=s3cr3t-value", f"DB_PASSWORD={REDACTED}"),
    "json": ('{"api_key": "s3cr3t-value"}', f'{{"api_key": "{REDACTED}"}}'),
    "query": ("GET /x?token=s3cr3t-value&a=1", f"GET /x?token={REDACTED}&a=1"),
}


@pytest.mark.parametrize(("text", "expected"), _NAMED.values(), ids=_NAMED)
def test_value_behind_a_telling_name_is_removed(text, expected):
    assert expected == Redactor().text(text)


def test_private_key_is_removed_whole():
    key = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIabc\nMIIdef\n-----END RSA PRIVATE " + "KEY-----"
    assert f"a {REDACTED} b" == Redactor().text(f"a {key} b")


def test_private_key_that_was_cut_off_is_removed_to_the_end():
    assert REDACTED == Redactor().text("-----BEGIN PRIVATE " + "KEY-----\nMIIabc\nMII")


@pytest.mark.parametrize(
    "text",
    [
        "SyntaxError: unexpected token: identifier",
        "unexpected token '}' in line 3",
        "3 tokens left",
        "the password is wrong",
        "https://db.example:5432/x",
        "git@forge.example:team/repo",
        "tasks-and-more-tasks",
        "secretary=anna",
    ],
)
def test_ordinary_words_stay(text):
    assert text == Redactor().text(text)


def test_known_value_is_removed_everywhere():
    assert f"{REDACTED} and x{REDACTED}y" == Redactor([_SECRET]).text(f"{_SECRET} and x{_SECRET}y")


def test_longer_value_goes_first():
    assert REDACTED == Redactor(["hunter2", _SECRET]).text(_SECRET)


def test_short_value_is_left_alone():
    assert "a is ci" == Redactor(["ci", "a"]).text("a is ci")


def test_every_line_of_a_value_is_removed():
    assert f"x {REDACTED} y" == Redactor(["first-line\nsecond-line\n"]).text("x second-line y")


def test_margins_of_a_value_do_not_matter():
    assert f"x{REDACTED}y" == Redactor([f"  {_SECRET}\n"]).text(f"x{_SECRET}y")


@pytest.mark.parametrize("before", ["", "a", "ab", "user:", "abc:"])
def test_value_in_base64_leaves_too_little_to_decode(before):
    encoded = base64.b64encode(f"{before}{_SECRET}:rest".encode()).decode()
    hidden = Redactor([_SECRET]).text(encoded)
    parts = "".join(hidden.split(REDACTED))
    assert REDACTED in hidden
    assert len(parts) < len(encoded) - len(_SECRET)


def test_value_in_url_safe_base64_is_removed():
    secret = "???>>>" + _SECRET
    assert REDACTED in Redactor([secret]).text(base64.urlsafe_b64encode(secret.encode()).decode())


@pytest.mark.parametrize("cut", range(4, len(_SECRET)))
def test_value_that_a_gap_cuts_in_two_leaves_neither_half(cut):
    head, tail = Redactor([_SECRET]).cut_edges("x " + _SECRET[:cut], _SECRET[cut:] + " y")
    assert "x " + REDACTED == head
    assert tail.endswith(" y")
    assert _SECRET[-4:] not in tail or len(_SECRET) - cut < 4


def test_edges_without_a_secret_stay():
    assert ("head", "tail") == Redactor([_SECRET]).cut_edges("head", "tail")


def test_nested_values_and_keys_are_redacted():
    given = {"a": [_SECRET, {"b": _SECRET, _SECRET: 1}], "n": 3, "t": (_SECRET, None)}
    assert {"a": [REDACTED, {"b": REDACTED, REDACTED: 1}], "n": 3, "t": [REDACTED, None]} == Redactor([_SECRET]).value(
        given
    )


_TEXTS = [*(t for t, _ in _NAMED.values()), *_SHAPES.values(), f"{_SECRET} {_SECRET}"]


@pytest.mark.parametrize("text", _TEXTS)
def test_redacting_twice_changes_nothing(text):
    redactor = Redactor([_SECRET])
    assert redactor.text(text) == redactor.text(redactor.text(text))


_NAMES = {
    "DEPLOY_TOKEN": True,
    "deploy_token": True,
    "DB_PASSWORD": True,
    "MY_API_KEY": True,
    "SENTRY_DSN": True,
    "CLIENT_SECRET": True,
    "FORGE_PAT": True,
    "PATH": False,
    "PWD": False,
    "OLDPWD": False,
    "SSH_AUTH_SOCK": False,
    "HOME": False,
    "LANG": False,
}


@pytest.mark.parametrize(("name", "secret"), _NAMES.items(), ids=_NAMES)
def test_name_of_a_variable_says_whether_its_value_is_secret(name, secret):
    assert ([_SECRET] if secret else []) == secret_values({name: _SECRET})


def test_named_variable_is_secret_whatever_it_is_called():
    assert [_SECRET] == secret_values({"LANG": _SECRET}, ["LANG"])


@pytest.mark.parametrize("value", ["true", "False", "null", "default"])
def test_switch_is_no_secret_although_its_name_sounds_like_one(value):
    assert [] == secret_values({"USE_TOKEN": value})
