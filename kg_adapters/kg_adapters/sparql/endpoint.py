"""A SPARQL endpoint that can be asked from any number of tasks."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

import anyio
import anyio.to_thread
from SPARQLWrapper import QueryResult

from kg_adapters.sparql.client import EndpointClient
from kg_adapters.sparql.failures import FailureTeller
from kg_adapters.sparql.forms import Form
from kg_adapters.sparql.messages import HttpReply, HttpRequest
from kg_adapters.sparql.options import EndpointOptions
from kg_adapters.sparql.reply_file import NoMemory, ReplyMemory
from kg_adapters.sparql.retries import Pace
from kg_adapters.sparql.solutions import RdfSyntax, Solutions, UnreadableAnswer, read_graph, read_results
from kg_adapters.sparql.timing import Timing
from kg_adapters.sparql.wrapper import PooledWrapper

_NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})
# Smaller answers are read faster than a thread is found for them.
_READ_IN_THREAD_BYTES: Final = 100_000
_PARTIAL: Final = "S1TAT"


class SparqlEndpoint:
    """Asks one endpoint over HTTP; nothing is opened before the first query.

    Args:
        options: Where the endpoint is, and all limits.
        timing: Where time and chance come from.
        pace: Decides when each request may be sent; None for an endpoint that nothing else asks.
        replies: Remembers replies; None for no memory.
    """

    def __init__(
        self,
        options: EndpointOptions,
        *,
        timing: Timing | None = None,
        pace: Pace | None = None,
        replies: ReplyMemory | None = None,
    ) -> None:
        self._options = options
        self._timing = timing or Timing()
        self._client = EndpointClient(options, timing=self._timing, pace=pace)
        self._replies = replies or NoMemory()
        self._teller = FailureTeller(options.host)

    @property
    def options(self) -> EndpointOptions:
        """How the endpoint is reached."""
        return self._options

    async def query(
        self,
        text: str,
        *,
        timeout_s: float | None = None,
        max_rows: int | None = None,
        parameters: Mapping[str, str] = _NO_PARAMETERS,
    ) -> Solutions:
        """Ask a SELECT, ASK, CONSTRUCT or DESCRIBE query.

        Args:
            text: The query; it must be safe to send, which is for the caller to see to.
            timeout_s: The most seconds until there is an answer or an error, waiting and repetitions included; the
                option's when None.
            max_rows: Rows behind so many are dropped, and `truncated` is set; None keeps all.
            parameters: More parameters of the request, such as a time limit of the engine's own (a little below
                `timeout_s`, so that a partial answer arrives in time).

        Raises:
            InvalidRequest: The text is no such query, or the endpoint says that the query is wrong.
            BackendTimeout: There was no answer in time.
            BackendUnavailable: The endpoint cannot be reached, refuses to serve now, or failed too often lately.
            BackendError: The endpoint failed, or its answer cannot be read.
        """
        allowed_s = self._options.timeout_s if timeout_s is None else timeout_s
        end = anyio.current_time() + allowed_s
        fetched: list[tuple[HttpRequest, HttpReply]] = []
        wrapper = self._wrapper(text, parameters, allowed_s, fetched)
        result = await wrapper.query_in_loop()
        solutions: Solutions | None = None
        with anyio.move_on_after(max(0.0, end - anyio.current_time())):
            solutions = await self._read(result, wrapper.form, max_rows)
        if solutions is None:
            raise self._teller.late(allowed_s, "making sense of its answer", None).error
        if not _is_partial(result):
            for request, reply in fetched:
                await self._replies.keep(request, reply)
        return solutions

    async def aclose(self) -> None:
        """Close the connections; calling it twice is harmless, and afterwards queries raise BackendUnavailable."""
        await self._client.aclose()
        await self._replies.aclose()

    def _wrapper(
        self,
        text: str,
        parameters: Mapping[str, str],
        timeout_s: float,
        fetched: list[tuple[HttpRequest, HttpReply]],
    ) -> PooledWrapper:
        async def send(request: HttpRequest) -> HttpReply:
            reply = await self._replies.recall(request)
            if reply is None:
                reply = await self._client.fetch(request, timeout_s=timeout_s)
                fetched.append((request, reply))
            return reply

        wrapper = PooledWrapper(self._options.url, send, max_url_length=self._options.max_url_length)
        wrapper.ask_for(text)
        for name, value in {**self._options.parameters, **parameters}.items():
            wrapper.addParameter(name, value)
        for graph in self._options.default_graphs:
            wrapper.addParameter("default-graph-uri", graph)
        for graph in self._options.named_graphs:
            wrapper.addParameter("named-graph-uri", graph)
        return wrapper

    async def _read(self, result: QueryResult, form: Form, max_rows: int | None) -> Solutions:
        read = partial(_solutions_of, result, form, max_rows)
        large = (result.response.length or 0) > _READ_IN_THREAD_BYTES
        try:
            solutions = await anyio.to_thread.run_sync(read, abandon_on_cancel=True) if large else read()
        except UnreadableAnswer as error:
            raise self._teller.unreadable(str(error), error).error from error
        return replace(solutions, truncated=True) if _is_partial(result) else solutions


def _is_partial(result: QueryResult) -> bool:
    """Say whether Virtuoso's own time limit has cut the rows."""
    return result.info().get("x-sql-state") == _PARTIAL


def _solutions_of(result: QueryResult, form: Form, max_rows: int | None) -> Solutions:
    try:
        document = result.convert()
    except (ValueError, TypeError) as error:
        raise UnreadableAnswer(f"it is no JSON object: {error}") from error
    except RecursionError as error:
        raise UnreadableAnswer("its JSON is nested too deeply") from error
    if not isinstance(document, bytes):
        return read_results(document, form, max_rows=max_rows)
    syntax: RdfSyntax = "turtle" if result.info()["content-type"] == "text/turtle" else "n-triples"
    return read_graph(document, syntax, max_rows=max_rows)
