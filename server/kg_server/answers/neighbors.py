"""GetNeighbor: the facts around an entity."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from kg_adapters.models import NO_FEATURES, Count, Degree, Direction, EdgeDirection, NeighborPage, RelationCount
from kg_adapters.protocol import KGAdapter
from kg_adapters.requests import FeatureRequest, NeighborRequest
from kg_adapters.terms import Attribute, Fact, Iri, Node, Term, Triple
from kg_boundary.shown import in_quotes
from kg_server.answers.columns import heads_by_owner
from kg_server.answers.coverage import OPPOSITE, BothWays, absence, both_ways, more_by_inverses, without_twins
from kg_server.answers.details import FactDetails
from kg_server.answers.intermediates import CLOSED, when, with_intermediates
from kg_server.answers.results import (
    Answer,
    AnswerRows,
    Knowledge,
    Line,
    NeighborsResult,
    Note,
    Over,
    Piece,
    fitted,
    fitting,
    terms_of_lines,
    token_count,
)
from kg_server.names import MAX_LABEL, Names, names_of, terms_of
from kg_server.naming.refusals import NoSuchRelation, entity_of, require_entity, unknown_entity
from kg_server.naming.relations import Chosen, no_such_relation, relation_of, without_dash
from kg_server.naming.valued import ValueText, said_of_value

ADJECTIVES: Final = {"out": "outgoing", "in": "incoming", "both": "neighbouring"}
MOST_INCOMING: Final = 6
"""How many of the relations that lead to an entity are counted where they are not shown."""
MOST_VALUES: Final = 500
"""Of how many values of a large entity it is counted which relation they have."""
TABLE_SHARE: Final = 0.85
"""What part of an answer the table of relations may take."""
_SUMMARY_TOKENS: Final = 200
_LINE_TOKENS: Final = 30


@dataclass(frozen=True, slots=True)
class RelationTable:
    """The relations that an answer counts, the lines that show them, how many there are in all, and what they cost."""

    counts: tuple[RelationCount, ...]
    lines: tuple[str, ...]
    relations: int
    tokens: int = 0


def relation_table(names: Names, counts: Sequence[RelationCount], max_tokens: int) -> RelationTable:
    """Return one line for each direction that names every relation with its count, the most frequent first.

    Relations of one name are counted together. What does not fit into the budget is summed up at the end of its line.
    """
    directions: Sequence[EdgeDirection] = list(dict.fromkeys(each.direction for each in counts))
    lines: list[str] = []
    data: list[str] = []
    shown: list[RelationCount] = []
    for direction in directions:
        groups = _by_name(names, [each for each in counts if each.direction == direction], ";")
        parts = [_together(name, same) for name, same in groups]
        # Programs read each relation of a name by its id, which may take more than the name.
        ids = [names.counts(same, direction) for _, same in groups]
        longer = (max(part, str(counted), key=len) for part, counted in zip(parts, ids, strict=True))
        fits = fitting(longer, max_tokens // len(directions) - _LINE_TOKENS)
        data.extend(map(str, ids[:fits]))
        if rest := list(chain.from_iterable(same for _, same in groups[fits:])):
            triples = Count.sum(each.count for each in rest)
            parts[fits:] = [f"and {len(rest)} more with {triples} triples, which Degree lists"]
        lines.append(f"{ADJECTIVES[direction]} relations: {'; '.join(parts)}")
        shown.extend(chain.from_iterable(same for _, same in groups[:fits]))
    tokens = max(token_count("\n".join(lines)), token_count("".join(data)))
    return RelationTable(tuple(shown), tuple(lines), len(counts), tokens)


def _by_name(names: Names, counts: Sequence[RelationCount], marks: str) -> list[tuple[str, list[RelationCount]]]:
    """Return the relations of one direction by their names, the most frequent name first."""
    groups: dict[str, list[RelationCount]] = {}
    for each in _most_frequent(counts):
        groups.setdefault(names.called(each.relation, marks), []).append(each)
    return sorted(groups.items(), key=lambda group: -sum(each.count.value for each in group[1]))


def _together(name: str, same: Sequence[RelationCount]) -> str:
    """Return a name with how many facts its relations have."""
    return f"{name} {Count.sum(each.count for each in same)}"


def _most_frequent(counts: Sequence[RelationCount]) -> list[RelationCount]:
    return sorted(counts, key=lambda each: (-each.count.value, each.relation))


@dataclass(frozen=True, slots=True)
class NeighborQuery:
    """One call of GetNeighbor.

    Args:
        asked: The entity as it was given.
        entity: The entity.
        chosen: The relation, or several of one name, where one is named.
        direction: Which way its facts lead.
        limit: The most facts of a page.
        cursor: Where the page begins.
        both: What is stated over the relation or its inverse, where it has one.
        owners: Of which classes those are that one relation leads to the entity from, where they are of several.
    """

    asked: str
    entity: Node
    chosen: Chosen | None
    direction: Direction
    limit: int
    cursor: str | None
    both: BothWays | None
    owners: Note = ()

    @property
    def relations(self) -> Sequence[Iri] | None:
        """The relations, where any are named."""
        return None if self.chosen is None else self.chosen.relations

    @property
    def terms(self) -> Sequence[Node]:
        """What the summary names."""
        inverses = () if self.both is None else self.both.inverses
        asked = () if self.chosen is None else self.chosen.terms
        return (self.entity, *asked, *inverses, *terms_of_lines([Line(self.owners)]))

    def has(self, names: Names) -> str:
        """Return how the relation was read, unless that is obvious, and the entity."""
        return f"{'' if self.chosen is None else self.chosen.said(names)}{names.entity(self.entity)}"

    def is_answered_by(self, page: NeighborPage) -> bool:
        """Return whether a page leads to one thing over the relation or its namesakes, which the summary states."""
        is_whole = page.total.value == len(page.facts) and not page.truncated
        return self.relations is not None and is_whole and len({self.far(fact) for fact in page.facts}) == 1

    def far(self, fact: Fact) -> tuple[Term, bool]:
        """Return the other end of a fact, and whether the fact leads to the entity."""
        return (fact.tail, False) if fact.head == self.entity else (fact.head, True)

    def over(self, facts: Sequence[Fact]) -> Sequence[Iri]:
        """Return the relations of some facts: those that are asked for in their order, then inverses of them."""
        found = {fact.relation for fact in facts}
        return [
            *(each for each in self.relations or () if each in found),
            *sorted(found.difference(self.relations or ())),
        ]


async def neighborhood(
    graph: KGAdapter,
    *,
    entity: str,
    relation: str | None,
    direction: Direction,
    limit: int,
    cursor: str | None,
    max_tokens: int,
    details_s: float | None = None,
) -> Answer:
    """Answer GetNeighbor; with the details of the facts where there are `details_s` seconds to read them.

    Raises:
        InvalidRequest: An id or the cursor is not one.
        UnknownEntity: The graph does not mention the entity.
        UnknownRelation: No triple has the relation.
    """
    node = await entity_of(graph, entity)
    chosen, both = None, None
    owners: Note = ()
    if relation is not None:
        relation, direction = without_dash(relation, direction)
        try:
            chosen = await relation_of(graph, relation, around=[node], trusting=graph.remote)
        except NoSuchRelation as error:
            await require_entity(graph, entity)
            return Answer(NeighborsResult(status="empty", summary=await no_such_relation(graph, node, error)))
        both = await both_ways(graph, node, chosen.relations, direction, chosen.behind)
        owners = () if direction == "out" else await heads_by_owner(graph, node, chosen.relations)
    query = NeighborQuery(entity, node, chosen, direction, limit, cursor, both, owners)
    page = await _page(graph, query)
    if page.facts or cursor is not None or not page.total.exact:
        details = None if details_s is None else FactDetails(graph, query.entity, details_s)
        return await _fitted(graph, query, page, max_tokens, details)
    if relation is not None and graph.remote:
        await relation_of(graph, relation, around=[node])
    return await _nothing(graph, query, max_tokens)


async def value_bearers(
    graph: KGAdapter, value: ValueText, *, relation: str | None, limit: int, max_tokens: int
) -> Answer:
    """Answer GetNeighbor about a text that is a value: who has it, and how to ask what these have over a relation."""
    facts = [fact for each in value.readings for fact in each.facts][:limit]
    total = Count.sum(each.use.count for each in value.readings)
    names = await names_of(graph, terms_of(facts), max_tokens=max_tokens)

    def build(shown: int) -> Answer:
        result = NeighborsResult(
            status="ok" if total == Count(shown) else "truncated",
            knowledge="stated",
            summary=f"No entity is called so. {said_of_value(value)}{value.further(relation)}",
            values=[names.row(fact) for fact in facts[:shown]],
            labels=names.entity_labels(fact.head for fact in facts[:shown]),
            relations=names.relation_labels(fact.relation for fact in facts[:shown]),
            total=total.value,
            exact=None if total.exact else False,
        )
        return Answer(result, tuple(names.fact(fact) for fact in facts[:shown]))

    return fitted(build, len(facts), max_tokens)


async def _page(graph: KGAdapter, query: NeighborQuery) -> NeighborPage:
    if query.both is not None and query.both.complete:
        return await query.both.page(query.limit, query.cursor, graph)
    wanted = None if query.relations is None else frozenset(query.relations)
    request = NeighborRequest(
        (query.entity,),
        direction=query.direction,
        relations=wanted,
        limit=query.limit,
        values=True,
        cursor=query.cursor,
    )
    page = (await graph.neighbors(request)).get(query.entity)
    if page is None:
        raise await unknown_entity(graph, query.entity, query.asked)
    return await without_twins(graph, query.entity, page) if query.direction == "both" else page


async def _fitted(
    graph: KGAdapter, query: NeighborQuery, page: NeighborPage, max_tokens: int, details: FactDetails | None
) -> Answer:
    """Return the answer that shows as much of a page as fits; a smaller page is asked for, which has its own cursor."""
    counts = await _counts(graph, query, page)
    other = await _other_way(graph, query, page)
    relations = (each.relation for each in (*counts, *(() if other is None else other.degree.relations)))
    if details is not None:
        await details.read(page.facts)
    terms = (*query.terms, *terms_of(page.facts), *relations, *(details.terms if details is not None else ()))
    named = await names_of(graph, terms, max_tokens=max_tokens)
    if details is not None:
        named = details.named(named)
    names = await with_intermediates(graph, page.facts, named, (query.entity,))
    if not page.truncated:
        answer = _answer(query, page, RelationTable(tuple(counts), (), len(counts)), names, other, details)
        if answer.tokens <= max_tokens:
            return answer
    table = relation_table(names, counts, int((max_tokens - _SUMMARY_TOKENS) * TABLE_SHARE))
    room = max_tokens - _SUMMARY_TOKENS // 2 - table.tokens
    fits = max(1, fitting(map(names.fact, page.facts), room))
    per_fact = max(1, room // fits)
    while True:
        if fits < len(page.facts):
            page = await _page(graph, replace(query, limit=fits))
            if details is not None:
                await details.read(page.facts)
        answer = _answer(query, page, table, names, other, details)
        if fits <= 1 or answer.tokens <= max_tokens:
            return answer
        fits = max(1, fits - max(1, (answer.tokens - max_tokens) // per_fact))


async def _counts(graph: KGAdapter, query: NeighborQuery, page: NeighborPage) -> Sequence[RelationCount]:
    """Return the count of every relation on the first page; later pages do not repeat them."""
    if query.cursor is not None:
        return ()
    if not page.truncated:
        found = Counter((fact.head != query.entity, fact.relation) for fact in page.facts)
        return [RelationCount(relation, "in" if inward else "out", Count(n)) for (inward, relation), n in found.items()]
    if query.both is not None and query.both.complete:
        return query.both.degree.relations
    wanted = query.relations
    degrees = await graph.degrees([query.entity], direction=query.direction, relations=wanted)
    counts = degrees[query.entity].relations
    if query.direction == "in":
        return counts
    request = FeatureRequest((query.entity,), None if wanted is None else frozenset(wanted), MOST_VALUES)
    values = (await graph.features(request)).get(query.entity, NO_FEATURES)
    whole = values.total.at_most(len(values.features))
    left_out = graph.vocabulary.texts if wanted is None else frozenset[Iri]()
    many = Counter(each.relation for each in values.features if each.relation not in left_out)
    return [*counts, *(RelationCount(relation, "out", Count(n, exact=whole)) for relation, n in many.items())]


@dataclass(frozen=True, slots=True)
class _OtherWay:
    """What leads the other way where all facts of one direction are shown.

    Args:
        degree: How many facts there are, by relation.
        inverses: The relations that are shown, with their inverses and how many facts only these hold.
    """

    degree: Degree
    inverses: Sequence[tuple[Iri, Iri, Count]]


async def _other_way(graph: KGAdapter, query: NeighborQuery, page: NeighborPage) -> _OtherWay | None:
    """Count what leads the other way; a remote graph, where a hub takes long, is not asked."""
    if graph.remote or query.direction == "both" or query.relations is not None or page.truncated:
        return None
    degree = (await graph.degrees([query.entity], direction=OPPOSITE[query.direction]))[query.entity]
    return _OtherWay(degree, await more_by_inverses(graph, page.facts, degree.relations))


def _answer(
    query: NeighborQuery,
    page: NeighborPage,
    table: RelationTable,
    names: Names,
    other: _OtherWay | None,
    details: FactDetails | None,
) -> Answer:
    rows = AnswerRows(list(_lines(query, page, names)), names)
    noted = "" if details is None else details.note(page.facts)
    closed = f" {CLOSED}" if names.closed else ""
    result = NeighborsResult(
        status="truncated" if page.truncated else "ok",
        knowledge="stated" if page.facts else "unknown",
        summary=_summary(query, page, table, names, other) + closed + noted,
        triples=rows.facts(Triple),
        values=rows.facts(Attribute),
        outgoing=names.counts(table.counts, "out"),
        incoming=names.counts(table.counts, "in"),
        total=page.total.value,
        exact=None if page.total.exact and all(each.count.exact for each in table.counts) else False,
        cursor=page.cursor,
        details=None if details is None else details.rows(page.facts, names),
        **rows.fields(),
    )
    texts = rows.texts()
    if details is not None:
        below = ([text for fact in line.facts for text in details.lines(fact, names)] for line in rows)
        texts = tuple(text for line, more in zip(texts, below, strict=True) for text in (line, *more))
    if query.is_answered_by(page):
        return Answer(result, texts[1:])
    counted = table.lines if page.truncated and query.relations is None else ()
    return Answer(result, (*counted, *texts))


def _lines(query: NeighborQuery, page: NeighborPage, names: Names) -> Iterator[Line]:
    """Yield a line for each fact, below the first of each relation without it; `-` before it leads to the entity.

    What several relations of one name lead to has one line, with the first of them.
    """
    places = {relation: place for place, relation in enumerate(query.over(page.facts))}
    ends = {fact: query.far(fact) for fact in page.facts}
    facts = sorted(ends, key=lambda fact: (ends[fact][1], places[fact.relation], when(ends[fact][0], names)))
    lines: dict[tuple[Term, bool, Iri | None], list[Fact]] = {}
    for fact in facts:
        lines.setdefault((*ends[fact], fact.relation if query.relations is None else None), []).append(fact)
    groups = [(same[0].relation, same[0].head != query.entity) for same in lines.values()]
    alone = query.relations is not None and len(set(groups)) == 1
    for ((far, *_), same), group, before in zip(lines.items(), groups, [None, *groups], strict=False):
        shown: tuple[Piece, ...] = () if alone else ("  ",) if group == before else (Over(*group), " | ")
        yield Line((*shown, far), facts=tuple(same))


def _summary(
    query: NeighborQuery,
    page: NeighborPage,
    table: RelationTable,
    names: Names,
    other: _OtherWay | None,
) -> str:
    how, more = ("", "") if query.both is None else (query.both.said(names), _elsewhere(query.both, names))
    over = query.over(page.facts)
    if query.is_answered_by(page):
        said = "" if query.chosen is None else query.chosen.said(names)
        first = next(fact for fact in page.facts if fact.relation == over[0])
        also = ", ".join(names.relation_id(each) for each in over[1:])
        return f"{said}{names.fact(first)}{f', also over {also}' if also else ''}{how}.{more}"
    adjective, shown, sampled = ADJECTIVES[query.direction], len(page.facts), ""
    if query.chosen is not None:
        side = "" if query.direction == "out" else f" {adjective}"
        extent = (
            f"{query.has(names)} has {_extent(query, page, table, names, side)}{how}{behind_comma(query.owners, names)}"
        )
    else:
        every = Count(table.relations, exact=page.total.exact).of("relation")
        relations = f" over {every}" if page.truncated and table.relations > 1 else ""
        extent = f"{query.has(names)} has {page.total.of(f'{adjective} fact')}{relations}"
        sampled = ", sampled across relations"
    if page.cursor is not None:
        return f'{extent}; {shown} here{sampled}. Next page: cursor="{page.cursor}".{more}'
    if not page.total.exact and page.truncated:
        return f"{extent}; {shown} here, and the graph sends no more.{more}"
    if query.cursor is not None:
        return f"{extent}; the last {shown} here.{more}"
    return f"{extent}:{more}" if query.relations is not None else f"{extent}, all here{_others(query, other, names)}."


def behind_comma(owners: Note, names: Names) -> str:
    """Return behind a comma of which classes something is; nothing where that is not known."""
    return f", {Line(owners).shown(names)}" if owners else ""


def _extent(query: NeighborQuery, page: NeighborPage, table: RelationTable, names: Names, side: str) -> str:
    """Return how much there is over a relation, or over each of several relations of one name."""
    assert query.chosen is not None  # noqa: S101 - a relation is named
    asked = [each for each in query.chosen.relations if each in {count.relation for count in table.counts}]
    asked = asked or [each for each in query.over(page.facts) if each in query.chosen.relations]
    if len(asked) < 2 or query.chosen.name is None:
        relation = asked[0] if asked else query.chosen.relation
        return f"{page.total}{side} {names.relation(relation)}"
    counts = {one: Count.sum(each.count for each in table.counts if each.relation == one) for one in asked}
    parts = (f"{names.relation_id(each)}{f' {count}' if count.value else ''}" for each, count in counts.items())
    ends = len({query.far(fact) for fact in page.facts})
    to = "" if page.truncated or ends == page.total.value else f" to {ends:,} things"
    if query.chosen.wider:
        return f"{page.total}{side} {query.chosen.shown(names)}{to}"
    called = in_quotes(query.chosen.name, MAX_LABEL)
    return f"{page.total}{side} facts over {len(asked)} relations called {called} ({', '.join(parts)}){to}"


def _others(query: NeighborQuery, other: _OtherWay | None, names: Names) -> str:
    """Return half a sentence on what leads the other way where all of one direction is shown, and is not in it."""
    more = "" if other is None else _by_inverses(query, other, names)
    if query.direction != "out":
        return more
    if other is None or not other.degree.relations:
        none = other is not None and other.degree.is_none
        return "; nothing leads to it" if none else '; direction="in" shows what leads to it'
    groups = _by_name(names, other.degree.relations, ",")
    parts = [_together(name, same) for name, same in groups[:MOST_INCOMING]]
    left = sum(len(same) for _, same in groups[MOST_INCOMING:])
    rest = f" and {left} more relation{'' if left == 1 else 's'}" if left else ""
    every = Count.sum(each.count for each in other.degree.relations)
    return f'; direction="in" shows {every} more: {", ".join(parts)}{rest}{more}'


def _by_inverses(query: NeighborQuery, other: _OtherWay, names: Names) -> str:
    """Return half a sentence on facts that are stored over the inverse of a relation that is shown, and only there."""
    mark, back = ("", "-") if query.direction == "out" else ("-", "")
    parts = [
        f"{count} of {mark}{names.relation(relation)} as {back}{names.relation(inverse)}"
        for relation, inverse, count in other.inverses[:MOST_INCOMING]
    ]
    return f". Stored the other way only: {', '.join(parts)}" if parts else ""


def _elsewhere(both: BothWays, names: Names) -> str:
    """Return a sentence on the inverse relation of a hub, which is not walked with it; nothing where it was."""
    if both.complete:
        return ""
    return (
        f" More may be stored the other way, as {' and '.join(map(names.relation, both.inverses))}: "
        f'direction="{OPPOSITE[both.direction]}".'
    )


async def _nothing(graph: KGAdapter, query: NeighborQuery, max_tokens: int) -> Answer:
    """Return the answer about an entity that has nothing of what was asked for: what that means, and what it has."""
    degree = (await graph.degrees([query.entity]))[query.entity]
    terms = (*query.terms, *(each.relation for each in degree.relations))
    names = await names_of(graph, terms, max_tokens=max_tokens)
    table = relation_table(names, degree.relations, min(800, max_tokens // 3))
    adjective = ADJECTIVES[query.direction]
    knowledge: Knowledge = "unknown"
    if query.chosen is None:
        lacks = f"{query.has(names)} is known, but has no {adjective} triples"
    else:
        missing = await absence(graph, query.entity, query.chosen.relations, query.direction)
        knowledge, side = missing.knowledge, "" if query.direction == "out" else f"{adjective} "
        lacks = f"{query.has(names)} has no {side}{query.chosen.shown(names)} here; {missing.clause}"
    turned = next((each for each in degree.relations if each.relation in (query.relations or ())), None)
    has = "It has these:" if degree.relations else "How many neighbours it has is not known."
    if degree.is_none:
        has = "It has no neighbours at all; Feature shows its values."
    if turned is not None:
        has = f'It has {turned.count} in the other direction: direction="{turned.direction}".'
    result = NeighborsResult(
        status="empty",
        knowledge=knowledge,
        summary=f"{lacks}. {has}",
        labels=names.entity_labels([query.entity]),
        relations=names.relation_labels([each.relation for each in table.counts]),
        outgoing=names.counts(table.counts, "out"),
        incoming=names.counts(table.counts, "in"),
    )
    return Answer(result, () if turned is not None else table.lines)
