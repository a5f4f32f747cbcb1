"""Compose: an expression, worked out, in the form of an answer."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, zip_longest
from math import ceil
from typing import Final

import anyio

from kg_adapters.errors import BackendTimeout, KGError
from kg_adapters.federated import FederatedGraph
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import BlankNode, Fact, Iri, Literal, Node
from kg_boundary.shown import clipped
from kg_server.answers.intermediates import opened, when, without_label
from kg_server.answers.remarks import evidence_cut
from kg_server.answers.results import (
    MOST_TOKENS,
    Answer,
    AnswerRows,
    Knowledge,
    Line,
    Note,
    Over,
    Piece,
    Status,
    fitted_rows,
    fitting,
    terms_of_lines,
)
from kg_server.compose.computing import Wanted, work_out
from kg_server.compose.lines import Origins, Section, Told, Worked, chained, extent, marked, part_line, query_line
from kg_server.compose.parser import ALL, parse_parts
from kg_server.compose.reading import Reader, identities_of
from kg_server.compose.syntax import PAPER, Call, RefusedPart, is_grouping, kind_of
from kg_server.compose.tool import ComposeResult, Evidence, ExpressionLimits
from kg_server.concurrency import off_loop, together
from kg_server.names import Names, names_of
from kg_server.naming.meaning import Meaning
from kg_server.naming.refusals import one_error

LISTED_GROUPS: Final = 10
"""How many groups have a line of their own where there are many."""

_FEW_MORE: Final = 2


def in_brief(part: Worked, origins: Origins) -> Worked:
    """Return a part whose evidence tells only what is new, and which lists the largest groups and first ties alone."""
    return replace(part, evidence=tuple(_evidence(part, origins)), results=tuple(_results(part)))


def _all_marked(parts: Sequence[Worked], origins: Origins) -> list[Worked]:
    """Return parts whose facts have their graphs."""
    return [
        replace(
            part,
            results=tuple(marked(line, origins) for line in part.results),
            evidence=tuple(marked(line, origins) for line in part.evidence),
        )
        for part in parts
    ]


def _all_in_brief(parts: Sequence[Worked], origins: Origins) -> list[Worked]:
    return [in_brief(part, origins) for part in parts]


def _evidence(part: Worked, origins: Origins) -> Iterator[Told]:
    """Yield the evidence, without words where a number or groups rest on all members, of which it shows a few."""
    told = _Told(part)
    for line in part.evidence:
        news = [] if _rests_on_all(part.call) else told.news(line.facts)
        yield replace(line, text=chained(news, origins) if news else ())


def _rests_on_all(call: Call | RefusedPart) -> bool:
    return isinstance(call, Call) and call.function in {"Count", "Group", "Sum", "Mean"}


def _results(part: Worked) -> Iterator[Told]:
    """Yield the results; of groups or ties beyond the first ones only how many there are, and of which sizes."""
    call, listed = part.call, LISTED_GROUPS
    if isinstance(call, Call) and call.function in {"Top", "Bottom"}:
        listed = max(call.n, LISTED_GROUPS)
        left: tuple[Piece, ...] = (f"and {part.total - listed:,} more that tie with the last; evidence=all lists them",)
    elif part.kind == "groups" and is_grouping(call) and len(part.results) > LISTED_GROUPS:
        left = _left(part)
    else:
        listed, left = len(part.results), ()
    if part.total <= listed + _FEW_MORE:
        listed = len(part.results)
    yield from part.results[:listed]
    for place, line in enumerate(part.results[listed:]):
        yield replace(line, text=() if place else left)


def _left(part: Worked) -> tuple[Piece, ...]:
    largest, smallest = part.results[LISTED_GROUPS].row[3], part.results[-1].row[3]
    sizes = (largest, " each") if largest == smallest else (largest, " to ", smallest)
    return f"and {part.total - LISTED_GROUPS:,} more, of ", *sizes, "; evidence=all lists them"


class _Told:
    """What an answer says already.

    Args:
        part: A part of it.
    """

    def __init__(self, part: Worked) -> None:
        rows = [row for line in part.results for row in line.rows]
        self._given: frozenset[Piece] = frozenset(part.given)
        self._typing = part.typing
        self._results = frozenset(piece for row in rows for piece in row)
        self._cells = frozenset((row[1], row[3]) for row in rows)
        self._facts: set[Fact] = set()

    def news(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return the facts that neither earlier lines nor the expression show, and count them as shown."""
        found = [fact for fact in facts if not self._is_told(fact)]
        self._facts.update(found)
        return found

    def _is_told(self, fact: Fact) -> bool:
        if fact in self._facts or (fact.head, fact.tail) in self._cells:
            return True
        if isinstance(fact.tail, Literal):
            return False
        if fact.relation in self._typing and fact.tail in self._given:
            return True
        known = self._given | self._results
        return fact.head in known and fact.tail in known


