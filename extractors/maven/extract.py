"""Why a Maven build failed: compile errors, artifacts that cannot be had, project files, rules and plugins.

What a goal says of its failure is told where nothing more exact stands behind it. Failed tests are another
extractor's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
# Lines below a goal's failure that may say what it is about.
GOAL_LINES = 24
MAX_CHARS = 8192
MAX_ARTIFACTS = 50

_ERROR = re.compile(r"^(?:\[(?:ERROR|FATAL)\] ){1,2}")
_HELP = re.compile(r" {0,2}-> \[Help \d{1,4}\]$")
_PLACE = re.compile(
    r"^(?:file://)?(?P<path>[^\s:]{1,400}\.\w{1,10}):(?: ?[\[(](?P<a>\d{1,9}), ?(?P<b>\d{1,9})[\])]:?|(?P<c>\d{1,9})(?::(?P<d>\d{1,9}))?:)"
    r" (?:error: )?(?P<said>.+)$"
)
_SYMBOL = re.compile(r"^ {1,4}symbol: {1,4}(?P<said>.{1,300})$")
_RULE_BEHIND = re.compile(r"^(?P<said>.+) \[(?P<code>[A-Z]\w{2,80})\]$")
_RULE_BEFORE = re.compile(r"^\(\w{1,40}\) (?P<code>[A-Z]\w{2,80}): (?P<said>.+)$")
_GOAL = re.compile(
    r"^Failed to execute goal (?:(?P<plugin>[\w.-]{1,200}:[\w.-]{1,200}:[\w.-]{1,80}:[\w.-]{1,80})(?: \([^()]{0,200}\))? )?"
    r"on project (?P<project>[^\s:]{1,200}): ?(?P<said>.*)$"
)
_POMS = "Some problems were encountered while processing the POMs:"
_POM_PLACE = re.compile(
    r" @ (?:[^,]{0,300}, (?P<path>[^,]{1,400}), )?line (?P<line>\d{1,9}), column (?P<column>\d{1,9})$| @ ?$"
)
_BUILD = ("[INFO] Scanning for projects...", "[INFO] BUILD FAILURE")
_DIRECTORIES = re.compile(r"(?<![\w./])(?:/[^\s/:]{1,200}){1,40}/(?=[^\s/:])")
_NO_PROJECT = "The build could not read "
_ENFORCED = re.compile(
    r"^Rule \d{1,4}: (?:[\w$]{1,100}\.){0,16}(?P<rule>[\w$]{1,100})(?:\([^()]{0,100}\))? failed(?: with message:)?(?P<said>.*)$"
)
# What a plugin for tests says where tests failed: they are told by name elsewhere.
_TESTS = re.compile(r":maven-(?:surefire|failsafe)-plugin:")
_TESTS_FAILED = re.compile(
    r"^$|^There (?:are|were) test failures|^There was a timeout or other error|^ExecutionException The forked VM"
)
_WRAPPING = re.compile(
    r"^(?:Compilation failure(?:: Compilation failure)?:? ?|Fatal error compiling: (?:error: )?|Execution \S{1,200} of goal \S{1,300} failed: )"
)

_COORDINATES = r"[\w.-]{1,120}:[\w.-]{1,120}:(?:[\w.-]{1,60}:){0,3}[\w.-]{1,80}"
_SEVERAL = re.compile(
    rf"artifacts could not be resolved: (?P<all>{_COORDINATES}(?: \(\w{{1,20}}\))?(?:, {_COORDINATES}(?: \(\w{{1,20}}\))?){{0,{MAX_ARTIFACTS}}})"
)
_ONE = (
    re.compile(rf"Failed to read artifact descriptor for (?P<all>{_COORDINATES})"),
    re.compile(rf"(?:artifact|Failure to (?:find|transfer)|Failed to collect dependencies at) (?P<all>{_COORDINATES})"),
    re.compile(rf"(?P<all>{_COORDINATES}) was not found in "),
    re.compile(rf"Plugin (?P<all>{_COORDINATES}) or one of its dependencies could not be resolved"),
)
_RESOLVING = re.compile(
    r"could not be resolved|[Cc]ould not resolve|Non-resolvable|[Cc]ould not (?:find|transfer) artifact|Unresolveable"
)
# Why: kind, rule, what is said of it, and what to do.
_REASONS: tuple[tuple[re.Pattern[str], tuple[str, str, str]], ...] = (
    (re.compile(r"\b(?:401|403|407)\b (?:Unauthorized|Forbidden|Proxy)|status(?: code)?: 40[137]\b|[Nn]ot authorized|auth(?:entication|orization) failed"), ("auth", "login", "correct the repository's credential in the settings")),
    (re.compile(r"PKIX path (?:building|validation) failed|unable to find valid certification path"), ("config", "certificate", "make the repository's certificate one that is trusted here")),
    (re.compile(r"Blocked mirror for repositories"), ("config", "blocked-mirror", "name the repository by https")),
    (re.compile(r"in offline mode"), ("deterministic", "offline", "fetch the artifact once without the offline option")),
    (re.compile(r"was cached in the local repository"), ("deterministic", "cached-failure", "have the artifact asked for again with -U, or correct its coordinates")),
    (re.compile(r"Connection (?:refused|reset|timed out|closed)|[Tt]imed out|[Uu]nknown ?[Hh]ost|Name or service not known|[Tt]emporary failure in name resolution"
                r"|No route to host|Network is unreachable|Premature E(?:OF|nd)|Remote host terminated|peer shut down|status(?: code)?: (?:408|425|429|50[0234])\b"),
     ("transient", "transfer", "")),
    (re.compile(r"[Cc]ould not find artifact|was not found in|Failure to find|not found in any plugin repository"), ("deterministic", "artifact", "correct the artifact's coordinates, or name the repository that has it")),
)  # fmt: skip


@dataclass(slots=True)
class Fault:
    """One thing that failed: its name, its words, where it is, and what it says of the cause."""

    name: str
    said: str
    first: Line
    last: Line
    kind: str = "diagnostic"
    path: str | None = None
    line: int | None = None
    column: int | None = None
    cause: tuple[str, str, str] = ("deterministic", "build", "")
    # Only told where nothing else is: a goal's words of something that may stand above.
    vague: bool = False


class Reader:
    """Collects what one stream says of a build."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        # Other tools mark errors alike.
        self.is_build = False
        self._in_poms = self._listed = False
        self._goal: re.Match[str] | None = None
        self._goal_lines: list[str] = []
        self._goal_at: tuple[Line, Line] | None = None
        self._watch = Watch(_ERROR, _SYMBOL, _HELP, *(re.compile(f"{re.escape(mark)}$") for mark in _BUILD))

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        if self._watch.sees(line):
            self._take(line.text.rstrip()[:MAX_CHARS], line)

    def _take(self, text: str, line: Line) -> None:
        said = _ERROR.sub("", text)
        self.is_build = self.is_build or text.endswith(_BUILD) or bool(_HELP.search(text))
        if symbol := _SYMBOL.match(said):
            self._complete(symbol["said"], line)
        elif said == text:
            return
        elif goal := _GOAL.match(said):
            self._start(goal, line)
        elif self._goal is not None and not _HELP.search(said) and len(self._goal_lines) < GOAL_LINES:
            self._goal_lines.append(said)
            self._place(said, line)
        elif self._goal is not None:
            self.close()
        elif said == _POMS:
            self._in_poms = True
        elif said.startswith(_NO_PROJECT):
            # What follows lists the same once more.
            self._in_poms, self._listed = False, True
        elif self._in_poms:
            self._pom(said, line)
        elif not self._place(said, line) and _HELP.search(said) and not self._listed:
            self._refusal(_HELP.sub("", said), line)

    def close(self) -> None:
        """Conclude from what a goal said, where its lines end."""
        if self._goal is not None and self._goal_at is not None:
            self.faults += _of_goal(self._goal, self._goal_lines, self._goal_at)
        self._goal, self._goal_lines, self._goal_at = None, [], None

    def _start(self, goal: re.Match[str], line: Line) -> None:
        self.close()
        self._in_poms = False
        self._goal, self._goal_at = goal, (line, line)
        if _HELP.search(goal["said"]):
            self.close()

    def _place(self, said: str, line: Line) -> bool:
        place = _PLACE.match(said)
        if place is None:
            return False
        rule = _RULE_BEHIND.match(place["said"]) or _RULE_BEFORE.match(place["said"])
        words = (rule["said"] if rule else place["said"]).strip()
        column = place["b"] or place["d"]
        self.faults.append(
            Fault(
                rule["code"] if rule else words,
                words,
                line,
                line,
                path=place["path"],
                line=int(place["a"] or place["c"]),
                column=int(column) if column else None,
                cause=("deterministic", "located", "correct what is reported"),
            )
        )
        return True

    def _complete(self, symbol: str, line: Line) -> None:
        """Say what `cannot find symbol` is about."""
        fault = self.faults[-1] if self.faults else None
        if fault is not None and fault.path and ": " not in fault.said and fault.last.source == line.source:
            fault.said = fault.name = f"{fault.said}: {' '.join(symbol.split())}"
            fault.last = line

    def _pom(self, said: str, line: Line) -> None:
        place = _POM_PLACE.search(said)
        words = said[: place.start()] if place else said
        if not words.strip() or words.startswith("The project "):
            return
        if _RESOLVING.search(words):
            self.faults += _artifacts(words, (line, line))
            return
        fault = Fault(_head(words), words, line, line, cause=("config", "project", "correct the project's file"))
        if place and place["line"]:
            fault.path = place["path"] or "pom.xml"
            fault.line, fault.column = int(place["line"]), int(place["column"])
        self.faults.append(fault)

    def _refusal(self, said: str, line: Line) -> None:
        """Take an error that no project is named with: a wrong call, a plugin that is not there."""
        if _RESOLVING.search(said):
            self.faults += _artifacts(said, (line, line))
        else:
            self.faults.append(Fault(_head(said), said, line, line, cause=("config", "call", "")))


