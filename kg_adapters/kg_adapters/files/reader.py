"""Read the statements of the files that a graph is made of, and the named graphs that they are in."""

import re
import secrets
from codecs import BOM_UTF8
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

import pyoxigraph as ox

from kg_adapters.errors import InvalidRequest, InvalidSource
from kg_adapters.files.choice import ChosenGraphs, ReadFilter
from kg_adapters.files.frames import (
    Content,
    End,
    Note,
    Problem,
    ReadOrder,
    StatementColumns,
    StatementLines,
    parsed_frames,
)
from kg_adapters.files.json_graphs import LabelKeys
from kg_adapters.files.rdf import LINE_FORMATS, LONGEST, LineBlock, RdfLines
from kg_adapters.files.recognition import BAD_FILE, SourceBytes, opened, recognized, unreadable
from kg_adapters.files.rows import (
    GRAPH,
    NOT_PLAIN,
    RELATION,
    Row,
    Terms,
    line_in_graph,
    line_of,
    node_text,
    row_of,
    terms_of,
    unescaped,
)
from kg_adapters.files.sources import GRAPH_JSON, RDF_FORMATS, TABLES, Source, Sources
from kg_adapters.index.graph_index import StringTable
from kg_adapters.open_options import ReadingLimits, Refused
from kg_adapters.prefixes import is_prefix
from kg_adapters.tables.edges import EdgeSurvey
from kg_adapters.tables.options import TableOptions
from kg_adapters.tables.passes import CellSurvey, Surveyed, SurveyTask, TableTask, plan_sources
from kg_adapters.tables.report import TableReport
from kg_adapters.tables.survey import TableSurvey
from kg_adapters.terms import RDF_LANG_STRING, XSD_STRING, BlankNode

# What the parser calls nodes without a name is random; numbers make an import repeatable.
_NAMELESS: Final = re.compile(r"[a-f][0-9a-f]{15,31}|anon-.*", re.DOTALL)
_NUMBERED: Final = "_:f"


class FileTerms:
    """Makes the terms of one file those of the whole graph: its blank nodes are its own.

    Args:
        first_file: The number that labels of the first file's blank nodes begin with; None where there is one file.
    """

    def __init__(self, *, first_file: int | None) -> None:
        self._numbered = first_file is not None
        self._file = (first_file or 0) - 1
        self._nameless = 0
        self._blank: dict[str, str] = {}
        self._kinds: dict[str, tuple[str, str | None]] = {"": (XSD_STRING.value, None)}

    def start_file(self) -> None:
        """Forget the blank nodes of the file before."""
        self._file += 1
        self._blank.clear()

    def row(self, statement: ox.Quad | ox.Triple) -> Row | None:
        """Return a statement of the parser, or None where it is about a triple."""
        head, tail = statement.subject, statement.object
        if isinstance(head, ox.Triple) or isinstance(tail, ox.Triple):
            return None
        key = self.node(head)
        return row_of(key, statement.predicate.value, tail if isinstance(tail, ox.Literal) else self.node(tail))

    def line(self, statement: ox.Quad | ox.Triple) -> str:
        """Return a statement of the parser as a line of N-Quads in the default graph; its object may be a triple.

        Raises:
            InvalidRequest: Its subject is a triple, which RDF 1.2 does not allow.
        """
        head, tail = statement.subject, statement.object
        if (row := self.row(statement)) is not None:
            return line_of(row)
        if isinstance(head, ox.Triple) or not isinstance(tail, ox.Triple):
            raise InvalidRequest("A triple cannot be the subject of a statement; RDF 1.2 has reifiers for that.")
        return f"{node_text(self.node(head))} <{statement.predicate.value}> <<( {self.line(tail)[:-2]})>> .\n"

    def plain_row(self, terms: Terms) -> Row:
        """Return the statement of a plain line."""
        head, blank, relation, tail, blank_tail, text, kind, _, _ = terms
        key = head or self._label(blank)
        if tail:
            return key, relation, tail, None, None
        if blank_tail:
            return key, relation, self._label(blank_tail), None, None
        if kind not in self._kinds:
            self._kinds[kind] = _kind(kind)
        return key, relation, unescaped(text), *self._kinds[kind]

    def node(self, node: ox.NamedNode | ox.BlankNode) -> str:
        """Return the `node_key` of a node of the parser."""
        return node.value if isinstance(node, ox.NamedNode) else self._label(node.value)

    def _label(self, label: str) -> str:
        if label not in self._blank:
            self._blank[label] = self._renamed(label)
        return self._blank[label]

    def _renamed(self, label: str) -> str:
        if _NAMELESS.fullmatch(label) is not None or not _is_label(label):
            label = f"anon-{self._nameless}"
            self._nameless += 1
        return f"{_NUMBERED}{self._file}-{label}" if self._numbered else f"_:{label}"


