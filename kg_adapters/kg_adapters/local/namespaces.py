"""The short forms of the ids of an imported graph."""

from collections.abc import Iterator, Mapping
from typing import Final

from kg_adapters.local.graph_json import GRAPH_JSON_NAMESPACES, NODE_NAMESPACE, RELATION_NAMESPACE
from kg_adapters.local.index import GraphIndex, StringTable
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
    iris = sorted({iri for table in (index.nodes, index.relations, index.datatypes) for iri in _iris(table)})
    if not graph_json:
        return prefixes_in_use(iris, declared)
    namespaces = prefixes_in_use(iris, {**GRAPH_JSON_NAMESPACES, **declared}).namespaces
    return Prefixes(namespaces, BareIds(NODE_NAMESPACE, _PLAIN), BareIds(RELATION_NAMESPACE, _PLAIN))


def _iris(table: StringTable) -> Iterator[str]:
    for row in range(len(table)):
        if not (key := table[row]).startswith("_:"):
            yield key