def _of_goal(goal: re.Match[str], below: list[str], at: tuple[Line, Line]) -> Iterator[Fault]:
    """Yield what a goal's failure says that is not told by other lines."""
    said = _HELP.sub("", goal["said"]).strip()
    plugin = goal["plugin"] or ""
    if _TESTS.search(plugin) and _TESTS_FAILED.search(said):
        return
    if _RESOLVING.search(said):
        yield from _artifacts(said, at)
        return
    rules = [
        (found["rule"], found["said"] or next(iter(below[n + 1 :]), ""))
        for n, text in enumerate(below)
        if (found := _ENFORCED.match(text))
    ]
    for rule, words in rules:
        yield Fault(rule, words.strip(" :") or rule, *at, kind="policy", cause=("config", "rule", ""))
    if rules:
        return
    wrapped = _WRAPPING.sub("", said).strip() or next((text for text in below if text.strip()), "")
    name = _head(wrapped) if _WRAPPING.match(said) and wrapped else ":".join(plugin.split(":")[1::2]) or goal["project"]
    yield Fault(
        name,
        wrapped or said or name,
        *at,
        cause=("deterministic", "goal", ""),
        vague=bool(_PLACE.match(wrapped)) or said.startswith("Compilation failure"),
    )


def _artifacts(said: str, at: tuple[Line, Line]) -> Iterator[Fault]:
    """Yield a fault for each artifact that could not be had; where none is named, for the words."""
    reason, known = next(
        ((found[0], cause) for pattern, cause in _REASONS if (found := pattern.search(said))), ("", None)
    )
    words = {"offline": "not here, and offline", "cached-failure": "was not found before"}.get(
        known[1] if known else "", reason
    )
    listed = _SEVERAL.search(said) or next((found for pattern in _ONE if (found := pattern.search(said))), None)
    names = re.findall(_COORDINATES, listed["all"]) if listed else [_head(said)]
    kind = "infrastructure" if known and known[0] in ("transient", "auth") else "diagnostic"
    for name in names:
        yield Fault(name, f"{name}: {words or 'could not be resolved'}", *at, kind=kind, cause=known or ("", "", ""))


