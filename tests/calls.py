"""How server tests call tools: over a real MCP session, in memory."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from mcp import Client
from mcp.types import CallToolResult, TextContent
from pydantic import TypeAdapter

from kg_adapters.protocol import KGAdapter
from kg_server.app import build_server
from kg_server.compose.tool import ComposeTool
from kg_server.graphs import GraphSet, OpenedGraph, Opener, ServedGraph
from kg_server.mcp_server import SextantServer
from kg_server.naming.meaning import Meaning, SharedEmbedder
from kg_server.settings import Settings
from patience import PATIENCE_S

_ID: Final = re.compile(r" [(\[{<](?:[QP]\d+|\w+:[\w.-]+)[)\]}>]")


def unhurried(**more: object) -> Settings:
    """Return settings under which no call is late, on a machine that may be busy with other tests."""
    return Settings.model_validate({"timeout_s": PATIENCE_S, "sparql": {"timeout_s": PATIENCE_S}, **more})


UNHURRIED: Final = unhurried()


@dataclass(frozen=True)
class Reply:
    """A tool's answer, as text and as data."""

    text: str
    data: dict[str, object]
    is_error: bool

    @property
    def plain(self) -> "Reply":
        """The same answer without the ids behind labels."""
        return replace(self, text=plain(self.text))

    @property
    def has_content(self) -> bool:
        """Whether it answers with anything: it is neither an error, nor empty, nor a number that is none."""
        told = self.data.get("status"), self.data.get("knowledge", "stated")
        # An observation states nothing, and shows facts.
        shows = told[1] == "stated" or (told[1] == "unknown" and bool(self.lines))
        return not self.is_error and told[0] in {"ok", "truncated"} and shows

    @property
    def summary(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()[1:]


def plain(text: str) -> str:
    """Return a text of an answer without the ids behind labels, in whatever marks they stand."""
    return _ID.sub("", text)


async def call(
    graph: KGAdapter | GraphSet, tool: str, settings: Settings | None = None, /, **arguments: object
) -> Reply:
    # Its own deadline starts with the process that answers.
    unhurried_arguments = {"timeout_s": PATIENCE_S, **arguments} if tool == "Sparql" else arguments
    async with Client(build_server(graph, settings or UNHURRIED)) as client:
        return reply_of(await client.call_tool(tool, unhurried_arguments))


async def refusal(graph: KGAdapter | GraphSet, tool: str, /, **arguments: object) -> str:
    """Return why a call is refused, without the ids behind labels."""
    reply = await call(graph, tool, **arguments)
    assert reply.is_error, reply.text
    return reply.plain.text


def counts(value: object) -> dict[str, int]:
    return TypeAdapter(dict[str, int]).validate_python(value)


def rows(value: object) -> list[list[str]]:
    return TypeAdapter(list[list[str]]).validate_python(value)


def texts(value: object) -> dict[str, str]:
    return TypeAdapter(dict[str, str]).validate_python(value)


def paths(value: object) -> list[list[list[str]]]:
    return TypeAdapter(list[list[list[str]]]).validate_python(value)


def reply_of(result: CallToolResult) -> Reply:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return Reply(content.text, result.structured_content or {}, result.is_error)


def late_graph(settings: Settings, opener: Opener) -> GraphSet:
    """Return the set of a graph that is opened when it is first asked."""
    embedder = SharedEmbedder(settings)
    return GraphSet([ServedGraph(settings, embedder, opener)], settings, embedder)


def compose_server(graph: KGAdapter, settings: Settings | None = None) -> SextantServer:
    chosen = settings or UNHURRIED
    server = SextantServer("test", version="1", timeout_s=chosen.timeout_s)
    ComposeTool(GraphSet.of(graph, chosen), chosen).provide(server)
    return server


async def composed(graph: KGAdapter, expression: str, settings: Settings | None = None) -> Reply:
    async with Client(compose_server(graph, settings)) as client:
        return reply_of(await client.call_tool("Compose", {"expression": expression}))


async def refused(graph: KGAdapter, expression: str) -> str:
    reply = await composed(graph, expression)
    assert reply.is_error, reply.text
    return reply.plain.text


def several_graphs(graphs: Mapping[str, KGAdapter | Opener], settings: Settings | None = None) -> GraphSet:
    """Return the set of some graphs by name: open ones, and those that are opened when they are first asked."""
    chosen = settings or UNHURRIED
    embedder = SharedEmbedder(chosen)

    def served(name: str, graph: KGAdapter | Opener) -> ServedGraph:
        if callable(graph):
            return ServedGraph(chosen, embedder, graph, name=name)
        return ServedGraph.of(OpenedGraph(name, graph, chosen, Meaning(graph, embedder)), embedder)

    return GraphSet([served(name, graph) for name, graph in graphs.items()], chosen, embedder)
