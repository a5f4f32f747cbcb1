"""Relations and features of an endpoint by name: those of its survey, with all that they are called."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import anyio
import anyio.to_thread

from kg_adapters.calls import note_partial, watching_completeness
from kg_adapters.models import GraphSchema, RelationCandidate
from kg_adapters.name_index import RelationIndex, RelationName, own_name
from kg_adapters.sparql.asking import Asker
from kg_adapters.sparql.neighborhoods import BATCH
from kg_adapters.sparql.queries.names import NameQueries
from kg_adapters.sparql.rows import rows
from kg_adapters.surroundings import spoken_aliases
from kg_adapters.terms import Iri, Literal, Node, literal_key

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
