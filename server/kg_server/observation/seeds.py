"""The entities that an observation starts from."""

from collections.abc import Sequence
from typing import Final

from kg_adapters.errors import InvalidRequest, KGError, UnknownEntity
from kg_adapters.models import Description
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Node
from kg_server.resolve import entity_of, unknown_entity

EXPLAINED: Final = 3
"""For how many unknown ids the error says what may have been meant; the others it names."""


async def seeds_of(graph: KGAdapter, ids: Sequence[str]) -> dict[Node, Description]:
    """Return the entities that ids stand for, each once, with what they are.

    Raises:
        InvalidRequest: Some ids are none, or of no entity of this graph: all of them are named.
        UnknownEntity: The graph does not mention one of them.
    """
    refused: dict[str, KGError] = {}
    nodes: dict[str, Node] = {}
    for text in dict.fromkeys(ids):
        try:
            nodes[text] = await entity_of(graph, text)
        except (InvalidRequest, UnknownEntity) as error:
            refused[text] = error
    described = await graph.describe(list(nodes.values()))
    unknown = [text for text, node in nodes.items() if node not in described]
    for text in unknown[:EXPLAINED]:
        refused[text] = await unknown_entity(graph, nodes[text], text)
    if refused:
        raise _refusal(refused, unknown[EXPLAINED:])
    return {node: described[node] for node in nodes.values()}


def _refusal(explained: dict[str, KGError], others: Sequence[str]) -> KGError:
    first, *more = explained.values()
    if not more and not others:
        return first
    parts = [str(error) for error in explained.values()]
    if others:
        parts.append(f"Nor has it {', '.join(repr(text) for text in others)}.")
    return InvalidRequest(f"{len(explained) + len(others)} of the entities cannot be looked around. {' '.join(parts)}")
