"""Questions about sets as SPARQL that people can read and run."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kg_adapters.labels import Vocabulary
from kg_adapters.prefixes import Prefixes
from kg_adapters.set_requests import SetQuestion
from kg_adapters.sparql.dialects import DIALECTS
from kg_adapters.sparql.queries.set_paths import Walked
from kg_adapters.sparql.queries.sets import SetQueries
from kg_adapters.terms import Iri

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|<([^>]*)>')
_LOCAL: Final = re.compile(r"[A-Za-z0-9_]+")
_BLANKS: Final = re.compile(r" {2,}")


def as_sparql(question: SetQuestion, vocabulary: Vocabulary, prefixes: Prefixes, *, only_count: bool = False) -> str:
    """Return the query that asks the same, whatever engine will answer it; it may show as a long line.

    Args:
        question: What is asked.
        vocabulary: The relations that type; those without a prefix are left out where others have one.
        prefixes: The short forms of the graph's IRIs.
        only_count: Whether only the number of members or groups is asked for.
    """
    namespaces = prefixes.namespaces
    kept = replace(
        vocabulary,
        types=_used(vocabulary.types, namespaces.values()),
        subclasses=_used(vocabulary.subclasses, namespaces.values()),
    )
    text = SetQueries(Walked(DIALECTS["standard"], kept)).explained(question, only_count=only_count)
    used: dict[str, str] = {}

    def shortened(found: re.Match[str]) -> str:
        value = found[1]
        for prefix, namespace in namespaces.items():
            if value is not None and value.startswith(namespace) and _LOCAL.fullmatch(value.removeprefix(namespace)):
                used[prefix] = namespace
                return f"{prefix}:{value.removeprefix(namespace)}"
        return found[0]

    short = _BLANKS.sub(" ", _TOKEN.sub(shortened, text))
    return " ".join((*(f"PREFIX {prefix}: <{namespace}>" for prefix, namespace in used.items()), short))


def _used(relations: tuple[Iri, ...], namespaces: Iterable[str]) -> tuple[Iri, ...]:
    known = tuple(relation for relation in relations if relation.value.startswith(tuple(namespaces)))
    return known or relations
