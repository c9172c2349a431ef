"""Tasks of Ansible that failed, hosts that it could not reach, and playbooks that it cannot read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
MAX_MESSAGE_BYTES = 1024
MAX_RESULT_LINES = 400
MAX_KEPT = 2000
# How far below an error its place stands.
PLACE_LINES = 12

_TASK = re.compile(r"^(?:TASK|RUNNING HANDLER) \[(.{1,300}?)\] \*{3,}$")
_PLAY = re.compile(r"^PLAY(?: \[.{0,300}\]| RECAP)? \*{3,}$")
_FAILED = re.compile(
    r"^(?:fatal|failed): \[(?P<host>[^\]]{1,300}?)(?: -> .{1,200}?)?\]: (?P<how>FAILED|UNREACHABLE)! => ?(?P<result>.*)$"
    r"|^failed: \[(?P<of>[^\]]{1,300}?)(?: -> .{1,200}?)?\] \(item=.{0,2000}?\) => ?(?P<item>.*)$"
)
_ADHOC = re.compile(
    r"^(?P<host>\S{1,300}) \| (?P<how>FAILED|UNREACHABLE)!? (?:=> ?(?P<result>\{.*)|\| rc=(?P<rc>-?\d{1,5}) >>)$"
)
_RECAP = re.compile(r"^(\S{1,300})\s{1,80}: ok=\d.{0,60}?\bunreachable=(\d{1,6})\s{1,8}failed=(\d{1,6})\b")
_STATED = re.compile(r"^(?:ERROR! |\[ERROR\]: )(\S.{0,2000})$")
_ORIGIN = re.compile(r"^Origin: (\S.{0,400}?):(\d{1,9})(?::(\d{1,9}))?$")
_APPEARS = re.compile(r"The error appears to be in '([^']{1,400})': line (\d{1,9}), column (\d{1,9})")
_READ = (_TASK, _PLAY, _FAILED, _ADHOC, _RECAP, _STATED, _ORIGIN, _APPEARS, re.compile(r"^\.\.\.ignoring$"))
_FIELD = re.compile(r"^\s{2,8}\"?(msg|stderr|stdout|rc)\"?: (.{0,4000}?),?$")
# Of a line that is too long for JSON to be read from.
_MSG = re.compile(r"\"msg\": \"([^\"]{1,1000})")
_SYNTAX = "Syntax Error while loading YAML."
# The words of the runner, in front of those of the task.
_WRAPPED = re.compile(r"^(?:Task failed: )?(?:(?:Action|Module) failed: )?(?:Unexpected AnsibleActionFail error: )?")
# What says only that something else failed.
_EMPTY = ("non-zero return code", "MODULE FAILURE", "All items completed", "One or more items failed")

_CAUSES = tuple(
    (kind, re.compile(words))
    for kind, words in (
        ("auth", r"Permission denied \(publickey|Host key verification failed|[Mm]issing sudo password|a password is required|Incorrect sudo password|Authentication fail"),
        ("transient",
         (r"Failed to connect to the host|Connection (?:refused|reset|timed out|closed)|No route to host|Network is unreachable|Timeout when waiting for"
         r"|Timeout \(\d{1,5}s\) waiting for|[Cc]ould not get lock|Failed to lock apt|Temporary failure|Name or service not known|timed out"
         r"|HTTP Error (?:429|50[234])|Status code was (?:429|50[234])|Could not resolve host")),
        ("permission_denied", r"[Pp]ermission denied|Operation not permitted"),
        ("resource", r"No space left on device|not enough space"),
        ("deterministic",
         (r"is undefined|undefined variable|Could not find or access|Unsupported parameters|couldn't resolve module|was not found|could not be found"
         r"|YAML|Syntax Error|not a valid attribute|conflicting action|No package matching|missing required arguments|value of .{1,100} must be one of|no action detected")),
    )
)  # fmt: skip
_FIXES = {
    "auth": "give it a key or password that the host accepts",
    "permission_denied": "give the remote user access, or let the task become another one",
    "resource": "free space on the host",
    "deterministic": "correct the task, its variables or the playbook",
}


@dataclass(slots=True)
class Fault:
    """One task that failed on one host, or one error of the runner itself."""

    name: str
    host: str
    task: int
    first: Line
    last: Line
    said: list[str] = field(default_factory=list)
    message: str = ""
    path: str | None = None
    line: int | None = None
    column: int | None = None
    unreachable: bool = False


class Reader:
    """Reads what one stream says of one run."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.stated: list[Fault] = []
        self.failures: dict[str, int] = {}
        self.played = False
        self._task = ""
        self._number = 0
        self._place: tuple[str, int, int | None] | None = None
        self._open: Fault | None = None
        self._left = 0
        self._watch = Watch(*_READ)

    def feed(self, line: Line) -> None:
        """Take the next line."""
        if self._open is None and not self._left and not self._watch.sees(line):
            return
        text = line.text.rstrip()
        if self._open is not None and self._continue(self._open, text, line):
            return
        if self._progress(text):
            return
        if failed := _FAILED.match(text):
            how = failed["how"] == "UNREACHABLE"
            self._fail(failed["host"] or failed["of"], failed["result"] or failed["item"] or "", line, unreachable=how)
        elif adhoc := _ADHOC.match(text):
            self._fail(adhoc["host"], adhoc["result"] or "", line, unreachable=adhoc["how"] == "UNREACHABLE")
            self.faults[-1].message = f"non-zero return code {adhoc['rc']}" if adhoc["rc"] else ""
        elif place := _ORIGIN.match(text) or _APPEARS.search(text):
            self._at(place)
        elif text == "...ignoring":
            self._ignore()
        elif stated := _STATED.match(text):
            self._state(stated[1], line)
        elif self._left:
            self._below_stated(text)

    def _progress(self, text: str) -> bool:
        """Take a heading, or a line of the recap; return whether it was one."""
        if task := _TASK.match(text):
            self._task, self._place = task[1], None
            self._number += 1
        elif _PLAY.match(text):
            self._task, self.played = "", True
        elif recap := _RECAP.match(text):
            self.failures[recap[1]] = int(recap[2]) + int(recap[3])
        else:
            return False
        return True

    def _fail(self, host: str, result: str, line: Line, *, unreachable: bool) -> None:
        fault = Fault(self._task, host, self._number, line, line, unreachable=unreachable)
        if appears := _APPEARS.search(result):
            fault.path, fault.line, fault.column = _where(appears)
        elif self._place:
            fault.path, fault.line, fault.column = self._place
        if result:
            fault.said.append(result)
        if len(self.faults) < MAX_KEPT:
            self.faults.append(fault)
        self._open = fault if result in ("", "{") else None
        self._left = 0

    def _continue(self, fault: Fault, text: str, line: Line) -> bool:
        """Take a line of a result that spans several; return whether it was one."""
        inside = text.startswith((" ", "}")) or not text
        if not inside or len(fault.said) >= MAX_RESULT_LINES:
            self._open = None
            return False
        if text:
            fault.said.append(text)
            fault.last = line
        if text == "}":
            self._open = None
        return True

    def _ignore(self) -> None:
        if self.faults:
            task = self.faults[-1].task
            host = self.faults[-1].host
            self.faults = [f for f in self.faults if (f.task, f.host) != (task, host)]

    def _state(self, said: str, line: Line) -> None:
        """Take an error of the runner; one of a task is told again with its host."""
        if not self._task and not said.startswith("Task failed: ") and len(self.stated) < MAX_KEPT:
            self.stated.append(Fault("", "", 0, line, line, message=said))
            self._left = PLACE_LINES

    def _below_stated(self, text: str) -> None:
        self._left -= 1
        fault = self.stated[-1]
        if text == _SYNTAX:
            fault.message = _SYNTAX.rstrip(".")
        elif fault.message == _SYNTAX.rstrip(".") and text.strip():
            fault.message += f": {text.strip()}"

    def _at(self, place: re.Match[str]) -> None:
        where = _where(place)
        if self._left:
            self.stated[-1].path, self.stated[-1].line, self.stated[-1].column = where
            self._left = 0
        elif self._place is None:
            self._place = where

    def decisive(self) -> list[Fault]:
        """Return the errors that count: on each host the last ones, as many as the recap says, then the runner's own.

        What was rescued came before them.
        """
        kept: set[tuple[str, int]] = set()
        for host in {f.host for f in self.faults}:
            tasks = sorted({f.task for f in self.faults if f.host == host})
            count = self.failures.get(host, len(tasks))
            kept |= {(host, task) for task in tasks[len(tasks) - min(count, len(tasks)) :]}
        return [f for f in self.faults if (f.host, f.task) in kept] + self.stated


