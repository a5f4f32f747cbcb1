"""What the process runs that parses one file, and sends its statements as frames."""

import io
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.files.entity_json import EntityReader
from kg_adapters.files.frames import (
    OUT_OF_MEMORY,
    Content,
    End,
    Frame,
    Note,
    Problem,
    ReadOrder,
    StatementColumns,
    StatementLines,
)
from kg_adapters.files.nesting import WatchedText
from kg_adapters.files.rdf import RdfDocument, names_schema_org, with_context, with_dates
from kg_adapters.files.recognition import BAD_FILE, SourceBytes, opened, unreadable
from kg_adapters.files.rows import StatementColumn
from kg_adapters.files.sources import (
    ENTRIES,
    GRAPH_JSON,
    JSON_LINES,
    KGDATA,
    PARQUET,
    READ_WHOLE,
    RECORDS,
    SQLITE,
    TABLES,
)
from kg_adapters.open_options import ReadingLimits, Refused, setting
from kg_adapters.tables.iris import TABLE_PREFIXES
from kg_adapters.tables.rows import TableBatch, csv_batches
from kg_adapters.tables.sqlite import sqlite_batches
from kg_adapters.worker_process import Send, limit_memory

# What only tables need, numpy above all, is imported where a table is read.
if TYPE_CHECKING:
    from kg_adapters.tables.passes import Surveyed

_Term: TypeAlias = "ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | ox.DefaultGraph"

LONGEST_STATEMENTS: Final = 1 << 23
"""How many bytes of statements a frame holds at most; the parser takes no more than twice as many at once."""

_BATCH: Final = 1_000

_BATCH_CHARS: Final = 1 << 20

_TICK: Final = 10_000

_LABEL: Final = re.compile("[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")

_DEEPEST: Final = 16
"""How deep triples may be nested in triples."""


class Stopped(Exception):
    """Reading ended at a problem, because the rest of the file is not wanted."""


class FrameWriter:
    """Writes the content of a file as frames for another process.

    Args:
        path: The file.
        send: Sends a frame.
        limits: How long a literal may be.
        salvage: Whether to continue after a problem.
        quiet: Whether problems are left to a later pass over the file.

    Attributes:
        source: The file, once it is open.
        text: Its text, once it is read.
    """

    def __init__(self, path: Path, send: Send, limits: ReadingLimits, *, salvage: bool, quiet: bool = False) -> None:
        self._path = path
        self._send_frame = send
        self._limits = limits
        self._longest = min(limits.literal_bytes, LONGEST_STATEMENTS)
        self._salvage = salvage
        self._quiet = quiet
        self._batch: list[ox.Quad] = []
        self._chars = 0
        self._sent = self._ticks = 0
        self.source: SourceBytes | None = None
        self.text: WatchedText | None = None

    def statements(self, quads: Iterable[ox.Quad]) -> None:
        """Send statements, in batches."""
        for quad in quads:
            if isinstance(quad.object, ox.Triple) and _is_too_deep(quad.object):
                place = f"statement {self._sent + len(self._batch) + 1:,}"
                self.problem(f"{self._path}, {place}: triples are nested over {_DEEPEST} deep.", RecursionError())
            elif not (_is_writable(quad.subject) and _is_writable(quad.object) and _is_writable(quad.graph_name)):
                self._flush()
                self._sent += 1
                self._send(quad)
            else:
                self._batch.append(quad)
                self._chars += len(quad.object.value) if isinstance(quad.object, ox.Literal) else 0
            if len(self._batch) == _BATCH or self._chars > _BATCH_CHARS:
                self._flush()

    def columns(self, batches: Iterable[Sequence[StatementColumn]]) -> None:
        """Send statements by their relations."""
        for columns in batches:
            self._sent += sum(len(column.heads) for column in columns)
            self._send(StatementColumns(columns))

    def surveyed(self, found: "Surveyed") -> None:
        """Send what is known about a table."""
        self._send(found)

    def problem(self, message: str, _cause: BaseException) -> None:
        """Report what cannot be read.

        Raises:
            Stopped: Nothing after the problem is wanted.
        """
        if self._quiet:
            return
        self._flush()
        self._send(Problem(message))
        if not self._salvage:
            raise Stopped

    def note(self, text: str) -> None:
        """Report what was guessed about the file."""
        self._flush()
        self._send(Note(text))

    def tick(self) -> None:
        """Report that reading has come further."""
        self._ticks += 1
        self._send(None)

    def end(self, prefixes: Mapping[str, str]) -> None:
        """Send the last frame."""
        self._flush()
        self._send(End(dict(prefixes)))

    def _flush(self) -> None:
        batch, self._batch, self._chars = self._batch, [], 0
        if batch:
            self._send_all(batch)

    def _send_all(self, quads: list[ox.Quad]) -> None:
        lines = ox.serialize(quads, format=ox.RdfFormat.N_QUADS)
        assert lines is not None  # noqa: S101 - without an output, it is returned
        if len(lines) <= self._longest:
            self._sent += len(quads)
            self._send(StatementLines(lines))
        elif len(quads) == 1:
            self._sent += 1
            self._send_long(quads[0])
        else:
            half = len(quads) // 2
            self._send_all(quads[:half])
            self._send_all(quads[half:])

    def _send_long(self, quad: ox.Quad) -> None:
        terms = (quad.subject, quad.predicate, quad.object, quad.graph_name)
        if all(_size(term) <= self._limits.literal_bytes for term in terms):
            self._send(quad)
            return
        reason = (
            f"a literal or IRI has over {self._limits.literal_mb:,} MB; {setting('imports.literal_mb')} allows more"
        )
        self.problem(f"{self._path}, statement {self._sent:,}: {reason}.", ValueError())

    def _send(self, content: Content) -> None:
        position = 0 if self.source is None else self.source.position
        ticks = self._ticks + self._sent // _TICK + (0 if self.text is None else self.text.ticks)
        self._send_frame(Frame(content, position, ticks))


