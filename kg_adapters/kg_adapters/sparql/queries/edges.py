"""Queries about the edges around entities, each for any number of entities at once.

Their rows are those that `kg_adapters.sparql.rows` reads: `?e` an entity, `?d` what the row is about (`self`: the graph
mentions the entity; `all`: how many distinct neighbours it has; `out`, `in` and `value`: its facts), `?p` a relation,
`?n` a number, `?o` a neighbour or value, `?a` a label relation and `?label` the key of a label of what is new in the
row: the neighbour, or the relation where the row counts. Blank nodes that no other query can be about bring rows of
their own along, each as `?e`: all that they hold.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, pairwise
from typing import Final, NamedTuple, Self, TypeAlias
from typing import Literal as Choice

from kg_adapters.models import Direction, EdgeDirection
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.descriptions import TextChoice
from kg_adapters.terms import XSD, Attribute, Fact, Iri, Literal, Node

Side: TypeAlias = Choice["out", "value", "in"]
"""Where the far end of a fact stands: an edge's tail, a value, or an edge's head."""


class GroupKey(NamedTuple):
    """A direction, a relation, and whether it leads to values; groups sort as the protocol lists them."""

    inverse: bool
    relation: Iri
    literal: bool = False

    @classmethod
    def on(cls, side: Side, relation: Iri) -> Self:
        """Return the group of a relation on one side."""
        return cls(side == "in", relation, side == "value")

    @property
    def side(self) -> Side:
        """The side in words."""
        if self.inverse:
            return "in"
        return "value" if self.literal else "out"

    @property
    def direction(self) -> EdgeDirection:
        """The direction in words."""
        return "in" if self.inverse else "out"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which facts of an entity count: edges of a direction, values or none, over some relations (None for all)."""

    direction: Direction
    relations: frozenset[Iri] | None = None
    values: bool = False

    @property
    def edges(self) -> tuple[EdgeDirection, ...]:
        """The directions of edges one by one, outgoing first."""
        return ("out", "in") if self.direction == "both" else (self.direction,)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The sides of all that counts."""
        return (*self.edges, "value") if self.values and self.direction != "in" else self.edges

    @property
    def is_empty(self) -> bool:
        """Whether nothing can count."""
        return self.relations is not None and not self.relations


_AROUND: Final = Scope("both")


@dataclass(frozen=True, slots=True)
class GroupSpan:
    """The far ends of one group from the place `start` up to the place `stop`."""

    entity: Node
    group: GroupKey
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Which far ends are fetched with the counts of the groups.

    Args:
        group_size: All of the groups with at most so many.
        rows: But not more than so many edges, and so many values.
        sampled_rows: Of the larger groups together so many, those that sort first, and at least one of each.
        spans: Or exactly these, instead of all that.
    """

    group_size: int = 0
    rows: int = 0
    sampled_rows: int = 0
    spans: tuple[GroupSpan, ...] = ()


_LITERAL: Final = "FILTER(isLiteral(?{0}))"

_NO_LITERAL: Final = "FILTER(!isLiteral(?{0}))"

_WITHIN: Final = "FILTER(isIRI(?{0}) && STRSTARTS(STR(?{0}), {1}))"

COUNTED_APART: Final = 25
"""Up to how many entities are counted apart, where counting is bounded, so that a hub takes nothing from the others."""

NAMED_APART: Final = 12
"""Up to how many relations are asked for one by one."""

MOST_OPENED: Final = 200
"""Of how many blank nodes an answer includes the facts, at most."""

MOST_HELD_ROWS: Final = 5_000
"""How many rows these facts take, at most."""

