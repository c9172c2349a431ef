"""The installed command as a child process, with a state directory of its own, and events to wait on."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

# Nothing here takes more than a moment; a run that hangs must fail instead of hanging the suite.
CEILING_SECONDS = 45.0
# Makes standard input the controlling terminal of a new session, as a login does.
LOGIN = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


class Finished(NamedTuple):
    """What a process that has ended left: its status and the bytes of its streams."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def said(self) -> list[str]:
        """Return the lines of kos-retry's own on standard error, without the prefix."""
        lines = self.stderr.decode().splitlines()
        return [line.removeprefix("kos-retry: ") for line in lines if line.startswith("kos-retry: ")]

    @property
    def json(self) -> Any:
        """Return standard output as one JSON document."""
        return json.loads(self.stdout)

    @property
    def rows(self) -> list[Any]:
        """Return standard output as JSON Lines."""
        return [json.loads(line) for line in self.stdout.splitlines()]


class Measured(NamedTuple):
    """What a process that has ended left: its status, digests of its streams, and the memory that it took at most."""

    code: int
    stdout: str
    stderr: str
    peak_mib: float


# Starts a command and writes its peak memory into a file. A child of ours would inherit the peak of the test itself.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)))
sys.exit(os.waitstatus_to_exitcode(status))
"""


class KosRetry:
    """The installed command; everything that it writes by itself ends below one temporary directory."""

    def __init__(self, home: Path) -> None:
        self.path = str(Path(sys.executable).with_name("kos-retry"))
        self.home = home
        self.state = home / "state" / "kos-retry"
        self.temporary = home / "tmp"
        self.temporary.mkdir()
        # The home directory is different in every test: it also marks the processes that the test started.
        self.environment = {
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.temporary),
            "XDG_STATE_HOME": str(home / "state"),
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def __call__(self, *words: str | bytes, **given: Any) -> Finished:
        """Run the command to its end."""
        return self.finish([self.path, *words], **given)

    def finish(
        self,
        argv: list[str | bytes],
        *,
        stdin: bytes = b"",
        environment: dict[str, Any] | None = None,
        cwd: Path | bytes | None = None,
    ) -> Finished:
        """Run any command to its end, in the environment of the test."""
        done = subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            env=self.environment | (environment or {}),
            cwd=cwd or self.home,
            timeout=CEILING_SECONDS,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def measure(self, *argv: str, stdin: Any = subprocess.DEVNULL) -> Measured:
        """Run any command to its end, and measure it and what it waited for; its streams can be of any size."""
        peak = self.home / "peak"
        running = self.start(argv=[sys.executable, "-S", "-c", MEASURE, str(peak), *argv], stdin=stdin)
        digests = {stream: hashlib.sha256() for stream in (running.stdout, running.stderr)}
        left = list(digests)
        while left:
            for stream in select.select(left, [], [], CEILING_SECONDS)[0]:
                chunk = os.read(stream.fileno(), 1024 * 1024)
                digests[stream].update(chunk)
                if not chunk:
                    left.remove(stream)
        code = running.wait(CEILING_SECONDS)
        return Measured(code, *(digest.hexdigest() for digest in digests.values()), float(peak.read_text()))

    def start(
        self,
        *words: str | bytes,
        argv: list[str] | None = None,
        environment: dict[str, Any] | None = None,
        **given: Any,
    ) -> subprocess.Popen[bytes]:
        """Start the command, or another one, and return it; it is ended with the test at the latest."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            argv or [self.path, *words],
            env=self.environment | (environment or {}),
            cwd=self.home,
            bufsize=0,
            **streams | given,
        )
        self._started.append(process)
        return process

    def directory(self, session: str | None = None) -> Path:
        """Return the directory of a session, of the only one where none is named."""
        if session is not None:
            return self.state / "sessions" / session
        (only,) = (self.state / "sessions").iterdir()
        return only

    def journal(self, session: str | None = None) -> list[dict[str, Any]]:
        """Return the records of a session."""
        text = (self.directory(session) / "journal.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def attempts(self, session: str | None = None) -> list[dict[str, Any]]:
        """Return the records of the attempts that did not pass."""
        return [record for record in self.journal(session) if record["type"] == "attempt"]

    def end(self, session: str | None = None) -> dict[str, Any]:
        """Return the last record, which says how the run ended."""
        return self.journal(session)[-1]

    def close(self) -> None:
        """End what the test started and what these processes left behind."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait(CEILING_SECONDS)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """Return the living processes that were started under this home directory (where there is /proc)."""
        mark = f"HOME={self.home}".encode()
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if mark in _environment(entry)]


def _environment(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


class Events:
    """A named pipe between the test and a command: either side can wait for a line of the other."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        # Open for both, so that neither opening nor the end of one writer matters.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._got = b""

    def wait(self, seconds: float = CEILING_SECONDS) -> str | None:
        """Return the next line, None if there is none in time."""
        until = time.monotonic() + seconds
        while b"\n" not in self._got:
            if not select.select([self._fd], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            self._got += os.read(self._fd, 4096)
        line, _, self._got = self._got.partition(b"\n")
        return line.decode()

    def say(self, line: str) -> None:
        """Let whoever reads the pipe have a line."""
        os.write(self._fd, line.encode() + b"\n")

    def close(self) -> None:
        os.close(self._fd)


class Lifeline:
    """A pipe that a command and all its descendants hold: it ends when the last of them is gone."""

    def __init__(self) -> None:
        self._read, self.fd = os.pipe()

    def let_go(self) -> None:
        """Close our own end; to be called once the command has been started."""
        os.close(self.fd)
        self.fd = -1

    def is_over(self, seconds: float = 0.0) -> bool:
        """Return whether nobody holds the other end any more, by now or within some time."""
        return bool(select.select([self._read], [], [], seconds)[0])

    def close(self) -> None:
        os.close(self._read)
        if self.fd >= 0:
            self.let_go()


class Terminal:
    """A terminal with a program on it, seen from the keyboard and the screen."""

    def __init__(self, kos_retry: KosRetry) -> None:
        self._kos_retry = kos_retry
        self._master, self.slave = os.openpty()
        # Without the echo the screen shows only what programs write.
        modes = termios.tcgetattr(self.slave)
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(self.slave, termios.TCSANOW, modes)
        self.shown = b""

    def start(self, *argv: str, **given: Any) -> subprocess.Popen[bytes]:
        """Start a program as the terminal's session leader; single streams can be sent elsewhere."""
        words = [sys.executable, "-S", "-c", LOGIN, *argv]
        ends = dict.fromkeys(("stdin", "stdout", "stderr"), self.slave)
        return self._kos_retry.start(argv=words, **(ends | given))

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def wait_for(self, text: bytes, times: int = 1, seconds: float = CEILING_SECONDS) -> None:
        """Wait until a text is on the screen, so many times; what does not come in time fails the test."""
        until = time.monotonic() + seconds
        while self.shown.count(text) < times:
            left = max(0.0, until - time.monotonic())
            assert select.select([self._master], [], [], left)[0], f"not shown: {text!r} in {self.shown!r}"
            self.shown += os.read(self._master, 4096)

    def resize(self, rows: int, columns: int) -> None:
        """Give the window another size; the programs in the foreground are told."""
        termios.tcsetwinsize(self._master, (rows, columns))

    @property
    def modes(self) -> list[Any]:
        """Return the modes that the terminal is in."""
        return termios.tcgetattr(self.slave)

    def close(self) -> None:
        os.close(self.slave)
        os.close(self._master)


@pytest.fixture
def kos_retry(tmp_path):
    command = KosRetry(tmp_path)
    yield command
    command.close()


@pytest.fixture(scope="module")
def shared_kos_retry(tmp_path_factory):
    """Return a command for one run that many tests look at."""
    command = KosRetry(tmp_path_factory.mktemp("home"))
    yield command
    command.close()


@pytest.fixture
def events(tmp_path):
    pipe = Events(tmp_path / "events")
    yield pipe
    pipe.close()


@pytest.fixture
def gate(tmp_path):
    pipe = Events(tmp_path / "gate")
    yield pipe
    pipe.close()


@pytest.fixture
def lifeline():
    pipe = Lifeline()
    yield pipe
    pipe.close()


@pytest.fixture
def terminal(kos_retry):
    terminal = Terminal(kos_retry)
    yield terminal
    kos_retry.close()
    terminal.close()
