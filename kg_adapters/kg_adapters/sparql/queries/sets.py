"""Queries that answer set requests, one query each, and queries for the facts that show some results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

from kg_adapters.algebra import (
    Best,
    Function,
    Measure,
    NumberOf,
    SetExpression,
    TotalOf,
    ValueOf,
    holds_values,
)
from kg_adapters.set_requests import (
    Aggregated,
    Column,
    Ends,
    Grouped,
    Listed,
    SetQuestion,
    SetRequest,
    SharedBy,
    Tabled,
)
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.set_patterns import FUNCTIONS, SetWriter, Walked, nodes_between
from kg_adapters.sparql.queries.way_patterns import WayWriter
from kg_adapters.terms import Iri, Literal, Term, literal_key

MOST_CELLS: Final = 10_000
"""How many ends the rows of a table may have together."""

COLUMNS: Final = "?d ?n ?m ?x ?y ?p"

_X: Final = "?x"

_MEMBER: Final = "?member"

_KEY: Final = "?key"

_ENDS: Final = frozenset[Function](("min", "max"))
"""What gives a value that the graph holds."""

_BY_TEXT: Final = "STR({0}) LANG({0}) STR(DATATYPE({0}))"


@dataclass(frozen=True, slots=True)
class SetQueries:
    """Writes queries for questions about sets.

    Rows are `?d` what the row is about, `?n` a number, `?x` a member, group or end, `?y` what a cell holds, `?p` a
    relation:

    - `count`: how many members, groups, pairs or shared terms there are
    - `of` and `with`: how many members the set has, and how many of them have a measure or group; `any`: how many have
      something that may be a measure or a date; `unfit`: how many have something that is none; `values`: how many
      values are compared or taken together
    - `member`: a member `?x`, with its measure `?m` where it is one of the best; `group`: a group `?x` of `?n`, or, of
      totals, what its `?n` values come to as `?m`, or for the least and the greatest as `?y`
    - `groups`, `measured`, `fitting`: how many groups there are with or without a total, how many members in them have
      a value, and how many something that may be one
    - `sum`, `mean`: `?m`; `end`: the least or greatest value `?x`, or number `?m`
    - `cell0`, `cell1`, …: an end `?y` of the member `?x` in a column, once for each way, or how many there are `?n`, or
      a total as in `group`
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
        """Return the query as a person would write it: for all results, or only for their number."""
        if only_count and not isinstance(question, Aggregated):
            return next(query for bound, query in self._blocks(SetRequest(question)) if bound == _about("count"))
        found: str
        match question:
            case Listed(of):
                found = self.members(of, None)
            case Tabled(of, columns):
                found = self._table(of, columns)
            case Grouped(total=total):
                found = self._groups(question, None)
                if isinstance(total, TotalOf) and total.function in _ENDS:
                    order = "ASC" if question.lowest else "DESC"
                    found = f"SELECT ?x ?y ?n {{ {{ {found} }} }} ORDER BY {order}(?m)"
            case Aggregated():
                about = _about(question.function if question.function in {"sum", "mean"} else "end")
                found = next(query for bound, query in self._aggregated(question) if bound == about)
                # Nothing has no sum, where SPARQL says 0.
                found += " HAVING (COUNT(*) > 0)" if about != _about("end") else ""
            case SharedBy():
                found = f"SELECT DISTINCT ?d ?p ?x {{ {self._both(question)} }}"
        return found

    def _table(self, of: SetExpression, columns: Sequence[Column]) -> str:
        writer = SetWriter(self.graph)
        found, cells = list[str](), list[str]()
        for place, column in enumerate(columns):
            name = f"?c{place}"
            if isinstance(column, Ends):
                via = nodes_between(column.path, f"?via{place}_")
                found += [*via, name]
                cells.append(f"OPTIONAL {{ {writer.walked(_X, column.path, name, via)} }}")
                continue
            counted, number = isinstance(column, NumberOf) or column.function == "count", f"?number{place}"
            # What is counted is none where there is nothing.
            found.append(f"(COALESCE({number}, 0) AS {name})" if counted else name)
            cells.append(f"OPTIONAL {{ {{ {self._total(of, column, number if counted else name)} }} }}")
        return f"SELECT DISTINCT ?x {' '.join(found)} {{ {writer.group(of, _X)} {' '.join(cells)} }}"

    def _total(self, of: SetExpression, column: NumberOf | TotalOf, name: str) -> str:
        """Return the query for what each member has, as one number or value; of a ranking for all that are ranked."""
        writer = SetWriter(self.graph)
        members = writer.group(of.of if isinstance(of, Best) else of, _X)
        if isinstance(column, NumberOf):
            found = f"{members} {writer.counted(_X, column.path, _KEY)}"
            return f"SELECT ?x (COUNT(DISTINCT {_KEY}) AS {name}) {{ {found} }} GROUP BY ?x"
        found = _totals(writer.added(members, column, _X, _X, _KEY), column.function)
        return f"SELECT ?x ({'?y' if column.function in _ENDS else '?m'} AS {name}) {{ {{ {found} }} }}"

    def _blocks(self, request: SetRequest) -> Iterator[tuple[str, str]]:
        """Yield queries, each with the binding that marks its rows."""
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
            measured = f"{{ {writer.measured(of.of, of.by, _X, writer.fresh())} }}"
            yield _about("with"), _counted(measured, _X)
            if isinstance(of.by, ValueOf):
                yield _about("values"), f"SELECT (COUNT(*) AS ?n) {{ {measured} }}"
            yield from self._any(of.of, of.by)
        if limit:
            yield _about("member"), self.members(of, limit)

    def _any(self, of: SetExpression, by: Measure) -> Iterator[tuple[str, str]]:
        if not isinstance(by, NumberOf):
            writer = SetWriter(self.graph)
            members = writer.group(of, _X)
            yield _about("any"), _counted(f"{members} {writer.walked(_X, by.path, writer.fresh())}", _X)
            yield _about("unfit"), _counted(f"{members} {writer.unfit(_X, by)}", _X)

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
        if isinstance(column, TotalOf):
            return _totals(writer.added(members, column, _X, _X, _KEY), column.function)
        if isinstance(column, Ends):
            via = nodes_between(column.path, "?via")
            walked = writer.walked(_X, column.path, "?y", via)
            return f"SELECT DISTINCT ?x {' '.join(via)} ?y {{ {members} {walked} }} LIMIT {MOST_CELLS}"
        counted = writer.counted(_X, column.path, "?y")
        return f"SELECT ?x (COUNT(DISTINCT ?y) AS ?n) {{ {members} {counted} }} GROUP BY ?x"

    def _grouped(self, asked: Grouped, limit: int) -> Iterator[tuple[str, str]]:
        writer, total = SetWriter(self.graph), asked.total
        found = self._in_groups(writer, asked)
        yield _about("of"), self._number(asked.of)
        yield _about("with"), _counted(found, _MEMBER)
        if asked.part is not None:
            yield (
                _about("any"),
                _counted(writer.group(asked.of, _MEMBER) + writer.walked(_MEMBER, asked.by, _X), _MEMBER),
            )
        if total is None:
            yield _about("count"), _counted(found, _X)
        else:
            valued = f"{{ {self._valued(writer, found, total)} }}"
            yield _about("count"), _counted(valued, _X)
            yield _about("groups"), _counted(found, _X)
            yield _about("measured"), _counted(valued, _MEMBER)
            if isinstance(total, TotalOf):
                yield _about("values"), f"SELECT (COUNT(*) AS ?n) {{ {valued} }}"
                ends = f"{found} {writer.walked(_MEMBER, total.path, writer.fresh())}"
                yield _about("fitting"), _counted(ends, _MEMBER)
                yield _about("unfit"), _counted(f"{found} {writer.unfit(_MEMBER, total)}", _MEMBER)
        if limit:
            yield _about("group"), self._groups(asked, limit)

    def _in_groups(self, writer: SetWriter, asked: Grouped) -> str:
        """Return the pattern of members of a set and the groups `?x` that they are in."""
        members = writer.group(asked.of, _MEMBER)
        if asked.part is None:
            return f"{members} {writer.walked(_MEMBER, asked.by, _X)}"
        date = writer.fresh()
        return f"{members} {writer.walked(_MEMBER, asked.by, date)} {writer.up_to(date, asked.part, _X)}"

    def _valued(self, writer: SetWriter, found: str, total: NumberOf | TotalOf) -> str:
        """Return the query for the values of the members in groups."""
        if isinstance(total, NumberOf):
            return f"SELECT DISTINCT ?x {_MEMBER} ?key {{ {found} {writer.counted(_MEMBER, total.path, _KEY)} }}"
        return writer.added(found, total, _MEMBER, _X, _KEY)

    def _groups(self, asked: Grouped, limit: int | None) -> str:
        """Return the query for the first groups, in their order."""
        writer, total = SetWriter(self.graph), asked.total
        found, direction = self._in_groups(writer, asked), "ASC" if asked.lowest else "DESC"
        most = "" if limit is None else f" LIMIT {limit}"
        if isinstance(total, TotalOf):
            order = f" ORDER BY {direction}(?m) isLiteral(?x) {_BY_TEXT.format(_X)}"
            return _totals(self._valued(writer, found, total), total.function, f"{order}{most}")
        counted = _MEMBER if total is None else _KEY
        found = found if total is None else f"{{ {self._valued(writer, found, total)} }}"
        number = f"SELECT ?x (COUNT(DISTINCT {counted}) AS ?n) {{ {found} }} GROUP BY ?x"
        return f"{number} ORDER BY {direction}(?n) isLiteral(?x) {_BY_TEXT.format(_X)}{most}"

    def _aggregated(self, asked: Aggregated) -> Iterator[tuple[str, str]]:
        writer, key = SetWriter(self.graph), _KEY
        if isinstance(asked.by, ValueOf):
            # Adding 0 writes equal numbers alike, so that they are one.
            adds = asked.function in {"sum", "mean"}
            via = nodes_between(asked.by.path, "?via") if adds else ()
            value, order = ("(?order + 0e0 AS ?key)", "?order") if adds else ("?x ?key", key)
            valued = writer.valued(asked.of, asked.by, "?member", _X, order, via)
            found = f"SELECT DISTINCT ?member {' '.join(via)} {value} {{ {valued} }}"
        else:
            found = writer.measured(asked.of, asked.by, "?member", key)
        yield _about("count"), f"SELECT (COUNT(*) AS ?n) {{ {{ {found} }} }}"
        yield _about("of"), self._number(asked.of)
        yield _about("with"), _counted(f"{{ {found} }}", "?member")
        yield from self._any(asked.of, asked.by)
        if asked.function in {"sum", "mean"}:
            function = "SUM" if asked.function == "sum" else "AVG"
            yield _about(asked.function), f"SELECT ({function}({key}) AS ?m) {{ {{ {found} }} }}"
        else:
            direction = "ASC" if asked.function == "min" else "DESC"
            is_value = isinstance(asked.by, ValueOf)
            end, order = (_X, _BY_TEXT.format(_X)) if is_value else (f"({key} AS ?m)", "")
            if isinstance(asked.by, ValueOf) and asked.by.kind == "number" and asked.by.unit is None:
                # Numbers that are the same as doubles may differ in the digits beyond.
                order = f"{direction}({_X}) {order}"
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


