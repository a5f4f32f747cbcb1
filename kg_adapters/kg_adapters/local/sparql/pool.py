"""SPARQL over one local store, in worker processes that are killed at the deadline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kg_adapters.errors import BackendError, BackendTimeout, InvalidRequest
from kg_adapters.local.store import OXIGRAPH_FOLDER
from kg_adapters.models import SparqlAnswer
from kg_adapters.prefixes import WELL_KNOWN, Prefixes
from kg_adapters.worker_pool import MAX_WAITING, WorkerPool, WorkerTimeout
from kg_adapters.worker_process import WorkerEnded
from kg_boundary.machine import memory_bytes, processor_count

MOST_WORKER_BYTES: Final = 4 << 30
FEWEST_WORKERS, MOST_WORKERS = 2, 4
_ENDED: Final = (
    "The process that ran the query ended before it answered, most likely for lack of memory. "
    "Make the query more selective, drop nesting, or add a LIMIT. Other queries are not affected."
)


@dataclass(frozen=True, slots=True)
class SparqlLimits:
    """How much of the machine queries over one store may take.

    Args:
        workers: How many run at once; None for one per processor, but from 2 to 4. One of several is kept for queries
            that are short.
        worker_bytes: How much memory each may take; None for what keeps all of them together below half of the
            machine's, but at most 4 GiB.
        max_waiting: How many queries may wait for a worker.
        graphs: How many graphs share the machine, each with separate workers.
    """

    workers: int | None = None
    worker_bytes: int | None = None
    max_waiting: int = MAX_WAITING
    graphs: int = 1

    def on(self, processors: int, memory: int) -> tuple[int, int]:
        """Return the number of workers and the bytes of memory for each, on a machine that has so much."""
        workers = self.workers or max(FEWEST_WORKERS, min(MOST_WORKERS, processors // self.graphs))
        return workers, self.worker_bytes or min(MOST_WORKER_BYTES, memory // 2 // workers // self.graphs)


class SparqlPool:
    """Answers SPARQL from a store's `oxigraph` folder, in a `WorkerPool`.

    Args:
        folder: The store; `ensure_sparql_store` makes sure that it can answer.
        prefixes: What queries may use without declaring it, beside the well-known prefixes.
        limits: How much of the machine it may take; waiting for a worker counts against a query's deadline.
        about_graphs: A note for answers to queries with GRAPH.

    Attributes:
        workers: The processes.
    """

    def __init__(
        self, folder: Path, prefixes: Prefixes, limits: SparqlLimits | None = None, *, about_graphs: str = ""
    ) -> None:
        limits = limits or SparqlLimits()
        self._most, worker_bytes = limits.on(processor_count(), memory_bytes())
        self.workers = WorkerPool(
            "kg_adapters.local.sparql.worker:answer_queries",
            folder / OXIGRAPH_FOLDER,
            {**WELL_KNOWN, **prefixes.namespaces},
            worker_bytes,
            about_graphs,
            reply=SparqlAnswer,
            workers=self._most,
            max_waiting=limits.max_waiting,
        )

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        """Run a query, as `SupportsSparql.select` promises.

        Raises:
            InvalidRequest: The query is not SPARQL, does more than read this graph, or a bound makes no sense.
            BackendTimeout: It was stopped after `timeout_s` seconds.
            BackendUnavailable: Too many other queries wait.
            BackendError: The engine failed, or the pool is closed.
        """
        if timeout_s <= 0 or max_rows < 1:
            raise InvalidRequest(f"timeout_s must be above 0 and max_rows at least 1, not {timeout_s} and {max_rows}.")
        try:
            return await self.workers.ask(query, max_rows, timeout_s=timeout_s)
        except WorkerTimeout as error:
            raise BackendTimeout(self._late(timeout_s, busy=error.busy)) from None
        except WorkerEnded as error:
            raise BackendError(_ENDED) from error

    async def aclose(self) -> None:
        """End all workers; queries that are still running fail."""
        await self.workers.aclose()

    def _late(self, timeout_s: float, *, busy: bool) -> str:
        if busy:
            return (
                f"The query did not start within {round(timeout_s, 2):g} s: all {self._most} SPARQL workers were busy. "
                "Try again, or with a larger timeout_s."
            )
        return (
            f"The query was stopped after {round(timeout_s, 2):g} s. Add a LIMIT, make a pattern more selective "
            "(name an entity or a relation), or ask with a larger timeout_s."
        )
