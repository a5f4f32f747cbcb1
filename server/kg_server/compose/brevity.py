"""What of an answer is worth words: what neither the expression nor another line says. Its rows stay as they are."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from kg_adapters.terms import Fact, Literal
from kg_server.compose.lines import Told, chained
from kg_server.compose.syntax import Call, CountCall, GroupCall, TotalCall
from kg_server.compose.telling import Worked
from kg_server.lines import Piece

LISTED_GROUPS: Final = 10
"""How many groups have a line of their own where there are many."""

_FEW_MORE: Final = 2


def in_brief(part: Worked) -> Worked:
    """Return a part whose evidence tells only what is new, and which lists the largest groups alone."""
    return replace(part, evidence=tuple(_evidence(part)), results=tuple(_results(part)))


def _evidence(part: Worked) -> Iterator[Told]:
    """Yield the evidence, without words where a number or groups rest on all members, of which it shows a few."""
    told = _Told(part)
    for line in part.evidence:
        news = [] if _rests_on_all(part.call) else told.news(line.facts)
        yield replace(line, text=chained(news) if news else ())


def _rests_on_all(call: Call) -> bool:
    match call:
        case CountCall() | GroupCall() | TotalCall(function="Sum" | "Mean"):
            return True
        case _:
            return False


def _results(part: Worked) -> Iterator[Told]:
    """Yield the results; of groups beyond the first ones only how many there are, and of which sizes."""
    if part.kind != "groups" or part.total <= LISTED_GROUPS + _FEW_MORE:
        yield from part.results
        return
    yield from part.results[:LISTED_GROUPS]
    for place, line in enumerate(part.results[LISTED_GROUPS:]):
        yield replace(line, text=() if place else _left(part))


def _left(part: Worked) -> tuple[Piece, ...]:
    largest, smallest = part.results[LISTED_GROUPS].text[-1], part.results[-1].text[-1]
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
        """Return those facts that are not told yet, nor by the expression; they are told then."""
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
