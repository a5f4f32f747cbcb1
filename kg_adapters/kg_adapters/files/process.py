"""The program of the process that parses one file, and sends its statements as frames."""

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final, TypeAlias

import pyoxigraph as ox

from kg_adapters.errors import InvalidSource
from kg_adapters.files.entity_json import EntityReader
from kg_adapters.files.frames import (
    LONGEST_STATEMENTS,
    OUT_OF_MEMORY,
    Frame,
    Kind,
    Order,
    told_long_statement,
    told_statements,
    write_frame,
)
from kg_adapters.files.json_graphs import LabelKeys, read_graph_json, read_subgraphs
from kg_adapters.files.nesting import WatchedText
from kg_adapters.files.rdf import RdfDocument, names_schema_org, with_context, with_dates
from kg_adapters.files.recognition import BAD_FILE, SourceBytes, opened, unreadable
from kg_adapters.files.sources import ENTITY_JSON, GRAPH_JSON, KGDATA, READ_WHOLE, TABLES
from kg_adapters.files.table_columns import TABLE_PREFIXES
from kg_adapters.files.tables import TableReader
from kg_adapters.reading_limits import ReadingLimits, Refused, setting
from kg_adapters.worker_process import end_with_parent, limit_memory

_Term: TypeAlias = "ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | ox.DefaultGraph"

_BATCH: Final = 1_000

_BATCH_CHARS: Final = 1 << 20

_TICK: Final = 10_000

_PLAIN_LABEL: Final = re.compile("[A-Za-z0-9_]+")

_NODE: Final = ox.NamedNode("urn:x")

_TRIPLE: Final = ox.Triple(_NODE, _NODE, _NODE)


class Stopped(Exception):
    """There was a problem, and nobody wants what comes behind it."""


class Told:
    """Tells another process what a file holds.

    Args:
        path: The file.
        pipe: Where the other process listens.
        limits: How long a literal may be.
        salvage: Whether what comes behind a problem is wanted.

    Attributes:
        source: The file, once it is open.
        text: Its text, once it is read.
    """

    def __init__(self, path: Path, pipe: IO[bytes], limits: ReadingLimits, *, salvage: bool) -> None:
        self._path = path
        self._pipe = pipe
        self._limits = limits
        self._longest = min(limits.literal_bytes, LONGEST_STATEMENTS)
        self._salvage = salvage
        self._labels = _Labels()
        self._batch: list[ox.Quad] = []
        self._chars = 0
        self._told = 0
        self.source: SourceBytes | None = None
        self.text: WatchedText | None = None

    def statements(self, quads: Iterable[ox.Quad]) -> None:
        """Tell statements, in batches."""
        for quad in quads:
            self._batch.append(self._labels.sayable(quad))
            self._chars += len(quad.object.value) if isinstance(quad.object, ox.Literal) else 0
            if len(self._batch) == _BATCH or self._chars > _BATCH_CHARS:
                self._flush()

    def problem(self, message: str, _cause: BaseException) -> None:
        """Tell what cannot be read.

        Raises:
            Stopped: That was all.
        """
        self._flush()
        self._tell(Kind.PROBLEM, message.encode(errors="backslashreplace"))
        if not self._salvage:
            raise Stopped

    def note(self, text: str) -> None:
        """Tell what was guessed about the file."""
        self._flush()
        self._tell(Kind.NOTE, text.encode(errors="backslashreplace"))

    def tick(self) -> None:
        """Tell how far reading has come."""
        self._tell(Kind.TICK)

    def end(self, kind: Kind, body: bytes) -> None:
        """Tell that nothing more will come."""
        self._flush()
        self._tell(kind, body)

    def _flush(self) -> None:
        batch, self._batch, self._chars = self._batch, [], 0
        if batch:
            self._tell_all(batch)

    def _tell_all(self, quads: list[ox.Quad]) -> None:
        body = told_statements(quads)
        if len(body) <= self._longest:
            self._told += len(quads)
            self._tell(Kind.STATEMENTS, body)
        elif len(quads) == 1:
            self._told += 1
            self._tell_long(quads[0])
        else:
            half = len(quads) // 2
            self._tell_all(quads[:half])
            self._tell_all(quads[half:])

    def _tell_long(self, quad: ox.Quad) -> None:
        body = told_long_statement(quad)
        terms = (quad.subject, quad.predicate, quad.object, quad.graph_name)
        if body is not None and all(_size(term) <= self._limits.literal_bytes for term in terms):
            self._tell(Kind.LONG_STATEMENT, body)
            return
        reason = f"a literal or IRI has over {self._limits.literal_mb:,} MB; {setting('import_literal_mb')} allows more"
        self.problem(f"{self._path}, statement {self._told:,}: {reason}.", ValueError())

    def _tell(self, kind: Kind, body: bytes = b"") -> None:
        position = 0 if self.source is None else self.source.position
        ticks = self._told // _TICK + (0 if self.text is None else self.text.ticks)
        write_frame(Frame(kind, body, position, ticks), self._pipe)


