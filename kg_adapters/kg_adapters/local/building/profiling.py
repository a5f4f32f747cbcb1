"""The profile of an index, counted over its arrays: equal to what `kg_adapters.profiling` counts one by one.

Statements are first added up by the kind of their entities (the set of classes that is said of them), of which there
are few, and only then by class.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from kg_adapters.labels import Vocabulary
from kg_adapters.local.building.kind_sums import KindSums
from kg_adapters.local.building.members import Members, members_of
from kg_adapters.local.building.pairs import inverses_of
from kg_adapters.local.building.sums import Extremes, Sums, parts
from kg_adapters.local.dictionary import Dictionary
from kg_adapters.local.index import GraphIndex, Longs
from kg_adapters.local.names.table import bare_relations
from kg_adapters.models import EdgeDirection
from kg_adapters.profile import (
    MAX_PROPERTIES,
    MAX_RELATIONS,
    MAX_TARGETS,
    VALUE_KINDS,
    ClassProfile,
    GraphProfile,
    PropertyProfile,
    ValueCount,
    ValueKind,
    ValueRange,
    compared_by,
    kind_of,
    unit_in,
)
from kg_adapters.terms import Iri, Literal

_SIDES: Final[tuple[EdgeDirection, ...]] = ("out", "in")


def profile_of_index(
    index: GraphIndex, vocabulary: Vocabulary, let_go: Callable[[], None] = lambda: None
) -> GraphProfile:
    """Return the profile of a graph on this machine.

    Args:
        index: The graph.
        vocabulary: What types its entities.
        let_go: Called when what was read of the index is not needed for a while.
    """
    entities = ~bare_relations(index)
    members = members_of(index, vocabulary, entities)
    let_go()
    sums = KindSums(index, members, entities)
    let_go()
    writer = _Writer(index, members, sums.relations, _by_class(sums, members, index))
    everything, *classes = (writer.known(owner) for owner in range(len(members.classes) + 1))
    let_go()
    return GraphProfile(
        everything=everything,
        classes=tuple(classes),
        inverses=inverses_of(index, sums.heads, sums.over),
        values=_values(index, vocabulary, sums),
        complete=members.complete,
    )


@dataclass(frozen=True, slots=True)
class _ByClass:
    """What is counted of every class, relation and direction, by place as in `KindSums`, the owner being a class.

    Targets and datatypes are pairs of a node or datatype and a number, the greatest first. Ranges of quantities are by
    the number of their unit among the datatypes.
    """

    instances: dict[int, int]
    facts: dict[int, int]
    targets: dict[int, list[tuple[int, int]]]
    datatypes: dict[int, list[tuple[int, int]]]
    ranges: dict[ValueKind | int, dict[int, tuple[int, int]]]


def _by_class(sums: KindSums, members: Members, index: GraphIndex) -> _ByClass:
    instances, facts, targets, datatypes = Sums(), Sums(), Sums(), Sums()
    classes = _Classes(members, sums.relations * 2)
    for places, numbers in _in_parts(*sums.instances):
        keys, rows = classes.places(places)
        instances.add(keys, numbers[rows])
    for links, numbers in _in_parts(*sums.links):
        places, tails = np.divmod(links, sums.kinds)
        heads, relations = np.divmod(places // 2, sums.relations)
        for near, far in ((places, tails), (sums.place(tails, relations, 1), heads)):
            keys, rows = classes.places(near)
            facts.add(keys, numbers[rows])
            direct, rows_of = members.direct.expanded(far[rows])
            targets.add(keys[rows_of] * len(index.nodes) + direct, numbers[rows][rows_of])
    for values, numbers in _in_parts(*sums.datatypes):
        places, datatype = np.divmod(values, len(index.datatypes))
        keys, rows = classes.places(places)
        facts.add(keys, numbers[rows])
        datatypes.add(keys * len(index.datatypes) + datatype[rows], numbers[rows])
    return _ByClass(
        dict(_pairs(instances)),
        dict(_pairs(facts)),
        _greatest(targets, len(index.nodes), MAX_TARGETS),
        _greatest(datatypes, len(index.datatypes), len(index.datatypes)),
        {kind: _ends(extremes, classes) for kind, extremes in sums.ranges.items()},
    )


class _Classes:
    """Turns places of kinds into places of classes."""

    def __init__(self, members: Members, size: int) -> None:
        self._members = members
        self._size = size

    def places(self, places: Longs) -> tuple[Longs, Longs]:
        """Return the places of all classes that kinds belong to, and for each the row that it comes from."""
        kinds, rest = np.divmod(places, self._size)
        owners, rows = self._members.owners.expanded(kinds)
        return owners * self._size + rest[rows], rows


def _in_parts(keys: Longs, numbers: Longs) -> list[tuple[Longs, Longs]]:
    return [(keys[part], numbers[part]) for part in parts(len(keys))]


def _pairs(sums: Sums) -> list[tuple[int, int]]:
    keys, numbers = sums.result()
    return list(zip(keys.tolist(), numbers.tolist(), strict=True))


def _greatest(sums: Sums, size: int, most: int) -> dict[int, list[tuple[int, int]]]:
    """Return by place the first few of what was counted there, the greatest number first, then the smallest id."""
    keys, numbers = sums.result()
    if not len(keys):
        return {}
    places, things = np.divmod(keys, size)
    order = np.lexsort((things, -numbers, places))
    places, things, numbers = places[order], things[order], numbers[order]
    _, firsts, sizes = np.unique(places, return_index=True, return_counts=True)
    chosen = np.flatnonzero(np.arange(len(places)) - np.repeat(firsts, sizes) < most)
    found: dict[int, list[tuple[int, int]]] = {}
    columns = (column[chosen].tolist() for column in (places, things, numbers))
    for place, thing, number in zip(*columns, strict=True):
        found.setdefault(place, []).append((thing, number))
    return found


def _ends(extremes: Extremes, classes: _Classes) -> dict[int, tuple[int, int]]:
    """Return by place the rows of the least and the greatest value."""
    found = Extremes()
    places, *ends = extremes.result()
    keys, rows = classes.places(places)
    for numbers, lines in zip(extremes.numbers(), ends, strict=True):
        found.add(keys, numbers[rows], lines[rows])
    columns = (column.tolist() for column in found.result())
    return {place: (least, greatest) for place, least, greatest in zip(*columns, strict=True)}


class _Writer:
    """Writes what was counted as profiles."""

    def __init__(self, index: GraphIndex, members: Members, relations: int, counted: _ByClass) -> None:
        self._index = index
        self._members = members
        self._size = relations * 2
        self._counted = counted
        self._names = Dictionary(index)
        self._places: dict[int, list[int]] = {}
        for place in counted.instances:
            self._places.setdefault(place // self._size, []).append(place)

    def known(self, owner: int) -> ClassProfile:
        """Return the profile of a class by its place among the listed ones, 0 for the whole graph."""
        members = self._members
        places = sorted(self._places.get(owner, ()), key=self._order)
        most = MAX_PROPERTIES if owner else MAX_RELATIONS
        node = members.classes[owner - 1] if owner else None
        return ClassProfile(
            iri=None if node is None else self._names.node(node),
            label=None if node is None else self._names.label(node),
            instances=int(members.sizes[owner]),
            direct=int(members.stated[owner]),
            broader=tuple(self._names.node(each) for each in members.broader[owner - 1]) if owner else (),
            properties=tuple(self._property(place) for place in places[:most]),
            complete=len(places) <= most,
        )

    def _order(self, place: int) -> tuple[int, int, int]:
        return place % 2, -self._counted.instances[place], place

    def _property(self, place: int) -> PropertyProfile:
        relation, counted = place % self._size // 2, self._counted
        node = int(self._index.relation_nodes[relation])
        label = None if node < 0 else self._names.label(node)
        return PropertyProfile(
            relation=self._names.relation(relation),
            direction=_SIDES[place % 2],
            label=label,
            instances=counted.instances[place],
            facts=counted.facts[place],
            targets=tuple((self._names.node(each), number) for each, number in counted.targets.get(place, ())),
            values=self._range(place, label) if place in counted.datatypes else None,
        )

    def _range(self, place: int, label: str | None) -> ValueRange:
        numbers = {Iri(self._index.datatypes[each]): each for each, _ in self._counted.datatypes[place]}
        ranges = (
            self._counted.ranges.get(numbers[by] if isinstance(by, Iri) else by, {}) for by in compared_by(numbers)
        )
        ends = next((found[place] for found in ranges if place in found), None)
        least, greatest = (None, None) if ends is None else (self._value(ends[0]), self._value(ends[1]))
        return ValueRange(tuple(numbers), least, greatest, unit_in(label))

    def _value(self, row: int) -> Literal:
        return self._names.feature(row).value


def _values(index: GraphIndex, vocabulary: Vocabulary, sums: KindSums) -> tuple[ValueCount, ...]:
    """Count the values of each kind, names and descriptions left out."""
    texts = [number for iri in vocabulary.texts if (number := index.relations.find(iri.value)) is not None]
    counted = index.features.datatypes[sums.told & ~np.isin(index.features.relations, texts)]
    counts = np.bincount(counted, minlength=len(index.datatypes))
    kinds = Counter[ValueKind]()
    for number, count in enumerate(counts.tolist()):
        kinds[kind_of(Iri(index.datatypes[number]))] += count
    amounts = int((~np.isin(index.features.relations[sums.quantities], texts)).sum())
    kinds.update({"number": amounts, "text": -amounts})
    return tuple(ValueCount(kind, kinds[kind]) for kind in VALUE_KINDS if kinds[kind])
