"""What came out of a soak: answers that were judged, what the process held, and whether anything is wrong."""

import asyncio
import gc
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Final, TypeAlias
from typing import Literal as Choice

from mcp.types import CallToolResult, TextContent

Verdict: TypeAlias = Choice["right", "clear error", "stopped early", "wrong", "unclear error"]

GROWTH_MB: Final = 40.0
"""How much more memory the process may hold at the end than after the first phase, in megabytes (10^6 bytes)."""
BAD: Final[tuple[Verdict, ...]] = ("wrong", "unclear error")
_SHOWN: Final = 5
_FILES: Final = Path("/proc/self/fd")
_MEMORY: Final = Path("/proc/self/status")
_RESIDENT: Final = re.compile(r"VmRSS:\s*(\d+) kB")
_CURSOR: Final = re.compile(r'cursor="[^"]*"')
_CAUSE: Final = re.compile(
    r"HTTP \d{3}|dropped the connection|gave no answer within|in a row, so it is left alone|cannot be reached"
    r"|has asked to be left alone|took longer than|no time for it within"
)
_STEP: Final = re.compile(r"\b(?:[Aa]sk (?:again|for less)|[Cc]heck|Change)\b")


@dataclass(frozen=True, slots=True)
class Said:
    """What a tool answered; cursors, which are each graph's own business, are left out."""

    text: str
    data: Mapping[str, object]
    is_error: bool

    @classmethod
    def by(cls, result: CallToolResult) -> "Said":
        """Return what a result says."""
        text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
        content: dict[str, object] = result.structured_content or {}
        data = {name: value for name, value in content.items() if name != "cursor"}
        if isinstance(summary := data.get("summary"), str):
            data["summary"] = _CURSOR.sub("cursor", summary)
        return cls(_CURSOR.sub("cursor", text), data, result.is_error)


def judged(said: Said, expected: Said) -> Verdict:
    """Say what an answer is worth, beside the one that the same graph gives at hand."""
    if said == expected:
        return "right"
    if said.is_error:
        return "clear error" if _CAUSE.search(said.text) and _STEP.search(said.text) else "unclear error"
    return "stopped early" if said.data.get("status") == "timeout" else "wrong"


@dataclass(frozen=True, slots=True)
class Held:
    """What this process holds, and how many connections the proxy has open.

    Args:
        connections: Of our clients, to the proxy.
        threads: In Python.
        tasks: Of the event loop, where one runs.
        files: Open file descriptors, those of the proxy among them; 0 where the system does not tell.
        megabytes: Resident memory; 0 where the system does not tell.
    """

    connections: int
    threads: int
    tasks: int
    files: int
    megabytes: float

    @classmethod
    def now(cls, connections: int, *, in_loop: bool) -> "Held":
        """Look."""
        gc.collect()
        tasks = len(asyncio.all_tasks()) if in_loop else 0
        files = len(list(_FILES.iterdir())) if _FILES.is_dir() else 0
        found = _RESIDENT.search(_MEMORY.read_text(encoding="ascii")) if _MEMORY.is_file() else None
        return cls(connections, threading.active_count(), tasks, files, int(found[1]) * 1_024 / 1e6 if found else 0.0)


@dataclass(slots=True)
class Tally:
    """Answers as they come.

    Attributes:
        verdicts: How many there were of each kind.
        seconds: How long each took.
        bad: Some of those that must not be, as tool, arguments and text.
        errors: The clear errors without what differs from one to the next, and how often each came.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter[Verdict])
    seconds: list[float] = field(default_factory=list[float])
    bad: list[str] = field(default_factory=list[str])
    errors: Counter[str] = field(default_factory=Counter[str])

    def add(self, what: str, said: Said, expected: Said, seconds: float) -> Verdict:
        """Judge an answer, and keep what came of it."""
        verdict = judged(said, expected)
        self.verdicts[verdict] += 1
        self.seconds.append(seconds)
        if verdict in BAD and len(self.bad) < _SHOWN:
            self.bad.append(f"{what}: {said.text[:300]}")
        if verdict == "clear error":
            self.errors[re.sub(r"\d[\d:.]*", "#", said.text)[:90]] += 1
        return verdict


@dataclass(frozen=True)
class SoakReport:
    """What a soak showed.

    Args:
        tally: The answers.
        weather: What the proxy did to requests, and how often.
        phases: What was held at the end of each phase, when nothing was under way.
        before: What was held before the graph was opened.
        after: What was held when it was closed.
        most_connections: How many connections the settings allow.
        most_threads: How many threads may wait for work.
        recovered: Whether every call was answered rightly when the weather was fair again.
    """

    tally: Tally
    weather: Mapping[str, int]
    phases: Sequence[Held]
    before: Held
    after: Held
    most_connections: int
    most_threads: int
    recovered: bool

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, as sentences; nothing should be."""
        first, last = self.phases[0], self.phases[-1]
        grown = last.megabytes - first.megabytes
        # A connection of ours has two ends here, and the proxy may have one to the engine for each.
        files = self.before.files + 3 * self.most_connections + self.most_threads
        found = {
            f"{number} answers are of the kind {verdict!r}": number > 0
            for verdict, number in self.tally.verdicts.items()
            if verdict in BAD
        }
        found |= {
            f"{last.connections} connections are open, where {self.most_connections} are allowed": (
                last.connections > self.most_connections
            ),
            f"{last.threads} threads are left of a phase; at first {first.threads}": (
                last.threads > max(first.threads, self.before.threads + self.most_threads)
            ),
            f"{last.tasks} tasks are left of a phase; at first {first.tasks}": last.tasks > first.tasks,
            f"{last.files} files are open; before it {self.before.files}": last.files > files,
            f"memory grew by {grown:.0f} MB after the first phase": grown > GROWTH_MB,
            f"{self.after.connections} connections outlive the graph": self.after.connections > 0,
            f"{self.after.threads} threads outlive the graph; before it {self.before.threads}": (
                self.after.threads > self.before.threads
            ),
            f"{self.after.files} files outlive the graph; before it {self.before.files}": (
                self.after.files > self.before.files
            ),
            "calls still fail when the weather is fair again": not self.recovered,
            "no answer was right": not self.tally.verdicts["right"],
        }
        return tuple(text for text, holds in found.items() if holds)

    def lines(self) -> list[str]:
        """Return the figures for people."""
        taken = quantiles(self.tally.seconds, n=20) if len(self.tally.seconds) > 1 else self.tally.seconds * 19
        return [
            f"answers: {len(self.tally.seconds):,}: {_counted(self.tally.verdicts)}",
            f"weather: {sum(self.weather.values()):,} requests: {_counted(self.weather)}",
            f"seconds a call: median {taken[9]:.3f}, p95 {taken[18]:.2f}, worst {max(self.tally.seconds):.2f}",
            f"before:  {_held(self.before)}",
            *(f"phase {number}: {_held(held)}" for number, held in enumerate(self.phases, 1)),
            f"after:   {_held(self.after)}",
            "recovered at once" if self.recovered else "did not recover",
            *(f"  {number:5} {text}" for text, number in self.tally.errors.most_common(8)),
            *(f"BAD {each}" for each in self.tally.bad),
            *(f"WRONG: {problem}." for problem in self.problems),
        ]


def _counted(numbers: Mapping[str, int] | Mapping[Verdict, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in sorted(numbers.items(), key=lambda each: -each[1]))


def _held(held: Held) -> str:
    return (
        f"{held.connections} connections, {held.threads} threads, {held.tasks} tasks, {held.files} files, "
        f"{held.megabytes:.0f} MB"
    )
