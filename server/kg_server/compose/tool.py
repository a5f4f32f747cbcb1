"""The tool Compose."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kg_server.answers.results import MOST_TOKENS, Result
from kg_server.concurrency import load, reporting
from kg_server.elsewhere import together
from kg_server.graphs import GraphNames, GraphSet
from kg_server.mcp_server import SextantServer, reading
from kg_server.settings import Settings

Evidence: TypeAlias = Literal["some", "all", "none"]


@dataclass(frozen=True, slots=True)
class ExpressionLimits:
    """What one expression may cost.

    Args:
        calls: How many calls an expression may have.
        depth: How deep they may be nested.
        timeout_s: After how many seconds a part is given up; what is known by then is kept.
    """

    calls: int = 64
    depth: int = 8
    timeout_s: float = 9.0


class ComposeResult(Result):
    """What each part of an expression gives, and the triples that show it.

    Args:
        parts: Rows of part, expression, kind or error, size or reason.
        results: Rows of part, the node and the relation that it is a result for, result, and `node`, `number`,
            `at least`, `none`, `error`, or a value's datatype or language.
        evidence: Rows of head, relation, tail.
        held: What nodes without a label hold, as rows of head, relation, tail.
        labels: Of nodes.
        relations: Labels of relations.
        sparql: Where it is asked for, rows of part and a query that asks the same.
    """

    parts: list[list[str]]
    results: list[list[str]] = Field(description="[part, node, relation, result, its kind]")
    evidence: list[list[str]]
    held: list[list[str]] | None = None
    labels: dict[str, str]
    relations: dict[str, str]
    sparql: list[list[str]] | None = None


MAX_EXPRESSION: Final = 20_000

# What is left is for the names in the answer.
_EVALUATING_SHARE: Final = 0.9


class ComposeTool:
    """Compose, over graphs.

    Args:
        graphs: Where the answers come from.
        settings: Limits and defaults that graphs share.
    """

    def __init__(self, graphs: GraphSet, settings: Settings) -> None:
        self._graphs = graphs
        self._settings = settings

    def provide(self, server: SextantServer) -> None:
        """Add the tool."""
        server.provide(self.compose, "Compose", reading(self._graphs, "Count, rank and sum"), drawn=True)

    async def compose(
        self,
        expression: Annotated[str, Field(min_length=1, max_length=MAX_EXPRESSION)],
        context: Context,
        evidence: Evidence = "some",
        explain: bool = False,
        max_tokens: Annotated[int | None, Field(ge=500, le=MOST_TOKENS)] = None,
        graph: GraphNames = None,
    ) -> Annotated[CallToolResult, ComposeResult]:
        """Find how many, the most, the oldest, the average, the total, or what meets several conditions.

        Neighbor[node, relation], Feature, Degree, Retrieve[text], Type[class] (subclasses too), Count,
        Union, Intersect, Minus[a, b], Where[a, population > 1000, capital = none], Sum, Mean, Min, Max,
        Top, Bottom[a, x or Sum[x], n], Table[a, x], Share, Group[a, date of birth by year, Sum[x]]. Nodes: ids, names
        ("quoted" if with , or ]), calls. Relations: -backwards, ~both ways, repeated+, path/of/them; inverses
        count. `explain`: as SPARQL.
        """
        await load("kg_server.compose.answer")
        from kg_server.compose.answer import composition

        here = await together(self._graphs, graph)
        timeout_s = here.settings.timeout_s * _EVALUATING_SHARE
        async with reporting(context, "working out the expression", here.settings.timeout_s):
            answer = await composition(
                here.adapter,
                expression,
                limits=ExpressionLimits(timeout_s=timeout_s),
                max_tokens=self._settings.max_tokens if max_tokens is None else max_tokens,
                evidence=evidence,
                explain=explain,
                meaning=here.meaning if self._settings.compose_retrieve == "nearest" else None,
            )
        return answer.to_mcp()
