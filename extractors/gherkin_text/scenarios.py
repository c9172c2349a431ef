"""Cutting a stream into scenarios: those that are listed as failed, and what their steps said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from saying import read

from kos_retry.sdk import Line

MAX_LINES = 60
MAX_SCENARIOS = 4000

_LIST = re.compile(r"^(?:Failing|Failed|Errored) [Ss]cenarios:$")
_LISTED = re.compile(
    r"^ {0,4}(?:cucumber (?:-\S{1,60} \S{1,60} ){0,4})?(?:file://|classpath:)?"
    r"(\S{1,600}\.feature):(\d{1,9}) {0,2}(?: |# )(\S.{0,500})$"
)
_NUMBERED = re.compile(r"^\d{1,6}\) (\S.{0,500}?) # (\S{1,600}\.feature):(\d{1,9})$")
# What stands behind `#`: where a scenario is written, or the code of a step.
_FEATURE = re.compile(r"^(?:file://)?(\S{1,600}\.feature):(\d{1,9})$")
_CODE = re.compile(r"^(?:\S{1,600}:\d{1,9}|(None)|[\w.$]{1,300}\(.{0,300}\))$")
_HEADER = re.compile(r"^ {0,8}\S[^:]{0,40}: (.{1,500})$")
_BARE_HEADER = re.compile(r"^ {1,4}\S[^:]{0,40}: (.{1,500})$")
_KEYWORD = re.compile(r"^(?:Scenario(?: Outline)?|Example): ")
_STEP = re.compile(r"^( {2,12})(?:[✔✖✘✗?-] )?(\S.{0,500})$")
_PLAIN_STEP = re.compile(r"^( {2,12})(\S.{0,500}) \.\.\. (\w{1,20}) in [\d.]{1,12}s$")
_MARKED = re.compile(r"^( {2,12})[✖✘✗?] (\S.{0,500})$")
_INSIDE = re.compile(r"(\S{1,600}\.feature):(\d{1,9}):in ")


@dataclass(slots=True)
class Scenario:
    """One scenario: where it stands, and the step that failed with what it said."""

    name: str
    path: str
    number: int
    first: Line
    last: Line
    step: str = ""
    lines: list[str] = field(default_factory=list)

    def error(self) -> tuple[str | None, str]:
        """Return the type and the message of what the step said."""
        return read(self.lines) if self.lines else (None, "undefined step" if self.step else "")


class Reader:
    """Reads one stream."""

    def __init__(self) -> None:
        self._listed: list[Scenario] = []
        self._shown: dict[object, Scenario] = {}
        self._section = ""
        self._open: Scenario | None = None
        self._step, self._indent = "", 0

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if _LIST.match(text):
            self._section, self._open = "list", None
        elif text in ("Failures:", "Warnings:"):
            self._section, self._open = text, None
        elif self._section == "list" and (listed := _LISTED.match(text)):
            self._list(Scenario(_KEYWORD.sub("", listed[3]), listed[1], int(listed[2]), line, line))
        elif self._section == "Failures:" and (numbered := _NUMBERED.match(text)):
            self._show(Scenario(_KEYWORD.sub("", numbered[1]), numbered[2], int(numbered[3]), line, line), listed=True)
        elif not self._placed(text, line) and not (self._open is not None and self._step_of(self._open, text)):
            if header := _BARE_HEADER.match(text):
                self._show(Scenario(header[1].strip(), "", 0, line, line), listed=False)
            elif self._open is not None and text.strip():
                self._say(self._open, text, line)

    def failed(self) -> Iterator[Scenario]:
        """Yield the scenarios that are listed as failed, with what was said of them where they ran."""
        for scenario in self._listed:
            shown = self._shown.get((scenario.path, scenario.number)) or self._shown.get(scenario.name)
            if shown is not None and shown is not scenario:
                scenario.step, scenario.lines = shown.step, shown.lines
                scenario.first, scenario.last = shown.first, shown.last
            yield scenario

    def _list(self, scenario: Scenario) -> None:
        if len(self._listed) < MAX_SCENARIOS:
            self._listed.append(scenario)

    def _show(self, scenario: Scenario, *, listed: bool) -> None:
        """Begin a scenario that is shown with its steps."""
        self._open, self._step = scenario, ""
        if listed:
            self._list(scenario)
        if len(self._shown) < MAX_SCENARIOS:
            # A runner may print one path above the steps and another one in the list.
            self._shown[scenario.name] = scenario
            if scenario.path:
                self._shown[scenario.path, scenario.number] = scenario

    def _placed(self, text: str, line: Line) -> bool:
        """Read a scenario or a step that comes with its place; return whether it was one."""
        head, _, place = text.rpartition(" # ")
        if (feature := _FEATURE.match(place)) and (header := _HEADER.match(head.rstrip())):
            self._show(Scenario(header[1].strip(), feature[1], int(feature[2]), line, line), listed=False)
        elif self._open is not None and (code := _CODE.match(place)) and (step := _STEP.match(head.rstrip())):
            self._begin(self._open, step, undefined=bool(code[1]))
        else:
            return False
        return True

    def _step_of(self, scenario: Scenario, text: str) -> bool:
        """Read a step without its place; return whether it was one."""
        if step := _PLAIN_STEP.match(text):
            self._begin(scenario, step, undefined=step[3] == "undefined")
            # What is said of it stands at the margin.
            self._indent = -1
        elif step := _MARKED.match(text):
            self._begin(scenario, step, undefined=False)
        return bool(step)

    def _begin(self, scenario: Scenario, step: re.Match[str], *, undefined: bool) -> None:
        """Begin a step; the first one that nobody wrote is why a scenario fails where nothing is said."""
        self._step, self._indent = step[2], len(step[1])
        if undefined and not scenario.step:
            scenario.step = step[2]

    def _say(self, scenario: Scenario, text: str, line: Line) -> None:
        said = text.strip()
        if not self._step or len(text) - len(text.lstrip()) <= self._indent or said.startswith(("|", '"""')):
            return
        if inside := _INSIDE.search(text):
            row = Scenario("", inside[1], int(inside[2]), line, line, self._step, scenario.lines)
            self._shown.setdefault((row.path, row.number), row)
        if len(scenario.lines) < MAX_LINES:
            scenario.step = scenario.step if scenario.lines else self._step
            scenario.lines.append(said)
            scenario.last = line
