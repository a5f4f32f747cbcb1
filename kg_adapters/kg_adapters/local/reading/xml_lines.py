"""XML on its way to a parser that expands every entity and follows every depth."""

import io
import re
from collections import deque
from typing import Final
from xml.parsers import expat

from kg_adapters.local.reading.nesting import TOO_DEEP
from kg_adapters.reading_limits import MAX_DEPTH, ReadingLimits, Refused, setting

# Names of namespaces are shorter, and with so many bytes an entity says at most 85 times what its mention does.
_LONGEST_ENTITY: Final = 256
_LONGEST_PROLOG: Final = 1_000_000
_DECLARATION: Final = b"<!ENTITY"
_DOCTYPE: Final = re.compile(rb"<!doctype", re.IGNORECASE)
_DOCTYPE_LENGTH: Final = 9


class XmlLines(io.BytesIO):
    """XML as it is, line by line, so that a parser that asks for more is done with all lines before.

    It is followed by a parser of its own before it is handed out. What stands before the first element is handed out
    when all of it is known, since that is where entities are declared.

    Args:
        stream: The text as it is.
        limits: How long a literal may be.

    Attributes:
        line: The number of the line that was handed out last; 0 before the first.
        complete: Whether the first element was closed, as far as the text can be followed; known at the end.
    """

    def __init__(self, stream: io.BufferedReader, limits: ReadingLimits) -> None:
        super().__init__()
        self._stream = stream
        self._checked = _CheckedXml(limits)
        self._held: deque[bytes] = deque()
        self._ended = True
        self.line = 0

    @property
    def complete(self) -> bool:
        """Whether the first element was closed."""
        return self._checked.complete

    def read(self, size: int | None = None, /) -> bytes:
        """Return at most `size` bytes of one line; none at the end.

        Raises:
            Refused: The text declares entities that are more than short texts, is nested too deeply, or holds too long
                a literal.
        """
        while not self._held or self._checked.in_prolog:
            piece = self._stream.readline(size or -1)
            self._checked.feed(piece)
            self._held.append(piece)
            if not piece:
                break
        piece = self._held.popleft()
        if piece:
            self.line += self._ended
            self._ended = piece.endswith(b"\n")
        return piece


class _CheckedXml:
    """Follows XML for what it may not hold."""

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits
        self._parser: expat.XMLParserType | None = _parser(self)
        self._prolog: bytearray | None = bytearray()
        self._declared = 0
        self._depth = 0
        self._fed = 0
        self._tag_at = 0
        self._tail = b""
        self._line = 0
        self.complete = True

    @property
    def in_prolog(self) -> bool:
        """Whether what may be declared is not known yet."""
        return self._prolog is not None and self._parser is not None

    def feed(self, piece: bytes) -> None:
        """Follow the next piece; none at the end."""
        self._fed += len(piece)
        self._line += piece.endswith(b"\n")
        if self._prolog is not None:
            self._prolog += piece
        if self._parser is None:
            self._look_for_declarations(self._tail + piece)
        else:
            self._parse(self._parser, piece)
        self._tail = piece[-_DOCTYPE_LENGTH:]

    def _parse(self, parser: expat.XMLParserType, piece: bytes) -> None:
        try:
            parser.Parse(piece, not piece)
        except expat.ExpatError:
            # In the middle it is for the other parser to judge what is wrong, unless that one may expand something.
            self.complete = bool(piece)
            self._parser = None
            self._look_for_declarations(bytes(self._prolog or self._tail + piece))
        if not piece:
            self._parser = None
        if self.in_prolog and self._fed > _LONGEST_PROLOG:
            self._refuse(f"over {_LONGEST_PROLOG:,} bytes come before the first element, and no more is read")
        if self._fed - self._tag_at > self._limits.literal_bytes:
            most = f"{self._limits.literal_mb:,} MB"
            self._refuse(f"over {most} are between two tags; {setting('import_literal_mb')} allows more")

    def entity(self, name: str, parameter: int, value: str | None, *_: str | None) -> None:
        """Take note of a declared entity, which has to be a short text."""
        self._declared += 1
        if value is None or parameter or len(value.encode()) > _LONGEST_ENTITY or any(char in value for char in "&%<"):
            shown = name if name.isprintable() and len(name) <= 40 else "…"
            self._refuse(
                f"its DTD declares the entity {shown!r}, and only those are accepted that stand for a text of at most "
                f"{_LONGEST_ENTITY} bytes within the file, without other entities or tags"
            )

    def start(self, *_: object) -> None:
        """Take note of a tag that opens an element."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(TOO_DEEP)
        if self._prolog is not None:
            if self._prolog[: self._byte].count(_DECLARATION) != self._declared:
                # The other parser takes for a declaration what stands in a comment of the DTD.
                self._refuse("its DTD mentions entities outside of declarations")
            self._prolog = None
        self._tag_at = self._byte

    def end(self, _: str) -> None:
        """Take note of a tag that closes an element."""
        self._depth -= 1
        self._tag_at = self._byte

    @property
    def _byte(self) -> int:
        return 0 if self._parser is None else self._parser.CurrentByteIndex

    def _look_for_declarations(self, text: bytes) -> None:
        if _DOCTYPE.search(text):
            self._refuse("it has a DTD and is not well-formed XML, so what the DTD declares is unknown")

    def _refuse(self, reason: str) -> None:
        raise Refused(f"line {self._line + 1}: {reason}")


def _parser(checked: _CheckedXml) -> expat.XMLParserType:
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = checked.entity
    parser.StartElementHandler = checked.start
    parser.EndElementHandler = checked.end
    return parser
