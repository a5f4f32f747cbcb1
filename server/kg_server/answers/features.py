"""Feature: the values of one entity."""

from collections.abc import Sequence

from kg_adapters.models import NO_FEATURES, Feature, FeaturePage
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter, SupportsFeatureNote
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Node
from kg_server.answers.coverage import absence
from kg_server.answers.results import (
    Answer,
    FeaturesResult,
    Knowledge,
    Line,
    Over,
    fitted_lines,
    in_columns,
    kind_of_value,
    labels_of_relations,
    terms_of_lines,
)
from kg_server.names import Names, names_of
from kg_server.naming.refusals import require_entity
from kg_server.naming.relations import Chosen, NoSuchRelation, no_such_relation, relation_of

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
    try:
        chosen = None if feature is None else await relation_of(graph, feature, "feature", around=[node])
    except NoSuchRelation as error:
        return Answer(_no_values(await no_such_relation(graph, node, error)), ())
    relation = None if chosen is None else chosen.relation
    relations = None if relation is None else frozenset({relation})
    page = (await graph.features(FeatureRequest((node,), relations, MAX_FEATURES))).get(node)
    if page is None:
        return await _no_features(graph, node, chosen)
    lines = [_line(each, graph.prefixes) for each in page.features]
    read = () if chosen is None else chosen.terms
    names = await names_of(graph, (node, *read, *terms_of_lines(lines)))
    note = f" {graph.feature_note}" if relation is None and isinstance(graph, SupportsFeatureNote) else ""

    def build(here: Sequence[Line]) -> Answer:
        result = _features(node, chosen, page, here, names, note.rstrip())
        return Answer(result, () if _is_only(chosen, page) else tuple(line.shown(names) for line in here))

    return fitted_lines(lines, names, build, max_tokens)


async def _feature_names(graph: KGAdapter, entity: Node) -> Sequence[str]:
    page = (await graph.features(FeatureRequest((entity,), limit=MAX_FEATURES))).get(entity, NO_FEATURES)
    relations = list(dict.fromkeys(each.relation for each in page.features))[:SHOWN_FEATURES]
    names = await names_of(graph, relations)
    return [names.relation(each, ",") for each in relations]


def _features(
    entity: Node, chosen: Chosen | None, page: FeaturePage, shown: Sequence[Line], names: Names, note: str
) -> FeaturesResult:
    cut = len(shown) < page.total.value
    if _is_only(chosen, page):
        said = f"{_said(chosen, names)}{names.entity(entity)} | {shown[0].shown(names)}"
    else:
        said = _extent(entity, chosen, page, len(shown), names) + note
    return FeaturesResult(
        status="truncated" if cut else "ok",
        summary=said,
        features=[line.cells(names) for line in shown],
        labels=names.entity_labels((entity,)) or None,
        relations=labels_of_relations(shown, names),
        total=page.total.value,
    )


def _is_only(chosen: Chosen | None, page: FeaturePage) -> bool:
    """Say whether the feature that was named has one value: then the first line tells it."""
    return chosen is not None and page.total.value == len(page.features) == 1


def _extent(entity: Node, chosen: Chosen | None, page: FeaturePage, shown: int, names: Names) -> str:
    values = "value" if page.total.value == 1 else "values"
    extent = f"{_said(chosen, names)}{names.entity(entity)} has {page.total} {values}"
    if shown >= page.total.value:
        return f"{extent}; all here."
    others = "name a feature to see more of it" if chosen is None else "the others do not fit into an answer"
    return f"{extent}; the first {shown} are here; {others}."


def _line(feature: Feature, prefixes: Prefixes) -> Line:
    over, kind = Over(feature.relation), kind_of_value(feature.value, prefixes)
    return Line(in_columns((over, feature.value)), (over, feature.value, kind))


async def _no_features(graph: KGAdapter, entity: Node, chosen: Chosen | None) -> Answer:
    names = await names_of(graph, (entity, *(chosen.terms if chosen is not None else ())))
    shows = "GetNeighbor shows its triples."
    if chosen is None:
        return Answer(_no_values(f"{names.entity(entity)} is known, but has no values. {shows}"), ())
    missing = await absence(graph, entity, chosen.relation)
    existing = await _feature_names(graph, entity)
    others = f"It has {', '.join(existing)}" if existing else "It has no values at all"
    lacks = f"{_said(chosen, names)}{names.entity(entity)} has no value of {names.relation(chosen.relation)} here"
    return Answer(_no_values(f"{lacks}; {missing.clause}. {others}. {shows}", missing.knowledge), ())


def _no_values(summary: str, knowledge: Knowledge = "unknown") -> FeaturesResult:
    return FeaturesResult(status="empty", knowledge=knowledge, summary=summary, features=[], relations={}, total=0)


def _said(chosen: Chosen | None, names: Names) -> str:
    return "" if chosen is None else chosen.said(names)
