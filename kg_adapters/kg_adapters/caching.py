"""Cache the answers of an adapter: entity by entity, with equal questions at the same time asked once."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

import anyio

from kg_adapters.calls import note_partial, watching_completeness
from kg_adapters.errors import BackendError, KGError
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
from kg_adapters.surroundings import (
    Around,
    SupportsSurroundings,
    SupportsVectors,
    Surroundings,
    parts_of,
    surroundings_of,
)
from kg_adapters.terms import Fact, Iri, Node

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
Question: TypeAlias = tuple[Hashable, ...]
"""What an answer is to, with what it is about at its end."""


@dataclass(frozen=True, slots=True)
class Kept(Generic[V]):
    """An answer about one thing; `value` is None where the graph does not mention it."""

    value: V | None


@dataclass(eq=False)
class _Flight(Generic[K, V]):
    """A request under way: `landed` when it ended, with `answers` or an `error`; with neither if it was cancelled."""

    landed: anyio.Event = field(default_factory=anyio.Event)
    answers: Mapping[K, V] = field(default_factory=dict[K, V])
    error: KGError | None = None
    partial: bool = False


class AnswerCache(Generic[K, V]):
    """Keeps answers by key; the least recently used goes first, and neither errors nor partial answers are kept.

    Who asks for what is under way gets the same answer, kept or not.

    Args:
        max_entries: How many answers to keep.
        expiry_s: After how many seconds an answer is forgotten.
        clock: Tells the time, in seconds.
    """

    def __init__(self, max_entries: int, expiry_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_entries = max_entries
        self._expiry_s = expiry_s
        self._clock = clock
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._flights: dict[K, _Flight[K, V]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(self, keys: Sequence[K], load: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> dict[K, V]:
        """Return the answers to keys; those that are neither kept nor under way are asked for together.

        Args:
            keys: What is asked for, each once.
            load: What asks; its answer has every key that it is given.

        Raises:
            KGError: `load` failed, for this caller or for the one who asked for the same.
        """
        found: dict[K, V] = {}
        while missing := [key for key in keys if key not in found and not self._recall(key, found)]:
            mine = [key for key in missing if key not in self._flights]
            if mine:
                found.update(await self._load(mine, load))
            else:
                found.update(await self._wait(self._flights[missing[0]]))
        return {key: found[key] for key in keys}

    def _recall(self, key: K, found: dict[K, V]) -> bool:
        kept = self._kept.get(key)
        if kept is None or kept[0] <= self._clock():
            return False
        self._kept.move_to_end(key)
        found[key] = kept[1]
        return True

    async def _load(self, keys: Sequence[K], load: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]]) -> Mapping[K, V]:
        flight = _Flight[K, V]()
        self._flights.update(dict.fromkeys(keys, flight))
        try:
            with watching_completeness() as seen:
                flight.answers = await load(keys)
            flight.partial = seen.partial
        except KGError as error:
            flight.error = error
            raise
        finally:
            for key in keys:
                del self._flights[key]
            flight.landed.set()
        if not flight.partial:
            self._keep(flight.answers)
        return flight.answers

    async def _wait(self, flight: _Flight[K, V]) -> Mapping[K, V]:
        await flight.landed.wait()
        if flight.error is not None:
            raise flight.error
        if flight.partial:
            # Whoever watches this caller's answers has not seen those of the other.
            note_partial()
        return flight.answers

    def _keep(self, answers: Mapping[K, V]) -> None:
        end = self._clock() + self._expiry_s
        for key, answer in answers.items():
            self._kept[key] = (end, answer)
            self._kept.move_to_end(key)
        while len(self._kept) > self._max_entries:
            self._kept.popitem(last=False)


async def each(
    cache: AnswerCache[Question, Kept[V]],
    question: Question,
    things: Iterable[K],
    ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]],
) -> dict[K, V]:
    """Return the answers about nodes or triples, of which only those that are not known are asked about."""
    keys: dict[Question, K] = {(*question, thing): thing for thing in things}
    if not keys:
        return dict(await ask(()))

    async def load(missing: Sequence[Question]) -> Mapping[Question, Kept[V]]:
        asked = [keys[key] for key in missing]
        answers = await ask(asked)
        if not set(asked).issuperset(answers):
            raise BackendError("The graph's adapter answered what nobody asked. Report this as a bug in it.")
        return {key: Kept(answers.get(keys[key])) for key in missing}

    found = await cache.get(list(keys), load)
    return {keys[key]: kept.value for key, kept in found.items() if kept.value is not None}


def checked(answer: object, kind: type[T]) -> T:
    """Return an answer that is of its kind, so that what an adapter does wrong is not cached.

    Raises:
        BackendError: It is not.
    """
    if not isinstance(answer, kind):
        raise BackendError(
            f"The graph's adapter answered {type(answer).__name__} instead of {kind.__name__}. "
            "Report this as a bug in it."
        )
    return answer


async def one(cache: AnswerCache[Question, V], question: Question, ask: Callable[[], Awaitable[V]]) -> V:
    """Return the answer to one question."""

    async def load(_: Sequence[Question]) -> Mapping[Question, V]:
        return {question: await ask()}

    return (await cache.get([question], load))[question]


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
        self._take_on(adapter)

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
            found = await self._adapter.search(text, limit=limit, type=type)
            return tuple(checked(each, Candidate) for each in found)

        return await one(self._found, (text, limit, type), ask)

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        async def ask() -> tuple[RelationCandidate, ...]:
            found = await self._adapter.find_relations(text, limit=limit)
            return tuple(checked(each, RelationCandidate) for each in found)

        return await one(self._relations, (text, limit), ask)

    async def schema(self) -> GraphSchema:
        return await one(self._schemas, (), partial(_asked, GraphSchema, self._adapter.schema))

    async def profile(self) -> GraphProfile:
        # An adapter that takes long to learn it knows more of it every time.
        return await self._adapter.profile()

    async def aclose(self) -> None:
        await self._adapter.aclose()

    def _take_on(self, adapter: KGAdapter) -> None:
        """Give this adapter the optional abilities of the one that it asks, and no others."""
        if isinstance(adapter, SupportsLearning):
            self.learn_profile, self.known_profile = adapter.learn_profile, adapter.known_profile
        if isinstance(adapter, SupportsPaths):
            self.paths = partial(_paths, self._paths, adapter)
        if isinstance(adapter, SupportsSets):
            self.compute = partial(_compute, self._computed, adapter)
        if isinstance(adapter, SupportsSparql):
            self.select = partial(_select, self._answers, adapter)
        if isinstance(adapter, SupportsSearchNote):
            self.search_note = adapter.search_note
        if isinstance(adapter, SupportsFeatureNote):
            self.feature_note = adapter.feature_note
        if isinstance(adapter, SupportsVectors):
            self.label_vectors, self.search_vectors = adapter.label_vectors, adapter.search_vectors
        if isinstance(adapter, SupportsSurroundings):
            # The numbers in the surroundings of a graph with vectors go with these, and are its own to give.
            ask = partial(_surroundings, self._arounds, adapter)
            self.surroundings: Callable[[SurroundingsRequest], Awaitable[Surroundings]] = (
                adapter.surroundings if isinstance(adapter, SupportsVectors) else ask
            )


async def _asked(kind: type[T], ask: Callable[[], Awaitable[object]]) -> T:
    return checked(await ask(), kind)


async def _paths(kept: AnswerCache[Question, PathsFound], adapter: SupportsPaths, request: PathRequest) -> PathsFound:
    return await one(kept, (request,), partial(_asked, PathsFound, partial(adapter.paths, request)))


async def _compute(kept: AnswerCache[Question, Computed], adapter: SupportsSets, request: SetRequest) -> Computed:
    return await one(kept, (request,), partial(_asked, Computed, partial(adapter.compute, request)))


async def _select(
    kept: AnswerCache[Question, SparqlAnswer], adapter: SupportsSparql, query: str, *, timeout_s: float, max_rows: int
) -> SparqlAnswer:
    question = (query, timeout_s, max_rows)
    ask = partial(adapter.select, query, timeout_s=timeout_s, max_rows=max_rows)
    return await one(kept, question, partial(_asked, SparqlAnswer, ask))


async def _surroundings(
    kept: AnswerCache[Question, Kept[Around]], adapter: SupportsSurroundings, request: SurroundingsRequest
) -> Surroundings:
    async def ask(missing: Sequence[Node]) -> Mapping[Node, Around]:
        return parts_of(await adapter.surroundings(replace(request, entities=tuple(missing))))

    asked = tuple(dict.fromkeys(request.entities))
    found = await each(kept, (request.per_relation, request.per_entity, request.values), asked, ask)
    labels = {term: label for around in found.values() for term, label in around.labels.items()}
    aliases = {relation: names for around in found.values() for relation, names in around.aliases.items()}
    return surroundings_of(asked, {entity: around.page for entity, around in found.items()}, labels, aliases)
