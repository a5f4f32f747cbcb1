"""What an answer says, line by line, before it is known which lines fit."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, Protocol, TypeAlias
from typing import Literal as Choice

from kg_adapters.errors import KGError
from kg_adapters.models import Count
from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import BlankNode, Iri, Literal, Node
from kg_boundary.shown import clipped, shown, visible_line
from kg_server.compose.outcomes import Edge, Fact, Outcome, Part, Step, identity
from kg_server.compose.pointing import MisreadExpression
from kg_server.compose.syntax import Call
from kg_server.lines import Line, Over, Piece, kind_of_value
from kg_server.names import MAX_VALUE, Names

Section: TypeAlias = Choice["part", "result", "step", "evidence"]

_MAX_REASON: Final = 300
_EXPRESSION: Final = 100


@dataclass(frozen=True, slots=True)
class Told(Line):
    """A line of an answer of Compose: of which part, in which section of it, and further rows that it stands for."""

    section: Section
    part: int
    more: tuple[tuple[Piece, ...], ...] = ()

    @property
    def rows(self) -> tuple[tuple[Piece, ...], ...]:
        """All rows of the line."""
        return (self.row, *self.more)

    def shown(self, names: Names, max_value: int = MAX_VALUE) -> str:
        """Return the line for readers, values plainly; evidence names things without their ids."""
        return "".join(_called(piece, names, max_value, with_ids=self.section != "evidence") for piece in self.text)

    @property
    def nodes(self) -> Iterator[Node]:
        """The entities that the line names."""
        pieces = chain(self.text, *self.rows)
        return (piece for piece in pieces if isinstance(piece, Iri | BlankNode))

    @property
    def relations(self) -> Iterator[Iri]:
        """The relations and features that the line names."""
        return (piece.relation for piece in chain(self.text, *self.rows) if isinstance(piece, Over))


class Sized(Protocol):
    """A call that was worked out, or was not."""

    @property
    def call(self) -> Call:
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
    def failure(self) -> KGError | None:
        """Why it was not worked out."""
        ...


def part_line(number: int, part: Sized, source: str) -> Told:
    """Return the line that heads a part: what was asked, and how much it gave or why it failed."""
    expression = spelled(part.call.span.start, part.call.span.end, source)
    text = f"part {number} | {expression} | "
    if part.failure is not None:
        reason = reason_of(part.failure)
        return Told((f"{text}error: {reason}",), (str(number), expression, "error", reason), "part", number)
    return Told((text, part.size), (str(number), expression, part.kind, part.size), "part", number)


def result_lines(number: int, part: Part, prefixes: Prefixes) -> Iterator[Told]:
    """Yield what a part gives: what failed first, then the facts, then the nodes without any."""
    outcome = part.outcome
    if outcome is None:
        return
    over: Piece = outcome.over or ""
    for failure in outcome.failures:
        reason = _told_reason(failure.reason)
        failed: tuple[Piece, ...] = (str(number), failure.node, over, reason, "error")
        yield Told((failure.node, f" | error: {reason}"), failed, "result", number)
    for fact in outcome.facts:
        row = (str(number), fact.subject or "", over, fact.item, _sort_of(fact, prefixes))
        yield Told(_told(fact, outcome.over), row, "result", number)
    for node in outcome.without:
        yield Told((node, " | ", over, " | none"), (str(number), node, over, "", "none"), "result", number)


def step_lines(number: int, part: Part, source: str) -> Iterator[Told]:
    """Yield how a part was worked out, inner calls first; nothing where there is nothing to tell."""
    if len(part.steps) == 1 and not part.steps[0].notes and part.outcome is not None:
        return
    for step in part.steps:
        expression = spelled(step.call.span.start, step.call.span.end, source)
        size = size_of(step.outcome)
        told = tuple(_joined(_remarks(step)))
        text = ("step | ", expression, " | ", size, *((" | ", *told) if told else ()))
        yield Told(text, (str(number), expression, size, *_single(step.outcome)), "step", number)


def evidence_lines(number: int, part: Part) -> Iterator[list[Told]]:
    """Yield for each inner call the statements that lead to the part's results, from the last call back to the first.

    What was read on the way but leads to no result is left out.
    """
    leading: set[object] = set(_focus(part))
    told: set[tuple[Piece, ...]] = set()
    for step in reversed(part.steps):
        about = [edge for edge in _edges(step) if identity(edge.fact.item) in leading]
        leading.update(edge.fact.subject for edge in about)
        if step.call is not part.call or step.outcome.looked_up:
            lines = {line.row: line for line in (_evidence(number, edge) for edge in about)}
            yield [line for row, line in lines.items() if row not in told]
            told.update(lines)


def size_of(outcome: Outcome) -> str:
    """Return how much an outcome is, as in `5 nodes`, `at least 20 values` or, for one number, the number itself."""
    if outcome.kind == "numbers":
        if len(outcome.facts) == 1 and outcome.complete:
            return str(outcome.facts[0].item)
        return _of(len(outcome.facts), outcome.total, "number")
    return _of(len(outcome.items), outcome.total, outcome.kind.removesuffix("s"))


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


def _of(here: int, total: Count, noun: str) -> str:
    if total.exact and total.value == here:
        return f"{here:,} {noun}{'' if here == 1 else 's'}"
    if total.value == here:
        return f"{total} {noun}{'' if here == 1 else 's'}"
    return f"{here:,} of {total} {noun}s"


def _told(fact: Fact, over: Over | None) -> tuple[Piece, ...]:
    if fact.subject is None:
        return (fact.item,)
    if over is None:
        return (fact.subject, " | ", fact.item)
    if isinstance(fact.item, Count):
        return (fact.subject, " | ", over, " | ", fact.item)
    return _statement(fact.subject, fact.item, over)


def _statement(subject: Node, item: Node | Literal, over: Over) -> tuple[Piece, ...]:
    head, tail = (item, subject) if over.backwards else (subject, item)
    return (head, " | ", Over(over.relation), " | ", tail)


def _called(piece: Piece, names: Names, max_value: int, *, with_ids: bool) -> str:
    """Return a piece of a line; without ids only what has no other name shows its own."""
    match piece:
        case Literal():
            return names.value(piece, max_value)
        case Over(relation, backwards) if not with_ids:
            return f"{'-' if backwards else ''}{names.shown_label(relation)}"
        case Iri() | BlankNode() if not with_ids:
            return names.shown_label(piece)
        case _:
            return Line((piece,), ()).shown(names, max_value)


def _edges(step: Step) -> Iterator[Edge]:
    """Yield the statements that a step read."""
    yield from step.outcome.looked_up
    if step.outcome.over is not None and step.outcome.kind != "numbers":
        for fact in step.outcome.facts:
            yield Edge(fact, step.outcome.over)


def _evidence(number: int, edge: Edge) -> Told:
    pieces = _told(edge.fact, edge.over)
    row = tuple(piece for piece in pieces if piece != " | ")
    return Told(("evidence | ", *pieces), row, "evidence", number)


def _sort_of(fact: Fact, prefixes: Prefixes) -> str:
    match fact.item:
        case Literal() as value:
            return kind_of_value(value, prefixes) or "text"
        case Count() as count:
            return "number" if count.exact else "at least"
        case _:
            return "node"


def _single(outcome: Outcome) -> tuple[Piece, ...]:
    """Return the only item of an outcome as a cell, or an empty one."""
    return (outcome.facts[0].item,) if len(outcome.facts) == 1 else ("",)


def _remarks(step: Step) -> Iterator[tuple[Piece, ...]]:
    """Yield what is to be said about a step: its only node, its relation, its notes."""
    outcome = step.outcome
    if outcome.kind != "numbers" and len(outcome.facts) == 1:
        yield _single(outcome)
    if outcome.over is not None:
        yield ("over ", outcome.over)
    if outcome.without and outcome.facts:
        yield (f"none for {_of(len(outcome.without), Count(len(outcome.without)), 'node')}",)
    if outcome.failures:
        yield (f"failed for {_of(len(outcome.failures), Count(len(outcome.failures)), 'node')}",)
    yield from step.notes


def _joined(remarks: Iterable[tuple[Piece, ...]]) -> Iterator[Piece]:
    for place, remark in enumerate(remarks):
        if place:
            yield "; "
        yield from remark


def _focus(part: Part) -> Iterator[object]:
    """Yield what a part is about in the end: its nodes and values, or those that it counts."""
    sets = [step.outcome for step in part.steps if step.outcome.kind != "numbers"]
    if sets:
        yield from (identity(item) for item in sets[-1].items)
