"""Refuse files before a parser fails on them: JSON and XML that are nested too deeply, and entities of XML."""

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from xml.parsers import expat

from kg_adapters.files.sources import ENTRIES, GRAPH_JSON, JSON_LINES, RECORDS
from kg_adapters.open_options import MAX_DEPTH, ReadingLimits, Refused, setting

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} deep, and no more is read"
_STRINGS: Final = re.compile(rb'"(?<!\\")[^"\\]*+(?>(?:\\.[^"\\]*+)*)"', re.DOTALL)
_BRACKETS: Final = re.compile(rb"[\[{]++|[\]}]++")


class JsonDepth:
    """Follows the brackets of a JSON text."""

    def __init__(self) -> None:
        # The string that is open, without what it holds: its first quote, and half an escape.
        self._open = b""
        self._depth = 0
        self._bytes = 0

    def feed(self, data: bytes) -> None:
        """Follow the next part of the text.

        Raises:
            Refused: It is nested too deeply; the message says about where.
        """
        self._bytes += len(data)
        bare, quote, string = _STRINGS.sub(b"", self._open + data).partition(b'"')
        self._open = quote + b"\\" * ((len(string) - len(string.rstrip(b"\\"))) % 2)
        for run in _BRACKETS.findall(bare):
            self._depth += len(run) if run[0] in b"[{" else -len(run)
            if self._depth > MAX_DEPTH:
                raise Refused(f"before byte {self._bytes + 1:,}: {TOO_DEEP}")


_BUFFER: Final = 1 << 16
_TICK: Final = 1 << 20
_JSON: Final = frozenset({GRAPH_JSON, ".jsonld", RECORDS, ENTRIES, *JSON_LINES})


class WatchedText(io.BufferedReader):
    """A stream of text; reading on raises `Refused` where JSON is nested too deeply.

    Args:
        stream: The text.
        ending: The ending of the file's name, without `.gz`.
        on_tick: Called after each megabyte.
    """

    def __init__(self, stream: io.BufferedReader, ending: str, on_tick: Callable[[], None] = lambda: None) -> None:
        self._counted = _Counted(stream, ending, on_tick)
        super().__init__(self._counted, _BUFFER)

    @property
    def ticks(self) -> int:
        """How many whole megabytes were read."""
        return self._counted.read_bytes // _TICK


class _Counted(io.RawIOBase):
    """What stands below the buffer of a `WatchedText`."""

    def __init__(self, stream: io.BufferedReader, ending: str, on_tick: Callable[[], None]) -> None:
        super().__init__()
        self._stream = stream
        self._on_tick = on_tick
        self._depth = JsonDepth() if ending in _JSON else None
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        with memoryview(buffer).cast("B") as room:
            data = self._stream.read1(min(len(room), _BUFFER))
            room[: len(data)] = data
        if self._depth is not None:
            self._depth.feed(data)
        ticks = self.read_bytes // _TICK
        self.read_bytes += len(data)
        if self.read_bytes // _TICK > ticks:
            self._on_tick()
        return len(data)


# Names of namespaces are shorter, and with so many bytes an entity says at most 85 times what its mention does.
_LONGEST_ENTITY: Final = 256
_DECLARATION: Final = b"<!ENTITY"
_DOCTYPE: Final = re.compile(rb"<!doctype", re.IGNORECASE)
_DOCTYPE_LENGTH: Final = 9


class CheckedXml(io.BytesIO):
    """XML as it is, line by line; a line is handed out once another parser has looked for what it may not hold.

    Args:
        stream: The text as it is.
        limits: How long a literal may be.

    Attributes:
        line: The number of the line that was handed out last; 0 before the first.
    """

    def __init__(self, stream: io.BufferedReader, limits: ReadingLimits) -> None:
        super().__init__()
        self._stream = stream
        self._limits = limits
        self._parser = expat.ParserCreate()
        self._parser.EntityDeclHandler = self._declare
        self._parser.EndDoctypeDeclHandler = self._end_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        # What stands before the first element.
        self._prolog: bytearray | None = bytearray()
        self._declared = 0
        self._depth = 0
        self._fed = 0
        self._tag_at = 0
        self._guarded = True
        self._seen = b""
        self._ended_line = True
        self.line = 0

    def read(self, size: int | None = None, /) -> bytes:
        """Return at most `size` bytes of one line; none at the end.

        Raises:
            Refused: The text ends early, declares entities that are more than short texts, is nested too deeply, or
                holds too long a literal.
        """
        piece = self._stream.readline(size or -1)
        self.line += self._ended_line and bool(piece)
        self._ended_line = piece.endswith(b"\n")
        self._fed += len(piece)
        if self._prolog is not None:
            self._prolog += piece
        if self._guarded:
            self._check(piece)
        else:
            self._look_for_dtd(piece)
        if self._fed - self._tag_at > self._limits.literal_bytes:
            most = f"{self._limits.literal_mb:,} MB"
            self._refuse(f"over {most} are between two tags; {setting('imports.literal_mb')} allows more")
        return piece

    def _check(self, piece: bytes) -> None:
        try:
            self._parser.Parse(piece, not piece)
            self._seen = piece[-_DOCTYPE_LENGTH:]
        except expat.ExpatError:
            if not piece:
                self._refuse("the file ends before its first element does; it may be cut off")
            # The other parser takes more for XML, or refuses it.
            self._guarded = False
            self._look_for_dtd(bytes(self._prolog or piece))

    def _look_for_dtd(self, piece: bytes) -> None:
        text = self._seen + piece
        if _DOCTYPE.search(text):
            self._refuse("it has a DTD and is not well-formed XML, so what the DTD declares is unknown")
        self._seen = text[-_DOCTYPE_LENGTH:]

    def _declare(self, name: str, parameter: int, value: str | None, *_: str | None) -> None:
        """Accept a declared entity, which has to be a short text."""
        self._declared += 1
        if value is None or parameter or len(value.encode()) > _LONGEST_ENTITY or any(char in value for char in "&%<"):
            shown = name if name.isprintable() and len(name) <= 40 else "…"
            self._refuse(
                f"its DTD declares the entity {shown!r}, and only those are accepted that stand for a text of at most "
                f"{_LONGEST_ENTITY} bytes within the file, without other entities or tags"
            )

    def _end_doctype(self) -> None:
        prolog = (self._prolog or b"")[: self._parser.CurrentByteIndex]
        if prolog.count(_DECLARATION) != self._declared:
            # The other parser takes for a declaration what stands in a comment of the DTD.
            self._refuse("its DTD mentions entities outside of declarations")

    def _start(self, *_: object) -> None:
        self._prolog = None
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(TOO_DEEP)
        self._tag_at = self._parser.CurrentByteIndex

    def _end(self, _: str) -> None:
        self._depth -= 1
        self._tag_at = self._parser.CurrentByteIndex

    def _refuse(self, reason: str) -> None:
        raise Refused(f"line {max(self.line, 1)}: {reason}")
