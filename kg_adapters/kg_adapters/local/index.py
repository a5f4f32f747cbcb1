"""The adjacency index: one graph as sorted integer ids and flat arrays, opened as `ArrayFiles` does.

Node ids number the entities by `node_key`, relation ids number all relations (to entities and to literals) by IRI, so
comparing ids compares names. Every table is in compressed sparse row form: what belongs to row `i` of a table stands
between `starts[i]` and `starts[i + 1]`. Array lengths: n nodes, m relations, e edges, f features.
"""

from bisect import bisect_right
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import Final, TypeAlias, TypeVar, get_type_hints

import numpy as np
import numpy.typing as npt

from kg_adapters.errors import InvalidRequest
from kg_adapters.local.array_files import ArrayFiles
from kg_adapters.local.seal import Damage
from kg_adapters.terms import Iri, Node, node_from_key

Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

T = TypeVar("T")

_APART: Final = 64

_NUMBERS: Final[dict[object, type[np.generic]]] = {Ints: np.int32, Longs: np.int64, Bytes: np.uint8}


@dataclass(frozen=True)
class StringTable:
    """Strings one behind the other in UTF-8; `offsets` has one entry more than there are strings."""

    offsets: Longs
    text: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:
        return self.text[self.offsets[index] : self.offsets[index + 1]].tobytes().decode()

    def find(self, key: str) -> int | None:
        """Return the index of a string in a table sorted by code point, or None.

        It reads one place of the table, where bisecting all of a large one that is mapped would touch dozens of pages.
        """
        wanted = key.encode()
        first = (bisect_right(self._kept, wanted) - 1) * _APART
        if first < 0:
            return None
        offsets: list[int] = self.offsets[first : first + _APART + 1].tolist()
        start = offsets[0]
        text = self.text[start : offsets[-1]].tobytes()
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            if text[offsets[middle] - start : offsets[middle + 1] - start] < wanted:
                low = middle + 1
            else:
                high = middle
        found = low < len(offsets) - 1 and text[offsets[low] - start : offsets[low + 1] - start] == wanted
        return first + low if found else None

    @cached_property
    def _kept(self) -> list[bytes]:
        """One in so many strings, in memory."""
        starts: list[int] = self.offsets[:-1:_APART].tolist()
        ends: list[int] = self.offsets[1::_APART].tolist()
        return [self.text[start:end].tobytes() for start, end in zip(starts, ends, strict=True)]

    def lower_bound(self, wanted: bytes) -> int:
        """Return how many strings of a sorted table come before one, given in UTF-8."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.text[self.offsets[middle] : self.offsets[middle + 1]].tobytes() < wanted:
                low = middle + 1
            else:
                high = middle
        return low


@dataclass(frozen=True, slots=True)
class EdgeTable:
    """The edges of every node in one direction, grouped by relation.

    Node `i` owns the groups `groups[i]` to `groups[i + 1]`, sorted by relation id. Group `g` is about
    `relations[g]` and owns the node ids `neighbors[starts[g]:starts[g + 1]]`, sorted and distinct.
    """

    groups: Longs
    relations: Ints
    starts: Longs
    neighbors: Ints

    def owners(self) -> Ints:
        """Return the node that owns each group."""
        return np.repeat(np.arange(len(self.groups) - 1, dtype=np.int32), np.diff(self.groups))


@dataclass(frozen=True, slots=True)
class ListTable:
    """The order of neighbours that came of lists, for some groups of outgoing edges.

    The group `groups[i]` lists the neighbour that stands at `places[starts[i]]` of it first, and so on; groups ascend.
    """

    groups: Longs
    starts: Longs
    places: Ints


@dataclass(frozen=True, slots=True)
class LinkTable:
    """Who is next to whom, whatever the relation and the direction; no node is next to itself.

    The neighbours of node `i` are `neighbors[starts[i]:starts[i + 1]]`, sorted and distinct; `edges` says for each how
    many triples there are between the two, in both directions together.
    """

    starts: Longs
    neighbors: Ints
    edges: Ints


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """The literals of every node: those of node `i` are the rows `starts[i]` to `starts[i + 1]`.

    Rows are sorted by relation id, value, language, datatype. `datatypes` and `languages` index the sorted tables of
    the same names in `GraphIndex`; a language of -1 is none.
    """

    starts: Longs
    relations: Ints
    values: StringTable
    datatypes: Ints
    languages: Ints


@dataclass(frozen=True, slots=True)
class GraphIndex:
    """All arrays of one graph.

    Args:
        nodes: The `node_key` of every entity, sorted; n strings.
        relations: The IRI of every relation, sorted; m strings.
        relation_nodes: For each relation the node id of its IRI, or -1 where nothing is said about it; shape [m].
        out: Edges from head to tail.
        into: Edges from tail to head.
        lists: The order of those edges from head to tail that came of lists.
        links: All edges without direction; its row lengths are the nodes' degrees.
        walks: The same without the type and subclass relations.
        features: Literals.
        labels: For each node the feature row of its label, or -1; shape [n].
        descriptions: The same for its description; shape [n].
        datatypes: The IRIs of the literals' datatypes, sorted.
        languages: The literals' language tags, sorted.
    """

    nodes: StringTable
    relations: StringTable
    relation_nodes: Ints
    out: EdgeTable
    into: EdgeTable
    lists: ListTable
    links: LinkTable
    walks: LinkTable
    features: FeatureTable
    labels: Longs
    descriptions: Longs
    datatypes: StringTable
    languages: StringTable


def stored_node(index: GraphIndex, number: int) -> Node:
    """Return the node with this id.

    Raises:
        Damage: What is stored as its key is none.
    """
    try:
        return node_from_key(index.nodes[number])
    except InvalidRequest as error:
        raise Damage(f"index/nodes.text.npy holds a name that no node can have ({error})") from error


def stored_relation(index: GraphIndex, number: int) -> Iri:
    """Return the relation with this id.

    Raises:
        Damage: What is stored as its IRI is none.
    """
    try:
        return Iri(index.relations[number])
    except InvalidRequest as error:
        raise Damage(f"index/relations.text.npy holds a name that no relation can have ({error})") from error


def open_index(files: ArrayFiles) -> GraphIndex:
    """Open an index that was written into files called by its fields, `out.neighbors.npy` and so on.

    Raises:
        OSError: A file is missing.
        Damage: A file is not what it should be.
    """
    return _open(GraphIndex, files, "")


def _open(kind: type[T], files: ArrayFiles, prefix: str) -> T:
    values: dict[str, object] = {}
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            values[name] = _open(hint if isinstance(hint, type) else type(hint), files, f"{prefix}{name}.")
        else:
            values[name] = files.array(f"{prefix}{name}.npy", _NUMBERS[hint])
    return kind(**values)
