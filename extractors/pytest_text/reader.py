"""Cutting a stream into the runs of pytest, and those into blocks and summary lines."""

from __future__ import annotations

import re

from blocks import MAX_CHARS, PLACE, Block, Entry, Run
from node_ids import PATH_ID, heading_of, split_entry, verbose_id

from kos_retry.sdk import Line

MAX_BLOCKS = 2000
MAX_ENTRIES = 2000

REPORTS = ("FAILURES", "ERRORS")
OTHER_SECTIONS = (
    "PASSES",
    "XPASSES",
    "XFAILURES",
    "warnings summary",
    "slowest ",
    "rerun test summary",
    "tests coverage",
)

_FINAL = re.compile(r"^(?:\d{1,9} [a-z]{4,12}\b.{0,300}|no tests ran) in \d{1,9}\.\d{1,3}s")
_COUNT = re.compile(r"(\d{1,9}) (failed|passed|skipped|errors?)\b")
_SUMMARY = re.compile(r"^(FAILED|ERROR|SUBFAILED|SUBFAIL)(\[[^\]]{0,200}\])?(?: (\([^)]{0,200}\)))? (.{1,4000})$")
_USAGE = re.compile(r"^ERROR: (.{1,2000})$")


class Reader:
    """Cuts one stream into runs, and those into blocks and summary lines."""

    def __init__(self, skip_nested: bool) -> None:
        self.runs = [Run()]
        # What pytest complained of, and whether that is how it was called.
        self.troubles: list[tuple[Line, str, bool]] = []
        self.internal: Block | None = None
        self.nested = False
        self.skipped = False
        self._skip_nested = skip_nested
        self._state = ""
        self._after = ""
        # Whether a test is printing something like a report.
        self._printed = False
        self._block: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text
        if (title := self._main_title(text)) and self._heading(title):
            return
        if self.nested:
            self.nested = not _FINAL.match(text)
        elif text.startswith("INTERNALERROR> "):
            self.internal = self.internal or Block("internal", None, line, line)
            self.internal.feed(Line(text.removeprefix("INTERNALERROR> "), line.source, line.start, line.end))
        elif self._state in REPORTS:
            self._report(line)
        elif self._state == "summary":
            self._entry(line)
        elif self._state == "":
            self._progress(line)

    def _main_title(self, text: str) -> str:
        if " test session starts =" in text:
            # Without capturing, the run of a test starts behind the dots of the run that it is in.
            return _title(text[text.find("=") :], "=")
        if text[:1] in "0123456789n":
            return text if _FINAL.match(text) and not self._in_captured() else ""
        return _title(text, "=")

    def _in_captured(self) -> bool:
        return self._block is not None and self._block.captured

    def _heading(self, title: str) -> bool:
        """Act on a heading that pytest prints; return whether it was one."""
        run = self.runs[-1]
        begins, final = title == "test session starts", bool(_FINAL.match(title))
        if self.nested:
            self.nested = not final
            return True
        if begins and run.started and not run.closed and self._skip_nested:
            self.nested = self.skipped = True
        elif title in run.sections and self._in_captured():
            self._printed = True
        elif begins or title in REPORTS:
            if run.closed:
                self.runs.append(Run())
            self._enter("" if begins else title)
            self.runs[-1].sections.add(title)
            self.runs[-1].started = True
        elif title == "short test summary info":
            run.entries = {}
            # Where a test printed this, the report goes on after it.
            self._after = self._state if self._in_captured() else ""
            self._enter("summary")
        elif final:
            names = {"error": "errored", "errors": "errored"}
            run.totals = {names.get(word, word): int(count) for count, word in _COUNT.findall(title)}
            run.closed = True
            self._printed = False
            self._enter(self._after)
            self._after = ""
        elif title.startswith(OTHER_SECTIONS):
            self._enter("other")
        else:
            return False
        return True

    def _enter(self, state: str) -> None:
        self._state, self._block = state, None

    def _report(self, line: Line) -> None:
        run, text = self.runs[-1], line.text
        dashes = _title(text, "-")
        if (title := _title(text, "_")) and title.strip("_ ") and not self._printed:
            self._block = None
            if len(run.blocks) < MAX_BLOCKS:
                self._block = Block(self._state, title, line, line)
                run.blocks.append(self._block)
        elif dashes.startswith(("generated ", "coverage:")) or text.startswith("!!!!"):
            self._block = None
        elif self._block is not None:
            self._block.feed(line)
        elif (place := PLACE.match(text[:MAX_CHARS])) and place[3] and len(run.blocks) < MAX_BLOCKS:
            block = Block(self._state, None, line, line, margin=[place[3]])
            block.places.append((place[1], int(place[2]), ""))
            run.blocks.append(block)

    def _entry(self, line: Line) -> None:
        if not (match := _SUMMARY.match(line.text[:MAX_CHARS])):
            return
        about = " ".join(part for part in (match[2], match[3]) if part)
        node_id, message = split_entry(match[4])
        sub = match[1].startswith("SUB")
        known = self.runs[-1].entries
        if (
            len(known) < MAX_ENTRIES
            and (sub or not about)
            and ("::" in node_id or PATH_ID.match(node_id))
            and node_id[0] != ":"
        ):
            entry = Entry("FAILED" if sub else match[1], node_id, about, message, line)
            known.setdefault((entry.word, node_id, about), entry)

    def _progress(self, line: Line) -> None:
        text = line.text
        if text.startswith("ImportError while loading conftest"):
            self._enter("FAILURES")
            self._block = Block("conftest", None, line, line)
            self.runs[-1].blocks.append(self._block)
        elif node_id := verbose_id(text):
            self.runs[-1].verbose.setdefault(heading_of(node_id), Entry("FAILED", node_id, "", "", line))
        elif usage := _USAGE.match(text):
            self.troubles.append((line, usage[1], True))
        elif ": error: " in text and self.troubles and self.troubles[-1][1].startswith("usage: "):
            self.troubles[-1] = (line, text.partition(": error: ")[2], True)
        elif (title := _title(text, "!")) and title.startswith(("KeyboardInterrupt", "_pytest.outcomes.Exit")):
            self.troubles.append((line, title, False))


def _title(text: str, fill: str) -> str:
    """Return what stands between two runs of ``fill``, as in ``=== FAILURES ===``; empty where nothing does."""
    if len(text) < 5 or text[0] != fill or text[-1] != fill or len(text) > 2000:
        return ""
    left, _, rest = text.partition(" ")
    middle, _, right = rest.rpartition(" ")
    return middle.strip() if middle and not left.strip(fill) and not right.strip(fill) else ""
