"""The bytes of a file that is to be read, unpacked, and counted while they inflate."""

import bz2
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from kg_adapters.local.reading.sources import Source
from kg_adapters.reading_limits import ReadingLimits, Refused, setting
from kg_boundary.regular_files import open_regular

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What inflates to no more than this does no harm, whatever its ratio.
_HARMLESS: Final = 10_000_000
_WINDOW: Final = 1 << 27
BAD_FILE: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""What reading a file may raise that is not whole, or not what its name says."""


def unreadable(error: Exception) -> str:
    """Return what follows the name of a file that cannot be read to its end, without its path."""
    reason: str | None = getattr(error, "strerror", None)
    return f"cannot be read to its end: {reason or error}"


class Unpacked(Protocol):
    """A stream of what was compressed."""

    def read1(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, as soon as there are any; none at the end."""
        ...


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
    """Open a file, and unpack it if it is compressed; reading on raises `Refused` at a limit.

    Raises:
        OSError: It cannot be opened.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(open_regular(source.path))
        stream: io.BufferedReader = raw
        for unpack in _unpackers(source):
            # The memory of a packing grows with what a file says of itself.
            stream = io.BufferedReader(_Inflating(stack.enter_context(unpack(stream)), raw, limits))
        content = SourceBytes(raw, stream)
        stack.callback(content.leave)
        yield content


class _Inflating(io.RawIOBase):
    """An archive that gives what it has at once, so that nothing is lost which stands before a damage."""

    def __init__(self, packed: Unpacked, raw: io.BufferedReader, limits: ReadingLimits) -> None:
        super().__init__()
        self._packed = packed
        self._raw_file = raw
        self._limits = limits
        self._by_ratio = max(_HARMLESS, limits.inflate_ratio * os.fstat(raw.fileno()).st_size)
        self._inflated = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        with memoryview(buffer).cast("B") as room:
            data = self._packed.read1(len(room))
            room[: len(data)] = data
        self._inflated += len(data)
        if self._inflated > self._by_ratio:
            self._refuse(f"over {self._limits.inflate_ratio:,} times its size", "import_inflate_ratio")
        if self._inflated > self._limits.inflate_bytes:
            self._refuse(f"over {self._limits.inflate_mb:,} MB", "import_inflate_mb")
        return len(data)

    def _refuse(self, limit: str, name: str) -> None:
        raise Refused(
            f"byte {self._raw_file.tell():,}: the file decompresses to {limit}; if that is expected, "
            f"{setting(name)} allows more"
        )


def _unpackers(source: Source) -> Iterator[Callable[[io.BufferedReader], AbstractContextManager[Unpacked]]]:
    if source.member:
        yield partial(_member, source.member)
        packing = Path(source.member).suffix.lower()
    else:
        packing = source.packing
    if packing in _UNPACKERS:
        yield _UNPACKERS[packing]


@contextmanager
def _member(name: str, stream: io.BufferedReader) -> Generator[Unpacked]:
    try:
        with zipfile.ZipFile(stream) as archive, archive.open(name) as member:
            yield _AtOnce(member.read)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
        # An encrypted one is a RuntimeError.
        raise OSError(f"{name} in the archive: {error}") from error


@contextmanager
def _zstandard(stream: io.BufferedReader) -> Generator[Unpacked]:
    try:
        import zstandard  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise Refused(
            "byte 0: it is compressed with Zstandard, which needs one more package: pip install 'kg-sextant[zstd]'; "
            "or decompress it first with zstd -d"
        ) from error
    window = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    try:
        with window.stream_reader(stream, read_across_frames=True, closefd=False) as reader:
            yield _AtOnce(reader.read)
    except zstandard.ZstdError as error:
        raise OSError(str(error)) from error


class _AtOnce:
    """Gives a way to read the name that other packings have for it."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def read1(self, size: int = -1, /) -> bytes:
        return self._read(size)


_UNPACKERS: Final[Mapping[str, Callable[[io.BufferedReader], AbstractContextManager[Unpacked]]]] = {
    ".gz": lambda stream: gzip.GzipFile(fileobj=stream),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _zstandard,
}
