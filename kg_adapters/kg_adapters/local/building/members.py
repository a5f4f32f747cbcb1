"""Which classes the nodes of an index belong to: every node has a kind, the set of classes that are said of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.labels import Vocabulary
from kg_adapters.local.building.sums import PASSES, Sums, first_of_each, most_of_each, portions
from kg_adapters.local.index import Bytes, GraphIndex, Ints, Longs
from kg_adapters.profile import MAX_CLASSES
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
        sizes = self.starts[lists + 1] - self.starts[lists]
        places = np.repeat(np.arange(len(lists)), sizes)
        inside = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.starts[lists][places] + inside, places

    def expanded(self, lists: Longs) -> tuple[Longs, Longs]:
        """Return the members of many lists, and for each the place in `lists` that it belongs to."""
        found, places = self.places(lists)
        return self.members[found].astype(np.int64), places

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
class Members:
    """The classes of all nodes.

    Args:
        kinds: The kind of every node; 0 where it is of no class.
        direct: The classes of each kind, as node ids.
        owners: Which of the listed classes each kind belongs to, over subclasses too, as bits: the first stands for the
            whole graph, which all belong to, the next for `classes`.
        classes: The listed classes, as node ids, the largest first.
        sizes: How many entities the whole graph and every listed class has.
        stated: How many entities are said to be of every node.
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


def members_of(index: GraphIndex, vocabulary: Vocabulary, entities: npt.NDArray[np.bool_], most: int) -> Members:
    """Return the classes of all nodes.

    Args:
        index: The graph.
        vocabulary: What types its entities.
        entities: Which nodes count.
        most: How many superclasses are counted at once; of more of them the nearest to each class.
    """
    nodes, classes = _pairs(index, vocabulary.types)
    kinds, direct = _kinds(nodes, classes, len(index.nodes))
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
    return Members(
        kinds=kinds,
        direct=direct,
        owners=_bits(reached.pairs(), places, len(people), len(listed) + 1),
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
