"""The process that parses a file: what is ordered from it, the frames that it sends back, and its limits."""

import json
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Final, Self

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.files.sources import Source
from kg_adapters.open_options import ReadingLimits, Refused, setting
from kg_boundary.machine import child_environment

LONGEST_STATEMENTS: Final = 1 << 23
"""How many bytes of statements a frame holds at most; the parser takes no more than twice as many at once."""

_HEADER: Final = struct.Struct("<cQQQ")

_LONGEST: Final = 1 << 32

_LENGTH: Final = struct.Struct("<Q")


class Kind(bytes, Enum):
    """What a frame holds."""

    STATEMENTS = b"Q"
    LONG_STATEMENT = b"L"
    TICK = b"T"
    PROBLEM = b"P"
    NOTE = b"N"
    REFUSAL = b"R"
    END = b"E"


@dataclass(frozen=True, slots=True)
class Frame:
    """One message.

    Args:
        kind: What it holds.
        body: N-Quads; or N-Quads of one statement, with their length before them and the literal's value behind them;
            or the text of a problem, of an error or of what was guessed; or at the end the file's prefixes as JSON.
        position: How many bytes of the file were read.
        ticks: How far parsing has come, in steps that are never far apart.
    """

    kind: Kind
    body: bytes = b""
    position: int = 0
    ticks: int = 0


def write_frame(frame: Frame, stream: IO[bytes]) -> None:
    """Write one frame and flush."""
    stream.write(_HEADER.pack(frame.kind.value, len(frame.body), frame.position, frame.ticks))
    stream.write(frame.body)
    stream.flush()


def read_frames(stream: IO[bytes]) -> Iterator[Frame]:
    """Yield frames until the stream ends or holds something else."""
    while len(header := stream.read(_HEADER.size)) == _HEADER.size:
        kind, length, position, ticks = _HEADER.unpack(header)
        if length > _LONGEST or kind not in _KINDS:
            return
        body = stream.read(length)
        if len(body) < length:
            return
        yield Frame(_KINDS[kind], body, position, ticks)


_KINDS: Final = {kind.value: kind for kind in Kind}


def statements_body(quads: list[ox.Quad]) -> bytes:
    """Return the body of a frame with statements; it may be too long for one."""
    body = ox.serialize(quads, format=ox.RdfFormat.N_QUADS)
    assert body is not None  # noqa: S101 - without an output, it is returned
    return body


def long_statement_body(quad: ox.Quad) -> bytes | None:
    """Return the body of a frame with one statement whose literal may be of any length; None if its IRIs may not."""
    value = b""
    if isinstance(quad.object, ox.Literal):
        value = quad.object.value.encode()
        quad = ox.Quad(quad.subject, quad.predicate, _with_value(quad.object, ""), quad.graph_name)
    body = statements_body([quad])
    if len(body) > LONGEST_STATEMENTS:
        return None
    return _LENGTH.pack(len(body)) + body + value


def parsed_statements(lines: bytes) -> Iterator[ox.Quad]:
    """Return the statements in lines of a frame."""
    # Whoever wrote them has looked at the IRIs.
    return ox.parse(lines, format=ox.RdfFormat.N_QUADS, lenient=True)


def long_statement(frame: Frame) -> Iterator[ox.Quad]:
    """Yield the one statement of a frame."""
    end = _LENGTH.size + _LENGTH.unpack_from(frame.body)[0]
    for quad in parsed_statements(frame.body[_LENGTH.size : end]):
        object_ = quad.object
        if isinstance(object_, ox.Literal):
            object_ = _with_value(object_, frame.body[end:].decode())
        yield ox.Quad(quad.subject, quad.predicate, object_, quad.graph_name)


def _with_value(literal: ox.Literal, value: str) -> ox.Literal:
    if literal.language is None:
        return ox.Literal(value, datatype=literal.datatype)
    return ox.Literal(value, language=literal.language, direction=literal.direction)


OUT_OF_MEMORY: Final = 75
"""The exit code of a process whose memory did not suffice."""


_OF_SOURCE: Final = ("form", "packing", "member")


