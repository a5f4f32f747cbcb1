"""What the graph says of terms, asked for in one request for any number of them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Final

from kg_adapters.models import Count, Description, Feature, FeaturePage, Role
from kg_adapters.requests import FeatureRequest
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.label_memory import LabelMemory
from kg_adapters.sparql.neighborhoods import BATCH
from kg_adapters.sparql.queries.descriptions import DescriptionQueries
from kg_adapters.sparql.queries.naming import TextChoice
from kg_adapters.sparql.rows import Row, Texts, read_texts, rows
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Iri, Literal, Node, node_key

MAX_TYPES: Final = 100
_ROLES: Final[dict[str, Role]] = {"entity": "entity", "relation": "relation"}


class DescriptionReader:
    """Reads labels, descriptions and features.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        memory: The labels that are known already.
    """

    def __init__(self, asker: Asker, queries: DescriptionQueries, memory: LabelMemory) -> None:
        self._asker = asker
        self._queries = queries
        self._memory = memory

    async def labels(self, terms: Collection[Node]) -> dict[Node, str]:
        """Return labels, as `KGAdapter.labels` does."""
        known = self._memory.recall(dict.fromkeys(terms))
        for batch in self._batches(term for term in dict.fromkeys(terms) if term not in known):
            texts = await read_texts(await self._asker.ask_whole(self._queries.labels(batch)), self._queries.texts)
            found: dict[Node, str | None] = {term: self._queries.texts.label(texts.get(term, {})) for term in batch}
            self._memory.learn(found)
            known |= found
        return {term: label for term, label in known.items() if label is not None}

    async def describe(self, terms: Collection[Node]) -> dict[Node, Description]:
        """Return descriptions, as `KGAdapter.describe` does."""
        described: dict[Node, Description] = {}
        for batch in self._batches(dict.fromkeys(terms)):
            answer = await self._asker.ask_whole(self._queries.describe(batch, MAX_TYPES * len(batch)))
            described |= _read_descriptions(answer, self._queries.texts)
        self._memory.learn({term: description.label for term, description in described.items()})
        return described

    async def features(self, request: FeatureRequest) -> dict[Node, FeaturePage]:
        """Return features, as `KGAdapter.features` does."""
        pages: dict[Node, FeaturePage] = {}
        for entity in dict.fromkeys(request.entities):
            if self._asker.can_name(entity):
                found = await self._every(entity, request)
                if found.features:
                    pages[entity] = found
        return pages

    async def _every(self, entity: Node, request: FeatureRequest) -> FeaturePage:
        if request.relations is None:
            return await self._features(entity, None, request.limit)
        pages = [await self._features(entity, relation, request.limit) for relation in sorted(request.relations)]
        features = tuple(feature for page in pages for feature in page.features)
        exact = all(page.total.exact for page in pages)
        return FeaturePage(features[: request.limit], Count(sum(page.total.value for page in pages), exact))

    async def _features(self, entity: Node, relation: Iri | None, limit: int) -> FeaturePage:
        answer = await self._asker.ask(self._queries.features(entity, relation, limit))
        total = 0
        found: set[Feature] = set()
        for row in rows(answer):
            total += row.number("n") or 0
            about, value = row.iri("p"), row.term("v")
            if about is not None and isinstance(value, Literal):
                found.add(Feature(about, value))
        kept = tuple(sorted(found, key=_feature_order)[:limit])
        return FeaturePage(kept, Count(max(total, len(kept)), exact=not answer.truncated))

    def _batches(self, terms: Iterable[Node]) -> Iterable[Sequence[Node]]:
        nodes = iter([term for term in terms if self._asker.can_name(term)])
        return iter(lambda: tuple(islice(nodes, BATCH)), ())


class _Said:
    """What the rows about one term say."""

    def __init__(self) -> None:
        self.texts: Texts = {}
        self.types: set[Node] = set()
        self.roles: set[Role] = set()

    def read(self, row: Row, choice: TextChoice) -> None:
        """Take in one row."""
        kind = row.text("k") or ""
        if kind in _ROLES:
            self.roles.add(_ROLES[kind])
        elif kind == "type":
            self.types |= {node for node in (row.node("o"),) if node is not None}
        else:
            relation, key = row.iri("a"), row.text("label")
            if relation is not None and key is not None:
                self.texts[relation] = choice.read(key)

    def description(self, choice: TextChoice) -> Description:
        """Return what was said as one value."""
        types = tuple(sorted(self.types, key=node_key)[:MAX_TYPES])
        return Description(choice.label(self.texts), choice.description(self.texts), types, frozenset(self.roles))


def _read_descriptions(answer: Solutions, choice: TextChoice) -> dict[Node, Description]:
    said: defaultdict[Node, _Said] = defaultdict(_Said)
    for row in rows(answer):
        term = row.node("t")
        if term is not None:
            said[term].read(row, choice)
    return {term: each.description(choice) for term, each in said.items() if each.roles}


def _feature_order(feature: Feature) -> tuple[Iri, str, str, Iri]:
    return feature.relation, feature.value.value, feature.value.language or "", feature.value.datatype
