"""N-Triples and N-Quads, where a broken line says nothing about the next one."""

import io
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.local.nesting import TOO_DEEP
from kg_adapters.local.sources import RDF_FORMATS, Source
from kg_adapters.reading_limits import MAX_DEPTH, ReadingLimits, setting
from kg_boundary.shown import visible_line

# Called for everything that cannot be read, with the place and the reason; it raises, or lets the rest be read.
Problem: TypeAlias = Callable[[str, BaseException], None]

LINE_FORMATS: Final = frozenset({ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS})
# The parser takes no longer statement.
LONGEST: Final = 1 << 24
TOO_LONG: Final = f"a statement has over {LONGEST:,} bytes, which is more than can be read at once"
_CHUNK: Final = 1 << 18
_LONGEST_REASON: Final = 300
_LITERAL: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')


class RdfLines:
    """Reads one file line by line, as it seems; in truth as many lines at once as there are without an error.

    Args:
        source: What the file is.
        problem: Called for every line that cannot be read.
        limits: How long a literal, and here a statement, may be.
        wanted: What a line has to hold to be read; every line when None.
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

    def read(self, stream: io.BufferedReader) -> Iterator[ox.Quad]:
        """Yield the statements."""
        rest: list[bytes] = []
        length = 0
        while data := stream.read1(_CHUNK):
            lines, end, behind = data.rpartition(b"\n")
            if end:
                lines = b"".join((*rest, lines))
                yield from self._statements(lines)
                self._line += lines.count(b"\n") + 1
                rest, length = [], 0
            rest.append(behind)
            length += len(behind)
            if length > self._longest:
                self._problem(f"{self._path}, line {self._line}: {self._too_long()}.", MemoryError())
                rest = [_behind_the_line(stream)]
                length = len(rest[0])
                self._line += 1
        yield from self._statements(b"".join(rest))

    def _too_long(self) -> str:
        if self._longest == LONGEST:
            return TOO_LONG
        return f"a statement has over {self._limits.literal_mb:,} MB; {setting('import_literal_mb')} allows more"

    def _statements(self, lines: bytes) -> Iterator[ox.Quad]:
        if self._wanted is not None and self._wanted.search(lines) is None:
            return
        try:
            # The parser does not survive terms within terms within terms.
            quads = None if b"<<" in lines else list(ox.parse(self._kept(lines), format=self._form))
        except (SyntaxError, MemoryError):
            quads = None
        if quads is not None:
            yield from quads
            return
        for number, line in enumerate(lines.split(b"\n"), start=self._line):
            if self._wanted is not None and self._wanted.search(line) is None:
                continue
            yield from self._statement(line, number)

    def _kept(self, lines: bytes) -> bytes:
        if self._wanted is None:
            return lines
        return b"\n".join(line for line in lines.split(b"\n") if self._wanted.search(line) is not None)

    def _statement(self, line: bytes, number: int) -> list[ox.Quad]:
        if line.count(b"<<") > MAX_DEPTH and _LITERAL.sub(b"", line).count(b"<<") > MAX_DEPTH:
            self._problem(f"{self._path}, line {number}: {TOO_DEEP}.", RecursionError())
            return []
        try:
            return list(ox.parse(line, format=self._form))
        except SyntaxError as error:
            place = f"line {number}, column {error.offset}"
            self._problem(f"{self._path}, {place}: {syntax_reason(error)}.", error)
            return []


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
