"""What Git refuses, cannot merge or cannot reach."""

from __future__ import annotations

import re
from typing import NamedTuple

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 200


class Rule(NamedTuple):
    """A sentence of Git's: group 1 names what failed, ``path`` the file; the cause, and what a human can do.

    ``weak`` ones only follow from others, and count where they stand alone.
    """

    name: str
    cause: str | None
    pattern: re.Pattern[str]
    fix: str | None = None
    weak: bool = False


def _rule(name: str, cause: str | None, pattern: str, fix: str | None = None, weak: bool = False) -> Rule:
    return Rule(name, cause, re.compile(pattern), fix, weak)


CREDENTIAL = "give Git a credential for this remote, or renew it"
RULES = (
    _rule(
        "conflict",
        "deterministic",
        r"^CONFLICT \(.{1,40}?\): ((?:Merge conflict in )?(?P<path>\S{1,400}).{0,200})$",
        "resolve the conflict",
    ),
    _rule(
        "rejected",
        "deterministic",
        r"^ {0,2}! \[(?:remote )?(?:rejected|failure)\] {1,40}(.{1,200} -> .{1,200}? {1,4}\(.{1,200}\))$",
        "bring the branch up to date, or do what the remote's rules ask",
    ),
    _rule("lock", "transient", r"^(?:fatal|error): Unable to create '(?P<path>.{1,400}\.lock)': File exists"),
    _rule("credential", "auth", r"^fatal: (could not read (?:Username|Password) for .{1,300})$", CREDENTIAL),
    _rule(
        "credential",
        "auth",
        r"^(?:fatal|remote): (Authentication failed.{0,300}|Invalid username or (?:password|token).{0,60})$",
        CREDENTIAL,
    ),
    _rule("credential", "auth", r"^(?:.{1,100}: )?(Permission denied \(publickey.{0,60}\))", CREDENTIAL),
    _rule("host-key", "config", r"^(Host key verification failed)\.", "add the host's key to the known hosts"),
    _rule(
        "status",
        None,
        r"^(?:fatal: unable to access '.{1,400}'|error: RPC failed): (.{0,100}(?:returned error:|HTTP) (?P<status>\d{3}).{0,100})$",
    ),
    _rule("status", None, r"^error: RPC failed; (HTTP (?P<status>\d{3}).{0,200})$"),
    _rule(
        "certificate",
        "config",
        r"^fatal: unable to access '.{1,400}': (.{0,100}certificate.{0,200})$",
        "make the server's certificate one that is trusted here",
    ),
    _rule("network", "transient", r"^fatal: unable to access '.{1,400}': (.{1,300})$"),
    _rule(
        "network",
        "transient",
        r"^(?:ssh: )?(connect to host .{1,200}: (?:Connection|Operation|No route|Network).{1,60}|Could not resolve hostname .{1,200}|kex_exchange_identification: .{1,100})$",
    ),
    _rule(
        "network",
        "transient",
        r"^(?:fatal|error): (RPC failed; curl .{1,300}|early EOF|the remote end hung up.{0,60}|.{0,40}unexpected disconnect.{0,80}|.{0,40}[Cc]onnection (?:reset|timed out|refused).{0,60})$",
    ),
    _rule(
        "missing",
        "deterministic",
        r"^(?:fatal|remote): ([Rr]epository .{0,300}not found.{0,20}|couldn't find remote ref .{1,200}|Remote branch .{1,200} not found.{0,60})$",
        "correct the name of the repository or the branch, or get access to it",
    ),
    _rule(
        "pathspec",
        "deterministic",
        r"^error: (pathspec '.{1,300}' did not match .{1,60})$",
        "correct the name of the branch or the file",
    ),
    _rule("patch", "deterministic", r"^error: (patch failed: (?P<path>[^:]{1,400})):\d{1,9}$"),
    _rule(
        "overwritten",
        "deterministic",
        r"^error: (Your local changes to the following files would be overwritten by \w{1,20})",
        "commit or stash the changes",
    ),
    _rule("unreachable", None, r"^fatal: (Could not read from remote repository)\.$", None, True),
    _rule("not-applied", "deterministic", r"^(?:error: )?([Cc]ould not apply) [0-9a-f]{4,40}.{0,200}$", None, True),
    _rule(
        "refused",
        "deterministic",
        r"^fatal: ((?:not a git repository|bad (?:revision|object|config|default)|ambiguous argument|detected dubious|refusing|destination path|.{1,300} does not appear to be a git|invalid|no such|need(?:ed)? a|cannot|a branch named|'.{1,200}' is (?:not|already)|You |There is no|Not possible|Exiting because|unable to auto-detect|Unable to|unknown|bad|ref|reference|tag '|.{1,80}not found|no rebase|No configured|The current branch).{0,300})$",
        None,
        True,
    ),
)
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524})
_REMOTE = re.compile(r"^remote: (?!Enumerating|Counting|Compressing|Total|Resolving)(\S.{0,300})$")


