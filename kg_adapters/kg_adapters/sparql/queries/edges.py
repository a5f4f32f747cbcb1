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
from kg_adapters.terms import Iri, Node

_NO_LITERAL: Final = "FILTER(!isLiteral(?{0}))"


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
    """

    dialect: Dialect
    texts: TextChoice
    namespace: str | None = None

    def around(self, entities: Sequence[Node], scope: Scope, fill: Fill, *, labelled: bool) -> str:
        """Return the query for the groups of entities with their counts, and for some of their neighbours."""
        who = writing.values("e", entities, self.dialect)
        blocks = [self._mentioned(who)]
        if not scope.is_empty:
            blocks += (self._counts(who, scope, side, fill) for side in scope.sides)
            if fill.group_size:
                found = writing.union(self._members(who, scope, side, f"<= {fill.group_size}") for side in scope.sides)
                blocks.append(_taken(found, f"LIMIT {fill.rows}"))
            if fill.sampled_rows:
                found = writing.union(self._members(who, scope, side, f"> {fill.group_size}") for side in scope.sides)
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
            blocks += (self._counts(who, scope, side, Fill()) for side in scope.sides)
            sides = (f"{who} {self._edges(scope, side, 'x')} FILTER(?x != ?e)" for side in scope.sides)
            total = f"SELECT ?e (COUNT(DISTINCT ?x) AS ?n) {{ {writing.union(sides)} }} GROUP BY ?e"
            blocks.append(f'{{ {total} }} BIND("all" AS ?d)')
        return self._rows(blocks, labelled=False)

    def _rows(self, blocks: Sequence[str], *, labelled: bool) -> str:
        columns, found = "?e ?d ?p ?n ?o", writing.union(blocks)
        if not labelled:
            return f"SELECT {columns} {{ {found} }}"
        labels = self.texts.pattern("t", self.texts.vocabulary.labels)
        chosen = f"SELECT {columns} ?a {self.texts.best('label')}"
        return f"{chosen} {{ {{ {found} }} OPTIONAL {{ {labels} }} }} GROUP BY {columns} ?a"

    def _mentioned(self, who: str) -> str:
        exists = "EXISTS { ?e ?p1 ?o1 } || EXISTS { ?s2 ?p2 ?e }"
        # In a query of its own: beside other patterns Virtuoso loses a filter on a single value.
        return f'{{ SELECT ?e {{ {who} FILTER({exists}) }} }} BIND("self" AS ?d) BIND(?e AS ?t)'

    def _counts(self, who: str, scope: Scope, side: EdgeDirection, fill: Fill) -> str:
        sample = "(SAMPLE(?x) AS ?o)" if fill.sampled_rows else ""
        edges = self._edges(scope, side, "x")
        counts = f"SELECT ?e ?p ({self._number('x')} AS ?n) {sample} {{ {who} {edges} }} GROUP BY ?e ?p"
        return f'{{ {counts} }} BIND("{side}" AS ?d) BIND(?p AS ?t)'

    def _members(self, who: str, scope: Scope, side: EdgeDirection, size: str) -> str:
        groups = f"SELECT ?e ?p {{ {who} {self._edges(scope, side, 'x')} }} GROUP BY ?e ?p"
        # The groups say which relations; said twice, Virtuoso tries every edge of every one of them.
        edges = self._edges(replace(scope, relations=None), side, "o")
        return f'{{ {groups} HAVING ({self._number("x")} {size}) }} {who} {edges} BIND("{side}" AS ?d)'

    def _span(self, span: Span, scope: Scope) -> str:
        entity, relation = writing.node(span.entity, self.dialect), writing.iri(span.group.relation)
        if span.group.inverse:
            found = f"?o {relation} {entity}" + (f" FILTER(?o != {entity})" if scope.direction == "both" else "")
        else:
            found = f"{entity} {relation} ?o {_NO_LITERAL.format('o')}"
        window = f"LIMIT {span.stop - span.start}" + (f" OFFSET {span.start}" if span.start else "")
        chosen = f"{{ SELECT {self._distinct()}?o {{ {found} }} {self._order('o')} {window} }}"
        return f'{chosen} BIND({entity} AS ?e) BIND("{span.group.side}" AS ?d) BIND({relation} AS ?p) BIND(?o AS ?t)'

    def _edges(self, scope: Scope, side: EdgeDirection, far: str) -> str:
        return " ".join(self._edge_parts(scope, side, far))

    def _edge_parts(self, scope: Scope, side: EdgeDirection, far: str) -> Iterator[str]:
        if scope.relations is not None:
            yield writing.values("p", sorted(scope.relations), self.dialect)
        yield f"?e ?p ?{far} ." if side == "out" else f"?{far} ?p ?e ."
        if side == "out":
            yield _NO_LITERAL.format(far)
        elif scope.direction == "both":
            yield f"FILTER(?{far} != ?e)"
        if self.namespace is not None:
            yield f"FILTER(STRSTARTS(STR(?p), {writing.text(self.namespace)}))"

    def _number(self, far: str) -> str:
        return f"COUNT({self._distinct()}?{far})"

    def _distinct(self) -> str:
        return "DISTINCT " if self.dialect.merges_graphs else ""

    def _order(self, far: str) -> str:
        # By text, since engines sort IRIs themselves by numbers of their own.
        return f"ORDER BY STR(?{far})" if self.dialect.orders_hubs else ""


def _taken(edges: str, window: str) -> str:
    return f"{{ SELECT ?e ?d ?p ?o {{ {edges} }} {window} }} BIND(?o AS ?t)"
