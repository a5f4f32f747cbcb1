"""Edges that are written by names: each text stands for what is called so, or is a value."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyoxigraph as ox

from kg_adapters.local.reading.table_plan import entity_of, label_of, literal_of, relation_of
from kg_adapters.local.reading.table_values import TEXT, Kind, is_address, kind_of
from kg_boundary.shown import listed

Edge: TypeAlias = tuple[str, str, str]
"""The head, the relation and the tail, none of them empty."""


class EdgeList:
    """All edges of a file.

    A relation leads to values where all its tails look like values of one kind, and none is the head of an edge.
    """

    def __init__(self, edges: Sequence[Edge]) -> None:
        self._edges = edges
        heads = {head for head, _, _ in edges}
        tails: dict[str, list[str]] = {}
        for _, relation, tail in edges:
            tails.setdefault(relation, []).append(tail)
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


def _value_kind(name: str, tails: Sequence[str], heads: set[str]) -> Kind | None:
    """Return the kind of values that a relation has, or None where it leads to entities."""
    kind = kind_of(name, tails)
    return None if kind == TEXT or kind.datatype.endswith("anyURI") or not heads.isdisjoint(tails) else kind
