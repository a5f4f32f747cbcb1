"""The classes, relations and features of a definition one by one: a line for each, the most frequent first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kg_adapters.models import ClassSummary, Count, FeatureSummary, GraphSchema, RelationSummary
from kg_server.budget import fitting
from kg_server.lines import Line, Over, Piece
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


def lines_of_part(part: Part) -> Mapping[str, Sequence[Line]]:
    """Return a line for every class, relation and feature, by kind."""
    return {
        "features": [_line("feature", Over(each.iri), each.statements, each.example) for each in part.features],
        "classes": [_line("class", each.iri, each.instances, each.example) for each in part.classes],
        "relations": [
            _line("relation", Over(each.iri), each.triples, *((one.head, " -> ", one.tail) if one else ()))
            for each, one in ((each, each.example) for each in part.relations)
        ],
    }


def fitting_part(part: Part, lines: Mapping[str, Sequence[str]], max_tokens: int) -> tuple[Part, list[str]]:
    """Return what fits into a budget, and its lines."""
    counts = {kind: fitting(of, int(max_tokens * SHARES[kind])) for kind, of in lines.items()}
    shown = Part(
        part.classes[: counts["classes"]], part.relations[: counts["relations"]], part.features[: counts["features"]]
    )
    return shown, [line for kind, of in lines.items() for line in of[: counts[kind]]]


def _line(kind: str, what: Piece, count: Count, *example: Piece | None) -> Line:
    pieces = [piece for piece in example if piece is not None]
    return Line((f"{kind} | ", what, " | ", count, *((", e.g. ", *pieces) if pieces else ())), ())


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