def _totals(found: str, function: Function, order: str = "") -> str:
    """Return the query for what the rows of each `?x` come to: `?m` over `?n`, of the least and the greatest `?y`."""
    total = f"({FUNCTIONS[function]}({_KEY}) AS ?m)"
    number = f"SELECT ?x {total} (COUNT(*) AS ?n) {{ {{ {found} }} }} GROUP BY ?x{order}"
    if function not in _ENDS:
        return number
    ordered = order.partition(" LIMIT")[0]
    return f"SELECT DISTINCT ?x ?m ?n ?y {{ {{ {number} }} {{ {found} }} FILTER({_KEY} = ?m) }}{ordered}"


@dataclass(frozen=True, slots=True)
class Ways:
    """A query for what shows results.

    Args:
        text: Its rows are ways: the place `?w` of a result, and the statements that lead to it, `?h0 ?p0 ?t0` and on.
        steps: How many statements a way has, at most.
    """

    text: str
    steps: int


def ways(graph: Walked, claims: Mapping[Term, SetExpression]) -> Ways:
    """Return the query for one way to each of some results, given what each is in."""
    names, blocks, most = count(1), list[str](), 0
    for place, (result, of) in enumerate(claims.items()):
        writer = WayWriter(graph, names)
        found = writer.within(of, _X)
        if isinstance(result, Literal):
            # A literal in VALUES would not match one that the engine keeps in another form.
            text, language, _ = literal_key(result)
            found += f" FILTER(STR({_X}) = {writing.text(text)} && LCASE(LANG({_X})) = {writing.text(language)})"
        else:
            found = f"{writing.values(_X[1:], [result], graph.dialect)} {found}"
        most = max(most, writer.steps)
        blocks.append(f'{{ SELECT {_X} {_bound(writer.steps)} {{ {found} }} LIMIT 1 }} BIND("{place}" AS ?w)')
    return Ways(f"SELECT ?w {_bound(most)} {{ {writing.union(blocks)} }}", most)


def _bound(steps: int) -> str:
    return " ".join(f"?h{step} ?p{step} ?t{step}" for step in range(steps))
