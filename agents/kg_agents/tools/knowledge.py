"""A knowledge graph as its MCP tools show it: typed calls over one session."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Literal, TypeAlias

from kg_agents.evidence.values import (
    EntityMatch,
    Found,
    NameMatch,
    ObservedFacts,
    Remembered,
    Shown,
    Triple,
    split_graph,
)
from kg_agents.llm.dialogue import Dialogue
from kg_agents.tools.client import (
    COMPARE,
    ComparingTools,
    OnCall,
    Similarity,
    Target,
    ToolCall,
    ToolCaller,
    ToolRefusal,
    connect_tools,
    ignore_call,
)
from kg_agents.tools.readings import read_shown, shown_by
from kg_agents.tools.results import NUMBER, ToolResult, candidate_of, remembered_of, triple_of
from kg_agents.tools.several import best_of, by_graph, graphs_of, without_graphs

Direction: TypeAlias = Literal["out", "in", "both"]

TEXTS_AT_ONCE: Final = 10
"""How many texts one call asks about."""

APPENDED_AT_ONCE: Final = 15
"""How many triples one call appends to a memory."""

MAX_PAGES: Final = 20
"""How many pages of a memory are read."""


@asynccontextmanager
async def connect(
    target: Target, on_call: OnCall = ignore_call, similarity: Similarity | None = None, token: str | None = None
) -> AsyncGenerator["KnowledgeGraph"]:
    """Open one session to a server, for a whole run.

    Args:
        target: A URL, a command line, or a server in this process.
        on_call: Called with every call.
        similarity: Compares texts, where a part of an agent needs it.
        token: The bearer token of a server that is given by its URL, if it needs one.

    Raises:
        ToolError: The server cannot be reached, or does not answer.
    """
    async with connect_tools(target, token=token) as tools:
        graphs = graphs_of((await tools.offer()).tools)
        yield KnowledgeGraph(ComparingTools(tools, similarity) if similarity else tools, on_call, graphs=graphs)


class KnowledgeGraph:
    """The tools as typed calls.

    Args:
        tools: What calls them.
        on_call: Called with every call.
        talk: The run that the calls are part of, whose time they must not exceed; none by default.
        graphs: The graphs of the server, which ids then carry; none where it serves one.
    """

    def __init__(
        self,
        tools: ToolCaller,
        on_call: OnCall = ignore_call,
        talk: Dialogue | None = None,
        graphs: Sequence[str] = (),
    ) -> None:
        self._tools = tools
        self._on_call = on_call
        self._talk = talk
        self.graphs = tuple(graphs)

    def within(self, talk: Dialogue) -> "KnowledgeGraph":
        """Return the same graph for one run: a call that the run has no time for raises `RunEnded`."""
        return KnowledgeGraph(self._tools, self._on_call, talk, self.graphs)

    async def observe(
        self,
        question: str,
        entities: Sequence[str],
        *,
        hops: int = 3,
        top_n: int = 50,
        top_percent: float = 10,
        max_tokens: int | None = None,
    ) -> ObservedFacts:
        """Look ahead from entities; of each graph from its own."""
        first, *others = by_graph(entities, self.graphs)
        if others:
            observe = partial(self.observe, question, hops=hops, top_n=top_n, top_percent=top_percent)
            seen = await observe(first, max_tokens=max_tokens)
            for each in others:
                seen = seen.joined(await observe(each, max_tokens=max_tokens))
            return seen
        call = await self._call(
            "observe",
            question=question,
            entities=list(entities),
            hops=hops,
            top_n=top_n,
            top_percent=top_percent,
            max_tokens=max_tokens,
        )
        return ObservedFacts(ToolResult.of(call, "groups", self.graphs).seen, shown_by(call, self.graphs))

    async def neighbors(
        self,
        entity: str,
        *,
        relation: str | None = None,
        direction: Direction = "both",
        limit: int = 50,
        max_tokens: int | None = None,
    ) -> Found:
        """List the triples around an entity."""
        call = await self._call(
            "GetNeighbor",
            entity=entity,
            relation=relation,
            direction=direction,
            limit=limit,
            max_tokens=max_tokens,
        )
        found = ToolResult.of(call, "triples", self.graphs)
        edges, values = (tuple(map(triple_of, rows)) for rows in (found.triples, found.values))
        totals = {(each, False): count for each, count in found.outgoing.items()}
        totals |= {(each, True): count for each, count in found.incoming.items()}
        return Found(edges, shown_by(call, self.graphs), values, found.held_facts, totals)

    async def paths(
        self,
        source: str,
        target: str,
        *,
        max_hops: int = 3,
        limit: int = 10,
        question: str | None = None,
        avoid_hubs: bool | None = None,
        max_tokens: int | None = None,
    ) -> Found:
        """Find how two entities are linked; the triples of all paths, each once, the best path first."""
        call = await self._call(
            "GetPath",
            source=source,
            target=target,
            max_hops=max_hops,
            limit=limit,
            question=question,
            avoid_hubs=avoid_hubs,
            max_tokens=max_tokens,
        )
        paths = ToolResult.of(call, "paths", self.graphs).paths
        triples = dict.fromkeys(triple_of(row) for path in paths for row in path)
        return Found(tuple(triples), shown_by(call, self.graphs))

    async def retrieve(self, text: str, *, limit: int = 5) -> tuple[EntityMatch, ...]:
        """Find the entities that a text may name, best first."""
        found = ToolResult.of(await self._call("Retrieve", text=text, limit=limit), "candidates")
        return tuple(candidate_of(row) for row in found.candidates if len(row) > NUMBER)

    async def identify(self, texts: Sequence[str], *, limit: int = 3) -> tuple[NameMatch, ...]:
        """Return what each of some texts names, in as few calls as there can be."""
        groups = by_graph(texts, self.graphs)
        if len(groups) > 1:
            return tuple([each for group in groups for each in await self.identify(group, limit=limit)])
        found: list[NameMatch] = []
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            asked = list(dict.fromkeys(texts[first : first + TEXTS_AT_ONCE]))
            call = await self._call("Retrieve", text=asked, limit=limit)
            answer, shown = ToolResult.of(call, "candidates", self.graphs), shown_by(call, self.graphs)
            for number, text in enumerate(asked, start=1):
                rows = [row for row in answer.candidates if len(row) > NUMBER and row[NUMBER] == str(number)]
                match = answer.matches.get(self._bare(text), answer.match)
                named = best_of(self._bare(text), match, map(candidate_of, rows))
                found.append(NameMatch(text, match, named, shown))
        return tuple(found)

    async def likeness(self, question: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Return the cosine of a question and each of some texts, where something beside the tools compares them.

        Raises:
            ToolError: Nothing does.
        """
        return tuple(ToolResult.of(await self._call(COMPARE, question=question, texts=list(texts)), "cosines").cosines)

    async def compose(
        self,
        expression: str,
        *,
        evidence: Literal["some", "all"] | None = None,
        max_tokens: int | None = None,
        graph: str | Sequence[str] | None = None,
    ) -> Shown:
        """Evaluate a compound expression over a graph, or over several as one; over the first by default."""
        call = await self._call("Compose", expression=expression, evidence=evidence, max_tokens=max_tokens, graph=graph)
        return read_shown(call, self.graphs)

    async def schema(self, *, about: str | None = None, max_tokens: int | None = None) -> Shown:
        """Return the definition of the graph, or what in it is like some words."""
        return shown_by(await self._call("Schema", about=about, max_tokens=max_tokens), self.graphs)

    async def remember(
        self, memory: str | None, triples: Sequence[Triple], *, allow_unverified: bool = False
    ) -> Remembered:
        """Append triples to a memory, or begin one, in as many calls as that takes."""
        rows = [self._row(each) for each in triples]
        call = await self._call(
            "memory-append", triples=rows[:APPENDED_AT_ONCE], memory=memory, allow_unverified=allow_unverified
        )
        kept, left = remembered_of(call, memory or "", self.graphs), triples[APPENDED_AT_ONCE:]
        if not left:
            return kept
        return kept.joined(await self.remember(kept.memory, left, allow_unverified=allow_unverified))

    async def recall(self, memory: str) -> Remembered:
        """Read a memory, page by page."""
        held = remembered_of(await self._call("memory-read", memory=memory), memory, self.graphs)
        for _ in range(MAX_PAGES - 1):
            if not held.cursor:
                break
            held = held.joined(
                remembered_of(await self._call("memory-read", memory=memory, cursor=held.cursor), memory, self.graphs)
            )
        return held

    def _row(self, triple: Triple) -> list[str]:
        """Return a triple as the server reads it: the graph that states it stands behind the relation alone."""
        head, relation, tail = triple
        return [self._bare(head), relation, self._bare(tail)]

    def _bare(self, text: str) -> str:
        """Return an id without its graph."""
        bare, graph = split_graph(text)
        return bare if graph in self.graphs else text

    async def _call(self, tool: str, **arguments: object) -> ToolCall:
        """Call a tool with the arguments that are set.

        Raises:
            ToolRefusal: It refused.
            ToolError: The server does not answer.
            RunEnded: The time of the run is over.
        """
        given = {name: each for name, each in arguments.items() if each is not None}
        calling = partial(self._tools.call, tool, without_graphs(given, self.graphs) if self.graphs else given)
        call = await (calling() if self._talk is None else self._talk.within(calling))
        self._on_call(call)
        if call.failed:
            raise ToolRefusal(call.text)
        return call
