"""Cache the answers of an adapter: entity by entity, with equal questions at the same time asked once."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias, TypeVar

from kg_adapters.answer_cache import AnswerCache, CachedAnswer, Question, checked, each, one
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
    ValueUse,
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import (
    KGAdapter,
    SupportsEngineNote,
    SupportsFeatureNote,
    SupportsJoins,
    SupportsLearning,
    SupportsPaths,
    SupportsRevision,
    SupportsSearchNote,
    SupportsSets,
    SupportsSparql,
    SupportsValueSearch,
)
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.surroundings import (
    Around,
    SupportsSurroundings,
    SupportsVectors,
    Surroundings,
    parts_of,
    surroundings_of,
)
from kg_adapters.terms import Fact, Iri, Node

T = TypeVar("T")
_Asking: TypeAlias = Callable[..., Awaitable[Question]]
"""Returns what an answer is to, from its parts."""

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

    Equal questions at the same time become one. Errors are not remembered. It has the optional abilities of the adapter
    that it asks.

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
        self._labels = AnswerCache[Question, CachedAnswer[str]](*size)
        self._descriptions = AnswerCache[Question, CachedAnswer[Description]](*size)
        self._pages = AnswerCache[Question, CachedAnswer[NeighborPage]](*size)
        self._degrees = AnswerCache[Question, CachedAnswer[Degree]](*size)
        self._contained = AnswerCache[Question, CachedAnswer[bool]](*size)
        self._features = AnswerCache[Question, CachedAnswer[FeaturePage]](*size)
        self._found = AnswerCache[Question, tuple[Candidate, ...]](*size)
        self._relations = AnswerCache[Question, tuple[RelationCandidate, ...]](*size)
        self._schemas = AnswerCache[Question, GraphSchema](*size)
        self._arounds = AnswerCache[Question, CachedAnswer[Around]](*size)
        self._paths = AnswerCache[Question, PathsFound](*size)
        self._answers = AnswerCache[Question, SparqlAnswer](*size)
        self._uses = AnswerCache[Question, CachedAnswer[Sequence[ValueUse]]](*size)
        self._computed = AnswerCache[Question, Computed](*size)
        self._revised = adapter if isinstance(adapter, SupportsRevision) else None
        self._take_on(adapter)
        self._take_on_notes(adapter)

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
        return await each(self._labels, await self._question(), terms, self._adapter.labels)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        return await each(self._descriptions, await self._question(), terms, self._adapter.describe)

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        async def ask(missing: Sequence[Node]) -> Mapping[Node, NeighborPage]:
            return await self._adapter.neighbors(replace(request, entities=tuple(missing)))

        question = await self._question(
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

        return await each(self._degrees, await self._question(direction, wanted), entities, ask)

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        async def ask(missing: Sequence[Fact]) -> Mapping[Fact, bool]:
            return dict.fromkeys(await self._adapter.contains(missing), True)

        return frozenset(await each(self._contained, await self._question(), facts, ask))

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        async def ask(missing: Sequence[Node]) -> Mapping[Node, FeaturePage]:
            return await self._adapter.features(replace(request, entities=tuple(missing)))

        return await each(self._features, await self._question(request.relations, request.limit), request.entities, ask)

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        async def ask() -> tuple[Candidate, ...]:
            found = await self._adapter.search(text, limit=limit, type=type)
            return tuple(checked(each, Candidate) for each in found)

        return await one(self._found, await self._question(text, limit, type), ask)

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        async def ask() -> tuple[RelationCandidate, ...]:
            found = await self._adapter.find_relations(text, limit=limit)
            return tuple(checked(each, RelationCandidate) for each in found)

        return await one(self._relations, await self._question(text, limit), ask)

    async def schema(self) -> GraphSchema:
        return await one(self._schemas, await self._question(), partial(_asked, GraphSchema, self._adapter.schema))

    async def profile(self) -> GraphProfile:
        # An adapter that takes long to learn it knows more of it every time.
        return await self._adapter.profile()

    async def aclose(self) -> None:
        await self._adapter.aclose()

    async def _question(self, *parts: Hashable) -> Question:
        """Return what an answer is to, in the graph as it is now."""
        return parts if self._revised is None else (*parts, await self._revised.revision())

    def _take_on(self, adapter: KGAdapter) -> None:
        """Give this adapter the optional abilities of the one that it asks, and no others."""
        if isinstance(adapter, SupportsRevision):
            self.revision = adapter.revision
        if isinstance(adapter, SupportsLearning):
            self.learn_profile, self.known_profile = adapter.learn_profile, adapter.known_profile
        if isinstance(adapter, SupportsPaths):
            self.paths = partial(_paths, self._paths, self._question, adapter)
        if isinstance(adapter, SupportsJoins):
            # The paths that are found among them are cached whole.
            self.joined, self.neighbor_counts = adapter.joined, adapter.neighbor_counts
        if isinstance(adapter, SupportsSets):
            self.compute = partial(_compute, self._computed, self._question, adapter)
        if isinstance(adapter, SupportsSparql):
            self.select = partial(_select, self._answers, self._question, adapter)
        if isinstance(adapter, SupportsValueSearch):
            self.uses_of_values = partial(_uses, self._uses, self._question, adapter)
        if isinstance(adapter, SupportsVectors):
            self.label_vectors, self.search_vectors = adapter.label_vectors, adapter.search_vectors
        if isinstance(adapter, SupportsSurroundings):
            # The numbers in the surroundings of a graph with vectors go with these, and are its own to give.
            ask = partial(_surroundings, self._arounds, self._question, adapter)
            self.surroundings: Callable[[SurroundingsRequest], Awaitable[Surroundings]] = (
                adapter.surroundings if isinstance(adapter, SupportsVectors) else ask
            )

    def _take_on_notes(self, adapter: KGAdapter) -> None:
        if isinstance(adapter, SupportsSearchNote):
            self.search_note = adapter.search_note
        if isinstance(adapter, SupportsFeatureNote):
            self.feature_note = adapter.feature_note
        if isinstance(adapter, SupportsEngineNote):
            self.engine_note = adapter.engine_note


async def _asked(kind: type[T], ask: Callable[[], Awaitable[object]]) -> T:
    return checked(await ask(), kind)


async def _paths(
    kept: AnswerCache[Question, PathsFound], question: _Asking, adapter: SupportsPaths, request: PathRequest
) -> PathsFound:
    return await one(kept, await question(request), partial(_asked, PathsFound, partial(adapter.paths, request)))


async def _compute(
    kept: AnswerCache[Question, Computed], question: _Asking, adapter: SupportsSets, request: SetRequest
) -> Computed:
    return await one(kept, await question(request), partial(_asked, Computed, partial(adapter.compute, request)))


async def _uses(
    kept: AnswerCache[Question, CachedAnswer[Sequence[ValueUse]]],
    question: _Asking,
    adapter: SupportsValueSearch,
    texts: Collection[str],
    *,
    limit: int,
) -> Mapping[str, Sequence[ValueUse]]:
    return await each(kept, await question(limit), texts, partial(adapter.uses_of_values, limit=limit))


async def _select(
    kept: AnswerCache[Question, SparqlAnswer],
    question: _Asking,
    adapter: SupportsSparql,
    query: str,
    *,
    timeout_s: float,
    max_rows: int,
) -> SparqlAnswer:
    ask = partial(adapter.select, query, timeout_s=timeout_s, max_rows=max_rows)
    return await one(kept, await question(query, timeout_s, max_rows), partial(_asked, SparqlAnswer, ask))


async def _surroundings(
    kept: AnswerCache[Question, CachedAnswer[Around]],
    question: _Asking,
    adapter: SupportsSurroundings,
    request: SurroundingsRequest,
) -> Surroundings:
    async def ask(missing: Sequence[Node]) -> Mapping[Node, Around]:
        return parts_of(await adapter.surroundings(replace(request, entities=tuple(missing))))

    asked = tuple(dict.fromkeys(request.entities))
    about = await question(request.per_relation, request.per_entity, request.values)
    found = await each(kept, about, asked, ask)
    labels = {term: label for around in found.values() for term, label in around.labels.items()}
    aliases = {relation: names for around in found.values() for relation, names in around.aliases.items()}
    return surroundings_of(asked, {entity: around.page for entity, around in found.items()}, labels, aliases)