_DECIMAL: Final = Iri(XSD + "decimal")

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class EdgeQueries:
    """Writes queries about edges.

    Args:
        dialect: The engine.
        texts: How labels are chosen.
        namespace: Only relations whose IRI starts so are edges; None for all.
        most_counted: How many edges of one direction are read, at most, to count those of a batch of entities;
            None for all. A few entities have equal shares of it. Where there are more edges, the counts are too small.
        as_head: Whether only entities with statements of their own are in the graph.
        entities: Only tails whose IRI starts so are neighbours; None for all that are no literals.
        blank_nodes: Whether the graph is known to have blank nodes: some engines take very long to look for their
            facts, even where there are none.
    """

    dialect: Dialect
    texts: TextChoice
    namespace: str | None = None
    most_counted: int | None = None
    as_head: bool = False
    entities: str | None = None
    blank_nodes: bool = True

    @property
    def whole_values(self) -> bool:
        """Whether all values of an entity come at once, uncounted."""
        return False

    @property
    def opens_blank_nodes(self) -> bool:
        """Whether answers include the facts of their blank nodes, since no other query can be about these."""
        named = self.dialect.blank_nodes is not None
        return self.blank_nodes and not named and self.namespace is None and self.entities is None

    @property
    def value_columns(self) -> str:
        """What the rows about values hold beside `?o`."""
        return ""

    def around(self, entities: Sequence[Node], scope: Scope, fill: Fill, *, labelled: bool) -> str:
        """Return the query for the groups of entities with their counts, and for some of their neighbours."""
        blocks, values = [self._mentioned(writing.values("e", entities, self.dialect))], list[str]()
        if not scope.is_empty:
            counted = scope.edges if self.whole_values else scope.sides
            blocks += (self._counts(entities, scope, side, fill) for side in counted)
            shown = [*self._filling(entities, scope, scope.edges, fill), *self._spans(fill.spans, scope)[0]]
            blocks += (*shown, *self._held(shown))
            values += self._values(entities, scope, fill)
        return self._rows(blocks, values, labelled=labelled)

    def spans(self, spans: Iterable[GroupSpan], scope: Scope, *, labelled: bool) -> str:
        """Return the query for parts of groups."""
        shown, values = self._spans(spans, scope)
        return self._rows([*shown, *self._held(shown)], values, labelled=labelled)

    def degrees(self, entities: Sequence[Node], scope: Scope) -> str:
        """Return the query for the groups of entities with their counts, and the numbers of distinct neighbours."""
        who = writing.values("e", entities, self.dialect)
        blocks = [self._mentioned(who)]
        if not scope.is_empty:
            blocks += (self._counts(entities, scope, side, Fill()) for side in scope.sides)
            blocks.append(f'{{ {self._neighbor_counts(entities, scope)} }} BIND("all" AS ?d)')
        return self._rows(blocks, [], labelled=False)

    def neighbor_counts(self, entities: Sequence[Node]) -> str:
        """Return the query for the numbers `?n` of distinct neighbours of entities `?e`.

        Where only so many edges are read, their number is `?m`, as `cut_short` takes it.
        """
        return self._neighbor_counts(entities, _AROUND, "" if self.most_counted is None else " (COUNT(?x) AS ?m)")

    def stated(self, facts: Sequence[Fact]) -> str:
        """Return the query for which of some facts there may be: their places as the texts `?n`, from 0.

        With that of an attribute come the values `?v` that may be its own, as they are stored.
        """
        stated = ((place, self._pattern(each)) for place, each in enumerate(facts))
        found = (f'{pattern} BIND("{place}" AS ?n)' for place, pattern in stated)
        return f"SELECT DISTINCT ?n ?v {{ {writing.union(found)} }}"

    def joined(self, source: Node, target: Node, hops: int, without: Collection[Iri], limit: int) -> str:
        """Return the query for simple paths between two nodes: rows `?p0`, `?x1`, `?p1` and so on, as they are walked.

        Of each way `?w` in which the edges may point there are at most `limit`: its bit 0 says that the first edge
        points back to the source, and so on.
        """
        inner = [f"?x{place}" for place in range(1, hops)]
        nodes = [writing.node(source, self.dialect), *inner, writing.node(target, self.dialect)]
        parts = [self._far(name[1:], "out") for name in inner]
        different = [f"{one} != {other}" for one, other in combinations(nodes, 2) if "?" in one[0] + other[0]]
        parts += [f"FILTER({' && '.join(different)})"] if different else []
        for place in range(hops):
            if without:
                parts.append(f"FILTER(?p{place} NOT IN ({', '.join(map(writing.iri, sorted(without)))}))")
            if self.namespace is not None:
                parts.append(f"FILTER(STRSTARTS(STR(?p{place}), {writing.text(self.namespace)}))")
        names = " ".join(f"?{kind}{place}" for place in range(hops) for kind in ("xp" if place else "p"))
        blocks: list[str] = []
        for way in range(2**hops):
            steps = [
                f"{there} ?p{place} {here} ." if way >> place & 1 else f"{here} ?p{place} {there} ."
                for place, (here, there) in enumerate(pairwise(nodes))
            ]
            found = " ".join((*steps, *parts))
            blocks.append(f"{{ SELECT {self._distinct()}{names} {{ {found} }} LIMIT {limit} }} BIND({way} AS ?w)")
        return f"SELECT ?w {names} {{ {writing.union(blocks)} }}"

    def may_hold(self, fact: Fact) -> bool:
        """Return whether a fact can be one of the graph: those of an edge lie in the namespaces of such."""
        if isinstance(fact, Attribute):
            return True
        in_namespace = self.namespace is None or fact.relation.value.startswith(self.namespace)
        return in_namespace and (self.entities is None or str(fact.tail).startswith(self.entities))

    def _pattern(self, fact: Fact) -> str:
        head, relation = writing.node(fact.head, self.dialect), writing.iri(fact.relation)
        if isinstance(fact, Attribute):
            return f"{head} {relation} ?v . FILTER({_may_be(fact.tail)})"
        return f"{head} {relation} {writing.node(fact.tail, self.dialect)} ."

    def _rows(self, blocks: Sequence[str], values: Sequence[str], *, labelled: bool) -> str:
        columns = "?e ?d ?p ?n ?o"
        if not labelled or not blocks:
            return f"SELECT {columns} {self.value_columns if values else ''} {{ {writing.union((*blocks, *values))} }}"
        labels = self.texts.pattern("t", self.texts.vocabulary.labels)
        chosen = f"SELECT {columns} ?a {self.texts.best('label')}"
        named = f"{chosen} {{ {{ {writing.union(blocks)} }} OPTIONAL {{ {labels} }} }} GROUP BY {columns} ?a"
        # Values have no labels, and would be grouped by all their text.
        all_columns = f"{columns} ?a ?label {self.value_columns}"
        return f"SELECT {all_columns} {{ {writing.union((f'{{ {named} }}', *values))} }}" if values else named

    def _filling(self, entities: Sequence[Node], scope: Scope, sides: Sequence[Side], fill: Fill) -> Iterator[str]:
        if fill.group_size and sides:
            small = f"<= {fill.group_size}"
            yield _taken((self._members(entities, scope, side, small) for side in sides), f"LIMIT {fill.rows}")
        if fill.sampled_rows and sides:
            large, order = f"> {fill.group_size}", self._order("o", values="value" in sides)
            found = (self._members(entities, scope, side, large) for side in sides)
            yield _taken(found, f"{order} LIMIT {fill.sampled_rows}")

    def _values(self, entities: Sequence[Node], scope: Scope, fill: Fill) -> Iterator[str]:
        yield from self._filling(entities, scope, ["value"] if "value" in scope.sides else [], fill)
        yield from self._spans(fill.spans, scope)[1]

    def _spans(self, spans: Iterable[GroupSpan], scope: Scope) -> tuple[list[str], list[str]]:
        """Return the blocks for parts of groups of edges, and those of values."""
        written: tuple[list[str], list[str]] = ([], [])
        for span in spans:
            written[span.group.literal].append(self._span(span, scope))
        return written

    def _held(self, shown: Sequence[str]) -> Iterator[str]:
        """Yield the block for what the blank nodes hold that other blocks show.

        The rows that count nothing are there for the labels of relations.
        """
        if shown and self.opens_blank_nodes:
            nodes = f"SELECT DISTINCT (?o AS ?b) {{ {writing.union(shown)} FILTER(isBlank(?o)) }} LIMIT {MOST_OPENED}"
            away, back, counted = "?b ?p ?x", "?x ?p ?b FILTER(?x != ?b)", "BIND(0 AS ?n) BIND(?p AS ?t)"
            rows = (
                f'{away} BIND(IF(isLiteral(?x), "value", "out") AS ?d) {counted}',
                f'{away} FILTER(!isLiteral(?x)) BIND("out" AS ?d) BIND(?x AS ?t)',
                f'{back} BIND("in" AS ?d) {counted}',
                f'{back} BIND("in" AS ?d) BIND(?x AS ?t)',
            )
            held = f"SELECT ?b ?d ?p ?n ?x ?t {{ {{ {nodes} }} {writing.union(rows)} }} LIMIT {MOST_HELD_ROWS}"
            yield f"{{ {held} }} BIND(?b AS ?e) BIND(?x AS ?o)"

    def _mentioned(self, who: str) -> str:
        exists = writing.mentioned("e", as_head=self.as_head)
        # In a query of its own: beside other patterns Virtuoso loses a filter on a single value.
        return f'{{ SELECT ?e {{ {who} FILTER({exists}) }} }} BIND("self" AS ?d) BIND(?e AS ?t)'

    def _neighbor_counts(self, entities: Sequence[Node], scope: Scope, read: str = "") -> str:
        sides = (self._looked_at(entities, scope, side, "FILTER(?x != ?e)") for side in scope.sides)
        return f"SELECT ?e (COUNT(DISTINCT ?x) AS ?n){read} {{ {writing.union(sides)} }} GROUP BY ?e"

    def _counts(self, entities: Sequence[Node], scope: Scope, side: Side, fill: Fill) -> str:
        sample = "(SAMPLE(?x) AS ?o)" if fill.sampled_rows else ""
        edges = self._looked_at(entities, scope, side)
        counts = f"SELECT ?e ?p ({self._number('x')} AS ?n) {sample} {{ {edges} }} GROUP BY ?e ?p"
        return f'{{ {counts} }} BIND("{side}" AS ?d) BIND(?p AS ?t)'

    def _members(self, entities: Sequence[Node], scope: Scope, side: Side, size: str) -> str:
        found = (self._members_over(entities, each, side, size) for each in _one_by_one(scope, side))
        return f'{_any_of(found)} BIND("{side}" AS ?d)'

    def _members_over(self, entities: Sequence[Node], scope: Scope, side: Side, size: str) -> str:
        who = writing.values("e", entities, self.dialect)
        groups = f"SELECT ?e ?p {{ {self._looked_at(entities, scope, side)} }} GROUP BY ?e ?p"
        edges = self._edges(scope, side, "o", bound=True)
        # Engines that join in the order of the text then look up the edges of these entities, and not all edges.
        return f"{who} {edges} {{ {groups} HAVING ({self._number('x')} {size}) }}"

    def _looked_at(self, entities: Sequence[Node], scope: Scope, side: Side, more: str = "") -> str:
        """Return the pattern for the edges that are counted: `?e`, `?p` and the far node `?x`."""
        if self.most_counted is None:
            return self._all_edges(entities, scope, side, more)
        parts = _counted_apart(entities)
        window = f"LIMIT {_share(self.most_counted, parts)}"
        found = (self._all_edges(part, scope, side, more) for part in parts)
        return writing.union(f"{{ SELECT ?e ?p ?x {{ {each} }} {window} }}" for each in found)

    def _all_edges(self, entities: Sequence[Node], scope: Scope, side: Side, more: str) -> str:
        who = writing.values("e", entities, self.dialect)
        return _any_of(f"{who} {self._edges(each, side, 'x')} {more}" for each in _one_by_one(scope, side))

    def _span(self, span: GroupSpan, scope: Scope) -> str:
        entity, relation = writing.node(span.entity, self.dialect), writing.iri(span.group.relation)
        if span.group.inverse:
            found = f"?o {relation} {entity}" + (f" FILTER(?o != {entity})" if scope.direction == "both" else "")
        else:
            found = f"{entity} {relation} ?o {self._far('o', span.group.side)}"
        window = f"LIMIT {span.stop - span.start}" + (f" OFFSET {span.start}" if span.start else "")
        order = self._order("o", values=span.group.literal)
        chosen = f"{{ SELECT {self._distinct()}?o {{ {found} }} {order} {window} }}"
        named = "" if span.group.literal else " BIND(?o AS ?t)"
        return f'{chosen} BIND({entity} AS ?e) BIND("{span.group.side}" AS ?d) BIND({relation} AS ?p){named}'

    def _edges(self, scope: Scope, side: Side, far: str, *, bound: bool = False) -> str:
        return " ".join(self._edge_parts(scope, side, far, bound=bound))

    def _edge_parts(self, scope: Scope, side: Side, far: str, *, bound: bool) -> Iterator[str]:
        """Yield the pattern of edges; `bound` says that `?p` has its values from elsewhere."""
        relations = sorted(scope.relations or ())
        named = writing.iri(relations[0]) if len(relations) == 1 else "?p"
        if len(relations) > 1 and not bound:
            yield writing.values("p", relations, self.dialect)
        yield f"?{far} {named} ?e ." if side == "in" else f"?e {named} ?{far} ."
        if len(relations) == 1 and not bound:
            yield f"BIND({named} AS ?p)"
        if side != "in":
            yield self._far(far, side)
        elif scope.direction == "both":
            yield f"FILTER(?{far} != ?e)"
        if side == "value" and scope.relations is None:
            yield f"FILTER(?p NOT IN ({', '.join(map(writing.iri, sorted(self.texts.vocabulary.texts)))}))"
        if side != "value" and self.namespace is not None:
            yield f"FILTER(STRSTARTS(STR(?p), {writing.text(self.namespace)}))"

    def _far(self, name: str, side: Side) -> str:
        if side == "value":
            return _LITERAL.format(name)
        if self.entities is None:
            return _NO_LITERAL.format(name)
        return _WITHIN.format(name, writing.text(self.entities))

    def _number(self, far: str) -> str:
        return f"COUNT({self._distinct()}?{far})"

    def _distinct(self) -> str:
        return "DISTINCT " if self.dialect.merges_graphs else ""

    def _order(self, far: str, *, values: bool = False) -> str:
        # By text, since engines sort IRIs themselves by numbers of their own.
        if values:
            return f"ORDER BY STR(?{far}) LANG(?{far}) STR(DATATYPE(?{far}))"
        return f"ORDER BY STR(?{far})" if self.dialect.orders_hubs else ""