def file_number_after(nodes: StringTable) -> int:
    """Return the least number above those that labels of blank nodes in a sorted table begin with."""
    number, place = 0, nodes.lower_bound(_NUMBERED.encode())
    while place < len(nodes) and nodes[place].startswith(_NUMBERED):
        digits, _, _ = nodes[place].removeprefix(_NUMBERED).partition("-")
        if digits.isdecimal():
            number = max(number, int(digits))
        # What begins alike comes at once.
        place = max(place + 1, nodes.lower_bound(f"{_NUMBERED}{digits}.".encode()))
    return number + 1


def _graph_of(quad: ox.Quad, form: ox.RdfFormat | None) -> ox.NamedNode | ox.BlankNode | None:
    """Return the graph of a statement; None for the default graph.

    Raises:
        InvalidRequest: It is in a formula of N3, whose statements are quoted, not stated.
    """
    graph = quad.graph_name
    if isinstance(graph, ox.BlankNode) and form == ox.RdfFormat.N3:
        raise InvalidRequest("A formula in { } states no facts, so it cannot be imported.")
    return None if isinstance(graph, ox.DefaultGraph) else graph


def _kind(behind: str) -> tuple[str, str | None]:
    if behind.startswith("@"):
        return RDF_LANG_STRING.value, behind[1:].lower()
    return behind.removeprefix("^^")[1:-1], None


def _is_label(label: str) -> bool:
    try:
        return bool(BlankNode(label).label)
    except InvalidRequest:
        return False


_LONGEST_LINE: Final = LONGEST // 2

_KEPT_PROBLEMS: Final = 10
_KEPT_NOTES: Final = 20


def _parsed(line: bytes, _number: int) -> Iterable[ox.Quad]:
    # The process that wrote it has checked the IRIs.
    return ox.parse(line, format=ox.RdfFormat.N_QUADS, lenient=True)


@dataclass
class Quads:
    """What an import records besides rows.

    Args:
        merge_graphs: Whether statements are taken out of their named graphs.
        lines: Lines of N-Quads: statements about triples, and, beside their rows, those in named graphs.
        in_graphs: How many statements were in named graphs.
        triple_terms: How many statements have a triple as their object, as RDF 1.2 allows; they have no row.
    """

    merge_graphs: bool = False
    lines: list[str] = field(default_factory=list[str])
    in_graphs: int = 0
    triple_terms: int = 0


