"""Time and chance that a test plays: nothing waits, and every pause is on record."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import anyio
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


class PlayedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test can put forward: a deadline passes at once, and not before."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_s = 0.0

    def time(self) -> float:
        return super().time() + self._passed_s

    def let_pass(self, seconds: float) -> None:
        self._passed_s += seconds


def let_pass(seconds: float) -> None:
    """Put the clock of this test's event loop forward."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PlayedLoop)
    loop.let_pass(seconds)


async def let_pass_after(event: anyio.Event, seconds: float) -> None:
    """Wait for an event, and let so many seconds pass at once."""
    await event.wait()
    let_pass(seconds)


async def hang() -> None:
    """Never return, while time passes fast: whatever waits for this is given up at its deadline."""
    while True:
        let_pass(0.1)
        await anyio.lowlevel.checkpoint()
