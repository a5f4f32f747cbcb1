"""SPARQL over a graph that is in no store: from a copy of it in a folder that lasts as long as it is asked."""

import shutil
import tempfile
import weakref
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from kg_adapters.errors import BackendError
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.sparql.pool import SparqlLimits, SparqlPool
from kg_adapters.local.sparql.store import ensure_sparql_store
from kg_adapters.models import SparqlAnswer
from kg_adapters.prefixes import Prefixes

_FOLDER: Final = "kg-sextant-sparql-"


@dataclass(eq=False)
class _Snapshot:
    """A copy of one state of a graph, and how many queries it answers at the moment."""

    index: GraphIndex
    folder: ExitStack
    pool: SparqlPool
    asked: int = field(default=0)


class SparqlSnapshots:
    """Answers SPARQL from copies: one of the present state, and those that are still asked about earlier ones.

    Args:
        prefixes: What queries may use without declaring it, beside the well-known prefixes.
        limits: How much of the machine queries over one state may take.
    """

    def __init__(self, prefixes: Prefixes, limits: SparqlLimits | None = None) -> None:
        self._prefixes = prefixes
        self._limits = limits
        self._copying = anyio.Lock()
        self._present: _Snapshot | None = None
        self._open: set[_Snapshot] = set()
        self._closed = False

    async def select(self, index: GraphIndex, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        """Run a query over an index, as `SparqlPool.select` does; copying it is not what the deadline is for.

        Raises:
            BackendError: The copy cannot be written, or this is closed.
        """
        snapshot = await self._of(index)
        snapshot.asked += 1
        try:
            return await snapshot.pool.select(query, timeout_s=timeout_s, max_rows=max_rows)
        finally:
            snapshot.asked -= 1
            await self._end_unless_needed(snapshot)

    async def aclose(self) -> None:
        """End all workers and delete all copies; queries that are still running fail."""
        self._closed, self._present = True, None
        for snapshot in tuple(self._open):
            await self._end(snapshot)

    async def _of(self, index: GraphIndex) -> _Snapshot:
        async with self._copying:
            if self._present is None or self._present.index is not index:
                snapshot = await self._copied(index)
                before, self._present = self._present, snapshot
                if before is not None:
                    await self._end_unless_needed(before)
            return self._present

    async def _copied(self, index: GraphIndex) -> _Snapshot:
        if self._closed:
            raise BackendError("This graph is closed. Open it again.")
        # A cancelled caller leaves a thread that is about to stop writing.
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
        # Also where nobody closes the graph.
        remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with ExitStack() as stack:
            stack.callback(remove)
            await ensure_sparql_store(folder, index)
            snapshot = _Snapshot(index, stack.pop_all(), SparqlPool(folder, self._prefixes, self._limits))
        self._open.add(snapshot)
        return snapshot

    async def _end_unless_needed(self, snapshot: _Snapshot) -> None:
        if not snapshot.asked and snapshot is not self._present:
            await self._end(snapshot)

    async def _end(self, snapshot: _Snapshot) -> None:
        if snapshot not in self._open:
            return
        self._open.discard(snapshot)
        with anyio.CancelScope(shield=True):
            await snapshot.pool.aclose()
        snapshot.folder.close()