AT_ONCE = 8
_LONGEST_REASON = 200


async def work_out_all(
    graph: KGAdapter, text: str, calls: Sequence[Call | RefusedPart], wanted: Wanted, meaning: Meaning | None = None
) -> list[Worked]:
    """Work out calls side by side; one that is known but not explained in time comes without its explanation.

    Args:
        graph: The graph.
        text: The text of the expression, for errors that point into it.
        calls: The calls, and those that cannot be read.
        wanted: How much of their answers is wanted.
        meaning: What `Retrieve` finds the nearest node by; None where it goes by names.
    """
    found: dict[int, Worked] = {}
    explained: set[int] = set()
    reasons: dict[int, KGError] = {}
    with anyio.move_on_after(wanted.timeout_s):
        read = {number: call for number, call in enumerate(calls, start=1) if not isinstance(call, RefusedPart)}
        identities = await identities_of(graph, read.values(), meaning)

        async def run(number: int, call: Call) -> None:
            try:
                async for worked in work_out(graph, Reader(graph, text, identities), number, call, wanted):
                    found[number] = worked
                explained.add(number)
            except KGError as error:
                reasons[number] = error

        await together([partial(run, number, call) for number, call in read.items()], at_once=AT_ONCE)
    late = BackendTimeout(f"There was no time for it within {wanted.timeout_s:g} seconds. Ask for less at once.")

    def outcome(number: int, call: Call | RefusedPart) -> Worked:
        if isinstance(call, RefusedPart):
            return Worked(call, failure=call.reason)
        failure = reasons.get(number, late)
        if number not in found:
            return Worked(call, kind_of(call), failure=failure)
        if number in explained:
            return found[number]
        why = f"What it rests on was not found: {clipped(str(failure), _LONGEST_REASON)}"
        return replace(found[number], notes=(*found[number].notes, (why,)))

    return [outcome(number, call) for number, call in enumerate(calls, start=1)]


EVIDENCE_SHARE: Final = 0.3
"""How much of it the evidence may take, unless all of it is asked for."""

MAX_EVIDENCE: Final = 200
"""How many lines of evidence are looked at."""

SPARQL_SHARE: Final = 0.5
"""How much of it the SPARQL may take."""

WITNESSES: Final[dict[Evidence, int]] = {"none": 0, "some": 3, "all": MAX_EVIDENCE}
_KNOWN: Final[tuple[Knowledge, ...]] = ("stated", "denied", "unknown", "unnamed")
LISTED_FAILURES: Final = 5
_SHORTEST_LINE_TOKENS: Final = 3
_DESCRIBED_LINE_TOKENS: Final = 10
_SPARE: Final = 1.2
_STEP: Final = 500


