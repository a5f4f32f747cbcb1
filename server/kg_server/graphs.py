"""The graphs that a server serves: each is opened when it is first needed, and its trouble delays no other's calls."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import anyio
from mcp.server.mcpserver.exceptions import MCPServerError
from pydantic import TypeAdapter, ValidationError

from kg_adapters.answer_cache import AnswerCache
from kg_adapters.errors import (
    BackendTimeout,
    BackendUnavailable,
    GraphReplaced,
    InvalidRequest,
    KGError,
    ModelUnavailable,
    causes,
)
from kg_adapters.links import LinkRules, naming
from kg_adapters.open_options import OnProgress, Progress
from kg_adapters.profile import GraphProfile
from kg_adapters.protocol import KGAdapter, SupportsLearning, SupportsSnapshots, SupportsSparql
from kg_adapters.registry import path_of
from kg_boundary.shown import FileNames, in_quotes, listed
from kg_server.concurrency import all_of, together
from kg_server.naming.meaning import Meaning, SharedEmbedder
from kg_server.naming.refusals import unknown_name
from kg_server.notes import NotesFile
from kg_server.settings import Settings

if TYPE_CHECKING:
    from kg_server.schema_view import SchemaCache

T = TypeVar("T")
GraphName: TypeAlias = str | None
"""A graph by its name, the first when None; tools have no such argument where one graph is served."""
GraphNames: TypeAlias = str | list[str] | None
"""One graph as `GraphName` has it, or several that are asked as one."""
Opener: TypeAlias = Callable[[OnProgress], Awaitable[KGAdapter]]

MOST_SCHEMAS: Final = 2
"""For how many states of a graph, as before and after a new import, answers of Schema are cached."""
SCHEMA_KEPT_S: Final = 600.0
"""How long they are cached: a remote graph may change its names."""
SHARE_OF_ALL: Final = 0.9
"""What part of the time of a call over several graphs each of them has; the rest is for the answer."""
_FIRST_PAUSE_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 300.0
_TRIES: Final = 3
_NAMES: Final = TypeAdapter(list[str])

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedGraph:
    """A graph that is open, with all that a call needs of it.

    Args:
        name: What it is called here: its given name where several are served.
        adapter: What answers.
        settings: Its own settings.
        meaning: What finds its entities by what they are, and ranks its facts.
        notes: What its owner wrote of it.
        profile: What is known of it without a request, for the instructions.
        schemas: Where its answers of Schema are cached.
    """

    name: str
    adapter: KGAdapter
    settings: Settings
    meaning: Meaning
    notes: NotesFile = field(default_factory=NotesFile)
    profile: GraphProfile | None = None
    schemas: "SchemaCache" = field(default_factory=lambda: AnswerCache(MOST_SCHEMAS, SCHEMA_KEPT_S))

    @property
    def links(self) -> LinkRules:
        """What the graph states about the same thing in other graphs."""
        return LinkRules.of(self.settings.links, self.adapter.prefixes)


class ServedGraph:
    """A graph that is opened by the first call that names it, or before, and tried again after a failure.

    Args:
        settings: Its own settings.
        embedder: What compares meanings, the same for all graphs.
        opener: Opens it, and reports how far that is.
        name: Its given name; None for the only graph, which is called as its adapter says.
        notes: What its owner wrote of it.
        learns: Whether what it holds is learned while it is open, for the instructions and for Schema.
        clock: Returns the time, in seconds.
    """

    def __init__(
        self,
        settings: Settings,
        embedder: SharedEmbedder,
        opener: Opener,
        *,
        name: str | None = None,
        notes: NotesFile | None = None,
        learns: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.notes = NotesFile() if notes is None else notes
        self._embedder = embedder
        self._opener = opener
        self._given_name = name
        self._learns = learns
        self._clock = clock
        self._known: OpenedGraph | None = None
        self._error: KGError | None = None
        self._pause_s = _FIRST_PAUSE_S
        self._again_at = 0.0
        self._progress: Progress | None = None
        self._opening: asyncio.Task[OpenedGraph] | None = None
        self._learning: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, opened: OpenedGraph, embedder: SharedEmbedder) -> "ServedGraph":
        """Return a graph that is open already; who opened it closes it."""

        async def opener(_: OnProgress) -> KGAdapter:
            return opened.adapter

        served = cls(opened.settings, embedder, opener, name=opened.name, notes=opened.notes)
        served._known = opened
        return served

    def under(self, settings: Settings, embedder: SharedEmbedder) -> "ServedGraph":
        """Return the same graph with other settings; this one opens and closes it."""

        async def opener(_: OnProgress) -> KGAdapter:
            return (await self.opened()).adapter

        return ServedGraph(settings, embedder, opener, name=self._given_name, notes=self.notes)

    @property
    def name(self) -> str:
        """What it is called."""
        if self._given_name is not None:
            return self._given_name
        if self._known is not None:
            return self._known.adapter.name
        path = path_of(self.settings.graph)
        return self.settings.graph if path is None else PurePath(path.resolve()).name.partition(".")[0]

    @property
    def known(self) -> OpenedGraph | None:
        """The graph, where it is open now."""
        return self._known

    @property
    def error(self) -> KGError | None:
        """Why it could not be opened or reached the last time; None where it answered, or was never asked."""
        return self._error

    @property
    def untried(self) -> bool:
        """Whether nobody has needed it yet."""
        return self._known is None and self._opening is None

    @property
    def remote(self) -> bool:
        """Whether its answers come over a network, as far as that can be known before it is open."""
        if self._known is not None:
            return self._known.adapter.remote
        return not self.settings.graph.startswith("sample") and path_of(self.settings.graph) is None

    @property
    def answers_sparql(self) -> bool:
        """Whether it answers SPARQL, or may do so once it is open."""
        return self._known is None or isinstance(self._known.adapter, SupportsSparql)

    async def opened(self, within_s: float | None = None) -> OpenedGraph:
        """Return the graph once it is open.

        Args:
            within_s: How many seconds to wait for it; as long as a call of it may take when None.

        Raises:
            KGError: It cannot be opened, or could not a moment ago.
            BackendUnavailable: It is not open yet.
        """
        if self._known is not None:
            return self._known
        if self._error is not None and self._clock() < self._again_at:
            raise self._error
        with anyio.move_on_after(self.settings.timeout_s if within_s is None else within_s):
            # It goes on when this call is given up.
            return await asyncio.shield(self.start())
        raise BackendUnavailable(self._not_yet())

    async def require(self, *, within_s: float) -> None:
        """Return if it is open within so many seconds.

        Raises:
            KGError: It is not.
        """
        await self.opened(within_s)

    def start(self) -> "asyncio.Task[OpenedGraph]":
        """Begin to open the graph, unless that has begun."""
        if self._opening is None or (self._opening.done() and self._known is None):
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(_retrieved)
        return self._opening

    async def ask(self, question: Callable[[OpenedGraph], Awaitable[T]]) -> T:
        """Return what a question gives when one state of the graph answers all of it."""
        here = await self.opened()
        return await self.noting(lambda: consistently([here.adapter], partial(question, here)))

    async def noting(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `ask`, which asks this graph alone once it is open, and note whether it was reached."""
        try:
            given = await ask()
        except (KGError, MCPServerError) as error:
            gone = (each for each in causes(error) if isinstance(each, BackendUnavailable))
            self._error = next((each for each in gone if not isinstance(each, ModelUnavailable)), None)
            raise
        self._error = None
        return given

    async def aclose(self) -> None:
        """Stop what is under way, and close the graph."""
        for task in (self._opening, self._learning):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, KGError):
                    await task
        if self._known is not None:
            await self._known.adapter.aclose()

    async def _open(self) -> OpenedGraph:
        try:
            adapter = await self._opener(self._note)
        except KGError as error:
            self._error = error
            self._again_at = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            raise
        meaning = Meaning(adapter, self._embedder)
        opened = OpenedGraph(self._given_name or adapter.name, adapter, self.settings, meaning, self.notes)
        if self._learns:
            # Known at once where it lies at hand; elsewhere it takes requests.
            opened = opened if adapter.remote else replace(opened, profile=await adapter.profile())
            if isinstance(adapter, SupportsLearning):
                self._learning = asyncio.create_task(adapter.learn_profile(when_asked=True))
        self._known, self._error, self._pause_s = opened, None, _FIRST_PAUSE_S
        return opened

    def _note(self, progress: Progress) -> None:
        self._progress = progress

    def _not_yet(self) -> str:
        if path_of(self.settings.graph) is None:
            return f"The graph {in_quotes(self.name)} is not open yet. Call again in a while."
        far = self._progress
        known = far is not None and far.stage == "reading" and far.total
        extent = f", {far.done / far.total:.0%} of its files read" if far is not None and known else ""
        return f"The graph {in_quotes(self.name)} is still being imported{extent}. Call again in a while."


