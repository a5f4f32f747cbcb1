"""The statements of an index, added up by the kind of their entities, before anything is said about classes."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from kg_adapters.local.building.members import Members
from kg_adapters.local.building.sums import Extremes, Sums, first_of_each, parts
from kg_adapters.local.building.value_columns import Floats, orders_of
from kg_adapters.local.index import GraphIndex, Ints, Longs
from kg_adapters.profile import COMPARED, ValueKind, is_unit, kind_of
from kg_adapters.terms import Iri


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
        told: Which values are said of entities.
        instances: How many nodes of a kind have a relation: by place.
        links: How many edges lead from a kind over a relation to a kind: by place, times `kinds`, plus the other kind.
        datatypes: How many values have a datatype: by place, times the number of datatypes, plus the datatype.
        quantities: The rows of values with a unit.
        ranges: The least and greatest dates and numbers, and those of each unit: by place, times `comparisons`, plus 0
            for dates, 1 for numbers, or 2 plus the unit's number among the datatypes.
        comparisons: How many different numbers may be added to a place in `ranges`.
    """

    def __init__(self, index: GraphIndex, members: Members, entities: npt.NDArray[np.bool_]) -> None:
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
        for part in parts(len(index.nodes)):
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
