"""What PHP, Perl, Ruby, Lua and awk cannot parse, and what their programs die of."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
MAX_KEPT = 2000

_PHP = re.compile(
    r"^(?:PHP )?(?P<level>Parse|Fatal|Compile|Core|Recoverable fatal) error: {1,2}"
    r"(?:Uncaught (?P<type>[\w\\]{1,200})(?:: )?)?(?P<said>.{0,1000}?) in (?P<path>\S{1,400}?)(?: on line |:)(?P<line>\d{1,9})$"
)
_PERL = re.compile(
    r"^(?P<said>\S.{0,2000}?) at (?P<path>\S{1,400}) line (?P<line>\d{1,9})(?:, (?:<\w{1,30}> (?:line|chunk) \d{1,9}|near .{1,400}))?\.?$"
)
# The progress of a test harness on the same line.
_PROGRESS = re.compile(r"^\S{1,300} \.{2,60} (?:\d{1,9}/[\d?]{1,9} )?")
_PERL_ENDS = ("#", "BEGIN failed", "Compilation failed", "Execution of")
_PERL_PARSE = (
    "syntax error",
    "Can't locate",
    "Can't find string terminator",
    "Missing right curly",
    "Global symbol",
    "Bareword",
    "Unmatched",
)
_RUBY = re.compile(
    r"^(?P<path><internal:[^>]{1,300}>|[^\s:]{1,400}):(?P<line>\d{1,9}):in [`'].{1,300}?': (?P<said>.{0,1000}?) ?\((?P<type>[A-Z]\w{0,100}(?:::\w{1,100}){0,6})\)$"
)
_RUBY_FROM = re.compile(r"^\tfrom (?P<path>[^\s:]{1,400}):(?P<line>\d{1,9}):in ")
_LUA = re.compile(
    r"^(?:\S{1,200}/)?(?:lua|luajit|luac)[\d.]{0,6}: (?P<path>[^\s:]{1,400}):(?P<line>\d{1,9}): (?P<said>.{1,1000})$"
)
_LUA_PARSE = re.compile(r" near | expected\b")
_AWK = re.compile(
    r"^(?:\S{1,200}/)?[gm]?awk: (?:(?P<path>[^\s:]{1,400}): ?)?(?:line )?(?P<line>\d{1,9}): (?P<said>[^\s>^].{1,400})$"
)
_FOREIGN = re.compile(r"^<internal|/gems/|/lib/ruby/|/usr/(?:share|lib)/")


@dataclass(slots=True)
class Fault:
    """What one program died of, or what of it cannot be parsed."""

    said: str
    line: Line
    path: str | None
    at: int
    type: str | None = None
    parse: bool = False
    # A warning of Perl's looks like its last words.
    doubtful: bool = False


def extract(request: Request) -> Answer:
    """Answer with the errors of all streams, each once; of Perl's sentences with a place only the last one."""
    faults: list[Fault] = []
    for line in request.lines():
        fault = _fault(line) if len(faults) < MAX_KEPT else None
        if fault is not None:
            faults.append(fault)
        elif line.text.startswith("\tfrom ") and faults and faults[-1].path and _FOREIGN.search(faults[-1].path):
            _move(faults[-1], line.text)
    last = next((fault for fault in reversed(faults) if fault.doubtful), None)
    answer = Answer()
    seen: set[tuple[str, str | None, int]] = set()
    for fault in faults:
        path = request.relative(fault.path) if fault.path else None
        if (fault.said, path, fault.at) in seen or (fault.doubtful and fault is not last):
            continue
        seen.add((fault.said, path, fault.at))
        if len(answer.findings) < request.max_findings:
            _add(answer, fault, path)
    return answer


def _fault(line: Line) -> Fault | None:
    text = line.text.rstrip()
    if " error: " in text and (php := _PHP.match(text)):
        kind = php["type"]
        return Fault(php["said"] or kind or "error", line, php["path"], int(php["line"]), kind, php["level"] == "Parse")
    if ":in " in text and (ruby := _RUBY.match(text)):
        return Fault(ruby["said"] or ruby["type"], line, ruby["path"], int(ruby["line"]), ruby["type"])
    if "lua" in text[:220] and (lua := _LUA.match(text)):
        return Fault(lua["said"], line, lua["path"], int(lua["line"]), parse=bool(_LUA_PARSE.search(lua["said"])))
    if "awk: " in text[:220] and (awk := _AWK.match(text)):
        return Fault(awk["said"], line, awk["path"], int(awk["line"]), parse=True)
    if " line " in text and (perl := _PERL.match(text)) and not text.startswith(_PERL_ENDS):
        if not re.search(r"[./]|^-e$", perl["path"]):
            return None
        parse = text.startswith(_PERL_PARSE)
        return Fault(
            _PROGRESS.sub("", perl["said"]), line, perl["path"], int(perl["line"]), parse=parse, doubtful=not parse
        )
    return None


def _move(fault: Fault, text: str) -> None:
    """Place an error at the first caller in the own code, where a library raised it."""
    caller = _RUBY_FROM.match(text)
    if caller and not _FOREIGN.search(caller["path"]):
        fault.path, fault.at = caller["path"], int(caller["line"])


def _add(answer: Answer, fault: Fault, path: str | None) -> None:
    name = cut_bytes(fault.said.partition(" (")[0].partition(" in @INC")[0].strip(), MAX_NAME_BYTES)
    cause = {"kind": "deterministic", "rule": "interpreter-parse", "evidence": cut_bytes(fault.line.text.strip(), 500)}
    if fault.type and "\\" not in fault.type and fault.type != "Error":
        name = fault.type
    answer.add(
        "diagnostic" if fault.parse else "crash",
        error_type=fault.type,
        code=name or fault.said,
        message=cut_bytes(fault.said, MAX_MESSAGE_BYTES),
        path=path,
        line=fault.at,
        evidence=[span(fault.line)],
        cause=cause if fault.parse else None,
    )


if __name__ == "__main__":
    main(extract)
