"""Queries about the edges around entities, each for any number of entities at once.

Their rows are those that `kg_adapters.sparql.rows` reads: `?e` an entity, `?d` what the row is about (`self`: the graph
mentions the entity; `all`: how many distinct neighbours it has; `out` and `in`: its edges), `?p` a relation, `?n` a
number, `?o` a neighbour, `?a` a label relation and `?label` the key of a label of what is new in the row: the
neighbour, or the relation where the row counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kg_adapters.models import Direction, EdgeDirection
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.queries import writing
from kg_adapters.sparql.queries.naming import TextChoice
from kg_adapters.terms import Attribute, Fact, Iri, Node

_NO_LITERAL: Final = "FILTER(!isLiteral(?{0}))"
_WITHIN: Final = "FILTER(isIRI(?{0}) && STRSTARTS(STR(?{0}), {1}))"
COUNTED_APART: Final = 25
"""Up to how many entities are counted apart, where counting is bounded, so that a hub takes nothing from the others."""


NAMED_APART: Final = 12
"""Up to how many relations are asked for one by one."""


class Group(NamedTuple):
    """A direction and a relation; groups sort as the protocol lists them."""

    inverse: bool
    relation: Iri

    @property
    def side(self) -> EdgeDirection:
        """The direction in words."""
        return "in" if self.inverse else "out"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which edges of an entity count: their direction, and their relations (None for all)."""

    direction: Direction
    relations: frozenset[Iri] | None = None

    @property
    def sides(self) -> tuple[EdgeDirection, ...]:
        """The directions one by one, outgoing first."""
        return ("out", "in") if self.direction == "both" else (self.direction,)

    @property
    def is_empty(self) -> bool:
        """Whether no edge can count."""
        return self.relations is not None and not self.relations


