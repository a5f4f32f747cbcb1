"""What an answer says, line by line, before it is known which lines fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias
from typing import Literal as Choice

from kg_adapters.errors import KGError
from kg_adapters.terms import Attribute, BlankNode, Fact, Iri, Literal, Node, Term, Triple
from kg_boundary.shown import clipped, shown, visible_line
from kg_server.answers.results import Line, Over, Piece
from kg_server.compose.syntax import Call, RefusedPart
from kg_server.names import Names
from kg_server.naming.refusals import MisreadExpression

Section: TypeAlias = Choice["part", "result", "evidence", "sparql"]

_MAX_REASON: Final = 300
_EXPRESSION: Final = 100


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
            case Over(relation, backwards):
                return f"{'-' if backwards else ''}{names.alone(relation, ';', 'relation')}"
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


class Sized(Protocol):
    """A call that was worked out, or was not."""

    @property
    def call(self) -> Call | RefusedPart:
        """The call."""
        ...

    @property
    def kind(self) -> str:
        """What it gives."""
        ...

    @property
    def size(self) -> Piece:
        """How much that is."""
        ...

    @property
    def by(self) -> Over | None:
        """What the values of each node are over, where its lines do not say that."""
        ...

    @property
    def failure(self) -> KGError | None:
        """Why it was not worked out."""
        ...


def part_line(number: int, part: Sized, source: str) -> Told:
    """Return the line that heads a part: what was asked, and how much it gave or why it failed."""
    expression = spelled(part.call.span.start, part.call.span.end, source)
    text = f"part {number} | {expression} | "
    if part.failure is not None:
        reason, at = reason_of(part.failure), part.call.span
        pointer = ""
        if isinstance(part.failure, MisreadExpression):
            pointer = part.failure.within(at.start, at.end, source).removeprefix(part.failure.problem)
        return Told(
            (f"{text}error: {reason}{pointer}",), (str(number), expression, "error", reason), (), "part", number
        )
    return Told((text, *extent(part)), (str(number), expression, part.kind, part.size), (), "part", number)


def extent(part: Sized) -> tuple[Piece, ...]:
    """Return how much a part gave, and by what, where its lines leave that out."""
    return (part.size,) if part.by is None else (part.size, " by ", part.by)


def chained(facts: Sequence[Fact]) -> tuple[Piece, ...]:
    """Return the text that tells facts, those that follow one another without naming what links them twice.

    A fact about the same node as the one before, which led nowhere else, is told behind a semicolon without its head.
    """
    text: list[Piece] = ["because "]
    subject: Node | None = None
    end: Term | None = None
    for fact in facts:
        if fact.head == end:
            text += [" | ", Over(fact.relation), " | ", fact.tail]
            subject, end = None, fact.tail
        elif isinstance(fact, Triple) and fact.tail == end:
            text += [" | ", Over(fact.relation, backwards=True), " | ", fact.head]
            subject, end = None, fact.head
        else:
            head: list[Piece] = [] if fact.head == subject else [fact.head, " | "]
            text += ["; " if end is not None else "", *head, Over(fact.relation), " | ", fact.tail]
            subject, end = fact.head, fact.tail
    return tuple(text)


def query_line(number: int, query: str) -> Told:
    """Return the line that shows the SPARQL of a part."""
    return Told((f"SPARQL | {visible_line(query)}",), (str(number), query), (), "sparql", number)


def reason_of(failure: KGError | None) -> str:
    """Return why a part failed, on one line."""
    problem = failure.problem if isinstance(failure, MisreadExpression) else str(failure)
    return _told_reason(problem)


def spelled(start: int, end: int, source: str) -> str:
    """Return a stretch of the expression as it was written, on one line, the middle left out where it is long."""
    written = source[start:end]
    text = written if written.isprintable() else " ".join(written.split())
    if len(text) <= _EXPRESSION:
        return shown(text)
    half = _EXPRESSION // 2
    return f"{shown(text[:half])}…{shown(text[-half:])}"


def _told_reason(reason: str) -> str:
    """Return a message, whose names are shown already, in one column."""
    return clipped(visible_line(reason).replace(" | ", ", "), _MAX_REASON)
