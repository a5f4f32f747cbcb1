"""The tool observe."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Final

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kg_adapters.protocol import KGAdapter
from kg_server.answers.results import Result
from kg_server.concurrency import load
from kg_server.mcp_server import SextantServer, reading
from kg_server.naming.meaning import Meaning
from kg_server.settings import Settings
from kg_server.tools import EntityId, Hops, Text, Tokens

if TYPE_CHECKING:
    from kg_server.observation.scoring import Scorer


class ObserveResult(Result):
    """What lies around entities, by relation and direction, best first; what is only counted ends with the count."""

    groups: list[list[str]] = Field(description="[entity, relation, out/in, count, score, hop, far ends]")
    labels: dict[str, str]
    relations: dict[str, str]
    held: list[list[str]] | None = Field(default=None, description="what nodes without a name hold")
    found: int
    sampled: list[str]
    scorer: str


# What is left is for seeds and the answer.
_SEARCHING_SHARE: Final = 0.9


class ObserveTool:
    """observe, over one graph.

    Args:
        graph: Where the triples come from.
        settings: Limits and defaults.
        scorer: Gives what ranks.
        meaning: Tells what is asked for; without it nothing is said of what the entities lack.
    """

    def __init__(
        self,
        graph: KGAdapter,
        settings: Settings,
        scorer: Callable[[], Awaitable["Scorer"]],
        meaning: Meaning | None = None,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._scorer = scorer
        self._meaning = meaning

    def provide(self, server: SextantServer) -> None:
        """Add the tool."""
        server.provide(self.observe, "observe", reading(self._graph))

    async def observe(
        self,
        question: Text,
        entities: Annotated[list[EntityId], Field(min_length=1, max_length=20)],
        context: Context,
        hops: Hops = 3,
        top_n: Annotated[int, Field(ge=1, le=200)] = 50,
        top_percent: Annotated[float, Field(gt=0, le=100)] = 10,
        max_tokens: Tokens = None,
    ) -> Annotated[CallToolResult, ObserveResult]:
        """Look ahead: what lies up to `hops` away from entities, by relation, most like the question first.

        Every relation of the entities is named. Each hop keeps `top_n` triples and goes on from the best `top_percent`.
        """
        await load("kg_server.naming.entities", "kg_server.observation.answer")
        from kg_server.naming.entities import read_entities
        from kg_server.observation.answer import observation
        from kg_server.observation.search import Reach

        reach = Reach(
            hops=hops,
            top_n=top_n,
            top_percent=top_percent,
            timeout_s=self._settings.timeout_s * _SEARCHING_SHARE,
            to_the_letter=self._settings.observe_score == "paper",
        )

        async def on_hop(hop: int) -> None:
            await context.report_progress(hop, hops, f"observed {hop} of {hops} hops")

        read = await read_entities(self._graph, *entities)
        answer = await observation(
            self._graph,
            await self._scorer(),
            question=question,
            entities=read.ids,
            reach=reach,
            max_tokens=read.room(self._settings.max_tokens if max_tokens is None else max_tokens),
            on_hop=on_hop,
            meaning=self._meaning,
        )
        return read.told(answer).to_mcp()
