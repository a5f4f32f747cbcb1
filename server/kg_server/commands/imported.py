"""What an import ends with: a description of the store, and commands to try."""

import math
import shlex
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from kg_adapters.answer_cache import AnswerCache
from kg_adapters.index.graph_index import GraphIndex, bare_relations, stored_node
from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_adapters.protocol import KGAdapter
from kg_adapters.tables.report import TableReport
from kg_adapters.terms import BlankNode, Node
from kg_boundary.shown import visible_line
from kg_server.naming.entities import identify
from kg_server.naming.meaning import Meaning, SharedEmbedder
from kg_server.schema_view import schema_view
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_adapters.importing.build import ImportReport

_TOKENS: Final = 1_000
_LINES: Final = 12
_MOST_LABELS: Final = 2_000
_TRIED: Final = 20
_LONGEST: Final = 80


async def summary_of(folder: Path, settings: Settings, report: "ImportReport") -> list[str]:
    """Return lines that describe a store; the last ones are commands to try."""
    store = open_store(folder)
    if store.info.counts != report.counts:
        return [f"Another import has changed {folder} since."]
    graph = LocalAdapter(store)
    embedder = SharedEmbedder(settings)
    try:
        index = graph.store.index
        if not len(index.nodes):
            return ["The graph is empty: the files hold no statements."]
        answer = await schema_view(
            graph, Meaning(graph, embedder), AnswerCache(1, math.inf), about=None, max_tokens=_TOKENS
        )
        lines = [answer.result.summary, *answer.lines[:_LINES]]
        tool, entity = await _question(graph, index)
        calls = [
            [tool, f"entity={entity}"],
            *(["Compose", f"expression={each}"] for each in _expressions(report.tables)),
        ]
        commands = (["kg-sextant", "call", *call, "--graph", str(folder)] for call in calls)
        return [*map(visible_line, lines), *(f"Try: {shlex.join(command)}" for command in commands)]
    finally:
        await embedder.aclose()
        await graph.aclose()


async def _question(graph: KGAdapter, index: GraphIndex) -> tuple[str, str]:
    """Return a tool that shows the facts of an entity, and the entity with the most of them."""
    said = np.diff(index.features.starts) + np.diff(index.out.groups)
    said[bare_relations(index)] = -1
    numbers = [int(number) for number in np.argsort(-said, kind="stable")[:_MOST_LABELS]]
    tool = "GetNeighbor" if len(index.out.neighbors) else "Feature"
    return tool, await _called(graph, [stored_node(index, number) for number in numbers])


_RANKED: Final = ("number", "whole number", "date", "date and time", "year")


def _expressions(tables: Sequence[TableReport]) -> list[str]:
    """Return up to two expressions of Compose about rows: how they are grouped, and which come first."""
    rows = sorted(
        (table for table in tables if not table.edges and _is_typed(table.table)), key=lambda each: -each.rows
    )
    groups = (
        f"Group[Type[{each.table}], {link.column}]"
        for each in rows
        for link in each.links
        if _is_asked(each, link.column)
    )
    ranked = (
        f"Top[Type[{each.table}], {column}, 3]"
        for each in rows
        for ranked_kind in _RANKED
        for kind, columns in each.columns
        for column in columns
        if kind == ranked_kind and _is_asked(each, column)
    )
    counts = (f"Count[Type[{each.table}]]" for each in rows)
    return list(filter(None, (next(groups, ""), next(ranked, ""), next(counts, ""))))[:2]


def _is_asked(table: TableReport, column: str) -> bool:
    return column not in table.constant and _is_typed(column)


def _is_typed(name: str) -> bool:
    """Return whether a name needs no quotation marks in an expression, and is not too long for it."""
    return len(name) <= _LONGEST and name.replace("_", "").replace(" ", "").isalnum() and not name[0].isdigit()


async def _called(graph: KGAdapter, best: Sequence[Node]) -> str:
    """Return the name of the first entity whose name means no other; where there is none, the id of the first."""
    labels = await graph.labels(best)
    known = ((node, label) for node in best if (label := labels.get(node, "")))
    # The number of a row means nothing to a reader.
    named = ((node, label) for node, label in known if not label.removeprefix("row ").isdecimal())
    for node, label in islice(named, _TRIED):
        if await _names_one(graph, label, node):
            return label
    return graph.prefixes.shorten(next((node for node in best if not isinstance(node, BlankNode)), best[0]))


async def _names_one(graph: KGAdapter, label: str, node: Node) -> bool:
    """Return whether a label can be typed and identifies this entity alone."""
    if visible_line(label) != label or len(label) > _LONGEST:
        return False
    (identity,) = await identify(graph, [label])
    return identity.match == "exact" and identity.nodes == (node,)
