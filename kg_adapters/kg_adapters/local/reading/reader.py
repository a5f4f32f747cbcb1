"""The statements of the files that a graph is made of."""

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.local.reading.documents import parsed_frames
from kg_adapters.local.reading.file_terms import ChosenGraphs, FileTerms, graph_of
from kg_adapters.local.reading.frames import Frame, Kind, long_statement, parsed_statements
from kg_adapters.local.reading.label_keys import LabelKeys
from kg_adapters.local.reading.plain_lines import GRAPH, NOT_PLAIN, RELATION, terms_of
from kg_adapters.local.reading.process import Order
from kg_adapters.local.reading.rdf_lines import LINE_FORMATS, Block, RdfLines
from kg_adapters.local.reading.read_filter import ReadFilter
from kg_adapters.local.reading.recognition import recognized
from kg_adapters.local.reading.rows import Row
from kg_adapters.local.reading.source_bytes import BAD_FILE, SourceBytes, opened, unreadable
from kg_adapters.local.reading.sources import GRAPH_JSON, RDF_FORMATS, Source
from kg_adapters.prefixes import is_prefix
from kg_adapters.reading_limits import ReadingLimits, Refused

_KEPT_PROBLEMS: Final = 10
_KEPT_NOTES: Final = 20


class SourceReader:
    """Reads the statements of one import, file by file, all merged into the default graph.

    N-Triples and N-Quads are read here, line by line; every other format is parsed in a process of its own, which
    tells its statements as N-Quads.

    Args:
        skip_errors: Count what cannot be read and go on, instead of raising.
        graphs: IRIs of the named graphs to read; all of them, and the default graph, when empty.
        first_file: The number of the first file, which labels of blank nodes get; None where one file is the graph.
        limits: What one file may ask for.
        languages: The languages of names, where a file has those of all.
        id_column: The column with the ids of a table's rows; guessed when None.
        label_keys: Which features name the nodes of a `graph.json`, as `TYPE=FEATURE`.
        keep: Which statements are read; all when None.
        on_wait: Called again and again while a file is parsed and gives nothing; what it raises ends the reading.

    Raises:
        InvalidRequest: A label key is not written so.

    Attributes:
        skipped: How many statements, or rests of files, were left out.
        problems: The first of the reasons.
        notes: What was guessed about files.
        prefixes: What the files declare, the first declaration of each prefix.
        graph_json: Whether one of the files was a `graph.json`.
    """

    def __init__(
        self,
        *,
        skip_errors: bool = False,
        graphs: Sequence[str] = (),
        first_file: int | None = None,
        limits: ReadingLimits | None = None,
        languages: tuple[str, ...] = ("en", "mul"),
        id_column: str | None = None,
        label_keys: tuple[str, ...] = (),
        keep: ReadFilter | None = None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self._skip_errors = skip_errors
        self._graphs = ChosenGraphs(graphs)
        self._terms = FileTerms(first_file=first_file)
        self._limits = limits or ReadingLimits()
        self._on_wait = on_wait
        self._languages = languages
        self._id_column = id_column
        LabelKeys(label_keys)  # says at once what is written wrongly
        self._label_keys = label_keys
        self._keep = keep
        self._content: SourceBytes | None = None
        self._read_bytes = 0
        self._statements = 0
        self.skipped = 0
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.prefixes: dict[str, str] = {}
        self.graph_json = False

    @property
    def position(self) -> int:
        """How many bytes of the current or last file were read."""
        return self._read_bytes if self._content is None else self._content.position

    def read(self, source: Source) -> Generator[list[Row]]:
        """Yield the statements of one file, many at once, no triple terms among them.

        Raises:
            InvalidSource: The file cannot be read to its end; the message names the place and what was expected.
        """
        source = source if source.form else recognized(source, self._limits)
        self._terms.start_file()
        self._read_bytes, self._content, self._statements = 0, None, 0
        self.graph_json |= source.ending == GRAPH_JSON
        try:
            lines = RDF_FORMATS.get(source.ending) in LINE_FORMATS
            yield from self._lines(source) if lines else self._document(source)
        except Refused as error:
            self._problem(f"{source.path}, {error}.", error)
        except BAD_FILE as error:
            self._problem(f"{source.path} {unreadable(error)}.", error)

    def leave_out(self, links: Sequence[Path]) -> None:
        """Count links that are not followed."""
        for link in links:
            self._note(f"{link} is a link that leads outside of the folder. It is followed with --follow-links.")

    def check_graphs(self) -> None:
        """Make sure that every chosen graph was met.

        Raises:
            InvalidSource: One of them is in none of the files that were read.
        """
        self._graphs.check()

    def _lines(self, source: Source) -> Iterator[list[Row]]:
        quads = RDF_FORMATS[source.ending] == ox.RdfFormat.N_QUADS
        with opened(source, self._limits) as content:
            self._content = content
            if content.stream.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
                content.stream.read(len(BOM_UTF8))
            wanted = None if self._keep is None else self._keep.pattern
            lines = RdfLines(source, self._problem, self._limits, wanted)
            for block in lines.blocks(content.stream):
                if rows := list(self._rows(source, block, lines.statements, quads=quads)):
                    yield rows

    def _document(self, source: Source) -> Iterator[list[Row]]:
        order = Order(
            source, self._limits, self._skip_errors, self._languages, self._id_column, label_keys=self._label_keys
        )
        with closing(parsed_frames(order, self._on_wait)) as frames:
            for frame in frames:
                self._read_bytes = frame.position
                if rows := list(self._heard(frame, source)):
                    yield rows

    def _heard(self, frame: Frame, source: Source) -> Iterator[Row]:
        match frame.kind:
            case Kind.STATEMENTS:
                block = Block(1, frame.body)
                yield from self._rows(source, block, lambda line, _: parsed_statements(line), quads=True)
            case Kind.LONG_STATEMENT:
                yield from self._judged(source, long_statement(frame))
            case Kind.PROBLEM:
                self._problem(frame.body.decode(), Refused())
            case Kind.NOTE:
                if len(self.notes) < _KEPT_NOTES:
                    self.notes.append(frame.body.decode())
            case Kind.REFUSAL:
                raise InvalidSource(frame.body.decode())
            case Kind.END:
                self._declare(json.loads(frame.body))
            case Kind.TICK:
                self._on_wait()

    def _rows(
        self, source: Source, block: Block, parse: Callable[[bytes, int], Iterable[ox.Quad]], *, quads: bool
    ) -> Iterator[Row]:
        """Yield the statements of lines, those that are not plain as a parser finds them."""
        lines: list[bytes] = []
        choice = self._keep is not None or self._graphs.chosen
        for place, terms in enumerate(terms_of(block.lines, quads=quads)):
            if terms[RELATION]:
                self._statements += 1
                row = self._terms.plain_row(terms)
                if not choice or self._wants(row, terms[GRAPH] or None):
                    yield row
            elif terms[NOT_PLAIN]:
                lines = lines or block.lines.split(b"\n")
                yield from self._judged(source, parse(lines[place], block.number + place))

    def _judged(self, source: Source, quads: Iterable[ox.Quad]) -> Iterator[Row]:
        for quad in quads:
            self._statements += 1
            try:
                graph = graph_of(quad, RDF_FORMATS.get(source.ending))
                row = self._terms.row(quad)
            except InvalidRequest as error:
                self._problem(f"{source.path}, statement {self._statements:,}: {error}", error)
            else:
                if self._wants(row, graph):
                    yield row

    def _wants(self, row: Row, graph: str | None) -> bool:
        return (self._keep is None or self._keep.keeps(row)) and self._graphs.wants(graph)

    def _declare(self, prefixes: Mapping[str, str]) -> None:
        for prefix, namespace in prefixes.items():
            if is_prefix(prefix):
                self.prefixes.setdefault(prefix, namespace)

    def _problem(self, message: str, cause: BaseException) -> None:
        if not self._skip_errors:
            raise InvalidSource(
                f"{message} Fix the file, or skip what cannot be read with kg-sextant import --skip-errors."
            ) from cause
        self._note(message)

    def _note(self, message: str) -> None:
        self.skipped += 1
        if len(self.problems) < _KEPT_PROBLEMS:
            self.problems.append(message)
