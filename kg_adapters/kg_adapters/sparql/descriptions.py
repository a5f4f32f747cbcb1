"""Reads labels, descriptions and values of terms, by one request for any number of them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Final

from kg_adapters.models import Count, Description, Feature, FeaturePage, Role
from kg_adapters.requests import FeatureRequest
from kg_adapters.sparql.asking import QueryAsker, part_of_an_answer
from kg_adapters.sparql.dialects import Dialect
from kg_adapters.sparql.neighborhoods import BATCH, MAX_ROWS, LabelMemory
from kg_adapters.sparql.queries.descriptions import APART, DescriptionQueries, TextChoice
from kg_adapters.sparql.rows import Bindings, Texts, named, read_texts, rows
from kg_adapters.sparql.solutions import Solutions
from kg_adapters.terms import Literal, Node, node_key

MAX_TYPES: Final = 100
VALUED: Final = 250
"""Of how many terms one request asks for the literals."""
_ROLES: Final[dict[str, Role]] = {"entity": "entity", "relation": "relation"}


class DescriptionReader:
    """Reads labels, descriptions and features.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
        memory: The labels that are known already.
    """

    def __init__(self, asker: QueryAsker, queries: DescriptionQueries, memory: LabelMemory) -> None:
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
        """Return features, as `KGAdapter.features` does: one request for many entities, more where some have many."""
        if request.relations is not None and not request.relations:
            return {}
        pages: dict[Node, FeaturePage] = {}
        whole = max(APART, MAX_ROWS // request.limit)
        for batch in self._batches(dict.fromkeys(request.entities), VALUED):
            pages |= (found := await self._features(batch, request))
            # Of those with more values than are wanted the first are chosen where the graph is; others did not fit in.
            many = [entity for entity, page in found.items() if page.total.value > request.limit]
            few = [entity for entity, page in found.items() if len(page.features) < page.total.value <= request.limit]
            for entities, most in ((many if len(batch) > APART else [], APART), (few, whole)):
                for first in range(0, len(entities), most):
                    pages |= await self._features(entities[first : first + most], request)
        return pages

    async def _features(self, batch: Sequence[Node], request: FeatureRequest) -> dict[Node, FeaturePage]:
        query = self._queries.features(batch, request.relations, request.limit, MAX_ROWS)
        answer = await self._asker.ask(query)
        found = _read_features(answer, batch, self._asker.dialect)
        if answer.cut and len(found) < len(batch):
            # An entity may stand in the part that is missing.
            raise part_of_an_answer()
        return {entity: said.page(request.limit, exact=not answer.truncated) for entity, said in found.items()}

    def _batches(self, terms: Iterable[Node], most: int = BATCH) -> Iterable[Sequence[Node]]:
        nodes = iter([term for term in terms if self._asker.can_name(term)])
        return iter(lambda: tuple(islice(nodes, min(most, BATCH))), ())


class _Said:
    """The texts, types and roles of one term, collected from rows."""

    def __init__(self) -> None:
        self.texts: Texts = {}
        self.types: set[Node] = set()
        self.roles: set[Role] = set()

    def read(self, row: Bindings, choice: TextChoice) -> None:
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
        """Return what was collected as one value."""
        types = tuple(sorted(self.types, key=node_key)[:MAX_TYPES])
        return Description(choice.label(self.texts), choice.description(self.texts), types, frozenset(self.roles))


def _read_descriptions(answer: Solutions, choice: TextChoice) -> dict[Node, Description]:
    said: defaultdict[Node, _Said] = defaultdict(_Said)
    for row in rows(answer):
        term = row.node("t")
        if term is not None:
            said[term].read(row, choice)
    return {term: each.description(choice) for term, each in said.items() if each.roles}


@dataclass
class _Valued:
    """The values of one entity, collected from rows, and how many there are."""

    total: int = 0
    found: set[Feature] = field(default_factory=set[Feature])

    def page(self, limit: int, *, exact: bool) -> FeaturePage:
        """Return what was collected as one value."""
        kept = tuple(sorted(self.found, key=attrgetter("order"))[:limit])
        return FeaturePage(kept, Count(max(self.total, len(kept)), exact=exact))


def _read_features(answer: Solutions, asked: Sequence[Node], dialect: Dialect) -> dict[Node, _Valued]:
    entities = named(asked, dialect)
    found: defaultdict[Node, _Valued] = defaultdict(_Valued)
    for row in rows(answer):
        entity = entities.get(str(row.term("e")))
        if entity is not None:
            said, about, value = found[entity], row.iri("p"), row.term("v")
            said.total += row.number("n") or 0
            if about is not None and isinstance(value, Literal):
                said.found.add(Feature(about, value))
    return dict(found)
