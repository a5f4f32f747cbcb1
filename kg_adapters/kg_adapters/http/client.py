"""An HTTP client for one service: pooled, bounded in bytes, and retrying within the caller's deadline."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.to_thread
import httpx2

from kg_adapters.calls import FairPlaces, note_request
from kg_adapters.errors import BackendUnavailable, InvalidRequest
from kg_adapters.http.failures import Failure, FailureMessages, Refusal
from kg_adapters.http.messages import (
    HttpReply,
    HttpRequest,
    authentication_of,
    connect,
    redactor_of,
)
from kg_adapters.http.options import EndpointOptions
from kg_adapters.http.pacing import Backoff, CircuitBreaker, Pace, SharedHold, Timing, retry_after_s
from kg_adapters.http.reply_file import ReplyFile
from kg_boundary.bodies import SLICE_BYTES, TooLarge, Unpackable, read_body, stays_in_place

T = TypeVar("T")
_MAX_TOLD_BYTES: Final = 8_000
_REDIRECTS: Final = frozenset({301, 302, 307, 308})
# A call with a shorter deadline says nothing about the endpoint's health: a longer one may well succeed.
_FAIR_SHARE: Final = 0.5


@dataclass(slots=True)
class _Call:
    """One call of `ask` while it lasts.

    Attributes:
        doing: What is under way, as in "waiting for its answer".
        sent: Whether the endpoint was approached by the last request at all.
        answered: Whether it has sent anything.
        before: What the last request ended with, if it is being repeated.
        fresh: The reply that was read, if it came from the endpoint.
    """

    timeout_s: float
    end: float
    doing: str = ""
    sent: bool = False
    answered: bool = False
    before: Failure | None = None
    fresh: HttpReply | None = None


class EndpointClient:
    """Sends requests to one endpoint, from any number of tasks of one event loop; opens nothing before the first.

    Requests must be safe to repeat, as queries are: after a failure that may pass they are repeated, with pauses that
    grow, or as long as the endpoint asks for. While it is down, calls fail at once.

    Args:
        options: Where the endpoint is, and all limits; `url` is the only host that is ever asked.
        timing: Where time and chance come from.
        pace: Decides when each request may be sent; a client has its own when None.
        replies: Keeps replies that could be read; None for nowhere.

    Attributes:
        failures: Writes the messages of its failures.
    """

    def __init__(
        self,
        options: EndpointOptions,
        *,
        timing: Timing | None = None,
        pace: Pace | None = None,
        replies: ReplyFile | None = None,
    ) -> None:
        self._timing = timing or Timing()
        self._fair_s = options.timeout_s * _FAIR_SHARE
        self._pace = pace or SharedHold(options.who, self._timing)
        self._replies = replies
        self._options = options
        self._url = httpx2.URL(options.url)
        self._authentication = authentication_of(options)
        self._redactor = redactor_of(options)
        self.failures = FailureMessages(options.who, self._redactor, options.service)
        self._opening = anyio.Lock()
        self._http: httpx2.AsyncClient | None = None
        self._closed = False
        self._slots = FairPlaces(options.max_concurrency)
        self._backoff = Backoff(options.max_retries, options.backoff_s, options.max_backoff_s)
        self._breaker = CircuitBreaker(
            options.who,
            failures_until_pause=options.failures_until_pause,
            pause_s=options.pause_s,
            timing=self._timing,
        )

    async def ask(self, request: HttpRequest, read: Callable[[HttpReply], T | Failure], *, timeout_s: float) -> T:
        """Send a request, unless the reply to it is kept, and return what is read in the reply.

        Args:
            request: What to send; its URL is the endpoint's.
            read: Called in a thread. It returns a failure where a reply with a status of success reports one; that is
                retried and counted like any other.
            timeout_s: The most seconds that it takes until there is an answer or an error, whatever happens.

        Raises:
            InvalidRequest: The endpoint rejects the request as wrong.
            BackendTimeout: There was no reply in time.
            BackendUnavailable: The endpoint cannot be reached, refuses to serve now, or failed too often lately.
            BackendError: The endpoint failed, or its reply is not of a type that was asked for.
        """
        call = _Call(timeout_s, self._timing.clock() + timeout_s)
        kept = None if self._replies is None else await self._replies.recall(request)
        if kept is not None:
            said = await self._in_time(partial(self._reading, kept, read, call), call)
        else:
            with self._breaker.admitted() as admission:
                said = await self._in_time(partial(self._patiently, request, read, call), call)
                if isinstance(said, Failure) and said.counts:
                    admission.failing(str(said.error))
                elif call.answered:
                    admission.health = "alive"
        if isinstance(said, Failure):
            raise said.error from said.cause
        if self._replies is not None and call.fresh is not None and call.fresh.whole:
            await self._replies.keep(request, call.fresh)
        return said

    async def aclose(self) -> None:
        """Close the connections; calling it twice is harmless, and afterwards nothing is sent any more."""
        self._closed = True
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()
        if self._replies is not None:
            await self._replies.aclose()

    async def _in_time(self, work: Callable[[], Awaitable[T | Failure]], call: _Call) -> T | Failure:
        with anyio.move_on_after(max(0.0, call.end - self._timing.clock())):
            return await work()
        failure = self.failures.late(call.timeout_s, call.doing, call.before)
        return failure if call.sent and call.timeout_s >= self._fair_s else Failure(failure.error)

    async def _patiently(
        self, request: HttpRequest, read: Callable[[HttpReply], T | Failure], call: _Call
    ) -> T | Failure:
        repetition = 0
        while True:
            call.doing, call.sent, call.answered = "waiting for a free connection", False, False
            async with self._slots:
                await self._pace.turn(call.end - self._timing.clock())
                outcome = await self._send(request, call)
            said = outcome if isinstance(outcome, Failure) else await self._reading(outcome, read, call)
            if not isinstance(said, Failure):
                call.fresh = outcome if isinstance(outcome, HttpReply) else None
                return said
            if said.retry_after_s is not None:
                self._pace.hold(said.retry_after_s)
            pause_s = self._pause_s(said, repetition)
            if pause_s is None or self._timing.clock() + pause_s >= call.end:
                return said
            call.before = said
            call.doing = "waiting to try again"
            await self._timing.sleep(pause_s)
            repetition += 1

    async def _reading(self, reply: HttpReply, read: Callable[[HttpReply], T | Failure], call: _Call) -> T | Failure:
        call.doing, call.sent, call.answered = "making sense of its answer", False, True
        return await anyio.to_thread.run_sync(read, reply, abandon_on_cancel=True)

    def _pause_s(self, failure: Failure, repetition: int) -> float | None:
        if not failure.may_pass:
            return None
        pause_s = self._backoff.pause_s(repetition, self._timing.chance())
        return pause_s if pause_s is None else max(pause_s, failure.retry_after_s or 0.0)

    async def _send(self, request: HttpRequest, call: _Call) -> HttpReply | Failure:
        """Send a request once, and return its reply or why there is none.

        Raises:
            InvalidRequest: The request is for another host than the options name.
            BackendUnavailable: The client was closed.
        """
        if not stays_in_place(self._url, httpx2.URL(request.url)):
            raise InvalidRequest(f"Only {self._options.host} may be asked here.")
        http = await self._client()
        call.doing, call.sent = "connecting or waiting for its answer", True
        try:
            async with self._answer(http, self._prepared(http, request)) as response:
                call.answered = True
                if isinstance(redirected := self._redirected(response), Failure):
                    return redirected
                if redirected is None:
                    return await self._read(response, request, call)
                await _leave(response)
            async with self._answer(http, redirected) as response:
                return await self._read(response, request, call)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            # ValueError: a challenge to authenticate that makes no sense.
            return self.failures.broken(error)

    async def _client(self) -> httpx2.AsyncClient:
        async with self._opening:
            if self._http is None and not self._closed:
                self._http = await connect(self._options)
            if self._http is None or self._closed:
                raise BackendUnavailable(f"The connection to {self._options.host} was closed. Open the graph again.")
            return self._http

    def _prepared(self, http: httpx2.AsyncClient, request: HttpRequest) -> httpx2.Request:
        accepted = [name if place == 0 else f"{name};q=0.{9 - place}" for place, name in enumerate(request.accepted)]
        headers = {**request.headers, "Accept": ", ".join(accepted)}
        return http.build_request(request.method, request.url, headers=headers, content=request.body)

    @asynccontextmanager
    async def _answer(self, http: httpx2.AsyncClient, request: httpx2.Request) -> AsyncGenerator[httpx2.Response]:
        # The client's own way would read the body of a challenge to the end, however long that is.
        flow = self._authentication.sync_auth_flow(request)
        note_request()
        response = await http.send(next(flow), stream=True)
        try:
            authenticated = next(_rest(flow, response), None)
            if authenticated is not None:
                await _leave(response)
                note_request()
                response = await http.send(authenticated, stream=True)
            yield response
        finally:
            flow.close()
            await response.aclose()

    def _redirected(self, response: httpx2.Response) -> httpx2.Request | Failure | None:
        """Return the request that a redirect asks for, why it is not followed, or None where there is no redirect."""
        if response.status_code not in _REDIRECTS:
            return None
        asked = response.request
        location = response.headers.get("location")
        target = asked.url.join(location) if location else None
        if target is None or not stays_in_place(asked.url, target):
            return self.failures.redirected(f"{target.scheme}://{target.host}" if target else "")
        headers = [(name, value) for name, value in asked.headers.items() if name not in {"authorization", "host"}]
        return httpx2.Request(
            asked.method, target, headers=headers, content=asked.content or None, extensions=asked.extensions
        )

    async def _read(self, response: httpx2.Response, request: HttpRequest, call: _Call) -> HttpReply | Failure:
        call.doing = "reading its answer"
        if not response.is_success:
            call.doing = f"reading why it refused (HTTP {response.status_code})"
            return self.failures.refused(await self._refusal(response))
        reply = HttpReply(str(response.url), response.status_code, dict(response.headers.items()), b"")
        if reply.media_type not in request.accepted:
            return self.failures.wrong_type(reply.media_type, await _beginning(response))
        limit, body, cut = self._options.max_bytes, bytearray(), False
        try:
            await read_body(response.aiter_raw(), _encoding(response), max_bytes=limit, received=body)
        except TooLarge:
            cut = request.may_be_cut
            if not cut:
                return self.failures.too_large(limit)
        except Unpackable:
            return self.failures.unpackable(_encoding(response))
        return replace(reply, body=await self._without_secrets(bytes(body)), cut=cut)

    async def _without_secrets(self, body: bytes) -> bytes:
        if len(body) <= SLICE_BYTES:
            return self._redactor.data(body)
        return await anyio.to_thread.run_sync(self._redactor.data, body, abandon_on_cancel=True)

    async def _refusal(self, response: httpx2.Response) -> Refusal:
        text = await _beginning(response)
        now = self._timing.now()
        seconds = retry_after_s(response.headers.get("retry-after"), now)
        retry_at = "" if seconds is None else f"{now + timedelta(seconds=seconds):%H:%M:%S} UTC"
        return Refusal(response.status_code, text, seconds, retry_at)


def _rest(flow: Generator[httpx2.Request, httpx2.Response], response: httpx2.Response) -> Generator[httpx2.Request]:
    """Yield the request that answers a challenge, where `response` is one."""
    try:
        yield flow.send(response)
    except StopIteration:
        return


def _encoding(response: httpx2.Response) -> str:
    return str(response.headers.get("content-encoding", ""))


async def _leave(response: httpx2.Response) -> None:
    """Be done with an answer that is not read; where little is left of it, its connection can be used again."""
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) <= _MAX_TOLD_BYTES:
        await _beginning(response)
    await response.aclose()


async def _beginning(response: httpx2.Response) -> str:
    """Return what stands in the body of an answer that is of no use, as far as there is any."""
    body = bytearray()
    with suppress(TooLarge, Unpackable, httpx2.TransportError):
        await read_body(response.aiter_raw(), _encoding(response), max_bytes=_MAX_TOLD_BYTES, received=body)
    return body.decode("utf-8", "replace")
