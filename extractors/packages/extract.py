"""What npm, pip and apt cannot find, resolve, verify or reach."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 200
# The lines of one npm error that are read for its sentence.
MAX_SAID = 40

_NPM = re.compile(r"^npm (?:error|ERR!)(?: (.*))?$")
_NPM_CODE = re.compile(r"^code (E[A-Z_0-9]{1,40}|ERR_\w{1,40})$")
_NPM_ASIDE = re.compile(r"^(?:code|errno|syscall|path|dest|network|type|A complete log|For a full report|    at )\b|^$")
_NPM_PEER = re.compile(r"^(?:peer \S{1,200} from \S{1,200}|notarget .{1,300}|404 {1,2}.{1,300})$")
NPM_TRANSIENT = re.compile(
    r"E(?:CONN\w+|TIMEDOUT|SOCKETTIMEDOUT|AI_AGAIN|NOTFOUND|IDLETIMEOUT|NETUNREACH|HOSTUNREACH|PIPE|429|5\d\d)|ERR_SOCKET_TIMEOUT"
)
NPM_AUTH = frozenset({"E401", "E403", "ENEEDAUTH", "EOTP"})
# The script failed, or the disk: others say it better.
NPM_OTHERS = frozenset({"ELIFECYCLE", "ENOSPC"})

_UNREACHABLE = (
    r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ReadTimeoutError|ConnectionResetError|ProtocolError"
    r"|Connection refused|Connection reset|Connection timed out|Network is unreachable|Temporary failure|IncompleteRead"
    r"|Could not (?:resolve|connect)|Unable to connect|timed out|503|502|504|429|Hash Sum mismatch|Undetermined Error"
)
_PIP_RETRY = re.compile(
    rf"^WARNING: (?:Retrying|Connection).{{0,1000}}?({_UNREACHABLE})(?:.{{0,1000}}?: \[Errno -?\d{{1,4}}\] (\w[\w ]{{2,60}}))?"
)
_PIP = re.compile(
    r"^ *(?:ERROR|error): (?P<said>(?P<name>No matching distribution found) for .{1,300}|(?P<hash>THESE PACKAGES DO NOT MATCH THE HASHES).{0,400}"
    r"|(?P<file>Could not open requirements file): .{1,400}|(?P<conflict>ResolutionImpossible): .{0,300}|Invalid requirement: .{1,300}"
    r"|Package '.{1,200}' requires a different Python: .{1,200}|Failed building wheel for .{1,200}|Could not build wheels for .{1,300}"
    r"|HTTP error \d{3} while getting .{1,400}|Could not install packages due to an? .{1,400}|Directory '.{1,300}' is not installable.{0,200}"
    r"|(?P<script>subprocess-exited-with-error|metadata-generation-failed))$"
)
_CANNOT = re.compile(r"^ERROR: (Cannot install .{1,400}) because ")
_APT = re.compile(
    r"^E: (?P<said>Unable to locate package \S{1,200}|Package '.{1,200}' has no installation candidate|Version '.{1,200}' for '.{1,200}' was not found"
    r"|Failed to fetch \S{1,400} .{0,400}|Could not (?:get|open) lock .{1,400}|Unmet dependencies\..{0,200}|Unable to correct problems.{0,200}"
    r"|The repository '.{1,400}' (?:is not signed|does(?:n't| not) have|no longer has).{0,100}|Type '.{1,100}' is not known.{0,300}|Malformed .{1,300}"
    r"|Couldn't find any package by .{1,300}|dpkg was interrupted.{0,200}|Sub-process .{1,200} returned an error code.{0,20}|Conflicting values .{1,300})$"
)
_APT_WEAK = ("Sub-process",)


@dataclass(slots=True)
class Fault:
    """One error of a package manager, with the cause it tells."""

    name: str
    message: str
    first: Line
    last: Line
    rule: str
    cause: str | None = "deterministic"
    fix: str | None = None
    said: list[str] = field(default_factory=list)


class Reader:
    """Reads the lines of all three; each has its own mark in front of what it says."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._npm: Fault | None = None
        self._network = ""
        self._cannot = ""

    def feed(self, line: Line) -> None:
        """Take the next line."""
        text = line.text.rstrip()
        if text.startswith("npm ") and (npm := _NPM.match(text)):
            self._of_npm(npm[1] or "", line)
        elif text.startswith("E: ") and (apt := _APT.match(text)):
            self.faults.append(_of_apt(apt["said"], line))
        elif text.startswith("WARNING: ") and (retry := _PIP_RETRY.match(text)):
            self._network = retry[2] or retry[1]
        elif "rror: " in text.lower()[:60]:
            self._cannot = cannot[1] if (cannot := _CANNOT.match(text)) else self._cannot
            if pip := _PIP.match(text):
                self._of_pip(pip, line)

    def _of_npm(self, said: str, line: Line) -> None:
        if code := _NPM_CODE.match(said):
            self._npm = Fault(code[1], "", line, line, "npm", _npm_cause(code[1]))
            self.faults.append(self._npm)
        elif self._npm is not None and len(self._npm.said) < MAX_SAID and not _NPM_ASIDE.match(said):
            self._npm.said.append(said)
            self._npm.last = line

    def _of_pip(self, pip: re.Match[str], line: Line) -> None:
        said = pip["said"]
        if self._network and pip["name"]:
            # It found nothing since it reached nobody.
            name = f"{self._network}: {said}"
            self.faults.append(Fault(name, name, line, line, "pip", "transient"))
        elif pip["conflict"]:
            message = self._cannot or said
            name = "ResolutionImpossible"
            self.faults.append(Fault(name, message, line, line, "pip", fix="loosen the versions that conflict"))
        elif not pip["script"]:
            status = re.search(r"HTTP error (\d{3})", said)
            transient = status is not None and status[1][0] == "5"
            name = pip["hash"] or said
            unsure = said.startswith(("Could not install packages", "Failed building", "Could not build"))
            cause = "transient" if transient else None if unsure else "deterministic"
            self.faults.append(Fault(name, said, line, line, "pip", cause))


