"""SPARQLWrapper over a pooled client."""

import io
from collections.abc import Awaitable, Callable, Mapping
from http.client import HTTPResponse
from typing import Final, TypeAlias
from typing import Literal as Choice
from urllib.parse import urlencode

import anyio.from_thread
from SPARQLWrapper import GET, JSON, N3, POST, QueryResult, SPARQLWrapper

from kg_adapters.sparql.forms import Form, query_form
from kg_adapters.sparql.messages import HttpReply, HttpRequest

# SPARQLWrapper's own lists lead some engines to answer in XML, or refuse.
_ACCEPTED: Final[Mapping[Form, tuple[str, ...]]] = {
    "SELECT": ("application/sparql-results+json", "application/json"),
    "ASK": ("application/sparql-results+json", "application/json"),
    "CONSTRUCT": ("application/n-triples", "text/turtle"),
    "DESCRIBE": ("application/n-triples", "text/turtle"),
}


# They told how the body travelled, and it has arrived.
_NOT_OF_THE_BODY: Final = frozenset({"connection", "content-encoding", "transfer-encoding"})

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
        return QueryResult((response_of(reply), self.returnFormat))

    def query(self) -> QueryResult:
        """Send the query and return its result; for worker threads of the event loop that `send` belongs to.

        Raises:
            KGError: As `send` does.
            RuntimeError: This is no such thread.
        """
        return anyio.from_thread.run(self.query_in_loop)


def response_of(reply: HttpReply) -> HTTPResponse:
    """Return a reply as the standard library's response, which is what SPARQLWrapper reads."""
    described = {name: value for name, value in reply.headers.items() if name not in _NOT_OF_THE_BODY}
    described |= {"content-type": reply.media_type, "content-length": str(len(reply.body))}
    lines = [f"HTTP/1.1 {reply.status} -", *(f"{name}: {value}" for name, value in described.items()), "", ""]
    head = "\r\n".join(lines).encode("latin-1", "replace")
    response = HTTPResponse(_Received(head + reply.body))  # type: ignore[arg-type]  # it takes only `makefile` of a socket
    response.begin()
    response.url = reply.url
    return response


class _Received:
    """What HTTPResponse needs of a socket, when everything has arrived already."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, mode: Choice["rb"]) -> io.BytesIO:  # noqa: ARG002 - there is no other
        """Return all that was received."""
        return io.BytesIO(self._content)
