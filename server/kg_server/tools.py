"""The tools: thin, typed doors to the operations. Their docstrings are what a model reads.

What is behind a door is loaded when it is first opened, so that a server lists its tools soon.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import anyio
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.models import Direction
from kg_adapters.protocol import SupportsSparql
from kg_adapters.terms import Node
from kg_server.answers.results import (
    MOST_HOPS,
    MOST_TOKENS,
    Answer,
    CandidatesResult,
    DegreeResult,
    FeaturesResult,
    NeighborsResult,
    ObserveResult,
    PathsResult,
    SchemaResult,
    SparqlResult,
    token_count,
)
from kg_server.concurrency import load, reporting
from kg_server.elsewhere import Elsewhere, Places, together
from kg_server.graphs import GraphName, GraphNames, GraphSet, OpenedGraph
from kg_server.instructions import lines_of
from kg_server.mcp_server import SextantServer, reading
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_server.naming.valued import ValueText

MAX_QUERY: Final = 20_000
GRACE_S: Final = 1.0
"""How long after its deadline a query that does not end by itself is ended: what ends it has a better reason."""
MAX_TEXTS: Final = 50
"""How many texts one call of Retrieve takes."""
_LEAST_ROOM: Final = 300
"""How many tokens of an answer that several graphs share each of them has at least."""
_SHARE_OF_OTHERS: Final = 0.5
"""What part of the time of Schema the other graphs have to open, where a command has only just begun."""
_SEARCHING_SHARE: Final = 0.9
"""What part of its time observe searches; what is left is for the entities and the answer."""

EntityId: TypeAlias = Annotated[str, Field(min_length=1, max_length=2_000, description="Id or name")]
ClassId: TypeAlias = Annotated[str, Field(min_length=1, max_length=2_000)]
RelationId: TypeAlias = Annotated[str, Field(min_length=1, max_length=2_000, description="Id or label")]
FeatureId: TypeAlias = Annotated[str, Field(min_length=1, max_length=2_000, description="Id or label")]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=200)]
Hops: TypeAlias = Annotated[int, Field(ge=1, le=MOST_HOPS)]
Tokens: TypeAlias = Annotated[int | None, Field(ge=500, le=MOST_TOKENS)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=1_000)]
Cursor: TypeAlias = Annotated[str, Field(min_length=1, max_length=2_000)]


class Tools:
    """The tools over graphs.

    Args:
        graphs: Where the answers come from.
        settings: Limits and defaults that graphs share.
    """

    def __init__(self, graphs: GraphSet, settings: Settings) -> None:
        self._graphs = graphs
        self._elsewhere = Elsewhere(graphs)
        self._settings = settings

    def provide(self, server: SextantServer) -> None:
        """Add every tool that a graph supports."""
        reads = partial(reading, self._graphs)
        server.provide(self.observe, "observe", reads("Explore entities"), drawn=True)
        server.provide(self.retrieve, "Retrieve", reads("Find entities"), spans=True)
        server.provide(self.get_neighbor, "GetNeighbor", reads("Look up facts"), drawn=True)
        server.provide(self.get_path, "GetPath", reads("Find paths"), drawn=True)
        server.provide(self.feature, "Feature", reads("Look up values"))
        server.provide(self.degree, "Degree", reads("Count neighbours"))
        server.provide(self.schema, "Schema", reads("Describe the graph"))
        if any(each.answers_sparql for each in self._graphs.all):
            server.provide(self.sparql, "Sparql", reads("Query with SPARQL"), own_deadline=True)

    async def observe(
        self,
        question: Text,
        entities: Annotated[list[EntityId], Field(min_length=1, max_length=20)],
        context: Context,
        hops: Hops = 3,
        top_n: Annotated[int, Field(ge=1, le=200)] = 50,
        top_percent: Annotated[float, Field(gt=0, le=100)] = 10,
        max_tokens: Tokens = None,
        graph: GraphName = None,
    ) -> Annotated[CallToolResult, ObserveResult]:
        """Find which facts around some entities bear on a question, when it is unclear what to look up.

        Shows relations up to `hops` away, those most like the question first. Every relation of the entities is named.
        Each hop keeps `top_n` triples and follows the best `top_percent`.
        """
        await load("kg_server.observation.answer")
        from kg_server.observation.answer import observation
        from kg_server.observation.search import Reach

        here = await self._graphs.opened(graph)
        reach = Reach(
            hops=hops,
            top_n=top_n,
            top_percent=top_percent,
            timeout_s=here.settings.timeout_s * _SEARCHING_SHARE,
            to_the_letter=self._settings.observe_score == "paper",
        )

        async def on_hop(hop: int) -> None:
            await context.report_progress(hop, hops, f"observed {hop} of {hops} hops")

        scorer = await here.meaning.scorer()
        return await self._about(
            here,
            entities,
            max_tokens,
            lambda ids, room: observation(
                here.adapter,
                scorer,
                question=question,
                entities=ids,
                reach=reach,
                max_tokens=room,
                on_hop=on_hop,
                meaning=here.meaning,
            ),
            values=True,
        )

    async def retrieve(
        self,
        text: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)],
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
        type: ClassId | None = None,
        graph: GraphName = None,
    ) -> Annotated[CallToolResult, CandidatesResult]:
        """Find who or what a text, or each of a list, names or describes: people, places, things.

        `match` is exact, close (misspelled), value, loose or none. `type` keeps instances of a class.
        """
        await load("kg_server.naming.retrieval")
        from kg_server.naming.retrieval import grouped, retrieval

        asked = self._graphs.all if graph is None else self._graphs.chosen(graph)
        room = max(self._settings.max_tokens // len(asked), _LEAST_ROOM)
        places: dict[str, Mapping[str, Places]] = {}

        async def elsewhere(here: OpenedGraph, nodes: Collection[Node]) -> Mapping[Node, Places]:
            of = await self._elsewhere.of(here, nodes)
            places[here.name] = {here.adapter.prefixes.shorten(node): each for node, each in of.items()}
            return of

        def found(here: OpenedGraph) -> Awaitable[Answer]:
            return retrieval(
                here.adapter,
                here.meaning,
                text=text,
                limit=limit,
                type=type,
                max_tokens=room,
                elsewhere=partial(elsewhere, here),
            )

        if len(asked) == 1:
            return (await found(await asked[0].opened())).to_mcp()
        return grouped(await self._graphs.ask_each(found), places).to_mcp()

    async def get_neighbor(
        self,
        entity: EntityId,
        relation: RelationId | None = None,
        direction: Direction = "out",
        limit: Limit = 50,
        cursor: Cursor | None = None,
        details: bool = False,
        max_tokens: Tokens = None,
        graph: GraphName = None,
    ) -> Annotated[CallToolResult, NeighborsResult]:
        """Look up who or what an entity is related to: its author, its place of birth, its members.

        Shows the triples that point from it (out), to it (in), or both. A hub is sampled across its relations, with
        their counts; go on with `cursor`, or name a relation.
        `details` adds qualifiers, references, annotations and named graphs.
        """
        await load("kg_server.answers.neighbors")
        from kg_server.answers.neighbors import neighborhood, value_bearers

        here = await self._graphs.opened(graph)
        return await self._about(
            here,
            [entity],
            max_tokens,
            lambda ids, room: neighborhood(
                here.adapter,
                entity=ids[0],
                relation=relation,
                direction=direction,
                limit=limit,
                cursor=cursor,
                details_s=here.settings.timeout_s if details else None,
                max_tokens=room,
            ),
            relation=relation,
            direction=direction,
            of_value=lambda value, room: value_bearers(
                here.adapter, value, relation=relation, limit=limit, max_tokens=room
            ),
        )

    async def get_path(
        self,
        source: EntityId,
        target: EntityId,
        context: Context,
        max_hops: Hops = 3,
        limit: Annotated[int, Field(ge=1, le=100)] = 10,
        question: Text | None = None,
        avoid_hubs: bool = True,
        max_tokens: Tokens = None,
        graph: GraphNames = None,
    ) -> Annotated[CallToolResult, PathsResult]:
        """Find how two entities are connected: through whom or what, by which relations.

        Paths run in either direction, the shortest first. `question` puts those most like it first.
        Hubs and types are walked only with avoid_hubs=false.
        """
        await load("kg_server.answers.paths")
        from kg_server.answers.paths import paths_between

        here = await together(self._graphs, graph)
        async with reporting(context, "searching paths", here.settings.timeout_s):
            return await self._about(
                here,
                [source, target],
                max_tokens,
                lambda ids, room: paths_between(
                    here.adapter,
                    here.settings,
                    source=ids[0],
                    target=ids[1],
                    max_hops=max_hops,
                    limit=limit,
                    question=question,
                    avoid_hubs=avoid_hubs,
                    max_tokens=room,
                ),
            )

    async def feature(
        self, entity: EntityId, feature: FeatureId | None = None, graph: GraphName = None
    ) -> Annotated[CallToolResult, FeaturesResult]:
        """Look up when, how large or how much: an entity's dates, numbers, texts, or those of one feature."""
        await load("kg_server.answers.features")
        from kg_server.answers.features import features_of

        here = await self._graphs.opened(graph)
        return await self._about(
            here,
            [entity],
            None,
            lambda ids, room: features_of(here.adapter, entity=ids[0], feature=feature, max_tokens=room),
            relation=feature,
        )

    async def degree(
        self,
        entity: EntityId,
        relation: RelationId | None = None,
        direction: Direction = "both",
        graph: GraphName = None,
    ) -> Annotated[CallToolResult, DegreeResult]:
        """Count how many neighbours an entity has: children, members, works; in all and by relation."""
        await load("kg_server.answers.degree")
        from kg_server.answers.degree import degree_of

        here = await self._graphs.opened(graph)
        return await self._about(
            here,
            [entity],
            None,
            lambda ids, room: degree_of(
                here.adapter, entity=ids[0], relation=relation, direction=direction, max_tokens=room
            ),
            relation=relation,
            direction=direction,
        )

    async def schema(
        self, about: Text | None = None, max_tokens: Tokens = None, graph: GraphName = None
    ) -> Annotated[CallToolResult, SchemaResult]:
        """Find what the graph knows: which classes, relations and values, and how many things have them.

        `about` a class shows all of it; about another word, the relations and features like it.
        """
        await load("kg_server.schema_view")
        from kg_server.schema_view import schema_view

        here = await self._graphs.opened(graph)
        notes = await here.notes.read()
        within_s = here.settings.timeout_s * _SHARE_OF_OTHERS
        others = await lines_of(self._graphs, within_s) if graph is None and about is None else ()
        budget = (max_tokens or self._settings.max_tokens) - sum(map(token_count, others))
        answer = await schema_view(
            here.adapter, here.meaning, here.schemas, about=about, max_tokens=budget, notes=notes
        )
        return replace(answer, lines=(*others, *answer.lines)).to_mcp()

    async def sparql(
        self,
        query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY)],
        context: Context,
        max_rows: Annotated[int, Field(ge=1, le=100_000)] = 100,
        timeout_s: Annotated[float, Field(gt=0, le=3_600)] = 10,
        graph: GraphName = None,
    ) -> Annotated[CallToolResult, SparqlResult]:
        """Answer a question by a read-only SPARQL 1.1 query.

        The graph's prefixes are declared. A name may stand for any id: ?x a @"city"; @"country" @"Japan".
        Names take in subclasses, subproperties and inverses.
        """
        here = await self._graphs.opened(graph)
        if not isinstance(here.adapter, SupportsSparql):
            raise InvalidRequest("This graph does not answer SPARQL.")
        # What runs a query is loaded before its time begins.
        await load("kg_server.sparql.answer")
        from kg_server.sparql.answer import sparql_query

        most_s = min(timeout_s, here.settings.sparql.timeout_s)
        deadline = anyio.current_time() + most_s
        try:
            with anyio.fail_after(most_s + GRACE_S):
                async with reporting(context, "running the query", most_s):
                    answer = await sparql_query(
                        here.adapter,
                        here.adapter,
                        here.meaning,
                        query=query,
                        max_rows=min(max_rows, here.settings.sparql.max_rows),
                        deadline=deadline,
                        max_tokens=self._settings.max_tokens,
                    )
        except TimeoutError as error:
            raise BackendTimeout(
                f"The query was stopped after {most_s:g} s. Make it more selective, or ask with a larger timeout_s."
            ) from error
        return answer.to_mcp()

    async def _about(
        self,
        here: OpenedGraph,
        texts: Sequence[str],
        max_tokens: int | None,
        ask: Callable[[Sequence[str], int], Awaitable[Answer]],
        *,
        relation: str | None = None,
        direction: Direction = "out",
        values: bool = False,
        of_value: Callable[["ValueText", int], Awaitable[Answer]] | None = None,
    ) -> CallToolResult:
        """Return what `ask` answers about the ids of entities within a budget, with how their names were read.

        With `values` a text that is a value stands for those who have it; `of_value` answers about it itself.
        """
        await load("kg_server.naming.entities")
        from kg_server.naming.entities import read_entities

        values = values or of_value is not None
        read = await read_entities(here.adapter, *texts, relation=relation, direction=direction, values=values)
        room = read.room(max_tokens or self._settings.max_tokens)
        if of_value is not None and read.values:
            return (await of_value(read.values[0], room)).to_mcp()
        answer = await ask(read.ids, room)
        return read.told(answer).to_mcp()
