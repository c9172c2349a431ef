"""Failed tests from what PHPUnit prints at the end or as it goes (testdox), and from what Pest prints.

What is risky, skipped, incomplete or deprecated is no failure.
"""

from __future__ import annotations

from blocks import Block
from readers import NumberedReader, PestReader, TestdoxReader
from saying import read

from kos_retry.sdk import Answer, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all streams, each once: those of the summary where there is one."""
    answer = Answer()
    readers = (request.read(NumberedReader), request.read(TestdoxReader), request.read(PestReader))
    seen: set[str] = set()
    for of_stream in zip(*(of_streams.values() for of_streams in readers), strict=True):
        for block in next((reader.blocks for reader in of_stream if reader.blocks), []):
            if block.name not in seen:
                _add(answer, request, block)
            seen.add(block.name)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _add(answer: Answer, request: Request, block: Block) -> None:
    saying = read(block)
    answer.add(
        "test",
        status="error" if saying.error_type else "failed",
        test_id=block.name,
        error_type=saying.error_type,
        message=cut_bytes(saying.message, MAX_MESSAGE_BYTES) or "failed",
        path=request.relative(saying.path) if saying.path else None,
        line=saying.line,
        evidence=[span(block.first, block.last)],
    )


if __name__ == "__main__":
    main(extract)
