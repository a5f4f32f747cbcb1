"""An adapter that remembers what another one answered."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from kg_adapters.answer_cache import AnswerCache, Kept, Question, each, one
from kg_adapters.embedding.protocol import Vectors
from kg_adapters.labels import Vocabulary
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
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import (
    KGAdapter,
    SupportsFeatureNote,
    SupportsLearning,
    SupportsPaths,
    SupportsSearchNote,
    SupportsSets,
    SupportsSparql,
)
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.surroundings import Around, SupportsSurroundings, Surroundings, parts_of, surroundings_of
from kg_adapters.terms import Fact, Iri, Node
from kg_adapters.vectors import LabelVectors, SupportsVectors

MAX_ENTRIES: Final = 20_000
EXPIRY_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How much is remembered, and how long.

    Args:
        max_entries: How many answers are kept of each kind; an answer about many entities counts for each of them.
        expiry_s: After how many seconds an answer is forgotten.
    """

    max_entries: int = MAX_ENTRIES
    expiry_s: float = EXPIRY_S


class CachingAdapter:
    """Answers from memory what it was asked before, entity by entity, and asks another adapter for the rest.

    Equal questions at the same time become one. Errors are not remembered. Make one with `cached`, so that it has the
    abilities of the adapter that it asks.

    Args:
        adapter: What is asked.
        limits: How much is remembered.
        clock: Tells the time, in seconds.
    """

    def __init__(
        self, adapter: KGAdapter, limits: CacheLimits | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._adapter = adapter
        limits = limits or CacheLimits()
        size = (limits.max_entries, limits.expiry_s, clock)
        self._labels = AnswerCache[Question, Kept[str]](*size)
        self._descriptions = AnswerCache[Question, Kept[Description]](*size)
        self._pages = AnswerCache[Question, Kept[NeighborPage]](*size)
        self._degrees = AnswerCache[Question, Kept[Degree]](*size)
        self._contained = AnswerCache[Question, Kept[bool]](*size)
        self._features = AnswerCache[Question, Kept[FeaturePage]](*size)
        self._found = AnswerCache[Question, tuple[Candidate, ...]](*size)
        self._relations = AnswerCache[Question, tuple[RelationCandidate, ...]](*size)
        self._schemas = AnswerCache[Question, GraphSchema](*size)
        self._arounds = AnswerCache[Question, Kept[Around]](*size)
        self._paths = AnswerCache[Question, PathsFound](*size)
        self._answers = AnswerCache[Question, SparqlAnswer](*size)
        self._computed = AnswerCache[Question, Computed](*size)

    @property
    def name(self) -> str:
        return self._adapter.name

    @property
    def prefixes(self) -> Prefixes:
        return self._adapter.prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return self._adapter.vocabulary

    @property
    def remote(self) -> bool:
        return self._adapter.remote

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        return await each(self._labels, (), terms, self._adapter.labels)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        return await each(self._descriptions, (), terms, self._adapter.describe)

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        async def ask(missing: Sequence[Node]) -> Mapping[Node, NeighborPage]:
            return await self._adapter.neighbors(replace(request, entities=tuple(missing)))

        question = (
            request.direction,
            request.relations,
            request.limit_per_relation,
            request.limit,
            request.values,
            request.cursor,
        )
        return await each(self._pages, question, request.entities, ask)

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        wanted = None if relations is None else frozenset(relations)

        async def ask(missing: Sequence[Node]) -> Mapping[Node, Degree]:
            return await self._adapter.degrees(missing, direction=direction, relations=wanted)

        return await each(self._degrees, (direction, wanted), entities, ask)

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        async def ask(missing: Sequence[Fact]) -> Mapping[Fact, bool]:
            return dict.fromkeys(await self._adapter.contains(missing), True)

        return frozenset(await each(self._contained, (), facts, ask))

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        async def ask(missing: Sequence[Node]) -> Mapping[Node, FeaturePage]:
            return await self._adapter.features(replace(request, entities=tuple(missing)))

        return await each(self._features, (request.relations, request.limit), request.entities, ask)

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        async def ask() -> tuple[Candidate, ...]:
            return tuple(await self._adapter.search(text, limit=limit, type=type))

        return await one(self._found, (text, limit, type), ask)

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        async def ask() -> tuple[RelationCandidate, ...]:
            return tuple(await self._adapter.find_relations(text, limit=limit))

        return await one(self._relations, (text, limit), ask)

    async def schema(self) -> GraphSchema:
        return await one(self._schemas, (), self._adapter.schema)

    async def profile(self) -> GraphProfile:
        # An adapter that takes long to learn it knows more of it every time.
        return await self._adapter.profile()

    async def aclose(self) -> None:
        await self._adapter.aclose()


class _CachedLearning(CachingAdapter):
    async def learn_profile(self, *, when_asked: bool = False) -> None:
        assert isinstance(self._adapter, SupportsLearning)  # noqa: S101 - `cached` chose this class by it
        await self._adapter.learn_profile(when_asked=when_asked)


class _CachedPaths(CachingAdapter):
    async def paths(self, request: PathRequest) -> PathsFound:
        assert isinstance(self._adapter, SupportsPaths)  # noqa: S101 - `cached` chose this class by it
        adapter = self._adapter
        return await one(self._paths, (request,), lambda: adapter.paths(request))


class _CachedSets(CachingAdapter):
    async def compute(self, request: SetRequest) -> Computed:
        assert isinstance(self._adapter, SupportsSets)  # noqa: S101 - as above
        adapter = self._adapter
        return await one(self._computed, (request,), lambda: adapter.compute(request))


class _CachedSparql(CachingAdapter):
    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        assert isinstance(self._adapter, SupportsSparql)  # noqa: S101 - as above
        adapter = self._adapter
        return await one(
            self._answers,
            (query, timeout_s, max_rows),
            lambda: adapter.select(query, timeout_s=timeout_s, max_rows=max_rows),
        )


class _CachedSearchNote(CachingAdapter):
    @property
    def search_note(self) -> str:
        assert isinstance(self._adapter, SupportsSearchNote)  # noqa: S101 - as above
        return self._adapter.search_note


class _CachedFeatureNote(CachingAdapter):
    @property
    def feature_note(self) -> str:
        assert isinstance(self._adapter, SupportsFeatureNote)  # noqa: S101 - as above
        return self._adapter.feature_note


class _CachedVectors(CachingAdapter):
    async def label_vectors(self, fingerprint: str) -> LabelVectors | None:
        assert isinstance(self._adapter, SupportsVectors)  # noqa: S101 - as above
        return await self._adapter.label_vectors(fingerprint)

    async def search_vectors(
        self, vector: Vectors, *, fingerprint: str, limit: int, type: Node | None = None
    ) -> Sequence[Candidate]:
        assert isinstance(self._adapter, SupportsVectors)  # noqa: S101 - as above
        return await self._adapter.search_vectors(vector, fingerprint=fingerprint, limit=limit, type=type)


class _CachedSurroundings(CachingAdapter):
    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        adapter, asked = self._adapter, tuple(dict.fromkeys(request.entities))
        assert isinstance(adapter, SupportsSurroundings)  # noqa: S101 - as above
        if isinstance(adapter, SupportsVectors):
            # The numbers in its surroundings go with its vectors, and are its own to give.
            return await adapter.surroundings(request)

        async def ask(missing: Sequence[Node]) -> Mapping[Node, Around]:
            return parts_of(await adapter.surroundings(replace(request, entities=tuple(missing))))

        found = await each(self._arounds, (request.per_relation, request.per_entity, request.values), asked, ask)
        labels = {term: label for around in found.values() for term, label in around.labels.items()}
        return surroundings_of(asked, {entity: around.page for entity, around in found.items()}, labels)


_ABILITIES: Final[tuple[tuple[type, type[CachingAdapter]], ...]] = (
    (SupportsLearning, _CachedLearning),
    (SupportsPaths, _CachedPaths),
    (SupportsSets, _CachedSets),
    (SupportsSparql, _CachedSparql),
    (SupportsSearchNote, _CachedSearchNote),
    (SupportsFeatureNote, _CachedFeatureNote),
    (SupportsVectors, _CachedVectors),
    (SupportsSurroundings, _CachedSurroundings),
)


def cached(
    adapter: KGAdapter, limits: CacheLimits | None = None, clock: Callable[[], float] = time.monotonic
) -> CachingAdapter:
    """Return an adapter that remembers what another one answers, and can do whatever that one can.

    Args:
        adapter: What is asked.
        limits: How much is remembered.
        clock: Tells the time, in seconds.
    """
    bases = tuple(kind for ability, kind in _ABILITIES if isinstance(adapter, ability))
    return _with_abilities(bases)(adapter, limits, clock)


@cache
def _with_abilities(bases: tuple[type[CachingAdapter], ...]) -> type[CachingAdapter]:
    made = type(CachingAdapter.__name__, (*bases, CachingAdapter), {})
    assert issubclass(made, CachingAdapter)  # noqa: S101 - tells the type checkers what its last base says
    return made
