"""GetNeighbor and Degree: the neighbours of an entity, and its relations with their counts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.models import NO_FEATURES, Count, Degree, Direction, NeighborPage, RelationCount
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple
from kg_server.answers.coverage import OPPOSITE, BothWays, absence, both_ways, degree_both_ways, thinness, without_twins
from kg_server.answers.intermediates import Opened, ends_of, with_intermediates
from kg_server.answers.results import Answer, DegreeResult, Knowledge, NeighborsResult, fitted, fitting, token_count
from kg_server.names import Names, names_of, terms_of
from kg_server.naming.refusals import entity_of, require_entity, unknown_entity
from kg_server.naming.relations import Chosen, NoSuchRelation, no_such_relation, relation_of

ADJECTIVES: Final = {"out": "outgoing", "in": "incoming", "both": "neighbouring"}

TABLE_LINE_TOKENS: Final = 30


@dataclass(frozen=True, slots=True)
class RelationTable:
    """The relations that an answer counts, and the lines that show them."""

    counts: tuple[RelationCount, ...]
    lines: tuple[str, ...]
    relations: int


def relation_table(names: Names, counts: Sequence[RelationCount], max_tokens: int) -> RelationTable:
    """Return a line a direction that names every relation with its count, the most frequent first.

    What does not fit into the budget is summed up at the end of its line. A single relation needs no table.
    """
    if len(counts) < 2:
        return RelationTable(tuple(counts), (), len(counts))
    directions = dict.fromkeys(each.direction for each in counts)
    share = max_tokens // len(directions)
    lines: list[str] = []
    shown: list[RelationCount] = []
    for direction in directions:
        ordered = sorted(
            (each for each in counts if each.direction == direction),
            key=lambda each: (-each.count.value, each.relation),
        )
        parts = [f"{names.relation(each.relation, ';')} {each.count};" for each in ordered]
        fits = fitting(parts, share - TABLE_LINE_TOKENS)
        lines.append(_table_line(ADJECTIVES[direction], parts[:fits], ordered[fits:]))
        shown.extend(ordered[:fits])
    return RelationTable(tuple(shown), tuple(lines), len(counts))


def by_direction(counts: Sequence[RelationCount]) -> tuple[list[RelationCount], list[RelationCount]]:
    """Return the outgoing and the incoming counts."""
    return [each for each in counts if each.direction == "out"], [each for each in counts if each.direction == "in"]


def _table_line(adjective: str, parts: Sequence[str], rest: Sequence[RelationCount]) -> str:
    line = f"{adjective} relations: {' '.join(parts)}".rstrip(";")
    if not rest:
        return line
    triples = Count(sum(each.count.value for each in rest))
    return f"{line}; and {len(rest)} more with {triples} triples, which Degree lists"


async def degree_of(
    graph: KGAdapter, *, entity: str, relation: str | None, direction: Direction, max_tokens: int
) -> Answer:
    """Answer Degree.

    Raises:
        InvalidRequest: An id is not one.
        UnknownEntity: The graph does not mention the entity.
        UnknownRelation: No triple has the relation.
    """
    node = await require_entity(graph, entity)
    try:
        chosen = None if relation is None else await relation_of(graph, relation, around=[node], direction=direction)
    except NoSuchRelation as error:
        nothing = Degree(Count(0), ())
        return Answer(_degree(nothing, (), await no_such_relation(graph, node, error), Names(graph.prefixes, {})), ())
    degree, both = await _counted_degree(graph, node, chosen, direction)
    read = () if chosen is None else chosen.terms
    names = await names_of(graph, (node, *(each.relation for each in degree.relations), *read))
    ordered = sorted(degree.relations, key=lambda each: (each.direction == "in", -each.count.value, each.relation))
    lines = [f"{each.direction} | {names.relation(each.relation)} | {each.count}" for each in ordered]
    how = "" if both is None else both.said(names)
    note, knowledge = "", None
    if chosen is not None and ordered:
        outgoing = all(each.direction == "out" for each in ordered)
        note = await thinness(graph, [node], chosen.relation) if outgoing else ""
    elif chosen is not None:
        missing = await absence(graph, node, chosen.relation, direction)
        note, knowledge = f" {missing.clause[0].upper()}{missing.clause[1:]}.", missing.knowledge

    def build(shown: int) -> Answer:
        summary = _degree_summary(node, chosen, direction, degree, len(ordered) - shown, names, how)
        result = _degree(degree, ordered[:shown], f"{summary}{note}", names, knowledge)
        return Answer(result, tuple(lines[:shown]))

    return fitted(build, len(lines), max_tokens)


async def _counted_degree(
    graph: KGAdapter, node: Node, chosen: Chosen | None, direction: Direction
) -> tuple[Degree, BothWays | None]:
    """Count neighbours over all relations, or over one with what its inverse says of it."""
    if chosen is None:
        return await _with_itself(graph, node, (await graph.degrees([node], direction=direction))[node]), None
    degree, both = await degree_both_ways(graph, node, chosen.relation, direction)
    return (degree, both) if both is not None else (await _with_itself(graph, node, degree), None)


async def _with_itself(graph: KGAdapter, node: Node, degree: Degree) -> Degree:
    """Return a degree that counts an entity with an edge to itself as its own neighbour, as sets do."""
    loops = {Triple(node, each.relation, node) for each in degree.relations}
    if not loops or loops.isdisjoint(await graph.contains(loops)):
        return degree
    return replace(degree, neighbors=replace(degree.neighbors, value=degree.neighbors.value + 1))


def _degree(
    degree: Degree, shown: Sequence[RelationCount], summary: str, names: Names, knowledge: Knowledge | None = None
) -> DegreeResult:
    outgoing, incoming = by_direction(shown)
    result = DegreeResult(
        status="empty" if not degree.relations else "ok" if len(shown) >= len(degree.relations) else "truncated",
        summary=summary,
        neighbors=degree.neighbors.value,
        exact=degree.neighbors.exact,
        outgoing=names.counts(outgoing),
        incoming=names.counts(incoming),
        relations=names.relation_labels([each.relation for each in shown]),
    )
    return result if knowledge is None else result.model_copy(update={"knowledge": knowledge})


def _degree_summary(
    entity: Node, chosen: Chosen | None, direction: Direction, degree: Degree, hidden: int, names: Names, how: str
) -> str:
    side = "" if direction == "both" else f" {ADJECTIVES[direction]}"
    many = "relation" if len(degree.relations) == 1 else "relations"
    over = (
        f" over {names.relation(chosen.relation)}" if chosen is not None else f" over {len(degree.relations):,} {many}"
    )
    noun = "neighbour" if degree.neighbors.value == 1 else "neighbours"
    said = "" if chosen is None else chosen.said(names)
    summary = f"{said}{names.entity(entity)} has {degree.neighbors} distinct{side} {noun}{over}{how}."
    return (
        f"{summary} The {hidden:,} rarest relations are left out; name one to count it, or search Schema(about=…)."
        if hidden > 0
        else summary
    )


MOST_INCOMING: Final = 6
"""Of how many relations that lead to an entity it is said how often they do, where they are not shown."""


@dataclass(frozen=True, slots=True)
class Query:
    """One call of GetNeighbor, with terms in place of ids."""

    entity: Node
    chosen: Chosen | None
    direction: Direction
    limit: int
    position: str | None
    both: BothWays | None = None

    @property
    def relation(self) -> Iri | None:
        """The relation, where one is named."""
        return None if self.chosen is None else self.chosen.relation

    @property
    def read(self) -> Sequence[Iri]:
        """What is shown with its label of the relation that was asked for."""
        read = () if self.chosen is None else self.chosen.terms
        return read if self.both is None else (*read, self.both.inverse)

    def said(self, names: Names) -> str:
        """Return what the relation was read as; nothing where that need not be said."""
        return "" if self.chosen is None else self.chosen.said(names)


def neighbor_answer(
    query: Query,
    page: NeighborPage,
    table: RelationTable,
    opened: Opened,
    incoming: Sequence[RelationCount] | None = None,
) -> Answer:
    """Return the answer that shows a page, with what its intermediate nodes hold.

    Args:
        query: What was asked.
        page: The facts.
        table: Of which relations how many there are.
        opened: The names of all, and what intermediate nodes hold.
        incoming: How much leads to the entity, where that is known.
    """
    names = opened.names
    grouped = sorted(page.facts, key=lambda fact: (fact.head != query.entity, fact.relation))
    held = opened.held(ends_of(grouped), grouped)
    outgoing, ahead = by_direction(table.counts)
    result = NeighborsResult(
        status="truncated" if page.truncated else "ok",
        summary=_summary(query, page, table.relations, names, incoming) + opened.said,
        triples=[names.row(each) for each in grouped if isinstance(each, Triple)],
        values=[names.row(each) for each in grouped if isinstance(each, Attribute)],
        held=[names.row(each) for each in held] or None,
        labels=names.entity_labels(dict.fromkeys(ends_of((*grouped, *held)))),
        relations=names.relation_labels(dict.fromkeys(fact.relation for fact in (*grouped, *held))),
        outgoing=names.counts(outgoing),
        incoming=names.counts(ahead),
        total=page.total.value,
        cursor=page.cursor,
    )
    return Answer(result, () if _is_only(query, page) else (*table.lines, *_lines(query, grouped, names)))


def _is_only(query: Query, page: NeighborPage) -> bool:
    """Say whether a page is the only fact over a relation that was named: then the first line tells it."""
    return query.relation is not None and page.total.value == len(page.facts) == 1 and not page.truncated


def _lines(query: Query, facts: Sequence[Fact], names: Names) -> Iterator[str]:
    """Yield a line for each fact: its relation where it is another one, `-` before it where it leads to the entity."""
    groups = [(fact.relation, fact.head != query.entity) for fact in facts]
    alone = query.relation is not None and len(set(groups)) == 1
    for place, (fact, (relation, backwards)) in enumerate(zip(facts, groups, strict=True)):
        far = names.entity(fact.head) if backwards else names.term(fact.tail, relation=relation)
        repeated = place and groups[place - 1] == groups[place]
        over = "" if repeated else f"{'-' if backwards else ''}{names.relation(relation)} "
        yield far if alone else f"{over}| {far}"


def _summary(
    query: Query, page: NeighborPage, relations: int, names: Names, incoming: Sequence[RelationCount] | None
) -> str:
    said, subject = query.said(names), names.entity(query.entity)
    if query.relation is None and query.direction == "out" and not page.truncated:
        total = f"{page.total} outgoing {_noun(page)}"
        return f"{said}{subject} has {total}, all here; {_incoming(incoming, names)}."
    if _is_only(query, page):
        return f"{said}{names.fact(page.facts[0])}{_how(query, names)}.{_elsewhere(query, names)}"
    side = "" if query.direction == "out" and query.relation is not None else f" {ADJECTIVES[query.direction]}"
    if query.relation is not None:
        extent = f"{said}{subject} has {page.total}{side} {names.relation(query.relation)}{_how(query, names)}"
    else:
        over = f" over {relations:,} relations" if relations > 1 else ""
        extent = f"{said}{subject} has {page.total}{side} {_noun(page)}{over}"
    return f"{extent}{_shown(query, page)}{_elsewhere(query, names)}"


def _noun(page: NeighborPage) -> str:
    noun = "triple" if len(page.triples) == len(page.facts) else "fact"
    return noun if page.total.value == 1 else f"{noun}s"


def _shown(query: Query, page: NeighborPage) -> str:
    if page.cursor is not None:
        sampled = ", sampled across relations" if query.relation is None else ""
        return f'; {len(page.facts)} here{sampled}. Next page: cursor="{page.cursor}".'
    if query.position is not None:
        return f"; the last {len(page.facts)} here."
    return ":" if query.relation is not None else ", all here."


def _how(query: Query, names: Names) -> str:
    return "" if query.both is None else query.both.said(names)


def _incoming(counts: Sequence[RelationCount] | None, names: Names) -> str:
    """Return half a sentence on what leads to an entity, and is not shown; None where nobody asked."""
    if counts is None:
        return 'direction="in" shows what leads to it'
    if not counts:
        return "nothing leads to it"
    ordered = sorted(counts, key=lambda each: (-each.count.value, each.relation))
    parts = [f"{names.alone(each.relation, ',', 'relation')} {each.count}" for each in ordered[:MOST_INCOMING]]
    more = f" and {len(ordered) - MOST_INCOMING} more relations" if len(ordered) > MOST_INCOMING else ""
    return f'direction="in" shows {sum(each.count.value for each in counts):,} more: {", ".join(parts)}{more}'


def _elsewhere(query: Query, names: Names) -> str:
    """Return a sentence on the inverse relation of a hub, which is not walked with it; nothing where it was."""
    if query.both is None or query.both.complete:
        return ""
    inverse, back = names.relation(query.both.inverse), OPPOSITE[query.direction]
    return f' More may be stored the other way, as {inverse}: direction="{back}".'


def no_neighbors(summary: str, knowledge: Knowledge = "unknown") -> NeighborsResult:
    """Return the answer without any facts."""
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


def absence_said(query: Query, degree: Degree, names: Names, coverage: str) -> str:
    """Return the first line of an answer that finds nothing."""
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
    if len(degree.relations) == 1:
        only = degree.relations[0]
        return f"{subject}. It has {only.count} {ADJECTIVES[only.direction]} {names.relation(only.relation)}."
    return f"{subject}. It has these:"


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
        incoming = await _counts_of_incoming(graph, query)
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


async def _counts_of_incoming(graph: KGAdapter, query: Query) -> Sequence[RelationCount] | None:
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
