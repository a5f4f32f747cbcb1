"""The adjacency index: one graph as sorted integer ids and flat arrays, and its terms.

Node ids number the entities by `node_key`, relation ids number all relations (to entities and to literals) by IRI, so
comparing ids compares names. Every table is in compressed sparse row form: what belongs to row `i` of a table stands
between `starts[i]` and `starts[i + 1]`. Array lengths: n nodes, m relations, e edges, f features.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeAlias
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from kg_adapters.errors import InvalidRequest
from kg_adapters.index.block_files import Damage
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Feature
from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import BlankNode, Iri, Literal, Node, node_from_key, node_key

Ints: TypeAlias = npt.NDArray[np.int32]
Longs: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]
_APART: Final = 64
_NUMBERED: Final = re.compile(r"[A-Za-z]+[0-9]+[A-Za-z]?")


@dataclass(frozen=True)
class StringTable:
    """Strings one behind the other in UTF-8; `offsets` has one entry more than there are strings."""

    offsets: Longs
    text: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:
        return self._encoded(index).decode()

    def find(self, key: str) -> int | None:
        """Return the index of a string in a table sorted by code point, or None.

        It reads one place of the table, where bisecting all of a large one that is mapped would touch dozens of pages.
        """
        wanted = key.encode()
        first = (bisect_right(range(0, len(self), _APART), wanted, key=self._samples.__getitem__) - 1) * _APART
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
    def _samples(self) -> "_Samples":
        return _Samples(self._encoded)

    def lower_bound(self, wanted: bytes) -> int:
        """Return how many strings of a sorted table come before one, given in UTF-8."""
        return bisect_left(range(len(self)), wanted, key=self._encoded)

    def _encoded(self, index: int) -> bytes:
        start, end = self.offsets[index : index + 2].tolist()
        return self.text[start:end].tobytes()


class _Samples(dict[int, bytes]):
    """One in so many strings of a table, in memory once it was compared with another.

    Args:
        read: Returns a string by its index.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, index: int) -> bytes:
        return self.setdefault(index, self._read(index))


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
        relation_nodes: For each relation the node id of its IRI, or -1 where it has no statements; shape [m].
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


_MOST_KEPT: Final = 50_000
_MAX_KEPT_LABEL: Final = 200


class Dictionary:
    """The nodes, relations, labels and literals of one index.

    Args:
        index: The graph.
        most_kept: How many of each are in memory at most.
    """

    def __init__(self, index: GraphIndex, *, most_kept: int = _MOST_KEPT) -> None:
        self._index = index
        self._most_kept = most_kept
        self._nodes: dict[int, Node] = {}
        self._node_ids: dict[Node, int] = {}
        self._relations: dict[int, Iri] = {}
        self._labels: dict[int, str] = {}
        self._datatypes: dict[int, Iri] = {}

    @property
    def kept(self) -> int:
        """How many nodes, relations and labels are in memory now."""
        return len(self._nodes) + len(self._relations) + len(self._labels)

    def node(self, number: int) -> Node:
        """Return the node with this id."""
        node = self._nodes.get(number)
        if node is None:
            node = stored_node(self._index, number)
            self._keep(number, node)
        return node

    def node_id(self, node: Node) -> int | None:
        """Return the id of a node, or None where the graph does not mention it."""
        number = self._node_ids.get(node)
        if number is None:
            number = self._index.nodes.find(node_key(node))
            if number is not None:
                self._keep(number, node)
        return number

    def relation(self, number: int) -> Iri:
        """Return the relation with this id."""
        relation = self._relations.get(number)
        if relation is None:
            relation = stored_relation(self._index, number)
            if len(self._relations) >= self._most_kept:
                self._relations.clear()
            self._relations[number] = relation
        return relation

    def relation_id(self, relation: Node) -> int | None:
        """Return the id of a relation, or None where no statement of the graph has it."""
        return self._index.relations.find(relation.value) if isinstance(relation, Iri) else None

    def relation_ids(self, relations: Iterable[Node]) -> frozenset[int]:
        """Return the ids of relations; those that no statement has are left out."""
        found = (self.relation_id(relation) for relation in relations)
        return frozenset(number for number in found if number is not None)

    def label(self, number: int) -> str | None:
        """Return the label of the node with this id, or None."""
        label = self._labels.get(number)
        if label is None:
            label = self._text(int(self._index.labels[number]))
            if label is not None and len(label) <= _MAX_KEPT_LABEL:
                if len(self._labels) >= self._most_kept:
                    self._labels.clear()
                self._labels[number] = label
        return label

    def labels_of(self, terms: Iterable[Node]) -> dict[Node, str]:
        """Return the labels of nodes and relations; those without one are left out."""
        found: dict[Node, str] = {}
        # What was seen lately costs no call: an answer has hundreds of terms.
        ids, labels = self._node_ids, self._labels
        for term in terms:
            number = ids.get(term)
            if number is None and (number := self.node_id(term)) is None:
                continue
            label = labels.get(number)
            if label is None and (label := self.label(number)) is None:
                continue
            found[term] = label
        return found

    def description(self, number: int) -> str | None:
        """Return the description of the node with this id, or None."""
        return self._text(int(self._index.descriptions[number]))

    def feature(self, row: int) -> Feature:
        """Return the literal in this row of the index, with its relation."""
        return Feature(self.relation(int(self._index.features.relations[row])), self.literal(row))

    def literal(self, row: int) -> Literal:
        """Return the literal in this row of the index."""
        table = self._index.features
        kind, language = int(table.datatypes[row]), int(table.languages[row])
        datatype = self._datatypes.get(kind)
        if datatype is None:
            datatype = self._datatypes.setdefault(kind, self._datatype(kind))
        return Literal(table.values[row], datatype, None if language < 0 else self._index.languages[language])

    def _datatype(self, kind: int) -> Iri:
        try:
            return Iri(self._index.datatypes[kind])
        except InvalidRequest as error:
            raise Damage(f"index/datatypes.text.npy holds no IRI at {kind}") from error

    def text(self, row: int) -> str:
        """Return the text of the literal in this row of the index."""
        return self._index.features.values[row]

    def _text(self, row: int) -> str | None:
        return None if row < 0 else self._index.features.values[row]

    def _keep(self, number: int, node: Node) -> None:
        if len(self._nodes) >= self._most_kept:
            self._nodes.clear()
            self._node_ids.clear()
        self._nodes[number] = node
        self._node_ids[node] = number


