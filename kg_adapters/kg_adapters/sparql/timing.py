"""Time and chance, as arguments: so that what waits, repeats and gives up can be tried without waiting."""

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import anyio


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
