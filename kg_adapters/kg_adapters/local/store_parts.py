"""The parts of an open store that an adapter answers from, each opened when it is first asked for."""

import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial, update_wrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar

import anyio

from kg_adapters.definition_files import PROFILE_FILE, SCHEMA_FILE, read_profile, read_schema
from kg_adapters.index.block_files import Damage
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.local.quads import COUNTS_FILE, read_counts, read_quads
from kg_adapters.local.sparql.pool import SparqlLimits, SparqlPool
from kg_adapters.local.store import OXIGRAPH_FOLDER, VECTORS_FOLDER, LocalStore
from kg_adapters.models import GraphSchema, SparqlAnswer
from kg_adapters.profile import GraphProfile

if TYPE_CHECKING:
    from kg_adapters.embedding.protocol import Vectors
    from kg_adapters.local.names.search import TextIndex
    from kg_adapters.local.sparql.making import SparqlMaking
    from kg_adapters.local.surroundings import LateReads
    from kg_adapters.local.vectors.entities import MeaningIndex
    from kg_adapters.local.vectors.labels import StoredLabelVectors


class OverStore(Protocol):
    """Whoever answers from a store."""

    @property
    def store(self) -> LocalStore:
        """The store."""
        ...


S = TypeVar("S", bound=OverStore)
P = ParamSpec("P")
R = TypeVar("R")
M = TypeVar("M")


def reports_damage(method: M) -> M:
    """Raise `StoreDamaged` where what an answer is read from is not what the import wrote.

    Args:
        method: An async method of an `OverStore`.
    """
    # The type checkers have different names for what an async method returns; it stays what it was.
    return _watched(method)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportReturnType]


def late_reads(store: LocalStore) -> "LateReads":
    """Return what makes a read that comes after its answer report damage as the answer itself would."""

    def reporting(read: Callable[[int], R]) -> Callable[[int], R]:
        def read_reporting(place: int) -> R:
            try:
                store.files.watch()
                return read(place)
            except Damage as problem:
                raise store.damaged(problem) from problem

        return read_reporting

    return reporting


def _watched(method: Callable[Concatenate[S, P], Awaitable[R]]) -> Callable[Concatenate[S, P], Awaitable[R]]:
    async def answer(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            self.store.files.watch()
            return await method(self, *args, **kwargs)
        except Damage as problem:
            raise self.store.damaged(problem) from problem

    update_wrapper(answer, method)
    return answer


T = TypeVar("T")


class StorePart(Generic[T]):
    """A part of a store that is read once, when it is first asked for.

    Args:
        store: The store.
        path: Where the part lies in its folder.
        read: Reads it.
    """

    def __init__(self, store: LocalStore, path: str, read: Callable[[LocalStore], T]) -> None:
        self._store = store
        self._path = path
        self._read = read
        self._reading = threading.Lock()
        self._known: T | None = None

    def get(self) -> T:
        """Return the part; this reads files, so call it in a thread.

        Raises:
            Damage: A file of it is not what the import wrote.
            GraphReplaced: The folder holds another store by now.
        """
        with self._reading:
            if self._known is None:
                with self._store.reading(self._path):
                    self._known = self._read(self._store)
            return self._known

    async def load(self) -> T:
        """Return the part, read in a thread the first time.

        Raises:
            Damage: A file of it is not what the import wrote.
            GraphReplaced: The folder holds another store by now.
        """
        return await anyio.to_thread.run_sync(self.get) if self._known is None else self._known


def read_store_schema(store: LocalStore) -> GraphSchema:
    """Return the definition of a store's graph, as it was counted at import."""
    return read_schema(store.read(SCHEMA_FILE), store.info.prefixes)


def read_store_profile(store: LocalStore) -> GraphProfile:
    """Return the profile of a store's graph, as it was counted at import."""
    return read_profile(store.read(PROFILE_FILE))


def open_store_names(store: LocalStore) -> "TextIndex":
    """Return what finds the entities and relations of a store by name."""
    from kg_adapters.local.names.search import FOLDER, TextIndex

    return TextIndex.open(store.folder, store.index, store.files_of(FOLDER))


_LEAST_S: Final = 1.0
FEWEST_STATEMENTS: Final = 100_000
"""Fewer are prepared by the first query itself, in half a second."""


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
        with store.reading(COUNTS_FILE):
            about_graphs = read_counts(store).about_graphs
        self.pool = SparqlPool(store.folder, store.info.prefixes, limits, about_graphs=about_graphs)

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        """Run a query, as `SupportsSparql.select` promises.

        Where it makes the store's part for SPARQL itself, once, that is not what its deadline is for; where a process
        makes it, it is.

        Raises:
            BackendUnavailable: The part will not be there in time, or too many other queries wait.
            BackendError: The part cannot be made, or the engine failed.
            GraphReplaced: The folder holds another store by now.
        """
        from kg_adapters.local.sparql.store import ensure_sparql_store, is_uncut
        from kg_adapters.local.written_lists import read_lists

        self._store.require_current()
        begun = time.monotonic()
        if self.making is not None and not (self._known and is_uncut(self._store.folder / OXIGRAPH_FOLDER)):
            await self.making.ready(timeout_s)
            timeout_s = max(timeout_s - (time.monotonic() - begun), _LEAST_S)
        lists, quads = partial(read_lists, self._store), partial(read_quads, self._store)
        with anyio.CancelScope(shield=True):
            # Given up half-way, it would have to begin again with the next query.
            await ensure_sparql_store(
                self._store.folder, self._store.index, lists=lists, quads=quads, sizes_only=self._known
            )
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


_LOOKED_THROUGH: Final = 2_000
"""How many of the nearest entities are looked through for those of one type."""


class StoreVectors:
    """Opens what `embed_store` wrote, by model; everything here reads files, so call it in a thread.

    Args:
        store: The store.
    """

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._labels: dict[str, StoredLabelVectors] = {}
        self._meanings: dict[str, MeaningIndex] = {}

    def labels(self, fingerprint: str) -> "StoredLabelVectors | None":
        """Return the vectors of labels by one model; None where there are none.

        Raises:
            Damage: A file of them is not what was written.
            GraphReplaced: Those of another store lie there by now.
        """
        from kg_adapters.local.vectors.labels import open_label_vectors

        known = self._labels.get(fingerprint) or self._open(fingerprint, open_label_vectors)
        if known is not None:
            self._labels[fingerprint] = known
        return known

    def nearest(
        self, vector: "Vectors", fingerprint: str, limit: int, accept: Callable[[int], bool] | None
    ) -> list[tuple[int, float]]:
        """Return the entities nearest to a vector as (node id, cosine), best first, at most `limit`.

        Args:
            vector: A unit vector; shape [dimensions].
            fingerprint: The model that it is by.
            limit: The most entities to return.
            accept: Which nodes count; None for all.

        Raises:
            Damage: A file of them is not what was written.
            GraphReplaced: Those of another store lie there by now.
        """
        from kg_adapters.local.vectors.entities import MeaningIndex

        known = self._meanings.get(fingerprint) or self._open(fingerprint, MeaningIndex.open)
        if known is None:
            return []
        self._meanings[fingerprint] = known
        if accept is None:
            return known.search(vector, limit)
        found = known.search(vector, max(limit, _LOOKED_THROUGH))
        return list(islice((each for each in found if accept(each[0])), limit))

    def _open(self, fingerprint: str, opener: Callable[[Path, GraphIndex, str], T | None]) -> T | None:
        with self._store.reading(f"{VECTORS_FOLDER}/"):
            return opener(self._store.folder, self._store.index, fingerprint)
