"""What is ordered from the process that parses a file, what it sends, and the time and memory that it has."""

import signal
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.errors import BackendError, InvalidSource, KGError
from kg_adapters.files.rows import Row, StatementColumn
from kg_adapters.files.sources import Source
from kg_adapters.open_options import ReadingLimits, Refused, setting
from kg_adapters.worker_process import WorkerEnded, WorkerProcess

if TYPE_CHECKING:  # numpy, which the process of a file that is no table does without
    from kg_adapters.tables.passes import Surveyed, TableTask

OUT_OF_MEMORY: Final = 75
"""The exit code of a process whose memory did not suffice."""
_ENDED_FOR_MEMORY: Final = frozenset({OUT_OF_MEMORY, -signal.SIGABRT, -getattr(signal, "SIGKILL", 9)})
_PATIENCE_S: Final = 0.25


@dataclass(frozen=True, slots=True)
class ReadOrder:
    """What to read, and how.

    Args:
        source: The file.
        limits: What it may ask for.
        salvage: Whether to go on behind what cannot be read.
        languages: The languages of names, where a file has those of all.
        label_keys: Which features name the nodes of a `graph.json`, as `TYPE=FEATURE`.
        table: What to do with a table; None where it has turned out to be none, so that only the problem is sent.
        hash_seed: Makes hashes of texts the same in all processes that are started with it.
    """

    source: Source
    limits: ReadingLimits
    salvage: bool
    languages: tuple[str, ...] = ("en", "mul")
    label_keys: tuple[str, ...] = ()
    table: "TableTask | None" = None
    hash_seed: int | None = None


@dataclass(frozen=True, slots=True)
class StatementLines:
    """Statements as lines of N-Quads."""

    lines: bytes


@dataclass(frozen=True, slots=True)
class Problem:
    """What cannot be read, and why."""

    text: str


@dataclass(frozen=True, slots=True)
class Note:
    """What was guessed about the file."""

    text: str


@dataclass(frozen=True, slots=True)
class End:
    """The file is read; the prefixes that it declares."""

    prefixes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StatementColumns:
    """Statements by their relations, which come from a table or a list of edges."""

    columns: Sequence[StatementColumn]

    def __len__(self) -> int:
        """Return how many statements there are."""
        return sum(len(column.heads) for column in self.columns)

    def rows(self) -> list[Row]:
        """Return the statements as rows."""
        return [row for column in self.columns for row in column.rows()]


Content: TypeAlias = "StatementLines | StatementColumns | Surveyed | ox.Quad | Problem | Note | End | None"


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of the process.

    Args:
        content: What it holds: many statements, one that is too long for a line, or something about the file; nothing
            where only time has passed.
        position: How many bytes of the file were read.
        ticks: How far parsing has come, in steps that are never far apart.
    """

    content: Content
    position: int
    ticks: int


class ReadingEnded(Refused):
    """The process that parses a file was ended, or ended by itself, before it sent its last frame."""


def parsed_frames(
    order: ReadOrder, on_wait: Callable[[], None], clock: Callable[[], float] = time.monotonic
) -> Generator[Frame]:
    """Yield the frames that a process sends about a file.

    Args:
        order: What to read.
        on_wait: Called again and again while nothing comes; if it raises, the process is ended.
        clock: Seconds, from any beginning.

    Raises:
        ReadingEnded: It made no progress in the time that the limits give, or ended before its last frame.
        InvalidSource: It could not be started, or cannot read the file.
    """
    try:
        worker = WorkerProcess("kg_adapters.files.process:send_file", order, hash_seed=order.hash_seed)
    except BackendError as error:
        raise InvalidSource(f"{order.source.path} cannot be read: {error}") from error
    # A thread receives, since nothing else can wait for a pipe with a deadline on every system.
    with ThreadPoolExecutor(1) as thread, closing(worker):
        position, ticks, waited_s = 0, 0, 0.0
        coming = thread.submit(worker.receive)
        while True:
            since = clock()
            try:
                message = coming.result(_PATIENCE_S)
                coming = thread.submit(worker.receive)
            except TimeoutError:
                message = None
            except WorkerEnded:
                raise ReadingEnded(f"byte {position:,}: {_reason(worker.process.wait(), order)}") from None
            waited_s += clock() - since
            if message is None:
                on_wait()
            if isinstance(message, KGError):
                raise message
            if isinstance(message, Frame):
                position = message.position
                ticks, waited_s = (message.ticks, 0.0) if message.ticks > ticks else (ticks, waited_s)
                yield message
                if isinstance(message.content, End):
                    return
            if waited_s > order.limits.stall_s:
                raise ReadingEnded(
                    f"byte {position:,}: reading was stopped because it made no progress for {order.limits.stall_s:g} s"
                )


def _reason(code: int, order: ReadOrder) -> str:
    if code in _ENDED_FOR_MEMORY:
        return (
            f"reading it takes more memory than {order.limits.memory:,} MB; {setting('imports.memory_mb')} allows more"
        )
    name = f"signal {-code}" if code < 0 else f"code {code}"
    return f"the parser crashed (the process ended with {name}); it may be nested too deeply, or damaged"
