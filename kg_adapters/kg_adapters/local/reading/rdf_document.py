"""Turtle, TriG, N3, RDF/XML and JSON-LD, where a statement may hang on all that stands before it."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from kg_adapters.local.reading.rdf_lines import TOO_LONG, Problem, syntax_reason
from kg_adapters.local.reading.rdf_streams import NO_UTF_8, SalvagedText
from kg_adapters.local.reading.sources import RDF_FORMATS, Source
from kg_adapters.local.reading.watched_text import WatchedText
from kg_adapters.local.reading.xml_lines import XmlLines
from kg_adapters.reading_limits import ReadingLimits

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
        self._stream = stream
        self._problem = problem
        if stream.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
            stream.read(len(BOM_UTF8))
        form = RDF_FORMATS[source.ending]
        self._resumable = form in _RESUMABLE
        self._xml = XmlLines(stream, limits) if form == ox.RdfFormat.RDF_XML else None
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
                self._check_end()
                reading = False
            except SyntaxError as error:
                self._broken(error)
                reading = self._resumable
                self._stream.restart()
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

    def _check_end(self) -> None:
        if self._xml is not None and not self._xml.complete:
            place = f"{self._source.path}, line {max(self._xml.line, 1)}"
            self._problem(f"{place}: the file ends before its first element does; it may be cut off.", EOFError())


def _base(source: Source) -> str:
    # Relative IRIs need a base; one without the folder keeps the store the same wherever the file lies.
    return Path("/", source.name.removesuffix(source.packing)).as_uri()
