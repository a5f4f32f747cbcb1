"""GetNeighbor's details: what the graph holds about the facts that are shown, below each of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from kg_adapters.details import Detail, Details, details_of
from kg_adapters.errors import KGError
from kg_adapters.protocol import KGAdapter, SupportsSparql
from kg_adapters.terms import Fact, Iri, Literal, Node
from kg_boundary.shown import clipped, counted, listed
from kg_server.names import Names

NOTHING: Final = " The graph holds no qualifiers, references, ranks, annotations or named graphs for these facts."
_CUT: Final = " There are more details than one answer takes: name a relation."
_NO_SPARQL: Final = " Details need SPARQL, which this graph does not answer."
_DIRECT: Final = "/prop/direct/"
_MOST_REFERENCES: Final = 2
_MOST_LINES: Final = 5
_MOST_PARTS: Final = 12
"""How many parts of one line are shown."""
_MOST_ROWS: Final = 40
"""How many rows one line has."""
_MARK: Final = "    · "
_MARKS: Final = ";:,"


class FactDetails:
    """The details of the facts around one entity, read as they are needed.

    Args:
        graph: The graph.
        entity: The entity.
        timeout_s: How many seconds each reading may take.
    """

    def __init__(self, graph: KGAdapter, entity: Node, timeout_s: float) -> None:
        self._graph = graph
        self._entity = entity
        self._timeout_s = timeout_s
        self._read: set[Fact] = set()
        self._details: dict[Fact, Sequence[Detail]] = {}
        self._note = "" if isinstance(graph, SupportsSparql) else _NO_SPARQL

    async def read(self, facts: Sequence[Fact]) -> None:
        """Read the details of facts, unless they were read before."""
        if isinstance(self._graph, SupportsSparql) and not self._read.issuperset(facts):
            wanted = [fact for fact in facts if fact not in self._read]
            try:
                found = await details_of(self._graph, wanted, self._entity, timeout_s=self._timeout_s)
            except KGError as error:
                # The facts are there; only what is held about them is not.
                self._note = f" Details are missing: {clipped(str(error), 300)}"
            else:
                self._details |= found.of
                self._note = _CUT if found.truncated else self._note
            self._read.update(facts)

    def named(self, names: Names) -> Names:
        """Return names with those of properties that the graph only uses in details."""
        entities = {relation: entity for relation, entity in self._properties() if relation not in names.labels}
        labels: dict[Node, str] = {
            relation: names.labels[entity] for relation, entity in entities.items() if entity in names.labels
        }
        return replace(names, labels={**names.labels, **labels}) if labels else names

    @property
    def terms(self) -> Iterator[Node]:
        """All that the details name, with repeats."""
        yield from Details(self._details).terms
        yield from (entity for _, entity in self._properties())

    def _properties(self) -> Iterator[tuple[Iri, Iri]]:
        """Yield the properties of Wikibase, each with the entity that bears its name."""
        for relation in (each.relation for details in self._details.values() for each in details):
            if relation is not None and _DIRECT in relation.value:
                yield relation, Iri(relation.value.replace(_DIRECT, "/entity/"))

    def note(self, facts: Sequence[Fact]) -> str:
        """Return a remark on the details of these facts for the answer's first line."""
        return self._note or ("" if any(fact in self._details for fact in facts) else NOTHING)

    def lines(self, fact: Fact, names: Names) -> Iterator[str]:
        """Yield the lines below a fact: one for each statement or reifier, and one for its named graphs."""
        shown = [text for part in self._parts(fact) if (text := listed(_texts(part, names), "; ", _MOST_PARTS))]
        yield from (f"{_MARK}{text}" for text in shown[:_MOST_LINES])
        if len(shown) > _MOST_LINES:
            yield f"{_MARK}and {len(shown) - _MOST_LINES} more"

    def rows(self, facts: Sequence[Fact], names: Names) -> list[list[str]] | None:
        """Return the details as rows of the fact's head, relation and tail, then kind, numbers, property and value.

        They are of the first statements or reifiers of each fact alone, since one may have thousands.
        """
        rows = [
            [*names.row(fact), each.kind, _number(each), *_cells(each, names)]
            for fact in facts
            for part in self._parts(fact)[:_MOST_LINES]
            for each in part[:_MOST_ROWS]
        ]
        return rows or None

    def _parts(self, fact: Fact) -> list[list[Detail]]:
        """Return the details of a fact by its named graphs, statements and reifiers."""
        return [[*each] for _, each in groupby(self._details.get(fact, ()), key=lambda detail: detail.about)]


def _number(detail: Detail) -> str:
    return f"{detail.about}.{detail.reference}" if detail.reference else str(detail.about)


def _cells(detail: Detail, names: Names) -> tuple[str, str]:
    relation = "" if detail.relation is None else names.relation_id(detail.relation)
    value = detail.value
    return relation, names.value(value) if isinstance(value, Literal) else names.entity_id(value)


def _texts(details: Sequence[Detail], names: Names) -> Iterator[str]:
    """Yield the parts of the line of one statement, reifier or set of graphs."""
    graphs = [names.term(each.value, marks=_MARKS) for each in details if each.kind == "graph"]
    if graphs:
        yield f"in {'graph' if len(graphs) == 1 else 'graphs'} {listed(graphs, ', ', _MOST_PARTS)}"
    # Statements have the normal rank by default.
    ranks = [str(each.value) for each in details if each.kind == "rank"]
    yield from (f"rank: {rank}" for rank in ranks if rank != "normal")
    for each in details:
        if each.kind in {"qualifier", "annotation"}:
            yield _said(each, names)
    references = [[*each] for _, each in groupby((d for d in details if d.reference), key=lambda d: d.reference)]
    for reference in references[:_MOST_REFERENCES]:
        yield f"reference: {listed((_said(each, names) for each in reference), ', ', _MOST_PARTS)}"
    if len(references) > _MOST_REFERENCES:
        yield counted(len(references) - _MOST_REFERENCES, "more reference")


def _said(detail: Detail, names: Names) -> str:
    relation = "" if detail.relation is None else f"{names.relation(detail.relation, _MARKS)}: "
    return f"{relation}{names.term(detail.value, relation=detail.relation, marks=_MARKS)}"
