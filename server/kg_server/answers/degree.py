"""Degree: the number of neighbours of an entity, and of its relations."""

from collections.abc import Sequence
from dataclasses import replace

from kg_adapters.models import Count, Degree, Direction, RelationCount
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node, Triple
from kg_server.answers.columns import heads_by_owner
from kg_server.answers.coverage import BothWays, InverseOf, absence, both_ways, thinness, values_beside
from kg_server.answers.neighbors import ADJECTIVES, behind_comma
from kg_server.answers.results import (
    Answer,
    AnswerRows,
    DegreeResult,
    Knowledge,
    Line,
    Over,
    fitted_rows,
    in_columns,
    terms_of_lines,
)
from kg_server.names import Names, names_of
from kg_server.naming.refusals import NoSuchRelation, require_entity
from kg_server.naming.relations import Chosen, no_such_relation, relation_of, without_dash


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
    if relation is not None:
        relation, direction = without_dash(relation, direction)
    try:
        chosen = None if relation is None else await relation_of(graph, relation, around=[node])
    except NoSuchRelation as error:
        return Answer(DegreeResult(status="empty", summary=await no_such_relation(graph, node, error)))
    degree, both = await _counted_degree(graph, node, chosen, direction)
    counts = sorted(degree.relations, key=lambda each: (each.direction == "in", -each.count.value, each.relation))
    read = () if chosen is None else chosen.terms
    owners = () if chosen is None or direction == "out" else await heads_by_owner(graph, node, chosen.relations)
    names = await names_of(graph, (node, *(each.relation for each in counts), *read, *terms_of_lines([Line(owners)])))
    said = "" if both is None else both.said(names)
    note = f"{said}{behind_comma(owners, names)}.{_overlaps(counts, (await graph.profile()).inverse_of, names)}"
    knowledge: Knowledge = "stated" if counts else "unknown"
    if chosen is not None and degree.is_none:
        missing = await absence(graph, node, chosen.relations, direction)
        note, knowledge = f"{note}{_sentence(missing.clause)}", missing.knowledge
    elif chosen is not None and all(each.direction == "out" for each in counts):
        note += _sentence(await thinness(graph, [node], chosen.relations))
    if chosen is not None and not degree.is_none and direction != "in":
        note += _sentence(await _values_too(graph, node, chosen))
    lines = [Line(in_columns((each.direction, Over(each.relation), each.count))) for each in counts]

    def build(rows: AnswerRows[Line]) -> Answer:
        here, hidden = counts[: len(rows)], len(counts) - len(rows)
        cut = f" The {hidden:,} rarest relations are left out; name one to count it, or search Schema(about=…)."
        result = DegreeResult(
            status="ok" if counts and not hidden else "empty" if degree.is_none else "truncated",
            knowledge=knowledge,
            summary=f"{_degree_summary(node, chosen, direction, degree, names)}{note}{cut if hidden else ''}",
            neighbors=degree.neighbors.value,
            exact=degree.exact,
            outgoing=names.counts(here, "out"),
            incoming=names.counts(here, "in"),
            relations=rows.fields()["relations"],
        )
        return Answer(result, rows.texts())

    return fitted_rows(AnswerRows(lines, names), build, max_tokens)


def _overlaps(counts: Sequence[RelationCount], inverse_of: InverseOf, names: Names) -> str:
    """Return a sentence on the pairs of lines that count some neighbours twice, over a relation and its inverse."""
    behind = {each.relation for each in counts if each.direction == "in"}
    pairs = [(each.relation, inverse_of(each.relation)) for each in counts if each.direction == "out"]
    both = [f"{names.relation(ahead)} out and {names.relation(back)} in" for ahead, back in pairs if back in behind]
    return f" Lines that overlap, as inverses: {', '.join(both)}." if both else ""


def _sentence(clause: str) -> str:
    return f" {clause[0].upper()}{clause[1:]}." if clause else ""


async def _values_too(graph: KGAdapter, node: Node, chosen: Chosen) -> str:
    """Return half a sentence on the values that an entity has over relations that lead to both; often nothing."""
    features = {each.iri for each in (await graph.schema()).features}
    return await values_beside(graph, node, chosen.relations) if features.intersection(chosen.relations) else ""


async def _counted_degree(
    graph: KGAdapter, node: Node, chosen: Chosen | None, direction: Direction
) -> tuple[Degree, BothWays | None]:
    """Count distinct neighbours, over one relation also those that are stored with its inverse.

    Where these are more than are compared, the count is of those that are stored as asked for, and a lower bound.
    """
    both = None if chosen is None else await both_ways(graph, node, chosen.relations, direction, chosen.behind)
    if both is not None and both.complete:
        return both.degree, both
    relations = None if chosen is None else chosen.relations
    degree = (await graph.degrees([node], direction=direction, relations=relations))[node]
    # An entity with an edge to itself is its own neighbour, as sets have it.
    loops = {Triple(node, each.relation, node) for each in degree.relations}
    itself = bool(loops) and not loops.isdisjoint(await graph.contains(loops))
    neighbors = Count(degree.neighbors.value + itself, exact=degree.neighbors.exact and both is None)
    return replace(degree, neighbors=neighbors), None


def _degree_summary(entity: Node, chosen: Chosen | None, direction: Direction, degree: Degree, names: Names) -> str:
    side = "" if direction == "both" else f"{ADJECTIVES[direction]} "
    said, over = "", Count(len(degree.relations), exact=degree.neighbors.exact).of("relation")
    if chosen is not None:
        said, over = chosen.said(names), chosen.shown(names)
    return f"{said}{names.entity(entity)} has {degree.neighbors.of(f'distinct {side}neighbour')} over {over}"
