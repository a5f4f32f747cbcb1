"""Limits for each caller over HTTP: how many calls, at once and in a minute, and how much work they may take."""

import math
import time
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final

from mcp.types import JSONRPCMessage, JSONRPCRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kg_boundary.shown import counted
from kg_server.callers import Caller, caller
from kg_server.serving.audit import MEASURED, OVER_LIMIT, CallRecord, Watcher, known_tool
from kg_server.serving.messages import NotAMessage, read_message, refusal
from kg_server.settings import HostingSettings

TOO_MANY: Final = -32029
"""The code of the error that answers a call beyond a limit."""
CANCELLED_S: Final = 10.0
"""How many seconds a cancelled call takes at least: a thread may still be at work for it."""
_MINUTE_S: Final = 60.0
_MAX_READ: Final = 100_000
"""How many bytes of a message are read for the id under which it is refused."""
_RATES: Final = {
    "calls_per_minute": ("calls", 1.0),
    "seconds_per_minute": ("seconds of work", 0.001),
    "rows_per_minute": ("rows", 0.001),
}
"""What each rate limits, and how much of it must be left for a call."""


class Account:
    """What one caller may still take: each rate refills steadily, up to what it allows in a minute.

    What a call takes is known when it has ended, so a rate may fall below zero; then it must rise above it first.

    Args:
        rates: How much of each a minute allows.
        now: The time, in seconds.
    """

    def __init__(self, rates: Mapping[str, float], now: float) -> None:
        self.at_once = 0
        self._rates = rates
        self._left = dict(rates)
        self._right_at = now

    def take(self, now: float, amounts: Mapping[str, float]) -> None:
        """Take from each rate what has been used of it."""
        minutes = (now - self._right_at) / _MINUTE_S
        self._right_at = now
        for name, rate in self._rates.items():
            self._left[name] = min(rate, self._left[name] + minutes * rate) - amounts.get(name, 0.0)

    def longest_wait(self, now: float) -> tuple[float, str]:
        """Return after how many seconds every rate allows a call, 0 for now, and which of them takes longest."""
        self.take(now, {})
        lacking = {name: _RATES[name][1] - left for name, left in self._left.items() if left < _RATES[name][1]}
        return max(((each * _MINUTE_S / self._rates[name], name) for name, each in lacking.items()), default=(0.0, ""))

    def is_full(self, now: float) -> bool:
        """Return whether it is as a new one would be."""
        self.take(now, {})
        return not self.at_once and self._left == self._rates


class CallLimits:
    """What each caller of one process may take; of a caller who has taken nothing for a while, nothing is kept.

    Args:
        settings: The limits; a caller without a login has none.
        watchers: They are called with a record of each request that is refused.
        clock: Returns the time, in seconds.
    """

    def __init__(
        self,
        settings: HostingSettings,
        watchers: Sequence[Watcher] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watchers = watchers
        self._at_once = settings.calls_at_once
        rates = {name: float(getattr(settings, name)) for name in _RATES}
        self._rates = {name: rate for name, rate in rates.items() if rate}
        self._clock = clock
        self._accounts: dict[str, Account] = {}
        self._swept_at = clock()

    def __len__(self) -> int:
        """Return of how many callers something is kept."""
        return len(self._accounts)

    def book(self, record: CallRecord) -> None:
        """Take from what a caller may take what a request has taken."""
        if record.caller.subject:
            seconds = max(record.seconds, CANCELLED_S) if record.outcome == "cancelled" else record.seconds
            used = {"seconds_per_minute": seconds, "rows_per_minute": float(record.rows)}
            self._account(record.caller).take(self._clock(), used)

    def note_refused(self, message: JSONRPCMessage | None, tools: Container[str], error: str) -> None:
        """Hand a record of a request of the caller that is refused before it reaches the server to watchers.

        Args:
            message: The message; None where it cannot be read.
            tools: The names of the tools that there are.
            error: The status of HTTP.
        """
        if isinstance(message, JSONRPCRequest) and message.method in MEASURED:
            tool = known_tool(message.method, message.params, tools)
            for watcher in self._watchers:
                watcher(CallRecord(time.time(), caller(), message.method, tool, "refused", error=error))

    def before(self, app: ASGIApp, tools: Container[str]) -> ASGIApp:
        """Return an application that answers what is beyond a limit with HTTP 429, and passes on the rest.

        Args:
            app: The application; the caller of each request is known.
            tools: The names of the tools that there are.
        """

        async def limited(scope: Scope, receive: Receive, send: Send) -> None:
            who = caller()
            if scope["type"] != "http" or scope["method"] != "POST" or not who.subject:
                await app(scope, receive, send)
                return
            account = self._account(who)
            if limit := self._exceeded(account):
                await (await self._refusal(receive, tools, *limit))(scope, receive, send)
                return
            account.at_once += 1
            try:
                await app(scope, receive, send)
            finally:
                account.at_once -= 1

        return limited

    def _account(self, who: Caller) -> Account:
        now = self._clock()
        if now - self._swept_at > _MINUTE_S:
            self._swept_at = now
            self._accounts = {subject: each for subject, each in self._accounts.items() if not each.is_full(now)}
        return self._accounts.setdefault(who.subject, Account(self._rates, now))

    def _exceeded(self, account: Account) -> tuple[str, float] | None:
        """Count a message, and return None; or return the limit that it exceeds, and how many seconds it must wait."""
        if self._at_once and account.at_once >= self._at_once:
            return f"{counted(self._at_once, 'call')} at once (hosting.calls_at_once)", 1.0
        wait_s, name = account.longest_wait(self._clock())
        if name:
            return f"{self._rates[name]:,.10g} {_RATES[name][0]} in a minute (hosting.{name})", wait_s
        account.take(self._clock(), {"calls_per_minute": 1.0})
        return None

    async def _refusal(self, receive: Receive, tools: Container[str], limit: str, wait_s: float) -> Response:
        first = await receive()
        try:
            # The rest is not waited for: a refusal must cost less than an answer.
            message = read_message(first.get("body", b"")[:_MAX_READ])
        except NotAMessage:
            message = None
        self.note_refused(message, tools, OVER_LIMIT)
        whole_s = max(1, math.ceil(wait_s))
        reason = f"You are at the limit of {limit}. Wait {counted(whole_s, 'second')}, then ask again, or ask for less."
        answer = refusal(message.id if isinstance(message, JSONRPCRequest) else None, TOO_MANY, reason)
        text = answer.model_dump_json(by_alias=True, exclude_unset=True)
        headers = {"retry-after": str(whole_s), **({"connection": "close"} if first.get("more_body") else {})}
        return Response(text, 429, media_type="application/json", headers=headers)
