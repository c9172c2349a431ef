"""Errors that compilers, linkers and linters print with a place: `file:line:column: error: message [rule]`.

A warning is nothing that failed, unless the tool calls it an error. An error without a rule's name is named by
its message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
# What is quoted below an error: the source line and its marker.
QUOTED_LINES = 3

_TOOL = r"(?:(?P<tool>[\w.+/-]{1,80}): )?"
_PATH = r"(?P<path>(?:[A-Za-z]:[\\/])?[^\s:()\"'`,]{1,400})"
_PLACE = re.compile(
    rf"^(?P<indent> {{0,4}}){_TOOL}{_PATH}[:(](?P<line>\d{{1,9}})(?:[:,](?P<column>\d{{1,9}}))?\)?"
    r"(?P<joint>:| -) {0,2}(?P<rest>.*)$"
)
# An old build tool prints no line's end behind the name of a task.
_TASK = re.compile(r"^(?::[\w-]{1,80}){1,8}(?=/)")
# Without debugging information a linker knows the section only.
_SECTION = re.compile(rf"^{_TOOL}{_PATH}:\(\.[\w.+]{{1,120}}\): (?P<rest>.*)$")
_SEVERITY = re.compile(
    r"^\[?(?P<severity>fatal error|internal compiler error|error|Error|warning|note|info|style)\]?"
    r"(?: ?\[?(?P<code>[A-Z][A-Za-z]{0,8}-?\d{1,6})\]?)?(?::|(?<=\])) {0,2}(?P<message>.*)$"
)
_LEADING_RULE = re.compile(
    r"^(?:[CRWEF]: (?:\[Correctable\] )?(?P<cop>[A-Z]\w{1,40}(?:/\w{1,60}){1,3})"
    r"|(?:\[(?P<boxed>GHC-\d{1,6})\])"
    r"|(?P<code>[A-Z]{1,6}\d{3,5})(?= |:)):? (?P<message>.+)$"
)
_BRACKETED_RULE = re.compile(
    r"^(?P<message>.+?) {1,4}\[(?:Error/)?(?P<code>-W[\w,=+-]{1,80}|[A-Za-z@][\w./-]{1,80})\]$"
)
_PARENTHESISED_RULE = re.compile(
    r"^(?P<message>.+?) \((?P<code>[A-Za-z][a-z]{1,40}[A-Z-][\w-]{1,60}|[A-Z]{1,4}\d{3,5})\)$"
)
# yamllint puts the severity in brackets and the rule, which may be any word, in parentheses.
_BOXED = re.compile(r"^\[error\] (?P<message>.+) \((?P<code>[a-z-]{2,60})\)$")
# pylint's rules; it counts columns from 0.
_FROM_ZERO = re.compile(r"[CRWEF]\d{4}")
# What a linker or a parser says where it states no severity.
_UNSTATED = ("undefined reference to ", "multiple definition of ", "syntax error", "parse error")
# A compiler's own trouble, before it comes to any file.
_DRIVER = re.compile(
    r"^(?:[\w./-]{1,160}/)?(?:[\w.-]{1,40}-)?(?:gcc|g\+\+|cc|c\+\+|cc1|cc1plus|clang|clang\+\+|ld|ld\.\w{1,10}|lld|mold)(?:-\d{1,2})?: "
    r"(?:(?:fatal )?error: (?P<message>.+)|(?P<missing>cannot find .+))$"
)
_FOLLOWS = ("ld returned", "linker command failed", "all warnings being treated", "no input files")
# ruff and its like: what is wrong, then where.
_HEADING = re.compile(
    r"^(?:error\[(?P<boxed>[\w-]{1,80})\]|(?P<code>[A-Z]{1,6}\d{2,5}|invalid-syntax))(?: \[\*\])?:? (?P<message>.+)$"
)
_ARROW = re.compile(r"^ {1,8}--> (?P<path>\S{1,400}?):(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?$")
# shellcheck: where, then what is wrong.
_IN_LINE = re.compile(r"^In (?P<path>\S{1,400}) line (?P<line>\d{1,9}):$")
_CARET = re.compile(r"^ {0,400}\^-{0,400}\^? (?P<code>SC\d{4}) \(\w{1,16}\): (?P<message>.+)$")

_HOSTS = (".com", ".org", ".net", ".io", ".dev", ".local", ".internal", ".test", ".example", ".invalid")
_NAMED_FILES = re.compile(r"(?:^|/)(?:[A-Z][a-z]+file|CMakeLists\.txt)$")
_FILE = re.compile(r"(?:^|[/\\])[^/\\]{1,200}\.[A-Za-z][\w+]{0,11}$")
_QUOTES = str.maketrans("\u2018\u2019`\u201c\u201d", "'''\"\"")
# What only helps to mend an error does not name it.
_HELP = re.compile(r"; |\. Did you mean| \([a-z][^()]{0,160}\)$|, did you mean")
# The machine's fault, whatever file the compiler was at.
_MACHINE = re.compile(
    r"No space left on device|annot allocate memory|out of memory|Killed signal|internal compiler error"
)


@dataclass(slots=True)
class Fault:
    """One error: where it is, what its rule is called (or nothing) and what it says."""

    path: str | None
    line: int | None
    column: int | None
    code: str
    message: str
    first: Line
    last: Line


def extract(request: Request) -> Answer:
    """Answer with the errors in the order in which they were printed, each once."""
    answer = Answer()
    seen: set[tuple[str | None, int | None, str]] = set()
    for fault in _faults(request.lines()):
        path = request.relative(fault.path) if fault.path else None
        name = fault.code or _name(fault.message)
        if not name or not fault.message or (path, fault.line, name) in seen:
            continue
        seen.add((path, fault.line, name))
        answer.add(
            "diagnostic",
            code=name,
            message=cut_bytes(fault.message, MAX_MESSAGE_BYTES),
            path=path,
            line=fault.line,
            column=fault.column,
            evidence=[span(fault.first, fault.last)],
            cause=_cause(fault),
        )
        if len(answer.findings) >= request.max_findings:
            break
    return answer


def _faults(lines: Iterable[Line]) -> Iterator[Fault]:
    """Yield the errors, each with the lines that quote its source."""
    fault: Fault | None = None
    quoted = 0
    for line, found in _with_faults(lines):
        if found is not None:
            if fault is not None:
                yield fault
            fault, quoted = found, 0
        elif fault is not None and quoted < QUOTED_LINES and line.source == fault.first.source:
            if line.text.startswith((" ", "\t")):
                fault.last, quoted = line, quoted + 1
                _complete(fault, line.text)
            else:
                quoted = QUOTED_LINES
    if fault is not None:
        yield fault


def _with_faults(lines: Iterable[Line]) -> Iterator[tuple[Line, Fault | None]]:
    """Yield every line, with the error that it states."""
    before: Line | None = None
    place: re.Match[str] | None = None
    watch = Watch(_PLACE, _TASK, _SECTION, _DRIVER, _ARROW, _IN_LINE, _CARET)
    for line in lines:
        text = line.text
        found = None
        if not watch.sees(line):
            pass
        elif arrow := _ARROW.match(text) if " --> " in text[:16] else None:
            found = _below_heading(before, arrow, line)
        elif text.startswith("In "):
            place = _IN_LINE.match(text)
        elif place is not None and "^" in text and (caret := _CARET.match(text)):
            found = _fault(place, caret["code"], caret["message"], line)
        elif ":" in text:
            found = _on_one_line(line)
        yield line, found
        before = line


def _on_one_line(line: Line) -> Fault | None:
    # The bulk of a large build's output; only shellcheck fails for them.
    if (": warning: " in line.text or ": note: " in line.text) and "[SC" not in line.text:
        return None
    if place := _PLACE.match(_TASK.sub("", line.text)):
        if not _is_file(place["path"]):
            return None
        if place["indent"] and place["joint"] == ":":
            return None
        stated = _stated(place["rest"], place["path"])
        return _fault(place, *stated, line) if stated else None
    if (section := _SECTION.match(line.text)) and section["rest"].startswith(_UNSTATED):
        return Fault(section["path"], None, None, "", _plain(section["rest"]), line, line)
    if driver := _DRIVER.match(line.text):
        message = driver["message"] or driver["missing"]
        if not message.startswith(_FOLLOWS):
            return Fault(None, None, None, "", _plain(message), line, line)
    return None


def _stated(rest: str, path: str) -> tuple[str, str] | None:
    """Return code and message of what stands behind a place, or None where that is no error."""
    if boxed := _BOXED.match(rest):
        return boxed["code"], boxed["message"]
    code, message = "", rest
    severity = _SEVERITY.match(rest)
    if severity:
        code, message = severity["code"] or "", severity["message"]
    if rule := _LEADING_RULE.match(message):
        code, message = rule["cop"] or rule["boxed"] or rule["code"], rule["message"]
    elif (rule := _BRACKETED_RULE.match(message)) or (
        (rule := _PARENTHESISED_RULE.match(message)) and (severity or path.endswith(".go"))
    ):
        code, message = code or rule["code"], rule["message"]
    if severity and severity["severity"] not in ("error", "Error", "fatal error", "internal compiler error"):
        # shellcheck fails for what it calls a note, too.
        return (code, message) if code.startswith("SC") else None
    if severity is None and not code and not message.startswith(_UNSTATED):
        return None
    if severity and severity["severity"] == "internal compiler error":
        message = f"internal compiler error: {message}"
    return code, message


def _below_heading(heading: Line | None, arrow: re.Match[str], line: Line) -> Fault | None:
    said = _HEADING.match(heading.text) if heading else None
    # What looks alike in Rust is read by another extractor, with its notes.
    if heading is None or said is None or arrow["path"].endswith(".rs"):
        return None
    found = _fault(arrow, said["boxed"] or said["code"], said["message"], line)
    found.first = heading
    return found


def _fault(place: re.Match[str], code: str, message: str, line: Line) -> Fault:
    column = place.groupdict().get("column")
    at = int(column) + bool(_FROM_ZERO.fullmatch(code)) if column else None
    message = _plain(message.removeprefix("[*] "))
    return Fault(place["path"], int(place["line"]), at, code, message, line, line)


def _complete(fault: Fault, text: str) -> None:
    """Add what stands on a line below: what `cannot find symbol` is about, or the rule of a long message."""
    label, _, symbol = text.strip().partition(":")
    if fault.code:
        return
    if label == "symbol":
        fault.message += f": {' '.join(symbol.split())}"
    elif (rule := _PARENTHESISED_RULE.match(text)) or (rule := _BRACKETED_RULE.match(text)):
        fault.code = rule["code"]


def _is_file(path: str) -> bool:
    """Return whether it is a file's name rather than a time, an address or a word."""
    if path.startswith(("//", "<")) or path.endswith(_HOSTS):
        return False
    return bool(_FILE.search(path) or _NAMED_FILES.search(path))


def _plain(message: str) -> str:
    """Return a message with the same quotes in every locale."""
    return message.strip().translate(_QUOTES)


def _name(message: str) -> str:
    return cut_bytes(_HELP.split(message, maxsplit=1)[0].strip(" .:;,"), MAX_NAME_BYTES)


def _cause(fault: Fault) -> dict[str, str] | None:
    if _MACHINE.search(fault.message):
        return None
    where = f" in {fault.path}" if fault.path else ""
    return {
        "kind": "deterministic",
        "rule": "located-error",
        "evidence": cut_bytes(fault.first.text.strip(), 500),
        "fix": cut_bytes(f"correct what is reported{where}", 500),
    }


if __name__ == "__main__":
    main(extract)
