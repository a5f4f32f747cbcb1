"""Contestants that do the same work in turns, so that a noisy machine disturbs all of them alike."""

import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter
from typing import Final, TypeAlias, TypeVar

Case = TypeVar("Case")
Contestant: TypeAlias = Callable[[Case], Awaitable[object]]

_FEWEST: Final = 5
_LONGEST: Final = 60


@dataclass(frozen=True, slots=True)
class Timings:
    """How long one contestant took for each case, in seconds, in the order of the cases."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median, in seconds."""
        return median(self.seconds)

    @property
    def p95(self) -> float:
        """What nineteen of twenty cases stay under, in seconds."""
        return quantiles(self.seconds, n=20)[-1] if len(self.seconds) > 1 else self.median

    @property
    def p99(self) -> float:
        """What ninety-nine of a hundred cases stay under, in seconds."""
        return quantiles(self.seconds, n=100)[-1] if len(self.seconds) > 1 else self.median

    @property
    def p90(self) -> float:
        """What nine of ten cases stay under, in seconds."""
        return quantiles(self.seconds, n=10)[-1] if len(self.seconds) > 1 else self.median

    @property
    def worst(self) -> float:
        """The longest, in seconds."""
        return max(self.seconds)

    def ratio_to(self, other: "Timings") -> float:
        """Return how many times as long as `other` this took, by the medians of the cases that both did."""
        shared = min(len(self.seconds), len(other.seconds))
        return median(self.seconds[:shared]) / median(other.seconds[:shared])


async def race(
    contestants: Mapping[str, Contestant[Case]], cases: Sequence[Case], *, rounds: int = 1, budget_s: float = 20.0
) -> dict[str, Timings]:
    """Time every contestant on every case, taking turns, and return the timings by name.

    A contestant that has used up its budget drops out, so its timings are about the first cases only.

    Args:
        contestants: What to time; each gets one case and answers it.
        cases: What to ask, in this order.
        rounds: How often to go through the cases.
        budget_s: How many seconds each contestant may take in all; the first five cases are always timed.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    running = dict(contestants)
    await _warm_up(contestants, cases)
    for turn, case in enumerate(case for _ in range(rounds) for case in cases):
        # Whoever comes second finds the case's data in the processor's cache.
        order = list(running) if turn % 2 == 0 else list(reversed(running))
        for name in order:
            taken[name].append(await time_once(running[name], case))
            if len(taken[name]) >= _FEWEST and sum(taken[name]) > budget_s:
                del running[name]
    return {name: Timings(tuple(seconds)) for name, seconds in taken.items()}


async def time_once(contestant: Contestant[Case], case: Case) -> float:
    """Return how long one case takes, in seconds."""
    started = perf_counter()
    await contestant(case)
    return perf_counter() - started


async def differing(contestants: Mapping[str, Contestant[Case]], cases: Sequence[Case]) -> list[str]:
    """Return one line for each case whose answers are not equal: whatever is compared must do the same job."""
    lines: list[str] = []
    for case in cases:
        answers = {name: await contestant(case) for name, contestant in contestants.items()}
        first, *others = answers.values()
        if any(answer != first for answer in others):
            lines.append(
                f"{case}: " + ", ".join(f"{name} {str(answer)[:_LONGEST]}" for name, answer in answers.items())
            )
    return lines


async def _warm_up(contestants: Mapping[str, Contestant[Case]], cases: Sequence[Case]) -> None:
    for contestant in contestants.values():
        for case in cases[:2]:
            await contestant(case)
    # A peer may hold millions of objects; walking through them during a call would be charged to whoever is called.
    gc.collect()
    gc.freeze()
