"""From the ids in a call to the terms of the graph, with an error that names the next step where that fails."""

from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz, process

from kg_adapters.errors import InvalidRequest, UnknownEntity, UnknownRelation
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_boundary.shown import in_quotes
from kg_server.names import Names, names_of


async def entity_of(graph: KGAdapter, text: str) -> Node:
    """Return the entity that an id stands for, whether the graph has it or not.

    Raises:
        InvalidRequest: It is no id.
        UnknownEntity: It is the id of a relation.
    """
    try:
        return graph.prefixes.expand(text)
    except InvalidRequest:
        hint = await _relation_hint(graph, text)
        if hint is None:
            raise
        raise UnknownEntity(text, hint=hint) from None


async def relation_of(graph: KGAdapter, text: str, *, around: Node | None = None) -> Iri:
    """Return the relation that an id stands for.

    Raises:
        InvalidRequest: It is no id; relations with a similar label are named, those of `around` first.
        UnknownRelation: No triple has it.
    """
    try:
        relation = graph.prefixes.expand(text, "relation")
    except InvalidRequest as error:
        similar = await _similar_relations(graph, text, around)
        if not similar:
            raise
        raise InvalidRequest(
            f"{in_quotes(text)} is not the id of a relation. Did you mean {' or '.join(similar)}?"
        ) from error
    assert isinstance(relation, Iri)  # noqa: S101 - nothing else is read in the place of a relation
    described = await graph.describe([relation])
    if relation not in described or "relation" not in described[relation].roles:
        similar = await _similar_relations(graph, relation.local_part, around)
        raise UnknownRelation(text, suggestions=similar, hint="Degree lists the relations of an entity, Schema all.")
    return relation


async def unknown_entity(graph: KGAdapter, node: Node, text: str) -> UnknownEntity:
    """Return the error for an entity that the graph does not mention, with ids that may have been meant."""
    hint = await _relation_hint(graph, text)
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
    found = process.extract(text, list(choices), scorer=fuzz.WRatio, limit=limit, score_cutoff=70)
    return [choice for choice, _, _ in found]


async def _similar_relations(graph: KGAdapter, text: str, around: Node | None) -> Sequence[str]:
    near = await _relations_around(graph, around) if around is not None else []
    found = _most_alike(text, await names_of(graph, near), near)
    if found:
        return found
    known = [summary.iri for summary in (await graph.schema()).relations]
    return _most_alike(text, await names_of(graph, known), known)


async def _relations_around(graph: KGAdapter, node: Node) -> list[Iri]:
    degrees = await graph.degrees([node])
    return list(dict.fromkeys(each.relation for each in degrees[node].relations)) if node in degrees else []


def _most_alike(text: str, names: Names, relations: Sequence[Iri]) -> list[str]:
    shown = {names.relation(iri): names.labels.get(iri, iri.local_part).lower() for iri in relations}
    found = process.extract(text.lower(), shown, scorer=fuzz.ratio, limit=3, score_cutoff=70)
    return [key for _, _, key in found]


async def _relation_hint(graph: KGAdapter, text: str) -> str | None:
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