@dataclass(frozen=True, slots=True)
class Span:
    """The neighbours of one group from the place `start` up to the place `stop`."""

    entity: Node
    group: Group
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Which neighbours come along with the counts of the groups.

    Args:
        group_size: All of the groups with at most so many.
        rows: But not more than so many in all.
        sampled_rows: Of the larger groups together so many, those that sort first, and at least one of each.
        spans: Or exactly these, instead of all that.
    """

    group_size: int = 0
    rows: int = 0
    sampled_rows: int = 0
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeQueries:
    """Writes queries about edges.

    Args:
        dialect: The engine.
        texts: How labels are chosen.
        namespace: Only relations whose IRI starts so are edges; None for all.
        most_counted: How many edges of one direction are looked at, at most, to count those of a batch of entities;
            None for all. A few entities have equal shares of it. Where there are more edges, the counts are too small.
        as_head: Whether only entities that the graph says something about are in it.
        entities: Only tails whose IRI starts so are neighbours; None for all that are no literals.
    """

    dialect: Dialect
    texts: TextChoice
    namespace: str | None = None
    most_counted: int | None = None
    as_head: bool = False
    entities: str | None = None

    def around(self, entities: Sequence[Node], scope: Scope, fill: Fill, *, labelled: bool) -> str:
        """Return the query for the groups of entities with their counts, and for some of their neighbours."""
        who = writing.values("e", entities, self.dialect)
        blocks = [self._mentioned(who)]
        if not scope.is_empty:
            blocks += (self._counts(entities, scope, side, fill) for side in scope.sides)
            if fill.group_size:
                small = f"<= {fill.group_size}"
                found = writing.union(self._members(entities, scope, side, small) for side in scope.sides)
                blocks.append(_taken(found, f"LIMIT {fill.rows}"))
            if fill.sampled_rows:
                large = f"> {fill.group_size}"
                found = writing.union(self._members(entities, scope, side, large) for side in scope.sides)
                blocks.append(_taken(found, f"{self._order('o')} LIMIT {fill.sampled_rows}"))
            blocks += (self._span(span, scope) for span in fill.spans)
        return self._rows(blocks, labelled=labelled)

    def spans(self, spans: Iterable[Span], scope: Scope, *, labelled: bool) -> str:
        """Return the query for parts of groups."""
        return self._rows([self._span(span, scope) for span in spans], labelled=labelled)

    def degrees(self, entities: Sequence[Node], scope: Scope) -> str:
        """Return the query for the groups of entities with their counts, and the numbers of distinct neighbours."""
        who = writing.values("e", entities, self.dialect)
        blocks = [self._mentioned(who)]
        if not scope.is_empty:
            blocks += (self._counts(entities, scope, side, Fill()) for side in scope.sides)
            sides = (self._looked_at(entities, scope, side, "FILTER(?x != ?e)") for side in scope.sides)
            total = f"SELECT ?e (COUNT(DISTINCT ?x) AS ?n) {{ {writing.union(sides)} }} GROUP BY ?e"
            blocks.append(f'{{ {total} }} BIND("all" AS ?d)')
        return self._rows(blocks, labelled=False)

    def stated(self, facts: Sequence[Fact]) -> str:
        """Return the query for which of some facts there are: their places as the texts `?n`, from 0."""
        stated = ((place, self._pattern(each)) for place, each in enumerate(facts))
        found = (f'{pattern} BIND("{place}" AS ?n)' for place, pattern in stated)
        return f"SELECT DISTINCT ?n {{ {writing.union(found)} }}"

    def may_hold(self, fact: Fact) -> bool:
        """Say whether a fact can be one of the graph: its relation and tail lie in the namespaces of such."""
        in_namespace = self.namespace is None or fact.relation.value.startswith(self.namespace)
        is_end = isinstance(fact, Attribute) or self.entities is None or str(fact.tail).startswith(self.entities)
        return in_namespace and is_end

    def _pattern(self, fact: Fact) -> str:
        head = writing.node(fact.head, self.dialect)
        tail = writing.literal(fact.tail) if isinstance(fact, Attribute) else writing.node(fact.tail, self.dialect)
        return f"{head} {writing.iri(fact.relation)} {tail} ."

    def _rows(self, blocks: Sequence[str], *, labelled: bool) -> str:
        columns, found = "?e ?d ?p ?n ?o", writing.union(blocks)
        if not labelled:
            return f"SELECT {columns} {{ {found} }}"
        labels = self.texts.pattern("t", self.texts.vocabulary.labels)
        chosen = f"SELECT {columns} ?a {self.texts.best('label')}"
        return f"{chosen} {{ {{ {found} }} OPTIONAL {{ {labels} }} }} GROUP BY {columns} ?a"

    def _mentioned(self, who: str) -> str:
        exists = writing.mentioned("e", as_head=self.as_head)
        # In a query of its own: beside other patterns Virtuoso loses a filter on a single value.
        return f'{{ SELECT ?e {{ {who} FILTER({exists}) }} }} BIND("self" AS ?d) BIND(?e AS ?t)'

    def _counts(self, entities: Sequence[Node], scope: Scope, side: EdgeDirection, fill: Fill) -> str:
        sample = "(SAMPLE(?x) AS ?o)" if fill.sampled_rows else ""
        edges = self._looked_at(entities, scope, side)
        counts = f"SELECT ?e ?p ({self._number('x')} AS ?n) {sample} {{ {edges} }} GROUP BY ?e ?p"
        return f'{{ {counts} }} BIND("{side}" AS ?d) BIND(?p AS ?t)'

    def _members(self, entities: Sequence[Node], scope: Scope, side: EdgeDirection, size: str) -> str:
        found = (self._members_over(entities, each, side, size) for each in _one_by_one(scope))
        return f'{_any_of(found)} BIND("{side}" AS ?d)'

    def _members_over(self, entities: Sequence[Node], scope: Scope, side: EdgeDirection, size: str) -> str:
        who = writing.values("e", entities, self.dialect)
        groups = f"SELECT ?e ?p {{ {self._looked_at(entities, scope, side)} }} GROUP BY ?e ?p"
        edges = self._edges(scope, side, "o", bound=True)
        return f"{{ {groups} HAVING ({self._number('x')} {size}) }} {who} {edges}"

    def _looked_at(self, entities: Sequence[Node], scope: Scope, side: EdgeDirection, more: str = "") -> str:
        """Return the pattern for the edges that are counted: `?e`, `?p` and the far node `?x`."""
        if self.most_counted is None:
            return self._all_edges(entities, scope, side, more)
        parts = counted_apart(entities)
        window = f"LIMIT {max(1, self.most_counted // len(parts))}"
        found = (self._all_edges(part, scope, side, more) for part in parts)
        return writing.union(f"{{ SELECT ?e ?p ?x {{ {each} }} {window} }}" for each in found)

    def _all_edges(self, entities: Sequence[Node], scope: Scope, side: EdgeDirection, more: str) -> str:
        who = writing.values("e", entities, self.dialect)
        return _any_of(f"{who} {self._edges(each, side, 'x')} {more}" for each in _one_by_one(scope))

    def _span(self, span: Span, scope: Scope) -> str:
        entity, relation = writing.node(span.entity, self.dialect), writing.iri(span.group.relation)
        if span.group.inverse:
            found = f"?o {relation} {entity}" + (f" FILTER(?o != {entity})" if scope.direction == "both" else "")
        else:
            found = f"{entity} {relation} ?o {self._tail('o')}"
        window = f"LIMIT {span.stop - span.start}" + (f" OFFSET {span.start}" if span.start else "")
        chosen = f"{{ SELECT {self._distinct()}?o {{ {found} }} {self._order('o')} {window} }}"
        return f'{chosen} BIND({entity} AS ?e) BIND("{span.group.side}" AS ?d) BIND({relation} AS ?p) BIND(?o AS ?t)'

    def _edges(self, scope: Scope, side: EdgeDirection, far: str, *, bound: bool = False) -> str:
        return " ".join(self._edge_parts(scope, side, far, bound=bound))

    def _edge_parts(self, scope: Scope, side: EdgeDirection, far: str, *, bound: bool) -> Iterator[str]:
        """Yield the pattern of edges; `bound` says that `?p` has its values from elsewhere."""
        relations = sorted(scope.relations or ())
        named = writing.iri(relations[0]) if len(relations) == 1 else "?p"
        if len(relations) > 1 and not bound:
            yield writing.values("p", relations, self.dialect)
        yield f"?e {named} ?{far} ." if side == "out" else f"?{far} {named} ?e ."
        if len(relations) == 1 and not bound:
            yield f"BIND({named} AS ?p)"
        if side == "out":
            yield self._tail(far)
        elif scope.direction == "both":
            yield f"FILTER(?{far} != ?e)"
        if self.namespace is not None:
            yield f"FILTER(STRSTARTS(STR(?p), {writing.text(self.namespace)}))"

    def _tail(self, name: str) -> str:
        if self.entities is None:
            return _NO_LITERAL.format(name)
        return _WITHIN.format(name, writing.text(self.entities))

    def _number(self, far: str) -> str:
        return f"COUNT({self._distinct()}?{far})"

    def _distinct(self) -> str:
        return "DISTINCT " if self.dialect.merges_graphs else ""

    def _order(self, far: str) -> str:
        # By text, since engines sort IRIs themselves by numbers of their own.
        return f"ORDER BY STR(?{far})" if self.dialect.orders_hubs else ""


def counted_apart(entities: Sequence[Node]) -> Sequence[Sequence[Node]]:
    """Return the parts of a batch that are counted each within bounds of its own."""
    return [[entity] for entity in entities] if len(entities) <= COUNTED_APART else [entities]


def _one_by_one(scope: Scope) -> Sequence[Scope]:
    """Return a scope for each of a few relations: engines plan patterns with a constant between best."""
    if scope.relations is None or len(scope.relations) > NAMED_APART:
        return [scope]
    return [replace(scope, relations=frozenset({relation})) for relation in sorted(scope.relations)]


def _any_of(blocks: Iterable[str]) -> str:
    first, *others = blocks
    return writing.union((first, *others)) if others else first


def _taken(edges: str, window: str) -> str:
    return f"{{ SELECT ?e ?d ?p ?o {{ {edges} }} {window} }} BIND(?o AS ?t)"
