"""Failed scenarios from what runners of Gherkin features print: the list at the end, and the steps above it.

The keywords of a feature are in the language of its author, so that only the shape of a line counts.
"""

from __future__ import annotations

from scenarios import Reader, Scenario

from kos_retry.sdk import Answer, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048


def extract(request: Request) -> Answer:
    """Answer with the failed scenarios of all streams, each once."""
    answer = Answer()
    readers = request.read(Reader)
    seen: set[str] = set()
    for scenario in (scenario for reader in readers.values() for scenario in reader.failed()):
        name = f"{request.relative(scenario.path)} > {scenario.name}"
        if name not in seen:
            _add(answer, request, name, scenario)
        seen.add(name)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _add(answer: Answer, request: Request, name: str, scenario: Scenario) -> None:
    error_type, said = scenario.error()
    message = f"{said} (in {scenario.step})".strip() if scenario.step else said
    answer.add(
        "test",
        status="error" if error_type else "failed",
        test_id=name,
        error_type=error_type,
        message=cut_bytes(message, MAX_MESSAGE_BYTES) or "failed",
        path=request.relative(scenario.path),
        line=scenario.number,
        evidence=[span(scenario.first, scenario.last)],
    )


if __name__ == "__main__":
    main(extract)
