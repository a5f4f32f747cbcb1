"""Schema: the definition of the graph, or the part that a text is about."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from kg_adapters.errors import InvalidRequest
from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.prefixes import Position
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node, Triple
from kg_boundary.shown import in_quotes, shown
from kg_server.budget import fitting
from kg_server.names import MAX_LABEL, Names, names_of, terms_of
from kg_server.resolve import is_word
from kg_server.results import Answer, SchemaResult, Status, fitted

LIKENESS = 80
SHARES = {"classes": 0.25, "relations": 0.55, "features": 0.12}
PREFIX_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class _Part:
    """The classes, relations and features that are shown."""

    classes: Sequence[ClassSummary]
    relations: Sequence[RelationSummary]
    features: Sequence[FeatureSummary]

    @property
    def size(self) -> int:
        return len(self.classes) + len(self.relations) + len(self.features)


async def schema_view(graph: KGAdapter, *, about: str | None, max_tokens: int) -> Answer:
    """Answer Schema."""
    schema = await graph.schema()
    whole = _Part(schema.classes, schema.relations, schema.features)
    part = whole if about is None else _about(whole, about, graph)
    names = await names_of(graph, _terms(_foremost(part, max_tokens)))

    def build(tokens: int) -> Answer:
        prefixes = _prefixes(schema, int(tokens * PREFIX_SHARE)) if about is None else {}
        shown, lines = _fit(part, names, tokens)
        result = SchemaResult(
            status=_status(part, shown),
            summary=_summary(graph.name, schema, about, part, shown),
            entities=schema.entities.value,
            triples=schema.triples.value,
            classes={names.entity_id(each.iri): each.instances.value for each in shown.classes},
            relations={names.relation_id(each.iri): each.triples.value for each in shown.relations},
            features={names.relation_id(each.iri): each.statements.value for each in shown.features},
            labels=_labels(shown, names),
            prefixes=prefixes,
        )
        return Answer(result, (*([_prefix_line(prefixes, schema)] if prefixes else []), *lines))

    return fitted(build, max_tokens, max_tokens)


def _about(part: _Part, about: str, graph: KGAdapter) -> _Part:
    wanted = about.casefold().strip()
    meant = {_read(graph, about, "entity"), _read(graph, about, "relation")}

    def fits(iri: Node, label: str | None) -> bool:
        return iri in meant or any(_alike(wanted, name.casefold()) for name in _names(iri, label))

    return _Part(
        [each for each in part.classes if fits(each.iri, each.label)],
        [each for each in part.relations if fits(each.iri, each.label)],
        [each for each in part.features if fits(each.iri, each.label)],
    )


def _names(iri: Node, label: str | None) -> list[str]:
    """Return what people may call a class or relation: its label, and its local part where that is no mere number."""
    names = [] if label is None else [label]
    return [*names, iri.local_part] if label is None or is_word(iri.local_part) else names


def _alike(wanted: str, name: str) -> bool:
    if len(name) < len(wanted):
        return fuzz.ratio(wanted, name) >= LIKENESS or f" {name} " in f" {wanted} "
    return fuzz.partial_ratio(wanted, name) >= LIKENESS


def _read(graph: KGAdapter, text: str, position: Position) -> Node | None:
    try:
        return graph.prefixes.expand(text, position)
    except InvalidRequest:
        return None


def _foremost(part: _Part, max_tokens: int) -> _Part:
    """Return what may fit at all, so that no more names are looked up than can be shown."""
    most = max(1, max_tokens // 5)
    return _Part(part.classes[:most], part.relations[:most], part.features[:most])


def _terms(part: _Part) -> Iterable[Node]:
    for summary in part.classes:
        yield summary.iri
        if summary.example is not None:
            yield summary.example
    for relation in part.relations:
        yield relation.iri
        if relation.example is not None:
            yield from terms_of([relation.example])
    yield from (feature.iri for feature in part.features)


def _fit(part: _Part, names: Names, max_tokens: int) -> tuple[_Part, list[str]]:
    foremost = _foremost(part, max_tokens)
    classes = [_class_line(each, names) for each in foremost.classes]
    relations = [_relation_line(each, names) for each in foremost.relations]
    features = [_feature_line(each, names) for each in foremost.features]
    counts = [
        fitting(lines, int(max_tokens * SHARES[kind]))
        for kind, lines in (("classes", classes), ("relations", relations), ("features", features))
    ]
    shown = _Part(part.classes[: counts[0]], part.relations[: counts[1]], part.features[: counts[2]])
    return shown, [*features[: counts[2]], *classes[: counts[0]], *relations[: counts[1]]]


def _class_line(summary: ClassSummary, names: Names) -> str:
    example = f", e.g. {names.entity(summary.example)}" if summary.example is not None else ""
    return f"class | {names.entity(summary.iri)} | {summary.instances}{example}"


def _relation_line(summary: RelationSummary, names: Names) -> str:
    example = f", e.g. {_example(summary.example, names)}" if summary.example is not None else ""
    return f"relation | {names.relation(summary.iri)} | {summary.triples}{example}"


def _example(triple: Triple, names: Names) -> str:
    return f"{names.entity(triple.head)} -> {names.entity(triple.tail)}"


def _feature_line(summary: FeatureSummary, names: Names) -> str:
    example = f", e.g. {names.literal(summary.example, MAX_LABEL)}" if summary.example is not None else ""
    return f"feature | {names.relation(summary.iri)} | {summary.statements}{example}"


def _prefixes(schema: GraphSchema, max_tokens: int) -> dict[str, str]:
    pairs = [(shown(prefix), shown(namespace)) for prefix, namespace in schema.prefixes.namespaces.items()]
    lines = [f"{prefix}: <{namespace}>, " for prefix, namespace in pairs]
    return dict(pairs[: fitting(lines, max_tokens)])


def _prefix_line(shown: Mapping[str, str], schema: GraphSchema) -> str:
    pairs = ", ".join(f"{prefix}: <{namespace}>" for prefix, namespace in shown.items())
    hidden = len(schema.prefixes.namespaces) - len(shown)
    return f"prefixes | {pairs}{f' and {hidden} more' if hidden else ''}"


def _labels(part: _Part, names: Names) -> dict[str, str]:
    relations: list[Iri] = [each.iri for each in part.relations]
    relations.extend(each.iri for each in part.features)
    return names.entity_labels(each.iri for each in part.classes) | names.relation_labels(relations)


def _status(part: _Part, shown: _Part) -> Status:
    if part.size == 0:
        return "empty"
    return "ok" if shown.size >= part.size else "truncated"


def _summary(name: str, schema: GraphSchema, about: str | None, part: _Part, shown: _Part) -> str:
    if about is not None:
        return _summary_about(in_quotes(about, MAX_LABEL), schema, part, shown)
    size = f"Graph {in_quotes(name)}: {schema.entities} entities, {schema.triples} triples, {_sizes(part, schema)}"
    if shown.size >= part.size:
        return f"{size}; all {'that is known of it ' if not schema.complete else ''}here."
    return f"{size}; the most frequent here. Schema(about=…) finds others by label."


def _summary_about(about: str, schema: GraphSchema, part: _Part, shown: _Part) -> str:
    if part.size == 0:
        return f"No class, relation or feature is called {about} or alike. Schema() lists the most frequent ones."
    found = f"Like {about}: {_sizes(part, schema)}"
    return f"{found}; all here." if shown.size >= part.size else f"{found}; the most frequent here."


def _sizes(part: _Part, schema: GraphSchema) -> str:
    parts = (
        (len(part.classes), "class", "classes"),
        (len(part.relations), "relation", "relations"),
        (len(part.features), "feature", "features"),
    )
    counted = ((Count(size, exact=schema.complete), one if size == 1 else many) for size, one, many in parts)
    return ", ".join(f"{count} {noun}" for count, noun in counted)
