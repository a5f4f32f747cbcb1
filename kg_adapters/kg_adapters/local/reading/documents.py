"""Has files parsed in a process of their own, whose memory and patience are limited."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final

from kg_adapters.errors import InvalidSource
from kg_adapters.local.reading.frames import Frame, Kind, read_frames
from kg_adapters.local.reading.process import OUT_OF_MEMORY, Order
from kg_adapters.reading_limits import Refused, setting
from kg_boundary.child_environment import child_environment

_PROCESS: Final = "kg_adapters.local.reading.process"
_AHEAD: Final = 8
_PATIENCE_S: Final = 0.25
_MOMENT_S: Final = 0.001
_LAST: Final = frozenset({Kind.END, Kind.REFUSAL})
_OUT_OF_MEMORY: Final = frozenset({OUT_OF_MEMORY, -signal.SIGABRT, -getattr(signal, "SIGKILL", 9)})


class ReadingEnded(Refused):
    """The process that parses a file was ended, or ended by itself, before it had told everything."""


def parsed_frames(
    order: Order, on_wait: Callable[[], None], clock: Callable[[], float] = time.monotonic
) -> Generator[Frame]:
    """Yield what a process tells about a file.

    Args:
        order: What to read.
        on_wait: Called again and again while nothing comes; if it raises, the process is ended.
        clock: Seconds, from any beginning.

    Raises:
        ReadingEnded: It made no progress in the time that the limits give, or ended before all was told.
        InvalidSource: It could not be started.
    """
    with _started(order) as process, _listening(process) as frames:
        position, ticks, waited_s, told = 0, 0, 0.0, False
        while True:
            since = clock()
            frame = _next(frames)
            waited_s += clock() - since
            if frame is None:
                on_wait()
            elif isinstance(frame, Frame):
                position, told = frame.position, frame.kind in _LAST
                ticks, waited_s = (frame.ticks, 0.0) if frame.ticks > ticks else (ticks, waited_s)
                yield frame
            elif told:
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
