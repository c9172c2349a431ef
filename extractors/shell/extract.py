"""What shells refuse, and what commands say when the system refuses them something.

A script may go on after a command that failed: such a line is likely only among the last words of the output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
# More lines than this behind it mean that the script went on.
LAST_WORDS = 5
MAX_KEPT = 2000

# `a.sh: line 4: said` of bash, `a.sh: 4: said` of dash, `a.sh[4]: said` of ksh, `a.sh:4: said` of zsh, `bash: said`.
_SHELL = re.compile(
    r"^(?:(?P<path>[^\s:\[]{1,400})(?:: line (?P<bash>\d{1,9})|: ?(?P<dash>\d{1,9})|\[(?P<ksh>\d{1,9})\]): |(?:/\S{0,100}/)?(?:ba|da|k|z)?sh: )"
    r"(?P<said>.{1,1000})$"
)
_ENDS = re.compile(
    r"^(?i:syntax error)\b|: (?:unbound variable|parameter (?:not set|null or not set)|bad substitution|Bad substitution|readonly variable)$"
    r"|^(?:unexpected EOF|unexpected end of file|Bad substitution|parse error)\b"
)
_NOT_FOUND = re.compile(
    r"^(?:(?P<name>.{1,300}): (?:command not found|not found)|command not found: (?P<zsh>.{1,300}))$"
)
_NOT_RUN = re.compile(
    r": (?:Permission denied|cannot execute.{0,60}|bad interpreter: .{1,60}|Exec format error|Is a directory|is a directory)$"
)
# A command's name, what it was at, and the system's own words.
_SYSTEM = (
    "No such file or directory|Permission denied|File exists|Is a directory|Not a directory|Directory not empty"
    "|Read-only file system|No space left on device|Disk quota exceeded|Operation not permitted|Text file busy"
    "|Device or resource busy|Argument list too long|Cannot allocate memory|Too many open files|Input/output error|Broken pipe"
)
_COMMAND = re.compile(rf"^(?P<command>[a-z][\w.-]{{0,40}}): (?P<what>.{{1,600}}): (?P<words>{_SYSTEM})$")
# What the checksum programs and cmp say of files that are not what they should be.
_CHECKSUM = re.compile(r"^(?P<path>.{1,400}): FAILED(?: open or read)?$")
_MISMATCH = re.compile(r"^\w{1,10}sum: WARNING: \d{1,9} (?:computed checksums?|listed files?) ")
_DIFFER = re.compile(
    r"^(?:cmp: )?(?P<path>\S{1,400}) \S{1,400} differ: (?:byte|char) \d{1,12}, line (?P<line>\d{1,9})$"
)
_OBJECT = re.compile(r"['\u2018\"`]([^'\u2019\"`]{1,400})['\u2019\"`]")

# What the system's words say of trying again; a missing file may be another process's matter.
CAUSES = {
    "Permission denied": ("permission_denied", "give this user access to it"),
    "Operation not permitted": ("permission_denied", "give this user access to it"),
    "Read-only file system": ("environment", "write to a place that is not mounted read-only"),
    "No space left on device": ("resource", "free space on the device"),
    "Disk quota exceeded": ("resource", "free space, or raise the quota"),
    "Cannot allocate memory": ("resource", "use less memory, or raise its limit"),
    "Too many open files": ("resource", "close files earlier, or raise the limit of open files"),
    "Text file busy": ("transient", None),
    "Device or resource busy": ("transient", None),
    "Argument list too long": ("deterministic", "pass the arguments in parts"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One refusal: what it is called, where it stands, and why; whether it ends what was run."""

    name: str
    line: Line
    number: int
    path: str | None = None
    at: int | None = None
    cause: str | None = None
    fix: str | None = None
    ends: bool = False


