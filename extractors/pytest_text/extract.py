"""Failed tests from what pytest prints on a terminal, in any of its styles.

The last summary of a run says which tests failed; the blocks above it say why and where. Without a summary the
blocks alone tell. What a test printed may itself look like a report, so only known headings count, and a run
that starts inside another one is skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from blocks import Block, Entry, Run
from errors import cause_of, split_type, told_by
from node_ids import PATH_ID, PHASE, completed, heading_of, id_of
from reader import REPORTS, Reader

from kos_retry.sdk import Answer, Request, main, span
from kos_retry.text.bounds import cut_bytes

# A constraint that is called by a whole complaint.
MAX_NAME_BYTES = 200


def extract(request: Request) -> Answer:
    """Answer with the failed tests, each once; without any, with what kept pytest from running them."""
    readers = _read(request, skip_nested=True)
    if any(reader.skipped and not reader.runs[-1].closed for reader in readers):
        # What looked like a run inside of the run was none, or the output is cut off.
        whole = _read(request, skip_nested=False)
        readers = whole if any(reader.runs[-1].closed for reader in whole) else readers
    answer = Answer()
    for reader in readers:
        _answer(answer, request, reader)
    answer.drop_mixed_transience()
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _read(request: Request, skip_nested: bool) -> list[Reader]:
    readers: dict[str, Reader] = {}
    for line in request.lines():
        if line.source not in readers:
            readers[line.source] = Reader(skip_nested)
        readers[line.source].feed(line)
    return list(readers.values())


def _answer(answer: Answer, request: Request, reader: Reader) -> None:
    seen: set[str] = {f["test_id"] for f in answer.findings if "test_id" in f}
    for run in reader.runs:
        for name, count in run.totals.items():
            answer.totals = {**(answer.totals or {}), name: (answer.totals or {}).get(name, 0) + count}
        for entry, block in _paired(run, request):
            if len(answer.findings) >= request.max_findings:
                break
            node_id = completed(entry, run) if entry else id_of(block, run, request) if block else ""
            if node_id not in seen:
                _add_test(answer, request, node_id, entry, block)
            seen.add(node_id)
        for block in run.blocks:
            if block.section == "conftest":
                _add_block(answer, request, "diagnostic", block)
    if reader.internal:
        _add_block(answer, request, "crash", reader.internal)
    ran = any("passed" in run.totals or "failed" in run.totals for run in reader.runs)
    if not answer.findings and request.exit_code != 0:
        _add_troubles(answer, reader, ran)


def _paired(run: Run, request: Request) -> Iterator[tuple[Entry | None, Block | None]]:
    """Yield what failed with its block: by the summary where there is one, else by the blocks."""
    titled: dict[str | None, list[Block]] = defaultdict(list)
    for block in run.blocks:
        titled[PHASE.sub("", block.title) if block.title is not None else None].append(block)
    # Of a test that fails and then cannot be torn down, the failure counts.
    for entry in sorted(run.entries.values(), key=lambda entry: entry.word == "ERROR"):
        path = entry.node_id.partition("::")[0]
        heading = f"{heading_of(entry.node_id)} {entry.about}".strip()
        named = [*titled[heading], *titled[path], *(b for b in titled[None] if _agrees(b, entry))]
        free = [b for b in named if not b.used and b.section == ("ERRORS" if entry.word == "ERROR" else "FAILURES")]
        block_ = next((b for b in free if _names(b, path, request)), free[0] if free else None)
        if block_:
            block_.used = True
        yield entry, block_
    if not run.entries:
        told = [block for block in run.blocks if block.section in REPORTS and (block.title or block.places)]
        yield from ((None, block) for block in sorted(told, key=lambda block: block.section == "ERRORS"))
        known = {PHASE.sub("", block.title or "") for block in run.blocks}
        yield from ((entry, None) for key, entry in run.verbose.items() if key not in known)


def _add_test(answer: Answer, request: Request, node_id: str, entry: Entry | None, block: Block | None) -> None:
    error_type, message, place = told_by(block, request) if block else (None, "", None)
    if entry and not (error_type or message):
        error_type, message = split_type(entry.message, "")
    path, names, _ = node_id.partition("::")
    evidence = [span(block.first, block.last)] if block else [span(entry.line)] if entry else []
    answer.add(
        "test",
        status="error" if (entry and entry.word == "ERROR") or (block and block.section == "ERRORS") else "failed",
        test_id=node_id,
        error_type=error_type,
        message=message or "failed",
        path=place[0] if place else path if PATH_ID.match(path) else None,
        line=place[1] if place else None,
        evidence=evidence,
        cause=cause_of(error_type, message, not names),
    )


def _add_block(answer: Answer, request: Request, kind: str, block: Block) -> None:
    error_type, message, place = told_by(block, request)
    cause = cause_of(error_type, message, kind == "diagnostic")
    path, line = place or (None, None)
    evidence = [span(block.first, block.last)]
    answer.add(
        kind, error_type=error_type, message=message or "failed", path=path, line=line, evidence=evidence, cause=cause
    )


def _add_troubles(answer: Answer, reader: Reader, ran: bool) -> None:
    """Add what pytest itself complained of, or that it found no test to run."""
    for line, text, usage in reader.troubles[:8]:
        cause = _deterministic("usage", line.text, "correct the arguments or the configuration of pytest")
        error_type = None if usage else text.partition(":")[0].rpartition(".")[2]
        code = cut_bytes(text, MAX_NAME_BYTES) if usage else "pytest-interrupted"
        answer.add(
            "diagnostic",
            code=code,
            error_type=error_type,
            message=text,
            evidence=[span(line)],
            cause=cause if usage else None,
        )
    if not reader.troubles and not ran and any(run.closed for run in reader.runs):
        cause = _deterministic("no-tests", "no tests ran", "correct the selection: it matches no test")
        answer.add("diagnostic", code="no tests ran", message="no tests ran", cause=cause)


def _deterministic(rule: str, evidence: str, fix: str) -> dict[str, str]:
    return {"kind": "deterministic", "rule": f"pytest-{rule}", "evidence": evidence, "fix": fix}


def _names(block: Block, path: str, request: Request) -> bool:
    return any(request.relative(place) == path for place, _, _ in block.places)


def _agrees(block: Block, entry: Entry) -> bool:
    said = entry.message.removesuffix("...")
    return bool(said) and block.margin[0].startswith(said)


if __name__ == "__main__":
    main(extract)
