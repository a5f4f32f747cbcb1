"""What a graph holds about facts: qualifiers, references and ranks, annotations of reifiers, and named graphs."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.calls import time_left_s
from kg_adapters.models import SparqlAnswer
from kg_adapters.protocol import SupportsSparql
from kg_adapters.sparql.queries.details import (
    RANK,
    FactsOver,
    Far,
    annotation_queries,
    statement_queries,
)
from kg_adapters.terms import XSD, Attribute, BlankNode, Fact, Iri, Literal, Node, Term, Triple

Kind: TypeAlias = Choice["rank", "qualifier", "reference", "annotation", "graph"]
_KINDS: Final[tuple[Kind, ...]] = ("rank", "qualifier", "reference", "annotation", "graph")
_MOST_ROWS: Final = 3_000
_MOST_QUERIES: Final = 8
_BEHIND: Final = re.compile("/prop/(?:qualifier|reference)/")
_DATES: Final = frozenset(Iri(XSD + name) for name in ("gYear", "gYearMonth", "date"))


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that the graph holds about a fact.

    Args:
        kind: What it is.
        about: The number of the statement or reifier that it belongs to, from 1; 0 of a named graph.
        reference: The number of the reference among those of its statement, from 1; 0 of anything else.
        relation: The property; None of a rank and a named graph.
        value: The property's value, a rank as a text, or the graph.
    """

    kind: Kind
    about: int
    reference: int
    relation: Iri | None
    value: Term


@dataclass(frozen=True, slots=True)
class Details:
    """What a graph holds about some facts.

    Args:
        of: For each fact that it holds something about, what that is.
        truncated: Whether there is more.
    """

    of: Mapping[Fact, Sequence[Detail]]
    truncated: bool = False

    @property
    def terms(self) -> Iterator[Node]:
        """All that they name, with repeats."""
        for details in self.of.values():
            for each in details:
                if each.relation is not None:
                    yield each.relation
                if not isinstance(each.value, Literal):
                    yield each.value


async def details_of(graph: SupportsSparql, facts: Collection[Fact], entity: Node, *, timeout_s: float) -> Details:
    """Return what a graph holds about facts around one entity, in one query, or a second one where it has reifiers.

    Facts with blank nodes or very long texts have none: no query can name these.

    Args:
        graph: The graph.
        facts: The facts.
        entity: Their common end.
        timeout_s: How many seconds all of it may take.

    Raises:
        BackendError: The graph did not answer, or not in time.
    """
    groups = _grouped(facts, entity)
    if not groups:
        return Details({})
    reader = _Reader(groups)
    for query in _bounded(statement_queries(groups), reader):
        answer = await graph.select(query, timeout_s=time_left_s(timeout_s), max_rows=_MOST_ROWS)
        reader.read(answer)
    if reader.has_reifiers:
        for query in _bounded(annotation_queries(groups), reader):
            answer = await graph.select(query, timeout_s=time_left_s(timeout_s), max_rows=_MOST_ROWS)
            reader.read(answer)
    return reader.details()


def _bounded(queries: Iterator[str], reader: "_Reader") -> Iterator[str]:
    for number, query in enumerate(queries):
        if number == _MOST_QUERIES:
            reader.truncated = True
            return
        yield query


def _grouped(facts: Collection[Fact], entity: Node) -> list[FactsOver]:
    far: defaultdict[tuple[Iri, bool], list[Far]] = defaultdict(list)
    for fact in facts:
        outgoing = fact.head == entity
        end = fact.tail if outgoing else fact.head
        if not isinstance(end, BlankNode):
            far[fact.relation, outgoing].append(end)
    if isinstance(entity, BlankNode):
        return []
    return [FactsOver(entity, relation, outgoing, tuple(ends)) for (relation, outgoing), ends in far.items()]


@dataclass(frozen=True, slots=True)
class _Row:
    kind: Kind
    about: str
    reference: str
    relation: Iri | None
    value: Term

    @property
    def order(self) -> tuple[str, int, str, str, str]:
        return self.about, _KINDS.index(self.kind), self.reference, str(self.relation), str(self.value)


class _Reader:
    """Sorts the rows of queries by the facts that they are about.

    Attributes:
        has_reifiers: Whether the graph has any.
        truncated: Whether rows are missing.
    """

    def __init__(self, groups: Sequence[FactsOver]) -> None:
        self._groups = groups
        self._rows: defaultdict[Fact, set[_Row]] = defaultdict(set)
        self.has_reifiers = False
        self.truncated = False

    def read(self, answer: SparqlAnswer) -> None:
        """Take the rows of one answer."""
        self.truncated |= answer.truncated
        for kind, number, end, about, reference, key, value in answer.rows:
            if str(kind) == "reifies":
                self.has_reifiers = True
            elif about is not None and end is not None and isinstance(number, Literal):
                fact, row = _fact(self._groups[int(number.value)], end), _row(str(kind), about, reference, key, value)
                if fact is not None and row is not None:
                    self._rows[fact].add(row)

    def details(self) -> Details:
        """Return all that was read."""
        return Details({fact: _numbered(rows) for fact, rows in self._rows.items()}, self.truncated)


def _row(kind: str, about: Term, reference: Term | None, key: Term | None, value: Term | None) -> _Row | None:
    if kind == "graph":
        return _Row("graph", "", "", None, about)
    if not isinstance(key, Iri) or value is None:
        return None
    if key == RANK:
        name = value.local_part if isinstance(value, Iri) else str(value)
        return _Row("rank", str(about), "", None, Literal(name.removesuffix("Rank").lower()))
    if kind == "annotation":
        return _Row("annotation", str(about), "", key, value)
    relation = Iri(_BEHIND.sub("/prop/direct/", key.value))
    if reference is None:
        return _Row("qualifier", str(about), "", relation, value)
    return _Row("reference", str(about), str(reference), relation, value)


def _fact(group: FactsOver, end: Term) -> Fact | None:
    """Return the fact of a group that has an end, as it is stored or as it is shown."""
    far = end if end in group.far else next((each for each in group.far if _is_read_as(end, each)), None)
    if isinstance(far, Literal):
        return Attribute(group.entity, group.relation, far) if group.outgoing else None
    if not isinstance(far, Iri):
        return None
    head, tail = (group.entity, far) if group.outgoing else (far, group.entity)
    return Triple(head, group.relation, tail)


def _is_read_as(stored: Term, shown: Term) -> bool:
    """Return whether a value is shown with less than is stored: a day without its time, or with a unit's name."""
    if not isinstance(stored, Literal) or not isinstance(shown, Literal):
        return False
    text, read = stored.value.removeprefix("+"), shown.value.removeprefix("+")
    return text == read or read.startswith(f"{text} ") or (shown.datatype in _DATES and text.startswith(read))


def _numbered(rows: Collection[_Row]) -> tuple[Detail, ...]:
    statements = _places({row.about for row in rows if row.about})
    references = defaultdict[str, set[str]](set)
    for row in rows:
        if row.reference:
            references[row.about].add(row.reference)
    places = {about: _places(found) for about, found in references.items()}
    return tuple(
        Detail(
            row.kind,
            statements[row.about] if row.about else 0,
            places[row.about][row.reference] if row.reference else 0,
            row.relation,
            row.value,
        )
        for row in sorted(rows, key=lambda row: row.order)
    )


def _places(ids: Collection[str]) -> Mapping[str, int]:
    return {each: place for place, each in enumerate(sorted(ids), 1)}
