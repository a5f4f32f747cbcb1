"""Compose: an expression, worked out, in the form of an answer."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import Final

from pydantic import Field

from kg_adapters.errors import BackendTimeout, InvalidRequest
from kg_adapters.models import Count
from kg_adapters.protocol import KGAdapter
from kg_adapters.terms import Iri, Node
from kg_server.budget import BYTES_PER_TOKEN
from kg_server.compose.evaluation import Limits, evaluate
from kg_server.compose.lines import (
    Line,
    Section,
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
from kg_server.names import Names, names_of
from kg_server.results import Answer, Result, Status

STEP_SHARE: Final = 0.3
"""How much of the answer the steps may take."""

EVIDENCE_SHARE: Final = 0.3
"""How much of it the evidence may take."""

MAX_EVIDENCE: Final = 200
"""How many lines of evidence are looked at."""

LISTED_FAILURES: Final = 5

_SHORTEST_LINE: Final = 10
_RESERVE: Final = 100


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
    terms = chain(chain.from_iterable((*line.nodes, *line.relations) for line in lines))
    return _Report(parts, expression, lines, await names_of(graph, terms)).answer(max_tokens)


def _refusal(parts: Sequence[Part]) -> Exception:
    failures = [part.failure for part in parts if part.failure is not None]
    if len(failures) == 1:
        return failures[0]
    listed = "\n".join(f"{number}: {failure}" for number, failure in enumerate(failures[:LISTED_FAILURES], start=1))
    more = f"\nThe other {len(failures) - LISTED_FAILURES} fail too." if len(failures) > LISTED_FAILURES else ""
    return InvalidRequest(f"None of the {len(failures)} parts can be worked out.\n{listed}{more}")


def _lines(parts: Sequence[Part], expression: str, graph: KGAdapter, max_tokens: int) -> Iterator[Line]:
    """Yield what may be said, the most important first; parts take turns, so that a long one hides no other."""
    numbered = list(enumerate(parts, start=1))
    if len(parts) > 1:
        yield from (part_line(number, part, expression) for number, part in numbered)
    for number, part in numbered:
        yield from step_lines(number, part, expression)
    most = max_tokens * BYTES_PER_TOKEN // _SHORTEST_LINE
    yield from islice(_in_turns(result_lines(number, part, graph.prefixes) for number, part in numbered), most)
    evidence = chain.from_iterable(evidence_lines(number, part) for number, part in numbered)
    yield from islice(_in_turns(iter(lines) for lines in evidence), MAX_EVIDENCE)


def _in_turns(several: Iterable[Iterator[Line]]) -> Iterator[Line]:
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

    def __init__(self, parts: Sequence[Part], expression: str, lines: Sequence[Line], names: Names) -> None:
        self._parts = parts
        self._expression = expression
        self._lines = lines
        self._names = names

    def answer(self, max_tokens: int) -> Answer:
        """Return the answer that fits into a budget in either form."""
        kept = self._fitting(max_tokens * BYTES_PER_TOKEN)
        nodes, relations = _terms(kept)
        result = ComposeResult(
            status=self._status(kept),
            summary=self._summary(kept),
            parts=self._rows(kept, "part") or [self._only_part()],
            results=self._rows(kept, "result"),
            steps=self._rows(kept, "step"),
            evidence=self._rows(kept, "evidence"),
            labels=self._names.entity_labels(nodes),
            relations=self._names.relation_labels(relations),
        )
        return Answer(result, tuple(line.shown(self._names) for line in self._ordered(kept)))

    def _fitting(self, room: int) -> list[Line]:
        """Return the lines that take at most so many bytes, as text and as rows."""
        text_left = room - len(self._summary([]).encode()) - _RESERVE
        data_left = text_left - self._frame()
        left: dict[Section, int] = {"step": int(room * STEP_SHARE), "evidence": int(room * EVIDENCE_SHARE)}
        kept: list[Line] = []
        known: set[Node] = set()
        for line in self._lines:
            if min(text_left, data_left) < _SHORTEST_LINE:
                break
            text, data = self._cost(line, known)
            if text > min(text_left, left.get(line.section, room)) or data > data_left:
                continue
            text_left, data_left = text_left - text, data_left - data
            left[line.section] = left.get(line.section, room) - text
            known.update((*line.nodes, *line.relations))
            kept.append(line)
        return kept

    def _frame(self) -> int:
        """Return the bytes of a result without lines."""
        keys = json.dumps({name: [""] for name in ComposeResult.model_fields})
        return len(keys) + len(json.dumps(self._only_part(), ensure_ascii=False).encode())

    def _cost(self, line: Line, known: Collection[Node]) -> tuple[int, int]:
        """Return the bytes of a line as text and, with the labels that are not known yet, as a row."""
        fresh = {*line.nodes, *line.relations}.difference(known)
        labels = sum(len(self._names.entity(node).encode()) + 6 for node in fresh)
        row = json.dumps(line.cells(self._names), ensure_ascii=False)
        return len(line.shown(self._names).encode()) + 1, len(row.encode()) + 2 + labels

    def _ordered(self, kept: Sequence[Line]) -> Iterator[Line]:
        """Yield lines as they are read: each part with its results, then its steps and its evidence."""
        order: tuple[Section, ...] = ("part", "result", "step", "evidence")
        yield from sorted(kept, key=lambda line: (line.part, order.index(line.section)))

    def _rows(self, kept: Sequence[Line], section: Section) -> list[list[str]]:
        return [line.cells(self._names) for line in self._ordered(kept) if line.section == section]

    def _only_part(self) -> list[str]:
        line = part_line(1, self._parts[0], self._expression)
        return line.cells(self._names)

    def _status(self, kept: Sequence[Line]) -> Status:
        if any(isinstance(part.failure, BackendTimeout) for part in self._parts):
            return "timeout"
        outcomes = [part.outcome for part in self._parts if part.outcome is not None]
        if len(outcomes) < len(self._parts) or any(not _whole(part) for part in self._parts):
            return "truncated"
        if not any(outcome.facts for outcome in outcomes):
            return "empty"
        return "truncated" if self._left_out(kept, "result") or self._left_out(kept, "part") else "ok"

    def _summary(self, kept: Sequence[Line]) -> str:
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

    def _remarks(self, kept: Sequence[Line]) -> Iterator[str]:
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

    def _left_out(self, kept: Sequence[Line], section: Section) -> int:
        if section == "result":
            every = sum(_results_in(part) for part in self._parts)
        else:
            every = sum(line.section == section for line in self._lines)
        return every - sum(line.section == section for line in kept)


def _terms(lines: Iterable[Line]) -> tuple[Iterable[Node], Iterable[Iri]]:
    nodes: dict[Node, None] = {}
    relations: dict[Iri, None] = {}
    for line in lines:
        nodes.update(dict.fromkeys(line.nodes))
        relations.update(dict.fromkeys(line.relations))
    return nodes, relations


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
