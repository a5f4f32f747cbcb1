"""Finds out which engine answers at an endpoint, and which full-text index it has."""

import re
from collections.abc import Mapping
from typing import Final

import anyio

from kg_adapters.errors import BackendTimeout, BackendUnavailable, KGError
from kg_adapters.http.options import DialectName, TextSearch
from kg_adapters.labels import Vocabulary
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.dialects import DIALECTS, Dialect
from kg_adapters.sparql.endpoint import SparqlEndpoint
from kg_adapters.sparql.index_state import STATEMENTS, STATS, document
from kg_adapters.sparql.queries.names import WILD_FROM, NameQueries, words
from kg_adapters.sparql.rows import rows
from kg_adapters.terms import Iri, Literal

_BLAZEGRAPH: Final = b"http://www.bigdata.com/rdf#/features/"
_SETTINGS: Final[Mapping[str, str]] = {"cmd": "get-settings"}
_LIMIT: Final = "default-query-timeout"
_SECONDS: Final = re.compile(r"([0-9]{1,6})s")
_QLEVER: Final = frozenset({"git-hash-server", STATEMENTS})
_NAMES: Final = 50


def named_by(headers: Mapping[str, str]) -> DialectName | None:
    """Return the engine that the headers of a reply name, or None where they name none."""
    for dialect in DIALECTS.values():
        for name, part in dialect.named_by:
            if name in headers and part in headers[name].lower():
                return dialect.name
    return None


class Detector:
    """Asks an endpoint what it is; what it asks never fails, and what it cannot find out it leaves open.

    Args:
        endpoint: The endpoint.
        vocabulary: The relations to names.
        end: When there must be an answer, as the event loop counts seconds.
    """

    def __init__(self, endpoint: SparqlEndpoint, vocabulary: Vocabulary, end: float) -> None:
        self._endpoint = endpoint
        self._vocabulary = vocabulary
        self._end = end

    async def dialect(self) -> DialectName | None:
        """Return the engine, `standard` where it is none of the table; None where there was no answer to learn it from.

        It takes no request where the reply to an earlier query names the engine, and else one or two.
        """
        if not self._endpoint.headers:
            try:
                await self._endpoint.query("ASK {}", timeout_s=self._left_s)
            except KGError:
                return None
        return named_by(self._endpoint.headers) or await self._described()

    async def _described(self) -> DialectName | None:
        try:
            # QLever answers with its statistics; Blazegraph describes itself to whoever sends no query.
            described = await self._about(STATS)
        except (BackendTimeout, BackendUnavailable):
            return None
        except KGError:
            return "standard"
        if _BLAZEGRAPH in described:
            return "blazegraph"
        return "qlever" if document(described).keys() >= _QLEVER else "standard"

    async def longest_limit_s(self, dialect: DialectName) -> float | None:
        """Return the longest time, in seconds, that an engine lets a query ask for; None where it does not say so."""
        if dialect != "qlever":
            return None
        try:
            limit = document(await self._about(_SETTINGS)).get(_LIMIT)
        except KGError:
            return None
        seconds = _SECONDS.fullmatch(limit) if isinstance(limit, str) else None
        return float(seconds[1]) if seconds else None

    async def connector(self, dialect: Dialect) -> Iri | None:
        """Return the Lucene connector of GraphDB that has the most relations to names; None where none is known."""
        if dialect.name != "graphdb":
            return None
        try:
            asker = QueryAsker(self._endpoint, dialect, self._endpoint.options.timeout_s)
            answer = await asker.ask(NameQueries(dialect, self._vocabulary).connectors(), timeout_s=self._left_s)
        except KGError:
            return None
        named = (*self._vocabulary.labels, *self._vocabulary.aliases)
        found = [(row.iri("c"), row.text("d") or "") for row in rows(answer)]
        having = {each: sum(f'"{name.value}"' in settings for name in named) for each, settings in found if each}
        return max(sorted(having), key=lambda each: having[each]) if any(having.values()) else None

    async def text_search(self, dialect: Dialect) -> TextSearch | None:
        """Return the full-text index of an engine; None where that cannot be found out now.

        A word of some name is looked for by the index; it takes two requests where the engine may have one.
        """
        index = dialect.text_search
        if index == "none":
            return "none"
        asker = QueryAsker(self._endpoint, dialect, self._endpoint.options.timeout_s)
        queries = NameQueries(dialect, self._vocabulary)
        try:
            some = rows(await asker.ask(queries.some(_NAMES), timeout_s=self._left_s))
            names = [name.value for name in (row.term("l") for row in some) if isinstance(name, Literal)]
            word = next((word for name in names for word in words(name)[:1] if len(word) >= WILD_FROM), None)
            if word is None:
                return None
            found = await asker.ask(queries.holding(word, index), timeout_s=self._left_s)
        except (BackendTimeout, BackendUnavailable):
            return None
        except KGError:
            return "none"
        return index if found.rows else "none"

    async def _about(self, parameters: Mapping[str, str]) -> bytes:
        return await self._endpoint.about(parameters, timeout_s=self._left_s)

    @property
    def _left_s(self) -> float:
        return max(0.0, min(self._endpoint.options.timeout_s, self._end - anyio.current_time()))
