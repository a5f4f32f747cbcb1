"""Write the tables of an index, one range of nodes after another."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.index.columns import first_of_each
from kg_adapters.index.graph_index import (
    EdgeTable,
    FeatureTable,
    GraphIndex,
    Ints,
    LinkTable,
    ListTable,
    Longs,
    StringTable,
)
from kg_adapters.index.storage import GrowingArray, GrowingStrings, IndexStorage
from kg_adapters.labels import Vocabulary

Edges: TypeAlias = tuple[Ints, Ints, Ints]
"""Owners, relations and others; shape [k] each."""
Features: TypeAlias = tuple[Ints, Ints, Ints, Ints, Ints]
"""Owners, relations, values, datatypes and languages; shape [k] each."""
Orders: TypeAlias = Mapping[tuple[int, int], Sequence[int]]
"""For a head and a relation, the tails that came of lists, in their order."""
_MOST_KEY: Final = np.iinfo(np.int64).max
_GATHERED: Final = 500_000


class Ranges:
    """Ranges of nodes that own about as many rows each as can be sorted at once.

    Args:
        rows: How many rows each node owns; shape [n].
        widest: How many nodes a range may have.
        most_rows: How many rows a range may have, where it has more than one node.
    """

    def __init__(self, rows: Longs, widest: int, most_rows: int) -> None:
        ends = np.cumsum(rows)
        bounds = [0]
        while bounds[-1] < len(rows):
            first = bounds[-1]
            before = int(ends[first - 1]) if first else 0
            last = int(np.searchsorted(ends, before + most_rows, side="right"))
            bounds.append(min(max(last, first + 1), first + widest, len(rows)))
        self.bounds = np.array(bounds, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        pairs: list[int] = self.bounds.tolist()
        return pairwise(pairs)


class _Sorted:
    """Rows with up to two keys, sorted range by range: an owner and what follows it, as one number each."""

    def __init__(self, storage: IndexStorage, ranges: Ranges, size: int, columns: int) -> None:
        self._storage = storage
        self._ranges = ranges
        self._size = size
        self._parts = [tuple(storage.passing(np.int64) for _ in range(columns)) for _ in range(len(ranges))]

    def add(self, owners: Ints, *keys: Longs) -> None:
        """Add rows; the first key is below `size`."""
        bounds = self._ranges.bounds
        if len(self._parts) == 1:
            self._take(0, owners, keys)
            return
        part = np.searchsorted(bounds, owners, side="right") - 1
        order = np.argsort(part, kind="stable")
        ends = np.cumsum(np.bincount(part, minlength=len(self._parts))).tolist()
        for number, (first, last) in enumerate(pairwise([0, *ends])):
            rows = order[first:last]
            if len(rows):
                self._take(number, owners[rows], [key[rows] for key in keys])

    def parts(self) -> Iterator[tuple[int, int, list[Longs]]]:
        """Yield for each range its bounds and the distinct rows, sorted: owners less the first one, then the keys."""
        for (first, last), columns in zip(self._ranges, self._parts, strict=True):
            lead, *rest = (column.finish() for column in columns)
            if rest:
                order = np.lexsort((rest[0], lead))
                lead, rest = lead[order], [column[order] for column in rest]
                fresh = np.ones(len(lead), dtype=np.bool_)
                fresh[1:] = (lead[1:] != lead[:-1]) | (rest[0][1:] != rest[0][:-1])
                kept = np.flatnonzero(fresh)
            else:
                lead = np.sort(lead)
                kept = first_of_each(lead)
            owners, key = np.divmod(lead[kept], self._size)
            yield first, last, [owners, key, *(column[kept] for column in rest)]
            self._storage.let_go()

    def _take(self, number: int, owners: Ints, keys: Sequence[Longs]) -> None:
        lead = (owners - self._ranges.bounds[number]) * self._size + keys[0]
        for column, key in zip(self._parts[number], (lead, *keys[1:]), strict=True):
            column.append(key)


def write_edges(
    storage: IndexStorage, pieces: Iterable[Edges], heads: Longs, tails: Longs, relations: int
) -> tuple[EdgeTable, EdgeTable]:
    """Write the edges in both directions.

    Args:
        storage: Where they go.
        pieces: The edges, in any order, with repeats.
        heads: How many of them each node is the head of; shape [n].
        tails: The same for the tail; shape [n].
        relations: How many relations there are.
    """
    nodes = max(1, len(heads))
    size = max(1, relations) * nodes
    widest = max(1, _MOST_KEY // size - 1)
    forth, back = (_Sorted(storage, Ranges(rows, widest, storage.room.rows), size, 1) for rows in (heads, tails))
    for own, over, other in pieces:
        forth.add(own, over.astype(np.int64) * nodes + other)
    out, into = _EdgeWriter(storage, "out"), _EdgeWriter(storage, "into")
    for first, last, (owners, key) in forth.parts():
        relation, tail = np.divmod(key, nodes)
        out.append(last - first, owners, relation, tail)
        back.add(tail.astype(np.int32), relation * nodes + owners + first)
    for first, last, (owners, key) in back.parts():
        relation, head = np.divmod(key, nodes)
        into.append(last - first, owners, relation, head)
    return out.finish(), into.finish()


class _EdgeWriter:
    """Writes an edge table from sorted edges."""

    def __init__(self, storage: IndexStorage, name: str) -> None:
        self._groups = _Starts(storage.array(f"{name}.groups", np.int64))
        self._relations = storage.array(f"{name}.relations", np.int32)
        self._starts = storage.array(f"{name}.starts", np.int64)
        self._neighbors = storage.array(f"{name}.neighbors", np.int32)

    def append(self, nodes: int, owners: Longs, relation: Longs, other: Longs) -> None:
        first = np.ones(len(owners), dtype=np.bool_)
        first[1:] = (owners[1:] != owners[:-1]) | (relation[1:] != relation[:-1])
        heads = np.flatnonzero(first)
        self._groups.append(np.bincount(owners[heads], minlength=nodes))
        self._relations.append(relation[heads])
        self._starts.append(heads + len(self._neighbors))
        self._neighbors.append(other)

    def finish(self) -> EdgeTable:
        self._starts.append(np.array([len(self._neighbors)]))
        return EdgeTable(
            self._groups.finish(), self._relations.finish(), self._starts.finish(), self._neighbors.finish()
        )


class _Starts:
    """Where the rows of each node begin, from how many each has."""

    def __init__(self, array: GrowingArray[np.int64]) -> None:
        self._array = array
        self._end = 0
        array.append(np.zeros(1, dtype=np.int64))

    def append(self, counts: npt.NDArray[np.int64]) -> None:
        ends = np.cumsum(counts) + self._end
        self._array.append(ends)
        self._end = int(ends[-1]) if len(ends) else self._end

    def finish(self) -> Longs:
        return self._array.finish()


def write_links(
    storage: IndexStorage, name: str, out: EdgeTable, into: EdgeTable, left_out: Sequence[int]
) -> LinkTable:
    """Write who is next to whom, without the edges of some relations."""
    nodes = len(out.groups) - 1
    rows = np.diff(out.starts[out.groups]) + np.diff(into.starts[into.groups])
    starts = _Starts(storage.array(f"{name}.starts", np.int64))
    neighbors, edges = storage.array(f"{name}.neighbors", np.int32), storage.array(f"{name}.edges", np.int32)
    for first, last in Ranges(rows, max(1, _MOST_KEY // max(1, nodes) - 1), storage.room.rows):
        keys = np.concatenate([_pairs(table, first, last, left_out) for table in (out, into)])
        keys.sort()
        firsts = first_of_each(keys)
        owners, others = np.divmod(keys[firsts], max(1, nodes))
        starts.append(np.bincount(owners, minlength=last - first))
        neighbors.append(others)
        edges.append(np.diff(np.append(firsts, len(keys))))
        storage.let_go()
    return LinkTable(starts.finish(), neighbors.finish(), edges.finish())


def _pairs(table: EdgeTable, first: int, last: int, left_out: Sequence[int]) -> Longs:
    """Return the edges of some nodes as one number each: the owner less the first one, and the other."""
    groups = table.groups[first : last + 1]
    begin, end = int(groups[0]), int(groups[-1])
    starts = table.starts[begin : end + 1]
    sizes = np.diff(starts)
    owners = np.repeat(np.repeat(np.arange(last - first), np.diff(groups)), sizes)
    others = table.neighbors[starts[0] : starts[-1]]
    kept = others != owners + first
    if left_out:
        kept &= np.repeat(~np.isin(table.relations[begin:end], left_out), sizes)
    pairs: Longs = owners[kept] * (len(table.groups) - 1) + others[kept]
    return pairs


@dataclass(frozen=True, slots=True)
class FeatureRows:
    """Some rows of the feature table, sorted.

    Args:
        nodes: How many nodes they are about.
        owners: Whose each is, from 0; shape [k].
        relations: Their relations; shape [k].
        languages: Their languages, or -1; shape [k].
        first: Which row of the table the first one is.
    """

    nodes: int
    owners: Longs
    relations: Ints
    languages: Ints
    first: int


class FeatureWriter:
    """Writes the feature table.

    Args:
        storage: Where it goes.
        values: The texts that values are numbered by.
        counts: How many features each node owns, repeats included; shape [n].
        relations: How many relations there are.
        datatypes: How many datatypes there are.
    """

    def __init__(
        self, storage: IndexStorage, values: StringTable, counts: Longs, relations: int, datatypes: int
    ) -> None:
        self._datatypes = max(1, datatypes)
        self._values = max(1, len(values))
        size = max(1, relations) * self._values
        self._texts = values
        ranges = Ranges(counts, max(1, _MOST_KEY // size - 1), storage.room.rows // 2)
        self._sorted = _Sorted(storage, ranges, size, 2)
        self._starts = _Starts(storage.array("features.starts", np.int64))
        self._strings: GrowingStrings = storage.strings("features.values")
        self._columns = tuple(
            storage.array(f"features.{name}", np.int32) for name in ("relations", "datatypes", "languages")
        )

    def add(self, piece: Features) -> None:
        """Add features, in any order."""
        owners, relations, values, datatypes, languages = piece
        key = relations.astype(np.int64) * self._values + values
        self._sorted.add(owners, key, (languages.astype(np.int64) + 1) * self._datatypes + datatypes)

    def rows(self) -> Iterator[FeatureRows]:
        """Write all rows, and yield them range by range."""
        done = 0
        for first, last, (owners, key, kind) in self._sorted.parts():
            relation, value = np.divmod(key, self._values)
            language, datatype = np.divmod(kind, self._datatypes)
            relations, languages = relation.astype(np.int32), (language - 1).astype(np.int32)
            for column, numbers in zip(self._columns, (relations, datatype, languages), strict=True):
                column.append(numbers)
            self._starts.append(np.bincount(owners, minlength=last - first))
            self._write_texts(value)
            yield FeatureRows(last - first, owners, relations, languages, done)
            done += len(owners)

    def finish(self) -> FeatureTable:
        """Return the table, when all rows were written."""
        relations, datatypes, languages = (column.finish() for column in self._columns)
        return FeatureTable(self._starts.finish(), relations, self._strings.finish(), datatypes, languages)

    def _write_texts(self, values: Longs) -> None:
        view, offsets = self._texts.text.data, self._texts.offsets
        for first in range(0, len(values), _GATHERED):
            chosen = values[first : first + _GATHERED]
            starts, ends = offsets[chosen], offsets[chosen + 1]
            places: Iterator[tuple[int, int]] = zip(starts.tolist(), ends.tolist(), strict=True)
            self._strings.append(ends - starts, b"".join([view[start:end] for start, end in places]))


class RowChoice:
    """Chooses feature rows, many nodes at once.

    Args:
        storage: Where the choice goes.
        relations: The relations of the index, sorted.
        languages: Its languages, sorted.
        vocabulary: What names and describes, in which language.

    Attributes:
        labels: For each node the row of its label, or -1.
        descriptions: The same for its description.
    """

    def __init__(
        self, storage: IndexStorage, relations: Sequence[str], languages: Sequence[str], vocabulary: Vocabulary
    ) -> None:
        places = {text: place for place, text in enumerate(relations)}
        self._labels, self._descriptions = (
            [places[iri.value] for iri in wanted if iri.value in places]
            for wanted in (vocabulary.labels, vocabulary.descriptions)
        )
        self._relations = len(relations)
        # The last rank serves the language -1, which is none.
        self._language_ranks = np.array([vocabulary.rank(language) for language in (*languages, None)], dtype=np.int32)
        self.labels = storage.array("labels", np.int64)
        self.descriptions = storage.array("descriptions", np.int64)

    def add(self, rows: FeatureRows) -> None:
        """Choose for the nodes that some rows are about, the next ones."""
        self.labels.append(self._chosen(rows, self._labels))
        self.descriptions.append(self._chosen(rows, self._descriptions))

    def _chosen(self, said: FeatureRows, preferred: Sequence[int]) -> Longs:
        """Return for each node the best row among the preferred relations, or -1."""
        chosen = np.full(said.nodes, -1, dtype=np.int64)
        if not preferred:
            return chosen
        by_relation = np.full(self._relations, len(preferred), dtype=np.int32)
        by_relation[preferred[::-1]] = np.arange(len(preferred), dtype=np.int32)[::-1]
        preference = by_relation[said.relations]
        rows = np.flatnonzero(preference < len(preferred))
        owners, languages = said.owners[rows], said.languages[rows]
        # Rows of one node and relation are already sorted by value, and lexsort is stable.
        order = np.lexsort((languages, self._language_ranks[languages], preference[rows], owners))
        best, firsts = np.unique(owners[order], return_index=True)
        chosen[best] = rows[order][firsts] + said.first
        return chosen


def list_orders(
    storage: IndexStorage, out: EdgeTable, orders: Orders, node_ranks: Ints, relation_ranks: Ints
) -> ListTable:
    """Write the table.

    Args:
        storage: Where it goes.
        out: The edges that it is about.
        orders: The members by head and relation, all of them numbers.
        node_ranks: The node id of each number.
        relation_ranks: The relation id of each number.
    """
    placed = sorted(
        (_group(out, int(node_ranks[head]), int(relation_ranks[relation])), node_ranks[list(members)])
        for head, relation, members in ((*group, members) for group, members in orders.items())
    )
    permutations = [_permutation(out, group, members) for group, members in placed]
    lengths = np.array([len(each) for each in permutations], dtype=np.int64)
    return ListTable(
        groups=storage.whole("lists.groups", np.array([group for group, _ in placed], dtype=np.int64)),
        starts=storage.whole("lists.starts", np.append(0, np.cumsum(lengths)).astype(np.int64)),
        places=storage.whole("lists.places", np.concatenate((np.zeros(0, dtype=np.int32), *permutations))),
    )


def kept_orders(
    index: GraphIndex, find_node: Callable[[str], int | None], relations: Mapping[str, int]
) -> dict[tuple[int, int], list[int]]:
    """Return the order of lists in an index by other numbers.

    Args:
        index: Where they are.
        find_node: Returns the number of a node there is.
        relations: The number of each relation.
    """
    out, lists, owners = index.out, index.lists, index.out.owners()
    found: dict[tuple[int, int], list[int]] = {}
    for place, group in enumerate(lists.groups.tolist()):
        order = lists.places[lists.starts[place] : lists.starts[place + 1]]
        members = out.neighbors[out.starts[group] : out.starts[group + 1]][order]
        nodes = [find_node(index.nodes[number]) for number in (int(owners[group]), *members.tolist())]
        head, *tails = (node for node in nodes if node is not None)
        found[head, relations[index.relations[int(out.relations[group])]]] = tails
    return found


def _group(out: EdgeTable, node: int, relation: int) -> int:
    first, last = int(out.groups[node]), int(out.groups[node + 1])
    return first + int(np.searchsorted(out.relations[first:last], relation))


def _permutation(out: EdgeTable, group: int, members: Ints) -> Ints:
    """Return the places of members in a group in their order, then those of the others."""
    neighbors = out.neighbors[out.starts[group] : out.starts[group + 1]]
    listed = np.searchsorted(neighbors, members).astype(np.int32)
    others = np.setdiff1d(np.arange(len(neighbors), dtype=np.int32), listed)
    return np.concatenate((listed, others))
