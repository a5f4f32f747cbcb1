"""Who has a relation in an index: looked up once, and kept for the next question."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np

from kg_adapters.labels import Vocabulary
from kg_adapters.local.index import GraphIndex, Longs
from kg_adapters.terms import Iri

_KEPT_NUMBERS: Final = 16_000_000
"""How many numbers are kept of tables that were looked up: 128 MB."""


@dataclass(frozen=True, slots=True)
class Owned:
    """The nodes that have something over one relation, sorted, and where each has it."""

    nodes: Longs
    at: Longs


class Tables:
    """The tables of one index, for all questions.

    Args:
        index: The graph.
        vocabulary: Says which features are left out where none is named.
    """

    def __init__(self, index: GraphIndex, vocabulary: Vocabulary) -> None:
        self.index = index
        self.texts = self._ids(vocabulary.texts)
        self._keeping = Lock()
        self._kept: OrderedDict[tuple[str, int], Owned] = OrderedDict()

    def relation_id(self, relation: Iri) -> int | None:
        """Return the id of a relation, or None where no statement has it."""
        return self.index.relations.find(relation.value)

    def owned(self, what: str, relation: int) -> Owned:
        """Return who has a relation: over which group of edges, or in which row of values."""
        key = (what, relation)
        with self._keeping:
            if (known := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return known
        owned = self._look_up(what, relation)
        with self._keeping:
            self._kept[key] = owned
            while len(self._kept) > 1 and sum(2 * len(each.at) for each in self._kept.values()) > _KEPT_NUMBERS:
                self._kept.popitem(last=False)
        return owned

    def _look_up(self, what: str, relation: int) -> Owned:
        if what == "value":
            starts, relations = self.index.features.starts, self.index.features.relations
        else:
            table = self.index.out if what == "out" else self.index.into
            starts, relations = table.groups, table.relations
        at = np.flatnonzero(relations == relation)
        return Owned(np.searchsorted(starts, at, side="right") - 1, at)

    def _ids(self, relations: frozenset[Iri]) -> Longs:
        found = (self.relation_id(relation) for relation in sorted(relations))
        return np.array([number for number in found if number is not None], dtype=np.int64)
