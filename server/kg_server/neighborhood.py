"""GetNeighbor: the facts around one entity, a page at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.models import NO_FEATURES, Count, Degree, Direction, NeighborPage, RelationCount
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple
from kg_server.budget import fitting, token_count
from kg_server.coverage import absence
from kg_server.inverses import OPPOSITE, Walked, degree_both_ways, inverse_of
from kg_server.names import Names, names_of, terms_of
from kg_server.relation_counts import ADJECTIVES, RelationTable, by_direction, relation_table
from kg_server.relation_resolution import Chosen, NoSuchRelation, no_such_relation, relation_of
from kg_server.resolve import entity_of, require_entity, unknown_entity
from kg_server.results import Answer, Knowledge, NeighborsResult

SUMMARY_TOKENS: Final = 200
TABLE_SHARE: Final = 0.85
RESERVED_TOKENS: Final = 110
MOST_VALUES: Final = 500
"""Of how many values of a large entity it is counted which relation they have."""


@dataclass(frozen=True, slots=True)
class _Query:
    """One call of GetNeighbor, with terms in place of ids."""

    entity: Node
    chosen: Chosen | None
    direction: Direction
    limit: int
    position: str | None
    instead_of: Chosen | None = None
    walked: Walked | None = None

    @property
    def relation(self) -> Iri | None:
        return None if self.chosen is None else self.chosen.relation

    @property
    def read(self) -> Sequence[Iri]:
        chosen = (each for each in (self.chosen, self.instead_of) if each is not None)
        terms = [term for each in chosen for term in each.terms]
        return terms if self.walked is None or self.walked.inverse is None else [*terms, self.walked.inverse]

    def said(self, names: Names) -> str:
        if self.chosen is None or self.instead_of is None:
            return "" if self.chosen is None else self.chosen.said(names)
        asked, stored = names.relation(self.instead_of.relation), names.relation(self.chosen.relation)
        return f"{self.instead_of.said(names)}{asked} is stored here as {stored}, its inverse. "


async def neighborhood(
    graph: KGAdapter,
    *,
    entity: str,
    relation: str | None,
    direction: Direction,
    limit: int,
    cursor: str | None,
    max_tokens: int,
) -> Answer:
    """Answer GetNeighbor.

    Raises:
        InvalidRequest: An id or the cursor is not one.
        UnknownEntity: The graph does not mention the entity.
        UnknownRelation: No triple has the relation.
    """
    node = await entity_of(graph, entity)
    try:
        chosen = await _chosen(graph, node, relation, direction)
    except NoSuchRelation as error:
        await require_entity(graph, entity)
        return Answer(_no_triples(await no_such_relation(graph, node, error)), ())
    query, page = await _found(graph, _Query(node, chosen, direction, limit, cursor), entity)
    if not page.facts and query.position is None:
        if relation is not None and graph.remote:
            await relation_of(graph, relation, around=[node])
        return await _nothing(graph, query, max_tokens)
    return await _fitted(graph, query, page, entity, max_tokens)


async def _found(graph: KGAdapter, query: _Query, asked: str) -> tuple[_Query, NeighborPage]:
    """Return the first facts, over the inverse relation where they are stored so, and what was asked for in the end."""
    if query.position is not None:
        query = await _as_stored(graph, query)
    page = await _page(graph, query, asked)
    if query.position is not None or query.relation is None or query.direction == "both":
        return query, page
    if page.facts:
        walked = await degree_both_ways(graph, query.entity, query.relation, query.direction)
        return replace(query, walked=walked if walked.more else None), page
    query = await _as_stored(graph, query)
    return query, page if query.instead_of is None else await _page(graph, query, asked)


async def _fitted(graph: KGAdapter, query: _Query, page: NeighborPage, asked: str, max_tokens: int) -> Answer:
    counts = await _counts(graph, query, page)
    shown_terms = (query.entity, *query.read, *terms_of(page.facts), *(each.relation for each in counts))
    names = await names_of(graph, shown_terms, max_tokens=max_tokens)
    if not page.truncated:
        answer = _answer(query, page, RelationTable(tuple(counts), (), len(counts)), names)
        if answer.tokens <= max_tokens:
            return answer
    table = relation_table(names, counts, int((max_tokens - SUMMARY_TOKENS) * TABLE_SHARE))
    room = max_tokens - RESERVED_TOKENS - token_count("\n".join(table.lines)) - token_count(names.entity(query.entity))
    fits = max(1, fitting([names.fact(fact) for fact in page.facts], room))
    while True:
        if fits < len(page.facts):
            page = await _page(graph, replace(query, limit=fits), asked)
        answer = _answer(query, page, table, names)
        if fits == 1 or answer.tokens <= max_tokens:
            return answer
        fits = max(1, min(fits - 1, fits * max_tokens // answer.tokens))


async def _chosen(graph: KGAdapter, node: Node, relation: str | None, direction: Direction) -> Chosen | None:
    if relation is None:
        return None
    return await relation_of(graph, relation, around=[node], direction=direction, trusting=graph.remote)


async def _as_stored(graph: KGAdapter, query: _Query) -> _Query:
    """Return the question for the same facts over the inverse relation, where the graph has them that way only."""
    if query.chosen is None or query.direction == "both":
        return query
    inverse = await inverse_of(graph, query.chosen.relation)
    if inverse is None:
        return query
    back = OPPOSITE[query.direction]
    counts = await graph.degrees([query.entity], relations=[query.chosen.relation, inverse])
    relations = counts[query.entity].relations if query.entity in counts else ()
    stored = {(each.relation, each.direction) for each in relations}
    if (query.chosen.relation, query.direction) in stored or (inverse, back) not in stored:
        return query
    return replace(query, chosen=Chosen(inverse), direction=back, instead_of=query.chosen)


async def _page(graph: KGAdapter, query: _Query, asked: str) -> NeighborPage:
    pages = await graph.neighbors(
        NeighborRequest(
            (query.entity,),
            direction=query.direction,
            relations=None if query.relation is None else frozenset({query.relation}),
            limit=query.limit,
            values=True,
            cursor=query.position,
        )
    )
    if query.entity not in pages:
        raise await unknown_entity(graph, query.entity, asked)
    return pages[query.entity]


async def _counts(graph: KGAdapter, query: _Query, page: NeighborPage) -> Sequence[RelationCount]:
    """Return the count of every relation on the first page; later pages do not repeat them."""
    if query.position is not None:
        return ()
    if not page.truncated:
        return _counted(query.entity, page.facts)
    degrees = await graph.degrees(
        [query.entity], direction=query.direction, relations=None if query.relation is None else [query.relation]
    )
    counts = degrees[query.entity].relations
    return counts if query.direction == "in" else [*counts, *await _value_counts(graph, query)]


async def _value_counts(graph: KGAdapter, query: _Query) -> Sequence[RelationCount]:
    wanted = None if query.relation is None else frozenset({query.relation})
    pages = await graph.features(FeatureRequest((query.entity,), wanted, MOST_VALUES))
    left_out = graph.vocabulary.texts if wanted is None else frozenset[Iri]()
    values = pages.get(query.entity, NO_FEATURES).features
    found = Counter(each.relation for each in values if each.relation not in left_out)
    return [RelationCount(relation, "out", Count(n)) for relation, n in found.items()]


def _counted(entity: Node, facts: Sequence[Fact]) -> list[RelationCount]:
    found = Counter((fact.head != entity, fact.relation) for fact in facts)
    return [RelationCount(relation, "in" if inward else "out", Count(n)) for (inward, relation), n in found.items()]


def _answer(query: _Query, page: NeighborPage, table: RelationTable, names: Names) -> Answer:
    grouped = sorted(page.facts, key=lambda fact: (fact.head != query.entity, fact.relation))
    outgoing, incoming = by_direction(table.counts)
    result = NeighborsResult(
        status="truncated" if page.truncated else "ok",
        summary=_summary(query, page, table.relations, names) + _elsewhere(query, names),
        triples=[
            [names.entity_id(each.head), names.relation_id(each.relation), names.entity_id(each.tail)]
            for each in grouped
            if isinstance(each, Triple)
        ],
        values=[
            [names.entity_id(each.head), names.relation_id(each.relation), names.value(each.tail)]
            for each in grouped
            if isinstance(each, Attribute)
        ],
        labels=names.entity_labels(dict.fromkeys(_ends(grouped))),
        relations=names.relation_labels(dict.fromkeys(fact.relation for fact in grouped)),
        outgoing=names.counts(outgoing),
        incoming=names.counts(incoming),
        total=page.total.value,
        cursor=page.cursor,
    )
    return Answer(result, (*table.lines, *map(names.fact, grouped)))


def _ends(facts: Sequence[Fact]) -> Iterator[Node]:
    for fact in facts:
        yield fact.head
        if isinstance(fact, Triple):
            yield fact.tail


def _summary(query: _Query, page: NeighborPage, relations: int, names: Names) -> str:
    noun = "triple" if len(page.triples) == len(page.facts) else "fact"
    noun += "" if page.total.value == 1 else "s"
    subject = f"{query.said(names)}{names.entity(query.entity)} has {page.total} {ADJECTIVES[query.direction]} {noun}"
    if query.relation is not None:
        subject += f" with {names.relation(query.relation)}"
    elif relations > 1:
        subject += f" over {relations:,} relations"
    if page.cursor is not None:
        return f'{subject}; {len(page.facts)} here, sampled across relations. Next page: cursor="{page.cursor}".'
    if query.position is not None:
        return f"{subject}; the last {len(page.facts)} here."
    return f"{subject}, all here."


def _elsewhere(query: _Query, names: Names) -> str:
    """Return a sentence on the facts that are stored over the inverse relation only; nothing where there are none."""
    if query.walked is None or query.walked.inverse is None or query.position is not None:
        return ""
    back = OPPOSITE[query.direction]
    inverse = names.relation_id(query.walked.inverse)
    return f'{query.walked.said(names)} The others: relation="{inverse}", direction="{back}".'


async def _nothing(graph: KGAdapter, query: _Query, max_tokens: int) -> Answer:
    degree = (await graph.degrees([query.entity]))[query.entity]
    counts = degree.relations
    names = await names_of(
        graph, [query.entity, *query.read, *(each.relation for each in counts)], max_tokens=max_tokens
    )
    table = relation_table(names, counts, min(800, max_tokens // 3))
    outgoing, incoming = by_direction(table.counts)
    missing = None
    if query.relation is not None:
        missing = await absence(graph, query.entity, query.relation, query.direction)
    result = _no_triples(
        _absence(query, degree, names, "" if missing is None else f"; {missing.clause}"),
        "unknown" if missing is None else missing.knowledge,
    ).model_copy(
        update={
            "labels": names.entity_labels([query.entity]),
            "relations": names.relation_labels([each.relation for each in table.counts]),
            "outgoing": names.counts(outgoing),
            "incoming": names.counts(incoming),
        }
    )
    return Answer(result, table.lines)


def _no_triples(summary: str, knowledge: Knowledge = "unknown") -> NeighborsResult:
    return NeighborsResult(
        status="empty",
        knowledge=knowledge,
        summary=summary,
        triples=[],
        labels={},
        relations={},
        outgoing={},
        incoming={},
        total=0,
    )


def _absence(query: _Query, degree: Degree, names: Names, coverage: str) -> str:
    subject = (
        f"{query.said(names)}{names.entity(query.entity)} is known, but has no {ADJECTIVES[query.direction]} triples"
    )
    if query.relation is not None:
        side = "" if query.direction == "out" else f"{ADJECTIVES[query.direction]} "
        lacks = f"has no {side}{names.relation(query.relation)} here{coverage}"
        subject = f"{query.said(names)}{names.entity(query.entity)} {lacks}"
    if not degree.relations:
        return f"{subject}. It has no neighbours at all; Feature shows its values."
    elsewhere = [each for each in degree.relations if each.relation == query.relation]
    if elsewhere:
        other = elsewhere[0].direction
        return f'{subject}. It has {elsewhere[0].count} in the other direction: direction="{other}".'
    return f"{subject}. It has these:"
