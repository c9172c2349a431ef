"""Limits that a measure did not keep: the coverage of tests below what is asked for."""

from __future__ import annotations

import re

from kos_retry.sdk import Answer, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200

_MISSED = re.compile(
    r"^(?:ERROR: |FAIL |Jest: |\[error\] |npm error ){0,2}(?P<said>Coverage failure: total of [\d.]{1,10} is less than fail-under=[\d.]{1,10}"
    r"|Required test coverage of [\d.]{1,10}% not reached(?:\. Total coverage: [\d.]{1,10}%)?"
    r"|\"[^\"]{1,300}\" coverage threshold for \w{1,20} \([\d.]{1,10}%?\) not met: [\d.]{1,10}%?"
    r"|Coverage for \w{1,20} \([\d.]{1,10}%\) (?:for .{1,300} )?does not meet .{0,40}threshold \([\d.]{1,10}%\)(?: for .{1,300})?"
    r"|(?:Line|Branch|Method) coverage \([\d.]{1,10}%\) is below the expected minimum coverage \([\d.]{1,10}%\)"
    r"|coverage: [\d.]{1,10}% .{0,60}below (?:the )?(?:minimum|threshold).{0,80})\.?$"
)


def extract(request: Request) -> Answer:
    """Answer with each limit that was not kept, once."""
    answer = Answer()
    seen: set[str] = set()
    for line in request.lines():
        missed = _MISSED.match(line.text.strip()) if "overage" in line.text else None
        if missed is None or len(answer.findings) >= request.max_findings:
            continue
        said = missed["said"]
        if said in seen:
            continue
        seen.add(said)
        cause = {
            "kind": "deterministic",
            "rule": "thresholds-coverage",
            "evidence": cut_bytes(said, 500),
            "fix": "test what is not covered, or lower the limit",
        }
        answer.add("policy", code=cut_bytes(said, MAX_NAME_BYTES), message=said, evidence=[span(line)], cause=cause)
    return answer


if __name__ == "__main__":
    main(extract)
