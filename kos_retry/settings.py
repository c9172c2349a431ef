"""The settings of one run, read from wherever they were written."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RunSettings:
    """The values of all options of `run`; durations in seconds, None where nothing is set."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.max_attempts: int = values["max_attempts"]
        self.timeout: float | None = values["timeout"]
        self.kill_after: float = values["kill_after"]
        self.delay: float = values["delay"]
        self.backoff: float = values["backoff"]
        self.max_delay: float = values["max_delay"]
        self.jitter: Any = values["jitter"]
        self.seed: int | None = values["seed"]
        self.max_stagnant_attempts: int = values["max_stagnant_attempts"]
        self.zero_delta_fail_fast: bool = values["zero_delta_fail_fast"]
        self.max_identical_signatures: int = values["max_identical_signatures"]
        self.guidance: str = values["guidance"]
        self.max_prompt_bytes: int = values["max_prompt_bytes"]
        self.max_prompt_tokens: int = values["max_prompt_tokens"]
        self.session: str | None = values["session"]
        self.state_dir: str | None = values["state_dir"]
        self.report: list[tuple[str, str]] = values["report"]
        self.mask_env: list[str] = values["mask_env"]