def _retrieved(task: "asyncio.Task[OpenedGraph]") -> None:
    """Log a failure that no graph is known for; asyncio would else report it when nobody waits."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, KGError):
        logger.error("A graph could not be opened", exc_info=error)


class GraphSet:
    """All graphs of a server, in order; the first is asked where a call names none.

    Args:
        graphs: The graphs, each with a given name where there are several.
        settings: What they share.
        embedder: What compares meanings for all of them.
    """

    def __init__(self, graphs: Sequence[ServedGraph], settings: Settings, embedder: SharedEmbedder) -> None:
        self.settings = settings
        self.embedder = embedder
        self.files = FileNames((settings.data_folder, settings.cache_folder))
        self._graphs = tuple(graphs)

    @classmethod
    def of(cls, adapter: KGAdapter, settings: Settings, profile: GraphProfile | None = None) -> "GraphSet":
        """Return the set of one graph that is open already; who opened it closes it.

        Raises:
            InvalidRequest: The notes that the settings name cannot be read.
        """
        notes = NotesFile.of(settings.graph, settings.notes)
        embedder = SharedEmbedder(settings)
        opened = OpenedGraph(adapter.name, adapter, settings, Meaning(adapter, embedder), notes, profile)
        return cls([ServedGraph.of(opened, embedder)], settings, embedder)

    @property
    def first(self) -> ServedGraph:
        """The graph that is asked where a call names none."""
        return self._graphs[0]

    @property
    def all(self) -> Sequence[ServedGraph]:
        """All graphs, in order."""
        return self._graphs

    @property
    def names(self) -> Sequence[str]:
        """Their names, in order."""
        return [each.name for each in self._graphs]

    @property
    def several(self) -> bool:
        """Whether a call has to say which of them it asks."""
        return len(self._graphs) > 1

    @property
    def remote(self) -> bool:
        """Whether answers of any of them come over a network."""
        return any(each.remote for each in self._graphs)

    def chosen(self, graph: str | Sequence[str] | None) -> Sequence[ServedGraph]:
        """Return the graphs that an argument names, each once, in small letters or capitals; the first without it.

        Raises:
            InvalidRequest: There is no graph of that name, or it holds no name.
        """
        if graph is None:
            return (self.first,)
        names = {each.lower(): each for each in ([graph] if isinstance(graph, str) else graph)}
        known = {each.name.lower(): each for each in self._graphs}
        if not names:
            raise InvalidRequest(f"graph holds no name. Leave it out, or give it one of {', '.join(self.names)}.")
        for folded, name in names.items():
            if folded not in known:
                raise InvalidRequest(unknown_name("This server", "graph", name, self.names))
        return [known[each] for each in names]

    def asked_in(self, named: Sequence[ServedGraph]) -> str:
        """Return the sentence on which graphs, of several, a call asked: those that it named, or the first alone."""
        if not self.several:
            return ""
        if named:
            return f"Asked in {', '.join(each.name for each in named)}."
        first, *others = self.names
        were = "was" if len(others) == 1 else "were"
        return f"Asked in {first}; {listed(others, ', ', 5)} {were} not asked: graph={others[0]}."

    def under(self, settings: Settings, graph: str | None = None) -> "GraphSet":
        """Return the same graphs, or the one of a name, with other settings; this set opens and closes them.

        Raises:
            InvalidRequest: There is no graph of that name.
        """
        embedder, chosen = SharedEmbedder(settings), self._graphs if graph is None else self.chosen(graph)
        own = [settings.of(each.name) if settings.graphs else settings for each in chosen]
        graphs = [each.under(mine, embedder) for each, mine in zip(chosen, own, strict=True)]
        return GraphSet(graphs, settings, embedder)

    def notes_of(self, graph: KGAdapter) -> NotesFile | None:
        """Return the notes of a graph; None where it is none of these."""
        return next((each.known.notes for each in self._graphs if each.known and each.known.adapter is graph), None)

    async def opened(self, graph: str | None = None) -> OpenedGraph:
        """Return a graph by its name, once it is open; the first without a name.

        Raises:
            InvalidRequest: There is no graph of that name.
            KGError: It cannot be opened.
        """
        (served,) = self.chosen(graph)
        return await served.opened()

    async def ask_each(
        self, question: Callable[[OpenedGraph], Awaitable[T]], graphs: Sequence[ServedGraph] | None = None
    ) -> Mapping[str, T | KGError]:
        """Ask graphs side by side, and return by their names what each gives, or why it gives nothing.

        None delays the others beyond its share of the time that a call of it may take. Why one gives nothing is to
        stand in an answer: it is without secrets and folders.

        Args:
            question: What each is asked.
            graphs: Those that are asked; all when None.
        """

        async def within(served: ServedGraph) -> T:
            most_s = served.settings.timeout_s * SHARE_OF_ALL
            with anyio.move_on_after(most_s):
                return await served.ask(question)
            raise BackendTimeout(f"{served.name} did not answer within {most_s:g} s.")

        asked = self._graphs if graphs is None else graphs
        found = await together([partial(within, each) for each in asked], at_once=len(asked))
        for each in found:
            if isinstance(each, KGError):
                each.args = (self.reason(each),)
        return dict(zip([each.name for each in asked], found, strict=True))

    def reason(self, error: KGError) -> str:
        """Return the text of an error as an answer shows it: without secrets and the folders of files."""
        without = self.settings.redactor.text(str(error))
        shown = self.files.shown(without)
        if shown != without:
            logger.warning("Shown to a client without its folders: %s", without)
        return shown

    async def aclose(self) -> None:
        """Close all graphs."""
        with anyio.CancelScope(shield=True):
            for each in self._graphs:
                await each.aclose()


async def consistently(adapters: Sequence[KGAdapter], ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` gives when each of some graphs answers all of it by one of its states.

    Where a graph was replaced before it had said everything, `ask` is called again from the start.
    """
    changing = [each for each in adapters if isinstance(each, SupportsSnapshots)]
    if not changing:
        return await ask()
    for attempt in range(1, _TRIES + 1):
        async with AsyncExitStack() as stack:
            for each in changing:
                await stack.enter_async_context(each.snapshot(newest=attempt > 1))
            try:
                return await ask()
            except (KGError, MCPServerError) as error:
                if attempt == _TRIES or not any(isinstance(each, GraphReplaced) for each in causes(error)):
                    raise
    raise AssertionError("the last attempt returns or raises")


