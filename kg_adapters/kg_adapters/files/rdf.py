"""Parse RDF: N-Triples and N-Quads line by line, Turtle, TriG, N3, RDF/XML and JSON-LD as documents."""

import codecs
import io
import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.files.nesting import TOO_DEEP, CheckedXml, WatchedText
from kg_adapters.files.sources import RDF_FORMATS, Source
from kg_adapters.open_options import MAX_DEPTH, ReadingLimits, setting
from kg_adapters.terms import XSD
from kg_boundary.shown import visible_line

# Called for everything that cannot be read, with the place and the reason; it raises, or lets the rest be read.
Problem: TypeAlias = Callable[[str, BaseException], None]

LINE_FORMATS: Final = frozenset({ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS})

# The parser takes no longer statement.
LONGEST: Final = 1 << 24

TOO_LONG: Final = f"a statement has over {LONGEST:,} bytes, which is more than can be read at once"

_CHUNK: Final = 1 << 18

_LONGEST_REASON: Final = 300

_LITERAL: Final = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"')


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Lines of a file, with the number of the first one."""

    number: int
    lines: bytes


class RdfLines:
    """Reads one file as blocks of lines, which may hold statements.

    Args:
        source: What the file is.
        problem: Called for every line that cannot be read.
        limits: How long a literal, and here a statement, may be.
        wanted: What a line has to hold to be read, else it is empty in its block; every line when None.
    """

    def __init__(
        self, source: Source, problem: Problem, limits: ReadingLimits, wanted: re.Pattern[bytes] | None = None
    ) -> None:
        self._wanted = wanted
        self._path = source.path
        self._form = RDF_FORMATS[source.ending]
        self._problem = problem
        self._limits = limits
        self._longest = min(LONGEST, limits.literal_bytes)
        self._line = 1

    def blocks(self, stream: io.BufferedReader) -> Iterator[LineBlock]:
        """Yield the lines, many at once."""
        rest: list[bytes] = []
        length = 0
        while data := stream.read1(_CHUNK):
            lines, end, behind = data.rpartition(b"\n")
            if end:
                yield from self._block(b"".join((*rest, lines)))
                rest, length = [], 0
            rest.append(behind)
            length += len(behind)
            if length > self._longest:
                self._problem(f"{self._path}, line {self._line}: {self._too_long()}.", MemoryError())
                rest = [_behind_the_line(stream)]
                length = len(rest[0])
                self._line += 1
        yield from self._block(b"".join(rest))

    def statements(self, line: bytes, number: int) -> list[ox.Quad]:
        """Return the statements in a line, as a parser finds them."""
        if line.count(b"<<") > MAX_DEPTH and _LITERAL.sub(b"", line).count(b"<<") > MAX_DEPTH:
            # The parser does not survive terms within terms within terms.
            self._problem(f"{self._path}, line {number}: {TOO_DEEP}.", RecursionError())
            return []
        try:
            return list(ox.parse(line, format=self._form))
        except SyntaxError as error:
            place = f"line {number}, column {error.offset}"
            self._problem(f"{self._path}, {place}: {syntax_reason(error)}.", error)
            return []

    def _too_long(self) -> str:
        if self._longest == LONGEST:
            return TOO_LONG
        return f"a statement has over {self._limits.literal_mb:,} MB; {setting('imports.literal_mb')} allows more"

    def _block(self, lines: bytes) -> Iterator[LineBlock]:
        number = self._line
        self._line += lines.count(b"\n") + 1
        if self._wanted is not None:
            if self._wanted.search(lines) is None:
                return
            split = lines.split(b"\n")
            lines = b"\n".join(line if self._wanted.search(line) is not None else b"" for line in split)
        yield LineBlock(number, lines)


def syntax_reason(error: SyntaxError) -> str:
    """Return what the parser says about an error, without the place and fit to be printed."""
    reason = re.sub(r"^Parser error .*?: | \(line \d+\)$", "", error.msg).rstrip(".")
    shown = visible_line(reason[:_LONGEST_REASON])
    return shown if len(shown) <= _LONGEST_REASON else f"{shown[:_LONGEST_REASON]}…"


def _behind_the_line(stream: io.BufferedReader) -> bytes:
    """Read on to the end of the line, and return as much behind it as was read with it."""
    while data := stream.read1(_CHUNK):
        _, end, behind = data.partition(b"\n")
        if end:
            return behind
    return b""


# The last character that there is, for private use: where it stands instead of bytes that are not UTF-8, nothing
# before or behind it is read in another way.
NO_UTF_8: Final = "\U0010fffd"

_SURROGATES: Final = re.compile("[\udc80-\udcff]+")

# One byte may become the four of `NO_UTF_8`, and up to three were held back before.
_GROWTH: Final = 8


class SalvagedText(io.BytesIO):
    """Text that is UTF-8 throughout, with `NO_UTF_8` in the place of whatever is not.

    Args:
        stream: The text as it is.

    Attributes:
        mended: Whether there was such a place.
    """

    def __init__(self, stream: io.BufferedReader) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.mended = False

    def read(self, size: int | None = None, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        most = max((size or io.DEFAULT_BUFFER_SIZE) // _GROWTH, 1)
        text, data = "", b"more"
        while data and not text:
            data = self._stream.read1(most)
            text = self._decoder.decode(data, final=not data)
        whole = _SURROGATES.sub(NO_UTF_8, text)
        self.mended |= whole != text
        return whole.encode()


# After a syntax error these go on behind the broken statement; in the others the rest of the file hangs on it.
_RESUMABLE: Final = frozenset({ox.RdfFormat.TURTLE, ox.RdfFormat.TRIG, ox.RdfFormat.N3})


class RdfDocument:
    """Reads one file from its beginning to its end.

    Args:
        source: What the file is.
        stream: Its bytes.
        problem: Called for everything that cannot be read.
        limits: How long a literal may be.
        salvage: Whether the rest is wanted of a file whose text is not UTF-8 throughout.
    """

    def __init__(
        self, source: Source, stream: WatchedText, problem: Problem, limits: ReadingLimits, *, salvage: bool = False
    ) -> None:
        self._source = source
        self._problem = problem
        if stream.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
            stream.read(len(BOM_UTF8))
        form = RDF_FORMATS[source.ending]
        self._resumable = form in _RESUMABLE
        self._xml = CheckedXml(stream, limits) if form == ox.RdfFormat.RDF_XML else None
        self._salvaged = SalvagedText(stream) if salvage and self._resumable else None
        text = self._xml or self._salvaged
        # A buffer would read ahead of the line that an error is in.
        self._parser = ox.parse(text or stream, format=form, base_iri=_base(source))
        self._statements = 0

    @property
    def prefixes(self) -> dict[str, str]:
        """What the file has declared so far."""
        return self._parser.prefixes

    def read(self) -> Iterator[ox.Quad]:
        """Yield the statements."""
        reading = True
        while reading:
            try:
                quad: ox.Quad = next(self._parser)
                self._statements += 1
                if self._is_whole(quad):
                    yield quad
            except StopIteration:
                reading = False
            except SyntaxError as error:
                self._broken(error)
                reading = self._resumable
            except MemoryError as error:
                if "buffer" not in str(error):
                    raise
                self._problem(f"{self._source.path}, after {self._statements:,} statements: {TOO_LONG}.", error)
                reading = False

    def _is_whole(self, quad: ox.Quad) -> bool:
        if self._salvaged is None or not self._salvaged.mended:
            return True
        if not isinstance(quad.object, ox.Literal) or NO_UTF_8 not in quad.object.value:
            return True
        place = f"{self._source.path}, statement {self._statements:,}"
        self._problem(f"{place}: its text is not UTF-8.", UnicodeError())
        return False

    def _broken(self, error: SyntaxError) -> None:
        if self._xml is not None:
            place = f"line {self._xml.line}"
        elif error.lineno is None:
            place = f"after {self._statements:,} statements"
        else:
            place = f"line {error.lineno}, column {error.offset}"
        reason = syntax_reason(error)
        if "LoadDocumentCallback" in reason:
            reason = (
                "its context is on the web, which an import never reads (only that of schema.org is built in); "
                "write the context into the file"
            )
        self._problem(f"{self._source.path}, {place}: {reason}.", error)


def _base(source: Source) -> str:
    # Relative IRIs need a base; one without the folder keeps the store the same wherever the file lies.
    return Path("/", source.name.removesuffix(source.packing)).as_uri()


SCHEMA: Final = "http://schema.org/"

_ADDRESS: Final = re.compile(r"https?://(?:www\.)?schema\.org(?:/|/docs/jsonldcontext\.jsonld?|/version/[\w./-]+)?")

_NAMED: Final = re.compile(rb'"@context"\s*:\s*(?:\[[^\]]{0,2000}?)?"https?://(?:www\.)?schema\.org')

_LINKS: Final = (
    *("sameAs", "url", "image", "logo", "photo", "mainEntityOfPage", "contentUrl", "embedUrl", "thumbnailUrl"),
    *("license", "codeRepository", "downloadUrl", "additionalType", "isBasedOn", "significantLink", "relatedLink"),
    *("discussionUrl", "installUrl", "hasMap", "availability", "itemCondition", "eventStatus", "eventAttendanceMode"),
    *("dayOfWeek", "inDefinedTermSet", "acquireLicensePage", "usageInfo", "publishingPrinciples", "schemaVersion"),
)

_TIMES: Final = (
    *("birthDate", "deathDate", "datePublished", "dateCreated", "dateModified", "datePosted", "foundingDate"),
    *("dissolutionDate", "startDate", "endDate", "uploadDate", "validFrom", "validThrough", "validUntil", "startTime"),
    *("endTime", "doorTime", "releaseDate", "expires", "availabilityStarts", "availabilityEnds", "priceValidUntil"),
    *("lastReviewed", "departureTime", "arrivalTime", "sdDatePublished", "contentReferenceTime", "dateReceived"),
)

_DATE: Final = SCHEMA + "Date"

CONTEXT: Final[dict[str, object]] = {
    "@vocab": SCHEMA,
    "schema": SCHEMA,
    "id": "@id",
    "type": "@type",
    **{name: {"@id": SCHEMA + name, "@type": "@id"} for name in _LINKS},
    **{name: {"@id": SCHEMA + name, "@type": _DATE} for name in _TIMES},
}
"""Terms of schema.org: all are in one vocabulary, some lead to addresses, some to dates."""

_FORMS: Final = (
    (re.compile(r"\d{4}"), "gYear"),
    (re.compile(r"\d{4}-\d\d"), "gYearMonth"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "date"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"), "dateTime"),
)

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


def names_schema_org(head: bytes) -> bool:
    """Say whether a document that begins so names the context of schema.org."""
    return _NAMED.search(head) is not None


def with_context(stream: IO[bytes], name: str) -> io.BytesIO:
    """Return a document, read as a whole, with our context in the place of that of schema.org.

    Args:
        stream: The document.
        name: What messages call it.

    Raises:
        InvalidSource: It is no JSON.
    """
    try:
        content: Json = json.load(stream)
    except json.JSONDecodeError as error:
        raise InvalidSource(f"{name}, line {error.lineno}, column {error.colno}: {error.msg}.") from error
    except UnicodeDecodeError as error:
        raise InvalidSource(f"{name} is not UTF-8 text: byte {error.start:,} is {error.reason}.") from error
    except ValueError as error:
        raise InvalidSource(f"{name} holds a whole number with more digits than can be read.") from error
    return io.BytesIO(json.dumps(_replaced(content)).encode())


def with_dates(quads: Iterator[ox.Quad]) -> Iterator[ox.Quad]:
    """Yield statements with the dates of schema.org typed by their form, and as text where they have none."""
    for quad in quads:
        value = quad.object
        if isinstance(value, ox.Literal) and value.datatype.value == _DATE:
            yield ox.Quad(quad.subject, quad.predicate, _date(value.value), quad.graph_name)
        else:
            yield quad


def _date(text: str) -> ox.Literal:
    kind = next((name for form, name in _FORMS if form.fullmatch(text) is not None), "string")
    return ox.Literal(text, datatype=ox.NamedNode(XSD + kind))


def _replaced(value: Json) -> Json:
    match value:
        case dict():
            return {key: _context(item) if key == "@context" else _replaced(item) for key, item in value.items()}
        case list():
            return [_replaced(item) for item in value]
        case _:
            return value


def _context(value: Json) -> Json:
    if isinstance(value, list):
        return [_context(item) for item in value]
    if isinstance(value, str) and _ADDRESS.fullmatch(value) is not None:
        ours: Json = json.loads(json.dumps(CONTEXT))
        return ours
    return value
