"""What entities and properties are called, remembered for a while."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kg_adapters.sparql.label_memory import LabelMemory
from kg_adapters.surroundings import MAX_ALIASES
from kg_adapters.terms import Iri, Node
from kg_adapters.wikidata.api import Named, WikidataApi
from kg_adapters.wikidata.namespaces import entity, id_of


class SharedNames(LabelMemory):
    """Remembers the names that any endpoint brings along, but not that something has none.

    Each endpoint knows the names of its own part alone, and is asked for few of many languages: only the web API can
    say that there is no name.
    """

    def learn(self, labels: Mapping[Node, str | None]) -> None:
        """Remember the labels that there are."""
        super().learn({term: label for term, label in labels.items() if label is not None})

    def learn_nameless(self, terms: Iterable[Node]) -> None:
        """Remember that terms have no label."""
        super().learn(dict.fromkeys(terms))


class WikidataNames:
    """Names from the web API, and those that answers of the query service bring along.

    Args:
        api: What knows the names.
        memory: Where the query service leaves the names that it brings along.
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

    async def look_up(self, nodes: Iterable[Node]) -> Mapping[Node, Named]:
        """Return what the web API says of entities; those that do not exist, or no longer, are left out.

        Raises:
            BackendError: It does not answer.
        """
        ids = {node: text for node in nodes if (text := id_of(node)) is not None}
        named = await self._api.entities(set(ids.values()))
        return {node: named[text] for node, text in ids.items() if text in named}

    def _known(self, term: Node, text: str) -> str | None:
        """Return a label, an empty one where there is none, or None where that is not known."""
        recalled = self._memory_of(text).recall([term])
        return None if term not in recalled else recalled[term] or ""

    def _memory_of(self, text: str) -> SharedNames:
        return self._properties if text.startswith("P") else self._memory


def target(named: Named) -> Iri:
    """Return the entity that the web API speaks of."""
    return entity(named.id)
