"""Count nesting and guard XML entities while a document is read, because parsers fail badly on deep input."""

import io
import re
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from xml.parsers import expat

from kg_adapters.open_options import MAX_DEPTH, ReadingLimits, Refused, setting

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} deep, and no more is read"

_JSON_TOKENS: Final = re.compile(rb'"(?<!\\")[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

# Whatever may hold a bracket that opens nothing: long and short strings, IRIs, comments, escapes in names.
_TURTLE_TOKENS: Final = re.compile(
    rb'"""(?:[^"\\]++|\\.|"{1,2}(?=[^"]))*+"""'
    rb"|'''(?:[^'\\]++|\\.|'{1,2}(?=[^']))*+'''"
    rb'|"(?<!"")(?!"")[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    rb"|'(?<!'')(?!'')[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'"
    rb'|<[^<>"{}|^`\x00-\x20]*+>'
    rb"|#[^\n]*+"
    rb"|\\.",
    re.DOTALL,
)

_QUOTES: Final = re.compile(rb"\"\"\"|'''")

_ALL_QUOTES: Final = re.compile(rb"\"\"\"|'''|\"|'")

# What stands in a string up to its closing quotes, or up to what may be the first of them or half an escape.
_BODIES: Final = {
    b'"': re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL),
    b"'": re.compile(rb"(?:[^'\\]++|\\.)*+", re.DOTALL),
    b'"""': re.compile(rb'(?:[^"\\]++|\\.|"{1,2}(?=[^"]))*+', re.DOTALL),
    b"'''": re.compile(rb"(?:[^'\\]++|\\.|'{1,2}(?=[^']))*+", re.DOTALL),
}

_BRACKETS: Final = re.compile(rb"(?:[\[({]|<<)++|(?:[\])}]|>>)++")

_OPENING: Final = frozenset(b"[({<")

# A longer line is looked at in parts; what then is cut in two is a string, as good as always.
_LONGEST_LINE: Final = 1 << 14


class Nesting:
    """Follows the brackets of a text.

    Args:
        turtle: Whether it is Turtle or one of its relatives, and not JSON.
    """

    def __init__(self, *, turtle: bool) -> None:
        self._turtle = turtle
        self._tokens = _TURTLE_TOKENS if turtle else _JSON_TOKENS
        self._rest = b""
        self._quotes = b""
        self._depth = 0
        self._bytes = 0

    def feed(self, data: bytes) -> None:
        """Follow the next part of the text; none at its end.

        Raises:
            Refused: It is nested too deeply; the message says about where.
        """
        text, self._rest = self._rest + data, b""
        self._bytes += len(data)
        while text:
            text = self._behind_the_string(text) if self._quotes else self._outside_strings(text, last=not data)

    def restart(self) -> None:
        """Take it that nothing is open, as a parser does behind an error."""
        self._depth = 0

    def _outside_strings(self, text: bytes, *, last: bool) -> bytes:
        """Count what stands outside strings, and return what is left: it begins in a string, or there is none."""
        # In Turtle all but long strings ends with its line, so whole lines hold whole tokens.
        end = text.rfind(b"\n") + 1 if self._turtle and not last else len(text)
        cut = not self._turtle
        if not end and len(text) > _LONGEST_LINE:
            # IRIs hold no blank.
            end, cut = text.rfind(b" ") + 1 or len(text), True
        bare = self._tokens.sub(b"", text[:end])
        string = (_ALL_QUOTES if cut else _QUOTES).search(bare)
        self._count(bare if string is None else bare[: string.start()])
        if string is not None:
            self._quotes = string[0]
            return (bare[string.end() :] if cut else b"") + text[end:]
        self._rest = text[end:]
        return b""

    def _behind_the_string(self, text: bytes) -> bytes:
        """Return what follows the string that is open, if it ends here."""
        body = _BODIES[self._quotes].match(text)
        rest = text if body is None else text[body.end() :]
        if not rest.startswith(self._quotes):
            self._rest = rest
            return b""
        rest, self._quotes = rest[len(self._quotes) :], b""
        return rest

    def _count(self, bare: bytes) -> None:
        for run in _BRACKETS.findall(bare):
            brackets = len(run) - run.count(b"<<") - run.count(b">>")
            self._depth = self._depth + brackets if run[0] in _OPENING else max(self._depth - brackets, 0)
            if self._depth > MAX_DEPTH:
                raise Refused(f"before byte {self._bytes + 1:,}: {TOO_DEEP}")


_BUFFER: Final = 1 << 16

_TICK: Final = 1 << 20

_JSON: Final = frozenset({".json", ".jsonld"})

_TURTLE: Final = frozenset({".ttl", ".trig", ".n3"})


class WatchedText(io.BufferedReader):
    """A stream of text; reading on raises `Refused` where it is nested too deeply.

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

    def restart(self) -> None:
        """Take it that the parser does not count anything as open any more."""
        if self._counted.nesting is not None:
            self._counted.nesting.restart()


class _Counted(io.RawIOBase):
    """What stands below the buffer of a `WatchedText`."""

    def __init__(self, stream: io.BufferedReader, ending: str, on_tick: Callable[[], None]) -> None:
        super().__init__()
        self._stream = stream
        self._on_tick = on_tick
        # XML is followed where it is handed out by line.
        self.nesting = Nesting(turtle=ending in _TURTLE) if ending in _JSON | _TURTLE else None
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        with memoryview(buffer).cast("B") as room:
            data = self._stream.read1(min(len(room), _BUFFER))
            room[: len(data)] = data
        if self.nesting is not None:
            self.nesting.feed(data)
        ticks = self.read_bytes // _TICK
        self.read_bytes += len(data)
        if self.read_bytes // _TICK > ticks:
            self._on_tick()
        return len(data)


# Names of namespaces are shorter, and with so many bytes an entity says at most 85 times what its mention does.
_LONGEST_ENTITY: Final = 256

_LONGEST_PROLOG: Final = 1_000_000

_DECLARATION: Final = b"<!ENTITY"

_DOCTYPE: Final = re.compile(rb"<!doctype", re.IGNORECASE)

_DOCTYPE_LENGTH: Final = 9


class XmlLines(io.BytesIO):
    """XML as it is, line by line, so that a parser that asks for more is done with all lines before.

    A separate parser checks it before it is handed out. What stands before the first element is handed out
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
