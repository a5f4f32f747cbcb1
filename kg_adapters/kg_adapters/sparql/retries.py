"""When a failed request is worth repeating, and after how long."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Protocol

from kg_adapters.errors import BackendUnavailable
from kg_adapters.sparql.timing import Timing

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
    """Return the seconds that a `Retry-After` header asks for: a number, or an HTTP date; None where it says neither.

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
