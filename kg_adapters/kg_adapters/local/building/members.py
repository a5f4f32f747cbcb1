"""Which classes the nodes of an index belong to: every node has a kind, the set of classes that are said of it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from kg_adapters.labels import Vocabulary
from kg_adapters.local.building.sums import first_of_each
from kg_adapters.local.index import GraphIndex, Ints, Longs
from kg_adapters.profile import MAX_CLASSES
from kg_adapters.terms import Iri


@dataclass(frozen=True, slots=True)
class Rows:
    """Lists of numbers one behind the other: list `i` is `members[starts[i]:starts[i + 1]]`."""

    starts: Longs
    members: Longs | Ints

    def expanded(self, lists: Longs) -> tuple[Longs, Longs]:
        """Return the members of many lists, and for each the place in `lists` that it belongs to."""
        sizes = self.starts[lists + 1] - self.starts[lists]
        places = np.repeat(np.arange(len(lists)), sizes)
        inside = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.members[self.starts[lists][places] + inside].astype(np.int64), places


@dataclass(frozen=True, slots=True)
class Members:
    """The classes of all nodes.

    Args:
        kinds: The kind of every node; 0 where it is of no class.
        direct: The classes of each kind, as node ids.
        owners: The listed classes that each kind belongs to, over subclasses too, as places in `classes` plus one; 0,
            which all belong to, stands for the whole graph.
        classes: The listed classes, as node ids, the largest first.
        sizes: How many entities the whole graph and every listed class has.
        stated: How many entities are said to be of each of them.
        broader: For every listed class what it is a subclass of, as node ids.
        complete: Whether all classes are listed.
    """

    kinds: Longs
    direct: Rows
    owners: Rows
    classes: tuple[int, ...]
    sizes: Longs
    stated: Longs
    broader: tuple[tuple[int, ...], ...]
    complete: bool


def members_of(index: GraphIndex, vocabulary: Vocabulary, entities: npt.NDArray[np.bool_]) -> Members:
    """Return the classes of all nodes; `entities` says which of them count."""
    nodes, classes = _pairs(index, vocabulary.types)
    kinds, direct = _kinds(nodes, classes, len(index.nodes))
    wider: dict[int, set[int]] = {}
    for narrow, wide in zip(*(column.tolist() for column in _pairs(index, vocabulary.subclasses)), strict=True):
        wider.setdefault(narrow, set()).add(wide)
    reached = _reached(direct, wider)
    people = np.bincount(kinds[entities], minlength=len(direct.starts) - 1)
    sizes = _sizes(reached, people.tolist())
    order = sorted(sizes, key=lambda owner: (-sizes[owner], owner))
    listed = tuple(order[:MAX_CLASSES])
    places = {owner: place for place, owner in enumerate(listed, start=1)}
    kept = ([0, *sorted(places[owner] for owner in owners if owner in places)] for owners in reached)
    stated = _sizes((direct.members[first:last].tolist() for first, last in _bounds(direct)), people.tolist())
    return Members(
        kinds=kinds,
        direct=direct,
        owners=_rows(kept),
        classes=listed,
        sizes=np.array([people.sum(), *(sizes[owner] for owner in listed)], dtype=np.int64),
        stated=np.array([0, *(stated.get(owner, 0) for owner in listed)], dtype=np.int64),
        broader=tuple(tuple(sorted(wider.get(owner, ()))) for owner in listed),
        complete=len(listed) == len(order),
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
    ahead = np.flatnonzero(np.diff(starts))
    turn, wide = 0, int(classes.max(initial=0)) + 1
    while len(ahead):
        # Nodes that had the same classes so far, and have the same next one, stay together.
        key = (kinds[ahead] * (turn > 0) + 1) * wide + classes[starts[ahead] + turn]
        offset = int(kinds.max()) + 1
        kinds[ahead] = offset + np.unique(key, return_inverse=True)[1]
        turn += 1
        ahead = ahead[np.diff(starts)[ahead] > turn]
    _, firsts, dense = np.unique(np.append(0, kinds), return_index=True, return_inverse=True)
    examples = firsts[1:] - 1
    members: list[list[int]] = [classes[starts[each] : starts[each + 1]].tolist() for each in examples.tolist()]
    return dense[1:].astype(np.int64), _rows([[], *members])


def _reached(direct: Rows, wider: dict[int, set[int]]) -> list[set[int]]:
    known: dict[int, set[int]] = {}
    reached: list[set[int]] = []
    for first, last in _bounds(direct):
        owners = direct.members[first:last].tolist()
        for owner in owners:
            if owner not in known:
                known[owner] = _above(owner, wider)
        reached.append({each for owner in owners for each in known[owner]})
    return reached


def _above(owner: int, wider: dict[int, set[int]]) -> set[int]:
    """Return a class with everything that it is a subclass of, over any number of steps."""
    found, ahead = {owner}, [owner]
    while ahead:
        fresh = wider.get(ahead.pop(), set()) - found
        found |= fresh
        ahead.extend(fresh)
    return found


def _sizes(kinds: Iterable[Collection[int]], people: list[int]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for owners, number in zip(kinds, people, strict=True):
        for owner in owners if number else ():
            sizes[owner] = sizes.get(owner, 0) + number
    return sizes


def _bounds(rows: Rows) -> Iterable[tuple[int, int]]:
    bounds: list[int] = rows.starts.tolist()
    return pairwise(bounds)


def _rows(lists: Iterable[Collection[int]]) -> Rows:
    kept = [list(each) for each in lists]
    starts = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in kept], out=starts[1:])
    return Rows(starts, np.array([number for each in kept for number in each], dtype=np.int64))