def extract(request: Request) -> Answer:
    """Answer with the refusals of all streams, each once."""
    faults: list[Fault] = []
    unequal: list[Fault] = []
    spoken: dict[str, int] = {}
    for line in request.lines():
        text = line.text.strip()
        if not text:
            continue
        spoken[line.source] = spoken.get(line.source, 0) + 1
        if text.endswith((": FAILED", ": FAILED open or read")) and (sum_of := _CHECKSUM.match(text)):
            unequal.append(Fault(text, line, spoken[line.source], sum_of["path"], None, "deterministic"))
        elif "sum: WARNING: " in text and _MISMATCH.match(text):
            # Before that line it may have been anybody's `FAILED`.
            faults += [Fault(f.name, f.line, spoken[f.line.source], f.path, None, f.cause) for f in unequal[:MAX_KEPT]]
            unequal.clear()
        elif ": " in text and len(faults) < MAX_KEPT and (fault := _fault(text, line, spoken[line.source])):
            faults.append(fault)
    answer = Answer()
    seen: set[tuple[str, str | None, int | None]] = set()
    for fault in faults:
        key = (fault.name, fault.path, fault.at)
        if key not in seen and len(answer.findings) < request.max_findings:
            seen.add(key)
            _add(answer, request, fault, spoken[fault.line.source] - fault.number < LAST_WORDS)
    return answer


def _fault(text: str, line: Line, number: int) -> Fault | None:
    if shell := _SHELL.match(text):
        said = shell["said"]
        at = shell["bash"] or shell["dash"] or shell["ksh"]
        path = shell["path"] if at and not _is_shell(shell["path"]) else None
        place = int(at) if at and path else None
        if missing := _NOT_FOUND.match(said):
            name = f"{missing['name'] or missing['zsh']}: command not found"
            fix = f"install {missing['name'] or missing['zsh']}, or correct its name or PATH"
            return Fault(name, line, number, path, place, "command_not_found", fix)
        if _NOT_RUN.search(said):
            return Fault(said, line, number, said.partition(": ")[0], None, *_not_run(said))
        if _ENDS.search(said):
            return Fault(said, line, number, path, place, "deterministic", f"correct {path or 'the script'}", True)
        if system := re.search(rf": ({_SYSTEM})$", said):
            return Fault(said, line, number, path, place, *CAUSES.get(system[1], (None, None)))
        return None
    if differ := _DIFFER.match(text):
        name = text.partition(": byte")[0].partition(": char")[0]
        return Fault(name, line, number, differ["path"], int(differ["line"]), "deterministic")
    if command := _COMMAND.match(text):
        return _of_command(text, command, line, number)
    return None


def _of_command(text: str, command: re.Match[str], line: Line, number: int) -> Fault | None:
    # make says it of what it cannot start, and the others have their own formats.
    if command["command"] in ("make", "gmake", "git", "fatal", "error", "curl", "ld", "cc1", "gcc", "npm", "pip"):
        return None
    about = _OBJECT.search(command["what"])
    path = about[1] if about else command["what"] if " " not in command["what"] else None
    return Fault(text.translate(_QUOTES), line, number, path, None, *CAUSES.get(command["words"], (None, None)))


def _not_run(said: str) -> tuple[str, str]:
    if said.endswith("Permission denied"):
        return "permission_denied", "make it executable for this user"
    return "environment", "run a file that this machine can execute"


def _add(answer: Answer, request: Request, fault: Fault, late: bool) -> None:
    name = cut_bytes(fault.name, MAX_NAME_BYTES)
    cause = (
        {"kind": fault.cause, "rule": f"shell-{fault.cause}".replace("_", "-"), "evidence": name}
        if fault.cause
        else None
    )
    if cause and fault.fix:
        cause["fix"] = cut_bytes(fault.fix, 500)
    certain = fault.ends or late or (fault.cause == "command_not_found" and request.exit_code == 127)
    answer.add(
        "diagnostic",
        code=name,
        message=name,
        path=request.relative(fault.path) if fault.path else None,
        line=fault.at,
        evidence=[span(fault.line)],
        confidence="likely" if certain else "guess",
        cause=cause,
    )


def _is_shell(path: str) -> bool:
    return path.rpartition("/")[2] in ("sh", "bash", "dash", "ksh", "zsh")


_QUOTES = str.maketrans("\u2018\u2019", "''")


if __name__ == "__main__":
    main(extract)