def _size(term: _Term) -> int:
    return 0 if isinstance(term, ox.Triple | ox.DefaultGraph) else len(term.value.encode())


class _Labels:
    """Gives blank nodes labels that N-Quads can say, and takes terms out of terms."""

    def __init__(self) -> None:
        self._labels: dict[str, ox.BlankNode] = {}

    def sayable(self, quad: ox.Quad) -> ox.Quad:
        """Return a statement as it can be told."""
        subject, object_, graph = quad.subject, quad.object, quad.graph_name
        if not (
            isinstance(subject, ox.BlankNode)
            or isinstance(object_, ox.BlankNode | ox.Triple)
            or isinstance(graph, ox.BlankNode)
        ):
            return quad
        if isinstance(subject, ox.BlankNode):
            subject = self._labelled(subject)
        if isinstance(object_, ox.BlankNode):
            object_ = self._labelled(object_)
        elif isinstance(object_, ox.Triple):
            # Whoever listens refuses it, however deep it is.
            object_ = _TRIPLE
        if isinstance(graph, ox.BlankNode):
            graph = self._labelled(graph)
        return ox.Quad(subject, quad.predicate, object_, graph)

    def _labelled(self, node: ox.BlankNode) -> ox.BlankNode:
        label = node.value
        if _PLAIN_LABEL.fullmatch(label) is not None:
            return node
        if label not in self._labels:
            self._labels[label] = node if _is_sayable(node) else ox.BlankNode(f"anon-{label.encode().hex()}")
        return self._labels[label]


def _is_sayable(node: ox.BlankNode) -> bool:
    try:
        quads = list(ox.parse(f"{node} <urn:x> <urn:x> .", format=ox.RdfFormat.N_QUADS))
    except SyntaxError:
        return False
    return [quad.subject for quad in quads] == [node]


_MB: Final = 1_000_000


_HEAD: Final = 1 << 16


def tell(order: Order, told: Told) -> None:
    """Tell everything that a file holds, to the end or to where it cannot be read."""
    prefixes: dict[str, str] = {}
    try:
        prefixes = _tell_content(order, told)
    except Stopped:
        pass
    except InvalidSource as error:
        told.end(Kind.REFUSAL, str(error).encode(errors="backslashreplace"))
        return
    told.end(Kind.END, json.dumps(prefixes).encode())


def _tell_content(order: Order, told: Told) -> dict[str, str]:
    source, document = order.source, None
    try:
        with opened(source, order.limits) as content:
            text = WatchedText(content.stream, source.ending, told.tick)
            told.source, told.text = content, text
            if source.ending in READ_WHOLE:
                told.statements(_whole(order, text, told))
            elif source.ending == ".jsonld" and names_schema_org(text.peek(_HEAD)):
                own = WatchedText(io.BufferedReader(with_context(text, str(source.path))), source.ending, told.tick)
                document = RdfDocument(source, own, told.problem, order.limits, salvage=order.salvage)
                told.statements(with_dates(document.read()))
            else:
                document = RdfDocument(source, text, told.problem, order.limits, salvage=order.salvage)
                told.statements(document.read())
    except Refused as error:
        told.problem(f"{source.path}, {error}.", error)
    except BAD_FILE as error:
        told.problem(f"{source.path} {unreadable(error)}.", error)
    if document is None:
        return TABLE_PREFIXES if source.ending in {KGDATA, *TABLES} else {}
    return document.prefixes


def _whole(order: Order, text: WatchedText, told: Told) -> Iterator[ox.Quad]:
    """Return the statements of a file that is no RDF."""
    source, limits = order.source, order.limits
    if source.ending == GRAPH_JSON:
        return read_graph_json(text, str(source.path), told.problem, LabelKeys(order.label_keys))
    if source.ending == KGDATA:
        return read_subgraphs(text, str(source.path), told.problem, told.note)
    if source.ending == ENTITY_JSON:
        return EntityReader(str(source.path), told.problem, order.languages, limits).read(text)
    table = TableReader(source.path, source.name, told.problem, told.note, limits, order.id_column)
    return table.read(text, source.ending)


def main(parent: str, *order: str) -> None:
    """Read the file of an order, and tell it on standard output."""
    end_with_parent(int(parent))
    read = Order.of(*order)
    limit_memory(read.limits.memory * _MB)
    try:
        tell(read, Told(read.source.path, sys.stdout.buffer, read.limits, salvage=read.salvage))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    main(*sys.argv[1:])
