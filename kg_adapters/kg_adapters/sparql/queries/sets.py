"""Queries that answer set requests, one query each, and queries for the facts that show an answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from kg_adapters.algebra import Best, Hop, SetExpression, ValueOf, holds_values
from kg_adapters.set_requests import (
    Aggregated,
    Column,
    Computed,
    Ends,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    SharedTerm,
    Tabled,
)
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.set_paths import Told, Walked
from kg_adapters.sparql.queries.set_patterns import SetWriter
from kg_adapters.terms import BlankNode, Iri, Literal, Term, literal_key

MOST_CELLS: Final = 10_000
"""How many ends the rows of a table may have together."""

COLUMNS: Final = "?d ?n ?m ?x ?y ?p"

_X: Final = "?x"

_BY_TEXT: Final = "STR({0}) LANG({0}) STR(DATATYPE({0}))"


@dataclass(frozen=True, slots=True)
class SetQueries:
    """Writes queries for questions about sets.

    Rows are `?d` what the row is about, `?n` a number, `?x` a member, group or end, `?y` what a cell holds, `?p` a
    relation:

    - `count`: how many members, groups, pairs or shared terms there are
    - `of` and `with`: how many members the set has, and how many of them have a measure or group
    - `member`: a member `?x`, with its measure `?m` where it is one of the best; `group`: a group `?x` of `?n`
    - `sum`, `mean`: `?m`; `end`: the least or greatest value `?x`, or number `?m`
    - `cell0`, `cell1`, …: an end `?y` of the member `?x` in a column, or how many there are `?n`
    - `out`, `in`: a shared term `?x` over `?p`

    Args:
        graph: What is walked.
    """

    graph: Walked

    def answer(self, request: SetRequest) -> str:
        """Return the one query for all that is asked, but for what shows it."""
        blocks = (f"{{ {query} }} {bound}" for bound, query in self._blocks(request))
        return f"SELECT {COLUMNS} {{ {writing.union(blocks)} }}"

    def explained(self, question: SetQuestion, *, only_count: bool) -> str:
        """Return the query as somebody would write it who wants nothing else: all results, or only their number."""
        if only_count and not isinstance(question, Aggregated):
            return next(query for bound, query in self._blocks(SetRequest(question)) if bound == _about("count"))
        found: str
        match question:
            case Listed(of):
                found = self.members(of, None)
            case Tabled(of, columns):
                found = self._table(of, columns)
            case Grouped(of, by):
                writer, member = SetWriter(self.graph), "?member"
                found = _groups(f"{writer.group(of, member)} {writer.walked(member, by, _X)}", member)
            case Aggregated():
                about = _about(question.function if question.function in {"sum", "mean"} else "end")
                found = next(query for bound, query in self._aggregated(question) if bound == about)
            case SharedBy():
                found = f"SELECT DISTINCT ?d ?p ?x {{ {self._both(question)} }}"
        return found

    def _table(self, of: SetExpression, columns: Sequence[Column]) -> str:
        writer = SetWriter(self.graph)
        found = [f"?c{place}" for place in range(len(columns))]
        cells = (
            f"OPTIONAL {{ {(writer.walked if isinstance(column, Ends) else writer.counted)(_X, column.path, name)} }}"
            for column, name in zip(columns, found, strict=True)
        )
        return f"SELECT DISTINCT ?x {' '.join(found)} {{ {writer.group(of, _X)} {' '.join(cells)} }}"

    def _blocks(self, request: SetRequest) -> Iterator[tuple[str, str]]:
        """Yield queries, each with what tells its rows from others."""
        match request.question:
            case Listed(of):
                yield from self._listed(of, request.limit)
            case Tabled(of, columns):
                yield from self._listed(of, request.limit)
                for place, column in enumerate(columns if request.limit else ()):
                    yield _about(f"cell{place}"), self._cells(of, column, request.limit)
            case Grouped():
                yield from self._grouped(request.question, request.limit)
            case Aggregated():
                yield from self._aggregated(request.question)
            case SharedBy():
                yield from self._shared(request.question, request.limit)

    def _listed(self, of: SetExpression, limit: int) -> Iterator[tuple[str, str]]:
        yield _about("count"), self._number(of)
        if isinstance(of, Best):
            yield _about("of"), self._number(of.of)
            writer = SetWriter(self.graph)
            yield _about("with"), _counted(f"{{ {writer.measured(of.of, of.by, _X, writer.fresh())} }}", _X)
        if limit:
            yield _about("member"), self.members(of, limit)

    def members(self, of: SetExpression, limit: int | None) -> str:
        """Return the query for the first members `?x` of a set, with what they measure as `?m` if they are the best."""
        most = "" if limit is None else f" LIMIT {limit}"
        writer = SetWriter(self.graph)
        if isinstance(of, Best):
            found, direction = writer.measured_best(of, _X, "?m"), "ASC" if of.lowest else "DESC"
            return f"SELECT ?x ?m {{ {found} }} ORDER BY {direction}(?m) STR(?x){most}"
        order = _BY_TEXT.format(_X) if holds_values(of) else "STR(?x)"
        return f"SELECT DISTINCT ?x {{ {writer.within(of, _X)} }} ORDER BY {order}{most}"

    def _number(self, of: SetExpression) -> str:
        return _counted(SetWriter(self.graph).within(of, _X), _X)

    def _cells(self, of: SetExpression, column: Column, limit: int) -> str:
        writer = SetWriter(self.graph)
        members = f"{{ SELECT ?x {{ {{ {self.members(of, limit)} }} }} }}"
        if isinstance(column, Ends):
            walked = writer.walked(_X, column.path, "?y")
            return f"SELECT DISTINCT ?x ?y {{ {members} {walked} }} LIMIT {MOST_CELLS}"
        counted = writer.counted(_X, column.path, "?y")
        return f"SELECT ?x (COUNT(DISTINCT ?y) AS ?n) {{ {members} {counted} }} GROUP BY ?x"

    def _grouped(self, asked: Grouped, limit: int) -> Iterator[tuple[str, str]]:
        writer, member = SetWriter(self.graph), "?member"
        found = f"{writer.group(asked.of, member)} {writer.walked(member, asked.by, _X)}"
        yield _about("count"), _counted(found, _X)
        yield _about("of"), self._number(asked.of)
        yield _about("with"), _counted(found, member)
        if limit:
            yield _about("group"), f"{_groups(found, member)} LIMIT {limit}"

    def _aggregated(self, asked: Aggregated) -> Iterator[tuple[str, str]]:
        writer, key = SetWriter(self.graph), "?key"
        if isinstance(asked.by, ValueOf):
            found = f"SELECT DISTINCT ?member ?x ?key {{ {writer.valued(asked.of, asked.by, '?member', _X, key)} }}"
        else:
            found = writer.measured(asked.of, asked.by, "?member", key)
        yield _about("count"), f"SELECT (COUNT(*) AS ?n) {{ {{ {found} }} }}"
        yield _about("of"), self._number(asked.of)
        yield _about("with"), _counted(f"{{ {found} }}", "?member")
        if asked.function in {"sum", "mean"}:
            function = "SUM" if asked.function == "sum" else "AVG"
            yield _about(asked.function), f"SELECT ({function}({key}) AS ?m) {{ {{ {found} }} }}"
        else:
            direction = "ASC" if asked.function == "min" else "DESC"
            is_value = isinstance(asked.by, ValueOf)
            end, order = (_X, _BY_TEXT.format(_X)) if is_value else (f"({key} AS ?m)", "")
            yield _about("end"), f"SELECT {end} {{ {{ {found} }} }} ORDER BY {direction}({key}) {order} LIMIT 1"

    def _shared(self, asked: SharedBy, limit: int) -> Iterator[tuple[str, str]]:
        both = self._both(asked)
        yield _about("count"), f"SELECT (COUNT(*) AS ?n) {{ SELECT DISTINCT ?d ?p ?x {{ {both} }} }}"
        if limit:
            # Outgoing ones come first.
            order = f"DESC(?d) STR(?p) isLiteral(?x) {_BY_TEXT.format(_X)}"
            yield "", f"SELECT DISTINCT ?d ?p ?x {{ {both} }} ORDER BY {order} LIMIT {limit}"

    def _both(self, asked: SharedBy) -> str:
        """Return the pattern of the relations `?p` that lead to the same `?x` from a member of each set."""
        written: list[str] = []
        for direction in ("out", "in"):
            writer = SetWriter(self.graph)
            leading = " ".join(self._leading(writer, asked, each, direction) for each in asked.sets)
            written.append(f'{leading} BIND("{direction}" AS ?d)')
        return writing.union(written)

    def _leading(self, writer: SetWriter, asked: SharedBy, of: SetExpression, direction: str) -> str:
        member, opposites = writer.fresh(), asked.opposites
        head, tail = (member, _X) if direction == "out" else (_X, member)
        untold = self.graph.vocabulary.texts | (frozenset(opposites) if direction == "in" else frozenset[Iri]())
        walked = f"?p NOT IN ({', '.join(map(writing.iri, sorted(untold)))})"
        if self.graph.namespace is not None:
            walked += f" && STRSTARTS(STR(?p), {writing.text(self.graph.namespace)})"
        led = f"{head} ?p {tail} . FILTER({walked})"
        if direction == "out" and opposites:
            back = writer.fresh()
            pairs = " ".join(f"({writing.iri(one)} {writing.iri(other)})" for one, other in sorted(opposites.items()))
            led = writing.union((led, f"VALUES (?p {back}) {{ {pairs} }} {_X} {back} {member} ."))
        return f"{{ SELECT DISTINCT ?p ?x {{ {writer.group(of, member)} {led} }} }}"


def _about(what: str) -> str:
    return f'BIND("{what}" AS ?d)'


def _counted(found: str, name: str) -> str:
    return f"SELECT (COUNT(DISTINCT {name}) AS ?n) {{ {found} }}"


def _groups(found: str, member: str) -> str:
    number = f"SELECT ?x (COUNT(DISTINCT {member}) AS ?n) {{ {found} }} GROUP BY ?x"
    return f"{number} ORDER BY DESC(?n) isLiteral(?x) {_BY_TEXT.format(_X)}"


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
