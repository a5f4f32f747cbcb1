"""How tests run ODA: a server in this process over a small graph, and a scripted model."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from kg_adapters.local.adapter import LocalAdapter
from kg_adapters.local.store import open_store
from kg_agents.llm import PromptTooLong
from kg_agents.llm.texts import tokens_in
from kg_agents.tools.client import OnCall, Toolbox, connect_tools, ignore_call
from kg_agents.tools.knowledge import KnowledgeGraph
from kg_server.app import build_server
from kg_server.settings import Settings
from small_graphs import shared_store

NEIGHBORS = "Thought: I look around.\nAction: GetNeighbor\nEntity_id: {}"
PATH = "Thought: I look between.\nAction: GetPath\nEntity_id: {}, {}"
ENOUGH = "Thought: The memory holds it.\nAction: Answer"


def selecting(*triples: str) -> str:
    """Return a reflection that selects triples."""
    return "\n".join(("Thought: These help.", "Triples:", *triples))


def taking(most: int, reply: Callable[[str], str]) -> Callable[[str], str]:
    """Return a model that takes prompts of so many tokens."""

    def replying(prompt: str) -> str:
        if tokens_in(prompt) > most:
            raise PromptTooLong("Too long.")
        return reply(prompt)

    return replying


@asynccontextmanager
async def story(
    folder: Path, turtle: str, *, embedder: str = "lexical", on_call: OnCall = ignore_call
) -> AsyncGenerator[KnowledgeGraph]:
    """Serve a small graph to an agent in this process."""
    async with story_tools(folder, turtle, embedder) as tools:
        yield KnowledgeGraph(tools, on_call)


@asynccontextmanager
async def story_tools(folder: Path, turtle: str, embedder: str = "lexical", **more: object) -> AsyncGenerator[Toolbox]:
    """Serve a small graph in this process, and give what calls its tools."""
    async with serving_store(story_store(turtle), folder, embedder, **more) as tools:
        yield tools


def story_store(turtle: str) -> Path:
    """Return the store of a small graph."""
    return shared_store(turtle, "story", sparql=False).folder


@asynccontextmanager
async def serving_store(
    store: Path, folder: Path, embedder: str = "lexical", **more: object
) -> AsyncGenerator[Toolbox]:
    """Serve a store in this process, and give what calls its tools."""
    settings = Settings.model_validate(
        {"cache_folder": folder, "data_folder": folder, "embedding": {"embedder": embedder}, **more}
    )
    async with (
        aclosing(LocalAdapter(open_store(store))) as graph,
        connect_tools(build_server(graph, settings)) as connected,
    ):
        yield connected