async def composition(
    graph: KGAdapter,
    expression: str,
    *,
    limits: ExpressionLimits,
    max_tokens: int,
    evidence: Evidence = "some",
    paper: bool = False,
    explain: bool = False,
    meaning: Meaning | None = None,
) -> Answer:
    """Answer Compose.

    Args:
        graph: The graph.
        expression: What to work out.
        limits: What it may cost.
        max_tokens: The budget of the answer.
        evidence: How much of the evidence is shown.
        paper: Whether there are only the functions of the paper.
        explain: Whether SPARQL that asks the same is shown.
        meaning: What `Retrieve` finds the one nearest node by, as in the paper; by default it goes by names.

    Raises:
        InvalidRequest: The expression cannot be read, or no part of it can be worked out.
        KGError: There is one part, and it fails for this reason.
    """
    functions = PAPER if paper else ALL
    calls = parse_parts(expression, max_depth=limits.depth, max_calls=limits.calls, functions=functions)
    wanted = Wanted(max_tokens // _SHORTEST_LINE_TOKENS, WITNESSES[evidence], limits.timeout_s, explain)
    parts = await work_out_all(graph, expression, calls, wanted, meaning)
    origins: Origins = graph.origins if isinstance(graph, FederatedGraph) else {}
    size = sum(len(part.results) for part in parts)
    if origins:
        parts = await off_loop(partial(_all_marked, parts, origins), size)
    if evidence != "all":
        parts = await off_loop(partial(_all_in_brief, parts, origins), size)
    if all(part.failure is not None for part in parts):
        raise _refusal(parts)
    lines = list(_lines(parts, expression, max_tokens))
    heads = [Line(note) for part in parts for note in (*part.notes, extent(part))]
    terms = await off_loop(lambda: dict.fromkeys(terms_of_lines([*lines, *heads])), len(lines))
    described = await _described(graph, lines, await names_of(graph, terms), max_tokens)
    ordered = await off_loop(lambda: _in_order_of_dates(lines, described), len(lines))
    report = _Report(parts, expression, ordered, described, evidence, max_tokens, explain)
    return await off_loop(report.answer, len(lines))


async def _described(graph: KGAdapter, lines: Sequence[Told], names: Names, max_tokens: int) -> Names:
    """Return names in which a node of the results that has no label is followed by what it holds."""
    results = [line for line in lines if line.section == "result"]
    most = max_tokens // _DESCRIBED_LINE_TOKENS
    asked = await off_loop(lambda: without_label(results, names)[:most], len(results))
    told = await off_loop(lambda: frozenset(fact for line in results for fact in line.stated), len(results))
    return await opened(graph, asked, names, lambda _, fact: fact in told, always=True)


def _in_order_of_dates(lines: Sequence[Told], names: Names) -> list[Told]:
    """Return lines, those of members without a label that hold dates in the order of these, in the same places."""
    dated: defaultdict[int, list[tuple[Node, int]]] = defaultdict(list)
    for place, line in enumerate(lines):
        match line.text:
            case (Iri() | BlankNode() as node,) if line.section == "result" and node in names.held:
                dated[line.part].append((node, place))
            case _:
                pass
    ordered = list(lines)
    for found in dated.values():
        by_date = sorted(found, key=lambda each: when(each[0], names))
        for (_, place), (_, source) in zip(found, by_date, strict=True):
            ordered[place] = lines[source]
    return ordered


def _refusal(parts: Sequence[Worked]) -> Exception:
    failures = [part.failure for part in parts if part.failure is not None]
    if len(failures) == 1:
        return failures[0]
    listed = "\n".join(f"{number}: {failure}" for number, failure in enumerate(failures[:LISTED_FAILURES], start=1))
    more = f"\nThe other {len(failures) - LISTED_FAILURES} fail too." if len(failures) > LISTED_FAILURES else ""
    return one_error(failures, f"None of the {len(failures)} parts can be worked out.\n{listed}{more}")


def _lines(parts: Sequence[Worked], expression: str, max_tokens: int) -> Iterator[Told]:
    """Yield what may be said, the most important first; parts take turns, so that a long one hides no other."""
    if len(parts) > 1:
        yield from (part_line(number, part, expression) for number, part in enumerate(parts, start=1))
    yield from (line for part in parts for line in part.totals)
    for number, part in enumerate(parts, start=1):
        if part.query is not None:
            yield query_line(number, part.query)
    most = max_tokens // _SHORTEST_LINE_TOKENS
    yield from islice(_in_turns(iter(part.results) for part in parts), most)
    yield from islice(_in_turns(iter(part.evidence) for part in parts), MAX_EVIDENCE)


def _in_turns(several: Iterable[Iterator[Told]]) -> Iterator[Told]:
    for turn in zip_longest(*several):
        yield from (line for line in turn if line is not None)


@dataclass(frozen=True, slots=True)
class _Report:
    """One expression on its way to an answer.

    Args:
        parts: Its parts.
        expression: Its text.
        lines: What may be said, the most important first.
        names: The names of all that the lines name, and what nodes without a label hold.
        evidence: How much of the evidence is wanted.
        max_tokens: The budget of either form of the answer.
        explain: Whether the SPARQL is.
    """

    parts: Sequence[Worked]
    expression: str
    lines: Sequence[Told]
    names: Names
    evidence: Evidence
    max_tokens: int
    explain: bool

    def answer(self) -> Answer:
        """Return the answer that fits into the budget in either form."""
        return fitted_rows(AnswerRows(self._foremost(), self.names), self._of, self.max_tokens)

    def _foremost(self) -> Sequence[Told]:
        """Return the lines without the evidence that would take more than their share."""
        left: list[Told] = []
        proof = 1.0 if self.evidence == "all" else EVIDENCE_SHARE
        shares: dict[Section, float] = {
            "part": 1.0,
            "total": 1.0,
            "sparql": SPARQL_SHARE,
            "result": 1.0,
            "evidence": proof,
        }
        for section, share in shares.items():
            lines = [line for line in self.lines if line.section == section]
            left += lines[: fitting([line.shown(self.names) for line in lines], int(self.max_tokens * share))]
        return left

    def _of(self, rows: AnswerRows[Told]) -> Answer:
        kept = rows.lines
        read = {text: self.names.entity_id(node) for part in self.parts for text, node in part.read.items()}
        result = ComposeResult(
            status=self._status(kept),
            knowledge=self._knowledge(),
            summary=self._summary(kept),
            read=read or None,
            parts=self._rows(kept, "part") or [self._only_part()],
            results=[*self._rows(kept, "total"), *self._rows(kept, "result")],
            evidence=self._rows(kept, "evidence"),
            sparql=self._rows(kept, "sparql") if self.explain else None,
            **rows.fields(),
        )
        told = [line for line in self._ordered(kept) if line.text and not self._in_summary(line)]
        return Answer(result, AnswerRows(told, self.names).texts())

    def _in_summary(self, line: Told) -> bool:
        """Say whether a line says no more than the first: the number that a part is, or the only result of all."""
        if line.section != "result":
            return False
        part = self.parts[line.part - 1]
        return line.text == (part.size,) or self._is_only(part)

    def _is_only(self, part: Worked) -> bool:
        # A line that states a fact stays one, without a full stop behind it.
        alone = len(self.parts) == 1 and part.total == len(part.results) == 1 and part.whole
        return alone and not any(isinstance(piece, Over) for piece in part.results[0].text)

    def _ordered(self, kept: Sequence[Told]) -> Iterator[Told]:
        """Yield lines as they are read: each part with its results, then its evidence and its query."""
        order: tuple[Section, ...] = ("part", "total", "result", "evidence", "sparql")
        yield from sorted(kept, key=lambda line: (line.part, order.index(line.section)))

    def _rows(self, kept: Sequence[Told], section: Section) -> list[list[str]]:
        return AnswerRows([line for line in self._ordered(kept) if line.section == section], self.names).cells()

    def _only_part(self) -> list[str]:
        return AnswerRows([part_line(1, self.parts[0], self.expression)], self.names).cells()[0]

    def _status(self, kept: Sequence[Told]) -> Status:
        if any(isinstance(part.failure, BackendTimeout) for part in self.parts):
            return "timeout"
        if any(part.failure is not None or not part.whole for part in self.parts):
            return "truncated"
        if not any(part.total for part in self.parts):
            return "empty"
        return "truncated" if self._left_out(kept, "result") or self._left_out(kept, "part") else "ok"

    def _knowledge(self) -> Knowledge:
        """Return what the answer rests on: of several parts the best known."""
        known: list[Knowledge] = [_known(part) for part in self.parts if not part.failure]
        return min(known, key=_KNOWN.index) if known else "unknown"

    def _summary(self, kept: Sequence[Told]) -> str:
        return " ".join((self._extent(), *self._notes(), *self._remarks(kept)))

    def _notes(self) -> Iterator[str]:
        """Yield the remarks, each with the parts that it is about where there are several."""
        parts_of: dict[Note, list[str]] = {}
        for number, part in enumerate(self.parts, start=1):
            for note in dict.fromkeys(part.notes):
                parts_of.setdefault(note, []).append(str(number))
        for note, numbers in parts_of.items():
            told = Told(note, section="part", marks=",").shown(self.names)
            whose = f"Part{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: " if len(self.parts) > 1 else ""
            yield f"{whose}{told}"

    def _extent(self) -> str:
        if len(self.parts) == 1:
            (part,) = self.parts
            told = part.results[0] if self._is_only(part) else Told(extent(part), section="part")
            return f"{told.shown(self.names)}."
        failed = sum(part.failure is not None for part in self.parts)
        if not failed:
            return f"{len(self.parts)} parts, worked out side by side."
        return f"{len(self.parts)} parts: {len(self.parts) - failed} worked out, {failed} failed."

    def _remarks(self, kept: Sequence[Told]) -> Iterator[str]:
        if not all(part.whole for part in self.parts):
            yield "Not everything was fetched: what is cut or failed is marked."
        if self.explain and (hidden := len(self.parts) - len(self._rows(kept, "sparql"))):
            which = "The SPARQL" if len(self.parts) == 1 else f"The SPARQL of {hidden} of the parts"
            yield f"{which} is not shown: it is too long, or there is no single query for it."
        if hidden := self._left_out(kept, "part"):
            yield f"{hidden} parts are left out: ask for fewer at once."
        if hidden := self._left_out(kept, "result"):
            yield f"{hidden:,} results are left out: {self._going_on(kept, hidden)}, Intersect[…] narrows them."
        shown = {line.part for line in kept if line.section == "evidence" and line.text}
        proven = sum(line.section == "evidence" and line.part in shown for line in kept)
        every = sum(self.parts[part - 1].total for part in shown)
        if cut := evidence_cut(proven, every, "" if self.evidence == "all" else "evidence=all shows more"):
            yield cut

    def _going_on(self, kept: Sequence[Told], hidden: int) -> str:
        """Return the budget that shows the results that are left out too, with some to spare, where one can."""
        told = sum(line.section == "result" for line in kept)
        needed = self.max_tokens * (1 + hidden / max(1, told)) * _SPARE
        rounded = ceil(needed / _STEP) * _STEP
        return f"max_tokens={rounded} shows them" if rounded <= MOST_TOKENS else "a larger max_tokens shows more"

    def _left_out(self, kept: Sequence[Told], section: Section) -> int:
        if section == "result":
            every = sum(part.total for part in self.parts)
        else:
            every = sum(line.section == section for line in self.lines)
        return every - sum(line.section == section for line in kept)


def _known(part: Worked) -> Knowledge:
    if part.knowledge is not None:
        return part.knowledge
    return "stated" if part.total else "unknown"
