"""Which prefixes a graph gets: those that were declared for it, well-known ones, and made ones for the rest."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Final
from urllib.parse import unquote

from kg_adapters.prefixes import SCHEMES, USUAL, WELL_KNOWN, WIKIDATA, Prefixes, is_prefix

_MOST_MADE: Final = 20
_FEWEST_IRIS: Final = 2
_NAMELESS: Final = "ns"
_STRANGE: Final = re.compile(r"[^a-z0-9_-]+")
_WORD: Final = re.compile(r"[a-z][a-z0-9_-]{0,23}")
# Parts of many namespaces, which tell none of them from the others.
_TELLS_NOTHING: Final = SCHEMES | {"www", "ns", "id", "resource", "co", "com", "org", "index"}


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
        usable = is_prefix(prefix) and prefix not in SCHEMES and namespace != ""
        lies = prefix in USUAL and namespace != WELL_KNOWN[prefix]
        if usable and not lies and not taken and _occurs(iris, namespace):
            namespaces[prefix] = namespace
    namespaces |= _made(iris, namespaces)
    return Prefixes(namespaces, WIKIDATA.entities, WIKIDATA.relations) if wikidata else Prefixes(namespaces)


def _occurs(iris: Sequence[str], namespace: str) -> bool:
    place = bisect_left(iris, namespace)
    return place < len(iris) and iris[place].startswith(namespace)


def _made(iris: Sequence[str], known: Mapping[str, str]) -> Mapping[str, str]:
    """Return prefixes for the namespaces with the most IRIs that no known one covers, each called by its own parts.

    Those of one name are numbered in the order of their IRIs.
    """
    counts = Counter(namespace for iri in iris if (namespace := _namespace(iri)))
    covered = tuple(known.values())
    free = [
        namespace
        for namespace, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if number >= _FEWEST_IRIS and not namespace.startswith(covered)
    ]
    made: dict[str, str] = {}
    for namespace in sorted(free[:_MOST_MADE]):
        name = _name(namespace)
        # A well-known prefix stays what it is known for, over http or https.
        plain = name != _NAMELESS and WELL_KNOWN.get(name, namespace).split(":")[1] == namespace.split(":")[1]
        spellings = (name if number == 1 and plain else f"{name}{number}" for number in count(1))
        made[next(each for each in spellings if each not in known and each not in made)] = namespace
    return made


def _name(namespace: str) -> str:
    """Return the last part of a namespace that is a word, or the name of its host; `ns` where there is neither."""
    scheme, _, rest = namespace.rstrip("#/:").partition(":")
    host, *path = rest.removeprefix("//").split("/") if rest.startswith("//") else ("", *re.split("[:/]", rest))
    domains = host.partition(":")[0].split(".")
    named = domains[:-1] or domains
    for part in (*reversed(path), *reversed(named), scheme):
        word = _STRANGE.sub("_", unquote(part).lower()).strip("_-")
        if _WORD.fullmatch(word) is not None and word not in _TELLS_NOTHING:
            return word
    return _NAMELESS


def _namespace(iri: str) -> str | None:
    end = max(iri.rfind("#"), iri.rfind("/")) + 1 or iri.rfind(":") + 1
    return iri[:end] if end < len(iri) and not iri[:end].endswith("//") else None
