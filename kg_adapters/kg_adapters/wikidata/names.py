"""Entities and properties of Wikidata by name: labels, search, and where merged entities are."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from kg_adapters.folding import fold
from kg_adapters.models import Candidate, NeighborPage, RelationCandidate
from kg_adapters.name_index import Name, NameIndex, RelationIndex, RelationName
from kg_adapters.sparql.asking import QueryAsker
from kg_adapters.sparql.neighborhoods import LabelMemory
from kg_adapters.sparql.rows import rows
from kg_adapters.surroundings import MAX_ALIASES
from kg_adapters.terms import Attribute, Fact, Iri, Node, Triple
from kg_adapters.wikidata.api import BATCH, ApiMatch, WikidataApi
from kg_adapters.wikidata.queries import DIRECT, ValueQueries, entity, id_of


class SharedNames(LabelMemory):
    """Caches the names that answers of any endpoint include, but not that something has none.

    Each endpoint knows the names of its own part alone, and is asked for few of many languages: only the web API can
    tell that there is no name.
    """

    def learn(self, labels: Mapping[Node, str | None]) -> None:
        """Add labels; terms without one are left out."""
        super().learn({term: label for term, label in labels.items() if label is not None})

    def learn_nameless(self, terms: Iterable[Node]) -> None:
        """Add terms that have no label."""
        super().learn(dict.fromkeys(terms))


class WikidataNames:
    """Names from the web API, and those that answers of the query service include.

    Args:
        api: What knows the names.
        memory: Caches the names that answers of the query service include.
        properties: Where the names of properties are kept: few, and wanted again and again.
    """

    def __init__(self, api: WikidataApi, memory: SharedNames, properties: SharedNames) -> None:
        self._api = api
        self._memory = memory
        self._properties = properties
        self._aliases: dict[Node, Sequence[str]] = {}

    async def labels(self, terms: Collection[Node]) -> dict[Node, str]:
        """Return labels, as `KGAdapter.labels` does; fifty that are not known cost a request.

        Raises:
            BackendError: The web API does not answer.
        """
        ids = {term: text for term in dict.fromkeys(terms) if (text := id_of(term)) is not None}
        known = {term: found for term, text in ids.items() for found in [self._known(term, text)] if found is not None}
        missing = {term: text for term, text in ids.items() if term not in known}
        if missing:
            named = await self._api.entities(set(missing.values()))
            for term, text in missing.items():
                label = named[text].label if text in named else None
                if text in named and named[text].aliases:
                    self._aliases[term] = named[text].aliases[:MAX_ALIASES]
                self._memory_of(text).learn({term: label})
                if label is None:
                    self._memory_of(text).learn_nameless([term])
                known[term] = label or ""
        return {term: label for term, label in known.items() if label}

    def aliases(self, relation: Iri) -> Sequence[str]:
        """Return the other names of a property, which came along with its label."""
        return self._aliases.get(relation, ())

    async def current(self, nodes: Iterable[Node]) -> Mapping[Node, Iri]:
        """Return what entities are now: themselves, or what they were merged into; without those that do not exist.

        Raises:
            BackendError: The web API does not answer.
        """
        ids = {node: text for node in nodes if (text := id_of(node)) is not None}
        named = await self._api.entities(set(ids.values()))
        return {node: entity(named[text].id) for node, text in ids.items() if text in named}

    def _known(self, term: Node, text: str) -> str | None:
        """Return a label, an empty one where there is none, or None where that is not known."""
        recalled = self._memory_of(text).recall([term])
        return None if term not in recalled else recalled[term] or ""

    def _memory_of(self, text: str) -> SharedNames:
        return self._properties if text.startswith("P") else self._memory


MAX_KNOWN: Final = 10_000
T = TypeVar("T")


class Whereabouts:
    """Caches where entities were found; the least recently added is evicted first."""

    def __init__(self) -> None:
        self._merged: OrderedDict[Node, Node] = OrderedDict()
        self._scholarly: OrderedDict[Node, None] = OrderedDict()

    def learn_merged(self, merged: Mapping[Node, Node]) -> None:
        """Add merged entities."""
        self._merged.update(merged)
        while len(self._merged) > MAX_KNOWN:
            self._merged.popitem(last=False)

    def learn_scholarly(self, nodes: Iterable[Node]) -> None:
        """Add entities of the scholarly endpoint."""
        self._scholarly.update(dict.fromkeys(nodes))
        while len(self._scholarly) > MAX_KNOWN:
            self._scholarly.popitem(last=False)

    def current(self, node: Node) -> Node:
        """Return the entity that a node is part of now: itself, as far as is known."""
        return self._merged.get(node, node)

    def all_current(self, nodes: Iterable[Node]) -> Sequence[Node]:
        """Return the entities that nodes are part of now, each once."""
        return list(dict.fromkeys(map(self.current, nodes)))

    def is_scholarly(self, node: Node) -> bool:
        """Return whether a node is known to stand at the scholarly endpoint."""
        return self.current(node) in self._scholarly

    def placed(self, triple: Triple) -> tuple[Triple, bool]:
        """Return a triple between what its ends are part of now, and whether it stands at the scholarly endpoint."""
        now = Triple(self.current(triple.head), triple.relation, self.current(triple.tail))
        return now, self.is_scholarly(triple.head)

    def answers(self, nodes: Iterable[Node], found: Mapping[Node, T]) -> dict[Node, T]:
        """Return by node what was found of the entity that it is part of."""
        return {node: found[self.current(node)] for node in nodes if self.current(node) in found}


def renamed(page: NeighborPage, entity: Node, name: Node) -> NeighborPage:
    """Return the page of an entity with another id for it in its facts."""
    if entity == name:
        return page
    return replace(page, facts=tuple(_renamed(fact, entity, name) for fact in page.facts))


def _renamed(fact: Fact, entity: Node, name: Node) -> Fact:
    head = name if fact.head == entity else fact.head
    if isinstance(fact, Attribute):
        return Attribute(head, fact.relation, fact.tail)
    return Triple(head, fact.relation, name if fact.tail == entity else fact.tail)


_LIKE: Final = 0.9
_STEP: Final = 0.98


@dataclass(frozen=True)
class WikidataSearch:
    """Asks `wbsearchentities`, and the query service for the type.

    Args:
        api: The web API.
        asker: What asks the query service.
        queries: What writes the query for the type.
    """

    api: WikidataApi
    asker: QueryAsker
    queries: ValueQueries

    @property
    def note(self) -> str:
        """See `NameSearch`."""
        return (
            "Found by Wikidata's own search: labels and aliases that begin with the text, and, where none is equal to "
            "it, those with its words, each with one typing error at most, after its first two letters."
        )

    async def search(self, text: str, *, limit: int, type: Node | None) -> Sequence[Candidate]:
        """Return the entities that a text may name: same names first, then in Wikidata's own order.

        One request, three where nothing bears the name, and one more for a type.
        """
        if limit < 1 or (type is not None and not self.asker.can_name(type)):
            return []
        matches = await self.api.search(text, limit=limit if type is None else BATCH)
        found = _candidates(text, matches)
        if not any(each.score == 1.0 for each in found):
            found = _merged(found, _alike(text, await self.api.alike(text)))
        if type is not None and found:
            answer = await self.asker.ask(self.queries.instances([each.entity for each in found], type))
            instances = {row.node("s") for row in rows(answer)}
            found = [each for each in found if each.entity in instances]
        return found[:limit]


async def find_properties(api: WikidataApi, text: str, *, limit: int) -> Sequence[RelationCandidate]:
    """Return the properties that a text may name, as `KGAdapter.find_relations` does.

    Only names that begin like the text are known here; what merely shares letters with it is left out.
    """
    matches = await api.search(text, limit=BATCH, kind="property")
    names = [RelationName(Iri(DIRECT + match.id), match.text, match.is_alias) for match in matches]
    return RelationIndex(names).find(text, limit)


def _candidates(text: str, matches: Sequence[ApiMatch]) -> list[Candidate]:
    wanted = fold(text)
    first = [Candidate(entity(match.id), 1.0, "alias" if match.is_alias else "label", match.text) for match in matches]
    same = [each for each in first if fold(each.matched_text) == wanted]
    like = [each for each in first if fold(each.matched_text) != wanted]
    return [*same, *(replace(each, score=_LIKE * _STEP**place) for place, each in enumerate(like))]


def _alike(text: str, matches: Sequence[ApiMatch]) -> list[Candidate]:
    names = [Name(entity(match.id), match.text, match.is_alias) for match in matches]
    return NameIndex(names).search(text, BATCH, lambda _: True)


def _merged(found: Sequence[Candidate], more: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates by score, each entity once."""
    known = {each.entity for each in found}
    return sorted([*found, *(each for each in more if each.entity not in known)], key=lambda each: -each.score)
