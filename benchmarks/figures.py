"""Timing in turns, and what comes of it: figures beside targets and peers, as values, a table and JSON."""

import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from time import perf_counter
from typing import Final, Literal, TypeAlias, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

Case = TypeVar("Case")
Contestant: TypeAlias = Callable[[Case], Awaitable[object]]
Unit: TypeAlias = Literal["s", "MB", "calls/s", "share", "tokens"]

TIMES: Final = "\N{MULTIPLICATION SIGN}"
_FEWEST: Final = 5
_FEWEST_FOR_P95: Final = 20
_LONGEST_ANSWER: Final = 60
_MISSING: Final = "·"


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
        """The 95th percentile, in seconds."""
        return quantiles(self.seconds, n=20)[-1] if len(self.seconds) > 1 else self.median

    def ratio_to(self, other: "Timings") -> float:
        """Return how many times as long as `other` this took, by the medians of the cases that both did."""
        shared = min(len(self.seconds), len(other.seconds))
        return median(self.seconds[:shared]) / median(other.seconds[:shared])


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity; `p95` is None where a single number is enough."""

    median: float
    unit: Unit = "s"
    p95: float | None = None

    @classmethod
    def of(cls, timings: Timings, unit: Unit = "s") -> "Figure":
        """Return the figure of timings, with its spread where there are enough of them."""
        return cls(timings.median, unit, timings.p95 if len(timings.seconds) >= _FEWEST_FOR_P95 else None)


@dataclass(frozen=True, slots=True)
class Target:
    """The most that a median may be, in its unit, or its ratio to the figure of the peer in `beside`.

    Args:
        limit: The most, or with `least` the least.
        beside: The name of a peer; without it, the limit is about the median itself.
        least: Whether the limit is a lower bound, as with a share of right answers.
    """

    limit: float
    beside: str = ""
    least: bool = False


@dataclass(frozen=True, slots=True)
class Peer:
    """What another program takes for the same job, and the ratio of ours to it."""

    figure: Figure
    ratio: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: what was done, what it took us, what it took others, and the target."""

    what: str
    ours: Figure
    target: Target | None = None
    peers: Mapping[str, Peer] = field(default_factory=dict[str, Peer])

    @property
    def met(self) -> bool | None:
        """Whether the target holds; None without one, and where its peer did not take part."""
        if self.target is None or (self.target.beside and self.target.beside not in self.peers):
            return None
        reached = self.peers[self.target.beside].ratio if self.target.beside else self.ours.median
        return reached >= self.target.limit if self.target.least else reached <= self.target.limit


@dataclass(frozen=True, slots=True)
class Section:
    """The lines about one subject, and what a reader must know about them."""

    name: str
    title: str
    lines: Sequence[Line]
    notes: Sequence[str] = ()


def beside(own: Figure, peers: Mapping[str, Figure]) -> dict[str, Peer]:
    """Return the figures of others with the ratio of ours to each."""
    return {name: Peer(theirs, own.median / theirs.median) for name, theirs in peers.items()}


def line_of(what: str, timings: Mapping[str, Timings], target: Target | None = None) -> Line:
    """Return the line of one race, whose first contestant is ours."""
    (_, own), *others = timings.items()
    peers = {name: Peer(Figure.of(theirs), own.ratio_to(theirs)) for name, theirs in others}
    return Line(what, Figure.of(own), target, peers)


async def race(
    contestants: Mapping[str, Contestant[Case]], cases: Sequence[Case], *, rounds: int = 1, budget_s: float = 20.0
) -> dict[str, Timings]:
    """Time every contestant on every case, taking turns, so that a noisy machine disturbs all of them alike.

    A contestant that has used up its budget drops out, so its timings are about the first cases only.

    Args:
        contestants: What to time; each gets one case and answers it.
        cases: What to ask, in this order.
        rounds: How often to go through the cases.
        budget_s: How many seconds each contestant may take in all; the first five cases are always timed.
    """
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    running = dict(contestants)
    for contestant in contestants.values():
        for case in cases[:2]:
            await contestant(case)
    # A peer may hold millions of objects; a collection during a call would be charged to whoever is called.
    gc.collect()
    gc.freeze()
    for turn, case in enumerate(case for _ in range(rounds) for case in cases):
        # Whoever comes second finds the case's data in the processor's cache.
        for name in list(running) if turn % 2 == 0 else list(reversed(running)):
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
    """Return a note for each case whose answers are not equal: whatever is compared must do the same job."""
    notes: list[str] = []
    for case in cases:
        answers = {name: await contestant(case) for name, contestant in contestants.items()}
        first, *others = answers.values()
        if any(answer != first for answer in others):
            shown = (f"{name} {str(answer)[:_LONGEST_ANSWER]}" for name, answer in answers.items())
            notes.append(f"Answers differ: {case}: {', '.join(shown)}")
    return notes


def as_json(sections: Sequence[Section]) -> list[dict[str, object]]:
    """Return everything that was measured as plain values."""
    return [
        {**asdict(section), "lines": [{**asdict(line), "met": line.met} for line in section.lines]}
        for section in sections
    ]


def print_section(console: Console, section: Section) -> None:
    """Print one section with a column for each peer that takes part."""
    peers = list(dict.fromkeys(name for line in section.lines for name in line.peers))
    table = Table(title=section.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("what", "median", "p95", "target", "met", *peers):
        table.add_column(heading, justify="left" if heading == "what" else "right", overflow="fold")
    for line in section.lines:
        table.add_row(*_cells(line, peers))
    console.print(table)
    for note in section.notes:
        console.print(f"  {note}", style="dim", highlight=False, markup=False)


def print_verdict(console: Console, sections: Sequence[Section]) -> None:
    """Print how many targets hold, and which do not."""
    judged = [line for section in sections for line in section.lines if line.met is not None]
    missed = [line for line in judged if not line.met]
    console.print(f"\n{len(judged) - len(missed)} of {len(judged)} targets met.", style="bold", highlight=False)
    for line in missed:
        console.print(f"  missed: {line.what}", style="red", highlight=False, markup=False)


def _cells(line: Line, peers: Sequence[str]) -> Iterator[str | Text]:
    unit, target = line.ours.unit, line.target
    yield line.what
    yield Text(_amount(line.ours.median, unit), "bold")
    yield _MISSING if line.ours.p95 is None else _amount(line.ours.p95, unit)
    if target is None:
        yield _MISSING
    else:
        limit = f"{target.limit:g} {TIMES} {target.beside}" if target.beside else _amount(target.limit, unit)
        yield f"{'≥' if target.least else '≤'} {limit}"
    yield _MISSING if line.met is None else Text("✓", "bold green") if line.met else Text("✗", "bold red")
    for name in peers:
        peer = line.peers.get(name)
        yield _MISSING if peer is None else f"{_amount(peer.figure.median, unit)} ({peer.ratio:.3g} {TIMES})"


def _amount(value: float, unit: Unit) -> str:
    """Return a quantity as people write it, with three significant digits where it is a time."""
    if unit == "s":
        scale, name = (1e6, "µs") if value < 1e-3 else (1e3, "ms") if value < 1 else (1, "s")
        shown = value * scale
        return f"{shown:,.{0 if shown >= 100 else 1 if shown >= 10 else 2}f} {name}"
    if unit == "share":
        return f"{value:.1%}"
    return f"{value:,.0f}/s" if unit == "calls/s" else f"{value:,.0f} {unit}"
