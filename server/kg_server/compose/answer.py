"""Compose: an expression, worked out, in the form of an answer."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from math import ceil
from typing import Final

from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_server.budget import MOST_TOKENS, fitting
from kg_server.compose.brevity import in_brief
from kg_server.compose.computing import Wanted
from kg_server.compose.lines import Note, Section, Told, part_line, query_line
from kg_server.compose.parser import ALL, parse
from kg_server.compose.parts import work_out_all
from kg_server.compose.result import ComposeResult, Evidence, Limits
from kg_server.compose.syntax import PAPER
from kg_server.compose.telling import Worked
from kg_server.lines import Line, fitted_lines, labels_of_entities, labels_of_relations, terms_of_lines
from kg_server.names import Names, names_of
from kg_server.results import Answer, Knowledge, Status

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
_SPARE: Final = 1.2
_STEP: Final = 500


async def composition(
    graph: KGAdapter,
    expression: str,
    *,
    limits: Limits,
    max_tokens: int,
    evidence: Evidence = "some",
    paper: bool = False,
    explain: bool = False,
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

    Raises:
        InvalidRequest: The expression cannot be read, or no part of it can be worked out.
        KGError: There is one part, and it fails for this reason.
    """
    functions = PAPER if paper else ALL
    calls = parse(expression, max_depth=limits.depth, max_calls=limits.calls, functions=functions)
    wanted = Wanted(max_tokens // _SHORTEST_LINE_TOKENS, WITNESSES[evidence], limits.timeout_s, explain)
    parts = await work_out_all(graph, expression, calls, wanted)
    if evidence != "all":
        parts = list(map(in_brief, parts))
    if all(part.failure is not None for part in parts):
        raise _refusal(parts)
    lines = list(_lines(parts, expression, max_tokens))
    heads = [Line(note, ()) for part in parts for note in (*part.notes, (part.size,))]
    names = await names_of(graph, terms_of_lines([*lines, *heads]))
    return _Report(parts, expression, lines, names, evidence, max_tokens, explain=explain).answer()


def _refusal(parts: Sequence[Worked]) -> Exception:
    failures = [part.failure for part in parts if part.failure is not None]
    if len(failures) == 1:
        return failures[0]
    listed = "\n".join(f"{number}: {failure}" for number, failure in enumerate(failures[:LISTED_FAILURES], start=1))
    more = f"\nThe other {len(failures) - LISTED_FAILURES} fail too." if len(failures) > LISTED_FAILURES else ""
    return InvalidRequest(f"None of the {len(failures)} parts can be worked out.\n{listed}{more}")


def _lines(parts: Sequence[Worked], expression: str, max_tokens: int) -> Iterator[Told]:
    """Yield what may be said, the most important first; parts take turns, so that a long one hides no other."""
    if len(parts) > 1:
        yield from (part_line(number, part, expression) for number, part in enumerate(parts, start=1))
    for number, part in enumerate(parts, start=1):
        if part.query is not None:
            yield query_line(number, part.query)
    most = max_tokens // _SHORTEST_LINE_TOKENS
    yield from islice(_in_turns(iter(part.results) for part in parts), most)
    yield from islice(_in_turns(iter(part.evidence) for part in parts), MAX_EVIDENCE)


def _in_turns(several: Iterable[Iterator[Told]]) -> Iterator[Told]:
    for turn in zip_longest(*several):
        yield from (line for line in turn if line is not None)


class _Report:
    """One expression on its way to an answer.

    Args:
        parts: Its parts.
        expression: Its text.
        lines: What may be said, the most important first.
        names: The names of all that the lines name.
        evidence: How much of the evidence is wanted.
        max_tokens: The budget of either form of the answer.
        explain: Whether the SPARQL is.
    """

    def __init__(
        self,
        parts: Sequence[Worked],
        expression: str,
        lines: Sequence[Told],
        names: Names,
        evidence: Evidence,
        max_tokens: int,
        *,
        explain: bool,
    ) -> None:
        self._parts = parts
        self._expression = expression
        self._lines = lines
        self._names = names
        self._evidence: Evidence = evidence
        self._max_tokens = max_tokens
        self._explain = explain

    def answer(self) -> Answer:
        """Return the answer that fits into the budget in either form."""
        return fitted_lines(self._foremost(), self._names, self._of, self._max_tokens)

    def _foremost(self) -> Sequence[Told]:
        """Return the lines without the evidence that would take more than their share."""
        left: list[Told] = []
        proof = 1.0 if self._evidence == "all" else EVIDENCE_SHARE
        shares: dict[Section, float] = {"part": 1.0, "sparql": SPARQL_SHARE, "result": 1.0, "evidence": proof}
        for section, share in shares.items():
            lines = [line for line in self._lines if line.section == section]
            left += lines[: fitting([line.shown(self._names) for line in lines], int(self._max_tokens * share))]
        return left

    def _of(self, kept: Sequence[Told]) -> Answer:
        read = {text: self._names.entity_id(node) for part in self._parts for text, node in part.read.items()}
        result = ComposeResult(
            status=self._status(kept),
            knowledge=self._knowledge(),
            summary=self._summary(kept),
            read=read or None,
            parts=self._rows(kept, "part") or [self._only_part()],
            results=self._rows(kept, "result"),
            evidence=self._rows(kept, "evidence"),
            labels=labels_of_entities(kept, self._names),
            relations=labels_of_relations(kept, self._names),
            sparql=self._rows(kept, "sparql") if self._explain else None,
        )
        told = (line for line in self._ordered(kept) if line.text and not self._in_summary(line))
        return Answer(result, tuple(line.shown(self._names) for line in told))

    def _in_summary(self, line: Told) -> bool:
        """Say whether a line says no more than the first: the number that a part is, or the only result of all."""
        if line.section != "result":
            return False
        part = self._parts[line.part - 1]
        return line.text == (part.size,) or self._is_only(part)

    def _is_only(self, part: Worked) -> bool:
        return len(self._parts) == 1 and part.total == len(part.results) == 1 and part.whole

    def _ordered(self, kept: Sequence[Told]) -> Iterator[Told]:
        """Yield lines as they are read: each part with its results, then its evidence and its query."""
        order: tuple[Section, ...] = ("part", "result", "evidence", "sparql")
        yield from sorted(kept, key=lambda line: (line.part, order.index(line.section)))

    def _rows(self, kept: Sequence[Told], section: Section) -> list[list[str]]:
        lines = (line for line in self._ordered(kept) if line.section == section)
        return [Line((), row).cells(self._names) for line in lines for row in line.rows]

    def _only_part(self) -> list[str]:
        return part_line(1, self._parts[0], self._expression).cells(self._names)

    def _status(self, kept: Sequence[Told]) -> Status:
        if any(isinstance(part.failure, BackendTimeout) for part in self._parts):
            return "timeout"
        if any(part.failure is not None or not part.whole for part in self._parts):
            return "truncated"
        if not any(part.total for part in self._parts):
            return "empty"
        return "truncated" if self._left_out(kept, "result") or self._left_out(kept, "part") else "ok"

    def _knowledge(self) -> Knowledge:
        """Return what the answer rests on: of several parts the best known."""
        known: list[Knowledge] = [_known(part) for part in self._parts if not part.failure]
        return min(known, key=_KNOWN.index) if known else "unknown"

    def _summary(self, kept: Sequence[Told]) -> str:
        return " ".join((self._extent(), *self._notes(), *self._remarks(kept)))

    def _notes(self) -> Iterator[str]:
        """Yield the remarks, each with the parts that it is about where there are several."""
        parts_of: dict[Note, list[str]] = {}
        for number, part in enumerate(self._parts, start=1):
            for note in dict.fromkeys(part.notes):
                parts_of.setdefault(note, []).append(str(number))
        for note, numbers in parts_of.items():
            told = Told(note, (), "part", 1).shown(self._names)
            whose = f"Part{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: " if len(self._parts) > 1 else ""
            yield f"{whose}{told}"

    def _extent(self) -> str:
        if len(self._parts) == 1:
            (part,) = self._parts
            told = part.results[0] if self._is_only(part) else Told((part.size,), (), "part", 1)
            return f"{told.shown(self._names)}."
        failed = sum(part.failure is not None for part in self._parts)
        if not failed:
            return f"{len(self._parts)} parts, worked out side by side."
        return f"{len(self._parts)} parts: {len(self._parts) - failed} worked out, {failed} failed."

    def _remarks(self, kept: Sequence[Told]) -> Iterator[str]:
        if not all(part.whole for part in self._parts):
            yield "Not everything was fetched: what is cut or failed is marked."
        if self._explain and (hidden := len(self._parts) - len(self._rows(kept, "sparql"))):
            which = "The SPARQL" if len(self._parts) == 1 else f"The SPARQL of {hidden} of the parts"
            yield f"{which} is not shown: it is too long, or there is no single query for it."
        if hidden := self._left_out(kept, "part"):
            yield f"{hidden} parts are left out: ask for fewer at once."
        if hidden := self._left_out(kept, "result"):
            yield f"{hidden:,} results are left out: {self._going_on(kept, hidden)}, Intersect[…] narrows them."

    def _going_on(self, kept: Sequence[Told], hidden: int) -> str:
        """Return the budget that shows the results that are left out too, with some to spare, where one can."""
        told = sum(line.section == "result" for line in kept)
        needed = self._max_tokens * (1 + hidden / max(1, told)) * _SPARE
        rounded = ceil(needed / _STEP) * _STEP
        return f"max_tokens={rounded} shows them" if rounded <= MOST_TOKENS else "a larger max_tokens shows more"

    def _left_out(self, kept: Sequence[Told], section: Section) -> int:
        if section == "result":
            every = sum(part.total for part in self._parts)
        else:
            every = sum(line.section == section for line in self._lines)
        return every - sum(line.section == section for line in kept)


def _known(part: Worked) -> Knowledge:
    if part.knowledge is not None:
        return part.knowledge
    return "stated" if part.total else "unknown"
