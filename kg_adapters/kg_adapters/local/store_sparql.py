"""SPARQL over one open store, whose part for it is made where it is missing."""

import time
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from kg_adapters.local.sparql.pool import SparqlLimits, SparqlPool
from kg_adapters.local.store import OXIGRAPH_FOLDER, LocalStore
from kg_adapters.models import SparqlAnswer

if TYPE_CHECKING:
    from kg_adapters.local.sparql.making import SparqlMaking

_LEAST_S: Final = 1.0

FEWEST_STATEMENTS: Final = 100_000
"""Fewer are made ready by the first query itself, in half a second."""


class StoreSparql:
    """Answers queries over one store.

    Args:
        store: The store.
        limits: How much of the machine queries may take; what suits the machine when None.
        prepares: Whether a process makes what is missing of a large store before anybody asks; else, and of a small
            one, the first query makes it.

    Attributes:
        pool: What runs queries.
        making: What makes ready for them, if anything.
    """

    def __init__(self, store: LocalStore, limits: SparqlLimits | None, *, prepares: bool) -> None:
        self._store = store
        self._known = False
        counts = store.info.counts
        large = counts.triples + counts.features >= FEWEST_STATEMENTS
        self.making = _making(store) if prepares and large else None
        self.pool = SparqlPool(store.folder, store.info.prefixes, limits)

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        """Run a query, as `SupportsSparql.select` promises.

        Where it makes the store's part for SPARQL itself, once, that is not what its deadline is for; where a process
        makes it, it is.

        Raises:
            BackendUnavailable: The part will not be there in time, or too many other queries wait.
            BackendError: The part cannot be made, or the engine failed.
            GraphReplaced: The folder holds another store by now.
        """
        from kg_adapters.index.written_lists import read_lists
        from kg_adapters.local.sparql.store import ensure_sparql_store, is_uncut

        self._store.require_current()
        begun = time.monotonic()
        if self.making is not None and not (self._known and is_uncut(self._store.folder / OXIGRAPH_FOLDER)):
            await self.making.ready(timeout_s)
            timeout_s = max(timeout_s - (time.monotonic() - begun), _LEAST_S)
        lists = partial(read_lists, self._store)
        with anyio.CancelScope(shield=True):
            # Given up half-way, it would have to begin again with the next query.
            await ensure_sparql_store(self._store.folder, self._store.index, lists=lists, sizes_only=self._known)
        self._known = True
        answer = await self.pool.select(query, timeout_s=timeout_s, max_rows=max_rows)
        self._store.require_current()
        return answer

    async def aclose(self) -> None:
        """End all processes; queries that are still running fail."""
        if self.making is not None:
            self.making.close()
        await self.pool.aclose()


def _making(store: LocalStore) -> "SparqlMaking":
    from kg_adapters.local.sparql.making import SparqlMaking

    return SparqlMaking(store)
