"""Open the graph, and the language model, that the settings name."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio

from kg_adapters.errors import InvalidRequest, InvalidSource, KGError
from kg_adapters.labels import ChosenRelations, chosen_prefixes
from kg_adapters.open_options import OnProgress, ReadingLimits
from kg_adapters.protocol import KGAdapter, SupportsLearning
from kg_adapters.registry import URLS, WIKIDATA, OpenOptions, hidden_path, open_graph, path_of
from kg_boundary.secrets import Redactor
from kg_boundary.shown import in_plain_words
from kg_server.commands.output import PlainProgress, StoppableProgress, sentence, shown_progress, uncollected, warn
from kg_server.settings import Settings

if TYPE_CHECKING:
    from mcp import Client
    from pydantic import ValidationError

    from kg_adapters.http.options import Authentication, EndpointOptions
    from kg_adapters.local.reloading import PendingAdapter
    from kg_adapters.wikidata.options import WikidataOptions
    from kg_agents.llm.openai_llm import OpenAiLlm


# What is left of a call's time lets the endpoint's own reason reach the caller.
_SHARE: Final = 0.9


def endpoint_of(settings: Settings) -> "EndpointOptions | None":
    """Return how the graph's endpoint is reached, or None where the graph is none.

    Raises:
        InvalidRequest: A setting is wrong, or two of them do not go together.
    """
    if not settings.graph.startswith(URLS):
        return None
    from pydantic import ValidationError

    from kg_adapters.http.options import EndpointOptions

    try:
        return EndpointOptions(
            url=settings.graph,
            default_graphs=settings.endpoint_default_graphs,
            named_graphs=settings.endpoint_named_graphs,
            authentication=_authentication(settings),
            timeout_s=settings.timeout_s * _SHARE,
            max_bytes=settings.endpoint_max_mb * 1_000_000,
            max_concurrency=settings.endpoint_max_concurrency,
            max_retries=settings.endpoint_max_retries,
            text_search=settings.endpoint_text_search,
            dialect=settings.endpoint_dialect,
            ca_file=settings.endpoint_ca_file,
            redactor=settings.redactor,
        )
    except ValidationError as error:
        raise _wrong(error, "endpoint_", {"url": "graph"}) from error


def wikidata_of(settings: Settings) -> "WikidataOptions | None":
    """Return how Wikidata is reached, or None where the graph is another one.

    Raises:
        InvalidRequest: A setting is wrong.
    """
    if settings.graph.partition(":")[0] != WIKIDATA:
        return None
    from pydantic import ValidationError

    from kg_adapters.wikidata.options import WikidataOptions

    try:
        return WikidataOptions(
            contact=settings.wikidata_contact,
            query_url=settings.wikidata_query_url,
            scholarly_url=settings.wikidata_scholarly_url or None,
            api_url=settings.wikidata_api_url,
            dialect=settings.wikidata_dialect,
            languages=settings.languages,
            requests_per_minute=settings.wikidata_requests_per_minute,
            max_concurrency=settings.wikidata_max_concurrency,
            timeout_s=settings.timeout_s * _SHARE,
            max_bytes=settings.endpoint_max_mb * 1_000_000,
            max_retries=settings.endpoint_max_retries,
            maxlag_s=settings.wikidata_maxlag_s,
            most_counted=settings.wikidata_most_counted,
            replies_kept_s=settings.wikidata_replies_kept_s,
            with_qualifiers=settings.wikidata_qualifiers,
            with_external_ids=settings.wikidata_external_ids,
            redactor=settings.redactor,
        )
    except ValidationError as error:
        raise _wrong(error, "wikidata_", {"languages": "languages"}) from error


def _wrong(error: "ValidationError", prefix: str, names: Mapping[str, str]) -> InvalidRequest:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = str(first["loc"][0])
    message = in_plain_words(first["msg"])
    return InvalidRequest(f"The setting {names.get(field, prefix + field)}: {message}.")


def _authentication(settings: Settings) -> "Authentication | None":
    from kg_adapters.http.options import BasicAuthentication, BearerAuthentication, DigestAuthentication

    user, password, token = settings.endpoint_user, settings.endpoint_password, settings.endpoint_token
    if token is not None:
        if user is not None or password is not None:
            raise InvalidRequest("Set either endpoint_token, or endpoint_user and endpoint_password; not both.")
        return BearerAuthentication(token=token)
    if user is None and password is None:
        return None
    if user is None or password is None:
        raise InvalidRequest("endpoint_user and endpoint_password go together: set both or neither.")
    return (DigestAuthentication if settings.endpoint_digest else BasicAuthentication)(user=user, password=password)


PATIENCE_S: Final = 2.0


@asynccontextmanager
async def opened(settings: Settings, *, serves: bool = False) -> AsyncGenerator[KGAdapter]:
    """Open the graph that the settings name, showing progress if it has to be imported first, and close it at the end.

    Args:
        settings: They name the graph.
        serves: Whether it stays open for long, so that what SPARQL needs is made ready before anybody asks.

    Raises:
        KGError: There is no such graph, or it cannot be opened.
    """
    with shown_progress() as progress:
        graph = await _open(settings, progress, serves=serves)
    try:
        yield graph
    finally:
        await graph.aclose()


@asynccontextmanager
async def opened_if_imported(settings: Settings) -> AsyncGenerator[KGAdapter]:
    """Open the graph like `opened`, but never import files: those that never were answer no question about the graph.

    Raises:
        KGError: There is no such graph, or it cannot be opened.
    """
    from kg_adapters.local.reloading import PendingAdapter

    graph: KGAdapter
    try:
        graph = await _open(settings, imports=False)
    except InvalidSource:
        path = path_of(settings.graph)
        if path is None:
            raise
        graph = PendingAdapter(path)
    try:
        yield graph
    finally:
        await graph.aclose()


@asynccontextmanager
async def connected(settings: Settings, *, imports: bool = True) -> "AsyncGenerator[tuple[KGAdapter, Client]]":
    """Open the graph, and a client of a server of it in this process.

    Args:
        settings: They name the graph.
        imports: Whether files that were never imported are imported first.

    Raises:
        KGError: There is no such graph, or it cannot be opened.
    """
    with uncollected() as begin:
        from mcp import Client

        from kg_server.app import build_server

        begin()
    opening = opened if imports else opened_if_imported
    async with opening(settings) as graph, Client(build_server(graph, settings)) as client:
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


def reading_limits_of(settings: Settings) -> ReadingLimits:
    """Return what a file may ask for while it is read."""
    return ReadingLimits(
        memory_mb=settings.import_memory_mb,
        stall_s=settings.import_stall_s,
        literal_mb=settings.import_literal_mb,
        inflate_ratio=settings.import_inflate_ratio,
        inflate_mb=settings.import_inflate_mb,
    )


def chosen_relations_of(settings: Settings) -> ChosenRelations:
    """Return the relations that name, describe and type entities, before the usual ones."""
    return ChosenRelations(
        labels=settings.label_relations,
        aliases=settings.alias_relations,
        descriptions=settings.description_relations,
        types=settings.type_relations,
        label_keys=settings.label_keys,
    )


async def _open(settings: Settings, *listeners: OnProgress, imports: bool = True, serves: bool = False) -> KGAdapter:
    from kg_adapters.local.sparql.pool import SparqlLimits

    if (hidden := hidden_path(settings.graph)) is not None:
        warn(f"{hidden} is the graph of that name. What is called so in this folder is ./{hidden}.")
    progress = StoppableProgress(*listeners)
    worker_mb = settings.sparql_worker_mb
    options = OpenOptions(
        cache_folder=settings.cache_folder,
        languages=settings.languages,
        progress=progress,
        imports=imports,
        endpoint=endpoint_of(settings),
        wikidata=wikidata_of(settings),
        answers_kept_s=settings.endpoint_answers_kept_s,
        sparql=SparqlLimits(
            workers=settings.sparql_workers,
            worker_bytes=None if worker_mb is None else worker_mb * 1_000_000,
            max_waiting=settings.sparql_max_waiting,
        ),
        prepares_sparql=serves,
        reading=reading_limits_of(settings),
        chosen=chosen_relations_of(settings),
        prefixes=chosen_prefixes(settings.prefixes),
    )
    try:
        return await open_graph(settings.graph, options)
    finally:
        # The thread that imports outlives a cancelled command, and would keep the process alive to its end.
        progress.stop()


def model_of(settings: Settings, name: str | None, redactor: Redactor) -> "OpenAiLlm | None":
    """Return a client of the language model of this name; None without a name."""
    if name is None:
        return None
    from kg_agents.llm.openai_llm import OpenAiLlm, Prices

    return OpenAiLlm(
        name,
        base_url=settings.llm_base_url,
        api_key=settings.llm_api_key,
        timeout_s=settings.llm_timeout_s,
        context_tokens=settings.llm_context_tokens,
        prices=Prices(settings.llm_prompt_price, settings.llm_reply_price),
        redactor=redactor,
    )