def _where(place: re.Match[str]) -> tuple[str, int, int | None]:
    return place[1], int(place[2]), int(place[3]) if place[3] else None


def extract(request: Request) -> Answer:
    """Answer with the tasks that failed and the runner's own errors, each once."""
    readers = request.read(Reader)
    answer = Answer()
    seen: set[tuple[str, str]] = set()
    asked = any(word.rpartition("/")[2].startswith("ansible") for word in request.argv)
    for reader in readers.values():
        for fault in reader.decisive():
            message = fault.message if not fault.said else _message(fault)
            name = fault.name or message
            sure = bool(fault.host or fault.path or reader.played or asked)
            if message and (name, message) not in seen and len(answer.findings) < request.max_findings:
                seen.add((name, message))
                _add(answer, request, fault, name, message, sure=sure)
    answer.drop_mixed_transience()
    return answer


def _message(fault: Fault) -> str:
    """Return what the task's result says, and the last words of the command where it only says that one failed."""
    result = _result(fault.said)
    said = _WRAPPED.sub("", _text(result.get("msg")).strip())
    first = said.splitlines()[0].strip() if said else ""
    if not first or first.startswith(_EMPTY):
        words = _last_words(result)
        code = f" {result['rc']}" if "rc" in result else ""
        first = f"{first or 'failed'}{code}" + (f": {words}" if words else "")
    return f"UNREACHABLE: {first}" if fault.unreachable else first


