"""What shows the results of questions about sets, asked for as one query."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from kg_adapters.algebra import Hop, SetExpression, ValueOf
from kg_adapters.set_requests import Aggregated, Computed, Grouped, Listed, SetRequest, SharedBy, SharedTerm, Tabled
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.set_paths import Told, Walked
from kg_adapters.sparql.queries.set_patterns import SetWriter
from kg_adapters.terms import BlankNode, Literal, Term, literal_key

PLACE: Final = "?w"
"""The variable that says which part of the query a row is of."""
_WAYS: Final = 20
"""How many ways to a sum are looked at for each member that is wanted."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of the query.

    Args:
        query: Its rows are ways to a result.
        told: The statements of a way.
        result: The result; None where it is what `name` is bound to.
        name: The variable of the result.
    """

    query: str
    told: tuple[Told, ...]
    result: Term | None
    name: str


@dataclass(frozen=True, slots=True)
class EvidenceQueries:
    """Writes queries for what shows results.

    Args:
        graph: What is walked.
    """

    graph: Walked

    def parts(self, request: SetRequest, computed: Computed) -> tuple[Shown, ...]:
        """Return what asks for the ways to the first results; nothing for those that need no statement."""
        found = _Parts(self.graph, request, computed)
        return tuple(part for part in found.all() if part.told)

    def query(self, parts: tuple[Shown, ...]) -> str:
        """Return the query for all parts: `?w` is the place of a row's part."""
        names = dict.fromkeys(name for part in parts for name in (part.name, *variables(part.told)))
        blocks = (f'{{ {part.query} }} BIND("{place}" AS {PLACE})' for place, part in enumerate(parts))
        return f"SELECT {PLACE} {' '.join(names)} {{ {writing.union(blocks)} }}"


def variables(told: tuple[Told, ...]) -> Iterator[str]:
    """Yield the variables of some statements."""
    yield from (end for each in told for end in (each.head, each.relation, each.tail, each.where) if end[:1] == "?")


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of one query, no two with a variable in common."""

    graph: Walked
    request: SetRequest
    computed: Computed
    names: Iterator[int] = field(default_factory=lambda: count(1))

    def all(self) -> Iterator[Shown]:
        """Yield the parts for the first results."""
        computed, most = self.computed, self.request.witnesses
        match self.request.question:
            case Listed(of) | Tabled(of):
                results = computed.members or tuple(row.node for row in computed.rows)
                yield from (self._member(of, result) for result in results[:most] if _can_bind(result))
            case Grouped():
                results = tuple(group.by for group in computed.groups)
                yield from (self._group(self.request.question, each) for each in results[:most] if _can_bind(each))
            case SharedBy():
                shared = computed.shared[:most]
                yield from (self._shared(self.request.question, each) for each in shared if _can_bind(each.term))
            case Aggregated():
                if computed.value is not None and most:
                    yield self._aggregated(self.request.question, computed.value, most)

    def _writer(self) -> SetWriter:
        return SetWriter(self.graph, telling=True, names=self.names)

    def _member(self, of: SetExpression, result: Term) -> Shown:
        writer = self._writer()
        name = writer.fresh()
        return self._shown(writer, writer.within(of, name), result, name)

    def _group(self, asked: Grouped, result: Term) -> Shown:
        writer = self._writer()
        member, name = writer.fresh(), writer.fresh()
        found = f"{writer.group(asked.of, member)} {writer.walked(member, asked.by, name)}"
        return self._shown(writer, found, result, name)

    def _shared(self, asked: SharedBy, shared: SharedTerm) -> Shown:
        writer, found = self._writer(), list[str]()
        name = writer.fresh()
        for of in asked.sets:
            member = writer.fresh()
            found.append(f"{writer.group(of, member)} {writer.hop(member, Hop(asked.steps_of(shared.step)), name)}")
        return self._shown(writer, " ".join(found), shared.term, name)

    def _aggregated(self, asked: Aggregated, value: float | Literal, most: int) -> Shown:
        writer = self._writer()
        member, end = writer.fresh(), writer.fresh()
        if isinstance(asked.by, ValueOf):
            found = writer.valued(asked.of, asked.by, member, end, writer.fresh())
        else:
            found = f"{writer.group(asked.of, member)} {writer.counted(member, asked.by.path, end)}"
        if isinstance(value, Literal):
            return self._shown(writer, found, value, end)
        names = " ".join(dict.fromkeys((member, *variables(tuple(writer.told)))))
        query = f"SELECT {names} {{ {found} }} LIMIT {most * _WAYS}"
        return Shown(query, tuple(writer.told), None, member)

    def _shown(self, writer: SetWriter, found: str, result: Term, name: str) -> Shown:
        if isinstance(result, Literal):
            # A literal in VALUES would not match one that the engine keeps in another form.
            text, language, _ = literal_key(result)
            same = f"STR({name}) = {writing.text(text)} && LCASE(LANG({name})) = {writing.text(language)}"
            bound = f"{found} FILTER({same})"
        else:
            bound = f"{writing.values(name[1:], [result], self.graph.dialect)} {found}"
        names = " ".join(dict.fromkeys((name, *variables(tuple(writer.told)))))
        return Shown(f"SELECT {names} {{ {bound} }} LIMIT 1", tuple(writer.told), result, name)


def _can_bind(result: Term) -> bool:
    return not isinstance(result, BlankNode)