def _npm_cause(code: str) -> str | None:
    if NPM_TRANSIENT.fullmatch(code):
        return "transient"
    if code in NPM_AUTH:
        return "auth"
    if code == "EACCES":
        return "permission_denied"
    return None if code in NPM_OTHERS else "deterministic"


def _of_apt(said: str, line: Line) -> Fault:
    cause: str | None = "deterministic"
    fix = None
    if said.startswith("Failed to fetch"):
        cause = "transient" if re.search(_UNREACHABLE, said) else None
    elif "lock " in said[:30]:
        cause = "permission_denied" if "Permission denied" in said else "transient"
    elif said.startswith("Unable to locate package"):
        fix = "correct the package's name, or update the package lists"
    elif said.startswith(("Sub-process", "dpkg was")):
        cause = None
    return Fault(said, said, line, line, "apt", cause, fix)


def extract(request: Request) -> Answer:
    """Answer with the errors of all streams, each once."""
    readers = request.read(Reader)
    answer = Answer()
    seen: set[tuple[str, str]] = set()
    for fault in _told([fault for reader in readers.values() for fault in reader.faults]):
        message = _sentence(fault) if fault.rule == "npm" else fault.message
        if (fault.name, message) not in seen and len(answer.findings) < request.max_findings:
            seen.add((fault.name, message))
            _add(answer, fault, message)
    return answer


def _told(faults: list[Fault]) -> Iterator[Fault]:
    """Yield what is to be told: what only follows from others where it stands alone."""
    alone = len(faults) == 1
    for fault in faults:
        if fault.name not in NPM_OTHERS and (alone or not fault.name.startswith(_APT_WEAK)):
            yield fault


def _sentence(fault: Fault) -> str:
    """Return the first sentence of npm's, and what a dependency asks for where that is the trouble."""
    first = fault.said[0].strip() if fault.said else fault.name
    first = first.removeprefix(fault.name).strip(" :") or fault.name
    peer = next((said.strip() for said in fault.said if _NPM_PEER.match(said.strip())), "")
    return f"{first}: {peer}" if peer and peer not in first else first


def _add(answer: Answer, fault: Fault, message: str) -> None:
    cause = None
    if fault.cause:
        evidence = cut_bytes(f"{fault.name}: {message}" if fault.rule == "npm" else message, 500)
        cause = {"kind": fault.cause, "rule": f"{fault.rule}-{fault.cause.replace('_', '-')}", "evidence": evidence}
        if fault.fix:
            cause["fix"] = fault.fix
    answer.add(
        "infrastructure" if fault.cause in ("transient", "auth") else "diagnostic",
        code=cut_bytes(fault.name, MAX_NAME_BYTES),
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        evidence=[span(fault.first, fault.last)],
        cause=cause,
    )


if __name__ == "__main__":
    main(extract)
