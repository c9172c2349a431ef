"""What make, CMake, CTest, Ninja and Meson themselves say of a failure.

That a recipe failed is only a guess at what went wrong: what it ran has said so in its own words.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 200
MAX_BODY_LINES = 60
MESSAGE_LINES = 8
MAX_KEPT = 2000

_MAKE = r"^(?:[\w./-]{0,80}/)?g?make(?:\[\d{1,4}\])?: "
_NO_RULE = re.compile(
    _MAKE + r"\*\*\* (No rule to make target [`'](.{1,400}?)')(?:, needed by .{1,400})?\.(?:  Stop\.)?$"
)
_NO_FILE = re.compile(_MAKE + r"\*\*\* (No targets.{0,60}?|No .{0,60}makefile found)\.  Stop\.$")
_MAKEFILE = re.compile(r"^([^\s:]{1,400}):(\d{1,9}): \*\*\* (.{1,400}?)(?:\.  Stop\.)$")
_NOT_FOUND = re.compile(_MAKE + r"(\S{1,200}: (?:No such file or directory|Command not found|Permission denied))$")
_RECIPE = re.compile(_MAKE + r"\*\*\* \[(?:([^\s:\]]{1,400}):(\d{1,9}): )?(.{1,300})\] (Error \d{1,3}|\w.{0,60})$")
# What a script says of itself before it ends: `name: message`; compilers and tools with a format are others' matter.
_LAST_WORDS = re.compile(
    r"^(?!g?make|collect2|cc1|ld|curl|git|fatal|error|warning|npm|E|ERROR|\w{0,60}(?:Error|Exception|Warning):)"
    r"[\w.-]{1,40}: (?!error|fatal|warning|note|line \d)[A-Za-z].{4,200}$"
)
_TELLING = re.compile(
    r"(?i)\b(?:error|fail\w{0,3}|assert\w{0,6}|expect\w{0,3}|want|got|panic|abort\w{0,2}|exception|mismatch)\b"
)
_DIRECTORY = re.compile(_MAKE + r"(?:Entering|(Leaving)) directory [`'](.{1,400})'$")
_LEVEL = re.compile(r"make\[(\d{1,4})\]")

_CMAKE = re.compile(
    r"^CMake Error(?: (?:at|in) (?P<path>[^:]{1,400}?)(?::(?P<line>\d{1,9}))?(?: \((?P<call>\w{1,100})\))?)?:(?P<message>.*)$"
)
_CALLED_FROM = re.compile(r"^  ([^:\s][^:]{0,400}):(\d{1,9}) \(\w{1,100}\)$")
_MODULES = re.compile(r"/share/cmake[\w.-]{0,20}/|/_deps/")
_PACKAGE = re.compile(
    r'Could not find a (?:package configuration file provided by|configuration file for package) "[^"]{1,200}"'
    r"|Could NOT find [^\s:]{1,200}|Unknown CMake command \"[^\"]{1,200}\"|None of the required '[^']{1,200}' found"
)
_SENTENCE = re.compile(r"(?<=[\w\"')])[.:](?: |$)")
# Where CMake fetches something it may be anybody's fault.
_FETCHES = re.compile(r"(?i)download|clone|fetch|No space left on device")

_CTEST_LIST = "The following tests FAILED:"
_CTEST_ITEM = re.compile(r"^\s{1,12}\d{1,6} - (.{1,300}?) \(([A-Z][\w ]{1,40})\)(?:\s.{0,200})?$")
_CTEST_RUN = re.compile(r"^\s{0,8}\d{1,6}/\d{1,6} Test\s{1,6}#\d{1,6}: (\S.{0,300}?) \.{2,300}.{0,40}?\*\*\*")
_CTEST_OTHER = re.compile(r"^\s{0,12}(?:Start\s{1,6}\d{1,6}: |\d{1,6}/\d{1,6} Test\s)|^\d{1,3}% tests passed")

_NINJA = re.compile(r"^ninja: (?:error|fatal): (.+)$")
_FAILED = re.compile(r"^FAILED: (?:\[code=\d{1,3}\] )?(\S.{0,400})$")
_MESON = re.compile(r"^(\S{0,400}meson(?:\.build|_options\.txt|\.options)):(\d{1,9}):(\d{1,9}): ERROR: (.+)$")

# All that a line can begin something by.
_READ = (
    re.compile(rf"^(?:CMake Error|make -C |{_CTEST_LIST}$)"),
    *(_MESON, _NINJA, _FAILED, _NO_RULE, _NO_FILE, _MAKEFILE, _NOT_FOUND, _RECIPE, _CTEST_RUN, _DIRECTORY),
)


@dataclass(slots=True)
class Fault:
    """One error of a build tool, and what is said below it."""

    first: Line
    last: Line
    name: str = ""
    path: str | None = None
    line: int | None = None
    body: list[str] = field(default_factory=list)
    of_cmake: bool = False
    sure: bool = True
    cause: str = "deterministic"


class Reader:
    """Collects what one stream says."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.tests: dict[str, tuple[Line, str]] = {}
        self.output: dict[str, list[Line]] = {}
        self._open: Fault | None = None
        self._listing = False
        self._test: list[Line] | None = None
        self._before: deque[Line] = deque(maxlen=1)
        self._recipes: dict[str, Fault] = {}
        self._watch = Watch(*_READ)

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if self._open is None and self._test is None and not self._listing and not self._watch.sees(line):
            if text:
                self._before.append(line)
            return
        if self._listing and (item := _CTEST_ITEM.match(text)):
            if len(self.tests) < MAX_KEPT:
                self.tests.setdefault(item[1], (line, item[2]))
            return
        self._listing = text == _CTEST_LIST
        if fault := self._fault(text, line):
            self.faults.append(fault)
            self._open = fault if fault.of_cmake else None
        elif self._open is not None:
            self._continue(self._open, text, line)
        self._of_test(text, line)
        if moved := _DIRECTORY.match(text):
            # A nested make that fails leaves its directory right after it said so.
            recipe = self._recipes.pop(_level(text), None) if moved[1] else None
            if recipe is not None and recipe.path:
                recipe.path = f"{moved[2]}/{recipe.path}"
        elif text and not text.startswith("make -C "):
            self._before.append(line)

    def _fault(self, text: str, line: Line) -> Fault | None:
        if len(self.faults) >= MAX_KEPT:
            return None
        if text.startswith("CMake Error") and (cmake := _CMAKE.match(text)):
            number = int(cmake["line"]) if cmake["line"] else None
            body = [cmake["message"].strip()] if cmake["message"].strip() else []
            return Fault(line, line, path=cmake["path"], line=number, body=body, of_cmake=True)
        if meson := _MESON.match(text):
            return Fault(line, line, meson[4], meson[1], int(meson[2]))
        if ninja := _NINJA.match(text):
            return Fault(line, line, ninja[1])
        if failed := _FAILED.match(text):
            return Fault(line, line, f"FAILED: {failed[1]}", sure=False)
        return self._of_make(text, line) if ": " in text else None

    def _of_make(self, text: str, line: Line) -> Fault | None:
        if rule := _NO_RULE.match(text):
            return Fault(line, line, rule[1])
        if nothing := _NO_FILE.match(text):
            return Fault(line, line, nothing[1])
        if syntax := _MAKEFILE.match(text):
            return Fault(line, line, syntax[3], syntax[1], int(syntax[2]))
        if missing := _NOT_FOUND.match(text):
            denied = missing[1].endswith("denied")
            return Fault(line, line, missing[1], cause="permission_denied" if denied else "command_not_found")
        if recipe := _RECIPE.match(text):
            return self._of_recipe(recipe, line)
        return None

    def _of_recipe(self, recipe: re.Match[str], line: Line) -> Fault:
        """Return a guess, or what the recipe said of itself right before."""
        before = self._before[0] if self._before else None
        said = before.text.strip() if before else ""
        words = said if _LAST_WORDS.match(said) else ""
        fault = Fault(
            before or line,
            line,
            words or f"[{recipe[3]}] {recipe[4]}",
            recipe[1],
            int(recipe[2]) if recipe[2] else None,
            body=[said] if said else [],
            sure=bool(words),
            cause="",
        )
        if level := _level(line.text):
            self._recipes[level] = fault
        return fault

    def _continue(self, fault: Fault, text: str, line: Line) -> None:
        """Read what CMake says below: indented, in paragraphs, and then the calls that led to it."""
        if (text and not text.startswith("  ") and text != "Call Stack (most recent call first):") or len(
            fault.body
        ) >= MAX_BODY_LINES:
            self._open = None
            return
        if (called := _CALLED_FROM.match(text)) and fault.path and _MODULES.search(fault.path):
            fault.path, fault.line = called[1], int(called[2])
        elif text and not text.startswith("Call Stack") and called is None:
            fault.body.append(text.strip())
            fault.last = line

    def _of_test(self, text: str, line: Line) -> None:
        """Keep what a failed test printed; it stands below its result."""
        if run := _CTEST_RUN.match(text):
            self._test = self.output.setdefault(run[1], [])
        elif _CTEST_OTHER.match(text):
            self._test = None
        elif self._test is not None and text and len(self._test) < MESSAGE_LINES:
            self._test.append(line)


