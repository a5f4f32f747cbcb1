"""From the ids in a call to the terms of the graph, with an error that names the next step where that fails."""

from collections.abc import Iterable

from kg_adapters.errors import InvalidRequest, UnknownEntity
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_server.names import names_of


async def entity_of(graph: KGAdapter, text: str) -> Node:
    """Return the entity that an id stands for, whether the graph has it or not.

    Raises:
        InvalidRequest: It is no id.
        UnknownEntity: It is the id of a relation.
    """
    try:
        return graph.prefixes.expand(text)
    except InvalidRequest:
        hint = await relation_hint(graph, text)
        if hint is None:
            raise
        raise UnknownEntity(text, hint=hint) from None


async def unknown_entity(graph: KGAdapter, node: Node, text: str) -> UnknownEntity:
    """Return the error for an entity that the graph does not mention, with ids that may have been meant."""
    hint = await relation_hint(graph, text)
    if hint is not None:
        return UnknownEntity(text, hint=hint)
    found = await graph.search(node.local_part, limit=3) if is_word(node.local_part) else ()
    names = await names_of(graph, [each.entity for each in found])
    return UnknownEntity(
        text,
        suggestions=[names.entity(each.entity) for each in found],
        hint="Retrieve finds the id of a name.",
    )


async def require_entity(graph: KGAdapter, text: str) -> Node:
    """Return the entity that an id stands for.

    Raises:
        InvalidRequest: It is no id.
        UnknownEntity: The graph does not mention it.
    """
    node = await entity_of(graph, text)
    described = await graph.describe([node])
    if node not in described or "entity" not in described[node].roles:
        raise await unknown_entity(graph, node, text)
    return node


def closest(text: str, choices: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return the choices most like `text`, best first; none that is not alike."""
    from rapidfuzz import fuzz, process

    found = process.extract(text, list(choices), scorer=fuzz.WRatio, limit=limit, score_cutoff=70)
    return [choice for choice, _, _ in found]


async def relation_hint(graph: KGAdapter, text: str) -> str | None:
    """Return what to say of a text in the place of an entity that is the id of a relation."""
    try:
        relation = graph.prefixes.expand(text, "relation")
    except InvalidRequest:
        return None
    if not isinstance(relation, Iri) or relation not in await graph.describe([relation]):
        return None
    names = await names_of(graph, [relation])
    return f"{names.relation(relation)} is a relation: give it as the relation."


def is_word(text: str) -> bool:
    """Say whether a text reads like a word rather than a number."""
    return sum(mark.isalpha() for mark in text) >= 3
