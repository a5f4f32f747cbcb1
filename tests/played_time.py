"""Time and chance that a test plays: nothing waits, and every pause is on record."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import anyio.lowlevel

from kg_adapters.http.pacing import Timing

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@dataclass
class PlayedTime:
    """A clock that moves when somebody sleeps, or when a test says so."""

    chance: float = 0.0
    elapsed_s: float = 0.0
    pauses: list[float] = field(default_factory=list[float])

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.elapsed_s += seconds
        await anyio.lowlevel.checkpoint()

    @property
    def timing(self) -> Timing:
        return Timing(
            clock=lambda: self.elapsed_s,
            now=lambda: START + timedelta(seconds=self.elapsed_s),
            sleep=self.sleep,
            chance=lambda: self.chance,
        )
