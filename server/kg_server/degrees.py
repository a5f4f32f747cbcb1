"""Degree: the relations of an entity with their counts, as an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.models import Count, Degree, Direction, RelationCount
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node, Triple
from kg_server.budget import fitting
from kg_server.coverage import absence, thinness
from kg_server.inverses import BothWays, degree_both_ways
from kg_server.names import Names, names_of
from kg_server.relation_resolution import Chosen, NoSuchRelation, no_such_relation, relation_of
from kg_server.resolve import require_entity
from kg_server.results import Answer, DegreeResult, Knowledge, fitted

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
    degree, both = await _counted(graph, node, chosen, direction)
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


async def _counted(
    graph: KGAdapter, node: Node, chosen: Chosen | None, direction: Direction
) -> tuple[Degree, BothWays | None]:
    """Count neighbours over all relations, or over one with what its inverse says of it."""
    if chosen is None:
        return await _with_itself(graph, node, (await graph.degrees([node], direction=direction))[node]), None
    degree, both = await degree_both_ways(graph, node, chosen.relation, direction)
    return (degree, both) if both is not None else (await _with_itself(graph, node, degree), None)


async def _with_itself(graph: KGAdapter, node: Node, degree: Degree) -> Degree:
    """Return a degree in which an entity that an edge leads back to is a neighbour of its own, as it is in a set."""
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
