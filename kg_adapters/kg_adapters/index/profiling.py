"""Compute the profile and the schema of an index over its arrays."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.index.columns import PASSES, Extremes, Sums, first_of_each, most_of_each, portions, summed
from kg_adapters.index.graph_index import (
    Dictionary,
    GraphIndex,
    Ints,
    Longs,
    bare_relations,
    edges_by_relation,
    parts,
    relation_ids,
)
from kg_adapters.index.inverses import linked_relations
from kg_adapters.index.kinds import ClassMembership, KindSums, Rows, members_of
from kg_adapters.labels import Vocabulary
from kg_adapters.models import ClassSummary, Count, EdgeDirection, FeatureSummary, GraphSchema, RelationSummary
from kg_adapters.open_options import memory_of_the_machine_mb
from kg_adapters.prefixes import Prefixes
from kg_adapters.profile import (
    COMPARED,
    MAX_DATATYPES,
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
from kg_adapters.terms import Iri, Triple

_Pairs: TypeAlias = list[tuple[int, int]]
_Listed: TypeAlias = tuple[tuple[PropertyProfile, ...], bool]
_SIDES: Final[tuple[EdgeDirection, ...]] = ("out", "in")
_LEAST_ROWS: Final = 2_000_000
_ROWS_OF_A_STATEMENT: Final = 4
# A row is held with its key and number, and sorted.
_BYTES_OF_A_ROW: Final = 100
_MB: Final = 1_000_000


def profile_of_index(
    index: GraphIndex,
    vocabulary: Vocabulary,
    let_go: Callable[[], None] = lambda: None,
    memory_mb: int | None = None,
    sampled: npt.NDArray[np.bool_] | None = None,
) -> GraphProfile:
    """Return the profile of a graph on this machine.

    Args:
        index: The graph.
        vocabulary: What types its entities.
        let_go: Called when what was read of the index is not needed for a while.
        memory_mb: About how many megabytes of memory it may take besides the index; as reading a file when None.
        sampled: The nodes of which the index holds all statements; only these are counted. None for all nodes.
    """
    statements = len(index.out.neighbors) + len(index.features.relations)
    memory = (memory_of_the_machine_mb() if memory_mb is None else memory_mb) * _MB
    most = min(_LEAST_ROWS + _ROWS_OF_A_STATEMENT * statements, memory // _BYTES_OF_A_ROW)
    entities = ~bare_relations(index)
    if sampled is not None:
        entities &= sampled
    members = members_of(index, vocabulary, entities, most, sampled)
    let_go()
    sums = KindSums(index, members, entities)
    let_go()
    counts = _Counts(index, members, sums, most)
    everything, *classes = _Writer(index, members, counts).known(most * PASSES)
    let_go()
    links = linked_relations(index, sums.heads, sums.over, most, standard=vocabulary.standard_inverses)
    return GraphProfile(
        everything=everything,
        classes=tuple(classes),
        inverses=links.inverses,
        subproperties=links.subproperties,
        values=_values(index, vocabulary, sums),
        complete=members.complete and len(classes) == len(members.classes),
        approximate=not (members.climbed and counts.all_targets and links.whole),
    )


class _Table:
    """What was counted of each kind over relations, in two directions, of some things.

    Args:
        counted: The places times `things` plus the thing, sorted, and the numbers. For places see `KindSums`.
        sums: Where they come from.
        things: How many there are.
    """

    def __init__(self, counted: tuple[Longs, Longs], sums: KindSums, things: int = 1) -> None:
        keys, self.numbers = counted
        size = sums.relations * 2 * things
        self._rows = Rows(np.searchsorted(keys, np.arange(sums.kinds + 1) * size), keys % size)
        self.things = things
        self.sizes = self._rows.sizes

    def rows(self, kinds: Longs, chosen: npt.NDArray[np.bool_]) -> tuple[Longs, Longs]:
        """Return the keys of some kinds without the kind, at chosen places, and the rows where they stand."""
        rows, _ = self._rows.places(kinds)
        keys = self._rows.members[rows].astype(np.int64)
        kept = chosen[keys // self.things]
        return keys[kept], rows[kept]

    def of(self, kinds: Longs, chosen: npt.NDArray[np.bool_]) -> tuple[Longs, Longs]:
        """Return the same keys, each once, and the sums of their numbers."""
        keys, rows = self.rows(kinds, chosen)
        return summed(keys, self.numbers[rows])


class _Counts:
    """What was counted of kinds, to be added up by class.

    Args:
        index: The graph.
        members: The classes of its nodes.
        sums: What was counted of its statements.
        most: How many rows are held. Where entities have so many classes that these were more, only the rarest of each
            are counted as targets, and `all_targets` is false.
    """

    def __init__(self, index: GraphIndex, members: ClassMembership, sums: KindSums, most: int) -> None:
        self._sums = sums
        nodes, datatypes = max(1, len(index.nodes)), max(1, len(index.datatypes))
        direct = members.direct.shortened(self._classes_of_each(members, most), rank=members.stated)
        self.all_targets = direct is members.direct
        facts, targets = Sums(), Sums()
        for near, far, numbers in self._links():
            facts.add(near, numbers)
            for part in portions(direct.sizes[far]):
                classes, rows = direct.expanded(far[part])
                targets.add(near[part][rows] * nodes + classes, numbers[part][rows])
        for part in parts(len(sums.datatypes[0])):
            facts.add(sums.datatypes[0][part] // datatypes, sums.datatypes[1][part])
        keys, *ends = sums.ranges.result()
        self.instances = _Table(sums.instances, sums)
        self.facts = _Table(facts.result(), sums)
        self.targets = _Table(targets.result(), sums, nodes)
        self.datatypes = _Table(sums.datatypes, sums, datatypes)
        self.ranges = _Table((keys, np.column_stack(ends)), sums, sums.comparisons)

    def ends(self, kinds: Longs, chosen: npt.NDArray[np.bool_]) -> dict[int, tuple[int, int]]:
        """Return by key of `ranges` the rows of the least and the greatest value."""
        found = Extremes()
        keys, rows = self.ranges.rows(kinds, chosen)
        for numbers, lines in zip(self._sums.ranges.numbers(), self.ranges.numbers.T, strict=True):
            found.add(keys, numbers[rows], lines[rows])
        columns = (column.tolist() for column in found.result())
        return {key: (least, greatest) for key, least, greatest in zip(*columns, strict=True)}

    def _classes_of_each(self, members: ClassMembership, most: int) -> int:
        """Return how many classes of an entity can be counted as targets."""
        sums, known = self._sums, set[bytes]()
        weights, held, passed = np.zeros((3, sums.kinds), dtype=np.int64)
        for having in map(members.of, range(len(members.classes) + 1)):
            # Classes that have the same instances are added up once.
            weights += having & ((key := np.packbits(having).tobytes()) not in known)
            known.add(key)
        for near, far, _ in self._links():
            held += np.bincount(far, minlength=sums.kinds)
            passed += np.bincount(far, weights[near // (sums.relations * 2)], sums.kinds).astype(np.int64)
        sizes = members.direct.sizes
        return min(most_of_each(sizes, held, most), most_of_each(sizes, passed, most * PASSES))

    def _links(self) -> Iterator[tuple[Longs, Longs, Longs]]:
        """Yield, in parts, places with the kinds that edges lead to from there, and how many edges."""
        sums = self._sums
        for part in parts(len(sums.links[0])):
            places, tails = np.divmod(sums.links[0][part], sums.kinds)
            heads, relations = np.divmod(places // 2, sums.relations)
            numbers = sums.links[1][part]
            yield places, tails, numbers
            yield sums.place(tails, relations, 1), heads, numbers


def _greatest(counted: tuple[Longs, Longs], things: int, most: int) -> dict[int, _Pairs]:
    """Return by place the first few of what was counted there, the greatest number first, then the smallest id."""
    keys, numbers = counted
    places, found = np.divmod(keys, things)
    order = np.lexsort((found, -numbers, places))
    places, found, numbers = places[order], found[order], numbers[order]
    firsts = first_of_each(places)
    inside = np.arange(len(places)) - np.repeat(firsts, np.diff(np.append(firsts, len(places))))
    columns = (column[inside < most].tolist() for column in (places, found, numbers))
    by_place: dict[int, _Pairs] = {}
    for place, thing, number in zip(*columns, strict=True):
        by_place.setdefault(place, []).append((thing, number))
    return by_place


class _Writer:
    """Writes what was counted as profiles."""

    def __init__(self, index: GraphIndex, members: ClassMembership, counts: _Counts) -> None:
        self._index = index
        self._members = members
        self._counts = counts
        self._names = Dictionary(index)

    def known(self, most: int) -> Iterator[ClassProfile]:
        """Yield the profiles of the whole graph and of the listed classes, until so many rows were added up."""
        members, written = self._members, dict[bytes, _Listed]()
        sizes = self._counts.facts.sizes + self._counts.datatypes.sizes + self._counts.ranges.sizes
        for owner in range(len(members.classes) + 1):
            having = members.of(owner)
            key = np.packbits(having).tobytes()
            if not owner or key not in written:
                kinds = np.flatnonzero(having)
                most -= int(sizes[kinds].sum()) if owner else 0
                if most < 0:
                    return
                written[key if owner else b""] = self._listed(kinds, MAX_PROPERTIES if owner else MAX_RELATIONS)
            yield self._class(owner, *written[key if owner else b""])

    def _class(self, owner: int, properties: tuple[PropertyProfile, ...], complete: bool) -> ClassProfile:
        members = self._members
        node = members.classes[owner - 1] if owner else None
        return ClassProfile(
            iri=None if node is None else self._names.node(node),
            label=None if node is None else self._names.label(node),
            instances=int(members.sizes[owner]),
            direct=0 if node is None else int(members.stated[node]),
            broader=tuple(self._names.node(each) for each in members.broader[owner - 1]) if owner else (),
            properties=properties,
            complete=complete,
            at_least=bool(owner) and not members.climbed,
        )

    def _listed(self, kinds: Longs, most: int) -> _Listed:
        """Return the properties of entities of some kinds, and whether these are all."""
        counts, chosen = self._counts, np.ones(max(1, len(self._index.relations)) * 2, dtype=np.bool_)
        places, instances = counts.instances.of(kinds, chosen)
        order = np.lexsort((places, -instances, places % 2))[:most]
        chosen[:] = False
        chosen[places[order]] = True
        facts = dict(zip(*(column.tolist() for column in counts.facts.of(kinds, chosen)), strict=True))
        targets = _greatest(counts.targets.of(kinds, chosen), counts.targets.things, MAX_TARGETS)
        datatypes = _greatest(counts.datatypes.of(kinds, chosen), counts.datatypes.things, MAX_DATATYPES)
        ends = counts.ends(kinds, chosen)
        return tuple(
            self._property(place, number, facts[place], targets.get(place, []), datatypes.get(place, []), ends)
            for place, number in zip(places[order].tolist(), instances[order].tolist(), strict=True)
        ), len(places) <= most

    def _property(
        self,
        place: int,
        instances: int,
        facts: int,
        targets: _Pairs,
        datatypes: _Pairs,
        ends: Mapping[int, tuple[int, int]],
    ) -> PropertyProfile:
        relation = place // 2
        node = int(self._index.relation_nodes[relation])
        label = None if node < 0 else self._names.label(node)
        return PropertyProfile(
            relation=self._names.relation(relation),
            direction=_SIDES[place % 2],
            label=label,
            instances=instances,
            facts=facts,
            targets=tuple((self._names.node(each), number) for each, number in targets),
            values=self._range(place, [each for each, _ in datatypes], ends, label) if datatypes else None,
        )

    def _range(
        self, place: int, datatypes: Sequence[int], ends: Mapping[int, tuple[int, int]], label: str | None
    ) -> ValueRange:
        numbers = {Iri(self._index.datatypes[each]): each for each in datatypes}
        keys = (
            place * self._counts.ranges.things
            + (len(COMPARED) + numbers[by] if isinstance(by, Iri) else COMPARED.index(by))
            for by in compared_by(numbers)
        )
        rows = next((ends[key] for key in keys if key in ends), None)
        least, greatest = (None, None) if rows is None else (self._names.feature(row).value for row in rows)
        return ValueRange(tuple(numbers), least, greatest, unit_in(label))


def _values(index: GraphIndex, vocabulary: Vocabulary, sums: KindSums) -> tuple[ValueCount, ...]:
    """Count the values of each kind, names and descriptions left out."""
    texts = relation_ids(index, vocabulary.texts)
    counted = index.features.datatypes[sums.told & ~np.isin(index.features.relations, texts)]
    counts = np.bincount(counted, minlength=len(index.datatypes))
    kinds = Counter[ValueKind]()
    for number, count in enumerate(counts.tolist()):
        kinds[kind_of(Iri(index.datatypes[number]))] += count
    amounts = int((~np.isin(index.features.relations[sums.quantities], texts)).sum())
    kinds.update({"number": amounts, "text": -amounts})
    return tuple(ValueCount(kind, kinds[kind]) for kind in VALUE_KINDS if kinds[kind])


SCHEMA_CLASSES: Final = 2_000
SCHEMA_RELATIONS: Final = 5_000
_MAX_EXAMPLE: Final = 200
# The best connected of the first so many serves as example, so that a hub is not read through.
_MAX_LOOKED_AT: Final = 1_000


def schema_of_index(index: GraphIndex, vocabulary: Vocabulary, prefixes: Prefixes | None = None) -> GraphSchema:
    """Return the classes, relations and features of a graph, the largest first, with an example of each."""
    counts = _SchemaCounts(index)
    classes = counts.classes(vocabulary.types)
    relations = _largest(edges_by_relation(index))
    features = _largest(np.bincount(index.features.relations, minlength=len(index.relations)))
    return GraphSchema(
        entities=Count(int(np.count_nonzero(~bare_relations(index)))),
        triples=Count(len(index.out.neighbors)),
        classes=tuple(classes[:SCHEMA_CLASSES]),
        relations=tuple(counts.relations(relations[:SCHEMA_RELATIONS])),
        features=tuple(counts.features(features[:SCHEMA_RELATIONS])),
        prefixes=prefixes or Prefixes(),
        complete=len(classes) <= SCHEMA_CLASSES and max(len(relations), len(features)) <= SCHEMA_RELATIONS,
    )


class _SchemaCounts:
    """The summaries of one index; a better connected entity makes the better example."""

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._names = Dictionary(index)
        self._degrees = np.diff(index.links.starts)

    def classes(self, types: Sequence[Iri]) -> list[ClassSummary]:
        """Return every class, the largest first."""
        into, instances = self._index.into, dict[int, Ints]()
        groups = np.flatnonzero(np.isin(into.relations, relation_ids(self._index, types)))
        for group, owner in zip(groups.tolist(), into.owners()[groups].tolist(), strict=True):
            found = into.neighbors[into.starts[group] : into.starts[group + 1]]
            instances[owner] = np.union1d(instances[owner], found) if owner in instances else found
        order = sorted(instances, key=lambda owner: (-len(instances[owner]), owner))
        return [
            ClassSummary(
                self._names.node(owner),
                self._names.label(owner),
                Count(len(instances[owner])),
                self._names.node(self._best(instances[owner])),
            )
            for owner in order
        ]

    def relations(self, chosen: Sequence[tuple[int, int]]) -> Iterator[RelationSummary]:
        """Yield relations with their number of triples, given as pairs of id and number."""
        out = self._index.out
        owners = out.owners()
        best = self._best_rows(out.relations, owners)
        for number, count in chosen:
            group, relation = best[number], self._names.relation(number)
            tail = self._best(out.neighbors[out.starts[group] : out.starts[group + 1]])
            example = Triple(self._names.node(int(owners[group])), relation, self._names.node(tail))
            yield RelationSummary(relation, self._relation_label(number), Count(count), example)

    def features(self, chosen: Sequence[tuple[int, int]]) -> Iterator[FeatureSummary]:
        """Yield relations to literals with their number of statements, given as pairs of id and number."""
        table = self._index.features
        owners = np.repeat(np.arange(len(self._degrees), dtype=np.int32), np.diff(table.starts))
        short = np.flatnonzero(np.diff(table.values.offsets) <= _MAX_EXAMPLE)
        best = self._best_rows(table.relations[short], owners[short])
        for number, count in chosen:
            example = self._names.literal(int(short[best[number]])) if number in best else None
            yield FeatureSummary(self._names.relation(number), self._relation_label(number), Count(count), example)

    def _best_rows(self, relations: Ints, owners: Ints) -> dict[int, int]:
        found = Extremes()
        for part in parts(len(relations)):
            rows: Longs = np.arange(part.start, part.stop, dtype=np.int64)
            found.add(relations[part].astype(np.int64), self._degrees[owners[part]].astype(np.float64), rows)
        keys, _, best = found.result()
        return dict(zip(keys.tolist(), best.tolist(), strict=True))

    def _best(self, nodes: Ints) -> int:
        return int(nodes[np.argmax(self._degrees[nodes[:_MAX_LOOKED_AT]])])

    def _relation_label(self, relation: int) -> str | None:
        node = int(self._index.relation_nodes[relation])
        return None if node < 0 else self._names.label(node)


def _largest(counts: Longs) -> list[tuple[int, int]]:
    """Return (id, count) of all that occur, the largest count first, then by id."""
    order = np.lexsort((np.arange(len(counts)), -counts))
    pairs = zip(order.tolist(), counts[order].tolist(), strict=True)
    return [(number, count) for number, count in pairs if count]
