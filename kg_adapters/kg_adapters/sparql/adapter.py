"""The adapter over a SPARQL endpoint."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

import math
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import anyio

from kg_adapters.calls import note_partial
from kg_adapters.errors import RETRY_S, BackendTimeout, InvalidRequest, KGError, Unsupported
from kg_adapters.labels import Vocabulary
from kg_adapters.models import (
    Candidate,
    Degree,
    Description,
    Direction,
    FeaturePage,
    GraphSchema,
    NeighborPage,
    RelationCandidate,
    SparqlAnswer,
    ValueUse,
)
from kg_adapters.prefixes import WELL_KNOWN, Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.set_walking import walked_sets
from kg_adapters.sparql.asking import QueryAnswerer, QueryAsker, as_meant, part_of_an_answer
from kg_adapters.sparql.checking import QueryChecker
from kg_adapters.sparql.descriptions import DescriptionReader
from kg_adapters.sparql.dialects import Engine
from kg_adapters.sparql.index_state import IndexState
from kg_adapters.sparql.joins import JoinReader
from kg_adapters.sparql.neighborhoods import EdgeReader, LabelMemory
from kg_adapters.sparql.profile_reading import ProfileKeeper, Profiler
from kg_adapters.sparql.profile_survey import ProfileLimits, ProfileSurvey
from kg_adapters.sparql.queries import Queries
from kg_adapters.sparql.queries.edges import Scope
from kg_adapters.sparql.rows import ValueRows
from kg_adapters.sparql.schema import SchemaFile, SurveyLimits, Surveyor
from kg_adapters.sparql.search import EndpointSearch, NameSearch, RelationSearch, uses_of_values
from kg_adapters.sparql.sets import SetReader
from kg_adapters.surroundings import Surroundings
from kg_adapters.terms import Fact, Iri, Node

TIMEOUT_S: Final = 10.0


@dataclass(frozen=True)
class SparqlParts:
    """What a SPARQL adapter is made of; each part but the endpoint has a default.

    Args:
        name: What people call the graph.
        endpoint: What answers queries.
        queries: What writes them.
        prefixes: The short forms of the graph's IRIs.
        graphs: The IRIs of the graphs that queries may name with FROM.
        search: How entities are found by name; None for the endpoint's own means.
        engine: What answers; None where that is not known.
        state: What it reports of its index; None for nothing.
        file: Where the schema is kept between sessions; None for nowhere.
        memory: Caches the labels that answers include.
        timeout_s: How many seconds an answer may take.
        survey: How much is counted for the schema.
        profiled: How much is asked for the profile.
        value_rows: What makes a reader for the rows about values, where they are not read as they are.
        retry_s: After how many seconds what was not answered for the schema or profile is asked for again.
        clock: Returns the time, in seconds, by which an endpoint is found to be slow.
    """

    name: str
    endpoint: QueryAnswerer
    queries: Queries
    prefixes: Prefixes
    graphs: tuple[str, ...] = ()
    search: NameSearch | None = None
    engine: Engine | None = None
    state: IndexState | None = None
    file: SchemaFile | None = None
    memory: LabelMemory = field(default_factory=LabelMemory)
    timeout_s: float = TIMEOUT_S
    survey: SurveyLimits = field(default_factory=SurveyLimits)
    profiled: ProfileLimits = field(default_factory=ProfileLimits)
    value_rows: Callable[[], ValueRows] | None = None
    retry_s: float = RETRY_S
    clock: Callable[[], float] = time.monotonic


class SparqlAdapter:
    """Answers from one endpoint, by as few requests as can be.

    A blank node of an answer can be asked about only where the engine keeps its name (`Dialect.blank_nodes`). Elsewhere
    the answer includes its facts: `neighbors`, `features` and `surroundings` return them while the adapter caches them,
    by no further request; other calls leave it out like an unknown entity, and the prefixes refuse its label with the
    reason.

    Args:
        parts: What it is made of.

    Attributes:
        local_part_form: What texts may be the local parts of ids that nothing but a request tells.
    """

    local_part_form: ClassVar[re.Pattern[str]] = re.compile(r"\S+")

    def __init__(self, parts: SparqlParts) -> None:
        queries = parts.queries
        asker = QueryAsker(parts.endpoint, queries.dialect, parts.timeout_s, parts.state)
        self._parts, self._asker = parts, asker
        self._index = self._kept_for = _id_of(parts.state)
        self._edges = EdgeReader(asker, queries.edges, parts.memory, lambda: parts.name + self._index, parts.value_rows)
        self._descriptions = DescriptionReader(asker, queries.descriptions, parts.memory)
        self._search = parts.search or EndpointSearch(asker, queries.names)
        self._relations = RelationSearch(asker, queries.names)
        self._surveyor = Surveyor(asker, queries.survey, parts.survey, parts.clock)
        self._checker = QueryChecker({**WELL_KNOWN, **parts.prefixes.namespaces}, parts.graphs)
        self._sets = SetReader(asker, queries.sets)
        limits = parts.profiled
        self._profiles = ProfileKeeper(
            Profiler(asker, queries.survey, limits.read, parts.clock) if limits.read else None,
            lambda: ProfileSurvey(asker, queries.profiles, self.labels, limits),
            parts.file,
            parts.retry_s,
        )
        if queries.dialect.joins:
            joins = JoinReader(asker, queries.edges)
            self.joined, self.neighbor_counts = joins.joined, joins.neighbor_counts
        self._schema: GraphSchema | None = None
        self._survey_again = math.inf
        self._surveying = anyio.Lock()

    @property
    def name(self) -> str:
        return self._parts.name

    @property
    def prefixes(self) -> Prefixes:
        return self._parts.prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return self._parts.queries.vocabulary

    @property
    def remote(self) -> bool:
        return True

    @property
    def engine(self) -> Engine | None:
        """The engine that answers and its full-text index, as set or as found when it was opened."""
        return self._parts.engine

    @property
    def engine_note(self) -> str:
        """As which engine it is asked, and which full-text index is used: a clause, or nothing."""
        engine = self._parts.engine
        if engine is None:
            return ""
        return f"its engine is asked as {engine.dialect}, its full-text index as {engine.text_search}"

    async def revision(self) -> str:
        """What tells the index of an engine that reports it from an earlier one; where it changed, labels are new."""
        if self._parts.state is not None:
            await self._parts.state.current()
        if (found := _id_of(self._parts.state)) != self._index:
            self._index, self._schema = found, None
            self._parts.memory.clear()
        return self._index

    @property
    def search_note(self) -> str:
        """How `search` finds entities, and what it may miss: a full sentence."""
        return self._search.note

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        return await self._descriptions.labels(terms)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        return await self._descriptions.describe(terms)

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        return await self._edges.neighbors(request)

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        return await self._edges.degrees(
            entities, Scope(direction, None if relations is None else frozenset(relations))
        )

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        return await self._edges.contains(facts)

    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        found = await self._edges.surroundings(request)
        return replace(found, relation_aliases=[self._relations.aliases(each) for each in found.relations])

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        opened = await self._edges.opened_features(request)
        return opened | await self._descriptions.features(request)

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        found = await self._search.search(text, limit=limit, type=type)
        if type is not None or not self.local_part_form.fullmatch(text):
            return found
        named = {each.entity for each in found if each.score == 1.0}
        # What has this id may also have another name.
        called = await self.describe([each for each in self.prefixes.local_names(text) if each not in named])
        ids = [Candidate(node, 1.0, "id", text) for node, each in called.items() if "entity" in each.roles]
        return [*ids, *(each for each in found if each.entity not in called)][:limit]

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await self._relations.find(await self.schema(), text, limit)

    async def uses_of_values(self, texts: Collection[str], *, limit: int) -> Mapping[str, Sequence[ValueUse]]:
        return await uses_of_values(self._asker, self._parts.queries.names, texts, limit)

    async def profile(self) -> GraphProfile:
        return await self._profiles.profile()

    async def learn_profile(self, *, when_asked: bool = False) -> None:
        await self._profiles.learn(when_asked=when_asked)
        known = self.known_profile()
        relations = {each.relation for owner in (known.everything, *known.classes) for each in owner.properties}
        if relations:
            # Without an answer they are fetched by the first search for a relation.
            with suppress(KGError):
                await self._relations.learn_aliases(relations)

    def known_profile(self) -> GraphProfile:
        return self._profiles.known()

    async def schema(self) -> GraphSchema:
        async with self._surveying:
            # What is kept is of the index that was there at the opening.
            file = self._parts.file if self._index == self._kept_for else None
            if self._schema is None and file is not None:
                self._schema = file.schema()
            if self._schema is None or anyio.current_time() >= self._survey_again:
                surveyed = await self._surveyor.schema(self.prefixes, self.labels)
                self._schema, self._survey_again = surveyed.schema, math.inf
                if not surveyed.all_answered:
                    self._survey_again = anyio.current_time() + self._parts.retry_s
                elif file is not None:
                    file.keep_schema(surveyed.schema)
            if self._survey_again < math.inf:
                note_partial()
            return self._schema

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        if timeout_s <= 0 or max_rows < 1:
            raise InvalidRequest(f"timeout_s must be above 0 and max_rows at least 1, not {timeout_s} and {max_rows}.")
        end = anyio.current_time() + timeout_s
        try:
            with anyio.fail_after(timeout_s):
                checked = await self._checker.check(query, max_rows=max_rows)
        except TimeoutError:
            raise BackendTimeout(
                f"The query could not be checked within {round(timeout_s, 2):g} s. "
                "Ask again, or with a larger timeout_s."
            ) from None
        left_s = max(0.0, end - anyio.current_time())
        found = await self._parts.endpoint.query(
            checked.text,
            timeout_s=left_s,
            max_rows=max_rows,
            parameters=self._parts.queries.dialect.parameters(timeout_s, left_s),
        )
        found = as_meant(found, self._parts.queries.dialect)
        if found.cut and not found.rows and not found.truth:
            raise part_of_an_answer()
        # A graph has each of its statements once, however often an engine sends it.
        rows = found.rows if checked.form == "SELECT" else tuple(dict.fromkeys(found.rows))
        return SparqlAnswer(checked.form, found.variables, rows, found.truncated, found.truth, checked.named)

    async def compute(self, request: SetRequest) -> Computed:
        end = anyio.current_time() + request.timeout_s
        try:
            return await self._sets.compute(request)
        except Unsupported:
            left_s = max(0.0, end - anyio.current_time())
            return await walked_sets(self, replace(request, timeout_s=left_s))

    async def aclose(self) -> None:
        await self._checker.aclose()
        await self._parts.endpoint.aclose()


def _id_of(state: IndexState | None) -> str:
    return "" if state is None or state.known is None else state.known.id
