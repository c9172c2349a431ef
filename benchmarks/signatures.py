"""Signing logs: megabytes and lines a second on one core, growth with the size, memory, and outputs that are made to hurt.

drain3 with masks like those of its examples stands in the table where ``KOS_RETRY_BENCH_DRAIN3`` names an interpreter that has it: it is
no dependency of this project.
"""

from __future__ import annotations

import json
import os
import random
import string
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from measure import KOS_RETRY, machine, peak_memory, table

from kos_retry.engine.observe import Evidence, observe
from kos_retry.text.escapes import decode, plain_text

MB = 1_000_000
SIZES = (1, 10, 100)
MIXED = 10
# Lines of the kinds that build, test and service logs are made of, with what changes in them.
KINDS: tuple[Callable[[int, random.Random], str], ...] = (
    lambda n, r: (
        f"2026-03-01T08:{n % 60:02d}:{n % 59:02d}.{n % 1000:03d}Z INFO worker-{n % 7} took request {r.randrange(MB)}"
    ),
    lambda n, _: f"[{n % 2044}/2044] Compiling src/mod_{n % 300}.c",
    lambda n, _: f"tests/test_{n % 90}.py::test_case_{n} PASSED [{n % 100}%]",
    lambda n, _: f"\x1b[32m✓\x1b[0m renders item {n} ({n % 40} ms)",
    lambda n, _: f"WARN retrying connection {n % 5} to 10.0.0.{n % 250}:5432 failed: timeout after {n % 30}s",
    lambda n, _: f"http fetch GET 200 https://packages.example/pkg{n % 500} {n % 300}ms (cache hit)",
    lambda n, _: f"    at Object.method{n % 50} (/home/ci/w{n % 3}/src/file{n % 77}.js:{n % 900}:{n % 80})",
    lambda n, r: f"DEBUG error count so far: {n % 3}, expected none, id={r.getrandbits(64):x}",
)
DRAIN3 = """
import json, sys, time
from drain3 import TemplateMiner
from drain3.masking import MaskingInstruction
from drain3.template_miner_config import TemplateMinerConfig
config = TemplateMinerConfig()
config.masking_instructions = [
    MaskingInstruction(pattern, name)
    for pattern, name in (
        (r"((?<=[^A-Za-z0-9])|^)(([0-9a-f]{2,}:){3,}([0-9a-f]{2,}))((?=[^A-Za-z0-9])|$)", "ID"),
        (r"((?<=[^A-Za-z0-9])|^)(\\\\d{1,3}\\\\.\\\\d{1,3}\\\\.\\\\d{1,3}\\\\.\\\\d{1,3})((?=[^A-Za-z0-9])|$)", "IP"),
        (r"((?<=[^A-Za-z0-9])|^)(0x[a-f0-9A-F]+)((?=[^A-Za-z0-9])|$)", "HEX"),
        (r"((?<=[^A-Za-z0-9])|^)([\\\\-\\\\+]?\\\\d+)((?=[^A-Za-z0-9])|$)", "NUM"),
    )
]
miner = TemplateMiner(config=config)
lines = open(sys.argv[1], encoding="utf-8").read().split("\\\\n")
began = time.process_time()
for line in lines:
    miner.add_log_message(line)
print(json.dumps(time.process_time() - began))
"""


def mixed_log(megabytes: int) -> Iterator[str]:
    """Yield the lines of a log of about that size, with one error near its end."""
    chosen, size, n = random.Random(3), 0, 0  # noqa: S311 - the same log every time, no secret
    while size < megabytes * MB:
        line = KINDS[(n * 7 + n // 11) % len(KINDS)](n, chosen)
        size += len(line) + 1
        n += 1
        yield line
    yield "error: cart total is off by one: expected 12, got 11"


def seconds_to_sign(raw: bytes) -> float:
    """Return the processor time from the bytes of an output to its signed envelope, in this process."""
    began = time.process_time()
    observe(Evidence(attempt=1, exit_code=1, outputs=(plain_text(decode(raw)),)))
    return time.process_time() - began


def in_process() -> dict[str, str]:
    """Return the rates on a mixed log that is read whole."""
    raw = "\n".join(mixed_log(MIXED)).encode()
    seconds = min(seconds_to_sign(raw) for _ in range(3))
    lines = raw.count(b"\n")
    return {
        "kos-retry": f"{len(raw) / MB / seconds:6.1f} MB/s  {lines / seconds:9,.0f} lines/s",
        **_drain3(raw, lines),
    }


def _drain3(raw: bytes, lines: int) -> dict[str, str]:
    interpreter = os.environ.get("KOS_RETRY_BENCH_DRAIN3")
    if not interpreter:
        return {"drain3": "not measured: KOS_RETRY_BENCH_DRAIN3 names no interpreter"}
    with tempfile.NamedTemporaryFile() as log:
        log.write(raw)
        log.flush()
        done = subprocess.run([interpreter, "-c", DRAIN3, log.name], capture_output=True, check=True)
    seconds = json.loads(done.stdout)
    return {"drain3": f"{len(raw) / MB / seconds:6.1f} MB/s  {lines / seconds:9,.0f} lines/s"}


def by_size(directory: str) -> dict[str, str]:
    """Return time and peak memory of `kos-retry observe` on logs of growing size, start-up and extractors included."""
    out = {}
    for size in SIZES:
        log = Path(directory, f"{size}.log")
        with log.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in mixed_log(size))
        argv = [KOS_RETRY, "observe", "--exit-code", "1", "--log", str(log)]
        began = time.perf_counter()
        _, peak = peak_memory(partial(subprocess.run, argv, stdout=subprocess.DEVNULL, check=True))
        seconds = time.perf_counter() - began
        out[f"{size:3d} MB"] = f"{seconds:6.2f} s  {peak:4.0f} MiB"
    return out


def hostile() -> dict[str, str]:
    """Return the processor time for a megabyte of each of a few outputs that are made to hurt."""
    chosen = random.Random(7)  # noqa: S311 - the same text every time, no secret
    alphabets = {
        "letters": string.ascii_letters,
        "digits": string.digits,
        "punctuation": string.punctuation,
        "hexadecimal": string.hexdigits,
        "many scripts": "aéßЖ中😀",
    }
    texts = {f"one line of {name}": "error: " + "".join(chosen.choices(a, k=MB)) for name, a in alphabets.items()}
    texts["ten megabytes without a newline"] = "error " * (10 * MB // 6)
    texts["nested brackets"] = "error: " + "[({" * (MB // 3)
    texts["every byte value"] = bytes(range(256)).decode("latin-1") * (MB // 256)
    texts["100,000 different error lines"] = "".join(
        f"error: {''.join(chosen.choices(string.ascii_lowercase, k=9))} is missing\n" for _ in range(100_000)
    )
    return {
        name: f"{seconds_to_sign(raw) / (len(raw) / MB):5.2f} s/MB"
        for name, raw in ((name, text.encode()) for name, text in texts.items())
    }


def main() -> None:
    """Measure all of it."""
    print(machine())
    table(f"signing a mixed log of {MIXED} MB, in one process", in_process())
    with tempfile.TemporaryDirectory() as directory:
        table("kos-retry observe by the size of the log", by_size(directory))
    table("outputs that are made to hurt", hostile())


if __name__ == "__main__":
    main()
