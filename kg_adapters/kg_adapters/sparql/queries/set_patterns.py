"""Expressions over sets (`kg_adapters.algebra`) as SPARQL patterns."""

from dataclasses import dataclass
from functools import partial

from kg_adapters.algebra import (
    Best,
    Compares,
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
    Reached,
    SetExpression,
    Step,
    Union,
    ValueOf,
    Values,
)
from kg_adapters.sparql.queries import set_values, writing
from kg_adapters.sparql.queries.set_paths import PathWriter, alternatives
from kg_adapters.terms import Iri, Node


@dataclass
class SetWriter(PathWriter):
    """Writes the patterns of one query."""

    def within(self, of: SetExpression, name: str) -> str:
        """Return the pattern by which a variable is bound to what is in a set, if more than once each."""
        found: str
        match of:
            case Members(nodes):
                found = self._these(nodes, name)
            case Instances(owner, subclasses):
                found = self._instances(name, writing.node(owner, self.graph.dialect), subclasses=subclasses)
            case Reached(starts, path):
                found = f"{self.along(starts, path, name)}{self.is_node(path, name)}"
            case Values(starts, path):
                found = f"{self.along(starts, path, name)} FILTER(isLiteral({name}))"
            case Union(sets):
                found = self.either(partial(self.within, each, name) for each in sets)
            case Intersect(sets):
                found = " ".join(self.group(each, name) for each in sets)
            case Minus(sets):
                self.require_nesting()
                taken = (f"MINUS {{ {self._aside().within(each, name)} }}" for each in sets[1:])
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
        end = self.fresh()
        found = f"{self.group(of, name)} {self.counted(name, by.path, end)}"
        return f"SELECT {name} (COUNT(DISTINCT {end}) AS {key}) {{ {found} }} GROUP BY {name}"

    def valued(self, of: SetExpression, by: ValueOf, name: str, value: str, key: str) -> str:
        """Return the pattern of the members of a set, their values and what orders these."""
        walked = f"{self.group(of, name)} {self.walked(name, by.path, value)}"
        ordered = set_values.ordered(value, by.kind, key, self.fresh)
        return f"{walked} FILTER({set_values.is_of_kind(value, by.kind, by.unit)}) {ordered} FILTER(BOUND({key}))"

    def measured_best(self, best: Best, name: str, key: str) -> str:
        """Return the pattern that binds the best members of a set, and what each measures."""
        if self.telling:
            return self._told_best(best, name, key)
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

    def _told_best(self, best: Best, name: str, key: str) -> str:
        chosen = f"{{ SELECT DISTINCT {name} {{ {self._aside().measured_best(best, name, key)} }} }}"
        if isinstance(best.by, ValueOf):
            return f"{chosen} {self.valued(best.of, best.by, name, self.fresh(), key)}"
        return f"{chosen} {self.group(best.of, name)} {self.counted(name, best.by.path, self.fresh())}"

    def _kept(self, kept: Kept, name: str) -> str:
        of, condition = kept.of, kept.condition
        if isinstance(condition, Numbers):
            counted = self._aside().numbered(of, condition, name)
            return f"{{ {counted} }} {self.group(of, name)}" if self.telling else f"{{ {counted} }}"
        return f"{self.group(of, name)} {self._true(condition, name)}"

    def _true(self, condition: Has | Linked | Meets | Compares, name: str) -> str:
        """Return the pattern that a condition holds of a variable."""
        end = self.fresh()
        found: str
        match condition:
            case Has(path):
                walked = self.walked(name, path, end)
                found = walked if self.telling else f"FILTER EXISTS {{ {walked} }}"
            case Linked(path, Members((only,))) if isinstance(only, Iri) and not self.telling:
                found = self.walked(name, path, writing.iri(only))
            case Linked(path, to):
                found = f"{self.walked(name, path, end)} {self.group(to, end)}"
            case Meets(path, other):
                found = f"{self.walked(name, path, end)} {self.walked(name, other, end)}"
            case Compares(path, operator, value):
                found = f"{self.walked(name, path, end)} {set_values.compared(end, operator, value, self.fresh)}"
        return found

    def numbered(self, of: SetExpression, condition: Numbers, name: str) -> str:
        """Return the query for the members of a set from which a path reaches so many ends."""
        end = self.fresh()
        walked = self.counted(name, condition.path, end)
        ends = f"OPTIONAL {{ {walked} }}" if _holds_of_none(condition) else walked
        having = f"COUNT(DISTINCT {end}) {condition.operator} {condition.number}"
        return f"SELECT {name} {{ {self.group(of, name)} {ends} }} GROUP BY {name} HAVING ({having})"

    def _instances(self, name: str, owner: str, *, subclasses: bool) -> str:
        vocabulary = self.graph.vocabulary
        types = Hop(tuple(map(Step, vocabulary.types)))
        if not subclasses or not vocabulary.subclasses:
            return self.hop(name, types, owner)
        # In two patterns, since Virtuoso never ends a sequence of alternatives; and only the first of them is told.
        kind, wider = self.fresh(), Hop(tuple(map(Step, vocabulary.subclasses)))
        typed = self.hop(name, types, kind) if self.telling else f"{name} {alternatives(types)} {kind} ."
        return f"{typed} {kind} {alternatives(wider)}* {owner} ."

    def _these(self, nodes: tuple[Node, ...], name: str) -> str:
        if not nodes:
            self.require_nesting()
        return writing.values(name[1:], nodes, self.graph.dialect)

    def _aside(self) -> "SetWriter":
        """Return what writes on with the same names, and tells nothing."""
        return SetWriter(self.graph, names=self.names)


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
