"""Which causes databases, clusters, registries and provisioning tools tell, and of which words none is concluded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kos_retry.adapters.extraction.manifest import bundled_root

if TYPE_CHECKING:
    from conftest import Host

BOX = "\u2577\n\u2502 Error: {}\n\u2502 \n\u2502 {}\n\u2575\n"

CAUSES = [
    ("sql", "FATAL:  the database system is starting up", "transient"),
    ("sql", "psql: error: FATAL:  sorry, too many clients already", "transient"),
    ("sql", "ERROR:  40P01: deadlock detected", "transient"),
    ("sql", "app: ERROR: could not serialize access (SQLSTATE 40001)", "transient"),
    ("sql", 'psql: error: FATAL:  no pg_hba.conf entry for host "10.0.0.7"', "auth"),
    ("sql", "ERROR:  permission denied for schema public", "permission_denied"),
    ("sql", "ERROR:  53100: could not extend file", "resource"),
    ("sql", 'ERROR:  null value in column "n" of relation "t" violates not-null constraint', "deterministic"),
    ("sql", "ERROR:  canceling statement due to statement timeout", None),
    ("sql", "Error: database is locked", "transient"),
    ("sql", "Runtime error near line 3: FOREIGN KEY constraint failed (19)", "deterministic"),
    ("sql", "ERROR 1213 (40001) at line 2: Deadlock found when trying to get lock", "transient"),
    ("sql", "ERROR 1054 (42S22) at line 1: Unknown column 'n' in 'field list'", "deterministic"),
    ("containers", "Error response from daemon: Get https://r.example: net/http: TLS handshake timeout", "transient"),
    ("containers", "toomanyrequests: the rate limit is reached", "transient"),
    ("containers", "ERROR: failed to solve: write /layer: no space left on device", "resource"),
    ("containers", "unauthorized: authentication required", "auth"),
    ("containers", 'Error from server (AlreadyExists): namespaces "shop" already exists', "deterministic"),
    ("containers", 'Error from server (NotFound): pods "web" not found', None),
    ("containers", "error: timed out waiting for the condition", None),
    ("terraform", BOX.format("Error locking state: Error acquiring the state lock", "ConditionalCheckFailed"), "transient"),
    ("terraform", BOX.format("creating bucket", "api error Throttling: Rate exceeded"), "transient"),
    ("terraform", BOX.format("No valid credential sources found", "see the provider"), "auth"),
    ("terraform", BOX.format("deleting shelf", "api error AccessDenied: no"), "permission_denied"),
    ("terraform", BOX.format("Backend initialization required, please run init", "Reason: new"), "config"),
    ("terraform", BOX.format("creating shelf", "the shelf does not fit"), None),
    ("ansible", 'fatal: [a]: UNREACHABLE! => {"msg": "no route", "unreachable": true}', "transient"),
    ("ansible", 'fatal: [a]: UNREACHABLE! => {"msg": "a: Permission denied (publickey).", "unreachable": true}', "auth"),
    ("ansible", 'fatal: [a]: FAILED! => {"msg": "Could not get lock /var/lib/dpkg/lock"}', "transient"),
    ("ansible", 'fatal: [a]: FAILED! => {"msg": "Unsupported parameters for (copy) module: x"}', "deterministic"),
    ("ansible", 'fatal: [a]: FAILED! => {"msg": "non-zero return code", "rc": 3, "stderr": "late"}', None),
]  # fmt: skip

OTHERS = [
    ("sql", "ERROR:  Could not find a valid gem 'shelf' (>= 0) in any repository"),
    ("sql", '2026-11-30 10:00:00 UTC [7] ERROR:  relation "t" does not exist'),
    ("ansible", "[ERROR]: the shelf is full"),
    ("terraform", "\nError: the shelf is full\n\nso it is\n"),
    ("bundlers", "[ERROR] Failed to execute goal"),
    ("bundlers", "[SOME_CODE] 'quoted' but without a place"),
    ("containers", "error: the shelf is full"),
    ("stated", "all is well\n10 shelves"),
    ("stated", "error: it broke\n    at shelf (shelf.js:1:2)"),
    ("stated", "ERROR: no cache (ignored)\ndone"),
    ("formatters", "[warn] shelf.js\nall is well"),
    ("hooks", "shelf........Passed"),
]


@pytest.mark.parametrize(("name", "output", "kind"), CAUSES)
def test_cause_of_what_a_tool_says(host: Host, tmp_path: Path, name: str, output: str, kind: str | None) -> None:
    (finding,) = _sure(host, tmp_path, name, output)

    assert kind == (finding.get("cause") or {}).get("kind")


@pytest.mark.parametrize(("name", "output"), OTHERS)
def test_nothing_is_sure_of_what_others_may_say(host: Host, tmp_path: Path, name: str, output: str) -> None:
    assert [] == _sure(host, tmp_path, name, output)


def test_a_lock_beside_a_mistake_is_not_passing(host: Host, tmp_path: Path) -> None:
    output = 'psql:a.sql:1: ERROR:  deadlock detected\npsql:a.sql:2: ERROR:  relation "t" does not exist'

    kinds = [(finding.get("cause") or {}).get("kind") for finding in _sure(host, tmp_path, "sql", output)]

    assert [None, "deterministic"] == kinds


def _sure(host: Host, directory: Path, name: str, output: str) -> list[dict[str, Any]]:
    """Return the findings of an output, guesses left out."""
    (directory / "output.log").write_text(output + "\n", encoding="utf-8")
    request = {
        "protocol": 1,
        "attempt": {"argv": ["sh", "job.sh"], "exit_code": 1},
        "workspace": "/srv/app",
        "streams": {"output": {"path": str(directory / "output.log")}},
        "reports": [],
        "limits": {"findings": 200},
    }
    findings: list[dict[str, Any]] = host.ask(bundled_root() / name, request)["answer"]["findings"]
    return [finding for finding in findings if finding["confidence"] != "guess"]
