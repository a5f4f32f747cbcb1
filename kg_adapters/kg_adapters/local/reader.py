"""The statements of the files that a graph is made of."""

import gzip
import io
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pyoxigraph as ox

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.local.graph_json import read_graph_json
from kg_adapters.local.rdf_document import RdfDocument
from kg_adapters.local.rdf_lines import LINE_FORMATS, RdfLines
from kg_adapters.local.sources import GRAPH_JSON, RDF_FORMATS, Source
from kg_adapters.prefixes import is_prefix
from kg_adapters.terms import BlankNode

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# What the parser calls nodes without a name is random; numbers make an import repeatable.
_NAMELESS: Final = re.compile(r"[a-f][0-9a-f]{15,31}|anon-.*", re.DOTALL)
_KEPT_PROBLEMS: Final = 10
_KEPT_GRAPHS: Final = 1_000
_BAD_FILE: Final = (OSError, EOFError, zlib.error)


class SourceReader:
    """Reads the statements of one import, file by file, all merged into the default graph.

    Args:
        skip_errors: Count what cannot be read and go on, instead of raising.
        graphs: IRIs of the named graphs to read; all of them, and the default graph, when empty.
        several: Whether more than one file will be read; then blank node labels get the file's number.

    Attributes:
        skipped: How many statements, or rests of files, were left out.
        problems: The first of the reasons.
        prefixes: What the files declare, the first declaration of each prefix.
        graph_json: Whether one of the files was a `graph.json`.
    """

    def __init__(self, *, skip_errors: bool = False, graphs: Sequence[str] = (), several: bool = False) -> None:
        self._skip_errors = skip_errors
        self._graphs = _Graphs(graphs)
        self._terms = _Terms(several=several)
        self._raw: io.BufferedReader | None = None
        self._read_bytes = 0
        self.skipped = 0
        self.problems: list[str] = []
        self.prefixes: dict[str, str] = {}
        self.graph_json = False

    @property
    def position(self) -> int:
        """How many bytes of the current or last file were read."""
        return self._read_bytes if self._raw is None else self._raw.tell()

    def read(self, source: Source) -> Iterator[ox.Quad]:
        """Yield the statements of one file as quads of the default graph, no triple terms among them.

        Raises:
            InvalidSource: The file cannot be read to its end; the message names the place and what was expected.
        """
        self._terms.start_file()
        self._read_bytes = 0
        with ExitStack() as stack:
            try:
                raw = stack.enter_context(source.path.open("rb"))
                self._raw = raw
                stream = stack.enter_context(_unpacked(raw)) if source.gzipped else raw
                yield from (
                    self._graph_json(stream, source) if source.ending == GRAPH_JSON else self._rdf(stream, source)
                )
            except _BAD_FILE as error:
                self._problem(f"{source.path} cannot be read to its end: {error}.", error)
            finally:
                self._read_bytes, self._raw = self.position, None

    def check_graphs(self) -> None:
        """Make sure that every chosen graph was met.

        Raises:
            InvalidSource: One of them is in none of the files that were read.
        """
        self._graphs.check()

    def _graph_json(self, stream: io.BufferedReader, source: Source) -> Iterator[ox.Quad]:
        self.graph_json = True
        yield from read_graph_json(stream, str(source.path), self._problem)

    def _rdf(self, stream: io.BufferedReader, source: Source) -> Iterator[ox.Quad]:
        if stream.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
            stream.read(len(BOM_UTF8))
        form = RDF_FORMATS[source.ending]
        if form in LINE_FORMATS:
            yield from self._plain(RdfLines(source, self._problem).read(stream), source)
            return
        document = RdfDocument(source, stream, self._problem, salvage=self._skip_errors)
        yield from self._plain(document.read(), source)
        self._declare(document.prefixes)

    def _plain(self, quads: Iterator[ox.Quad], source: Source) -> Iterator[ox.Quad]:
        form = RDF_FORMATS[source.ending]
        for number, quad in enumerate(quads, start=1):
            try:
                if self._graphs.wants(quad.graph_name, form):
                    yield self._terms.plain(quad)
            except InvalidRequest as error:
                self._problem(f"{source.path}, statement {number:,}: {error}", error)

    def _declare(self, prefixes: Mapping[str, str]) -> None:
        for prefix, namespace in prefixes.items():
            if is_prefix(prefix):
                self.prefixes.setdefault(prefix, namespace)

    def _problem(self, message: str, cause: BaseException) -> None:
        if not self._skip_errors:
            raise InvalidSource(
                f"{message} Mend the file, or leave out what is wrong with kg-sextant import --skip-errors."
            ) from cause
        self.skipped += 1
        if len(self.problems) < _KEPT_PROBLEMS:
            self.problems.append(message)


