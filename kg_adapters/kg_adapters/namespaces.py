"""Which prefixes a graph gets: those that were declared for it, well-known ones, and numbered ones for the rest."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Final

from kg_adapters.prefixes import WELL_KNOWN, WIKIDATA, Prefixes, is_prefix

_MOST_NUMBERED: Final = 20
_FEWEST_IRIS: Final = 2
# As prefixes these would take full IRIs for prefixed names.
_SCHEMES: Final = frozenset({"http", "https", "urn", "file", "mailto", "tag"})


def prefixes_in_use(iris: Sequence[str], declared: Mapping[str, str]) -> Prefixes:
    """Return the short forms of a graph's IRIs: only namespaces that occur, and Wikidata's bare ids where its do.

    Args:
        iris: The IRIs of the graph, sorted by code point.
        declared: From prefix to namespace, as the graph came with them.
    """
    bare_ids = [ids for ids in (WIKIDATA.entities, WIKIDATA.relations) if ids is not None]
    wikidata = any(_occurs(iris, ids.namespace) for ids in bare_ids)
    offers = [WIKIDATA.namespaces, declared, WELL_KNOWN] if wikidata else [declared, WELL_KNOWN]
    namespaces: dict[str, str] = {}
    for prefix, namespace in chain.from_iterable(offer.items() for offer in offers):
        taken = prefix in namespaces or namespace in namespaces.values()
        usable = is_prefix(prefix) and prefix not in _SCHEMES and namespace != ""
        if usable and not taken and _occurs(iris, namespace):
            namespaces[prefix] = namespace
    namespaces |= _numbered(iris, namespaces)
    return Prefixes(namespaces, WIKIDATA.entities, WIKIDATA.relations) if wikidata else Prefixes(namespaces)


def _occurs(iris: Sequence[str], namespace: str) -> bool:
    place = bisect_left(iris, namespace)
    return place < len(iris) and iris[place].startswith(namespace)


def _numbered(iris: Sequence[str], known: Mapping[str, str]) -> Mapping[str, str]:
    """Return `ns1`, `ns2` and so on for the namespaces with the most IRIs that no known one covers."""
    counts = Counter(namespace for iri in iris if (namespace := _namespace(iri)))
    covered = tuple(known.values())
    free = [
        namespace
        for namespace, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if number >= _FEWEST_IRIS and not namespace.startswith(covered)
    ]
    names = (name for number in count(1) if (name := f"ns{number}") not in known)
    return dict(zip(names, free[:_MOST_NUMBERED], strict=False))


def _namespace(iri: str) -> str | None:
    end = max(iri.rfind("#"), iri.rfind("/")) + 1 or iri.rfind(":") + 1
    return iri[:end] if end < len(iri) and not iri[:end].endswith("//") else None
