"""What an import tells at its end: what the graph holds, and a command that shows some of it."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio
import numpy as np

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.index import GraphIndex, stored_node
from kg_adapters.local.names.table import bare_relations
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import BlankNode, Node
from kg_boundary.shown import visible_line
from kg_server.identity import identify
from kg_server.meaning import Meaning
from kg_server.schema_view import schema_view
from kg_server.settings import Settings

_TOKENS: Final = 400
_LINES: Final = 5
_TRIED: Final = 20
_LONGEST: Final = 80


def summary_of(folder: Path, settings: Settings) -> list[str]:
    """Return lines on what a store holds, the last of them with a command to try."""
    return anyio.run(_summary, folder, settings)


async def _summary(folder: Path, settings: Settings) -> list[str]:
    graph = LocalAdapter(open_store(folder))
    meaning = Meaning(graph, settings)
    try:
        index = graph.store.index
        if not len(index.nodes):
            return ["The graph is empty: the files hold no statements."]
        answer = await schema_view(graph, meaning, about=None, max_tokens=_TOKENS)
        lines = [answer.result.summary, *answer.lines[:_LINES]]
        tool, entity = await _question(graph, index)
        command = ["kg-sextant", "call", tool, f"entity={entity}", "--graph", str(folder)]
        return [*map(visible_line, lines), f"Try: {shlex.join(command)}"]
    finally:
        await meaning.aclose()
        await graph.aclose()


async def _question(graph: KGAdapter, index: GraphIndex) -> tuple[str, str]:
    """Return a tool that shows what is said of an entity, and the entity of which most is said."""
    said = np.diff(index.features.starts) + np.diff(index.out.groups)
    said[bare_relations(index)] = -1
    numbers = [int(number) for number in np.argsort(-said, kind="stable")[:_TRIED]]
    tool = "GetNeighbor" if len(index.out.neighbors) else "Feature"
    return tool, await _called(graph, [stored_node(index, number) for number in numbers])


async def _called(graph: KGAdapter, best: Sequence[Node]) -> str:
    """Return how the first entity is called that has a name of its own; where none has, the first one's id."""
    labels = await graph.labels(best)
    for node in best:
        if (label := labels.get(node)) is not None and await _names_one(graph, label, node):
            return label
    return graph.prefixes.shorten(next((node for node in best if not isinstance(node, BlankNode)), best[0]))


async def _names_one(graph: KGAdapter, label: str, node: Node) -> bool:
    """Say whether a label can be typed, and tools read it as this entity alone."""
    if visible_line(label) != label or len(label) > _LONGEST:
        return False
    (identity,) = await identify(graph, [label])
    return identity.match == "exact" and identity.nodes == (node,)
