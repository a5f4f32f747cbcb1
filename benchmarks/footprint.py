"""What processes hold: memory, threads and descriptors, as the system tells it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROCESSES: Final = Path("/proc")
_KIB_PER_MB: Final = 1_000_000 / 1_024


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a process holds, and what those that it has started do; zero where the system does not tell.

    Args:
        threads: Its threads.
        files: Its open descriptors.
        megabytes: Its resident memory, 10^6 bytes.
        workers: How many processes it has started that still run.
        workers_megabytes: Their resident memory; what they share is counted for each.
        cpu_s: Seconds that the processors have spent on all of them.
    """

    threads: int = 0
    files: int = 0
    megabytes: float = 0.0
    workers: int = 0
    workers_megabytes: float = 0.0
    cpu_s: float = 0.0

    @classmethod
    def of(cls, number: int) -> "Footprint":
        """Look at a process, given its number."""
        if not (_PROCESSES / str(number) / "status").is_file():
            return cls()
        workers = list(_descendants(number))
        return cls(
            threads=_field(number, "Threads"),
            files=len(list((_PROCESSES / str(number) / "fd").iterdir())),
            megabytes=_field(number, "VmRSS") / _KIB_PER_MB,
            workers=len(workers),
            workers_megabytes=sum(_field(each, "VmRSS") for each in workers) / _KIB_PER_MB,
            cpu_s=sum(_cpu_s(each) for each in (number, *workers)),
        )

    def __str__(self) -> str:
        """Return it for people."""
        return (
            f"{self.megabytes:.0f} MB, {self.files} descriptors, {self.threads} threads, "
            f"{self.workers} workers with {self.workers_megabytes:.0f} MB, {self.cpu_s:.1f} s of processor time"
        )


def children_of(number: int) -> tuple[int, ...]:
    """Return the numbers of the processes that one has started and that still run."""
    found: list[int] = []
    for task in (_PROCESSES / str(number) / "task").glob("*/children"):
        found += [int(child) for child in _read(task).split()]
    return tuple(found)


def _descendants(number: int) -> Iterator[int]:
    for child in children_of(number):
        yield child
        yield from _descendants(child)


def _field(number: int, name: str) -> int:
    found = [line for line in _read(_PROCESSES / str(number) / "status").splitlines() if line.startswith(f"{name}:")]
    return int(found[0].split()[1]) if found else 0


def _cpu_s(number: int) -> float:
    numbers = _read(_PROCESSES / str(number) / "stat").rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK") if numbers else 0.0


def _read(file: Path) -> str:
    """Return what a file of the system says; nothing when its process has ended meanwhile."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
