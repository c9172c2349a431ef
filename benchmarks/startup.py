"""What wrapping costs when nothing goes wrong: `true`, bare and behind several wrappers."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from measure import KOS_RETRY, compare, machine, present, table

ROUNDS = 41


def main() -> None:
    """Measure without and with a configuration file."""
    print(machine())
    commands = {
        "true": ["true"],
        "python -c pass": [sys.executable, "-c", "pass"],
        "GNU timeout": ["timeout", "10", "true"],
        "bash loop": ["bash", "-c", "for i in 1 2 3; do true && break; done"],
        "Debian's retry": ["retry", "true"],
        "kos-retry run": [KOS_RETRY, "run", "--", "true"],
    }
    for title, config in (
        ("no configuration file", ""),
        ("with a pyproject.toml that has our table", '[tool.kos-retry]\ndelay = "1s"\n'),
    ):
        with tempfile.TemporaryDirectory() as directory:
            if config:
                Path(directory, "pyproject.toml").write_text(config, encoding="utf-8")
            medians = compare(present(commands), rounds=ROUNDS, cwd=directory)
        base = medians["python -c pass"]
        table(
            f"wrapping true, {title} (median of {ROUNDS})",
            {n: f"{ms:7.1f} ms  {ms / base:5.2f} x python" for n, ms in medians.items()},
        )


if __name__ == "__main__":
    main()
