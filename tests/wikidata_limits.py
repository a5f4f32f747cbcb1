"""The limits that Wikimedia documents for those who ask, in front of any script.

A client is known by its `User-Agent`: `name/version (contact) library/version` is somebody, the same without a contact
is a stranger, and what names no program is refused. Each path counts for itself.
"""

import math
import re
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fault_endpoint import Asked, Script, Wire, refusing

MINUTE_S = 60.0
_PROGRAM = re.compile(r"[A-Za-z][\w.-]*/\d\S*")
_CONTACT = re.compile(r"\(\S*(?:@|https?://)\S+\)")


@dataclass(frozen=True, slots=True)
class Limits:
    """How many requests a client may send in any minute, and have under way at once."""

    known_per_minute: int = 200
    stranger_per_minute: int = 10
    queries_at_once: int = 5
    api_at_once: int = 3


@dataclass
class Limited:
    """Follows a script for those who keep to the limits, and refuses the others as Wikimedia does.

    Args:
        script: What answers.
        clock: Seconds that only go forward: those that the client lives by.
        limits: How much is too much.
    """

    script: Script
    clock: Callable[[], float]
    limits: Limits = field(default_factory=Limits)
    refusals: list[str] = field(default_factory=list[str])
    _came: defaultdict[tuple[str, str], deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _at_once: defaultdict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))

    async def __call__(self, asked: Asked, wire: Wire) -> None:
        """Answer a request, or refuse it."""
        client = asked.headers.get("user-agent", "")
        if _PROGRAM.match(client) is None:
            await self._refuse(refusing(403, "Set a user agent that says who you are."), "nameless", asked, wire)
            return
        place = (client, asked.path)
        wait_s = self._wait_s(place)
        if wait_s > 0:
            too_often = refusing(429, "You have sent too many requests.", Retry_After=str(math.ceil(wait_s)))
            await self._refuse(too_often, "too often", asked, wire)
        elif self._at_once[place] >= self._most_at_once(asked.path):
            too_many = refusing(429, "You have too many requests under way.", Retry_After="1")
            await self._refuse(too_many, "too many at once", asked, wire)
        else:
            await self._serve(place, asked, wire)

    async def _serve(self, place: tuple[str, str], asked: Asked, wire: Wire) -> None:
        self._came[place].append(self.clock())
        self._at_once[place] += 1
        try:
            await self.script(asked, wire)
        finally:
            self._at_once[place] -= 1

    async def _refuse(self, refusal: Script, why: str, asked: Asked, wire: Wire) -> None:
        self.refusals.append(why)
        await refusal(asked, wire)

    def _wait_s(self, place: tuple[str, str]) -> float:
        came, now = self._came[place], self.clock()
        while came and came[0] + MINUTE_S <= now:
            came.popleft()
        allowed = self.limits.known_per_minute if _CONTACT.search(place[0]) else self.limits.stranger_per_minute
        return came[0] + MINUTE_S - now if len(came) >= allowed else 0.0

    def _most_at_once(self, path: str) -> int:
        return self.limits.api_at_once if path.endswith("/api.php") else self.limits.queries_at_once