class Hit(NamedTuple):
    """A sentence that was found, and what the other side said before it."""

    rule: Rule
    said: re.Match[str]
    line: Line
    remote: str


def extract(request: Request) -> Answer:
    """Answer with what Git says went wrong, each once."""
    hits: list[Hit] = []
    remote = ""
    watch = Watch(_REMOTE, *(rule.pattern for rule in RULES))
    for line in request.lines():
        if not watch.sees(line):
            continue
        text = line.text.rstrip()
        hit = _hit(text, line, remote)
        if hit is not None and len(hits) < 10 * request.max_findings:
            hits.append(hit)
        elif said := _REMOTE.match(text):
            remote = said[1]
    answer = Answer()
    strong = [hit for hit in hits if not hit.rule.weak]
    picked = "".join(": could not apply" for hit in hits[-1:] if hit.rule.name == "not-applied")
    seen: set[str] = set()
    for hit in strong or hits[:1]:
        _add(answer, request, hit, seen, picked if hit.rule.name == "conflict" else "")
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _hit(text: str, line: Line, remote: str) -> Hit | None:
    if ":" not in text and "!" not in text and "." not in text:
        return None
    for rule in RULES:
        if said := rule.pattern.match(text):
            return Hit(rule, said, line, remote)
    return None


def _add(answer: Answer, request: Request, hit: Hit, seen: set[str], more: str) -> None:
    named = hit.said.groupdict()
    path = request.relative(named["path"]) if named.get("path") else None
    locked = hit.rule.name == "lock"
    name = f"{path}: File exists" if locked else " ".join(hit.said[1].split())
    if name in seen:
        return
    seen.add(name)
    if hit.rule.name == "rejected" and hit.remote:
        more = f": {hit.remote}"
    cause = _status(int(named["status"])) if named.get("status") else hit.rule.cause
    outside = cause in ("transient", "auth", "config") and not locked
    answer.add(
        "infrastructure" if outside else "diagnostic",
        code=cut_bytes(name, MAX_NAME_BYTES),
        message=cut_bytes(name + more, MAX_MESSAGE_BYTES),
        path=path,
        evidence=[span(hit.line)],
        cause=_cause(hit, cause) if cause else None,
    )


def _status(status: int) -> str | None:
    if status in TRANSIENT_STATUS:
        return "transient"
    if status in (401, 403, 407):
        return "auth"
    return "deterministic" if 400 <= status < 500 else None


def _cause(hit: Hit, kind: str) -> dict[str, str]:
    fix = hit.rule.fix or (CREDENTIAL if kind == "auth" else None)
    evidence = cut_bytes(hit.line.text.strip(), 500)
    return {"kind": kind, "rule": f"git-{hit.rule.name}", "evidence": evidence, **({"fix": fix} if fix else {})}


if __name__ == "__main__":
    main(extract)
