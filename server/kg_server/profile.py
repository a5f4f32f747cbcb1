"""Feature and Degree: what one entity is like, and how connected it is."""

from collections.abc import Sequence

from kg_adapters.models import NO_FEATURES, Degree, Direction, Feature, FeaturePage
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter, SupportsFeatureNote
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Node
from kg_server.lines import (
    Line,
    Over,
    fitted_lines,
    in_columns,
    kind_of_value,
    labels_of_relations,
    terms_of_lines,
)
from kg_server.names import Names, names_of
from kg_server.neighborhood import ADJECTIVES, by_direction
from kg_server.relation_resolution import Chosen, relation_of
from kg_server.resolve import require_entity
from kg_server.results import Answer, DegreeResult, FeaturesResult, fitted

MAX_FEATURES = 500
SHOWN_FEATURES = 10


async def features_of(graph: KGAdapter, *, entity: str, feature: str | None, max_tokens: int) -> Answer:
    """Answer Feature.

    Raises:
        InvalidRequest: An id is not one.
        UnknownEntity: The graph does not mention the entity.
        UnknownRelation: Nothing in the graph has the feature.
    """
    node = await require_entity(graph, entity)
    chosen = None if feature is None else await relation_of(graph, feature, "feature", around=[node])
    relation = None if chosen is None else chosen.relation
    relations = None if relation is None else frozenset({relation})
    page = (await graph.features(FeatureRequest((node,), relations, MAX_FEATURES))).get(node)
    if page is None:
        return await _no_features(graph, node, chosen)
    lines = [_line(node, each, graph.prefixes) for each in page.features]
    read = () if chosen is None else chosen.terms
    names = await names_of(graph, (node, *read, *terms_of_lines(lines)))
    note = f" {graph.feature_note}" if relation is None and isinstance(graph, SupportsFeatureNote) else ""

    def build(here: Sequence[Line]) -> Answer:
        result = _features(node, chosen, page, here, names, note.rstrip())
        return Answer(result, tuple(line.shown(names) for line in here))

    return fitted_lines(lines, names, build, max_tokens)


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
    chosen = None if relation is None else await relation_of(graph, relation, around=[node], direction=direction)
    degrees = await graph.degrees([node], direction=direction, relations=None if chosen is None else [chosen.relation])
    degree = degrees[node]
    read = () if chosen is None else chosen.terms
    names = await names_of(graph, (node, *(each.relation for each in degree.relations), *read))
    ordered = sorted(degree.relations, key=lambda each: (each.direction == "in", -each.count.value, each.relation))
    lines = [f"{each.direction} | {names.relation(each.relation)} | {each.count}" for each in ordered]

    def build(shown: int) -> Answer:
        outgoing, incoming = by_direction(ordered[:shown])
        result = DegreeResult(
            status="empty" if not ordered else "ok" if shown >= len(ordered) else "truncated",
            summary=_degree_summary(node, chosen, direction, degree, len(ordered) - shown, names),
            neighbors=degree.neighbors.value,
            exact=degree.neighbors.exact,
            outgoing=names.counts(outgoing),
            incoming=names.counts(incoming),
            relations=names.relation_labels([each.relation for each in ordered[:shown]]),
        )
        return Answer(result, tuple(lines[:shown]))

    return fitted(build, len(lines), max_tokens)


async def _feature_names(graph: KGAdapter, entity: Node) -> Sequence[str]:
    page = (await graph.features(FeatureRequest((entity,), limit=MAX_FEATURES))).get(entity, NO_FEATURES)
    relations = list(dict.fromkeys(each.relation for each in page.features))[:SHOWN_FEATURES]
    names = await names_of(graph, relations)
    return [names.relation(each) for each in relations]


def _features(
    entity: Node, chosen: Chosen | None, page: FeaturePage, shown: Sequence[Line], names: Names, note: str
) -> FeaturesResult:
    cut = len(shown) < page.total.value
    others = "name a feature to see more of it" if chosen is None else "the others do not fit into an answer"
    extent = f"the first {len(shown)} are here; {others}." if cut else "all here."
    values = "value" if page.total.value == 1 else "values"
    return FeaturesResult(
        status="truncated" if cut else "ok",
        summary=f"{_said(chosen, names)}{names.entity(entity)} has {page.total} {values}; {extent}{note}",
        features=[line.cells(names) for line in shown],
        relations=labels_of_relations(shown, names),
        total=page.total.value,
    )


def _line(entity: Node, feature: Feature, prefixes: Prefixes) -> Line:
    over, kind = Over(feature.relation), kind_of_value(feature.value, prefixes)
    return Line(in_columns((entity, over, feature.value)), (over, feature.value, kind))


async def _no_features(graph: KGAdapter, entity: Node, chosen: Chosen | None) -> Answer:
    names = await names_of(graph, (entity, *(chosen.terms if chosen is not None else ())))
    summary = f"{_said(chosen, names)}{names.entity(entity)} is known, but has no values"
    if chosen is not None:
        existing = await _feature_names(graph, entity)
        summary += f" of {names.relation(chosen.relation)}, which is known too"
        summary += f". It has {', '.join(existing)}" if existing else ". It has no values at all"
    result = FeaturesResult(
        status="empty", summary=f"{summary}. GetNeighbor shows its triples.", features=[], relations={}, total=0
    )
    return Answer(result, ())


def _said(chosen: Chosen | None, names: Names) -> str:
    return "" if chosen is None else chosen.said(names)


def _degree_summary(
    entity: Node, chosen: Chosen | None, direction: Direction, degree: Degree, hidden: int, names: Names
) -> str:
    side = "" if direction == "both" else f" {ADJECTIVES[direction]}"
    many = "relation" if len(degree.relations) == 1 else "relations"
    over = (
        f" over {names.relation(chosen.relation)}" if chosen is not None else f" over {len(degree.relations):,} {many}"
    )
    noun = "neighbour" if degree.neighbors.value == 1 else "neighbours"
    summary = f"{_said(chosen, names)}{names.entity(entity)} has {degree.neighbors} distinct{side} {noun}{over}."
    return (
        f"{summary} The {hidden:,} rarest relations are left out; name one to count it, or search Schema(about=…)."
        if hidden > 0
        else summary
    )
