"""Which nodes are RDF lists and containers, and what their members are.

A list is a chain of blank nodes, each with one `rdf:first` and one `rdf:rest`, that ends in `rdf:nil`; a container is a
blank node with `rdf:_1`, `rdf:_2` and so on. Nothing else may be said of them but their type.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from kg_adapters.local.index import Ints, StringTable

RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_MEMBER: Final = re.compile(re.escape(RDF) + "_([1-9][0-9]{0,8})")
_KINDS: Final = tuple(RDF + name for name in ("List", "Bag", "Seq", "Alt"))
_NOWHERE: Final = -1

Item: TypeAlias = int
"""A member: the number of a node, or, where it is a literal, its row below zero: -1 is row 0."""


@dataclass(frozen=True, slots=True)
class Structure:
    """The numbers of what lists and containers are written with; -1 where the graph has it not.

    Args:
        first: `rdf:first`.
        rest: `rdf:rest`.
        nil: `rdf:nil`.
        type: `rdf:type`.
        kinds: `rdf:List` and the classes of containers.
        places: The place that each of the relations `rdf:_1`, `rdf:_2` … stands for.
    """

    first: int
    rest: int
    nil: int
    type: int
    kinds: Ints
    places: Mapping[int, int]

    @classmethod
    def of(cls, find_node: Callable[[str], int | None], relations: Mapping[str, int]) -> "Structure | None":
        """Return the structure of a graph, or None where it can hold neither lists nor containers.

        Args:
            find_node: Returns the number of a node, or None.
            relations: The number of each relation.
        """
        found = ((number, _MEMBER.fullmatch(relation)) for relation, number in relations.items())
        places = {number: int(match[1]) for number, match in found if match is not None}
        first, rest, kind = (relations.get(RDF + name, _NOWHERE) for name in ("first", "rest", "type"))
        if rest == _NOWHERE and not places:
            return None
        kinds = [node for each in _KINDS if (node := find_node(each)) is not None]
        nil = find_node(RDF + "nil")
        return cls(first, rest, _NOWHERE if nil is None else nil, kind, np.array(kinds, dtype=np.int32), places)

    @property
    def relations(self) -> Ints:
        """All relations that lists and containers are written with."""
        return np.array([self.first, self.rest, *self.places], dtype=np.int32)


@dataclass
class _Node:
    """What is said of one node that may be a cell or a container."""

    firsts: set[Item] = field(default_factory=set[Item])
    rests: set[Item] = field(default_factory=set[Item])
    placed: dict[int, set[Item]] = field(default_factory=dict[int, set[Item]])

    @property
    def cell(self) -> tuple[Item, int] | None:
        """Its member and the next cell; None where it is no cell."""
        if self.placed or len(self.firsts) != 1 or len(self.rests) != 1 or min(self.rests) < 0:
            return None
        return min(self.firsts), min(self.rests)

    @property
    def members(self) -> list[Item] | None:
        """Its members in order; None where it is no container."""
        if self.firsts or self.rests or any(len(items) != 1 for items in self.placed.values()):
            return None
        return [min(self.placed[place]) for place in sorted(self.placed)]


@dataclass(frozen=True, slots=True)
class Collections:
    """The cells and containers of a graph.

    Args:
        nil: The number of `rdf:nil`.
        cells: For each cell its member and the next cell.
        containers: The members of each container, in order.
    """

    nil: int
    cells: Mapping[int, tuple[Item, int]]
    containers: Mapping[int, Sequence[Item]]

    def holds(self, node: int) -> bool:
        """Say whether a node is a cell or a container."""
        return node in self.cells or node in self.containers

    @property
    def nodes(self) -> Ints:
        """All cells and containers."""
        return np.array(sorted((*self.cells, *self.containers)), dtype=np.int32)

    def walk(self, start: int) -> Iterator[tuple[int, Item]]:
        """Yield the nodes that a list or container is made of, each with a member.

        Raises:
            IllFormed: What follows is no cell, or was met before.
        """
        if start in self.containers:
            yield from ((start, item) for item in self.containers[start])
            return
        at, met = start, set[int]()
        while at != self.nil:
            if at not in self.cells or at in met:
                raise IllFormed
            met.add(at)
            item, following = self.cells[at]
            yield at, item
            at = following

    def below(self, node: int) -> Iterator[int]:
        """Yield the cells and containers that a cell or container leads to at once."""
        item, following = self.cells.get(node, (_NOWHERE, _NOWHERE))
        yield from filter(self.holds, (*self.containers.get(node, ()), item, following))


class IllFormed(Exception):
    """What looks like a list is none, or may not be unfolded."""


def find_collections(
    structure: Structure, keys: StringTable, edges: tuple[Ints, Ints, Ints], features: tuple[Ints, Ints]
) -> Collections:
    """Return the cells and containers of a graph.

    Args:
        structure: What they are written with.
        keys: The `node_key` of each number.
        edges: Heads, relations and tails; shape [e] each.
        features: Heads and relations of literals; shape [f] each.
    """
    heads, relations, tails = edges
    parts, literal_parts = np.isin(relations, structure.relations), np.isin(features[1], structure.relations)
    typed = (relations == structure.type) & np.isin(tails, structure.kinds)
    candidates = np.zeros(len(keys), dtype=np.bool_)
    candidates[heads[parts]] = candidates[features[0][literal_parts]] = True
    candidates[heads[~parts & ~typed]] = candidates[features[0][~literal_parts]] = False
    numbers: list[int] = np.flatnonzero(candidates).tolist()
    known = {node: _Node() for node in numbers if keys[node].startswith("_:")}
    for row in np.flatnonzero(parts).tolist():
        _take(known, structure, int(heads[row]), int(relations[row]), int(tails[row]))
    for row in np.flatnonzero(literal_parts).tolist():
        _take(known, structure, int(features[0][row]), int(features[1][row]), -1 - row)
    cells = ((node, said.cell) for node, said in known.items())
    containers = ((node, said.members) for node, said in known.items())
    return Collections(
        structure.nil,
        {node: cell for node, cell in cells if cell is not None},
        {node: members for node, members in containers if members},
    )


def _take(known: Mapping[int, _Node], structure: Structure, head: int, relation: int, item: Item) -> None:
    said = known.get(head)
    if said is None:
        return
    if relation == structure.first:
        said.firsts.add(item)
    elif relation == structure.rest:
        said.rests.add(item)
    else:
        said.placed.setdefault(structure.places[relation], set()).add(item)
