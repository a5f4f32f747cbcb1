"""N-Triples and N-Quads, where a broken line says nothing about the next one."""

import io
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.local.sources import RDF_FORMATS, Source
from kg_boundary.shown import visible_line

# Called for everything that cannot be read, with the place and the reason; it raises, or lets the rest be read.
Problem: TypeAlias = Callable[[str, BaseException], None]

LINE_FORMATS: Final = frozenset({ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS})
# The parser takes no longer statement.
LONGEST: Final = 1 << 24
TOO_LONG: Final = f"a statement has over {LONGEST:,} bytes, which is more than can be read at once"
_CHUNK: Final = 1 << 18


class RdfLines:
    """Reads one file line by line, as it seems; in truth as many lines at once as there are without an error.

    Args:
        source: What the file is.
        problem: Called for every line that cannot be read.
    """

    def __init__(self, source: Source, problem: Problem) -> None:
        self._path = source.path
        self._form = RDF_FORMATS[source.ending]
        self._problem = problem
        self._line = 1

    def read(self, stream: io.BufferedReader) -> Iterator[ox.Quad]:
        """Yield the statements."""
        rest = b""
        while data := stream.read1(_CHUNK):
            lines, end, rest = (rest + data).rpartition(b"\n")
            if end:
                yield from self._statements(lines)
                self._line += lines.count(b"\n") + 1
            if len(rest) > LONGEST:
                self._problem(f"{self._path}, line {self._line}: {TOO_LONG}.", MemoryError())
                rest = _behind_the_line(stream)
                self._line += 1
        yield from self._statements(rest)

    def _statements(self, lines: bytes) -> Iterator[ox.Quad]:
        try:
            quads = list(ox.parse(lines, format=self._form))
        except (SyntaxError, MemoryError):
            for number, line in enumerate(lines.split(b"\n"), start=self._line):
                yield from self._statement(line, number)
        else:
            yield from quads

    def _statement(self, line: bytes, number: int) -> list[ox.Quad]:
        try:
            return list(ox.parse(line, format=self._form))
        except SyntaxError as error:
            place = f"line {number}, column {error.offset}"
            self._problem(f"{self._path}, {place}: {syntax_reason(error)}.", error)
            return []


def syntax_reason(error: SyntaxError) -> str:
    """Return what the parser says about an error, without the place and fit to be printed."""
    reason = re.sub(r"^Parser error .*?: | \(line \d+\)$", "", error.msg).rstrip(".")
    return visible_line(reason)


def _behind_the_line(stream: io.BufferedReader) -> bytes:
    """Read on to the end of the line, and return as much behind it as was read with it."""
    while data := stream.read1(_CHUNK):
        _, end, behind = data.partition(b"\n")
        if end:
            return behind
    return b""
