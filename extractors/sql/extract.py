"""What the clients of SQL databases say of a refused connection or statement.

The same statement passes later where another session was in its way, or the server was not ready; what is wrong
with the statement, the schema or the rows stays wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
MAX_MESSAGE_BYTES = 1024
MAX_KEPT = 2000

# The two blanks behind the level are the server's mark.
_SERVER = re.compile(
    r"^(?P<before>.{0,300}?)(?P<level>ERROR|FATAL|PANIC):  (?:(?P<state>[0-9A-Z]{5}): )?(?P<said>\S.{0,2000})$"
)
# Others print two blanks there, too: what stands alone has to speak of a database.
_SPEAKS = re.compile(
    r"\b(?:relation|column|table|constraint|database|schema|role|index|transaction|statement|serialize|deadlock|function|operator|sequence"
    r"|syntax error at|permission denied for|must be owner|null value|value too long|invalid input|out of range|division by zero|subquery"
    r"|connection slots|too many clients|authentication|terminating connection|data type|aggregate|cursor|trigger|extension|tablespace)\b"
)
_CLIENTS = frozenset({"psql", "pg_restore", "pg_dump", "pgbench"})
_TOOL = re.compile(r"^[a-z_]{2,40}: ")
_SCRIPT = re.compile(r"^\w{1,40}:(?P<path>[^:]{1,400}):(?P<line>\d{1,9}): $")
_DRIVER = re.compile(r"^(?:.{0,200}?\b)?ERROR: (?P<said>.{1,1000}?) \(SQLSTATE (?P<state>[0-9A-Z]{5})\)$")
_CLIENT = re.compile(
    r"^(?:psql|pgbench|initdb|vacuumdb|reindexdb|clusterdb|(?:create|drop)(?:db|user)|pg_[a-z]{2,30}): (?:error|fatal|FATAL): (?P<said>.{1,2000})$"
)
_OLD_CLIENT = re.compile(r"^psql: (?P<said>(?:could not|FATAL|server closed|timeout|connection) .{1,1000})$")
_NOT_READY = re.compile(r"^(?P<said>\S{1,300}:\d{1,5} - (?:no response|rejecting connections))$")
_LEVELS = ("ERROR", "FATAL", "PANIC")
_BELOW = re.compile(
    r"^(?:DETAIL|HINT|CONTEXT|QUERY|LOCATION|SCHEMA NAME|TABLE NAME|CONSTRAINT NAME):  |^LINE \d{1,9}: "
)
_DETAIL = re.compile(r"^DETAIL:  (.{1,1000})$")
# Whose turn it was, by process, and what the row held, differ every time.
_CIRCUMSTANCE = ("Process ", "Failing row contains")
_RAISED = re.compile(r"^CONTEXT:  .{1,1000} at RAISE$")

_EMBEDDED = re.compile(
    r"^(?:Parse error|Runtime error|Error)(?P<where>(?: in [^\s:]{1,200})?:? near line (?P<line>\d{1,9})|: in prepare,|: stepping,)?:? (?P<said>.{1,1000}?)"
    r"(?: \(\d{1,5}\))?$"
)
_EMBEDDED_WORDS = re.compile(
    r"no such (?:table|column|function|index|view|collation|module)\b|near \".{0,100}\": syntax error|constraint failed"
    r"|database (?:table |schema )?is locked|database disk image is malformed|file is not a database|database or disk is full"
    r"|unable to open database|attempt to write a readonly database|disk I/O error|incomplete input|already exists$|has no column named|ambiguous column name"
)

_OTHER = re.compile(
    r"^(?:ERROR (?P<code>\d{4}) \((?P<state>\w{5})\)(?: at line (?P<line>\d{1,9})(?: in file: '(?P<path>.{1,400}?)')?)?"
    r"|mysql\w{1,20}: Got error: (?P<dump>\d{4})): (?P<said>.{1,1000}?)$"
)
_ADMIN = re.compile(r"^(?:mysqladmin|mariadb-admin): (?P<said>connect to server at .{1,300} failed)$")

_READ = (_SERVER, _DRIVER, _CLIENT, _OLD_CLIENT, _NOT_READY, _BELOW, _EMBEDDED, _OTHER, _ADMIN)
# Class or code of SQLSTATE, the longer one first: ISO/IEC 9075, and PostgreSQL's appendix A.
_STATES = {
    "08": "transient", "40": "transient", "53300": "transient", "53": "resource", "55P03": "transient", "55006": "transient",
    "57P01": "transient", "57P02": "transient", "57P03": "transient", "57": None, "28": "auth", "42501": "permission_denied",
    "58": None, "P0001": None, "XX": None, "45": None,
}  # fmt: skip
# MySQL's own numbers, where its SQLSTATE only says that there is an error.
_NUMBERS = {
    "transient": {1040, 1053, 1203, 1205, 1213, 1226, 1927, 2002, 2003, 2005, 2006, 2012, 2013, 2055, 3572},
    "auth": {1045, 1130, 1250, 1251, 1698, 1862, 2059},
    "permission_denied": {1044, 1142, 1143, 1227, 1290, 1370, 1410},
    "resource": {1021, 1037, 1038, 1041, 1114},
    None: {1317, 1644, 3024, 1028, 1030},
}
_WORDS = tuple(
    (kind, re.compile(words))
    for kind, words in (
        ("auth", r"authentication failed|no password supplied|no pg_hba\.conf entry|^FATAL: role \"[^\"]{1,200}\" (?:does not exist|is not permitted to log in)"),
        ("permission_denied", r"permission denied|must be (?:owner|superuser|member)|readonly database|read-only transaction"),
        ("transient",
         (r"deadlock detected|could not serialize|lock timeout|could not obtain lock|connection slots|too many (?:clients|connections)"
         r"|the database system is |terminating connection|server closed the connection|Connection (?:refused|reset|timed out)|timeout expired"
         r"|could not translate host name|could not connect to server|on socket .{1,300} failed: No such file|being accessed by other users"
         r"|conflict with recovery|SSL SYSCALL error|is locked|no response$|rejecting connections$|Network is unreachable|No route to host|connect to server at")),
        ("resource", r"No space left on device|out of (?:shared )?memory|disk is full|could not extend file|could not resize shared memory"),
        (None, r"due to (?:statement timeout|user request|idle-in-transaction)|idle-session timeout|disk I/O error|could not (?:read|write|access) |internal error"),
    )
)  # fmt: skip
_FIXES = {
    "auth": "check the user, the password and what the server admits",
    "permission_denied": "grant this user what it needs",
    "resource": "give the database server more room",
    "deterministic": "correct the statement, the schema or the rows",
}
# Only follows from an error before it.
_FOLLOWS = "current transaction is aborted"


@dataclass(slots=True)
class Fault:
    """One refusal, with the place in a script where that is told."""

    said: str
    first: Line
    last: Line
    cause: str | None
    path: str | None = None
    line: int | None = None
    detail: str = ""
    sure: bool = True


def extract(request: Request) -> Answer:
    """Answer with the refusals of all streams, each once."""
    faults = list(_faults(request))
    asked = any(word.rpartition("/")[2] in _CLIENTS for word in request.argv)
    if any(not f.said.startswith(_FOLLOWS) for f in faults):
        faults = [f for f in faults if not f.said.startswith(_FOLLOWS)]
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    for fault in faults:
        key = (fault.said, fault.detail, fault.path, fault.line)
        if key not in seen and len(answer.findings) < request.max_findings:
            seen.add(key)
            _add(answer, request, fault, sure=fault.sure or asked)
    answer.drop_mixed_transience()
    return answer


def _faults(request: Request) -> Iterator[Fault]:
    kept = 0
    before: Fault | None = None
    watch = Watch(*_READ)
    for line in request.lines():
        if not watch.sees(line):
            continue
        text = line.text.rstrip()
        if before is not None and before.first.source == line.source and _of(before, text, line):
            continue
        found = next((fault for read in _READERS if (fault := read(text, line))), None)
        if found is not None:
            if before is not None:
                yield before
            kept += 1
            before = found
        if kept >= MAX_KEPT:
            break
    if before is not None:
        yield before


def _of(fault: Fault, text: str, line: Line) -> bool:
    """Take what a server says below an error; return whether the line was one of these."""
    if not _BELOW.match(text):
        return False
    fault.sure = fault.sure or fault.first.text.startswith(_LEVELS)
    if _RAISED.match(text):
        # A function refused it by its own rules, which may be about anything.
        fault.cause = None
    detail = _DETAIL.match(text)
    if detail and not detail[1].startswith(_CIRCUMSTANCE):
        fault.detail = detail[1]
        fault.last = line
    return True


def _of_server(text: str, line: Line) -> Fault | None:
    if ":  " not in text or not (server := _SERVER.match(text)):
        return None
    before = server["before"]
    cause = _by_state(server["state"]) if server["state"] else _by_words(f"{server['level']}: {server['said']}")
    fault = Fault(server["said"], line, line, cause)
    if script := _SCRIPT.match(before):
        fault.path, fault.line = script["path"], int(script["line"])
    elif before and not _TOOL.match(before):
        # In a server's log it is one of many, and some client's to judge.
        fault.sure = False
    elif not before and not server["state"]:
        fault.sure = _SPEAKS.search(server["said"]) is not None
    return fault


def _of_client(text: str, line: Line) -> Fault | None:
    client = _CLIENT.match(text) or _OLD_CLIENT.match(text) or _NOT_READY.match(text) or _ADMIN.match(text)
    return Fault(client["said"], line, line, _by_words(client["said"])) if client else None


def _of_driver(text: str, line: Line) -> Fault | None:
    driver = _DRIVER.match(text) if text.endswith(")") and "(SQLSTATE " in text else None
    return Fault(driver["said"], line, line, _by_state(driver["state"])) if driver else None


def _of_embedded(text: str, line: Line) -> Fault | None:
    embedded = _EMBEDDED.match(text)
    if not embedded or not (embedded["where"] or _EMBEDDED_WORDS.search(embedded["said"])):
        return None
    fault = Fault(embedded["said"], line, line, _by_words(embedded["said"]))
    fault.line = int(embedded["line"]) if embedded["line"] else None
    return fault


def _of_other(text: str, line: Line) -> Fault | None:
    other = _OTHER.match(text)
    if not other:
        return None
    code = other["code"] or other["dump"]
    cause = next((kind for kind, codes in _NUMBERS.items() if int(code) in codes), "deterministic")
    at = int(other["line"]) if other["line"] else None
    return Fault(f"ERROR {code}: {other['said']}", line, line, cause, other["path"], at)


_READERS: tuple[Callable[[str, Line], Fault | None], ...] = (
    _of_server,
    _of_client,
    _of_driver,
    _of_embedded,
    _of_other,
)


def _by_state(state: str) -> str | None:
    known = next((s for s in (state, state[:2]) if s in _STATES), None)
    return _STATES[known] if known else "deterministic"


def _by_words(said: str) -> str | None:
    return next((kind for kind, words in _WORDS if words.search(said)), "deterministic")


def _add(answer: Answer, request: Request, fault: Fault, *, sure: bool) -> None:
    cause = None
    if fault.cause:
        cause = {
            "kind": fault.cause,
            "rule": f"sql-{fault.cause.replace('_', '-')}",
            "evidence": cut_bytes(fault.first.text.strip(), 500),
        }
        if fault.cause in _FIXES:
            cause["fix"] = _FIXES[fault.cause]
    message = f"{fault.said}: {fault.detail}" if fault.detail else fault.said
    answer.add(
        "infrastructure" if fault.cause in ("transient", "auth", "resource") else "diagnostic",
        code=cut_bytes(fault.said, MAX_NAME_BYTES),
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=request.relative(fault.path) if fault.path else None,
        line=fault.line,
        evidence=[span(fault.first, fault.last)],
        confidence="likely" if sure else "guess",
        cause=cause,
    )


if __name__ == "__main__":
    main(extract)
