"""The adapter over Wikidata: the query service for edges and values, the web API for names and merges."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from kg_adapters.models import Degree, Description, Direction, FeaturePage, NeighborPage, RelationCandidate, ValueUse
from kg_adapters.requests import FeatureRequest, NeighborRequest, SurroundingsRequest
from kg_adapters.set_requests import Computed, SetRequest
from kg_adapters.sparql.adapter import SparqlAdapter, SparqlParts
from kg_adapters.sparql.asking import part_of_an_answer
from kg_adapters.surroundings import Surroundings, gather_surroundings
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple
from kg_adapters.wikidata.api import WikidataApi
from kg_adapters.wikidata.features import FeatureReader, as_people_read
from kg_adapters.wikidata.names import Whereabouts, WikidataNames, find_properties, renamed
from kg_adapters.wikidata.queries import DIRECT, MAX_ROWS

EXTERNAL_IDS: Final = "Ids in other databases are left out; name their property to read one."

T = TypeVar("T")


class WikidataService(SparqlAdapter):
    """One endpoint of the query service, whose values are read as people write them.

    Args:
        parts: What it is made of.
        reader: Reads features.
    """

    # Its ids all have a digit.
    local_part_form = re.compile(r"\S*[0-9]\S*")

    def __init__(self, parts: SparqlParts, reader: FeatureReader) -> None:
        super().__init__(parts)
        self._reader = reader

    @property
    def feature_note(self) -> str:
        """See `SupportsFeatureNote`."""
        return "" if self._reader.with_external_ids else EXTERNAL_IDS

    async def features(self, request: FeatureRequest) -> Mapping[Node, FeaturePage]:
        return await self._reader.features(request)

    async def uses_of_values(self, texts: Collection[str], *, limit: int) -> Mapping[str, Sequence[ValueUse]]:
        # The same value stands on entities and on nodes of their statements, which nobody asks about.
        del texts, limit
        return {}

    async def compute(self, request: SetRequest) -> Computed:
        return as_people_read(await super().compute(request))


class WikidataAdapter(WikidataService):
    """Answers from Wikidata.

    What the main endpoint does not have may have been merged into another entity, which then answers in its place, or
    stand at the scholarly endpoint.

    Args:
        parts: What the main endpoint's adapter is made of.
        reader: Reads features at the main endpoint.
        scholarly: The endpoint of the scholarly articles, if it is another one.
        api: The web API.
        names: What entities and properties are called.
    """

    def __init__(
        self,
        parts: SparqlParts,
        reader: FeatureReader,
        scholarly: WikidataService | None,
        api: WikidataApi,
        names: WikidataNames,
    ) -> None:
        super().__init__(parts, reader)
        self._scholarly = scholarly
        self._api = api
        self._names = names
        self._places = Whereabouts()

    async def labels(self, terms: Collection[Node]) -> Mapping[Node, str]:
        return await self._names.labels(terms)

    async def describe(self, terms: Collection[Node]) -> Mapping[Node, Description]:
        found = await self._wherever(terms, WikidataService.describe)
        relations = [term for term in found if _is_direct(term)]
        labels = await self._names.labels(relations)
        found |= {term: replace(found[term], label=labels.get(term)) for term in relations}
        return {term: self._told(term, description) for term, description in found.items()}

    async def neighbors(self, request: NeighborRequest) -> Mapping[Node, NeighborPage]:
        found = await self._wherever(
            request.entities,
            lambda service, nodes: WikidataService.neighbors(service, replace(request, entities=tuple(nodes))),
        )
        return {node: renamed(page, self._places.current(node), node) for node, page in found.items()}

    async def degrees(
        self, entities: Sequence[Node], *, direction: Direction = "both", relations: Collection[Iri] | None = None
    ) -> Mapping[Node, Degree]:
        ask = partial(WikidataService.degrees, direction=direction, relations=relations)
        return await self._wherever(entities, ask)

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
        await self._wherever(ends, WikidataService.describe)
        # What turned out to have another id, or to stand at the other endpoint, is asked for again.
        moved = [triple for triple, place in missing.items() if self._places.placed(triple) != place]
        return found | await self._holding(moved)

    async def _holding(self, triples: Collection[Triple]) -> frozenset[Fact]:
        """Return the triples that stand where their ends are known to be."""
        placed = {triple: self._places.placed(triple) for triple in triples}
        found: set[Fact] = set()
        for service, at_scholarly in ((self, False), (self._scholarly, True)):
            there = [now for now, is_scholarly in placed.values() if is_scholarly == at_scholarly]
            if service is not None and there:
                found |= await WikidataService.contains(service, there)
        return frozenset(triple for triple, (now, _) in placed.items() if now in found)

    async def surroundings(self, request: SurroundingsRequest) -> Surroundings:
        around = tuple(dict.fromkeys(request.entities))
        if any(map(self._places.is_scholarly, around)):
            return await gather_surroundings(self, request)
        current = tuple(self._places.all_current(around))
        found = await super().surroundings(replace(request, entities=current))
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
            lambda service, nodes: WikidataService.features(service, replace(request, entities=tuple(nodes))),
        )

    async def find_relations(self, text: str, *, limit: int) -> Sequence[RelationCandidate]:
        return await find_properties(self._api, text, limit=limit)

    async def learn_profile(self, *, when_asked: bool = False) -> None:
        # Other names of properties come with their labels.
        await self._profiles.learn(when_asked=when_asked)

    async def aclose(self) -> None:
        await super().aclose()
        if self._scholarly is not None:
            await self._scholarly.aclose()
        await self._api.aclose()

    async def _wherever(
        self, nodes: Collection[Node], ask: Callable[[WikidataService, Sequence[Node]], Awaitable[Mapping[Node, T]]]
    ) -> dict[Node, T]:
        """Return what the endpoints state about nodes, and about what those were merged into."""
        current = self._places.all_current(nodes)
        here = [node for node in current if not self._places.is_scholarly(node)]
        found = dict(await ask(self, here)) if here else {}
        perhaps: list[Node] = []
        if missing := [node for node in here if node not in found and not _is_direct(node)]:
            exists = await self._names.current(missing)
            self._places.learn_merged({node: now for node, now in exists.items() if now != node})
            if merged := [now for node, now in exists.items() if now != node and now not in found]:
                found |= await ask(self, merged)
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
