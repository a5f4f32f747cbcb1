"""Schema: the definition of the graph, or the part that a text is about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from kg_adapters.models import ClassSummary, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node, Triple
from kg_server.budget import fitting
from kg_server.names import Names, names_of, one_line, terms_of
from kg_server.results import Answer, SchemaResult, Status, fitted

LIKENESS = 80
SHARES = {"classes": 0.25, "relations": 0.55, "features": 0.12}


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
            prefixes=dict(schema.prefixes.namespaces) if about is None else {},
        )
        return Answer(result, (*([_prefix_line(schema)] if about is None else []), *lines))

    return fitted(build, max_tokens, max_tokens)


def _about(part: _Part, about: str, graph: KGAdapter) -> _Part:
    def fits(label: str | None, short: str) -> bool:
        wanted = about.casefold().strip()
        return wanted == short.casefold() or fuzz.partial_ratio(wanted, (label or short).casefold()) >= LIKENESS

    short = graph.prefixes.shorten
    return _Part(
        [each for each in part.classes if fits(each.label, short(each.iri))],
        [each for each in part.relations if fits(each.label, short(each.iri, "relation"))],
        [each for each in part.features if fits(each.label, short(each.iri, "relation"))],
    )


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
    example = f", e.g. {one_line(names.literal(summary.example))}" if summary.example is not None else ""
    return f"feature | {names.relation(summary.iri)} | {summary.statements}{example}"


def _prefix_line(schema: GraphSchema) -> str:
    pairs = (f"{prefix}: <{namespace}>" for prefix, namespace in schema.prefixes.namespaces.items())
    return f"prefixes | {', '.join(pairs)}"


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
        return _summary_about(one_line(about), part, shown)
    size = (
        f"Graph {name!r}: {schema.entities} entities, {schema.triples} triples, {len(schema.classes)} classes, "
        f"{len(schema.relations)} relations, {len(schema.features)} features"
    )
    if shown.size >= part.size:
        return f"{size}; all here."
    return f"{size}; the most frequent here. Schema(about=…) finds others by label."


def _summary_about(about: str, part: _Part, shown: _Part) -> str:
    if part.size == 0:
        return f"No class, relation or feature is called {about!r} or alike. Schema() lists the most frequent ones."
    found = f"{len(part.classes)} classes, {len(part.relations)} relations, {len(part.features)} features"
    found = f"{found} are like {about!r}"
    return f"{found}; all here." if shown.size >= part.size else f"{found}; the most frequent here."
