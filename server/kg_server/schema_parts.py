"""The classes, relations and features of a definition one by one: a line for each, the most frequent first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.terms import Node, Triple
from kg_server.budget import fitting
from kg_server.names import MAX_LABEL, Names, terms_of
from kg_server.results import Status

SHARES: Final = {"classes": 0.25, "relations": 0.55, "features": 0.12}


@dataclass(frozen=True, slots=True)
class Part:
    """The classes, relations and features that are shown."""

    classes: Sequence[ClassSummary]
    relations: Sequence[RelationSummary]
    features: Sequence[FeatureSummary]

    @property
    def size(self) -> int:
        """How many these are."""
        return len(self.classes) + len(self.relations) + len(self.features)


def foremost(part: Part, max_tokens: int) -> Part:
    """Return what may fit at all, so that no more names are looked up than can be shown."""
    most = max(1, max_tokens // 5)
    return Part(part.classes[:most], part.relations[:most], part.features[:most])


def terms_of_part(part: Part) -> Iterable[Node]:
    """Yield everything that the lines name."""
    for summary in part.classes:
        yield summary.iri
        if summary.example is not None:
            yield summary.example
    for relation in part.relations:
        yield relation.iri
        if relation.example is not None:
            yield from terms_of([relation.example])
    yield from (feature.iri for feature in part.features)


def fitting_part(part: Part, names: Names, max_tokens: int) -> tuple[Part, list[str]]:
    """Return what fits into a budget, and its lines."""
    first = foremost(part, max_tokens)
    classes = [_class_line(each, names) for each in first.classes]
    relations = [_relation_line(each, names) for each in first.relations]
    features = [_feature_line(each, names) for each in first.features]
    counts = [
        fitting(lines, int(max_tokens * SHARES[kind]))
        for kind, lines in (("classes", classes), ("relations", relations), ("features", features))
    ]
    shown = Part(part.classes[: counts[0]], part.relations[: counts[1]], part.features[: counts[2]])
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


def status_of(part: Part, shown: Part) -> Status:
    """Say whether everything is shown."""
    if part.size == 0:
        return "empty"
    return "ok" if shown.size >= part.size else "truncated"


def sizes_of(part: Part, schema: GraphSchema, *, listed_only: bool = False) -> str:
    """Return how many classes, relations and features these are, in words; `listed_only` leaves out what is not."""
    parts = (
        (len(part.classes), "class", "classes"),
        (len(part.relations), "relation", "relations"),
        (len(part.features), "feature", "features"),
    )
    counted = ((size, one, many) for size, one, many in parts if size or not listed_only)
    return ", ".join(Count(size, exact=schema.complete).of(one, many) for size, one, many in counted)