_AT_ONCE: Final = 100_000
MOST_AT_ONCE: Final = 1_000_000
"""How many entries of an array are worked on at a time."""


def bare_relations(index: GraphIndex) -> npt.NDArray[np.bool_]:
    """Return which nodes are relations that have at most literals themselves; shape [n]."""
    chosen = np.zeros(len(index.nodes), dtype=np.bool_)
    chosen[index.relation_nodes[index.relation_nodes >= 0]] = True
    edged = (np.diff(index.out.groups) > 0) | (np.diff(index.into.groups) > 0)
    return chosen & ~edged


def edges_by_relation(index: GraphIndex) -> Longs:
    """Return the number of triples of each relation; shape [m]."""
    out, counts = index.out, np.zeros(len(index.relations), dtype=np.int64)
    for part in parts(len(out.relations)):
        sizes = np.diff(out.starts[part.start : part.stop + 1])
        counts += np.bincount(out.relations[part], sizes, minlength=len(counts)).astype(np.int64)
    return counts


def uses_of_relations(index: GraphIndex) -> Longs:
    """Return the number of statements of each relation, to entities and to literals; shape [m]."""
    return edges_by_relation(index) + np.bincount(index.features.relations, minlength=len(index.relations))


def written(table: StringTable, rows: Longs | None = None) -> Iterator[str]:
    """Yield many strings of a table, faster than one by one; all of them where no rows are given."""
    view = np.asarray(table.text).data
    for first in range(0, len(table if rows is None else rows), _AT_ONCE):
        some = np.arange(first, min(first + _AT_ONCE, len(table))) if rows is None else rows[first : first + _AT_ONCE]
        starts: list[int] = table.offsets[some].tolist()
        ends: list[int] = table.offsets[some + 1].tolist()
        for start, end in zip(starts, ends, strict=True):
            yield str(view[start:end], "utf-8")


def local_name(key: str) -> str:
    """Return the local part of a node's key as people would write it; empty for a blank node."""
    node = node_from_key(key)
    return "" if isinstance(node, BlankNode) else unquote(node.local_part).replace("_", " ")


def nodes_called(index: GraphIndex, prefixes: Prefixes, text: str, *, begun: bool = True) -> list[int]:
    """Return the ids of the nodes whose local part a text is, or of the only one where it is the first part of that.

    `E22` is the first part of `E22_Human-Made_Object`, which counts where `begun` is true. Relations that no edge is
    about are left out.
    """
    iris, nodes = prefixes.local_names(text), index.nodes
    found = [number for iri in iris if (number := nodes.find(iri.value)) is not None]
    if begun and not found and _NUMBERED.fullmatch(text.strip()) is not None:
        for iri in iris:
            begin = f"{iri.value}_"
            first = nodes.lower_bound(begin.encode())
            # Two are enough to show that the text is ambiguous.
            found += [number for number in range(first, min(first + 2, len(nodes))) if nodes[number].startswith(begin)]
        found = found if len(found) == 1 else []

    def is_bare(number: int) -> bool:
        ends = (int(table.groups[number + 1] - table.groups[number]) for table in (index.out, index.into))
        return not any(ends) and index.relations.find(nodes[number]) is not None

    return [number for number in found if not is_bare(number)]


def parts(length: int, *owners: Ints | Longs) -> Iterator[slice]:
    """Yield slices of an array of this length that are small enough to work on.

    Args:
        length: The length.
        owners: Sorted places in the array that rows belong to, of which each slice has few as well, shape [rows] each.
    """
    cuts = (places[MOST_AT_ONCE::MOST_AT_ONCE] for places in owners)
    bounds = np.unique(np.concatenate(([*range(0, length, MOST_AT_ONCE), length], *cuts)))
    yield from (slice(int(first), int(end)) for first, end in pairwise(bounds))


def name_rows(index: GraphIndex, vocabulary: Vocabulary) -> tuple[Longs, Ints, Bytes]:
    """Return the feature rows that are names, whose each is, and 1 for those that are aliases; shape [b] each."""
    labels, aliases = relation_ids(index, vocabulary.labels), relation_ids(index, vocabulary.aliases)
    rows = np.flatnonzero(np.isin(index.features.relations, [*labels, *aliases])).astype(np.int64)
    owners = np.repeat(np.arange(len(index.nodes), dtype=np.int32), np.diff(index.features.starts))[rows]
    return rows, owners, (~np.isin(index.features.relations[rows], labels)).astype(np.uint8)


def relation_ids(index: GraphIndex, relations: Iterable[Iri]) -> list[int]:
    """Return the ids of relations; those that no statement has are left out."""
    found = (index.relations.find(relation.value) for relation in relations)
    return [number for number in found if number is not None]
