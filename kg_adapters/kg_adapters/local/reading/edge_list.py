"""Edges that are written by names: each text stands for what is called so, or is a value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.local.reading.table_plan import Table, entity_of, label_of, literal_of, plain_header, relation_of
from kg_adapters.local.reading.table_values import TEXT, Kind, is_address, kind_of
from kg_boundary.shown import listed

_HEADS: Final = frozenset({"head", "subject", "source", "from", "start", "h", "s", "src", "startid", "entity1"})
_RELATIONS: Final = frozenset(
    {"relation", "predicate", "property", "edge", "relationship", "r", "p", "rel", "label", "type", "kind"}
)
_TAILS: Final = frozenset({"tail", "object", "target", "to", "end", "t", "o", "dst", "endid", "entity2", "destination"})
_FEWEST_EDGES: Final = 3

Edge: TypeAlias = tuple[str, str, str]
"""The head, the relation and the tail, none of them empty."""


class EdgeList:
    """All edges of a file.

    A relation leads to values where all its tails look like values of one kind, and none is the head of an edge.
    """

    def __init__(self, edges: Sequence[Edge]) -> None:
        self._edges = edges
        heads = {head for head, _, _ in edges}
        tails: dict[str, set[str]] = {}
        for _, relation, tail in edges:
            tails.setdefault(relation, set()).add(tail)
        self._kinds = {relation: _value_kind(relation, ends, heads) for relation, ends in tails.items()}

    @property
    def told(self) -> str:
        """What the relations lead to, in words."""
        kinds = (f"{name} ({'edges' if kind is None else kind.name})" for name, kind in self._kinds.items())
        return f"Relations: {listed(kinds, ', ') or 'none'}."

    def statements(self) -> Iterator[ox.Quad]:
        """Yield each edge, and the name of each thing once."""
        named: set[str] = set()
        for head, relation, tail in self._edges:
            kind, leads = self._kinds[relation], relation_of(relation)
            ends = [(head, entity_of(head)), (relation, leads)]
            if kind is None:
                ends.append((tail, entity_of(tail)))
                yield ox.Quad(entity_of(head), leads, entity_of(tail))
            else:
                yield ox.Quad(entity_of(head), leads, literal_of(tail, kind))
            yield from (label_of(node, text) for text, node in ends if not is_address(text) and text not in named)
            named.update(text for text, _ in ends)


def _value_kind(name: str, tails: set[str], heads: set[str]) -> Kind | None:
    """Return the kind of values that a relation has, or None where it leads to entities."""
    kind = kind_of(name, tails)
    return None if kind == TEXT or kind.datatype.endswith("anyURI") or not heads.isdisjoint(tails) else kind


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """Where a list of edges has what.

    Args:
        head: The column of the heads.
        relation: That of the relations, if there is one.
        tail: That of the tails.
        header: Whether the first row is a header.
        unread: The headers of columns that say nothing here.
    """

    head: int
    relation: int | None
    tail: int
    header: bool = True
    unread: tuple[str, ...] = ()


def edge_columns(table: Table) -> EdgeColumns | None:
    """Return where a table has its edges, or None where it is no list of edges."""
    names = [plain_header(name) for name in table.first]
    head, tail, relation = (_first(names, known) for known in (_HEADS, _TAILS, _RELATIONS))
    if head is not None and tail is not None:
        others = [place for place, column in enumerate(table.columns) if column.values and place not in {head, tail}]
        if relation is None:
            texts = [place for place in others if kind_of(names[place], table.columns[place].values) == TEXT]
            relation = texts[0] if len(texts) == 1 else None
        unread = tuple(table.names[place] for place in others if place != relation)
        return EdgeColumns(head, relation, tail, unread=unread)
    if len(names) != 3 or len(table.lines) + 1 < _FEWEST_EDGES or not table.even:
        return None
    # What a header calls the relations is none of them.
    relations = table.cells(1, first=True)
    repeats = len(set(relations)) * 2 <= len(relations) and relations[0] in relations[1:]
    return EdgeColumns(0, 1, 2, header=False) if repeats and kind_of("", relations) == TEXT else None


def _first(names: Sequence[str], known: frozenset[str]) -> int | None:
    return next((place for place, name in enumerate(names) if name in known), None)