def _size(term: _Term) -> int:
    if isinstance(term, ox.Triple):
        return max(map(_size, (term.subject, term.predicate, term.object)))
    return 0 if isinstance(term, ox.DefaultGraph) else len(term.value.encode())


def _is_too_deep(term: ox.Triple) -> bool:
    inner: _Term = term
    for _ in range(_DEEPEST):
        if not isinstance(inner, ox.Triple):
            return False
        inner = inner.object
    return True


def _is_writable(term: _Term) -> bool:
    """Say whether N-Quads can write a term; not every parser gives blank nodes such labels."""
    if isinstance(term, ox.Triple):
        return _is_writable(term.subject) and _is_writable(term.object)
    return not isinstance(term, ox.BlankNode) or _LABEL.fullmatch(term.value) is not None


_MB: Final = 1_000_000


_HEAD: Final = 1 << 16

_NUMERIC: Final = frozenset({GRAPH_JSON, KGDATA, *TABLES})
"""The files that are read with numpy."""


def send_file(_requests: Iterator[object], send: Send, order: ReadOrder) -> None:
    """Send the statements of a file, up to its end or to the first problem.

    Raises:
        InvalidSource: The file is not what it should be.
    """
    if order.source.ending in _NUMERIC:
        # Before the limit, as its threads take address space: a lot of it on a machine with many cores.
        import_module("numpy")
    limit_memory(order.limits.memory * _MB)
    try:
        send_content(send, order)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def send_content(send: Send, order: ReadOrder) -> None:
    """Send the statements of a file as `send_file` does, whatever memory that takes.

    Raises:
        InvalidSource: The file is not what it should be.
    """
    quiet = order.salvage and order.table is not None and order.table.surveys
    writer = FrameWriter(order.source.path, send, order.limits, salvage=order.salvage, quiet=quiet)
    prefixes: Mapping[str, str] = {}
    with suppress(Stopped):
        prefixes = _send_content(order, writer)
    writer.end(prefixes)


def _send_content(order: ReadOrder, writer: FrameWriter) -> dict[str, str]:
    source, document = order.source, None
    try:
        with opened(source, order.limits) as content:
            text = WatchedText(content.stream, source.ending, writer.tick)
            writer.source, writer.text = content, text
            if source.ending in TABLES:
                _send_tables(order, _tables(order, text, writer), writer)
            elif source.ending == KGDATA:
                from kg_adapters.files.json_graphs import read_subgraphs

                writer.columns(read_subgraphs(text, str(source.path), writer.problem, writer.note))
            elif source.ending in READ_WHOLE:
                writer.statements(_whole(order, text, writer))
            elif source.ending == ".jsonld" and names_schema_org(text.peek(_HEAD)):
                own = WatchedText(io.BufferedReader(with_context(text, str(source.path))), source.ending, writer.tick)
                document = RdfDocument(source, own, writer.problem, order.limits, salvage=order.salvage)
                writer.statements(with_dates(document.read()))
            else:
                document = RdfDocument(source, text, writer.problem, order.limits, salvage=order.salvage)
                writer.statements(document.read())
    except Refused as error:
        writer.problem(f"{source.path}, {error}.", error)
    except BAD_FILE as error:
        writer.problem(f"{source.path} {unreadable(error)}.", error)
    if document is None:
        return TABLE_PREFIXES if source.ending in {KGDATA, *TABLES} else {}
    return document.prefixes


def _whole(order: ReadOrder, text: WatchedText, writer: FrameWriter) -> Iterator[ox.Quad]:
    """Return the statements of a file that is not RDF."""
    source, limits = order.source, order.limits
    if source.ending == GRAPH_JSON:
        from kg_adapters.files.json_graphs import LabelKeys, read_graph_json

        return read_graph_json(text, str(source.path), writer.problem, LabelKeys(order.label_keys))
    return EntityReader(str(source.path), writer.problem, order.languages, limits).read(text)


def _tables(order: ReadOrder, text: WatchedText, writer: FrameWriter) -> Iterator[TableBatch]:
    source, limits = order.source, order.limits
    if source.ending in SQLITE:
        return sqlite_batches(source, text, writer.problem, writer.note, limits)
    if source.ending == PARQUET:
        from kg_adapters.tables.parquet import parquet_batches

        return parquet_batches(source, text, writer.problem, writer.note, limits)
    if source.ending in {RECORDS, ENTRIES, *JSON_LINES}:
        from kg_adapters.tables.records import json_batches

        return json_batches(source, text, writer.problem, writer.note, limits)
    return csv_batches(source, text, writer.problem, limits)


def _send_tables(order: ReadOrder, tables: Iterator[TableBatch], writer: FrameWriter) -> None:
    from kg_adapters.tables.passes import SurveyTask, WriteTask, planned_statements, survey_tables

    match order.table:
        case SurveyTask() as task:
            for found in survey_tables(task, tables, writer.problem, writer.tick):
                writer.surveyed(found)
        case WriteTask() as task:
            writer.columns(planned_statements(task, tables, writer.problem))
        case None:
            # Only the problems are wanted.
            deque(tables, maxlen=0)
