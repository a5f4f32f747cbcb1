"""Relations and features of an endpoint by name: those of its survey, with all that they are called."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import anyio
import anyio.to_thread

from kg_adapters.models import GraphSchema, RelationCandidate
from kg_adapters.relation_index import RelationIndex, RelationName, own_name
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.neighborhoods import BATCH
from kg_adapters.sparql.queries.names import NameQueries
from kg_adapters.sparql.search import read_names
from kg_adapters.terms import Iri, Node

NAMED: Final = 2_000
"""How many relations are asked for all their names; the rarer ones go by label and local part."""

MAX_ROWS: Final = 10_000


class RelationSearch:
    """Finds relations by name.

    Args:
        asker: What asks the endpoint.
        queries: What writes the queries.
    """

    def __init__(self, asker: Asker, queries: NameQueries) -> None:
        self._asker = asker
        self._queries = queries
        self._schema: GraphSchema | None = None
        self._index = RelationIndex(())
        self._learning = anyio.Lock()

    async def find(self, schema: GraphSchema, text: str, limit: int) -> Sequence[RelationCandidate]:
        """Return the relations of a schema that a text may name, as `KGAdapter.find_relations` does."""
        async with self._learning:
            if schema is not self._schema:
                self._index = RelationIndex(await self._names(schema))
                self._schema = schema
        return await anyio.to_thread.run_sync(self._index.find, text, limit)

    async def _names(self, schema: GraphSchema) -> list[RelationName]:
        uses = Counter({each.iri: each.triples.value for each in schema.relations})
        uses.update({each.iri: each.statements.value for each in schema.features})
        relations = sorted(uses, key=lambda iri: (-uses[iri], iri))
        said: dict[Node, set[tuple[bool, str]]] = defaultdict(set)
        for first in range(0, min(len(relations), NAMED), BATCH):
            answer = await self._asker.ask(self._queries.of(relations[first : first + BATCH], MAX_ROWS))
            for bearer, text, alias in read_names(answer, self._queries.vocabulary):
                said[bearer].add((alias, text))
        labels = {each.iri: each.label for each in schema.features} | {
            each.iri: each.label for each in schema.relations
        }
        return [name for iri in relations for name in _names_of(iri, labels[iri], said)]


def _names_of(relation: Iri, label: str | None, said: Mapping[Node, set[tuple[bool, str]]]) -> Iterator[RelationName]:
    names = {*said.get(relation, ()), *(((False, label),) if label is not None else ())}
    yield from (RelationName(relation, text, alias) for alias, text in sorted(names))
    yield own_name(relation)
