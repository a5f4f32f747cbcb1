"""A local graph that may be imported again while it is served."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import anyio
import anyio.to_thread

from kg_adapters.errors import GraphReplaced, InvalidSource, StoreDamaged
from kg_adapters.labels import Vocabulary
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.sparql.pool import SparqlLimits
from kg_adapters.local.store import LocalStore, Stamp, open_store, store_stamp
from kg_adapters.models import (
    Candidate,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    PathRequest,
    PathsFound,
    RelationCandidate,
    SparqlAnswer,
    ValueUse,
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import KGAdapter, SupportsPaths, SupportsSets, SupportsSparql, SupportsValueSearch
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.surroundings import LabelVectors, SupportsSurroundings, SupportsVectors, Surroundings
from kg_adapters.terms import Fact, Iri, Node

if TYPE_CHECKING:
    from kg_adapters.embedding.protocol import Vectors
    from kg_adapters.set_requests import Computed, SetRequest


T = TypeVar("T")


class LocalGraph(
    KGAdapter,
    SupportsPaths,
    SupportsSets,
    SupportsSparql,
    SupportsValueSearch,
    SupportsVectors,
    SupportsSurroundings,
    Protocol,
):
    """All that a graph on this machine can do."""


class ForwardingAdapter(ABC):
    """Passes every question on to a local graph, which need not be the same one every time."""

    @abstractmethod
    async def ask(self, question: Callable[[LocalGraph], Awaitable[T]]) -> T:
        """Return what the graph that is to be asked now answers to a question."""

    @property
    def remote(self) -> bool:
        return False

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        return await self.ask(lambda graph: graph.labels(terms))

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        return await self.ask(lambda graph: graph.describe(terms))

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        return await self.ask(lambda graph: graph.neighbors(request))

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        return await self.ask(lambda graph: graph.degrees(entities, direction=direction, relations=relations))

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        return await self.ask(lambda graph: graph.contains(facts))

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        return await self.ask(lambda graph: graph.features(request))

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        return await self.ask(lambda graph: graph.search(text, limit=limit, type=type))

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await self.ask(lambda graph: graph.find_relations(text, limit=limit))

    async def uses_of_values(self, texts: Collection[str], *, limit: int) -> Mapping[str, Sequence[ValueUse]]:
        return await self.ask(lambda graph: graph.uses_of_values(texts, limit=limit))

    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        return await self.ask(lambda graph: graph.surroundings(request))

    async def label_vectors(self, fingerprint: str) -> LabelVectors | None:
        return await self.ask(lambda graph: graph.label_vectors(fingerprint))

    async def search_vectors(
        self, vector: "Vectors", *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        return await self.ask(
            lambda graph: graph.search_vectors(vector, fingerprint=fingerprint, limit=limit, type=type)
        )

    async def schema(self) -> GraphSchema:
        return await self.ask(lambda graph: graph.schema())

    async def profile(self) -> GraphProfile:
        return await self.ask(lambda graph: graph.profile())

    async def paths(self, request: PathRequest) -> PathsFound:
        return await self.ask(lambda graph: graph.paths(request))

    async def compute(self, request: "SetRequest") -> "Computed":
        return await self.ask(lambda graph: graph.compute(request))

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        return await self.ask(lambda graph: graph.select(query, timeout_s=timeout_s, max_rows=max_rows))


_log = logging.getLogger(__name__)
_MAX_REPAIRS: Final = 3
"""How often one server makes a damaged copy again: a disk that goes on failing is its owner's to mend."""


class _Opened:
    """One state of the graph, and how many snapshots of it are in use."""

    def __init__(self, store: LocalStore, sparql: SparqlLimits | None, *, prepares: bool, name: str | None) -> None:
        self.graph = LocalAdapter(store, sparql, prepares=prepares, name=name)
        self.stamp = store.stamp
        self.users = 0