def _head(said: str) -> str:
    """Return the first clause of what is said: what follows it explains."""
    head = re.split(r"\. | \[| \(|; | in the current project", said, maxsplit=1)[0]
    return cut_bytes(_DIRECTORIES.sub("", head).strip(" .:"), MAX_NAME_BYTES)


def extract(request: Request) -> Answer:
    """Answer with what failed, in the order in which it was printed, each once."""
    readers = request.read(Reader)
    for reader in readers.values():
        reader.close()
    named = any(word.rpartition("/")[2] in ("mvn", "mvnw", "mvnd") for word in request.argv)
    faults = [fault for reader in readers.values() if named or reader.is_build for fault in reader.faults]
    exact = any(not fault.vague for fault in faults)
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    for fault in faults:
        if len(answer.findings) < request.max_findings and not (fault.vague and exact):
            _add(answer, request, fault, seen)
    answer.drop_mixed_transience()
    return answer


def _add(answer: Answer, request: Request, fault: Fault, seen: set[tuple[object, ...]]) -> None:
    path = request.relative(fault.path) if fault.path else None
    name = cut_bytes(fault.name.strip(" .:;,"), MAX_NAME_BYTES)
    if not name or (name, path, fault.line) in seen:
        return
    seen.add((name, path, fault.line))
    kind, rule, fix = fault.cause
    cause = {"kind": kind, "rule": f"maven-{rule}", "evidence": cut_bytes(fault.first.text.strip(), 500)}
    answer.add(
        fault.kind,
        code=name,
        message=cut_bytes(fault.said, MAX_MESSAGE_BYTES),
        path=path,
        line=fault.line,
        column=fault.column,
        evidence=[span(fault.first, fault.last)],
        cause={**cause, **({"fix": fix} if fix else {})} if kind else None,
    )


if __name__ == "__main__":
    main(extract)
