"""The statements of the files that a graph is made of."""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.local.documents import parsed_frames
from kg_adapters.local.label_keys import LabelKeys
from kg_adapters.local.rdf_lines import LINE_FORMATS, RdfLines
from kg_adapters.local.read_filter import ReadFilter
from kg_adapters.local.reading_frames import Frame, Kind, statements_of
from kg_adapters.local.reading_process import Order
from kg_adapters.local.recognition import recognized
from kg_adapters.local.source_bytes import BAD_FILE, SourceBytes, opened
from kg_adapters.local.sources import GRAPH_JSON, RDF_FORMATS, Source
from kg_adapters.prefixes import is_prefix
from kg_adapters.reading_limits import ReadingLimits, Refused
from kg_adapters.terms import BlankNode

# What the parser calls nodes without a name is random; numbers make an import repeatable.
_NAMELESS: Final = re.compile(r"[a-f][0-9a-f]{15,31}|anon-.*", re.DOTALL)
_KEPT_PROBLEMS: Final = 10
_KEPT_NOTES: Final = 20
_KEPT_GRAPHS: Final = 1_000


class SourceReader:
    """Reads the statements of one import, file by file, all merged into the default graph.

    N-Triples and N-Quads are read here, line by line; every other format is parsed in a process of its own, which
    tells its statements as N-Quads.

    Args:
        skip_errors: Count what cannot be read and go on, instead of raising.
        graphs: IRIs of the named graphs to read; all of them, and the default graph, when empty.
        several: Whether more than one file will be read; then blank node labels get the file's number.
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
        several: bool = False,
        limits: ReadingLimits | None = None,
        languages: tuple[str, ...] = ("en", "mul"),
        id_column: str | None = None,
        label_keys: tuple[str, ...] = (),
        keep: ReadFilter | None = None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self._skip_errors = skip_errors
        self._graphs = _Graphs(graphs)
        self._terms = _Terms(several=several)
        self._limits = limits or ReadingLimits()
        self._on_wait = on_wait
        self._languages = languages
        self._id_column = id_column
        LabelKeys(label_keys)  # says at once what is written wrongly
        self._label_keys = label_keys
        self._keep = keep
        self._content: SourceBytes | None = None
        self._read_bytes = 0
        self.skipped = 0
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.prefixes: dict[str, str] = {}
        self.graph_json = False

    @property
    def position(self) -> int:
        """How many bytes of the current or last file were read."""
        return self._read_bytes if self._content is None else self._content.position

    def read(self, source: Source) -> Generator[ox.Quad]:
        """Yield the statements of one file as quads of the default graph, no triple terms among them.

        Raises:
            InvalidSource: The file cannot be read to its end; the message names the place and what was expected.
        """
        source = source if source.form else recognized(source, self._limits)
        self._terms.start_file()
        self._read_bytes, self._content = 0, None
        self.graph_json |= source.ending == GRAPH_JSON
        lines = RDF_FORMATS.get(source.ending) in LINE_FORMATS
        try:
            yield from self._plain(self._lines(source) if lines else self._document(source), source)
        except Refused as error:
            self._problem(f"{source.path}, {error}.", error)
        except BAD_FILE as error:
            self._problem(f"{source.path} cannot be read to its end: {error}.", error)

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

    def _lines(self, source: Source) -> Iterator[ox.Quad]:
        with opened(source, self._limits) as content:
            self._content = content
            if content.stream.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
                content.stream.read(len(BOM_UTF8))
            wanted = None if self._keep is None else self._keep.pattern
            yield from RdfLines(source, self._problem, self._limits, wanted).read(content.stream)

    def _document(self, source: Source) -> Iterator[ox.Quad]:
        order = Order(
            source, self._limits, self._skip_errors, self._languages, self._id_column, label_keys=self._label_keys
        )
        with closing(parsed_frames(order, self._on_wait)) as frames:
            for frame in frames:
                self._read_bytes = frame.position
                yield from self._heard(frame)

    def _heard(self, frame: Frame) -> Iterator[ox.Quad]:
        match frame.kind:
            case Kind.STATEMENTS | Kind.LONG_STATEMENT:
                yield from statements_of(frame)
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

    def _plain(self, quads: Iterator[ox.Quad], source: Source) -> Iterator[ox.Quad]:
        form = RDF_FORMATS.get(source.ending)
        for number, quad in enumerate(quads, start=1):
            try:
                if (self._keep is None or self._keep.keeps(quad)) and self._graphs.wants(quad.graph_name, form):
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
                f"{message} Fix the file, or skip what cannot be read with kg-sextant import --skip-errors."
            ) from cause
        self._note(message)

    def _note(self, message: str) -> None:
        self.skipped += 1
        if len(self.problems) < _KEPT_PROBLEMS:
            self.problems.append(message)


class _Graphs:
    """The named graphs that were chosen, and those that were met."""

    def __init__(self, chosen: Sequence[str]) -> None:
        self._chosen = frozenset(chosen)
        self._met: set[str] = set()

    def wants(self, graph: ox.NamedNode | ox.BlankNode | ox.DefaultGraph, form: ox.RdfFormat | None) -> bool:
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
