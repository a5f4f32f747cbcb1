"""A local graph that takes a while to open, because its files have to be imported first."""
# ruff: noqa: D102 - what an adapter's methods do is documented on the protocol

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio

from kg_adapters.errors import BackendUnavailable, KGError
from kg_adapters.labels import Vocabulary
from kg_adapters.local.forwarding import ForwardingAdapter, LocalGraph
from kg_adapters.open_options import Progress
from kg_adapters.prefixes import Prefixes
from kg_adapters.protocol import SupportsSnapshots
from kg_boundary.shown import in_quotes

T = TypeVar("T")


class PendingAdapter(ForwardingAdapter):
    """Stands for a local graph from the start, and passes every question on to it once it is open.

    Until then `prefixes` and `vocabulary` are empty or the default, so nothing may keep them, and every question is
    refused.

    Args:
        path: The file or folder that is being opened.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.resolve().name.partition(".")[0]
        self._settled = anyio.Event()
        self._graph: LocalGraph | None = None
        self._error: KGError | None = None
        self._progress: Progress | None = None

    def take(self, graph: LocalGraph) -> None:
        """Pass everything on to this graph from now on."""
        self._graph = graph
        self._settled.set()

    def fail(self, error: KGError) -> None:
        """Answer everything with this error from now on."""
        self._error = error
        self._settled.set()

    def note(self, progress: Progress) -> None:
        """Remember how far the import has come; may be called in another thread."""
        self._progress = progress

    async def settled(self) -> None:
        """Wait until the graph is open, or cannot be opened."""
        await self._settled.wait()

    def opened(self) -> LocalGraph:
        """Return the graph.

        Raises:
            KGError: It cannot be opened.
            BackendUnavailable: It is not open yet.
        """
        if self._graph is not None:
            return self._graph
        if self._error is not None:
            raise self._error
        raise BackendUnavailable(
            f"The graph {in_quotes(self._name)} is still being imported{_extent(self._progress)}. "
            "Call again in a while."
        )

    @property
    def name(self) -> str:
        return self._name if self._graph is None else self._graph.name

    @property
    def prefixes(self) -> Prefixes:
        return Prefixes() if self._graph is None else self._graph.prefixes

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary() if self._graph is None else self._graph.vocabulary

    async def ask(self, question: Callable[[LocalGraph], Awaitable[T]]) -> T:
        return await question(self.opened())

    @asynccontextmanager
    async def snapshot(self, *, newest: bool = False) -> AsyncGenerator[None]:
        if isinstance(self._graph, SupportsSnapshots):
            async with self._graph.snapshot(newest=newest):
                yield
        else:
            yield

    async def aclose(self) -> None:
        if self._graph is not None:
            await self._graph.aclose()


def _extent(progress: Progress | None) -> str:
    if progress is None or progress.stage != "reading" or progress.total == 0:
        return ""
    return f", {progress.done / progress.total:.0%} of its files read"
