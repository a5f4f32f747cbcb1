"""What an import tells at its end: what the graph holds, and a command that shows some of it."""

import shlex
from pathlib import Path
from typing import Final

import anyio
import numpy as np

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.index import GraphIndex, stored_node
from kg_adapters.local.names import bare_relations
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import BlankNode, Node
from kg_boundary.shown import visible_line
from kg_server.meaning import Meaning
from kg_server.schema_view import schema_view
from kg_server.settings import Settings

_TOKENS: Final = 400
_LINES: Final = 5
_TRIED: Final = 20


def summary_of(folder: Path, settings: Settings) -> list[str]:
    """Return lines on what a store holds, the last of them with a command to try."""
    return anyio.run(_summary, folder, settings)


async def _summary(folder: Path, settings: Settings) -> list[str]:
    graph = LocalAdapter(open_store(folder))
    meaning = Meaning(graph, settings)
    try:
        index = graph.store.index
        if not len(index.nodes):
            return []
        answer = await schema_view(graph, meaning, about=None, max_tokens=_TOKENS)
        lines = [answer.result.summary, *answer.lines[:_LINES]]
        entity = await _entity(graph, index)
        command = ["kg-sextant", "call", "GetNeighbor", f"entity={entity}", "--graph", str(folder)]
        return [*map(visible_line, lines), f"Try: {shlex.join(command)}"]
    finally:
        await meaning.aclose()
        await graph.aclose()


async def _entity(graph: KGAdapter, index: GraphIndex) -> str:
    """Return how the entity is called that most is said of: by its name where nobody else has it, else by its id."""
    said = np.diff(index.features.starts) + np.diff(index.out.groups)
    said[bare_relations(index)] = -1
    best = [stored_node(index, int(number)) for number in np.argsort(-said, kind="stable")[:_TRIED]]
    labels = await graph.labels(best)
    for node in best:
        if (label := labels.get(node)) is not None and await _names_one(graph, label, node):
            return label
    return graph.prefixes.shorten(next((node for node in best if not isinstance(node, BlankNode)), best[0]))


async def _names_one(graph: KGAdapter, label: str, node: Node) -> bool:
    found = await graph.search(label, limit=2)
    exact = [each.entity for each in found if each.matched_by in {"label", "alias"}]
    return visible_line(label) == label and len(label) <= 80 and exact == [node]
