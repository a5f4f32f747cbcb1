"""GetNeighbor: the facts around one entity, a page at a time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kg_adapters.models import NO_FEATURES, Count, Direction, NeighborPage, RelationCount
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Fact, Iri, Node
from kg_server.budget import fitting, token_count
from kg_server.coverage import absence
from kg_server.intermediates import with_intermediates
from kg_server.inverses import both_ways, without_twins
from kg_server.names import Names, names_of, terms_of
from kg_server.neighbor_answer import Query, absence_said, neighbor_answer, no_neighbors
from kg_server.relation_counts import RelationTable, by_direction, relation_table
from kg_server.relation_resolution import Chosen, NoSuchRelation, no_such_relation, relation_of
from kg_server.resolve import entity_of, require_entity, unknown_entity
from kg_server.results import Answer

SUMMARY_TOKENS: Final = 200
TABLE_SHARE: Final = 0.85
RESERVED_TOKENS: Final = 110
MOST_VALUES: Final = 500
"""Of how many values of a large entity it is counted which relation they have."""


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
        return Answer(no_neighbors(await no_such_relation(graph, node, error)), ())
    query = await _walked(graph, Query(node, chosen, direction, limit, cursor))
    page = await _page(graph, query, entity)
    if not page.facts and query.position is None:
        if relation is not None and graph.remote:
            await relation_of(graph, relation, around=[node])
        return await _nothing(graph, query, max_tokens)
    return await _fitted(graph, query, page, entity, max_tokens)


async def _walked(graph: KGAdapter, query: Query) -> Query:
    """Return a question for one relation with what is stated over it or its inverse."""
    if query.relation is None:
        return query
    return replace(query, both=await both_ways(graph, query.entity, query.relation, query.direction))


async def _fitted(graph: KGAdapter, query: Query, page: NeighborPage, asked: str, max_tokens: int) -> Answer:
    counts = await _counts(graph, query, page)
    shown_terms = (query.entity, *query.read, *terms_of(page.facts), *(each.relation for each in counts))
    named = await names_of(graph, shown_terms, max_tokens=max_tokens)
    opened = await with_intermediates(graph, page.facts, named, (query.entity,))
    if not page.truncated:
        incoming = await _incoming(graph, query)
        opened = replace(opened, names=await _named(graph, opened.names, incoming or ()))
        answer = neighbor_answer(query, page, RelationTable(tuple(counts), (), len(counts)), opened, incoming)
        if answer.tokens <= max_tokens:
            return answer
    names = opened.names
    table = relation_table(names, counts, int((max_tokens - SUMMARY_TOKENS) * TABLE_SHARE))
    room = max_tokens - RESERVED_TOKENS - token_count("\n".join(table.lines)) - token_count(names.entity(query.entity))
    fits = max(1, fitting([names.fact(fact) for fact in page.facts], room))
    while True:
        if fits < len(page.facts):
            page = await _page(graph, replace(query, limit=fits), asked)
        answer = neighbor_answer(query, page, table, opened)
        if fits == 1 or answer.tokens <= max_tokens:
            return answer
        fits = max(1, min(fits - 1, fits * max_tokens // answer.tokens))


async def _chosen(graph: KGAdapter, node: Node, relation: str | None, direction: Direction) -> Chosen | None:
    if relation is None:
        return None
    return await relation_of(graph, relation, around=[node], direction=direction, trusting=graph.remote)


async def _page(graph: KGAdapter, query: Query, asked: str) -> NeighborPage:
    if query.both is not None and query.both.complete:
        return query.both.page(query.limit, query.position, graph)
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
    page = pages[query.entity]
    return await without_twins(graph, query.entity, page) if query.direction == "both" else page


async def _counts(graph: KGAdapter, query: Query, page: NeighborPage) -> Sequence[RelationCount]:
    """Return the count of every relation on the first page; later pages do not repeat them."""
    if query.position is not None:
        return ()
    if not page.truncated:
        return _counted(query.entity, page.facts)
    if query.both is not None and query.both.complete:
        return query.both.degree.relations
    degrees = await graph.degrees(
        [query.entity], direction=query.direction, relations=None if query.relation is None else [query.relation]
    )
    counts = degrees[query.entity].relations
    return counts if query.direction == "in" else [*counts, *await _value_counts(graph, query)]


async def _incoming(graph: KGAdapter, query: Query) -> Sequence[RelationCount] | None:
    """Count what leads to an entity whose own facts are shown; a remote graph, where a hub takes long, is not asked."""
    if graph.remote or query.direction != "out" or query.relation is not None:
        return None
    return (await graph.degrees([query.entity], direction="in"))[query.entity].relations


async def _named(graph: KGAdapter, names: Names, counts: Sequence[RelationCount]) -> Names:
    """Return names with those of the relations that are counted."""
    missing = [each.relation for each in counts if each.relation not in names.labels]
    return replace(names, labels={**names.labels, **await graph.labels(missing)}) if missing else names


async def _value_counts(graph: KGAdapter, query: Query) -> Sequence[RelationCount]:
    wanted = None if query.relation is None else frozenset({query.relation})
    pages = await graph.features(FeatureRequest((query.entity,), wanted, MOST_VALUES))
    left_out = graph.vocabulary.texts if wanted is None else frozenset[Iri]()
    values = pages.get(query.entity, NO_FEATURES).features
    found = Counter(each.relation for each in values if each.relation not in left_out)
    return [RelationCount(relation, "out", Count(n)) for relation, n in found.items()]


def _counted(entity: Node, facts: Sequence[Fact]) -> list[RelationCount]:
    found = Counter((fact.head != entity, fact.relation) for fact in facts)
    return [RelationCount(relation, "in" if inward else "out", Count(n)) for (inward, relation), n in found.items()]


async def _nothing(graph: KGAdapter, query: Query, max_tokens: int) -> Answer:
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
    result = no_neighbors(
        absence_said(query, degree, names, "" if missing is None else f"; {missing.clause}"),
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
