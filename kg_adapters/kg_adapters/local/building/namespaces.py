"""The short forms of the ids of an imported graph."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, overload

from kg_adapters.local.index import GraphIndex
from kg_adapters.local.names.table import written
from kg_adapters.local.reading.graph_json import GRAPH_JSON_NAMESPACES, NODE_NAMESPACE, RELATION_NAMESPACE
from kg_adapters.namespaces import prefixes_in_use
from kg_adapters.prefixes import BareIds, Prefixes

# What reads as a full IRI stays one; everything else may be an id.
_PLAIN: Final = r"(?s:(?!<|_:|urn:|[A-Za-z][A-Za-z0-9+.-]*://)\S(?:.*\S)?)"


def choose_prefixes(index: GraphIndex, declared: Mapping[str, str], *, graph_json: bool = False) -> Prefixes:
    """Return the short forms of a graph's IRIs.

    Args:
        index: The graph.
        declared: The prefixes that its files declare.
        graph_json: Whether ids are to be taken as a `graph.json` spells them.
    """
    iris = _Iris(index)
    if not graph_json:
        return prefixes_in_use(iris, declared)
    namespaces = prefixes_in_use(iris, {**GRAPH_JSON_NAMESPACES, **declared}).namespaces
    return Prefixes(namespaces, BareIds(NODE_NAMESPACE, _PLAIN), BareIds(RELATION_NAMESPACE, _PLAIN))


def is_graph_json(prefixes: Prefixes) -> bool:
    """Say whether ids are taken as a `graph.json` spells them."""
    return prefixes.entities is not None and prefixes.entities.namespace == NODE_NAMESPACE


class _Iris(Sequence[str]):
    """The keys of all nodes, relations and datatypes of an index, sorted and distinct; `iter` leaves out blank nodes.

    Args:
        index: The graph.
    """

    def __init__(self, index: GraphIndex) -> None:
        nodes = index.nodes
        others = {iri for table in (index.relations, index.datatypes) for iri in written(table)}
        self._nodes = nodes
        self._others = sorted(iri for iri in others if nodes.find(iri) is None)
        # Where each of the others stands among all.
        self._places = [nodes.lower_bound(iri.encode()) + place for place, iri in enumerate(self._others)]

    def __len__(self) -> int:
        return len(self._nodes) + len(self._others)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        before = bisect_left(self._places, index)
        if before < len(self._places) and self._places[before] == index:
            return self._others[before]
        return self._nodes[index - before]

    def __iter__(self) -> Iterator[str]:
        return chain((key for key in written(self._nodes) if not key.startswith("_:")), self._others)
