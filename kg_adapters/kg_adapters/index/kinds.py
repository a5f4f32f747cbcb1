"""Which classes nodes belong to, and the statements of an index summed by the classes of their nodes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.index.columns import (
    PASSES,
    Extremes,
    Floats,
    Sums,
    first_of_each,
    most_of_each,
    orders_of,
    portions,
    spread,
)
from kg_adapters.index.graph_index import Bytes, GraphIndex, Ints, Longs, parts
from kg_adapters.labels import Vocabulary
from kg_adapters.profile import (
    COMPARED,
    MAX_CLASSES,
    ValueKind,
    is_unit,
    kind_of,
)
from kg_adapters.terms import Iri

# Sets of more classes than this are compared as a whole, not class by class.
_MANY: Final = 32


@dataclass(frozen=True, slots=True)
class Rows:
    """Lists of numbers one behind the other: list `i` is `members[starts[i]:starts[i + 1]]`."""

    starts: Longs
    members: Longs | Ints

    @property
    def sizes(self) -> Longs:
        """The length of each list."""
        return np.diff(self.starts)

    def places(self, lists: Longs) -> tuple[Longs, Longs]:
        """Return where the members of many lists stand, and for each the place in `lists` that it belongs to."""
        return spread(self.starts[lists], self.starts[lists + 1])

    def expanded(self, lists: Longs) -> tuple[Longs, Longs]:
        """Return the members of many lists, and for each the place in `lists` that it belongs to."""
        found, places = self.places(lists)
        return self.members[found].astype(np.int64), places

    def twice(self) -> "Rows":
        """Return the lists, and all of them once more behind these."""
        starts: Longs = np.concatenate((self.starts, self.starts[1:] + self.starts[-1]))
        members: Longs = np.concatenate((self.members, self.members)).astype(np.int64)
        return Rows(starts, members)

    def shortened(self, most: int, rank: Longs | None = None) -> "Rows":
        """Return the lists with at most so many members each: the first, or those of the least rank."""
        sizes = self.sizes
        if int(sizes.max(initial=0)) <= most:
            return self
        members, owners = self.members, np.repeat(np.arange(len(sizes)), sizes)
        if rank is not None:
            members = members[np.lexsort((members, rank[members], owners))]
        inside = np.arange(len(members)) - np.repeat(self.starts[:-1], sizes)
        starts = np.append(0, np.cumsum(np.minimum(sizes, most)))
        return Rows(starts, members[inside < most])


@dataclass(frozen=True, slots=True)
class ClassMembership:
    """The classes of all nodes.

    Args:
        kinds: The kind of every node; 0 where it is of no class.
        direct: The classes of each kind, as node ids.
        owners: Which of the listed classes each kind belongs to, over subclasses too, as bits: the first stands for the
            whole graph, which all belong to, the next for `classes`.
        classes: The listed classes, as node ids, the largest first.
        sizes: How many entities the whole graph and every listed class has.
        stated: How many entities have each node as a stated type.
        broader: For every listed class what it is a subclass of, as node ids.
        complete: Whether all classes are listed.
        climbed: Whether all superclasses of all classes were counted, and not only the nearest.
    """

    kinds: Longs
    direct: Rows
    owners: Bytes
    classes: tuple[int, ...]
    sizes: Longs
    stated: Longs
    broader: tuple[tuple[int, ...], ...]
    complete: bool
    climbed: bool

    def of(self, owner: int) -> npt.NDArray[np.bool_]:
        """Return for each kind whether it belongs to a listed class by its place, 0 for the whole graph."""
        bits = self.owners[:, owner // 8] >> (7 - owner % 8)
        return (bits & 1).astype(np.bool_)


def members_of(
    index: GraphIndex,
    vocabulary: Vocabulary,
    entities: npt.NDArray[np.bool_],
    most: int,
    sampled: npt.NDArray[np.bool_] | None = None,
) -> ClassMembership:
    """Return the classes of all nodes.

    Args:
        index: The graph.
        vocabulary: What types its entities.
        entities: Which nodes count.
        most: How many superclasses are counted at once; of more of them the nearest to each class.
        sampled: The nodes of which the index holds all statements; the others belong to no class, but are told apart by
            their classes. None for all nodes.
    """
    nodes, classes = _pairs(index, vocabulary.types)
    kinds, direct = _kinds(nodes, classes, len(index.nodes))
    described = len(direct.starts) - 1
    if sampled is not None:
        kinds, direct = np.where(sampled, kinds, kinds + described), direct.twice()
    people = np.bincount(kinds[entities], minlength=len(direct.starts) - 1)
    wider: dict[int, list[int]] = {}
    for narrow, wide in zip(*(column.tolist() for column in _pairs(index, vocabulary.subclasses)), strict=True):
        wider.setdefault(narrow, []).append(wide)
    reached = _Reached(direct, wider, most)
    found = Sums()
    for kind, owner in reached.pairs():
        found.add(owner, people[kind])
    owners, sizes = found.result()
    owners, sizes = owners[sizes > 0], sizes[sizes > 0]
    order = np.lexsort((owners, -sizes))[:MAX_CLASSES]
    listed: list[int] = owners[order].tolist()
    places = np.zeros(len(index.nodes), dtype=np.int64)
    places[listed] = np.arange(1, len(listed) + 1)
    stated = np.bincount(direct.members, np.repeat(people, direct.sizes), len(index.nodes)).astype(np.int64)
    bits = _bits(reached.pairs(), places, len(people), len(listed) + 1)
    bits[described:] = 0
    return ClassMembership(
        kinds=kinds,
        direct=direct,
        owners=bits,
        classes=tuple(listed),
        sizes=np.append(people.sum(), sizes[order]),
        stated=stated,
        broader=tuple(tuple(wider.get(owner, ())) for owner in listed),
        complete=len(listed) == len(owners) and reached.whole,
        climbed=reached.whole,
    )


def _pairs(index: GraphIndex, relations: Iterable[Iri]) -> tuple[Longs, Longs]:
    """Return the heads and tails of all edges over some relations, sorted and distinct."""
    out = index.out
    numbers = [number for iri in relations if (number := index.relations.find(iri.value)) is not None]
    groups = np.flatnonzero(np.isin(out.relations, numbers))
    edges, places = Rows(out.starts, out.neighbors).expanded(groups)
    heads = np.searchsorted(out.groups, groups[places], side="right") - 1
    pairs = np.sort(heads * len(index.nodes) + edges)
    found, tails = np.divmod(pairs[first_of_each(pairs)], max(len(index.nodes), 1))
    return found, tails


def _kinds(nodes: Longs, classes: Longs, count: int) -> tuple[Longs, Rows]:
    """Number the sets of classes that nodes have: 0 is the empty set."""
    kinds = np.zeros(count, dtype=np.int64)
    starts = np.searchsorted(nodes, np.arange(count + 1))
    sizes = np.diff(starts)
    ahead = np.flatnonzero((sizes > 0) & (sizes <= _MANY))
    turn, offset, wide = 0, 1, int(classes.max(initial=0)) + 1
    while len(ahead):
        # Nodes that had the same classes so far, and have the same next one, stay together.
        key = kinds[ahead] * wide + classes[starts[ahead] + turn]
        distinct, places = np.unique(key, return_inverse=True)
        kinds[ahead] = offset + places
        offset += len(distinct)
        turn += 1
        ahead = ahead[sizes[ahead] > turn]
    sets: dict[bytes, int] = {}
    for node in np.flatnonzero(sizes > _MANY).tolist():
        own = classes[starts[node] : starts[node + 1]].tobytes()
        kinds[node] = offset + sets.setdefault(own, len(sets))
    _, firsts, dense = np.unique(np.append(0, kinds), return_index=True, return_inverse=True)
    members, _ = Rows(starts, classes).expanded(firsts[1:] - 1)
    return dense[1:].astype(np.int64), Rows(np.append([0, 0], np.cumsum(sizes[firsts[1:] - 1])), members)


class _Reached:
    """The classes that kinds belong to, over subclasses too.

    Args:
        direct: The classes of each kind.
        wider: What classes are subclasses of.
        most: How many superclasses are counted; `whole` says whether these are all.
    """

    def __init__(self, direct: Rows, wider: dict[int, list[int]], most: int) -> None:
        self._direct = direct
        self._classes = np.unique(direct.members)
        classes: list[int] = self._classes.tolist()
        above = _above_all(classes, wider, most)
        self.whole = above is not None
        above = above or [_above(owner, wider, max(1, most // len(classes))) for owner in classes]
        sizes = np.array([len(each) for each in above], dtype=np.int64)
        rows = Rows(np.append(0, np.cumsum(sizes)), np.fromiter(chain.from_iterable(above), np.int32, int(sizes.sum())))
        used = np.bincount(np.searchsorted(self._classes, direct.members), minlength=len(classes))
        self._above = rows.shortened(most_of_each(sizes, used, most * PASSES))
        self.whole &= self._above is rows

    def pairs(self) -> Iterator[tuple[Longs, Longs]]:
        """Yield, in parts, kinds with the classes that they belong to."""
        direct = np.searchsorted(self._classes, self._direct.members)
        steps = np.append(0, np.cumsum(self._above.sizes[direct]))
        for part in portions(np.diff(steps[self._direct.starts]) + MAX_CLASSES):
            kinds: Longs = np.arange(part.start, part.stop, dtype=np.int64)
            places, rows = self._direct.places(kinds)
            owners, more = self._above.expanded(direct[places])
            size = int(owners.max(initial=0)) + 1
            keys = np.sort(kinds[rows[more]] * size + owners)
            kind, owner = np.divmod(keys[first_of_each(keys)], size)
            yield kind, owner


def _above_all(classes: Sequence[int], wider: dict[int, list[int]], most: int) -> list[list[int]] | None:
    """Return what each class is a subclass of, or None where that is more than so many."""
    found: list[list[int]] = []
    for owner in classes:
        found.append(_above(owner, wider, most + 1))
        most -= len(found[-1])
        if most < 0:
            return None
    return found


def _above(owner: int, wider: dict[int, list[int]], most: int) -> list[int]:
    """Return a class and everything that it is a subclass of, over any number of steps, the nearest so many."""
    found, ahead = {owner}, [owner]
    for each in ahead:
        for wide in wider.get(each, ()):
            if len(ahead) >= most:
                return ahead
            if wide not in found:
                found.add(wide)
                ahead.append(wide)
    return ahead


def _bits(pairs: Iterable[tuple[Longs, Longs]], places: Longs, kinds: int, owners: int) -> Bytes:
    """Return for each kind the places of the classes that it belongs to, as bits; 0 is set for all."""
    found = np.zeros((kinds, -(-owners // 8)), dtype=np.uint8)
    found[:, 0] = 128
    for kind, owner in pairs:
        listed = np.flatnonzero(places[owner])
        if len(listed):
            first, last = int(kind[0]), int(kind[-1]) + 1
            flags = np.zeros((last - first, owners), dtype=np.bool_)
            flags[kind[listed] - first, places[owner[listed]]] = True
            found[first:last] |= np.packbits(flags, axis=1)
    return found


class KindSums:
    """The statements of an index, added up by the kind of their entities.

    A place is a number that stands for an owner (here a kind), a relation and a direction, 0 for out and 1 for in. What
    is counted are pairs of keys, sorted, and their numbers.

    Attributes:
        relations: How many relations there are.
        kinds: How many kinds there are.
        heads: The head of every edge, in the order of `index.out`.
        over: The relation of every edge.
        value_heads: The head of every value, in the order of `index.features`.
        told: Which values belong to entities.
        instances: How many nodes of a kind have a relation: by place.
        links: How many edges lead from a kind over a relation to a kind: by place, times `kinds`, plus the other kind.
        datatypes: How many values have a datatype: by place, times the number of datatypes, plus the datatype.
        quantities: The rows of values with a unit.
        ranges: The least and greatest dates and numbers, and those of each unit: by place, times `comparisons`, plus 0
            for dates, 1 for numbers, or 2 plus the unit's number among the datatypes.
        comparisons: How many different numbers may be added to a place in `ranges`.
    """

    def __init__(self, index: GraphIndex, members: ClassMembership, entities: npt.NDArray[np.bool_]) -> None:
        self._index = index
        self._kinds = members.kinds
        self.relations = max(1, len(index.relations))
        self.kinds = len(members.direct.starts) - 1
        self.heads: Ints = np.repeat(index.out.owners(), np.diff(index.out.starts))
        self.over: Ints = np.repeat(index.out.relations, np.diff(index.out.starts))
        nodes = np.arange(len(index.nodes), dtype=np.int32)
        self.value_heads: Ints = np.repeat(nodes, np.diff(index.features.starts))
        self.told = entities[self.value_heads]
        self.instances = self._instances()
        self.links = self._links()
        self.datatypes = self._datatypes()
        self.quantities = np.zeros(0, dtype=np.int64)
        self.comparisons = len(COMPARED) + len(index.datatypes)
        self.ranges = self._ranges()

    def place(self, owners: Longs, relations: Ints | Longs, side: int) -> Longs:
        """Return the places of owners, relations and a direction."""
        return (owners * self.relations + relations) * 2 + side

    def _instances(self) -> tuple[Longs, Longs]:
        index, sums = self._index, Sums()
        edges, values = index.out.owners(), self.value_heads
        for part in parts(len(index.nodes), edges, values):
            near = slice(*np.searchsorted(edges, (part.start, part.stop)))
            own = slice(*np.searchsorted(values, (part.start, part.stop)))
            told = self.told[own]
            heads = np.concatenate((edges[near], values[own][told])).astype(np.int64)
            over = np.concatenate((index.out.relations[near], index.features.relations[own][told]))
            pairs = np.sort(heads * self.relations + over, kind="stable")
            found, relations = np.divmod(pairs[first_of_each(pairs)], self.relations)
            sums.add(self.place(self._kinds[found], relations, 0))
        tails = index.into.owners()
        for part in parts(len(tails)):
            sums.add(self.place(self._kinds[tails[part]], index.into.relations[part], 1))
        return sums.result()

    def _links(self) -> tuple[Longs, Longs]:
        sums = Sums()
        for part in parts(len(self.heads)):
            places = self.place(self._kinds[self.heads[part]], self.over[part], 0)
            sums.add(places * self.kinds + self._kinds[self._index.out.neighbors[part]])
        return sums.result()

    def _datatypes(self) -> tuple[Longs, Longs]:
        features, sums, count = self._index.features, Sums(), max(1, len(self._index.datatypes))
        for part in parts(len(features.relations)):
            rows = np.flatnonzero(self.told[part]) + part.start
            places = self.place(self._kinds[self.value_heads[rows]], features.relations[rows], 0)
            sums.add(places * count + features.datatypes[rows])
        return sums.result()

    def _ranges(self) -> Extremes:
        found = Extremes()
        datatypes = [Iri(self._index.datatypes[number]) for number in range(len(self._index.datatypes))]
        for by, kind in enumerate(COMPARED):
            numbers = [number for number, each in enumerate(datatypes) if kind_of(each) == kind]
            for rows, orders in self._ordered(numbers, kind):
                found.add(self._over(rows) * self.comparisons + by, orders, rows)
        for rows, orders in self._ordered([number for number, each in enumerate(datatypes) if is_unit(each)], "number"):
            self.quantities = np.concatenate((self.quantities, rows))
            units = self._index.features.datatypes[rows].astype(np.int64)
            found.add(self._over(rows) * self.comparisons + len(COMPARED) + units, orders, rows)
        return found

    def _ordered(self, datatypes: Sequence[int], kind: ValueKind) -> Iterator[tuple[Longs, Floats]]:
        """Yield, in parts, the rows of values of some datatypes, and what orders them."""
        features = self._index.features
        for part in parts(len(features.relations)):
            rows = np.flatnonzero(self.told[part] & np.isin(features.datatypes[part], datatypes)) + part.start
            orders = orders_of(features.values, rows, kind)
            yield rows[~np.isnan(orders)], orders[~np.isnan(orders)]

    def _over(self, rows: Longs) -> Longs:
        return self.place(self._kinds[self.value_heads[rows]], self._index.features.relations[rows], 0)
