"""What was measured: lines of figures beside targets and peers, as values that become a table and JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, TypeAlias

from benchmarks.timing import Timings

Unit: TypeAlias = Literal["s", "MB", "calls/s", "share", "tokens", "calls", "characters"]
Aspect: TypeAlias = Literal["median", "p90", "p95", "worst", "ratio"]

TIMES: Final = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured quantity; `p90`, `p95` and `worst` are None where a single number says it all."""

    median: float
    unit: Unit = "s"
    p95: float | None = None
    p90: float | None = None
    worst: float | None = None

    @classmethod
    def of(cls, timings: Timings) -> "Figure":
        """Return the figure of timings, with how they are spread where there are enough to speak of that."""
        if len(timings.seconds) < 20:
            return cls(timings.median)
        return cls(timings.median, p95=timings.p95, p90=timings.p90, worst=timings.worst)


@dataclass(frozen=True, slots=True)
class Target:
    """What the median, a percentile, the longest or the ratio to the base may be, in the figure's unit.

    Args:
        aspect: Which of them.
        limit: The most that it may be, or the least.
        least: Whether it is the least, as with a share of right answers.
    """

    aspect: Aspect
    limit: float
    least: bool = False

    def holds(self, reached: float) -> bool:
        """Whether a figure is on the right side of the limit."""
        return reached >= self.limit if self.least else reached <= self.limit


@dataclass(frozen=True, slots=True)
class Base:
    """What a figure is measured against, and how many times as much ours takes."""

    name: str
    figure: Figure
    ratio: float


@dataclass(frozen=True, slots=True)
class Peer:
    """What somebody else takes for the same, and how many times as much as ours that is."""

    figure: Figure
    ratio: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table.

    Args:
        what: What was done, as people say it.
        ours: What it took us.
        targets: All of them must hold.
        base: What the ratio is to.
        peers: The same job done by others, by their names.
    """

    what: str
    ours: Figure
    targets: tuple[Target, ...] = ()
    base: Base | None = None
    peers: Mapping[str, Peer] = field(default_factory=dict[str, Peer])

    @property
    def met(self) -> bool | None:
        """Whether every target holds; None where there is none."""
        return all(target.holds(self.reached(target)) for target in self.targets) if self.targets else None

    def reached(self, target: Target) -> float:
        """Return what was measured of the aspect that a target is about."""
        if target.aspect == "ratio":
            assert self.base is not None, f"{self.what!r} has a target for its ratio, but nothing to compare with"
            return self.base.ratio
        spread = {"p90": self.ours.p90, "p95": self.ours.p95, "worst": self.ours.worst}.get(target.aspect)
        return self.ours.median if spread is None else spread


@dataclass(frozen=True, slots=True)
class Section:
    """The lines about one subject, and what a reader must know about them."""

    name: str
    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def line_of(
    what: str,
    timings: Mapping[str, Timings],
    *,
    ours: str = "ours",
    base: str | None = None,
    targets: tuple[Target, ...] = (),
) -> Line:
    """Return the line of one race: `ours` in front, `base` as what it is measured against, the others as peers."""
    own = timings[ours]
    against = None
    if base is not None:
        against = Base(base, Figure.of(timings[base]), own.ratio_to(timings[base]))
    peers = {
        name: Peer(Figure.of(theirs), theirs.ratio_to(own))
        for name, theirs in timings.items()
        if name not in {ours, base}
    }
    return Line(what, Figure.of(own), targets, against, peers)


def as_json(sections: list[Section], about: Mapping[str, object]) -> dict[str, object]:
    """Return everything that was measured as plain values."""
    return {
        **about,
        "sections": [
            {
                "name": section.name,
                "title": section.title,
                "notes": section.notes,
                "lines": [{**asdict(line), "met": line.met} for line in section.lines],
            }
            for section in sections
        ],
    }
