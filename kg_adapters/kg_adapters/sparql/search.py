"""Entities, relations and features of an endpoint by name."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import anyio
import anyio.to_thread
from rapidfuzz import fuzz, process

from kg_adapters.appellations import VOCABULARIES
from kg_adapters.calls import note_partial, watching_completeness
from kg_adapters.errors import BackendError, BackendTimeout
from kg_adapters.folding import bare_words, fold
from kg_adapters.http.options import TextSearch
from kg_adapters.labels import Vocabulary
from kg_adapters.models import Candidate, Count, GraphSchema, RelationCandidate, ValueUse
from kg_adapters.name_index import Name, NameIndex, RelationIndex, RelationName, own_name
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.neighborhoods import BATCH
from kg_adapters.sparql.queries.names import NameQueries, cleaned
from kg_adapters.sparql.rows import rows
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.surroundings import spoken_aliases
from kg_adapters.terms import Iri, Literal, Node, literal_key, node_key

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

    asker: QueryAsker
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
            f"Found by exact label, and by letters shared with {looked_through}, since no full-text index of this "
            "endpoint is known: on a larger graph, ask for the exact name."
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
                found += self._others(await self._names(query, timeout_s=self.scan_s), found)
            except BackendTimeout:
                if not candidates:
                    raise
                note_partial()
                return candidates
            candidates = await anyio.to_thread.run_sync(_ranked, found, text, limit)
            if _is_near(found, text):
                break
        return candidates

    def _others(self, names: Iterable[Name], known: Iterable[Name]) -> list[Name]:
        """Return names without those of blank nodes that an earlier answer had, in which they have other labels."""
        nameless = {each.text for each in known if not self.asker.can_name(each.bearer)}
        return [each for each in names if self.asker.can_name(each.bearer) or each.text not in nameless]

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
    """Return whether a name holds every word of a text, or has about the same letters."""
    wanted = bare_words(fold(text))
    words = set(wanted.split())
    folded = [bare_words(fold(name.text)) for name in names]
    if any(words <= set(each.split()) for each in folded):
        return True
    return process.extractOne(wanted, folded, scorer=fuzz.ratio, score_cutoff=_NEAR) is not None


_VALUE_S: Final = 3.0
"""How many seconds a query for values may take."""
_MOST_USES: Final = 2_000
_FORMS: Final = frozenset(Iri(each.form) for each in VOCABULARIES)


async def uses_of_values(
    asker: QueryAsker, queries: NameQueries, texts: Collection[str], limit: int
) -> Mapping[str, Sequence[ValueUse]]:
    """Return which relations have texts as values, as `SupportsValueSearch` promises: by one request."""
    query = queries.valued(list(texts), _MOST_USES)
    if query is None:
        return {}
    try:
        answer = await asker.ask(query, timeout_s=_VALUE_S)
    except BackendError:
        note_partial("Whether the text is a value is not known: the endpoint did not answer that.")
        return {}
    found: dict[str, dict[Iri, dict[Node, Literal]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows(answer):
        bearer, relation, value = row.node("s"), row.iri("a"), row.term("l")
        # Over the relation to its text nothing can be asked of a name that is a blank node.
        is_name = relation in _FORMS and bearer is not None and not asker.can_name(bearer)
        if bearer is not None and relation is not None and isinstance(value, Literal) and not is_name:
            found[cleaned(value.value).lower()][relation].setdefault(bearer, value)
    is_whole = not answer.cut and len(answer.rows) < _MOST_USES
    uses = {text: _sorted_uses(found.get(cleaned(text).lower(), {}), limit, is_whole) for text in texts}
    return {text: of for text, of in uses.items() if of}


def _sorted_uses(relations: Mapping[Iri, Mapping[Node, Literal]], limit: int, is_whole: bool) -> Sequence[ValueUse]:
    uses: list[ValueUse] = []
    for relation, bearers in relations.items():
        nodes = sorted(bearers, key=node_key)
        uses.append(ValueUse(relation, bearers[nodes[0]], tuple(nodes[:limit]), Count(len(nodes), exact=is_whole)))
    return sorted(uses, key=lambda use: (-use.count.value, use.relation))


NAMED: Final = 2_000
"""How many relations are asked for all their names; the rarer ones go by label and local part."""
MAX_ROWS: Final = 10_000


class RelationSearch:
    """Finds relations by name.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
    """

    def __init__(self, asker: QueryAsker, queries: NameQueries) -> None:
        self._asker = asker
        self._queries = queries
        self._schema: GraphSchema | None = None
        self._index = RelationIndex(())
        self._aliases: dict[Iri, tuple[str, ...]] = {}
        self._learning = anyio.Lock()

    async def find(self, schema: GraphSchema, text: str, limit: int) -> Sequence[RelationCandidate]:
        """Return the relations of a schema that a text may name, as `KGAdapter.find_relations` does."""
        async with self._learning:
            if schema is not self._schema:
                with watching_completeness() as seen:
                    self._index = RelationIndex(await self._names(schema))
                self._schema = None if seen.partial else schema
        return await anyio.to_thread.run_sync(self._index.find, text, limit)

    async def learn_aliases(self, relations: Collection[Iri]) -> None:
        """Ask for the names of relations, the first `NAMED` by id, so that `aliases` knows them."""
        async with self._learning:
            await self._said(sorted(relations)[:NAMED])

    def aliases(self, relation: Iri) -> Sequence[str]:
        """Return what is known by now of the other names of a relation, as `Surroundings` has them."""
        return self._aliases.get(relation, ())

    async def _names(self, schema: GraphSchema) -> list[RelationName]:
        uses = Counter({each.iri: each.triples.value for each in schema.relations})
        uses.update({each.iri: each.statements.value for each in schema.features})
        relations = sorted(uses, key=lambda iri: (-uses[iri], iri))
        said = await self._said(relations[:NAMED])
        labels = {each.iri: each.label for each in schema.features} | {
            each.iri: each.label for each in schema.relations
        }
        return [name for iri in relations for name in _names_of(iri, labels[iri], said)]

    async def _said(self, relations: Sequence[Iri]) -> Mapping[Node, set[tuple[bool, str]]]:
        """Return the names of relations, each with whether it is an alias, and keep the aliases."""
        said: dict[Node, set[tuple[bool, str]]] = defaultdict(set)
        others: dict[Iri, list[tuple[Iri, Literal]]] = defaultdict(list)
        vocabulary = self._queries.vocabulary
        for first in range(0, len(relations), BATCH):
            answer = await self._asker.ask(self._queries.of(relations[first : first + BATCH], MAX_ROWS))
            if answer.cut:
                note_partial()
            for row in rows(answer):
                bearer, over, name = row.iri("s"), row.iri("a"), row.term("l")
                if bearer is not None and over is not None and isinstance(name, Literal):
                    said[bearer].add((over in vocabulary.aliases, name.value))
                    others[bearer] += [(over, name)] if over in vocabulary.aliases else []
        for relation, names in others.items():
            self._aliases[relation] = spoken_aliases(vocabulary, (name for _, name in sorted(names, key=_order)))
        return said


def _order(named: tuple[Iri, Literal]) -> tuple[Iri, tuple[str, str, str]]:
    """Return what features are sorted by."""
    return named[0], literal_key(named[1])


def _names_of(relation: Iri, label: str | None, said: Mapping[Node, set[tuple[bool, str]]]) -> Iterator[RelationName]:
    names = {*said.get(relation, ()), *(((False, label),) if label is not None else ())}
    yield from (RelationName(relation, text, alias) for alias, text in sorted(names))
    yield own_name(relation)
