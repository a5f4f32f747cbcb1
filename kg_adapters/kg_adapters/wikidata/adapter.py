"""The adapter over Wikidata: the query service for edges and values, the web API for names and merges."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

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
)
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import GraphProfile
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.sparql.adapter import SparqlAdapter
from kg_adapters.sparql.asking import part_of_an_answer
from kg_adapters.surroundings import Surroundings, gather_surroundings
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple
from kg_adapters.wikidata.api import WikidataApi
from kg_adapters.wikidata.features import FeatureReader, as_people_read
from kg_adapters.wikidata.names import Whereabouts, WikidataNames, find_properties, renamed, target
from kg_adapters.wikidata.queries import DIRECT, MAX_ROWS

EXTERNAL_IDS: Final = "Ids in other databases are left out; name their property to read one."

T = TypeVar("T")


@dataclass(frozen=True)
class Service:
    """One endpoint of the query service, and what reads values from it."""

    graph: SparqlAdapter
    features: FeatureReader


class WikidataAdapter:
    """Answers from Wikidata.

    What the main endpoint does not have may have been merged into another entity, which then answers in its place, or
    stand at the scholarly endpoint.

    Args:
        main: The main endpoint.
        scholarly: That of the scholarly articles, if it is another one.
        api: The web API.
        names: What entities and properties are called.
    """

    def __init__(self, main: Service, scholarly: Service | None, api: WikidataApi, names: WikidataNames) -> None:
        self._main = main
        self._scholarly = scholarly
        self._api = api
        self._names = names
        self._places = Whereabouts()

    @property
    def name(self) -> str:
        return self._main.graph.name

    @property
    def prefixes(self) -> Prefixes:
        return self._main.graph.prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return self._main.graph.vocabulary

    @property
    def remote(self) -> bool:
        return True

    @property
    def search_note(self) -> str:
        """See `SupportsSearchNote`."""
        return self._main.graph.search_note

    @property
    def feature_note(self) -> str:
        """See `SupportsFeatureNote`."""
        return "" if self._main.features.with_external_ids else EXTERNAL_IDS

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        return await self._names.labels(terms)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        found = await self._wherever(terms, lambda service, nodes: service.graph.describe(nodes))
        relations = [term for term in found if _is_direct(term)]
        labels = await self._names.labels(relations)
        found |= {term: replace(found[term], label=labels.get(term)) for term in relations}
        return {term: self._told(term, description) for term, description in found.items()}

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        found = await self._wherever(
            request.entities,
            lambda service, nodes: service.graph.neighbors(replace(request, entities=tuple(nodes))),
        )
        return {node: renamed(page, self._places.current(node), node) for node, page in found.items()}

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        return await self._wherever(
            entities,
            lambda service, nodes: service.graph.degrees(nodes, direction=direction, relations=relations),
        )

    async def contains(self, facts: Collection[Fact]) -> frozenset[Fact]:
        stated = [fact for fact in facts if isinstance(fact, Attribute)]
        joined = await self._joined([fact for fact in facts if isinstance(fact, Triple)])
        return joined | await self._stated(stated) if stated else joined

    async def _stated(self, asked: Collection[Attribute]) -> frozenset[Fact]:
        """Return the attributes that entities have as people read them, which is not how they are stored."""
        heads, relations = {fact.head for fact in asked}, frozenset(fact.relation for fact in asked)
        pages = await self.features(FeatureRequest(tuple(heads), relations, MAX_ROWS))
        held = {
            Attribute(head, feature.relation, feature.value)
            for head, page in pages.items()
            for feature in page.features
        }
        pages = {fact.head: pages[fact.head] for fact in asked if fact not in held and fact.head in pages}
        if not all(page.total.exact and page.total.value == len(page.features) for page in pages.values()):
            raise part_of_an_answer()
        return frozenset(fact for fact in asked if fact in held)

    async def _joined(self, triples: Collection[Triple]) -> frozenset[Fact]:
        """Return the triples that are there, wherever their ends are."""
        found = await self._holding(triples)
        missing = {triple: self._places.placed(triple) for triple in triples if triple not in found}
        ends = dict.fromkeys(end for triple in missing for end in (triple.head, triple.tail))
        await self._wherever(ends, lambda service, nodes: service.graph.describe(nodes))
        # What turned out to have another id, or to stand at the other endpoint, is asked for once more.
        moved = [triple for triple, place in missing.items() if self._places.placed(triple) != place]
        return found | await self._holding(moved)

    async def _holding(self, triples: Collection[Triple]) -> frozenset[Fact]:
        """Return the triples that stand where their ends are known to be."""
        placed = {triple: self._places.placed(triple) for triple in triples}
        found: set[Fact] = set()
        for service, at_scholarly in ((self._main, False), (self._scholarly, True)):
            there = [now for now, is_scholarly in placed.values() if is_scholarly == at_scholarly]
            if service is not None and there:
                found |= await service.graph.contains(there)
        return frozenset(triple for triple, (now, _) in placed.items() if now in found)

    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        around = tuple(dict.fromkeys(request.entities))
        if any(map(self._places.is_scholarly, around)):
            return await gather_surroundings(self, request)
        current = tuple(self._places.all_current(around))
        found = await self._main.graph.surroundings(replace(request, entities=current))
        labels = await self._names.labels(found.relations)
        known = {self._places.current(node): node for node in around}
        return replace(
            found,
            entities=tuple(known[node] for node in found.entities),
            sampled=tuple(known[node] for node in found.sampled),
            relation_labels=[labels.get(relation) for relation in found.relations],
            relation_aliases=[self._names.aliases(relation) for relation in found.relations],
        )

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        return await self._wherever(
            request.entities,
            lambda service, nodes: service.features.features(replace(request, entities=tuple(nodes))),
        )

    async def search(self, text: str, *, limit: int, type: Node | None = None) -> Sequence[Candidate]:
        return await self._main.graph.search(text, limit=limit, type=type)

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await find_properties(self._api, text, limit=limit)

    async def profile(self) -> GraphProfile:
        return await self._main.graph.profile()

    async def learn_profile(self, *, when_asked: bool = False) -> None:
        await self._main.graph.learn_profile(when_asked=when_asked)

    def known_profile(self) -> GraphProfile:
        return self._main.graph.known_profile()

    async def schema(self) -> GraphSchema:
        found = await self._main.graph.schema()
        said = [*(each.iri for each in found.relations), *(each.iri for each in found.features)]
        labels = await self._names.labels(said)
        return replace(
            found,
            relations=tuple(replace(each, label=labels.get(each.iri, each.label)) for each in found.relations),
            features=tuple(replace(each, label=labels.get(each.iri, each.label)) for each in found.features),
        )

    async def select(self, query: str, *, timeout_s: float, max_rows: int) -> SparqlAnswer:
        return await self._main.graph.select(query, timeout_s=timeout_s, max_rows=max_rows)

    async def compute(self, request: SetRequest) -> Computed:
        return as_people_read(await self._main.graph.compute(request))

    async def aclose(self) -> None:
        for service in (self._main, self._scholarly):
            if service is not None:
                await service.graph.aclose()
        await self._api.aclose()

    async def _wherever(
        self, nodes: Collection[Node], ask: Callable[[Service, Sequence[Node]], Awaitable[Mapping[Node, T]]]
    ) -> dict[Node, T]:
        """Return what the endpoints say of nodes, and of what those were merged into."""
        current = self._places.all_current(nodes)
        here = [node for node in current if not self._places.is_scholarly(node)]
        found = dict(await ask(self._main, here)) if here else {}
        perhaps: list[Node] = []
        if missing := [node for node in here if node not in found and not _is_direct(node)]:
            looked_up = await self._names.look_up(missing)
            exists = {node: target(named) for node, named in looked_up.items()}
            self._places.learn_merged({node: now for node, now in exists.items() if now != node})
            if merged := [now for node, now in exists.items() if now != node and now not in found]:
                found |= await ask(self._main, merged)
            perhaps = [node for node, now in exists.items() if now == node]
        elsewhere = [*perhaps, *(node for node in current if self._places.is_scholarly(node))]
        if elsewhere and self._scholarly is not None:
            told = await ask(self._scholarly, elsewhere)
            # Only an answer proves that it is there: what is silent here may have been silent there for another reason.
            self._places.learn_scholarly(told)
            found |= told
        return self._places.answers(nodes, found)

    def _told(self, term: Node, description: Description) -> Description:
        current = self._places.current(term)
        if current == term:
            return description
        text = f"merged into {self.prefixes.shorten(current)}"
        return replace(
            description, description=f"{text}: {description.description}" if description.description else text
        )


def _is_direct(term: Node) -> bool:
    return isinstance(term, Iri) and term.value.startswith(DIRECT)
