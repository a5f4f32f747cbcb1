"""The tool Compose."""

from typing import Annotated, Final

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kg_adapters.protocol import KGAdapter
from kg_server.answers.results import MOST_TOKENS
from kg_server.compose.result import ComposeResult, Evidence, Limits
from kg_server.concurrency import load, reporting
from kg_server.mcp_server import SextantServer, reading
from kg_server.meaning import Meaning
from kg_server.settings import Settings

MAX_EXPRESSION: Final = 20_000
# What is left is for the names in the answer.
_EVALUATING_SHARE: Final = 0.9


class ComposeTool:
    """Compose, over one graph.

    Args:
        graph: Where the answers come from.
        settings: Limits and defaults.
        meaning: What `Retrieve` finds the nearest node by, where the settings want that.
    """

    def __init__(self, graph: KGAdapter, settings: Settings, meaning: Meaning | None = None) -> None:
        self._graph = graph
        self._settings = settings
        self._meaning = meaning if settings.compose_retrieve == "nearest" else None

    def provide(self, server: SextantServer) -> None:
        """Add the tool."""
        server.provide(self.compose, "Compose", reading(self._graph))

    async def compose(
        self,
        expression: Annotated[str, Field(min_length=1, max_length=MAX_EXPRESSION)],
        context: Context,
        evidence: Evidence = "some",
        explain: bool = False,
        max_tokens: Annotated[int | None, Field(ge=500, le=MOST_TOKENS)] = None,
    ) -> Annotated[CallToolResult, ComposeResult]:
        """Count, filter, rank, group and add up in one call, or several.

        Neighbor[node, relation], Feature, Degree, Retrieve[text], Type[class] (subclasses too), Count,
        Union, Intersect, Minus[a, b], Where[a, population > 1000, country = Japan], Top, Bottom[a, by, n],
        Sum, Mean, Min, Max, Group, Table[a, by], Share. Nodes: ids, names ("quoted" if with , or ]), calls.
        Relations: -backwards, ~both ways, path/of/them; inverses count. `explain`: as SPARQL.
        """
        await load("kg_server.compose.answer")
        from kg_server.compose.answer import composition

        timeout_s = self._settings.timeout_s * _EVALUATING_SHARE
        async with reporting(context, "working out the expression", self._settings.timeout_s):
            answer = await composition(
                self._graph,
                expression,
                limits=Limits(timeout_s=timeout_s),
                max_tokens=self._settings.max_tokens if max_tokens is None else max_tokens,
                evidence=evidence,
                explain=explain,
                meaning=self._meaning,
            )
        return answer.to_mcp()