async def _named(graph: ServedGraph) -> OpenedGraph:
    """Return a graph once it is open, or fail with an error that names it."""
    try:
        return await graph.opened()
    except KGError as error:
        raise naming(graph.name, error) from error


async def answered(graphs: Sequence[ServedGraph], most_s: float | None, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` gives, once the graphs that it is about are open, when one state of each answers all of it.

    Raises:
        KGError: A graph cannot be opened, or is not open yet.
        TimeoutError: It took longer than `most_s`.
    """
    began = anyio.current_time()
    several = len(graphs) > 1
    opened = await all_of([partial(_named, each) if several else each.opened for each in graphs], at_once=len(graphs))
    with anyio.fail_after(None if most_s is None else most_s - (anyio.current_time() - began)):
        asking = partial(consistently, [each.adapter for each in opened], ask)
        return await (graphs[0].noting(asking) if len(graphs) == 1 else asking())


def graph_names(given: object) -> Sequence[str] | None:
    """Return the names of graphs that an argument holds, one or several; None of what is neither."""
    if isinstance(given, str):
        # Behind commas, as a list in JSON, or what a shell leaves of that: no name has these marks.
        parts = given.strip().removeprefix("[").removesuffix("]").split(",")
        return [name for each in parts if (name := each.strip(" \t\n\"'"))]
    try:
        return None if given is None else _NAMES.validate_python(given)
    except ValidationError:
        return None  # The tool refuses it with the reason.


def graph_argument(tool: str, graphs: Sequence[ServedGraph], *, takes_list: bool) -> str | list[str]:
    """Return the names of graphs as the argument of a tool.

    Raises:
        InvalidRequest: It takes one, and these are several.
    """
    names = [each.name for each in graphs]
    if len(names) > 1 and not takes_list:
        raise InvalidRequest(
            f"{tool} asks one graph at a time: give graph one of {', '.join(names)}. Retrieve without graph asks all, "
            "and GetPath and Compose take a list."
        )
    return names if len(names) > 1 else names[0]