def _level(text: str) -> str:
    level = _LEVEL.search(text[:120])
    return level[1] if level else ""


def extract(request: Request) -> Answer:
    """Answer with the failed tests, then with the errors, each once."""
    readers = request.read(Reader)
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    for reader in readers.values():
        for name, (line, how) in reader.tests.items():
            _add_test(answer, name, how, [*reader.output.get(name, ())], line)
        _add_faults(answer, request, reader.faults, seen)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _add_test(answer: Answer, name: str, how: str, output: list[Line], line: Line) -> None:
    telling = next((n for n, said in enumerate(output) if _TELLING.search(said.text)), len(output) - 1)
    output = output[max(0, telling) :]
    message = "\n".join(said.text.strip() for said in output)
    answer.add(
        "test",
        test_id=name,
        error_type=None if how == "Failed" else how,
        message=cut_bytes(message, MAX_MESSAGE_BYTES) or how,
        evidence=[span(output[0], output[-1])] if output else [span(line)],
    )


def _add_faults(answer: Answer, request: Request, faults: Iterable[Fault], seen: set[tuple[object, ...]]) -> None:
    for fault in faults:
        message = " ".join(fault.body) or fault.name
        name = fault.name or _name(message)
        if not name or (name, fault.path, fault.line) in seen:
            continue
        seen.add((name, fault.path, fault.line))
        known = fault.sure and fault.cause and not _FETCHES.search(message)
        answer.add(
            "diagnostic",
            code=cut_bytes(name, MAX_NAME_BYTES),
            message=cut_bytes(message, MAX_MESSAGE_BYTES),
            path=request.relative(fault.path) if fault.path else None,
            line=fault.line,
            evidence=[span(fault.first, fault.last)],
            confidence="likely" if fault.sure else "guess",
            cause=_cause(fault, name) if known else None,
        )


def _name(message: str) -> str:
    """Return the part of CMake's paragraphs that says what is missing, else the first sentence."""
    if package := _PACKAGE.search(message):
        return package[0]
    return _SENTENCE.split(message, maxsplit=1)[0]


def _cause(fault: Fault, name: str) -> dict[str, Any]:
    return {"kind": fault.cause, "rule": f"build-{fault.cause.replace('_', '-')}", "evidence": cut_bytes(name, 500)}


if __name__ == "__main__":
    main(extract)
