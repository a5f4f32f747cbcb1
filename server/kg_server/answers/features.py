"""Feature: the values of one entity."""

from kg_adapters.models import NO_FEATURES, Feature
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import KGAdapter, SupportsFeatureNote
from kg_adapters.requests import FeatureRequest
from kg_adapters.terms import Iri, Literal, Node
from kg_server.answers.coverage import absence
from kg_server.answers.results import (
    Answer,
    AnswerRows,
    FeaturesResult,
    Line,
    Over,
    Piece,
    fitted_rows,
    in_columns,
    kind_of_value,
    terms_of_lines,
)
from kg_server.names import Names, names_of
from kg_server.naming.refusals import NoSuchRelation, require_entity
from kg_server.naming.relations import Chosen, no_such_relation, relation_of

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
        return Answer(FeaturesResult(status="empty", summary=await no_such_relation(graph, node, error)))
    relations = None if chosen is None else frozenset(chosen.relations)
    page = (await graph.features(FeatureRequest((node,), relations, MAX_FEATURES))).get(node)
    if page is None:
        return await _no_features(graph, node, chosen)
    lines = [_line(each, graph.prefixes) for each in page.features]
    names = await names_of(graph, (node, *(() if chosen is None else chosen.terms), *terms_of_lines(lines)))
    note = f" {graph.feature_note}" if chosen is None and isinstance(graph, SupportsFeatureNote) else ""
    total, is_only = page.total, chosen is not None and page.total.value == len(lines) == 1

    def build(rows: AnswerRows[Line]) -> Answer:
        summary = f"{_has(node, chosen, names)} has {total.of('value')}; all here.{note}"
        if is_only:
            summary = f"{_has(node, chosen, names)} | {rows.texts()[0]}"
        elif len(rows) < total.value:
            others = "name a feature to see more of it" if chosen is None else "the others do not fit into an answer"
            summary = f"{_has(node, chosen, names)} has {total.of('value')}; the first {len(rows)} are here; {others}."
        result = FeaturesResult(
            status="truncated" if len(rows) < total.value else "ok",
            summary=summary,
            features=rows.cells(),
            labels=names.entity_labels((node,)) or None,
            relations=rows.fields()["relations"],
            total=total.value,
        )
        return Answer(result, () if is_only else rows.texts())

    return fitted_rows(AnswerRows(lines, names), build, max_tokens)


class _ValueLine(Line):
    """A value, in which a text keeps its language: values that differ in nothing else stay apart."""

    def shown_piece(self, piece: Piece, names: Names, max_value: int, over: Iri | None) -> str:
        """See `Line`."""
        if isinstance(piece, Literal):
            return names.plain(piece, over) or names.literal(piece, max_value)
        return super().shown_piece(piece, names, max_value, over)


def _line(feature: Feature, prefixes: Prefixes) -> Line:
    over, kind = Over(feature.relation), kind_of_value(feature.value, prefixes)
    return _ValueLine(in_columns((over, feature.value)), (over, feature.value, kind))


def _has(entity: Node, chosen: Chosen | None, names: Names) -> str:
    """Return how the feature was read, unless that is obvious, and the entity."""
    return f"{'' if chosen is None else chosen.said(names)}{names.entity(entity)}"


async def _no_features(graph: KGAdapter, entity: Node, chosen: Chosen | None) -> Answer:
    page = (await graph.features(FeatureRequest((entity,), limit=MAX_FEATURES))).get(entity, NO_FEATURES)
    existing = list(dict.fromkeys(each.relation for each in page.features))[:SHOWN_FEATURES]
    names = await names_of(graph, (entity, *existing, *(() if chosen is None else chosen.terms)))
    if chosen is None:
        summary = f"{names.entity(entity)} is known, but has no values. GetNeighbor shows its triples."
        return Answer(FeaturesResult(status="empty", summary=summary))
    missing = await absence(graph, entity, chosen.relations)
    has = f"has {', '.join(names.relation(each, ',') for each in existing)}" if existing else "has no values at all"
    lacks = f"has no value of {chosen.shown(names)} here; {missing.clause}"
    summary = f"{_has(entity, chosen, names)} {lacks}. It {has}. GetNeighbor shows its triples."
    return Answer(FeaturesResult(status="empty", knowledge=missing.knowledge, summary=summary))
