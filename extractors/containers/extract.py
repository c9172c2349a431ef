"""Image builds, registries, container daemons and clusters: the step that failed, or what was refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
MAX_MESSAGE_BYTES = 1024
MAX_KEPT = 2000

_CLUSTER_TOOLS = frozenset({"kubectl", "oc"})

# A build names the step that failed above its last words, and what became of it below.
_STEP = re.compile(r"^ > (?:\[(?:internal|[^\]]{0,80}?\d{1,3}/\d{1,3})\] )?(\S.{0,400}?):$")
_OUTPUT = re.compile(r"^(?:#\d{1,4} )?\d{1,6}\.\d{1,6} (\S.{0,500})$")
_SOLVE = re.compile(
    r"^(?:ERROR: )?(?:target [^\s:]{1,100}: )?(?:failed to build: )?(?P<said>(?:failed to (?:solve|compute cache key|load cache key)|executor failed running).{0,2000})$"
)
_PREAMBLE = re.compile(
    r"^(?:failed to solve(?: with frontend [^\s:]{1,80})?|failed to (?:compute|load) cache key|failed to create LLB definition|failed to read dockerfile"
    r"|rpc error: code = \w{1,30} desc =|failed to calculate checksum of ref [^\s]{1,200}|target [^\s:]{1,100}):? "
)
_EXITED = re.compile(
    r"^(?:executor failed running \[(?P<old>.{1,1500})\]|process \"(?P<new>.{1,1500})\" did not complete successfully): (?P<code>exit code: \d{1,3}|.{1,100})$"
)
_RETURNED = re.compile(r"^The command '(?P<command>.{1,1500})' returned a non-zero code: (?P<code>\d{1,3})$")
_COPY = re.compile(r"^((?:COPY|ADD) failed: .{1,600})$")

_DAEMON = re.compile(r"^(?:docker: |ERROR: |Error: )?Error response from daemon: (?P<said>\S.{0,1500})$")
_CLIENT = re.compile(
    r"^(?:docker: |ERROR: )?(?P<said>Cannot connect to the Docker daemon at .{1,300}|error during connect: .{1,600}"
    r"|permission denied while trying to connect to the Docker daemon.{0,400}|Error: No such (?:container|image|object|volume|network): .{1,300}"
    r"|(?:denied|unauthorized|toomanyrequests): .{1,300}|manifest for .{1,300} not found.{0,200}|no such service: .{1,200}"
    r"|dependency failed to start: .{1,300}|service \".{1,200}\" didn't complete successfully: .{1,100}|no configuration file provided: not found"
    r"|validating .{1,300}|(?:network|volume) .{1,200} declared as external, but could not be found)$"
)
_SERVER = re.compile(r"^Error from server(?: \((?P<reason>\w{1,40})\))?: (?P<said>\S.{0,1500})$")
_UNREACHED = re.compile(
    r"^(?P<said>The connection to the server \S{1,300} was refused|Unable to connect to the server: .{1,600}|Error in configuration: .{1,300})(?: - did you.{1,100})?$"
)
_CLUSTER = re.compile(r"^error: (?P<said>\S.{0,1500})$")
_CLUSTER_WORDS = re.compile(
    r"^(?:error (?:parsing|validating|converting|when)\b|timed out waiting for|the server (?:doesn't have|could not find|rejected|was unable)|resource mapping not found"
    r"|unable to (?:recognize|forward|upgrade|decode|load root)|You must be logged in|the path \"|no matches for kind|no objects passed to|no context exists|context \""
    r"|deployment \"|daemonset \"|statefulset \"|job \"|current-context is not set|Internal error occurred|watch closed)"
)
_RELEASE = re.compile(r"^Error: (?P<said>(?:INSTALLATION|UPGRADE|ROLLBACK|UNINSTALL) FAILED: \S.{0,1500})$")
# All that lines are read by; what stands below a layer's arrow is nobody's last words.
_READ = (
    _STEP,
    _OUTPUT,
    _SOLVE,
    _RETURNED,
    _COPY,
    _DAEMON,
    _CLIENT,
    _SERVER,
    _UNREACHED,
    _CLUSTER,
    _RELEASE,
    re.compile("^ ---> "),
)
_FILE = re.compile(
    r"\b(?:parsing|validating|converting|creating|replacing|applying|from) \"?([^\s\":]{1,300}\.(?:ya?ml|json))\"?(?=[:\s])"
)
_LINE = re.compile(r"\byaml: line (\d{1,9}):|\b(?:dockerfile|Dockerfile) parse error (?:on )?line (\d{1,9}):")
# The machine that was asked for a name, a mount of one build, and a suggestion are circumstance.
_CIRCUMSTANCE = re.compile(
    r" on [\d.]{7,15}:53\b|[^\s\"]{0,200}/buildkit-mount\d{1,20}/|; if you choose to ignore these errors.{0,200}$"
)

# Reasons of a cluster's answer, by its API conventions.
_REASONS = {
    "Forbidden": "permission_denied", "Unauthorized": "auth", "Conflict": "transient", "Timeout": "transient", "ServerTimeout": "transient",
    "TooManyRequests": "transient", "ServiceUnavailable": "transient", "AlreadyExists": "deterministic", "Invalid": "deterministic",
    "BadRequest": "deterministic", "MethodNotAllowed": "deterministic", "RequestEntityTooLarge": "deterministic",
}  # fmt: skip
_WORDS = tuple(
    (kind, re.compile(words))
    for kind, words in (
        ("auth", r"^unauthorized\b|authentication required|no basic auth credentials|must be logged in|incorrect username or password"),
        ("permission_denied", r"^denied\b|access to the resource is denied|permission denied|pull access denied|insufficient_scope"),
        (
            "transient",
            (r"toomanyrequests|Too Many Requests|TLS handshake timeout|i/o timeout|connection re(?:fused|set)|was refused|no such host|Client\.Timeout exceeded"
            r"|context deadline exceeded|unexpected EOF|Service Unavailable|Bad Gateway|Gateway Time-?out|Internal Server Error|server misbehaving|request timed out"
            r"|net/http: request canceled|network is unreachable|no route to host|port is already allocated|address already in use|Cannot connect to the Docker daemon"
            r"|error during connect|etcdserver|http2: client connection lost|another operation .{1,60} is in progress|please apply your changes to the latest version"),
        ),
        ("resource", r"(?i)no space left on device|cannot allocate memory|exceeded quota|Insufficient (?:cpu|memory)"),
        (None, r"timed out waiting|is unhealthy|exceeded its progress deadline|didn't complete|OCI runtime|failed to download openapi|Internal error|^the server was unable"),
        (
            "deterministic",
            (r"parse error|unknown instruction|not found|no such file|file does not exist|manifest unknown|does not exist|error (?:parsing|validating|converting)"
            r"|No such|no matches for kind|doesn't have a resource type|Conflict\. The container name|COPY failed|ADD failed|invalid reference format|no objects passed"
            r"|was not found|validating |declared as external|no such service|no configuration file|error converting"),
        ),
    )
)  # fmt: skip
_FIXES = {
    "auth": "log in to the registry or the cluster",
    "permission_denied": "grant this user access, or correct the name that is asked for",
    "resource": "free space, or ask for less",
    "deterministic": "correct the file or the name that is told",
}


@dataclass(slots=True)
class Fault:
    """One refusal, or one step that failed."""

    name: str
    line: Line
    cause: str | None
    message: str = ""
    path: str | None = None
    at: int | None = None
    sure: bool = True


class Reader:
    """Reads one stream; remembers the step and its last words until it is told what became of them."""

    def __init__(self, *, cluster: bool) -> None:
        self.faults: list[Fault] = []
        self._cluster = cluster
        self._step = ""
        self._said = ""
        self._classic = ""
        self._watch = Watch(*_READ)

    def feed(self, line: Line) -> None:
        """Take the next line."""
        text = line.text.rstrip()
        if not self._watch.sees(line):
            self._classic = text.strip() or self._classic
        elif step := _STEP.match(text):
            self._step = step[1]
        elif output := _OUTPUT.match(text):
            self._said = output[1].strip()
        elif fault := next((found for read in self._readers() if (found := read(text, line))), None):
            if len(self.faults) < MAX_KEPT:
                self.faults.append(fault)
        elif not text.startswith(" ---> "):
            self._classic = text.strip() or self._classic

    def _readers(self) -> tuple[Callable[[str, Line], Fault | None], ...]:
        return (self._of_build, self._of_daemon, self._of_cluster)

    def _of_build(self, text: str, line: Line) -> Fault | None:
        if returned := _RETURNED.match(text):
            command = returned["command"].removeprefix("/bin/sh -c ")
            return self._of_step(f"RUN {command}", f"exit code: {returned['code']}", self._classic, line)
        if copied := _COPY.match(text):
            return Fault(copied[1], line, "deterministic")
        solve = _SOLVE.match(text)
        if solve is None:
            return None
        said = _told(solve["said"])
        if exited := _EXITED.match(said):
            command = (exited["old"] or exited["new"]).removeprefix("/bin/sh -c ")
            return self._of_step(self._step or f"RUN {command}", exited["code"], self._said, line)
        return _fault(f"{self._step}: {said}" if self._step else said, said, line)

    def _of_step(self, name: str, code: str, last_words: str, line: Line) -> Fault:
        message = f"{name}: {code}" + (f": {last_words}" if last_words else "")
        return Fault(name, line, None, message)

    def _of_daemon(self, text: str, line: Line) -> Fault | None:
        found = _DAEMON.match(text) or _CLIENT.match(text) or _RELEASE.match(text)
        return _fault(_plain(found["said"]), found["said"], line) if found else None

    def _of_cluster(self, text: str, line: Line) -> Fault | None:
        if server := _SERVER.match(text):
            reason = server["reason"] or ""
            fault = _fault(_plain(text), server["said"], line)
            # What is not there may still come.
            fault.cause = None if reason == "NotFound" else _REASONS.get(reason, fault.cause)
            return fault
        if unreached := _UNREACHED.match(text):
            return _fault(_plain(unreached["said"]), unreached["said"], line)
        stated = _CLUSTER.match(text)
        if stated is None or not (self._cluster or _CLUSTER_WORDS.match(stated["said"])):
            return None
        return _fault(_plain(stated["said"]), stated["said"], line)


def _told(said: str) -> str:
    """Return what a build was refused, without the names of the layers that passed it on."""
    for _ in range(4):
        shorter = _PREAMBLE.sub("", said, count=1)
        if shorter == said:
            break
        said = shorter
    return _plain(said)


def _plain(said: str) -> str:
    return _CIRCUMSTANCE.sub("", said).rstrip(" .")


def _fault(name: str, said: str, line: Line) -> Fault:
    cause = next((kind for kind, words in _WORDS if words.search(said)), None)
    fault = Fault(name, line, cause)
    if file := _FILE.search(said):
        fault.path = file[1]
    if at := _LINE.search(said):
        fault.at = int(at[1] or at[2])
    return fault


def extract(request: Request) -> Answer:
    """Answer with what failed in all streams, each once."""
    cluster = any(word.rpartition("/")[2] in _CLUSTER_TOOLS for word in request.argv)
    readers = request.read(lambda: Reader(cluster=cluster))
    answer = Answer()
    seen: set[tuple[str, str]] = set()
    for fault in (fault for reader in readers.values() for fault in reader.faults):
        if (fault.name, fault.message) not in seen and len(answer.findings) < request.max_findings:
            seen.add((fault.name, fault.message))
            _add(answer, request, fault)
    answer.drop_mixed_transience()
    return answer


def _add(answer: Answer, request: Request, fault: Fault) -> None:
    cause = None
    if fault.cause:
        evidence = cut_bytes(fault.line.text.strip(), 500)
        cause = {"kind": fault.cause, "rule": f"containers-{fault.cause.replace('_', '-')}", "evidence": evidence}
        if fault.cause in _FIXES:
            cause["fix"] = _FIXES[fault.cause]
    answer.add(
        "infrastructure" if fault.cause in ("transient", "auth", "resource") else "diagnostic",
        code=cut_bytes(fault.name, MAX_NAME_BYTES),
        message=cut_bytes(fault.message or fault.name, MAX_MESSAGE_BYTES),
        path=request.relative(fault.path) if fault.path else None,
        line=fault.at,
        evidence=[span(fault.line)],
        cause=cause,
    )


if __name__ == "__main__":
    main(extract)
