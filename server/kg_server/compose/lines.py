"""What an answer says, line by line, before it is known which lines fit."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias
from typing import Literal as Choice

from kg_adapters.algebra import Best, Members, NumberOf, SetExpression, TotalOf
from kg_adapters.errors import KGError
from kg_adapters.models import Count
from kg_adapters.prefixes import Prefixes
from kg_adapters.set_requests import (
    Aggregated,
    Cell,
    Computed,
    Ends,
    Grouped,
    Listed,
    Row,
    SetQuestion,
    SharedBy,
    Tabled,
    Witness,
)
from kg_adapters.terms import Attribute, BlankNode, Fact, Iri, Literal, Node, Term, Triple
from kg_adapters.values import unit_of
from kg_boundary.shown import clipped, shown, visible_line
from kg_server.answers.remarks import lacking
from kg_server.answers.results import Knowledge, Line, Note, Over, Piece, kind_of_value
from kg_server.compose.naming import Heard
from kg_server.compose.routes import Way
from kg_server.compose.syntax import Call, Kind, RefusedPart
from kg_server.compose.totals import amount_of, is_counted, kind_of_values, notes_on_totals, noun, total_shown
from kg_server.names import Names, in_graph, shown_datatype
from kg_server.naming.refusals import MisreadExpression

Section: TypeAlias = Choice["part", "total", "result", "evidence", "sparql"]

_FACT: Final = ("head", "relation", "tail")
_MAX_REASON: Final = 300
_EXPRESSION: Final = 100
_LONGEST_REASON: Final = 200


@dataclass(frozen=True)
class Told(Line):
    """A line of an answer of Compose: in which section, of which part, and further rows that it stands for."""

    section: Section = "result"
    part: int = 1
    more: tuple[tuple[Piece, ...], ...] = ()

    @property
    def rows(self) -> tuple[tuple[Piece, ...], ...]:
        """All rows of the line."""
        return (self.row, *self.more) if self.row else ()

    def shown_piece(self, piece: Piece, names: Names, max_value: int, over: Iri | None) -> str:
        """See `Line`; in evidence things stand without their ids where nothing else can be meant."""
        match piece if self.section == "evidence" else "":
            case Over(relation, backwards, graph):
                return f"{'-' if backwards else ''}{names.alone(relation, ';', 'relation')}{in_graph(graph)}"
            case Iri() | BlankNode() as node:
                return names.alone(node, ";")
            case _:
                return super().shown_piece(piece, names, max_value, over)

    @property
    def stated(self) -> Iterator[Fact]:
        """The facts that its rows state of a node and what a relation leads to."""
        for row in self.rows:
            match row:
                case (_, Iri() | BlankNode() as node, Over(relation, backwards), Iri() | BlankNode() as end, *_):
                    yield Triple(end, relation, node) if backwards else Triple(node, relation, end)
                case (_, Iri() | BlankNode() as node, Over(relation), Literal() as value, *_):
                    yield Attribute(node, relation, value)
                case _:
                    pass


@dataclass(frozen=True, slots=True)
class RemarkRequest:
    """What the graph is asked for a call.

    Args:
        question: The question.
        kind: What it gives.
        of: The set that it starts from.
        way: What it walks, reads or measures, where there is one thing.
        ways: The columns of a table.
        total: What the groups come to, where that is not how many there are.
        counting: Whether only how many members there are is wanted.
        stated: Over which of several relations of one name a node leads to a term, by column, node and term.
    """

    question: SetQuestion
    kind: Kind
    of: SetExpression
    way: Way | None = None
    ways: tuple[Way, ...] = ()
    total: Way | None = None
    counting: bool = False
    stated: Mapping[tuple[int, Term, Term], Over] = field(default_factory=dict[tuple[int, Term, Term], Over])


@dataclass(frozen=True, slots=True)
class Worked:
    """A call that was worked out, or why it was not.

    Args:
        call: The call.
        kind: What it gives.
        size: How much that is: `5 nodes`, or the number itself.
        by: What the values of each node are over, where its lines do not say that.
        results: The lines of its results.
        total: How many results there are, shown or not.
        evidence: The lines that show the first ones.
        notes: What should be known about it.
        whole: Whether nothing is a lower bound.
        knowledge: What it rests on, where its size does not show that.
        read: The ids of names that are no ids.
        given: What the expression names, and nothing else is called so.
        typing: The relations from an instance to its class.
        query: SPARQL that asks the same, where it is wanted.
        failure: Why it was not worked out.
        totals: The lines of sums over all results.
    """

    call: Call | RefusedPart
    kind: Kind = "nodes"
    size: Piece = ""
    by: Over | None = None
    results: tuple[Told, ...] = ()
    total: int = 0
    evidence: tuple[Told, ...] = ()
    notes: tuple[Note, ...] = ()
    whole: bool = True
    knowledge: Knowledge | None = None
    read: Mapping[str, Node] = field(default_factory=dict[str, Node])
    given: frozenset[Node] = frozenset()
    typing: frozenset[Iri] = frozenset()
    query: str | None = None
    failure: KGError | None = None
    totals: tuple[Told, ...] = ()


def part_line(number: int, part: Worked, source: str) -> Told:
    """Return the line that heads a part: what was asked, and how much it gave or why it failed."""
    expression = spelled(part.call.span.start, part.call.span.end, source)
    text = f"part {number} | {expression} | "
    if part.failure is not None:
        at, problem, pointer = part.call.span, str(part.failure), ""
        if isinstance(part.failure, MisreadExpression):
            problem = part.failure.problem
            pointer = part.failure.within(at.start, at.end, source).removeprefix(problem)
        # Its names are shown already; it fills one column.
        reason = clipped(visible_line(problem).replace(" | ", ", "), _MAX_REASON)
        row = (str(number), expression, "error", reason)
        return Told((f"{text}error: {reason}{pointer}",), row, (), "part", number)
    return Told((text, *extent(part)), (str(number), expression, part.kind, part.size), (), "part", number)


def extent(part: Worked) -> tuple[Piece, ...]:
    """Return how much a part gave, and by what, where its lines leave that out."""
    return (part.size,) if part.by is None else (part.size, " by ", part.by)


Origins: TypeAlias = Mapping[Fact, tuple[str, ...]]
"""The graphs of each fact in an answer over several; empty in others."""


def chained(facts: Sequence[Fact], origins: Origins) -> tuple[Piece, ...]:
    """Return the text that tells facts, those that follow one another without naming what links them twice.

    A fact about the same node as the one before, which led nowhere else, follows a semicolon, without its head.
    """
    text: list[Piece] = ["because "]
    subject: Node | None = None
    end: Term | None = None
    for fact in facts:
        graph = next(iter(origins.get(fact, ())), "")
        if fact.head == end:
            text += [" | ", Over(fact.relation, graph=graph), " | ", fact.tail]
            subject, end = None, fact.tail
        elif isinstance(fact, Triple) and fact.tail == end:
            text += [" | ", Over(fact.relation, backwards=True, graph=graph), " | ", fact.head]
            subject, end = None, fact.head
        else:
            head: list[Piece] = [] if fact.head == subject else [fact.head, " | "]
            text += ["; " if end is not None else "", *head, Over(fact.relation, graph=graph), " | ", fact.tail]
            subject, end = fact.head, fact.tail
    return tuple(text)


def query_line(number: int, query: str) -> Told:
    """Return the line that shows the SPARQL of a part."""
    return Told((f"SPARQL | {visible_line(query)}",), (str(number), query), (), "sparql", number)


def spelled(start: int, end: int, source: str) -> str:
    """Return a stretch of the expression as it was written, on one line, the middle left out where it is long."""
    written = source[start:end]
    text = written if written.isprintable() else " ".join(written.split())
    if len(text) <= _EXPRESSION:
        return shown(text)
    half = _EXPRESSION // 2
    return f"{shown(text[:half])}…{shown(text[-half:])}"


def told(number: int, call: Call, asked: RemarkRequest, computed: Computed, heard: Heard, prefixes: Prefixes) -> Worked:
    """Return the pieces that describe what a call found."""
    written = _Lines(number, asked, prefixes)
    lines = tuple(written.of(computed))
    single = asked.counting or isinstance(asked.question, Aggregated)
    counts = [computed.count] if asked.counting else [cell.count for row in computed.rows for cell in row.cells]
    nothing = asked.kind == "numbers" and counts and not any(each.value for each in counts)
    return Worked(
        call,
        asked.kind,
        _size(asked, computed),
        written.by if len(computed.rows) > 1 else None,
        lines,
        len(lines) if single else max(computed.count.value, len(lines)),
        tuple(line for witness in computed.witnesses for line in chain(number, witness)),
        (*heard.notes, *_remarks(asked, computed, heard.absent)),
        computed.count.exact and all(each.exact for each in counts),
        # That there are none is not stated by any fact.
        "unknown" if nothing else None,
        heard.nodes,
    )


def one_source(asked: RemarkRequest) -> Node | None:
    """Return the one node from which a single step leads to what is listed; None where there is none."""
    steps = asked.way is not None and asked.way.over is not None
    nodes = asked.of.nodes if isinstance(asked.question, Listed) and isinstance(asked.of, Members) and steps else ()
    return nodes[0] if len(nodes) == 1 else None


class _Lines:
    """The results of one call, line by line."""

    def __init__(self, number: int, asked: RemarkRequest, prefixes: Prefixes) -> None:
        self._number = number
        self._asked = asked
        self._prefixes = prefixes
        self._over: Piece = (asked.way.only if asked.way is not None else None) or ""
        # What leads from one node over one relation is a statement about it.
        self._source = one_source(asked)

    def of(self, computed: Computed) -> Iterator[Told]:
        """Yield the lines of an answer."""
        match self._asked.question:
            case _ if self._asked.counting:
                yield self._line((computed.count,), "", "", computed.count, exactness(computed.count))
            case Listed():
                source = self._source
                for member in computed.members:
                    over = "" if source is None else self._asked.stated.get((0, source, member), self._over)
                    node = source if source is not None and over else ""
                    yield self._line((member,), node, over, member, kind_of_term(member, self._prefixes))
            case Aggregated(by=by) if computed.value is not None:
                value = amount_of(by, computed.value)
                yield self._line((value,), "", "", value, self._kind(value))
            case Grouped(total=total):
                for group in computed.groups:
                    shown = (group.size,) if total is None else total_shown(total, group.total, group.size)
                    kind = self._kind(shown[0])
                    yield self._line((group.by, ": ", *shown), group.by, self._over, shown[0], kind, marks=":")
            case SharedBy():
                for shared in computed.shared:
                    over = Over(shared.step.relation, shared.step.direction == "in")
                    yield self._line(
                        (over, " | ", shared.term), "", over, shared.term, kind_of_term(shared.term, self._prefixes)
                    )
            case _:
                yield from (self._row(row, alone=len(computed.rows) == 1) for row in computed.rows)

    @property
    def by(self) -> Over | None:
        """The one relation that the cells of all rows are over."""
        overs = self._overs
        return None if self._numbers or self._totals[0] is not None or len(overs) > 1 else overs[0]

    @property
    def _overs(self) -> Sequence[Over | None]:
        asked = self._asked
        return [way.only for way in asked.ways] or [None if asked.way is None else asked.way.only]

    @property
    def _totals(self) -> Sequence[TotalOf | NumberOf | None]:
        """What the cells of each column come to; None where they hold what a path reaches, or all are numbers."""
        columns = self._asked.question.columns if isinstance(self._asked.question, Tabled) else (None,)
        return [None if self._numbers or isinstance(column, Ends) else column for column in columns]

    def _kind(self, shown: Piece) -> str:
        """Return what sort of number is shown, for programs."""
        unit = unit_of(shown) if isinstance(shown, Literal) else None
        if unit is not None:
            return shown_datatype(unit, self._prefixes)
        return exactness(shown) if isinstance(shown, Count) else "number"

    def _row(self, row: Row, *, alone: bool) -> Told:
        """Return the line of a node; one that stands alone names the relation that its values are over."""
        text: list[Piece] = [row.node]
        cells: list[tuple[Piece, ...]] = []
        for place, (each, over, total) in enumerate(zip(row.cells, self._overs, self._totals, strict=True)):
            cell = _values_of(each) if self._asked.kind == "values" else each
            named: list[Piece] = [" | ", self.by, " | "] if alone and self.by is not None and cell.terms else [": "]
            text += [" | "] if place or len(row.cells) > 1 else named
            if total is not None and (cell.count.value or is_counted(total)):
                shown = total_shown(total, cell.total, cell.count)
                text += shown
                cells.append((str(self._number), row.node, over or "", shown[0], self._kind(shown[0])))
                continue
            text += self._shown(cell)
            cells += self._cells(row.node, over or "", cell, place)
        first, *more = cells
        return Told(tuple(text), first, part=self._number, more=tuple(more), marks=",:")

    def _shown(self, cell: Cell) -> Iterator[Piece]:
        if self._numbers:
            yield cell.count
        elif not cell.terms:
            yield "none" if cell.count.exact else "not known"
        else:
            if len(cell.terms) > 1:
                yield f"{cell.count}: "
            for place, term in enumerate(cell.terms):
                yield from ((", ", term) if place else (term,))
            if cell.count.value > len(cell.terms):
                yield ", …"

    def _cells(self, node: Term, over: Piece, cell: Cell, place: int) -> list[tuple[Piece, ...]]:
        number = str(self._number)
        if self._numbers:
            return [(number, node, over, cell.count, exactness(cell.count))]
        told: list[tuple[Piece, ...]] = [
            (number, node, self._asked.stated.get((place, node, term), over), term, kind_of_term(term, self._prefixes))
            for term in cell.terms
        ]
        return told or [(number, node, over, "", "none" if cell.count.exact else "at least")]

    @property
    def _numbers(self) -> bool:
        question = self._asked.question
        is_rows = self._asked.kind == "rows"
        return isinstance(question, Tabled) and isinstance(question.columns[0], NumberOf) and not is_rows

    def _line(
        self, text: tuple[Piece, ...], node: Piece, over: Piece, result: Piece, kind: str, *, marks: str | None = None
    ) -> Told:
        return Told(text, (str(self._number), node, over, result, kind), part=self._number, marks=marks)


def kind_of_term(term: Term, prefixes: Prefixes) -> str:
    """Return whether a term is a node, or which sort of value it is, for programs."""
    return kind_of_value(term, prefixes) or "text" if isinstance(term, Literal) else "node"


def _values_of(cell: Cell) -> Cell:
    """Return a cell without nodes."""
    values = tuple(term for term in cell.terms if isinstance(term, Literal))
    return Cell(values, Count(len(values), exact=cell.count.exact and cell.count.value == len(cell.terms)))


def exactness(count: Count) -> str:
    """Return what sort of number a count is, for programs."""
    return "number" if count.exact else "at least"


def _size(asked: RemarkRequest, computed: Computed) -> Piece:
    """Return how much there is: the number itself where it is one."""
    count, question = computed.count, asked.question
    if asked.counting:
        return count
    if isinstance(question, Aggregated):
        if computed.value is None:
            return "none has a value"
        return amount_of(question.by, computed.value)
    if isinstance(question, Tabled) and len(computed.rows) == 1 and asked.kind in {"values", "numbers"}:
        cell = computed.rows[0].cells[0]
        return cell.count if asked.kind == "numbers" else noun(_values_of(cell).count, "value")
    match question:
        case Listed():
            name = asked.kind.removesuffix("s")
        case Grouped():
            name = "group"
        case SharedBy():
            name = "thing in common"
        case Tabled():
            name = "row" if asked.kind == "rows" else "node"
    return noun(count, name)


def _remarks(asked: RemarkRequest, computed: Computed, absent: Collection[Iri]) -> Iterator[Note]:
    """Yield what a number alone would hide: members that are as good as the last, several values, those left out."""
    question, number, without = asked.question, computed.count, computed.without
    if computed.without_witnesses:
        yield (f"Without evidence: {clipped(computed.without_witnesses, _LONGEST_REASON)}",)
    best = question.of if isinstance(question, Tabled | Listed) else None
    if isinstance(best, Best) and number.value > best.n:
        yield (f"These are {number}: {number.value - best.n:,} more tie with the last of {best.n}.",)
    adds_up = isinstance(question, Aggregated) and question.function in {"sum", "mean"}
    if adds_up and number.value > computed.measured.value:
        yield (f"Of {noun(number, 'value')} of {noun(computed.measured, 'node')}.",)
    yield from notes_on_totals(question, computed, asked.way, asked.ways, asked.total)
    if without.value and (asked.way is None or not set(asked.way.relations) <= set(absent)):
        kind = "date" if isinstance(question, Grouped) and question.part else kind_of_values(question)
        name: Note = () if asked.way is None else (asked.way.name,)
        unfit = computed.unfit.value
        # The groups are not of the same kind as those that are in none.
        more = f" {'node' if without.value == 1 else 'nodes'}" if isinstance(question, Grouped) else " more"
        yield lacking("", more, without.value - unfit, unfit, name, kind, "not counted")


def chain(number: int, witness: Witness) -> Iterator[Told]:
    """Yield the facts that show a result as one line; every fact is a row."""
    if not witness.facts:
        return
    first, *more = [(fact.head, Over(fact.relation), fact.tail) for fact in witness.facts]
    yield Told(chained(witness.facts, {}), first, witness.facts, "evidence", number, tuple(more))


def marked(line: Told, origins: Origins) -> Told:
    """Return a line whose facts, and rows that state one, have their graphs."""
    first, *more = [_marked(row, origins) for row in line.rows] or [()]
    if line.section == "evidence":
        return replace(line, text=chained(line.facts, origins) if line.text else (), row=first, more=tuple(more))
    graphs = {piece.graph for row in (first, *more) for piece in row if isinstance(piece, Over)}
    graph = graphs.pop() if len(graphs) == 1 else ""
    text = tuple(replace(piece, graph=graph) if isinstance(piece, Over) else piece for piece in line.text)
    return replace(line, text=text, row=first, more=tuple(more))


def _marked(row: tuple[Piece, ...], origins: Origins) -> tuple[Piece, ...]:
    stated = next(iter(Told((), row if len(row) > len(_FACT) else ("", *row)).stated), None)
    graph = "" if stated is None else next(iter(origins.get(stated, ())), "")
    return tuple(replace(piece, graph=graph) if isinstance(piece, Over) else piece for piece in row)
