"""Standard error for a server whose host may never read it."""

import os
import sys
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOBase, UnsupportedOperation
from threading import Condition, Thread
from typing import Final

MAX_HELD: Final = 1_000_000
"""How many characters wait to be written at most; what comes on top is dropped, and counted."""
FAREWELL_S: Final = 1.0
"""How many seconds the end of a process waits for a reader of its last lines."""


class UnblockedStream(TextIOBase):
    """Takes text at once, and writes it in a thread of its own as fast as somebody reads it.

    Args:
        descriptor: Where it is written.
        encoding: How.
    """

    def __init__(self, descriptor: int, encoding: str = "utf-8") -> None:
        super().__init__()
        self._descriptor = descriptor
        self._encoding = encoding
        self._texts: deque[str] = deque()
        self._held = 0
        self._dropped = 0
        self._ending = False
        self._changed = Condition()
        self._thread = Thread(target=self._write_all, name="standard-error", daemon=True)
        self._thread.start()

    def write(self, text: str, /) -> int:
        """Keep a text for writing, or drop it where too much waits already."""
        with self._changed:
            if self._held + len(text) > MAX_HELD:
                self._dropped += 1
            elif text:
                self._texts.append(text)
                self._held += len(text)
                self._changed.notify()
        return len(text)

    def writable(self) -> bool:
        """Say that it is."""
        return True

    def fileno(self) -> int:
        """Return the descriptor behind it, which others that write to it directly want."""
        return self._descriptor

    def isatty(self) -> bool:
        """Tell whether somebody looks on."""
        return os.isatty(self._descriptor)

    def end(self) -> bool:
        """Write the rest, and tell whether somebody took it; nothing is written afterwards."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(FAREWELL_S)
        return not self._thread.is_alive()

    def _write_all(self) -> None:
        while text := self._next():
            rest = text.encode(self._encoding, "backslashreplace")
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                continue  # Its reader has gone, and the server has not.
            finally:
                with self._changed:
                    self._held -= len(text)

    def _next(self) -> str:
        """Wait for a text; the empty one is the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._texts or self._dropped or self._ending)
            if self._texts:
                return self._texts.popleft()
            if not self._dropped:
                return ""
            told = f"{self._dropped:,} parts of the log were dropped here, because nothing read it.\n"
            self._dropped = 0
            self._held += len(told)
            return told


@contextmanager
def unblocked_standard_error() -> Generator[None]:
    """Let nothing that is written to standard error wait for its reader."""
    before = sys.stderr
    try:
        stream = UnblockedStream(before.fileno(), before.encoding)
    except UnsupportedOperation:  # a test's
        yield
        return
    sys.stderr = stream
    try:
        yield
    finally:
        if stream.end():
            sys.stderr = before
