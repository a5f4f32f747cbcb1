"""The one rate at which a process asks a host, however many graphs it has open."""

from collections import deque
from typing import Final

from kg_adapters.errors import BackendUnavailable
from kg_adapters.sparql.retries import SharedHold
from kg_adapters.sparql.timing import Timing

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
        """Let no more through than somebody else allows for the same host."""
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