@dataclass(frozen=True, slots=True)
class Order:
    """What to read, and how.

    Args:
        source: The file.
        limits: What it may ask for.
        salvage: Whether to go on behind what cannot be read.
        languages: The languages of names, where a file has those of all.
        id_column: The column with the ids of a table's rows; guessed when None.
        label_keys: Which features name the nodes of a `graph.json`, as `TYPE=FEATURE`.
    """

    source: Source
    limits: ReadingLimits
    salvage: bool
    languages: tuple[str, ...] = ("en", "mul")
    id_column: str | None = None
    label_keys: tuple[str, ...] = ()

    def arguments(self) -> tuple[str, ...]:
        """Return the command line of this module."""
        fields = asdict(self)
        source = fields.pop("source")
        return (
            str(self.source.path),
            self.source.name,
            json.dumps({**fields, **{key: source[key] for key in _OF_SOURCE}}),
        )

    @classmethod
    def of(cls, path: str, name: str, rest: str) -> Self:
        """Read the command line of this module."""
        fields = json.loads(rest)
        source = Source(Path(path), name, **{key: fields.pop(key) for key in _OF_SOURCE})
        limits = ReadingLimits(**fields.pop("limits"))
        languages, label_keys = (tuple(fields.pop(key)) for key in ("languages", "label_keys"))
        return cls(source, limits, languages=languages, label_keys=label_keys, **fields)


_PROCESS: Final = "kg_adapters.files.process"

_AHEAD: Final = 8

_PATIENCE_S: Final = 0.25

_MOMENT_S: Final = 0.001

_LAST: Final = frozenset({Kind.END, Kind.REFUSAL})

_OUT_OF_MEMORY: Final = frozenset({OUT_OF_MEMORY, -signal.SIGABRT, -getattr(signal, "SIGKILL", 9)})


class ReadingEnded(Refused):
    """The process that parses a file was ended, or ended by itself, before it sent its last frame."""


def parsed_frames(
    order: Order, on_wait: Callable[[], None], clock: Callable[[], float] = time.monotonic
) -> Generator[Frame]:
    """Yield the frames that a process sends about a file.

    Args:
        order: What to read.
        on_wait: Called again and again while nothing comes; if it raises, the process is ended.
        clock: Seconds, from any beginning.

    Raises:
        ReadingEnded: It made no progress in the time that the limits give, or ended before its last frame.
        InvalidSource: It could not be started.
    """
    with _started(order) as process, _listening(process) as frames:
        position, ticks, waited_s, finished = 0, 0, 0.0, False
        while True:
            since = clock()
            frame = _next(frames)
            waited_s += clock() - since
            if frame is None:
                on_wait()
            elif isinstance(frame, Frame):
                position, finished = frame.position, frame.kind in _LAST
                ticks, waited_s = (frame.ticks, 0.0) if frame.ticks > ticks else (ticks, waited_s)
                yield frame
            elif finished:
                return
            else:
                raise ReadingEnded(f"byte {position:,}: {_reason(process.wait(), order)}")
            if waited_s > order.limits.stall_s:
                raise ReadingEnded(
                    f"byte {position:,}: reading was stopped because it made no progress for {order.limits.stall_s:g} "
                    f"s; {setting('import_stall_s')} allows more"
                )


@contextmanager
def _started(order: Order) -> "Generator[subprocess.Popen[bytes]]":
    command = [sys.executable, "-P", "-m", _PROCESS, str(os.getpid()), *order.arguments()]
    try:
        process = subprocess.Popen(  # noqa: S603 - a module of ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
        )
    except OSError as error:
        raise InvalidSource(f"No process could be started to read {order.source.path}: {error}.") from error
    with process:
        try:
            yield process
        finally:
            process.kill()


class _Gone:
    """Nothing more will come."""


@contextmanager
def _listening(process: "subprocess.Popen[bytes]") -> "Generator[queue.Queue[Frame | _Gone]]":
    """Listen in a thread, since nothing else can wait for a pipe with a deadline on every system."""
    frames: queue.Queue[Frame | _Gone] = queue.Queue(_AHEAD)
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    pipe = process.stdout

    def listen() -> None:
        for frame in read_frames(pipe):
            frames.put(frame)
        frames.put(_Gone())

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield frames
    finally:
        process.kill()
        while thread.is_alive():
            with suppress(queue.Empty):
                frames.get_nowait()
            thread.join(_MOMENT_S)


def _next(frames: "queue.Queue[Frame | _Gone]") -> "Frame | _Gone | None":
    try:
        return frames.get(timeout=_PATIENCE_S)
    except queue.Empty:
        return None


def _reason(code: int, order: Order) -> str:
    if code in _OUT_OF_MEMORY:
        return (
            f"reading it takes more memory than {order.limits.memory:,} MB; {setting('import_memory_mb')} allows more"
        )
    name = f"signal {-code}" if code < 0 else f"code {code}"
    return f"the parser crashed (the process ended with {name}); it may be nested too deeply, or damaged"
