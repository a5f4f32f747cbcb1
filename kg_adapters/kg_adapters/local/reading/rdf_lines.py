"""N-Triples and N-Quads, where a broken line says nothing about the next one."""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.local.reading.nesting import TOO_DEEP
from kg_adapters.local.reading.sources import RDF_FORMATS, Source
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


@dataclass(frozen=True, slots=True)
class Block:
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

    def blocks(self, stream: io.BufferedReader) -> Iterator[Block]:
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
        return f"a statement has over {self._limits.literal_mb:,} MB; {setting('import_literal_mb')} allows more"

    def _block(self, lines: bytes) -> Iterator[Block]:
        number = self._line
        self._line += lines.count(b"\n") + 1
        if self._wanted is not None:
            if self._wanted.search(lines) is None:
                return
            split = lines.split(b"\n")
            lines = b"\n".join(line if self._wanted.search(line) is not None else b"" for line in split)
        yield Block(number, lines)


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