def _result(said: list[str]) -> dict[str, Any]:
    """Return the fields of a result in JSON, or those that lines of JSON or YAML show."""
    try:
        value = json.loads("\n".join(said))
        return value if isinstance(value, dict) else {}
    except (ValueError, RecursionError):
        pass
    found: dict[str, Any] = {}
    for number, text in enumerate(said):
        if shown := _FIELD.match(text):
            block = shown[2] in ("|", "|-", ">", ">-") and number + 1 < len(said)
            found.setdefault(shown[1], (said[number + 1] if block else shown[2]).strip().strip("\"'"))
        elif "msg" not in found and (cut := _MSG.search(text)):
            found["msg"] = cut[1]
    return found


def _last_words(result: dict[str, Any]) -> str:
    for stream in ("stderr", "module_stderr", "stdout"):
        lines = [line.strip() for line in _text(result.get(stream)).splitlines() if line.strip()]
        if lines:
            return lines[-1]
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _add(answer: Answer, request: Request, fault: Fault, name: str, message: str, *, sure: bool) -> None:
    kind = next((kind for kind, words in _CAUSES if words.search(message)), None)
    if kind is None and (fault.unreachable or not fault.host):
        kind = "transient" if fault.unreachable else "deterministic"
    cause = None
    if kind:
        cause = {"kind": kind, "rule": f"ansible-{kind.replace('_', '-')}", "evidence": cut_bytes(message, 500)}
        if kind in _FIXES:
            cause["fix"] = _FIXES[kind]
    answer.add(
        "diagnostic",
        code=cut_bytes(name, MAX_NAME_BYTES),
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=request.relative(fault.path) if fault.path else None,
        line=fault.line,
        column=fault.column,
        evidence=[span(fault.first, fault.last)],
        confidence="likely" if sure else "guess",
        cause=cause,
    )


if __name__ == "__main__":
    main(extract)
