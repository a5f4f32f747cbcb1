"""Open the graph, and the language model, that the settings name."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from kg_adapters.errors import InvalidRequest, InvalidSource, KGError
from kg_adapters.labels import ChosenRelations, chosen_prefixes
from kg_adapters.open_options import OnProgress, ReadingLimits
from kg_adapters.protocol import KGAdapter, SupportsLearning
from kg_adapters.registry import SAMPLES, URLS, WIKIDATA, OpenOptions, hidden_path, open_graph, path_of
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_plain_words
from kg_server.commands.output import PlainProgress, StoppableProgress, sentence, shown_progress, uncollected, warn
from kg_server.settings import LlmSettings, Settings

if TYPE_CHECKING:
    from mcp import Client

    from kg_adapters.http.options import EndpointOptions
    from kg_adapters.local.reloading import PendingAdapter
    from kg_adapters.wikidata.options import WikidataOptions
    from kg_agents.llm.openai_llm import OpenAiLlm


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


@asynccontextmanager
async def opened(settings: Settings, *, serves: bool = False, imports: bool = True) -> AsyncGenerator[KGAdapter]:
    """Open the graph that the settings name, showing progress if it has to be imported first, and close it at the end.

    Args:
        settings: They name the graph.
        serves: Whether it stays open for long, so that what SPARQL needs is prepared before anybody asks.
        imports: Whether files that were never imported are imported; otherwise they answer no question about the graph.

    Raises:
        KGError: There is no such graph, or it cannot be opened.
    """
    from kg_adapters.local.reloading import PendingAdapter

    graph: KGAdapter
    try:
        with shown_progress() as progress:
            graph = await _open(settings, progress, imports=imports, serves=serves)
    except InvalidSource:
        path = path_of(settings.graph)
        if imports or path is None:
            raise
        graph = PendingAdapter(path)
    try:
        yield graph
    finally:
        await graph.aclose()


@asynccontextmanager
async def connected(settings: Settings, *, imports: bool = True) -> "AsyncGenerator[tuple[KGAdapter, Client]]":
    """Open the graph as `opened` does, and a client of a server of it in this process.

    Raises:
        KGError: There is no such graph, or it cannot be opened.
    """
    with uncollected() as begin:
        from mcp import Client

        from kg_server.app import build_server

        begin()
    async with opened(settings, imports=imports) as graph, Client(build_server(graph, settings)) as client:
        yield graph, client


@asynccontextmanager
async def opened_or_pending(settings: Settings, patience_s: float = PATIENCE_S) -> AsyncGenerator[KGAdapter]:
    """Open the graph like `opened`; but of files whose import takes longer than a moment, give a `PendingAdapter`.

    Args:
        settings: They name the graph.
        patience_s: How many seconds the moment has.

    Raises:
        KGError: There is no such graph, or it cannot be opened, perhaps as the only member of a group.
    """
    path = path_of(settings.graph)
    if path is None:
        async with opened(settings, serves=True) as graph:
            yield graph
        return
    from kg_adapters.local.reloading import PendingAdapter

    pending = PendingAdapter(path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_open_behind, pending, settings)
        with anyio.move_on_after(patience_s) as moment:
            await pending.settled()
        if moment.cancelled_caught:
            tasks.start_soon(_say_if_it_fails, pending, settings.redactor)
        try:
            yield pending if moment.cancelled_caught else pending.opened()
        finally:
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await pending.aclose()


@asynccontextmanager
async def learning(graph: KGAdapter) -> AsyncGenerator[None]:
    """Let a graph learn its profile meanwhile, once somebody asks for it, where that takes too long to wait for."""
    if not isinstance(graph, SupportsLearning):
        yield
        return
    task = asyncio.create_task(graph.learn_profile(when_asked=True))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _open_behind(pending: "PendingAdapter", settings: Settings) -> None:
    from kg_adapters.local.reloading import ReloadingAdapter

    try:
        graph = await _open(settings, PlainProgress(), pending.note, serves=True)
    except KGError as error:
        pending.fail(error)
    else:
        assert isinstance(graph, ReloadingAdapter)  # noqa: S101 - what a path names is local
        pending.take(graph)


async def _say_if_it_fails(pending: "PendingAdapter", redactor: Redactor) -> None:
    await pending.settled()
    try:
        pending.opened()
    except KGError as error:
        warn(redactor.message(sentence(error)))


async def _open(settings: Settings, *listeners: OnProgress, imports: bool = True, serves: bool = False) -> KGAdapter:
    from kg_adapters.local.sparql.pool import SparqlLimits

    if (hidden := hidden_path(settings.graph)) is not None:
        warn(f"{hidden} is the graph of that name. What is called so in this folder is ./{hidden}.")
    progress = StoppableProgress(*listeners)
    options = OpenOptions(
        cache_folder=settings.cache_folder,
        languages=settings.languages,
        progress=progress,
        imports=imports,
        endpoint=endpoint_of(settings),
        wikidata=wikidata_of(settings),
        answers_kept_s=settings.endpoint.answers_kept_s,
        sparql=SparqlLimits(workers=settings.sparql.workers),
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
