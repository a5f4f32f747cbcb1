"""Paths and sets of `kg_adapters.algebra` as SPARQL patterns."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Final

from kg_adapters.algebra import (
    Best,
    ComparedKind,
    Compares,
    DatePart,
    Function,
    Has,
    Hop,
    HopPath,
    Instances,
    Intersect,
    Kept,
    Linked,
    Measure,
    Meets,
    Members,
    Minus,
    Numbers,
    Operator,
    Outranks,
    Reached,
    SetExpression,
    Step,
    Timed,
    TotalOf,
    Union,
    ValueOf,
    Values,
    counts_values,
)
from kg_adapters.errors import Unsupported
from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import dates, writing
from kg_adapters.terms import XSD, Iri, Literal, Node
from kg_adapters.values import PARTS_BEHIND_YEAR, compared_kind_of, unit_of

_DOUBLE: Final = writing.iri(Iri(XSD + "double"))

_UNBOUNDED: Final = ", ".join(
    writing.iri(Iri(XSD + name))
    for name in (
        *("decimal", "integer", "unsignedLong"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
    )
)
"""The datatypes of numbers that engines may be too small for."""

_PLAIN: Final = re.compile(r"\d+(?:\.\d+)?")

_MOST_PLAIN: Final = 18
"""How many characters a number may have for every engine to read it as it is."""

FUNCTIONS: Final[dict[Function, str]] = {"sum": "SUM", "mean": "AVG", "min": "MIN", "max": "MAX", "count": "COUNT"}

NUMBER: Final = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})?$"
"""How quantities are written; engines differ on exponents of more digits."""


def is_of_kind(value: str, kind: ComparedKind, unit: Iri | None, dialect: Dialect) -> str:
    """Return the condition that a variable is a number, a quantity of a unit, or a date."""
    if unit is not None:
        return f"DATATYPE({value}) = {writing.iri(unit)} && REGEX(STR({value}), {writing.text(NUMBER)})"
    if kind == "number":
        held = f"isNumeric({value})"
        return held if dialect.holds_numbers else f"({held} || DATATYPE({value}) IN ({_UNBOUNDED}))"
    return dates.is_date(value)


def ordered(value: str, kind: ComparedKind, key: str, fresh: Callable[[], str]) -> str:
    """Return the pattern that binds a key by the size of which values of a kind are ordered."""
    bound = f"BIND({_DOUBLE}(STR({value})) AS {key})"
    return bound if kind == "number" else dates.ordered(value, key, fresh)


def compared(value: str, condition: Compares, dialect: Dialect, fresh: Callable[[], str]) -> str:
    """Return the pattern that a variable stands in the relation of a condition to its given value.

    Raises:
        InvalidRequest: The value is invalid for its datatype, or cannot be compared like this.
    """
    operator, given = condition.operator, condition.value
    kind = compared_kind_of(given, operator)
    if kind is None:
        return f"FILTER({_as_text(value, operator, given)})"
    if kind == "date":
        return dates.compared(value, operator, given.value, fresh, possibly=condition.possibly)
    unit = unit_of(given)
    number = value if unit is None and dialect.holds_numbers else f"{_DOUBLE}(STR({value}))"
    return f"FILTER({is_of_kind(value, kind, unit, dialect)} && {number} {operator} {_number(given)})"


def _number(given: Literal) -> str:
    plain = len(given.value) <= _MOST_PLAIN and _PLAIN.fullmatch(given.value)
    return given.value if plain else f"{_DOUBLE}({writing.text(given.value)})"


def _as_text(value: str, operator: Operator, given: Literal) -> str:
    text, wanted = f"LCASE(STR({value}))", writing.text(given.value.lower())
    compares = f"CONTAINS({text}, {wanted})" if operator == "~" else f"{text} {operator} {wanted}"
    return f"isLiteral({value}) && {compares}"


@dataclass(frozen=True, slots=True)
class Walked:
    """What of a graph is walked.

    Args:
        dialect: The engine.
        vocabulary: The relations that type and name.
        namespace: Only relations whose IRI starts so are walked where none is named; None for all.
        entities: Only what has an IRI that starts so is a node; None for all that are no literals.
    """

    dialect: Dialect
    vocabulary: Vocabulary
    namespace: str | None = None
    entities: str | None = None


@dataclass
class SetWriter:
    """Writes the paths and sets of one query, each variable of its own name.

    Args:
        graph: What is walked.
        names: The numbers of variables.
    """

    graph: Walked
    names: Iterator[int] = field(default_factory=lambda: count(1))

    def require_nesting(self) -> None:
        """Refuse what the engine would answer wrongly.

        Raises:
            Unsupported: It would.
        """
        if not self.graph.dialect.nests_sets:
            raise Unsupported(f"{self.graph.dialect.name} does not answer every such query rightly.")

    def fresh(self) -> str:
        """Return a new variable."""
        return f"?v{next(self.names)}"

    def walked(self, start: str, path: HopPath, end: str, between: Sequence[str] = ()) -> str:
        """Return the pattern of a path, which ends in nodes and values.

        Args:
            start: Where it starts.
            path: The path.
            end: The variable of its ends.
            between: The variables of the nodes between, by default new ones.
        """
        stops = [start, *(between or (self.fresh() for _ in path.hops[1:])), end]
        hops = zip(pairwise(stops), path.hops, strict=True)
        written = [self.hop(here, hop, there) for (here, there), hop in hops]
        for place, (hop, stop) in enumerate(zip(path.hops[1:], stops[1:], strict=False)):
            if not _only(hop, "out"):
                # What a hop starts from must be no value, which a triple with it as its tail would not rule out.
                written[place] += self.is_node(HopPath((path.hops[place],)), stop)
        return " ".join(written)

    def counted(self, start: str, path: HopPath, end: str) -> str:
        """Return the pattern of a path, which ends in what `NumberOf` counts."""
        return self.walked(start, path, end) + ("" if counts_values(path) else self.is_node(path, end))

    def is_node(self, path: HopPath, end: str) -> str:
        """Return the condition that what a path ends in is a node, unless it can be nothing else."""
        if self.graph.entities is not None:
            return f" FILTER(isIRI({end}) && STRSTARTS(STR({end}), {writing.text(self.graph.entities)}))"
        return "" if _only(path.hops[-1], "in") else f" FILTER(!isLiteral({end}))"

    def hop(self, here: str, hop: Hop, there: str) -> str:
        """Return the pattern of one hop."""
        if hop.repeated:
            self.require_nesting()
            return f"{here} {alternatives(hop)}+ {there} ."
        return either(pattern for *_, pattern in self.edges(here, hop, there))

    def edges(self, here: str, hop: Hop, there: str) -> Iterator[tuple[str, str, str, str]]:
        """Yield head, relation and tail of each edge that a hop may walk, and its pattern."""
        for step in hop.steps or ():
            head, tail = (here, there) if step.direction == "out" else (there, here)
            relation = writing.iri(step.relation)
            yield head, relation, tail, f"{head} {relation} {tail} ."
        for head, tail in ((here, there), (there, here)) if hop.steps is None else ():
            relation = self.fresh()
            yield head, relation, tail, f"{head} {relation} {tail} .{self._is_walked(relation, tail, there)}"

    def _is_walked(self, relation: str, tail: str, far: str) -> str:
        """Return the condition that an edge over any relation counts; `tail` may be a value where it is the far end."""
        found: list[str] = []
        if self.graph.namespace is not None:
            found.append(f"STRSTARTS(STR({relation}), {writing.text(self.graph.namespace)})")
        if tail == far:
            texts = ", ".join(map(writing.iri, sorted(self.graph.vocabulary.texts)))
            found.append(f"!(isLiteral({tail}) && {relation} IN ({texts}))")
        return f" FILTER({' && '.join(found)})" if found else ""

    def within(self, of: SetExpression, name: str) -> str:
        """Return the pattern by which a variable is bound to what is in a set, if more than once each."""
        found: str
        match of:
            case Members(nodes):
                found = self._these(nodes, name)
            case Instances():
                found = self._instances(name, of)
            case Reached(starts, path):
                found = f"{self.along(starts, path, name)}{self.is_node(path, name)}"
            case Values(starts, path):
                found = f"{self.along(starts, path, name)} FILTER(isLiteral({name}))"
            case Union(sets):
                found = writing.union(self.within(each, name) for each in sets)
            case Intersect(sets):
                found = " ".join(self.group(each, name) for each in sets)
            case Minus(sets):
                self.require_nesting()
                taken = (f"MINUS {{ {self.within(each, name)} }}" for each in sets[1:])
                found = " ".join((self.group(sets[0], name), *taken))
            case Kept():
                found = self._kept(of, name)
            case Best():
                found = self.measured_best(of, name, self.fresh())
        return found

    def group(self, of: SetExpression, name: str) -> str:
        """Return the pattern of a set so that it can stand beside others."""
        pattern = self.within(of, name)
        return f"{{ {pattern} }}" if isinstance(of, Union | Minus) else pattern

    def along(self, of: SetExpression, path: HopPath, end: str) -> str:
        """Return the pattern from the members of a set to what a path reaches from them."""
        if isinstance(of, Members) and len(of.nodes) == 1:
            return self.walked(writing.node(of.nodes[0], self.graph.dialect), path, end)
        start = self.fresh()
        return f"{self.group(of, start)} {self.walked(start, path, end)}"

    def measured(self, of: SetExpression, by: Measure, name: str, key: str) -> str:
        """Return the query for pairs of a member of a set and what it measures; several for several values."""
        if isinstance(by, ValueOf):
            value = self.fresh()
            return f"SELECT DISTINCT {name} {value} {key} {{ {self.valued(of, by, name, value, key)} }}"
        if isinstance(by, TotalOf):
            each = self.fresh()
            found = self.added(self.group(of, name), by, name, name, each)
            return f"SELECT {name} ({FUNCTIONS[by.function]}({each}) AS {key}) {{ {{ {found} }} }} GROUP BY {name}"
        end = self.fresh()
        found = f"{self.group(of, name)} {self.counted(name, by.path, end)}"
        return f"SELECT {name} (COUNT(DISTINCT {end}) AS {key}) {{ {found} }} GROUP BY {name}"

    def added(self, members: str, total: TotalOf, name: str, about: str, key: str) -> str:
        """Return the query for what is taken together: the values of members, once for each way.

        Args:
            members: The pattern of the members.
            total: What of them is taken together.
            name: The variable of the members.
            about: Further variables that tell rows apart.
            key: The variable of what orders a value; for the least and the greatest the value itself is `?y`.
        """
        by, via = total.by, nodes_between(total.path, f"{self.fresh()}_")
        told = " ".join(dict.fromkeys((*about.split(), name, *via)))
        if total.function == "count":
            walked = self.walked(name, by.path, key, via)
            return f"SELECT DISTINCT {told} {key} {{ {members} {walked} FILTER(isLiteral({key})) }}"
        if total.function in {"min", "max"}:
            return f"SELECT DISTINCT {told} ?y {key} {{ {members} {self._measured_by(by, name, '?y', key, via)} }}"
        # Adding 0 writes equal numbers alike, so that they are one.
        order = self.fresh()
        found = self._measured_by(by, name, self.fresh(), order, via)
        return f"SELECT DISTINCT {told} ({order} + 0e0 AS {key}) {{ {members} {found} }}"

    def unfit(self, name: str, by: ValueOf | TotalOf) -> str:
        """Return the pattern that a path leads from a variable to what does not measure it."""
        end, value = self.fresh(), by.by if isinstance(by, TotalOf) else by
        fits = f"isLiteral({end})"
        if isinstance(by, ValueOf) or by.function != "count":
            fits += f' && {is_of_kind(end, value.kind, value.unit, self.graph.dialect)} && STR({end}) != "NaN"'
        return f"{self.walked(name, by.path, end)} FILTER(!({fits}))"

    def up_to(self, date: str, part: DatePart, name: str) -> str:
        """Return the pattern that binds the text of a date up to a part, as `values.date_up_to` does."""
        behind = ""
        for _ in range(PARTS_BEHIND_YEAR[part]):
            behind = f"(-[0-9][0-9]{behind})?"
        text = f'REPLACE({dates.without_zone(date)}, "^(-?[0-9]+{behind}).*$", "$1")'
        return f"FILTER({is_of_kind(date, 'date', None, self.graph.dialect)}) BIND({text} AS {name})"

    def valued(
        self, of: SetExpression, by: ValueOf, name: str, value: str, key: str, between: Sequence[str] = ()
    ) -> str:
        """Return the pattern of the members of a set, their values and what orders these; see `walked`."""
        return f"{self.group(of, name)} {self._measured_by(by, name, value, key, between)}"

    def _measured_by(self, by: ValueOf, name: str, value: str, key: str, between: Sequence[str] = ()) -> str:
        walked = self.walked(name, by.path, value, between)
        bound = ordered(value, by.kind, key, self.fresh)
        fits = is_of_kind(value, by.kind, by.unit, self.graph.dialect)
        # What has no key, or one that is not a number, is neither.
        return f"{walked} FILTER({fits}) {bound} FILTER({key} >= 0 || {key} < 0)"

    def measured_best(self, best: Best, name: str, key: str) -> str:
        """Return the pattern that binds the best members of a set, and what each measures."""
        function, order = ("MIN", "ASC") if best.lowest else ("MAX", "DESC")
        last, other, others_key = self.fresh(), self.fresh(), self.fresh()
        mine = self._extreme(best, function, name, key)
        others = f"{self._extreme(best, function, other, others_key)} ORDER BY {order}({others_key}) LIMIT {best.n}"
        bound = f"SELECT ({'MAX' if best.lowest else 'MIN'}({others_key}) AS {last}) {{ {{ {others} }} }}"
        return f"{{ {mine} }} {{ {bound} }} FILTER({key} {'<=' if best.lowest else '>='} {last})"

    def _extreme(self, best: Best, function: str, name: str, key: str) -> str:
        """Return the query for the members of a set with the best of what each measures."""
        if not isinstance(best.by, ValueOf):
            return self.measured(best.of, best.by, name, key)
        each = self.fresh()
        found = self.valued(best.of, best.by, name, self.fresh(), each)
        return f"SELECT {name} ({function}({each}) AS {key}) {{ {found} }} GROUP BY {name}"

    def _kept(self, kept: Kept, name: str) -> str:
        of, condition = kept.of, kept.condition
        if isinstance(condition, Numbers):
            return f"{{ {self.numbered(of, condition, name)} }}"
        return f"{self.group(of, name)} {self._true(condition, name)}"

    def _true(self, condition: Has | Linked | Meets | Compares | Outranks | Timed, name: str) -> str:
        """Return the pattern that a condition holds of a variable."""
        end = self.fresh()
        found: str
        match condition:
            case Has(path):
                found = f"FILTER EXISTS {{ {self.walked(name, path, end)} }}"
            case Linked(path, Members((only,))) if isinstance(only, Iri):
                found = self.walked(name, path, writing.iri(only))
            case Linked(path, to):
                found = f"{self.walked(name, path, end)} {self.group(to, end)}"
            case Meets(path, other):
                found = f"{self.walked(name, path, end)} {self.walked(name, other, end)}"
            case Outranks(by, other, operator):
                key, against = self.fresh(), self.fresh()
                both = (
                    f"{self._measured_by(by, name, end, key)} {self._measured_by(other, name, self.fresh(), against)}"
                )
                found = f"{both} FILTER({key} {operator} {against})"
            case Compares(path):
                found = f"{self.walked(name, path, end)} {compared(end, condition, self.graph.dialect, self.fresh)}"
            case Timed(path, zones):
                found = f"{self.walked(name, path, end)} FILTER({dates.is_timed(end, zones)})"
        return found

    def numbered(self, of: SetExpression, condition: Numbers, name: str) -> str:
        """Return the query for the members of a set from which a path reaches so many ends."""
        end = self.fresh()
        walked = self.counted(name, condition.path, end)
        ends = f"OPTIONAL {{ {walked} }}" if _holds_of_none(condition) else walked
        having = f"COUNT(DISTINCT {end}) {condition.operator} {condition.number}"
        return f"SELECT {name} {{ {self.group(of, name)} {ends} }} GROUP BY {name} HAVING ({having})"

    def _instances(self, name: str, of: Instances) -> str:
        owner, types = writing.node(of.owner, self.graph.dialect), self.types
        if not of.subclasses or not self.graph.vocabulary.subclasses:
            return self.hop(name, types, owner)
        # In two patterns, since Virtuoso never ends a sequence of alternatives.
        kind = self.fresh()
        return f"{name} {alternatives(types)} {kind} . {self.below(kind, of)}"

    @property
    def types(self) -> Hop:
        """The hop from a node to its classes."""
        return Hop(tuple(map(Step, self.graph.vocabulary.types)))

    def below(self, kind: str, of: Instances) -> str:
        """Return the pattern that a class has all its instances among those."""
        owner, wider = writing.node(of.owner, self.graph.dialect), self.graph.vocabulary.subclasses
        if not of.subclasses or not wider:
            return f"FILTER({kind} = {owner})"
        return f"{kind} {alternatives(Hop(tuple(map(Step, wider))))}* {owner} ."

    def _these(self, nodes: tuple[Node, ...], name: str) -> str:
        if not nodes:
            self.require_nesting()
        return writing.values(name[1:], nodes, self.graph.dialect)


def _holds_of_none(condition: Numbers) -> bool:
    number = condition.number
    match condition.operator:
        case "=":
            return number == 0
        case "!=":
            return number != 0
        case "<":
            return number > 0
        case "<=":
            return number >= 0
        case ">":
            return number < 0
        case ">=" | "~":
            return number <= 0


def either(patterns: Iterable[str]) -> str:
    """Return the pattern that any of some patterns matches."""
    written = list(patterns)
    return writing.union(written) if len(written) > 1 else written[0]


def nodes_between(path: HopPath, start: str) -> tuple[str, ...]:
    """Return variables for the nodes between the ends of a path, which tell its ways apart.

    Args:
        path: The path; none where its last hop is repeated.
        start: What their names begin with.
    """
    return () if path.hops[-1].repeated else tuple(f"{start}{place}" for place in range(1, len(path.hops)))


def _only(hop: Hop, direction: str) -> bool:
    return hop.steps is not None and all(step.direction == direction for step in hop.steps)


def alternatives(hop: Hop) -> str:
    """Return the alternatives of a hop as a property path."""
    steps = hop.steps or ()
    written = "|".join(("^" if step.direction == "in" else "") + writing.iri(step.relation) for step in steps)
    return written if len(steps) == 1 and not written.startswith("^") else f"({written})"
