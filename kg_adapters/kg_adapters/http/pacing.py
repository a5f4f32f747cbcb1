"""When requests are sent: clocks, retries, the rate per host, and the pause while a service is down."""

import random
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, Protocol, TypeAlias
from typing import Literal as Choice

import anyio

from kg_adapters.errors import BackendUnavailable


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Timing:
    """Where time and chance come from.

    Args:
        clock: Seconds that only go forward.
        now: The time of day, with its zone.
        sleep: Waits for so many seconds.
        chance: A number from 0 to below 1, another one each time.
    """

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _utc_now
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    chance: Callable[[], float] = random.random

    def time_in(self, seconds: float) -> str:
        """Return what time it is in so many seconds, as people write it."""
        return (self.now() + timedelta(seconds=seconds)).astimezone(UTC).strftime("%H:%M:%S UTC")


# Whatever a server asks for: then it is asked again, and may repeat it.
LONGEST_HOLD_S: Final = 600.0

_SECONDS: Final = re.compile(r"\s*(\d{1,9})(?:\.\d*)?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double: so many, from `first_s` seconds to `longest_s`."""

    most: int
    first_s: float
    longest_s: float

    def pause_s(self, repetition: int, chance: float) -> float | None:
        """Return the pause in seconds before a repetition, counted from 0; None when there were enough.

        `chance`, from 0 to 1, takes up to half of it away, so that clients that failed together do not return together.
        """
        if repetition >= self.most:
            return None
        return min(self.longest_s, self.first_s * 2.0**repetition) * (1 - chance / 2)


def retry_after_s(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` header asks for: a number, or an HTTP date; None where it is neither.

    Args:
        value: The header.
        now: The time of day, with its zone.
    """
    if value is None:
        return None
    if number := _SECONDS.fullmatch(value):
        return float(number[1])
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())


class Pace(Protocol):
    """Who decides when a request may be sent; one object may serve many clients."""

    async def turn(self, time_left_s: float) -> None:
        """Wait until a request may be sent.

        Raises:
            BackendUnavailable: That would be more than `time_left_s` seconds from now.
        """
        ...

    def hold(self, seconds: float) -> None:
        """Let nobody send for so many seconds from now, because a server asked for that."""
        ...


class SharedHold:
    """Lets everybody send at once, but nobody while the server has asked to be left alone.

    Args:
        who: Which server, as a sentence begins.
        timing: Where time comes from.
    """

    def __init__(self, who: str, timing: Timing) -> None:
        self._who = who
        self._timing = timing
        self._until = timing.clock()

    async def turn(self, time_left_s: float) -> None:
        """See `Pace`."""
        while (wait_s := self._until - self._timing.clock()) > 0:
            if wait_s > time_left_s:
                raise BackendUnavailable(
                    f"{self._who} has asked to be left alone for {wait_s:.0f} s more. Ask again at "
                    f"{self._timing.time_in(wait_s)}."
                )
            await self._timing.sleep(wait_s)
            time_left_s -= wait_s

    def hold(self, seconds: float) -> None:
        """See `Pace`; at most ten minutes."""
        self._until = max(self._until, self._timing.clock() + min(seconds, LONGEST_HOLD_S))


Health: TypeAlias = Choice["unknown", "alive", "failing"]
"""What a query has shown about its endpoint."""


class Admission:
    """Permission to send one query; its holder reports the result in `health`."""

    def __init__(self) -> None:
        self.health: Health = "unknown"
        self.reason = ""

    def failing(self, reason: str) -> None:
        """Report that the endpoint failed, and how."""
        self.health, self.reason = "failing", reason


class CircuitBreaker:
    """Refuses queries after some have failed in a row; later lets one through to see, and all when that succeeds.

    Args:
        who: What it refuses to ask, as a sentence begins.
        failures_until_pause: How many failures in a row make it refuse.
        pause_s: For how many seconds it refuses before one query may try.
        timing: Where time comes from.
    """

    def __init__(self, who: str, *, failures_until_pause: int, pause_s: float, timing: Timing) -> None:
        self._who = who
        self._failures_until_pause = failures_until_pause
        self._pause_s = pause_s
        self._timing = timing
        self._failures = 0
        self._reason = ""
        self._probe_at: float | None = None
        self._probing = False

    @contextmanager
    def admitted(self) -> Generator[Admission]:
        """Enter to send a query; the result that its admission reports is counted at the end.

        Raises:
            BackendUnavailable: Too many queries have failed, and it is not yet time to try again.
        """
        probes = self._check()
        self._probing = self._probing or probes
        admission = Admission()
        try:
            yield admission
        finally:
            if probes:
                self._probing = False
            self._learn(admission, probes=probes)

    def _check(self) -> bool:
        """Return whether the query that is about to start is the trial."""
        if self._probe_at is None:
            return False
        wait_s = self._probe_at - self._timing.clock()
        if wait_s <= 0 and not self._probing:
            return True
        when = "One query is trying it now" if wait_s <= 0 else f"It is tried again at {self._timing.time_in(wait_s)}"
        raise BackendUnavailable(
            f"{self._who} has failed {self._failures} times in a row, so it is left alone for now. "
            f"{when}: ask again then. Last: {self._reason}"
        )

    def _learn(self, admission: Admission, *, probes: bool) -> None:
        if admission.health == "alive":
            self._failures, self._probe_at = 0, None
        elif admission.health == "failing":
            self._failures += 1
            self._reason = admission.reason
            # Queries that were under way when it began to refuse do not put the trial off.
            if probes or (self._probe_at is None and self._failures >= self._failures_until_pause):
                self._probe_at = self._timing.clock() + self._pause_s


_MINUTE_S: Final = 60.0


class SharedRate:
    """Lets so many requests through to one host in any minute; those that come too early wait their turn.

    A minute's worth may come at once; the next one comes when the first of them is a minute old, as servers may count
    from whichever moment they like. While the server has asked to be left alone, nobody is let through.

    Args:
        host: Which server, for messages.
        per_minute: How many requests a minute.
        advice: What those can do who are too many: a full sentence, or nothing.
        timing: Where time comes from.
    """

    def __init__(self, host: str, per_minute: int, *, advice: str = "", timing: Timing | None = None) -> None:
        self._host = host
        self._timing = timing or Timing()
        self._hold = SharedHold(host, self._timing)
        self._per_minute = per_minute
        self._advice = advice
        # When the latest came or will come, up to a minute's worth, the first in front.
        self._turns: deque[float] = deque(maxlen=per_minute)

    async def turn(self, time_left_s: float) -> None:
        """Wait until a request may be sent.

        Raises:
            BackendUnavailable: That would be more than `time_left_s` seconds from now.
        """
        end = self._timing.clock() + time_left_s
        await self._hold.turn(time_left_s)
        now = self._timing.clock()
        wait_s = self._wait_s(now)
        if wait_s > end - now:
            raise BackendUnavailable(self._too_often(wait_s))
        self._turns.append(now + wait_s)
        if wait_s > 0:
            await self._timing.sleep(wait_s)
            await self._hold.turn(end - self._timing.clock())

    def tighten(self, per_minute: int) -> None:
        """Lower the limit to what another graph allows for the same host."""
        if per_minute < self._per_minute:
            self._per_minute = per_minute
            self._turns = deque(self._turns, maxlen=per_minute)

    def hold(self, seconds: float) -> None:
        """Let nobody send for so many seconds from now, because the server asked for that; at most ten minutes."""
        self._hold.hold(seconds)

    def _wait_s(self, now: float) -> float:
        if len(self._turns) < self._per_minute:
            return 0.0
        return max(0.0, self._turns[0] + _MINUTE_S - now)

    def _too_often(self, wait_s: float) -> str:
        return (
            f"{self._host} may be asked {self._per_minute} times a minute, and has been. Ask again in "
            f"{max(1, round(wait_s))} s, or ask for more at once. {self._advice}"
        ).strip()


class Rates:
    """The rates of all hosts, each made when it is first wanted."""

    def __init__(self) -> None:
        self._rates: dict[str, SharedRate] = {}

    def of(self, host: str, per_minute: int, *, advice: str = "", timing: Timing | None = None) -> SharedRate:
        """Return the rate of a host, the same for all who ask it: the least that any of them allows."""
        if host not in self._rates:
            self._rates[host] = SharedRate(host, per_minute, advice=advice, timing=timing)
        self._rates[host].tighten(per_minute)
        return self._rates[host]


RATES = Rates()
"""Those of this process."""
