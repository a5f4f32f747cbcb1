"""What a graph's definition says in other words: classes, relations and features near a text in meaning."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final, Protocol

from kg_adapters.models import Candidate, GraphSchema
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_server.meaning import Meaning
from kg_server.names import names_of
from kg_server.resolve import is_word

MOST_NEAR: Final = 3
_NEAR: Final = 0.55
"""How alike in meaning labels have to be: single words are more alike than what says what an entity is."""
_MOST_COMPARED: Final = 500
"""How many classes, and how many relations and features, are compared: the most frequent ones."""


class _Defined(Protocol):
    """A class, relation or feature of a definition."""

    @property
    def iri(self) -> Node: ...

    @property
    def label(self) -> str | None: ...


async def near_classes(meaning: Meaning, schema: GraphSchema, text: str) -> Sequence[Candidate]:
    """Return the classes that are called like a text in other words, best first."""
    return await _near(meaning, schema.classes, text)


async def near_relations(meaning: Meaning, schema: GraphSchema, text: str) -> Sequence[Candidate]:
    """Return the relations and features that are called like a text in other words, best first."""
    most = _MOST_COMPARED // 2
    return await _near(meaning, chain(schema.relations[:most], schema.features[:most]), text)


async def with_near_relations(graph: KGAdapter, meaning: Meaning, text: str, said: str) -> str:
    """Return what is said of a text that names no relation, with those near in meaning that are not said yet."""
    near = await near_relations(meaning, await graph.schema(), text)
    relations = [each.entity for each in near if isinstance(each.entity, Iri)]
    names = await names_of(graph, relations)
    shown = [each for each in map(names.relation, relations) if each not in said]
    return f"{said} Near in meaning, not the same: {'; '.join(shown)}." if shown else said


async def _near(meaning: Meaning, defined: Iterable[_Defined], text: str) -> Sequence[Candidate]:
    labels: dict[Node, str] = {}
    for each in defined:
        label = each.label or (each.iri.local_part.replace("_", " ") if is_word(each.iri.local_part) else "")
        if label and len(labels) < _MOST_COMPARED:
            labels[each.iri] = label
    found = await meaning.nearest(text, labels, limit=MOST_NEAR)
    return [each for each in found.candidates if each.score >= _NEAR]
