"""A graph for the length of a command."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kg_adapters.protocol import KGAdapter
from kg_adapters.registry import OpenOptions, open_graph
from kg_server.commands.progress import shown_progress
from kg_server.settings import Settings


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[KGAdapter]:
    """Open the graph that the settings name, showing progress if it has to be imported first, and close it at the end.

    Raises:
        KGError: There is no such graph, or it cannot be opened.
    """
    with shown_progress() as progress:
        graph = await open_graph(
            settings.graph,
            OpenOptions(cache_folder=settings.cache_folder, languages=settings.languages, progress=progress),
        )
    try:
        yield graph
    finally:
        await graph.aclose()
