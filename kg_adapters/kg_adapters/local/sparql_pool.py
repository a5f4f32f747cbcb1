"""SPARQL over one local store, in worker processes that are killed at the deadline."""

import sys
from pathlib import Path
from typing import Final

from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from kg_adapters.local.sparql_messages import Request, read_answer
from kg_adapters.local.store import OXIGRAPH_FOLDER
from kg_adapters.models import SparqlAnswer
from kg_adapters.prefixes import WELL_KNOWN, Prefixes
from kg_adapters.worker_pool import WorkerEnded, WorkerPool, WorkerTimeout

MAX_ANSWER_BYTES: Final = 2_000_000
WORKER_MEMORY_BYTES: Final = 4 << 30
# JSON may take six characters for one of the answer's.
_MAX_LINE_BYTES: Final = 8 * MAX_ANSWER_BYTES
_WORKER: Final = "kg_adapters.local.sparql_worker"
_ENDED: Final = (
    "The process that ran the query ended before it answered, most likely for lack of memory. "
    "Make the query more selective, drop nesting, or add a LIMIT. Other queries are not affected."
)


class SparqlPool:
    """Answers SPARQL from a store's `oxigraph` folder, in a `WorkerPool`.

    Args:
        folder: The store; `ensure_sparql_store` makes sure that it can answer.
        prefixes: What queries may use without declaring it, beside the well-known prefixes.
        workers: The most processes at once; waiting for one counts against a query's deadline.
        memory_bytes: How much memory a query may take.

    Attributes:
        workers: The processes.
    """

    def __init__(
        self, folder: Path, prefixes: Prefixes, *, workers: int = 2, memory_bytes: int = WORKER_MEMORY_BYTES
    ) -> None:
        command = [sys.executable, "-P", "-m", _WORKER, str(folder / OXIGRAPH_FOLDER), str(memory_bytes)]
        self._namespaces = {**WELL_KNOWN, **prefixes.namespaces}
        self._most = workers
        self.workers = WorkerPool(command, workers=workers, max_line_bytes=_MAX_LINE_BYTES)

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        """Run a query, as `SupportsSparql.select` promises.

        Raises:
            InvalidRequest: The query is not SPARQL, does more than read this graph, or a bound makes no sense.
            BackendTimeout: It was stopped after `timeout_s` seconds.
            BackendError: The engine failed, or the pool is closed.
        """
        if timeout_s <= 0 or max_rows < 1:
            raise InvalidRequest(f"timeout_s must be above 0 and max_rows at least 1, not {timeout_s} and {max_rows}.")
        request = Request(query, self._namespaces, max_rows, MAX_ANSWER_BYTES).line()
        try:
            return read_answer(await self.workers.ask(request, timeout_s=timeout_s))
        except WorkerTimeout as error:
            raise BackendTimeout(_timeout(timeout_s, self._most if error.busy else 0)) from None
        except WorkerEnded as error:
            raise BackendError(_ENDED) from error

    async def aclose(self) -> None:
        """End all workers; queries that are still running fail."""
        await self.workers.aclose()


def _timeout(timeout_s: float, busy_workers: int) -> str:
    if busy_workers:
        return (
            f"The query did not start within {timeout_s:g} s: all {busy_workers} SPARQL workers were busy. "
            "Try again, or with a larger timeout_s."
        )
    return (
        f"The query was stopped after {timeout_s:g} s. Add a LIMIT, make a pattern more selective (name an entity or a "
        "relation), or ask with a larger timeout_s."
    )
