"""Open the graph, and the language model, that the settings name."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from kg_adapters.errors import InvalidRequest, InvalidSource, KGError
from kg_adapters.labels import ChosenRelations, chosen_prefixes
from kg_adapters.links import naming
from kg_adapters.open_options import OnProgress, ReadingLimits
from kg_adapters.protocol import KGAdapter
from kg_adapters.registry import SAMPLES, URLS, WIKIDATA, OpenOptions, hidden_path, open_graph, path_of, require_graph
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_plain_words
from kg_server.commands.output import StoppableProgress, plain_progress, sentence, shown_progress, uncollected, warn
from kg_server.settings import LlmSettings, Settings

if TYPE_CHECKING:
    from mcp import Client

    from kg_adapters.http.options import EndpointOptions
    from kg_adapters.wikidata.options import WikidataOptions
    from kg_agents.llm.openai_llm import OpenAiLlm
    from kg_server.graphs import GraphSet, OpenedGraph


# What is left of a call's time lets the endpoint's own reason reach the caller.
_SHARE: Final = 0.9


def endpoint_of(settings: Settings) -> "EndpointOptions | None":
    """Return how the graph's endpoint is reached, or None where the graph is none.

    Raises:
        InvalidRequest: The graph's URL is none that can be asked.
    """
    if not settings.graph.startswith(URLS):
        return None
    from pydantic import ValidationError

    from kg_adapters.http.options import EndpointOptions

    of_call = {"url": settings.graph, "timeout_s": settings.timeout_s * _SHARE, "redactor": settings.redactor}
    try:
        return EndpointOptions.model_validate({**dict(settings.endpoint), **of_call})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise InvalidRequest(f"The setting graph: {in_plain_words(first['msg'])}.") from error


def wikidata_of(settings: Settings) -> "WikidataOptions | None":
    """Return how Wikidata is reached, or None where the graph is another one."""
    if settings.graph.partition(":")[0] != WIKIDATA:
        return None
    from kg_adapters.wikidata.options import WikidataOptions

    return WikidataOptions(
        **dict(settings.wikidata),
        languages=settings.languages,
        timeout_s=settings.timeout_s * _SHARE,
        max_mb=settings.endpoint.max_mb,
        max_retries=settings.endpoint.max_retries,
        redactor=settings.redactor,
    )


PATIENCE_S: Final = 2.0
Showing: TypeAlias = Callable[[], AbstractContextManager[OnProgress]]


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[KGAdapter]:
    """Open the graph that the settings name, showing progress if it has to be imported first, and close it at the end.

    Raises:
        KGError: There is no such graph, or it cannot be opened.
    """
    with shown_progress() as progress:
        graph = await _open(settings, progress)
    try:
        yield graph
    finally:
        await graph.aclose()


@asynccontextmanager
async def connected(settings: Settings, *, imports: bool = True) -> "AsyncGenerator[tuple[GraphSet, Client]]":
    """Give the graphs that the settings name, and a client of a server of them in this process.

    Args:
        settings: They name the graphs.
        imports: Whether files that were never imported are imported; otherwise they answer no question about the graph.

    Raises:
        KGError: There is no such graph, or the only one cannot be opened.
    """
    with uncollected() as begin:
        from mcp import Client

        from kg_server.app import build_server

        begin()
    async with served(settings, imports=imports) as graphs, Client(build_server(graphs, settings)) as client:
        yield graphs, client


@asynccontextmanager
async def served(settings: Settings, *, imports: bool = True) -> "AsyncGenerator[GraphSet]":
    """Give the graphs that the settings name: the only one open, several to be opened when they are first asked.

    Args:
        settings: They name the graphs.
        imports: Whether files that were never imported are imported; otherwise they answer no question about the graph.

    Raises:
        KGError: There is no such graph, or the only one cannot be opened.
    """
    async with _served(settings, shown_progress, imports=imports) as graphs:
        if not graphs.several:
            try:
                await graphs.first.opened(math.inf)
            except InvalidSource:
                if imports or path_of(settings.graph) is None:
                    raise
        yield graphs


@asynccontextmanager
async def opening(
    settings: Settings, patience_s: float = PATIENCE_S, showing: Showing = plain_progress
) -> "AsyncGenerator[GraphSet]":
    """Open the graphs that the settings name side by side, waiting a moment for those on this machine.

    The only graph is waited for as long as it takes, unless files are imported. Of several none has to open.

    Args:
        settings: They name the graphs.
        patience_s: How many seconds the moment has.
        showing: Shows the progress of an import.

    Raises:
        KGError: There is no such graph, or the only one cannot be opened.
    """
    async with _served(settings, showing, serves=True) as graphs:
        tasks = {each: each.start() for each in graphs.all}
        awaited = [task for each, task in tasks.items() if not (graphs.several and each.remote)]
        brief = graphs.several or path_of(settings.graph) is not None
        if awaited:
            await asyncio.wait(awaited, timeout=patience_s if brief else None)
        for graph, task in tasks.items():
            if task.done() and not graphs.several:
                task.result()
            name = graph.name if graphs.several else None
            task.add_done_callback(partial(_warn_of_failure, settings.redactor, name))
        yield graphs


def _warn_of_failure(redactor: Redactor, name: str | None, task: "asyncio.Task[OpenedGraph]") -> None:
    error = None if task.cancelled() else task.exception()
    if isinstance(error, KGError):
        warn(redactor.message(sentence(error if name is None else naming(name, error))))


@asynccontextmanager
async def _served(
    settings: Settings, showing: Showing, *, serves: bool = False, imports: bool = True
) -> "AsyncGenerator[GraphSet]":
    """Give the graphs that the settings name, each to be opened when it is first asked, and close them at the end.

    Args:
        settings: They name the graphs.
        showing: Shows the progress of an import; of several graphs, one line for each stage does.
        serves: Whether they stay open for long, so that what SPARQL needs is prepared before anybody asks, and what
            they hold is learned meanwhile.
        imports: Whether files that were never imported are imported.

    Raises:
        InvalidRequest: There is no such graph, or its notes cannot be read.
    """
    from kg_server.graphs import GraphSet, ServedGraph
    from kg_server.naming.meaning import SharedEmbedder
    from kg_server.notes import NotesFile

    embedder = SharedEmbedder(settings)

    def graph_of(name: str | None, own: Settings) -> ServedGraph:

        async def opener(note: OnProgress) -> KGAdapter:
            with (showing if name is None else plain_progress)() as progress:
                return await _open(own, progress, note, imports=imports, serves=serves, name=name, graphs=len(named))

        try:
            notes = NotesFile.of(own.graph, own.notes)
        except InvalidRequest as error:
            if name is None:
                raise
            warn(settings.redactor.message(sentence(naming(name, error))))
            notes = NotesFile(own.notes)
        return ServedGraph(own, embedder, opener, name=name, notes=notes, learns=serves)

    named: dict[str | None, Settings] = {name: settings.of(name) for name in settings.graphs} or {None: settings}
    _require_any([each.graph for each in named.values()])
    graphs = GraphSet([graph_of(name, own) for name, own in named.items()], settings, embedder)
    try:
        yield graphs
    finally:
        await graphs.aclose()


def _require_any(graphs: Sequence[str]) -> None:
    """Fail where none of some graphs is there: of several, one that is not there holds up no other."""
    first, *others = graphs
    try:
        require_graph(first)
    except InvalidRequest:
        if not others:
            raise
        _require_any(others)


async def _open(
    settings: Settings,
    *listeners: OnProgress,
    imports: bool = True,
    serves: bool = False,
    name: str | None = None,
    graphs: int = 1,
) -> KGAdapter:
    from kg_adapters.local.sparql.pool import SparqlLimits

    if (hidden := hidden_path(settings.graph)) is not None:
        warn(f"{hidden} is the graph of that name. What is called so in this folder is ./{hidden}.")
    progress = StoppableProgress(*listeners)
    options = OpenOptions(
        cache_folder=settings.cache_folder,
        name=name,
        languages=settings.languages,
        progress=progress,
        imports=imports,
        endpoint=endpoint_of(settings),
        wikidata=wikidata_of(settings),
        answers_kept_s=settings.endpoint.answers_kept_s,
        sparql=SparqlLimits(workers=settings.sparql.workers, graphs=graphs),
        prepares_sparql=serves,
        reading=ReadingLimits(**dict(settings.imports)),
        chosen=ChosenRelations(**dict(settings.relations)),
        prefixes=chosen_prefixes(settings.prefixes),
    )
    try:
        return await open_graph(settings.graph, options)
    finally:
        # The thread that imports outlives a cancelled command, and would keep the process alive to its end.
        progress.stop()


@asynccontextmanager
async def models_of(settings: Settings, redactor: Redactor) -> "AsyncGenerator[Sequence[OpenAiLlm | None]]":
    """Give clients of the model that answers, the one that judges and the one that reflects; None where none is set."""
    names = (settings.llm.model, settings.llm.judge, settings.llm.reflector)
    models = [None if name is None else _model(name, settings.llm, redactor) for name in names]
    try:
        yield models
    finally:
        for model in filter(None, models):
            await model.aclose()


def _model(name: str, llm: LlmSettings, redactor: Redactor) -> "OpenAiLlm":
    from kg_agents.llm.openai_llm import OpenAiLlm, Prices

    return OpenAiLlm(
        name,
        base_url=llm.base_url,
        api_key=llm.api_key,
        timeout_s=llm.timeout_s,
        context_tokens=llm.context_tokens,
        prices=Prices(llm.prompt_price, llm.reply_price),
        redactor=redactor,
    )


def store_of(graph: str, settings: Settings) -> Path | None:
    """Return the folder of the store that a graph's name stands for; None where it stands for something else."""
    from kg_adapters.local.cache import open_sample
    from kg_adapters.local.store import is_store

    if graph in SAMPLES:
        return open_sample(settings.cache_folder, graph).folder
    path = path_of(graph)
    return path if path is not None and is_store(path) else None
