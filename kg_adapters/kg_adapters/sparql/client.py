"""An HTTP client for one endpoint: pooled, bounded, patient within a deadline, and no longer than that."""

from dataclasses import dataclass, field
from typing import Final

import anyio

from kg_adapters.sparql.breaker import CircuitBreaker
from kg_adapters.sparql.exchange import Exchange, Progress
from kg_adapters.sparql.failures import Failure
from kg_adapters.sparql.messages import HttpReply, HttpRequest, Watching, unwatched
from kg_adapters.sparql.options import EndpointOptions
from kg_adapters.sparql.retries import Backoff, Pace, SharedHold
from kg_adapters.sparql.timing import Timing

# A caller in more of a hurry than that learns nothing about the endpoint, which others may have time for.
_FAIR_SHARE: Final = 0.5


@dataclass(slots=True)
class _Call:
    """One call of `fetch` while it lasts."""

    timeout_s: float
    end: float
    watching: Watching
    progress: Progress = field(default_factory=Progress)
    before: Failure | None = None


class EndpointClient:
    """Sends requests to one endpoint, from any number of tasks of one event loop; opens nothing before the first.

    Requests must be safe to repeat, as queries are: after a failure that may pass they are repeated, with pauses that
    grow, or as long as the endpoint asks for. While it is down, calls fail at once.

    Args:
        options: Where the endpoint is, and all limits; `url` is the only host that is ever asked.
        timing: Where time and chance come from.
        pace: Decides when each request may be sent; a client has its own when None.
    """

    def __init__(self, options: EndpointOptions, *, timing: Timing | None = None, pace: Pace | None = None) -> None:
        self._timing = timing or Timing()
        self._fair_s = options.timeout_s * _FAIR_SHARE
        self._pace = pace or SharedHold(options.who, self._timing)
        self._exchange = Exchange(options, now=self._timing.now)
        self._slots = anyio.Semaphore(options.max_concurrency)
        self._backoff = Backoff(options.max_retries, options.backoff_s, options.max_backoff_s)
        self._breaker = CircuitBreaker(
            options.who,
            failures_until_pause=options.failures_until_pause,
            pause_s=options.pause_s,
            timing=self._timing,
        )

    async def fetch(self, request: HttpRequest, *, timeout_s: float, watching: Watching = unwatched) -> HttpReply:
        """Send a request and return its reply.

        Args:
            request: What to send; its URL is the endpoint's.
            timeout_s: The most seconds that it takes until there is a reply or an error, whatever happens.
            watching: Makes what looks at the reply's body while it comes, and may have enough before its end.

        Raises:
            InvalidRequest: The endpoint says that the request is wrong.
            BackendTimeout: There was no reply in time.
            BackendUnavailable: The endpoint cannot be reached, refuses to serve now, or failed too often lately.
            BackendError: The endpoint failed, or its reply is none that was asked for.
        """
        call = _Call(timeout_s, self._timing.clock() + timeout_s, watching)
        outcome: HttpReply | Failure | None = None
        with self._breaker.admitted() as admission:
            with anyio.move_on_after(timeout_s):
                outcome = await self._patiently(request, call)
            if outcome is None:
                outcome = self._late(call)
            if isinstance(outcome, HttpReply):
                admission.health = "alive"
                return outcome
            if outcome.counts:
                admission.failing(str(outcome.error))
            elif call.progress.answered:
                admission.health = "alive"
        raise outcome.error from outcome.cause

    async def aclose(self) -> None:
        """Close the connections; calling it twice is harmless, and afterwards nothing is sent any more."""
        await self._exchange.aclose()

    async def _patiently(self, request: HttpRequest, call: _Call) -> HttpReply | Failure:
        repetition = 0
        while True:
            outcome = await self._in_turn(request, call)
            if isinstance(outcome, HttpReply):
                return outcome
            pause_s = self._pause_s(outcome, repetition)
            if pause_s is None or self._timing.clock() + pause_s >= call.end:
                return outcome
            call.before = outcome
            call.progress.doing = "waiting to try again"
            await self._timing.sleep(pause_s)
            repetition += 1

    async def _in_turn(self, request: HttpRequest, call: _Call) -> HttpReply | Failure:
        call.progress = Progress()
        async with self._slots:
            await self._pace.turn(call.end - self._timing.clock())
            outcome = await self._exchange.send(request, call.progress, call.watching)
        if isinstance(outcome, Failure) and outcome.retry_after_s is not None:
            self._pace.hold(outcome.retry_after_s)
        return outcome

    def _pause_s(self, failure: Failure, repetition: int) -> float | None:
        if not failure.may_pass:
            return None
        pause_s = self._backoff.pause_s(repetition, self._timing.chance())
        return pause_s if pause_s is None else max(pause_s, failure.retry_after_s or 0.0)

    def _late(self, call: _Call) -> Failure:
        failure = self._exchange.teller.late(call.timeout_s, call.progress.doing, call.before)
        return failure if call.progress.sent and call.timeout_s >= self._fair_s else Failure(failure.error)
