"""Entities by name: with the endpoint's full-text index where it has one, else by labels that are looked through."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import anyio.to_thread
from rapidfuzz import fuzz, process

from kg_adapters.calls import note_partial
from kg_adapters.errors import BackendTimeout
from kg_adapters.labels import Vocabulary
from kg_adapters.local.names.folding import bare_words, fold
from kg_adapters.models import Candidate
from kg_adapters.name_index import Name, NameIndex
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.options import TextSearch
from kg_adapters.sparql.queries.names import NameQueries
from kg_adapters.sparql.rows import rows
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Literal, Node

SCANNED: Final = 200_000
SCAN_S: Final = 5.0
MAX_FOUND: Final = 200
_NEAR: Final = 85.0
"""How like a text a name is, from 0 to 100, that leaves nothing to look for further away."""


class NameSearch(Protocol):
    """A way to find entities by name."""

    @property
    def note(self) -> str:
        """How it searches, and what it may therefore miss: a full sentence for those who read its results."""
        ...

    async def search(self, text: str, *, limit: int, type: Node | None) -> Sequence[Candidate]:
        """Return the entities that a text may name, as `KGAdapter.search` does."""
        ...


@dataclass(frozen=True)
class EndpointSearch:
    """Searches with an endpoint's own means: first the exact name, then names that are like it.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        index: The full-text index that the endpoint has.
        scanned: How many names are looked through where it has none.
        scan_s: How many seconds that may take; where it takes longer, those with exactly this name are the answer, if
            there are any.
    """

    asker: Asker
    queries: NameQueries
    index: TextSearch = "none"
    scanned: int = SCANNED
    scan_s: float = SCAN_S

    @property
    def note(self) -> str:
        """See `NameSearch`."""
        looked_through = f"the first {self.scanned:,} labels"
        if self.index != "none":
            return (
                "Found by exact label, by the endpoint's full-text index, where one word may be misspelled, and, "
                f"where that finds nothing, by letters shared with {looked_through}."
            )
        return (
            f"Found by exact label, and by letters shared with {looked_through}, since this endpoint has no full-text "
            "index in its settings: on a larger graph, ask for the exact name."
        )

    async def search(self, text: str, *, limit: int, type: Node | None) -> Sequence[Candidate]:
        """See `NameSearch`; two requests, or three where a full-text index finds nothing alike."""
        if limit < 1 or (type is not None and not self.asker.can_name(type)):
            return []
        most = max(limit, MAX_FOUND)
        found = await self._names(self.queries.exact(text, type, most))
        candidates = _ranked(found, text, limit)
        if sum(candidate.score == 1.0 for candidate in candidates) >= limit:
            return candidates
        for query in self._similar(text, type, most):
            try:
                found += await self._names(query, timeout_s=self.scan_s)
            except BackendTimeout:
                if not candidates:
                    raise
                note_partial()
                return candidates
            candidates = await anyio.to_thread.run_sync(_ranked, found, text, limit)
            if _is_near(found, text):
                break
        return candidates

    def _similar(self, text: str, kind: Node | None, most: int) -> Iterator[str | None]:
        if self.index != "none":
            yield self.queries.indexed(text, kind, self.index, most)
        yield self.queries.scan(text, kind, scanned=self.scanned, limit=most)

    async def _names(self, query: str | None, *, timeout_s: float | None = None) -> list[Name]:
        if query is None:
            return []
        return read_names(await self.asker.ask(query, timeout_s=timeout_s), self.queries.vocabulary)


def read_names(answer: Solutions, vocabulary: Vocabulary) -> list[Name]:
    """Return the names in an answer to one of `NameQueries`."""
    found = ((row.node("s"), row.iri("a"), row.term("l")) for row in rows(answer))
    return [
        Name(bearer, name.value, relation in vocabulary.aliases)
        for bearer, relation, name in found
        if bearer is not None and isinstance(name, Literal)
    ]


def _ranked(names: Sequence[Name], text: str, limit: int) -> list[Candidate]:
    return NameIndex(names).search(text, limit, lambda _: True)


def _is_near(names: Iterable[Name], text: str) -> bool:
    """Say whether a name holds every word of a text, or has about the same letters."""
    wanted = bare_words(fold(text))
    words = set(wanted.split())
    folded = [bare_words(fold(name.text)) for name in names]
    if any(words <= set(each.split()) for each in folded):
        return True
    return process.extractOne(wanted, folded, scorer=fuzz.ratio, score_cutoff=_NEAR) is not None
