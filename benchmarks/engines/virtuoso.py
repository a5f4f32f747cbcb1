"""A Virtuoso of our own: on free ports of loopback, with little memory, in a folder that goes away with it."""

import shutil
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.engines import EngineError, started

PROGRAM: Final = "virtuoso-t"
MISSING: Final = f"Virtuoso is not installed (no {PROGRAM} on the PATH): run tools/install_engines.sh"
_SHELL: Final = "isql-vt"
_READY: Final = "Server online"
_LOADED: Final = "loaded.nt"
# How its loader calls a file of one statement a line.
_NTRIPLES: Final = 512
_SETTINGS: Final = """\
[Database]
DatabaseFile = virtuoso.db
ErrorLogFile = virtuoso.log
LockFile = virtuoso.lck
TransactionFile = virtuoso.trx
xa_persistent_file = virtuoso.pxa
FileExtend = 200

[TempDatabase]
DatabaseFile = virtuoso-temp.db
TransactionFile = virtuoso-temp.trx

[Parameters]
ServerPort = 127.0.0.1:{sql}
DisableUnixSocket = 1
AllowOSCalls = 0
DirsAllowed = .
NumberOfBuffers = {buffers}
MaxDirtyBuffers = {dirty}
MaxQueryMem = 256M
MaxVectorSize = 20000
IndexTreeMaps = 2
ThreadsPerQuery = 1
AsyncQueueMaxThreads = 2
CheckpointInterval = 0

[HTTPServer]
ServerPort = 127.0.0.1:{http}
ServerThreads = 40
MaxKeepAlives = 40
KeepAliveTimeout = 60

[SPARQL]
ResultSetMaxRows = 100000
"""


@dataclass(frozen=True, slots=True)
class Virtuoso:
    """A running server.

    Args:
        url: Where it answers SPARQL, to anybody, reading only.
        sql: The address at which its administrator speaks SQL.
        folder: Where it reads files.
        patience_s: How long, in seconds, it may take to load or index.
    """

    url: str
    sql: str
    folder: Path
    patience_s: float

    def load(self, graph: str, triples: bytes) -> None:
        """Add N-Triples to the graph with this IRI; 200,000 of them take two seconds.

        Raises:
            EngineError: It did not take them.
        """
        file = self.folder / _LOADED
        file.write_bytes(triples)
        # By HTTP it loads in several threads, which lock each other out at times, or leave tables that read slowly.
        self._run("log_enable(2)", f"DB.DBA.TTLP(file_to_string_output('{_LOADED}'), '', '{graph}', {_NTRIPLES})")

    def index_texts(self) -> None:
        """Make the full-text index hold every literal, of what is loaded and of what will be.

        Raises:
            EngineError: It could not.
        """
        self._run(
            "DB.DBA.RDF_OBJ_FT_RULE_ADD(null, null, 'All')",
            "DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ()",
            "DB.DBA.VT_BATCH_UPDATE('DB.DBA.RDF_OBJ', 'OFF', null)",
        )

    def _run(self, *statements: str) -> None:
        command = [_SHELL, self.sql, "dba", "dba", f"exec={'; '.join(statements)};"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=self.patience_s, check=False)  # noqa: S603 - the engine's own shell
        if done.returncode != 0 or "***" in done.stderr:
            raise EngineError(f"Virtuoso did not take {statements[-1][:80]}: {done.stderr}")


def is_installed() -> bool:
    """Say whether there is a Virtuoso to start."""
    return shutil.which(PROGRAM) is not None and shutil.which(_SHELL) is not None


@contextmanager
def running_virtuoso(folder: Path, *, buffers: int = 4_000, patience_s: float = 120.0) -> Generator[Virtuoso]:
    """Start an empty server, and end it when the block is left; it takes two seconds and about 300 MB.

    Args:
        folder: An empty folder for everything that it writes.
        buffers: How many pages of 8 KB it holds in memory.
        patience_s: How long, in seconds, it may take to load or index.

    Raises:
        EngineError: It does not start.
    """

    def command(ports: Sequence[int]) -> Sequence[str]:
        settings = _SETTINGS.format(sql=ports[0], http=ports[1], buffers=buffers, dirty=3 * buffers // 4)
        (folder / "virtuoso.ini").write_text(settings, encoding="utf-8")
        return [PROGRAM, "+configfile", "virtuoso.ini", "+foreground"]

    with started(folder, 2, command, _READY) as (sql, http):
        yield Virtuoso(f"http://127.0.0.1:{http}/sparql", f"127.0.0.1:{sql}", folder, patience_s)
