"""Of which nodes a condition is true."""

from typing import Protocol

import numpy as np

from kg_adapters.algebra import Compares, Condition, Has, Linked, Meets, Numbers, SetExpression, holds_values
from kg_adapters.local.index import Longs
from kg_adapters.local.sets.spreading import distinct, within
from kg_adapters.local.sets.values import Mask, ValueRows
from kg_adapters.local.sets.walks import Ends, Walks
from kg_adapters.terms import Literal
from kg_adapters.values import SIGNS


class Sets(Protocol):
    """What works out the sets that conditions name."""

    @property
    def walks(self) -> Walks:
        """Walks over the index."""
        ...

    @property
    def values(self) -> ValueRows:
        """Its values."""
        ...

    def nodes(self, expression: SetExpression) -> Longs:
        """Return the ids of a set of nodes, sorted."""
        ...

    def literals(self, expression: SetExpression) -> frozenset[Literal]:
        """Return the members of a set of values."""
        ...


def true_of(sets: Sets, nodes: Longs, condition: Condition) -> Mask:
    """Say of which nodes a condition is true."""
    match condition:
        case Linked(path, to) if not holds_values(to):
            return within(nodes, sets.walks.before(sets.nodes(to), path))
        case Meets(path, other):
            return _meets(sets, nodes, sets.walks.ends(nodes, path), sets.walks.ends(nodes, other))
        case Numbers(path, operator, number):
            sizes = sets.values.sizes(sets.walks.ends(nodes, path), path, len(nodes))
            return np.isin(np.sign(sizes - number), SIGNS[operator])
        case Has(path):
            ends = sets.walks.ends(nodes, path)
            places = np.append(ends.places, ends.value_places)
        case Compares(path, operator, value):
            ends = sets.walks.ends(nodes, path)
            places = ends.value_places[sets.values.comparing(ends.rows, operator, value)]
        case Linked(path, to):
            ends, wanted = sets.walks.ends(nodes, path), sets.literals(to)
            same = (sets.values.literal(row) in wanted for row in ends.rows.tolist())
            places = ends.value_places[np.fromiter(same, np.bool_, len(ends.rows))]
    return _mask(places, len(nodes))


def _meets(sets: Sets, nodes: Longs, one: Ends, other: Ends) -> Mask:
    width = len(sets.walks.index.nodes)
    edges = within(one.places * width + one.nodes, other.places * width + other.nodes)
    found = _mask(one.places[edges], len(nodes))
    if len(one.rows) and len(other.rows):
        ranked = sets.values.ranked(np.append(one.rows, other.rows))
        mine, theirs = np.split(ranked.ranks, [len(one.rows)])
        pairs = distinct(other.value_places * len(ranked.rows) + theirs)
        found |= _mask(one.value_places[within(one.value_places * len(ranked.rows) + mine, pairs)], len(nodes))
    return found


def _mask(places: Longs, count: int) -> Mask:
    found = np.zeros(count, dtype=np.bool_)
    found[places] = True
    return found