class _Piecemeal(gzip.GzipFile):
    """An archive that gives what it has at once, so that nothing is lost which stands before a damage."""

    def readinto(self, buffer: "WriteableBuffer") -> int:
        return self.readinto1(buffer)


def _unpacked(raw: io.BufferedReader) -> io.BufferedReader:
    return io.BufferedReader(_Piecemeal(fileobj=raw))


class _Graphs:
    """The named graphs that were chosen, and those that were met."""

    def __init__(self, chosen: Sequence[str]) -> None:
        self._chosen = frozenset(chosen)
        self._met: set[str] = set()

    def wants(self, graph: ox.NamedNode | ox.BlankNode | ox.DefaultGraph, form: ox.RdfFormat) -> bool:
        """Say whether statements of a graph are to be read.

        Raises:
            InvalidRequest: It is a formula of N3, whose statements are quoted, not stated.
        """
        if isinstance(graph, ox.BlankNode) and form == ox.RdfFormat.N3:
            raise InvalidRequest("A formula in { } states no facts, so it cannot be imported.")
        if not self._chosen:
            return True
        if not isinstance(graph, ox.NamedNode):
            return False
        if graph.value in self._chosen or len(self._met) < _KEPT_GRAPHS:
            self._met.add(graph.value)
        return graph.value in self._chosen

    def check(self) -> None:
        for missing in sorted(self._chosen - self._met):
            there = ", ".join(f"<{graph}>" for graph in sorted(self._met)[:10]) or "none"
            raise InvalidSource(f"No statement is in a graph <{missing}>. Named graphs that were read: {there}.")


class _Terms:
    """Makes the terms of one file those of the whole graph: its blank nodes are its own."""

    def __init__(self, *, several: bool) -> None:
        self._several = several
        self._files = 0
        self._nameless = 0
        self._blank: dict[str, ox.BlankNode] = {}

    def start_file(self) -> None:
        self._files += 1
        self._blank.clear()

    def plain(self, quad: ox.Quad) -> ox.Quad:
        """Return the statement in the default graph.

        Raises:
            InvalidRequest: It is about a triple term.
        """
        head, tail = quad.subject, quad.object
        if isinstance(head, ox.Triple) or isinstance(tail, ox.Triple):
            raise InvalidRequest("A triple stands where a node belongs (RDF 1.2 triple terms are not supported).")
        object_ = tail if isinstance(tail, ox.Literal) else self._node(tail)
        return ox.Quad(self._node(head), quad.predicate, object_)

    def _node(self, node: ox.NamedNode | ox.BlankNode) -> ox.NamedNode | ox.BlankNode:
        if isinstance(node, ox.NamedNode):
            return node
        label = node.value
        if label not in self._blank:
            self._blank[label] = self._renamed(label)
        return self._blank[label]

    def _renamed(self, label: str) -> ox.BlankNode:
        if _NAMELESS.fullmatch(label) is not None or not _is_label(label):
            label = f"anon-{self._nameless}"
            self._nameless += 1
        return ox.BlankNode(f"f{self._files}-{label}" if self._several else label)


def _is_label(label: str) -> bool:
    try:
        return bool(BlankNode(label).label)
    except InvalidRequest:
        return False
