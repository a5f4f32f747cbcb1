"""A private PostgreSQL server on loopback, which tests start, stop and start again."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
import pytest

from kg_server.memory.postgres_storage import SCHEMA

MISSING: Final = "PostgreSQL is not installed: run tools/install_engines.sh"
PASSWORD: Final = "a%20secret of the database"


@dataclass(frozen=True)
class PostgresServer:
    """A server over one folder of data.

    Args:
        programs: The folder of its programs.
        folder: What it writes.
        port: Where it listens on loopback.
    """

    programs: Path
    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres:a%2520secret%20of%20the%20database@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c fsync=off"
        self._run("pg_ctl", "start", "--wait", f"--options={options}", f"--log={self.folder / 'log'}")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast` ends every transaction, `immediate` is a crash."""
        self._run("pg_ctl", "stop", "--wait", f"--mode={mode}")

    @contextmanager
    def frozen(self) -> Generator[None]:
        """Stop all its processes, which keep their connections open, for the time of the block."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        others = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        processes = [first, *map(int, others)]
        try:
            for process in processes:
                os.kill(process, signal.SIGSTOP)
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def create(self) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        self._run(
            "initdb", "--username=postgres", "--auth=scram-sha-256", f"--pwfile={password}", "--no-sync", "--locale=C"
        )

    def clear(self) -> None:
        """Forget every memory, and the tables of them."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())

    def _run(self, program: str, *arguments: str) -> None:
        # It refuses to run as root.
        user = _other_user() if os.geteuid() == 0 else None
        subprocess.run(
            [str(self.programs / program), f"--pgdata={self.folder / 'data'}", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            user=user,
            cwd=self.folder,
        )


def _other_user() -> int:
    return pwd.getpwnam("nobody").pw_uid


def _programs() -> Path | None:
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((folder for folder in reversed(folders) if (folder / "initdb").exists()), None)


@contextmanager
def running_postgres() -> Generator[PostgresServer]:
    """Start a private server, or skip the test where PostgreSQL is not installed; where CI is set, fail it."""
    programs = _programs()
    if programs is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="kg-sextant-postgres-") as folder:
        if os.geteuid() == 0:
            os.chown(folder, _other_user(), -1)
        server = PostgresServer(programs, Path(folder), port)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
