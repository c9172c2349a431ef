"""Node ids: how pytest names a test on its lines, and what the headings of its blocks make of that."""

from __future__ import annotations

import re

from blocks import Block, Entry, Run

from kos_retry.sdk import Request

_WORKER = re.compile(r"^\[gw\d{1,4}\] \[ {0,2}\d{1,3}%\] (?:FAILED|ERROR) ")
PHASE = re.compile(r"^(?:ERROR (?:at (?:setup|teardown) of|collecting) |\[doctest\] )")
_SUBTEST = re.compile(r"^([\w.]{1,400}) [\[(]")
FOREIGN = re.compile(r"^<|(?:site|dist)-packages/|/lib/python\d|/_pytest/")
PATH_ID = re.compile(r"^[^\s:]{1,400}(?:\.\w{1,8}|/[^\s:]{0,200})$")


def verbose_id(text: str) -> str:
    """Return the node id of a line that pytest or a worker of it prints when a test has failed, else nothing."""
    if worker := _WORKER.match(text):
        return text[worker.end() :].strip()
    for word in (" FAILED", " ERROR"):
        head, _, tail = text.rpartition(word)
        if "::" in head and not head[0].isspace() and tail[:1] in ("", " "):
            return head.strip()
    return ""


def split_entry(text: str) -> tuple[str, str]:
    """Split a summary line into node id and message: a `` - `` inside of parameters does not part them."""
    at = text.find(" - ")
    while at >= 0:
        left = text[:at]
        if "[" not in left.partition("::")[2] or left.endswith("]"):
            return left, text[at + 3 :].strip()
        at = text.find(" - ", at + 3)
    return text.strip(), ""


def completed(entry: Entry, run: Run) -> str:
    """Return the node id, completed from the verbose lines or the headings where it was cut off."""
    if not entry.node_id.endswith("..."):
        return entry.node_id
    start = entry.node_id.removesuffix("...")
    path, _, rest = start.partition("::")
    whole = next((e.node_id for e in run.verbose.values() if e.node_id.startswith(start)), None)
    titles = (PHASE.sub("", block.title or "") for block in run.blocks)
    title = next((t for t in titles if rest and t.startswith(heading_of(start))), None)
    return whole or (f"{path}::{_colons(title)}" if title else entry.node_id)


def id_of(block: Block, run: Run, request: Request) -> str:
    """Return the node id of a block: the test's file is the first one it names that is called like one."""
    title = PHASE.sub("", block.title or "")
    if subtest := _SUBTEST.match(title):
        title = subtest[1]
    if title in run.verbose:
        return run.verbose[title].node_id
    paths = [request.relative(path) for path, _, _ in block.places if not FOREIGN.search(path)]
    tests = [p for p in paths if p.rpartition("/")[2].startswith("test_") or p.endswith("_test.py")]
    path = next(iter([*tests, *paths]), "")
    if not title or title == path or (block.title or "").startswith("ERROR collecting "):
        return title or path
    return f"{path}::{_colons(title)}" if path else title


def heading_of(node_id: str) -> str:
    """Return the heading under which the report details a node: its names joined by dots, or its file."""
    path, _, rest = node_id.partition("::")
    head, bracket, parameters = rest.partition("[")
    return head.replace("::", ".") + bracket + parameters if rest else path


def _colons(title: str) -> str:
    head, bracket, parameters = title.partition("[")
    return head.replace(".", "::") + bracket + parameters
