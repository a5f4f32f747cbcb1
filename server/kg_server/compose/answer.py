"""Compose: an expression, worked out, in the form of an answer."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import Final

from pydantic import Field

from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter
from kg_server.budget import fitting
from kg_server.compose.evaluation import Limits, evaluate
from kg_server.compose.lines import (
    Section,
    Told,
    evidence_lines,
    part_line,
    reason_of,
    result_lines,
    size_of,
    spelled,
    step_lines,
)
from kg_server.compose.outcomes import Part
from kg_server.compose.parser import parse
from kg_server.lines import fitted_lines, labels_of_entities, labels_of_relations, terms_of_lines
from kg_server.names import Names, names_of
from kg_server.results import Answer, Result, Status

STEP_SHARE: Final = 0.3
"""How much of the answer the steps may take."""

EVIDENCE_SHARE: Final = 0.3
"""How much of it the evidence may take."""

MAX_EVIDENCE: Final = 200
"""How many lines of evidence are looked at."""

LISTED_FAILURES: Final = 5

_SHORTEST_LINE_TOKENS: Final = 3


class ComposeResult(Result):
    """What each part of an expression gives, how it was worked out, and the triples read on the way.

    Args:
        parts: Rows of part, expression, kind or error, size or reason.
        results: Rows of part, the node and the relation that it is a result for, result, and `node`, `number`,
            `at least`, `none`, `error`, or a value's datatype or language.
        steps: Rows of part, call, size, and the result where there is one only.
        evidence: Rows of head, relation, tail.
        labels: Of nodes.
        relations: Labels of relations.
    """

    parts: list[list[str]]
    results: list[list[str]] = Field(description="[part, node, relation, result, its kind]")
    steps: list[list[str]]
    evidence: list[list[str]]
    labels: dict[str, str]
    relations: dict[str, str]


async def composition(graph: KGAdapter, expression: str, *, limits: Limits, max_tokens: int) -> Answer:
    """Answer Compose.

    Raises:
        InvalidRequest: The expression cannot be read, or no part of it can be worked out.
        KGError: There is one part, and it fails for this reason.
    """
    calls = parse(expression, max_depth=limits.depth, max_calls=limits.calls)
    parts = await evaluate(graph, expression, calls, limits)
    if all(part.failure is not None for part in parts):
        raise _refusal(parts)
    lines = list(_lines(parts, expression, graph, max_tokens))
    return _Report(parts, expression, lines, await names_of(graph, terms_of_lines(lines))).answer(max_tokens)


def _refusal(parts: Sequence[Part]) -> Exception:
    failures = [part.failure for part in parts if part.failure is not None]
    if len(failures) == 1:
        return failures[0]
    listed = "\n".join(f"{number}: {failure}" for number, failure in enumerate(failures[:LISTED_FAILURES], start=1))
    more = f"\nThe other {len(failures) - LISTED_FAILURES} fail too." if len(failures) > LISTED_FAILURES else ""
    return InvalidRequest(f"None of the {len(failures)} parts can be worked out.\n{listed}{more}")


def _lines(parts: Sequence[Part], expression: str, graph: KGAdapter, max_tokens: int) -> Iterator[Told]:
    """Yield what may be said, the most important first; parts take turns, so that a long one hides no other."""
    numbered = list(enumerate(parts, start=1))
    if len(parts) > 1:
        yield from (part_line(number, part, expression) for number, part in numbered)
    for number, part in numbered:
        yield from step_lines(number, part, expression)
    most = max_tokens // _SHORTEST_LINE_TOKENS
    yield from islice(_in_turns(result_lines(number, part, graph.prefixes) for number, part in numbered), most)
    evidence = chain.from_iterable(evidence_lines(number, part) for number, part in numbered)
    yield from islice(_in_turns(iter(lines) for lines in evidence), MAX_EVIDENCE)


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
    """

    def __init__(self, parts: Sequence[Part], expression: str, lines: Sequence[Told], names: Names) -> None:
        self._parts = parts
        self._expression = expression
        self._lines = lines
        self._names = names

    def answer(self, max_tokens: int) -> Answer:
        """Return the answer that fits into a budget in either form."""
        return fitted_lines(self._foremost(max_tokens), self._names, self._of, max_tokens)

    def _foremost(self, max_tokens: int) -> Sequence[Told]:
        """Return the lines without the steps and the evidence that would take more than their share."""
        left: list[Told] = []
        shares: dict[Section, float] = {"part": 1.0, "step": STEP_SHARE, "result": 1.0, "evidence": EVIDENCE_SHARE}
        for section, share in shares.items():
            lines = [line for line in self._lines if line.section == section]
            left += lines[: fitting([line.shown(self._names) for line in lines], int(max_tokens * share))]
        return left

    def _of(self, kept: Sequence[Told]) -> Answer:
        result = ComposeResult(
            status=self._status(kept),
            summary=self._summary(kept),
            parts=self._rows(kept, "part") or [self._only_part()],
            results=self._rows(kept, "result"),
            steps=self._rows(kept, "step"),
            evidence=self._rows(kept, "evidence"),
            labels=labels_of_entities(kept, self._names),
            relations=labels_of_relations(kept, self._names),
        )
        return Answer(result, tuple(line.shown(self._names) for line in self._ordered(kept)))

    def _ordered(self, kept: Sequence[Told]) -> Iterator[Told]:
        """Yield lines as they are read: each part with its results, then its steps and its evidence."""
        order: tuple[Section, ...] = ("part", "result", "step", "evidence")
        yield from sorted(kept, key=lambda line: (line.part, order.index(line.section)))

    def _rows(self, kept: Sequence[Told], section: Section) -> list[list[str]]:
        return [line.cells(self._names) for line in self._ordered(kept) if line.section == section]

    def _only_part(self) -> list[str]:
        line = part_line(1, self._parts[0], self._expression)
        return line.cells(self._names)

    def _status(self, kept: Sequence[Told]) -> Status:
        if any(isinstance(part.failure, BackendTimeout) for part in self._parts):
            return "timeout"
        outcomes = [part.outcome for part in self._parts if part.outcome is not None]
        if len(outcomes) < len(self._parts) or any(not _whole(part) for part in self._parts):
            return "truncated"
        if not any(outcome.facts for outcome in outcomes):
            return "empty"
        return "truncated" if self._left_out(kept, "result") or self._left_out(kept, "part") else "ok"

    def _summary(self, kept: Sequence[Told]) -> str:
        return " ".join((self._extent(), *self._remarks(kept)))

    def _extent(self) -> str:
        if len(self._parts) == 1:
            (part,) = self._parts
            size = reason_of(part.failure) if part.outcome is None else size_of(part.outcome)
            return f"{spelled(part.call.span.start, part.call.span.end, self._expression)}: {size}."
        failed = sum(part.failure is not None for part in self._parts)
        if not failed:
            return f"{len(self._parts)} parts, worked out side by side."
        return f"{len(self._parts)} parts: {len(self._parts) - failed} worked out, {failed} failed."

    def _remarks(self, kept: Sequence[Told]) -> Iterator[str]:
        if not all(_whole(part) for part in self._parts):
            yield "Not everything was fetched: what is cut or failed is marked."
        if any(step.doubtful for part in self._parts for step in part.steps):
            yield "Check the steps: a name was matched loosely, or fits several."
        if hidden := self._left_out(kept, "part"):
            yield f"{hidden} parts are left out: ask for fewer at once."
        if hidden := self._left_out(kept, "result"):
            yield f"{hidden:,} results are left out: Count[…] counts them, Intersect[…] narrows them."
        if self._left_out(kept, "evidence"):
            yield "Not all of the evidence is here."

    def _left_out(self, kept: Sequence[Told], section: Section) -> int:
        if section == "result":
            every = sum(_results_in(part) for part in self._parts)
        else:
            every = sum(line.section == section for line in self._lines)
        return every - sum(line.section == section for line in kept)


def _results_in(part: Part) -> int:
    outcome = part.outcome
    return 0 if outcome is None else len(outcome.facts) + len(outcome.failures) + len(outcome.without)


def _whole(part: Part) -> bool:
    """Say whether nothing that matters to a part was left unfetched or failed."""
    outcome = part.outcome
    if outcome is None:
        return True
    exact = all(fact.item.exact for fact in outcome.facts if isinstance(fact.item, Count))
    return outcome.complete and not outcome.failures and exact
