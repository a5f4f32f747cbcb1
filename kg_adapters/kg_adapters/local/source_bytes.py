"""The bytes of a file that is to be read, unpacked, and counted while they inflate."""

import gzip
import io
import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kg_adapters.local.sources import Source
from kg_adapters.reading_limits import ReadingLimits, Refused, setting

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What inflates to no more than this does no harm, whatever its ratio.
_HARMLESS: Final = 10_000_000


class SourceBytes:
    """What a file holds, as one stream.

    Args:
        raw: The file as it is.
        stream: Its content, unpacked.
    """

    def __init__(self, raw: io.BufferedReader, stream: io.BufferedReader) -> None:
        self._raw: io.BufferedReader | None = raw
        self._position = 0
        self.stream = stream

    @property
    def position(self) -> int:
        """How many bytes of the file were read; also once it is closed."""
        return self._position if self._raw is None else self._raw.tell()

    def leave(self) -> None:
        """Remember the position."""
        self._position, self._raw = self.position, None


@contextmanager
def opened(source: Source, limits: ReadingLimits) -> Generator[SourceBytes]:
    """Open a file, and unpack it if its name says that it is compressed; reading on raises `Refused` at a limit.

    Raises:
        OSError: It cannot be opened.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(open_regular(source.path))
        stream: io.BufferedReader = raw
        if source.gzipped:
            stream = io.BufferedReader(stack.enter_context(_Inflating(raw, limits)))
        content = SourceBytes(raw, stream)
        stack.callback(content.leave)
        yield content


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading, and nothing that would be waited for, such as a pipe.

    Raises:
        OSError: It is not there, may not be read or is no regular file.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("it is no longer a file")
    return io.open(handle, "rb")  # noqa: UP020 - an open handle; the caller closes it


class _Inflating(gzip.GzipFile):
    """An archive that gives what it has at once, so that nothing is lost which stands before a damage."""

    def __init__(self, raw: io.BufferedReader, limits: ReadingLimits) -> None:
        super().__init__(fileobj=raw)
        self._raw_file = raw
        self._limits = limits
        self._by_ratio = max(_HARMLESS, limits.inflate_ratio * os.fstat(raw.fileno()).st_size)
        self._inflated = 0

    def readinto(self, buffer: "WriteableBuffer") -> int:
        count = self.readinto1(buffer)
        self._inflated += count
        if self._inflated > self._by_ratio:
            self._refuse(f"over {self._limits.inflate_ratio:,} times its size", "import_inflate_ratio")
        if self._inflated > self._limits.inflate_bytes:
            self._refuse(f"over {self._limits.inflate_mb:,} MB", "import_inflate_mb")
        return count

    def _refuse(self, limit: str, name: str) -> None:
        raise Refused(
            f"byte {self._raw_file.tell():,}: the file inflates to {limit}; if it is what it should be, "
            f"{setting(name)} allows more"
        )