class ReloadingAdapter(ForwardingAdapter):
    """Answers from the store that is in a folder now, and looks with every question whether it is still the same.

    Once the folder holds another store, that one is opened, checked and asked from then on. Questions that are under
    way end with the old one, which is closed after the last. A new store that cannot be used leaves the old one in
    its place.

    Args:
        store: The store as it was opened.
        sparql: How many queries run and wait, and with how much memory.
        prepares: Whether what SPARQL needs is made before anybody asks, as by `LocalAdapter`.
        name: What the graph is called; as its store says when None.
        again: Makes a damaged store again in its folder, as for one in the cache; None where only its owner can.
    """

    def __init__(
        self,
        store: LocalStore,
        sparql: SparqlLimits | None = None,
        *,
        prepares: bool = False,
        name: str | None = None,
        again: Callable[[LocalStore], None] | None = None,
    ) -> None:
        self._again = again
        self._repairing = threading.Lock()
        self._repairs_left = _MAX_REPAIRS
        self._sparql = sparql
        self._prepares = prepares
        self._name = name
        self._folder = store.folder
        self._current = _Opened(store, sparql, prepares=prepares, name=name)
        self._refused: Stamp | None = None
        self._opening = anyio.Lock()

    @property
    def name(self) -> str:
        return self._asked.graph.name

    @property
    def prefixes(self) -> Prefixes:
        return self._asked.graph.prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return self._asked.graph.vocabulary

    @asynccontextmanager
    async def snapshot(self, *, newest: bool = False) -> AsyncGenerator[None]:
        opened = await self._latest(wait=newest)
        opened.users += 1
        token = _pinned.set({**_pinned.get(), self: opened})
        try:
            yield
        finally:
            _pinned.reset(token)
            opened.users -= 1
            await self._close_if_unused(opened)

    async def ask(self, question: Callable[[LocalGraph], Awaitable[T]]) -> T:
        if self in _pinned.get():
            return await self._answer(question)
        try:
            async with self.snapshot():
                return await self._answer(question)
        except GraphReplaced:
            async with self.snapshot(newest=True):
                return await self._answer(question)

    async def aclose(self) -> None:
        await self._current.graph.aclose()

    async def _answer(self, question: Callable[[LocalGraph], Awaitable[T]]) -> T:
        graph = self._asked.graph
        try:
            return await question(graph)
        except StoreDamaged as damage:
            if self._again is None:
                raise
            await anyio.to_thread.run_sync(self._repair, self._again, graph.store, damage, abandon_on_cancel=True)
            raise GraphReplaced(f"{damage} It was made again: ask again.") from damage

    def _repair(self, again: Callable[[LocalStore], None], store: LocalStore, damage: StoreDamaged) -> None:
        if not self._repairs_left:
            raise damage
        if not self._repairing.acquire(blocking=False):
            raise StoreDamaged(f"{damage} It is being made again now: ask again in a moment.")
        try:
            self._repairs_left -= 1
            _log.warning("The copy in the cache is made again, because it is damaged: %s", damage)
            again(store)
        except OSError as error:
            raise InvalidSource(f"{store.folder} is damaged and cannot be written to ({error.strerror}).") from error
        finally:
            self._repairing.release()

    @property
    def _asked(self) -> _Opened:
        return _pinned.get().get(self, self._current)

    async def _latest(self, *, wait: bool) -> _Opened:
        stamp = store_stamp(self._folder)
        if stamp in (self._current.stamp, self._refused) and stamp is not None:
            return self._current
        if not wait and (stamp is None or self._opening.locked()):
            # Whoever noticed first is opening it; meanwhile, and where there is nothing new, the old one answers.
            return self._current
        async with self._opening:
            stamp = store_stamp(self._folder)
            if stamp not in (self._current.stamp, self._refused) or stamp is None:
                await self._reload(stamp)
        return self._current

    async def _reload(self, stamp: Stamp | None) -> None:
        try:
            store = await anyio.to_thread.run_sync(partial(_open_checked, self._folder), abandon_on_cancel=True)
        except InvalidSource as error:
            self._refused = stamp
            _log.warning(
                "The store %s keeps answering as before, because the new one cannot be used: %s", self._folder, error
            )
            return
        old, self._current = self._current, _Opened(store, self._sparql, prepares=self._prepares, name=self._name)
        _log.warning("The store %s was imported again; answers come from the new one.", self._folder)
        await self._close_if_unused(old)

    async def _close_if_unused(self, opened: _Opened) -> None:
        if opened is not self._current and not opened.users:
            with anyio.CancelScope(shield=True):
                await opened.graph.aclose()


_pinned: ContextVar[Mapping[ReloadingAdapter, _Opened]] = ContextVar("_pinned", default=MappingProxyType({}))
"""By which state of each graph everything asked by this task is answered."""


def _open_checked(folder: Path) -> LocalStore:
    from kg_adapters.local.store import verify_index

    store = open_store(folder)
    verify_index(store)
    return store
