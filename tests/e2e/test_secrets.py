"""A secret that a command prints or is handed stays on the screen: no file and no line of ours holds it."""

from __future__ import annotations

import base64
import json

import pytest

PLAIN = "correct-horse-battery"
# Put together here, so that no scanner takes this file for a leak.
SHAPED = "ghp" + "_" + "a1B2c3D4" * 5
LINES = "first-line-of-the-key\nsecond-line-of-the-key"
ENVIRONMENT = {"PLAIN_WORD": PLAIN, "DB_PASSWORD": "staple-of-the-database", "SIGNING_SECRET": LINES}
BASE64 = base64.b64encode(PLAIN.encode()).decode()
BASE64_INSIDE = base64.b64encode(f"user:{PLAIN}".encode()).decode()

# What is printed, and what must not be found anywhere.
SECRETS = {
    "variable that was named": (PLAIN, [PLAIN]),
    "variable named like a secret": ("staple-of-the-database", ["staple-of-the-database"]),
    "value of several lines": (LINES, LINES.splitlines()),
    "line of a value of several lines": (LINES.splitlines()[1], LINES.splitlines()[1:]),
    "base64 of it": (BASE64, [BASE64[:-4]]),
    "base64 of it in a longer text": (BASE64_INSIDE, [BASE64_INSIDE[8:-4]]),
    "well-known shape": (SHAPED, [SHAPED]),
    "coloured in its middle": (f"{PLAIN[:8]}\x1b[1m{PLAIN[8:]}\x1b[0m", [PLAIN]),
    "overprinted in its middle": (f"{PLAIN[:8]}x\b{PLAIN[8:]}", [PLAIN]),
}
# Says the secret on both streams, and was called with it.
SAY = 'printf "error: cannot log in with %s\\n" "$1"; printf "error: denied for %s!\\n" "$1" >&2; exit 1'


def leak(kos_retry, said):
    """Run a command that leaks a secret; its reports are written where the sessions are."""
    reports = [
        word for form in ("text", "json", "markdown") for word in ("--report", f"{form}:{kos_retry.home / form}")
    ]
    options = ("--mask-env", "PLAIN_WORD", "--guidance", "file", "--delay", "0s", *reports)
    return kos_retry("run", *options, "--", "sh", "-c", SAY, "sh", said, environment=ENVIRONMENT)


def holders(kos_retry, needles):
    """Return the names of the files that hold a needle, plain or as JSON writes it."""
    forms = [form.encode() for needle in needles for form in (needle, json.dumps(needle)[1:-1])]
    files = [path for path in kos_retry.home.rglob("*") if path.is_file()]
    return {path.name for path in files if any(form in path.read_bytes() for form in forms)}


@pytest.mark.parametrize(("said", "needles"), SECRETS.values(), ids=SECRETS.keys())
def test_secret_is_in_no_file_and_no_line_of_ours(kos_retry, said, needles):
    done = leak(kos_retry, said)
    lines = {line for line in done.said if any(needle in line for needle in needles)}
    assert holders(kos_retry, needles) | lines == set()


def test_secret_on_the_screen_is_left_alone(kos_retry):
    assert leak(kos_retry, PLAIN).stdout.decode().splitlines()[0] == f"error: cannot log in with {PLAIN}"


def test_secret_that_observe_reads_is_in_no_envelope(kos_retry):
    log = f"error: cannot log in with {PLAIN}\nerror: bad token {SHAPED}\n".encode()
    words = ("observe", "--exit-code", "1", "--log", "-", "--mask-env", "PLAIN_WORD")
    done = kos_retry(*words, stdin=log, environment=ENVIRONMENT)
    assert [needle for needle in (PLAIN, SHAPED) if needle.encode() in done.stdout] == []


def test_secret_in_an_envelope_is_in_no_session(kos_retry):
    envelope = json.dumps({"exit_code": 1, "error_message": f"denied for {ENVIRONMENT['DB_PASSWORD']}"})
    kos_retry("next", "--session", "s1", stdin=envelope.encode(), environment=ENVIRONMENT)
    assert holders(kos_retry, [ENVIRONMENT["DB_PASSWORD"]]) == set()