class SourceReader:
    """Reads the statements of one import, file by file, whatever graph they are in.

    N-Triples and N-Quads are read here, line by line; every other format is parsed in a process of its own, which
    tells its statements as N-Quads.

    Args:
        skip_errors: Count what cannot be read and go on, instead of raising.
        graphs: IRIs of the named graphs to read; all of them, and the default graph, when empty.
        first_file: The number of the first file, which labels of blank nodes get; None where one file is the graph.
        limits: What one file may ask for.
        languages: The languages of names, where a file has those of all.
        tables: The options of tables; what they leave open is found.
        label_keys: Which features name the nodes of a `graph.json`, as `TYPE=FEATURE`.
        keep: Which statements are read; all when None.
        quads: Takes what rows do not hold.
        on_wait: Called again and again while a file is parsed and gives nothing; what it raises ends the reading.

    Raises:
        InvalidRequest: A label key is not written so.

    Attributes:
        skipped: How many statements, or rests of files, were left out.
        problems: The first of the reasons.
        notes: What was guessed about files.
        tables: What became of the tables that were planned.
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
        tables: TableOptions | None = None,
        label_keys: tuple[str, ...] = (),
        keep: ReadFilter | None = None,
        quads: Quads | None = None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        self._skip_errors = skip_errors
        self._graphs = ChosenGraphs(graphs)
        self._terms = FileTerms(first_file=first_file)
        self._limits = limits or ReadingLimits()
        self._on_wait = on_wait
        self._languages = languages
        self._table_options = tables or TableOptions()
        self._plans: dict[Source, TableTask] = {}
        self._planned: set[Source] = set()
        self._unreadable: set[Source] = set()
        # Whoever writes a table cannot foresee which cells share a hash.
        self._hash_seed = 1 + secrets.randbelow(2**32 - 1)
        LabelKeys(label_keys)  # says at once what is written wrongly
        self._label_keys = label_keys
        self._keep = keep
        self._quads = quads or Quads()
        self._content: SourceBytes | None = None
        self._read_bytes = 0
        self._statements = 0
        self.skipped = 0
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.tables: tuple[TableReport, ...] = ()
        self.prefixes: dict[str, str] = {}
        self.graph_json = False

    @property
    def position(self) -> int:
        """How many bytes of the current or last file were read."""
        return self._read_bytes if self._content is None else self._content.position

    def read(self, source: Source) -> Generator[list[Row]]:
        """Yield the statements of one file as rows, as `batches` does."""
        with closing(self.batches(source)) as batches:
            yield from (batch.rows() if isinstance(batch, StatementColumns) else batch for batch in batches)

    def batches(self, source: Source) -> Generator[list[Row] | StatementColumns]:
        """Yield the statements of one file, many at once, without those about triples.

        Raises:
            InvalidSource: The file cannot be read to its end; the message names the place and what was expected.
        """
        source = source if source.form else recognized(source, self._limits)
        if source.ending in TABLES and source not in self._planned:
            self.plan_tables([source])
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

    def plan_tables(self, sources: Sequence[Source]) -> None:
        """Survey the tables among some files, and plan what becomes of them; a table that is read alone stands alone.

        Raises:
            InvalidSource: A table cannot be read, or lacks a column that was named.
        """
        tables = [source for source in sources if source.ending in TABLES]
        plans, reports = plan_sources(tables, self._table_options, self._surveyed)
        self._planned.update(tables)
        self._plans |= plans
        self.tables += reports

    def _surveyed(self, source: Source, task: SurveyTask) -> Sequence[Surveyed]:
        found = list[Surveyed]()
        try:
            with closing(parsed_frames(self._order(source, task), self._on_wait)) as frames:
                for frame in frames:
                    self._content, self._read_bytes = None, frame.position
                    match frame.content:
                        case TableSurvey() | EdgeSurvey() | CellSurvey() as table:
                            found.append(table)
                        case Problem(text):
                            self._problem(text, Refused())
                        case _:
                            self._on_wait()
        except Refused as error:
            self._unreadable.add(source)
            self._problem(f"{source.path}, {error}.", error)
        return found

    def _order(self, source: Source, task: TableTask | None) -> ReadOrder:
        return ReadOrder(
            source, self._limits, self._skip_errors, self._languages, self._label_keys, task, self._hash_seed
        )

    def leave_out(self, found: Sources) -> None:
        """Count links that are not followed, and note the files that are read only if they are named."""
        for file in found.by_name[:1]:
            number = len(found.by_name)
            some = f"{number:,} files of the folder, such as {file}, were" if number > 1 else f"{file} was"
            said = f"{some} not read, since that may be no graph"
            self.notes.append(f"{said}: to import it too, name it beside the folder.")
        for link in found.outside:
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

    def _document(self, source: Source) -> Iterator[list[Row] | StatementColumns]:
        if source in self._unreadable:
            return
        order = self._order(source, self._plans.get(source))
        with closing(parsed_frames(order, self._on_wait)) as frames:
            for frame in frames:
                self._read_bytes = frame.position
                if isinstance(frame.content, StatementColumns) and not self._chooses:
                    self._statements += len(frame.content)
                    yield frame.content
                elif rows := list(self._heard(frame.content, source)):
                    yield rows

    def _heard(self, content: Content, source: Source) -> Iterator[Row]:
        match content:
            case StatementLines(lines):
                yield from self._rows(source, LineBlock(1, lines), _parsed, quads=True)
            case StatementColumns():
                self._statements += len(content)
                yield from (row for row in content.rows() if self._wants(row, None))
            case ox.Quad():
                yield from self._judged(source, [content])
            case Problem(text):
                self._problem(text, Refused())
            case Note(text):
                if len(self.notes) < _KEPT_NOTES:
                    self.notes.append(text)
            case End(prefixes):
                self._declare(prefixes)
            case _:
                self._on_wait()

    def _rows(
        self, source: Source, block: LineBlock, parse: Callable[[bytes, int], Iterable[ox.Quad]], *, quads: bool
    ) -> Iterator[Row]:
        """Yield the statements of lines, those that are not plain as a parser finds them."""
        lines: list[bytes] = []
        choice = self._chooses
        for place, terms in enumerate(terms_of(block.lines, quads=quads)):
            if terms[RELATION]:
                self._statements += 1
                row, graph = self._terms.plain_row(terms), terms[GRAPH]
                if (not choice or self._wants(row, graph or None)) and (
                    not graph or self._in_graph(source, row, graph)
                ):
                    yield row
            elif terms[NOT_PLAIN]:
                lines = lines or block.lines.split(b"\n")
                yield from self._judged(source, parse(lines[place], block.number + place))

    def _judged(self, source: Source, quads: Iterable[ox.Quad]) -> Iterator[Row]:
        for quad in quads:
            self._statements += 1
            try:
                graph = _graph_of(quad, RDF_FORMATS.get(source.ending))
                row = self._terms.row(quad)
                said = self._terms.line(quad) if row is None else row
            except InvalidRequest as error:
                self._problem(f"{source.path}, statement {self._statements:,}: {error}", error)
                continue
            named = graph.value if isinstance(graph, ox.NamedNode) else None
            if not self._wants(row or ("", quad.predicate.value, "", None, None), named):
                continue
            if graph is not None and not self._in_graph(source, said, self._terms.node(graph)):
                continue
            if row is not None:
                yield row
            elif isinstance(said, str) and self._put(source, said, "for a statement about a triple"):
                self._quads.triple_terms += 1

    def _in_graph(self, source: Source, statement: Row | str, graph: str) -> bool:
        """Report the graph of a statement, a row or a line; return whether the statement can be kept with it."""
        if not self._quads.merge_graphs:
            line = statement if isinstance(statement, str) else line_of(statement)
            if not self._put(source, line_in_graph(line, graph), "for a named graph; --merge-graphs takes it"):
                return False
        self._quads.in_graphs += 1
        return True

    def _put(self, source: Source, line: str, what_for: str) -> bool:
        if len(line.encode()) > _LONGEST_LINE:
            reason = f"over {_LONGEST_LINE >> 20} MiB are too long {what_for}"
            self._problem(f"{source.path}, statement {self._statements:,}: {reason}.", Refused())
            return False
        self._quads.lines.append(line)
        return True

    @property
    def _chooses(self) -> bool:
        return self._keep is not None or self._graphs.chosen

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
