"""A SPARQL endpoint that can be asked from any number of tasks."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import anyio

from kg_adapters.calls import note_partial
from kg_adapters.sparql.arrival import Arrival
from kg_adapters.sparql.client import EndpointClient
from kg_adapters.sparql.connection import redactor_of
from kg_adapters.sparql.failures import FailureTeller
from kg_adapters.sparql.messages import HttpReply, HttpRequest
from kg_adapters.sparql.options import EndpointOptions
from kg_adapters.sparql.reply_file import NoMemory, ReplyMemory
from kg_adapters.sparql.retries import Pace
from kg_adapters.sparql.solutions import Solutions, UnreadableAnswer
from kg_adapters.sparql.timing import Timing
from kg_adapters.sparql.wrapper import PooledWrapper

_NO_PARAMETERS: Final[Mapping[str, str]] = MappingProxyType({})
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
        self._teller = FailureTeller(options.who, redactor_of(options), options.service)

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
            max_rows: Rows behind so many are not read, and `truncated` is set; None keeps all.
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
        wrapper = self._wrapper(text, parameters)
        arrival = Arrival(wrapper.form, max_rows)
        request = wrapper.request()
        known = await self._replies.recall(request)
        reply = known or await self._client.fetch(request, timeout_s=allowed_s, watching=arrival.watch)
        solutions: Solutions | None = None
        with anyio.move_on_after(max(0.0, end - anyio.current_time())):
            solutions = await self._read(arrival, reply, wrapper)
        if solutions is None:
            raise self._teller.late(allowed_s, "making sense of its answer", None).error
        if _is_partial(reply):
            note_partial()
            return replace(solutions, truncated=True)
        if known is None and not reply.cut:
            await self._replies.keep(request, reply)
        return solutions

    async def aclose(self) -> None:
        """Close the connections; calling it twice is harmless, and afterwards queries raise BackendUnavailable."""
        await self._client.aclose()
        await self._replies.aclose()

    def _wrapper(self, text: str, parameters: Mapping[str, str]) -> PooledWrapper:
        async def send(request: HttpRequest) -> HttpReply:
            return await self._client.fetch(request, timeout_s=self._options.timeout_s)

        wrapper = PooledWrapper(self._options.url, send, max_url_length=self._options.max_url_length)
        wrapper.ask_for(text)
        for name, value in {**self._options.parameters, **parameters}.items():
            wrapper.addParameter(name, value)
        for graph in self._options.default_graphs:
            wrapper.addParameter("default-graph-uri", graph)
        for graph in self._options.named_graphs:
            wrapper.addParameter("named-graph-uri", graph)
        return wrapper

    async def _read(self, arrival: Arrival, reply: HttpReply, wrapper: PooledWrapper) -> Solutions:
        try:
            return await arrival.read(reply, wrapper.result_of)
        except UnreadableAnswer as error:
            raise self._teller.unreadable(str(error), error).error from error


def _is_partial(reply: HttpReply) -> bool:
    """Say whether Virtuoso's own time limit has cut the rows."""
    return reply.headers.get("x-sql-state") == _PARTIAL
