"""A SPARQL endpoint that can be asked from any number of tasks."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from email.message import Message
from functools import partial
from io import BytesIO
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import urlencode
from urllib.response import addinfourl

import anyio.from_thread
from SPARQLWrapper import GET, JSON, N3, POST, QueryResult, SPARQLWrapper

from kg_adapters.calls import note_partial
from kg_adapters.http.client import EndpointClient
from kg_adapters.http.failures import Failure
from kg_adapters.http.messages import HttpReply, HttpRequest
from kg_adapters.http.options import EndpointOptions
from kg_adapters.http.pacing import Pace, Timing
from kg_adapters.http.reply_file import ReplyFile
from kg_adapters.sparql.solutions import Form, Solutions, UnreadableAnswer, query_form, read_answer

# SPARQLWrapper's own lists lead some engines to answer in XML, or refuse.
_ACCEPTED: Final[Mapping[Form, tuple[str, ...]]] = {
    "SELECT": ("application/sparql-results+json", "application/json"),
    "ASK": ("application/sparql-results+json", "application/json"),
    "CONSTRUCT": ("application/n-triples", "text/turtle"),
    "DESCRIBE": ("application/n-triples", "text/turtle"),
}
_DESCRIBED_IN: Final = ("application/json", "text/turtle", "application/n-triples", "application/rdf+xml")

# They describe the transfer of the body, which is complete.
_NOT_OF_THE_BODY: Final = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "transfer-encoding"}
)

Send: TypeAlias = Callable[[HttpRequest], Awaitable[HttpReply]]


class PooledWrapper(SPARQLWrapper):
    """SPARQLWrapper whose `query()` goes through `send`, and which otherwise is what it was.

    Args:
        endpoint: Where queries go.
        send: Sends a request and returns its reply, from any task.
        max_url_length: With the method GET, what would make a longer URL is sent by POST.
    """

    def __init__(self, endpoint: str, send: Send, *, max_url_length: int) -> None:
        super().__init__(endpoint)
        self.send = send
        self.max_url_length = max_url_length
        self.setOnlyConneg(True)

    def ask_for(self, text: str) -> None:
        """Set the query, and the format that suits its form.

        Raises:
            InvalidRequest: The text is not a query that reads.
        """
        form = query_form(text)
        # setQuery would find the form by expressions that take a word in a comment for it, and take long over blanks.
        self.queryString, self.queryType = text, form
        self.setReturnFormat(N3 if form in {"CONSTRUCT", "DESCRIBE"} else JSON)

    @property
    def form(self) -> Form:
        """The form of the query."""
        return query_form(self.queryString)

    def request(self) -> HttpRequest:
        """Return the request that the attributes describe.

        Raises:
            InvalidRequest: The query does not only read.
        """
        accepted = _ACCEPTED[self.form]
        values = [(name, value) for name, given in self.parameters.items() for value in given]
        encoded = urlencode([("query", self.queryString), *values])
        url = f"{self.endpoint}?{encoded}"
        if self.method == GET and len(url) <= self.max_url_length:
            return HttpRequest(GET, url, accepted, dict(self.customHttpHeaders))
        headers = {**self.customHttpHeaders, "Content-Type": "application/x-www-form-urlencoded"}
        return HttpRequest(POST, self.endpoint, accepted, headers, encoded.encode())

    async def query_in_loop(self) -> QueryResult:
        """Send the query and return its result: `query` for tasks, which must not block.

        Raises:
            KGError: As `send` does.
        """
        return self.result_of(await self.send(self.request()))

    def result_of(self, reply: HttpReply) -> QueryResult:
        """Return the result that a reply to the query is."""
        return QueryResult((response_of(reply), self.returnFormat))  # type: ignore[arg-type]  # as urlopen gives for files

    def query(self) -> QueryResult:
        """Send the query and return its result; for worker threads of the event loop that `send` belongs to.

        Raises:
            KGError: As `send` does.
            RuntimeError: This is no such thread.
        """
        return anyio.from_thread.run(self.query_in_loop)


def response_of(reply: HttpReply) -> addinfourl:
    """Return a reply as the standard library gives out responses, which is what SPARQLWrapper reads."""
    headers = Message()
    for name, value in reply.headers.items():
        if name not in _NOT_OF_THE_BODY:
            headers[name] = value
    headers["content-type"], headers["content-length"] = reply.media_type, str(len(reply.body))
    return addinfourl(BytesIO(reply.body), headers, reply.url, reply.status)


_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class SparqlEndpoint:
    """Asks one endpoint over HTTP; nothing is opened before the first query.

    Args:
        options: Where the endpoint is, and all limits.
        timing: Where time and chance come from.
        pace: Decides when each request may be sent; None for an endpoint that nothing else asks.
        replies: Caches replies; None for no cache.

    Attributes:
        headers: The headers of its latest answer to a query, with lower-case names; empty before the first.
    """

    def __init__(
        self,
        options: EndpointOptions,
        *,
        timing: Timing | None = None,
        pace: Pace | None = None,
        replies: ReplyFile | None = None,
    ) -> None:
        self._options = options
        self._client = EndpointClient(options, timing=timing, pace=pace, replies=replies)
        self.headers: Mapping[str, str] = _NONE

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
        parameters: Mapping[str, str] = _NONE,
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
            InvalidRequest: The text is no such query, or the endpoint rejects the query as wrong.
            BackendTimeout: There was no answer in time.
            BackendUnavailable: The endpoint cannot be reached, refuses to serve now, or failed too often lately.
            BackendError: The endpoint failed, or its answer cannot be read.
        """
        allowed_s = self._options.timeout_s if timeout_s is None else timeout_s
        wrapper = self._wrapper(text, parameters)
        request = replace(wrapper.request(), may_be_cut=max_rows is not None or wrapper.form == "ASK")
        read = partial(self._read, wrapper.form, max_rows)
        solutions, is_late = await self._client.ask(request, read, timeout_s=allowed_s)
        if is_late:
            note_partial()
            return replace(solutions, truncated=True)
        return solutions

    async def about(self, parameters: Mapping[str, str], *, timeout_s: float) -> bytes:
        """Return what the endpoint answers to a request without a query, such as a description of itself.

        Raises:
            KGError: As `query` does.
        """
        url = f"{self._options.url}?{urlencode({**self._options.parameters, **parameters})}"
        request = HttpRequest(GET, url, _DESCRIBED_IN, may_be_cut=True)
        return await self._client.ask(request, lambda reply: reply.body, timeout_s=timeout_s)

    async def aclose(self) -> None:
        """Close the connections; calling it twice is harmless, and afterwards queries raise BackendUnavailable."""
        await self._client.aclose()

    def _wrapper(self, text: str, parameters: Mapping[str, str]) -> PooledWrapper:
        async def send(request: HttpRequest) -> HttpReply:
            return await self._client.ask(request, lambda reply: reply, timeout_s=self._options.timeout_s)

        wrapper = PooledWrapper(self._options.url, send, max_url_length=self._options.max_url_length)
        wrapper.ask_for(text)
        for name, value in {**self._options.parameters, **parameters}.items():
            wrapper.addParameter(name, value)
        for graph in self._options.default_graphs:
            wrapper.addParameter("default-graph-uri", graph)
        for graph in self._options.named_graphs:
            wrapper.addParameter("named-graph-uri", graph)
        return wrapper

    def _read(self, form: Form, max_rows: int | None, reply: HttpReply) -> tuple[Solutions, bool] | Failure:
        try:
            found = read_answer(reply.body, reply.media_type, form, max_rows=max_rows, cut=reply.cut)
        except UnreadableAnswer as error:
            failures = self._client.failures
            return failures.too_large(self._options.max_bytes) if reply.cut else failures.unreadable(str(error), error)
        self.headers = reply.headers
        return found, reply.late