def cut_short(most_counted: int | None, entities: Sequence[Node], read: Mapping[Node, int]) -> frozenset[Node]:
    """Return which entities of a batch may have more edges, by how many of each were read to count them."""
    if most_counted is None:
        return frozenset()
    parts = _counted_apart(entities)
    full = (part for part in parts if sum(read.get(each, 0) for each in part) >= _share(most_counted, parts))
    return frozenset(chain.from_iterable(full))


def _counted_apart(entities: Sequence[Node]) -> Sequence[Sequence[Node]]:
    """Return the parts of a batch that are counted each within bounds of its own."""
    return [[entity] for entity in entities] if len(entities) <= COUNTED_APART else [entities]


def _share(most_counted: int, parts: Sequence[Sequence[Node]]) -> int:
    """Return how many edges of one direction are read to count those of one part of a batch."""
    return max(1, most_counted // max(1, len(parts)))


def _one_by_one(scope: Scope, side: Side) -> Sequence[Scope]:
    """Return a scope for each of a few relations: engines plan patterns with a constant between best.

    Values are few for each entity, and Virtuoso cannot read such patterns of them.
    """
    if scope.relations is None or len(scope.relations) > NAMED_APART or side == "value":
        return [scope]
    return [replace(scope, relations=frozenset({relation})) for relation in sorted(scope.relations)]


def _any_of(blocks: Iterable[str]) -> str:
    first, *others = blocks
    return writing.union((first, *others)) if others else first


def _taken(found: Iterable[str], window: str) -> str:
    return f"{{ SELECT ?e ?d ?p ?o {{ {writing.union(found)} }} {window} }} BIND(?o AS ?t)"


def _may_be(value: Literal) -> str:
    """Return the condition that `?v` may be a value, as an engine keeps it; what it is will be compared."""
    if writing.readable(value.value) != value.value:
        return "isLiteral(?v)"
    same = f"STR(?v) = {writing.text(value.value)}"
    if value.datatype.value.startswith(XSD) and _NUMBER.fullmatch(value.value):
        # Engines keep 1.0 and 1 each in a way of its own.
        same = f"({same} || ?v = {writing.literal(Literal(value.value, _DECIMAL))})"
    return f"isLiteral(?v) && {same}"
