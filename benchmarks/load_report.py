"""What many clients at once were answered, how fast, and what the server held before and after."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.footprint import Footprint
from benchmarks.soak_report import BAD, Tally, Verdict
from benchmarks.timing import Timings

MOST_SPREAD: Final = 5.0
"""How many times the median p95 may be."""
GROWTH_MB: Final = 150.0
"""How much more memory the server may hold than when everything had been asked once: new questions fill its caches."""
_MORE_FILES: Final = 8
_SHOWN_LINES: Final = 5


@dataclass(frozen=True)
class LoadReport:
    """One load over one transport.

    Args:
        name: What it was, as people say it.
        seconds: How long it took.
        tallies: The answers by kind.
        acknowledged: How many facts the server said it keeps.
        lost: How many of these were not there in the end.
        before: What the server held when everything had been asked once.
        after: What it held when it had rested.
        most_threads: How many threads it may keep for later work.
        logged: What it wrote to its log.
    """

    name: str
    seconds: float
    tallies: Mapping[str, Tally]
    acknowledged: int
    lost: int
    before: Footprint
    after: Footprint
    most_threads: int
    logged: Sequence[str]

    @property
    def timings(self) -> Timings:
        """How long each call took, of any kind."""
        return Timings(tuple(taken for tally in self.tallies.values() for taken in tally.seconds))

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many answers there were of each worth."""
        return sum((tally.verdicts for tally in self.tallies.values()), Counter[Verdict]())

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong on any machine, as sentences; nothing should be."""
        grown = self.after.megabytes - self.before.megabytes
        found = {
            **{f"{self.verdicts[kind]} answers are of the kind {kind!r}": self.verdicts[kind] > 0 for kind in BAD},
            "no answer was right": not self.verdicts["right"],
            f"{self.lost} of {self.acknowledged} facts that were acknowledged are lost": self.lost > 0,
            f"{self.after.files} descriptors are open; before it {self.before.files}": (
                self.after.files > self.before.files + _MORE_FILES
            ),
            f"{self.after.threads} threads are left; before it {self.before.threads}": (
                self.after.threads > self.before.threads + self.most_threads
            ),
            f"memory grew by {grown:.0f} MB": grown > GROWTH_MB,
            f"the server logged {len(self.logged)} lines": bool(self.logged),
        }
        return tuple(text for text, holds in found.items() if holds)

    @property
    def misses(self) -> tuple[str, ...]:
        """The targets that are missed, which a busy machine may do."""
        timings = self.timings
        late = self.verdicts["clear error"] + self.verdicts["stopped early"]
        found = {
            f"p95 is {timings.p95 / timings.median:.1f} times the median": timings.p95 > MOST_SPREAD * timings.median,
            f"{late} answers came too late": late > 0,
        }
        return tuple(text for text, holds in found.items() if holds)

    def lines(self) -> list[str]:
        """Return the figures for people."""
        every = self.timings
        calls = len(every.seconds)
        kinds = sorted(self.tallies.items(), key=lambda each: -sum(each[1].seconds))
        worths = ", ".join(f"{number:,} {worth}" for worth, number in self.verdicts.most_common())
        errors = sum((tally.errors for tally in self.tallies.values()), Counter[str]())
        return [
            f"{self.name}: {calls:,} calls in {self.seconds:.0f} s, {calls / self.seconds:.0f} a second: {worths}",
            _row("", "calls", "p50 ms", "p95 ms", "p99 ms", "p95/p50"),
            _measured("all", every),
            *(_measured(kind, Timings(tuple(tally.seconds))) for kind, tally in kinds),
            f"memory: {self.acknowledged:,} facts acknowledged, {self.lost} lost",
            f"before: {self.before}",
            f"after:  {self.after}",
            *(f"  {number:5} {text}" for text, number in errors.most_common(8)),
            *(f"LOG {line}" for line in self.logged[:_SHOWN_LINES]),
            *(f"BAD {each}" for tally in self.tallies.values() for each in tally.bad),
            *(f"MISSED: {miss}." for miss in self.misses),
            *(f"WRONG: {problem}." for problem in self.problems),
        ]


def _measured(kind: str, timings: Timings) -> str:
    figures = (timings.median, timings.p95, timings.p99)
    ratio = timings.p95 / timings.median
    return _row(kind, f"{len(timings.seconds):,}", *(f"{figure * 1e3:,.1f}" for figure in figures), f"{ratio:.1f}")


def _row(kind: str, *cells: str) -> str:
    return f"  {kind:26}" + "".join(f"{cell:>10}" for cell in cells)
