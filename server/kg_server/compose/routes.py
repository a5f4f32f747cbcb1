"""Relations, paths of relations and conditions, as they stand inside a call."""

import re
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.algebra import Operator
from kg_server.compose.scanner import CLOSE, OPEN, QUOTES, angled, quoted, skip_blanks
from kg_server.compose.syntax import Leg, Mark, Route, Span, Words
from kg_server.compose.wording import UNCLOSED_QUOTE

_OPERATORS: Final[dict[str, Operator]] = {
    "==": "=",
    "!=": "!=",
    "<=": "<=",
    ">=": ">=",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "=": "=",
    "<": "<",
    ">": ">",
    "~": "~",
}
"""The operators by how they are written, longer ones first."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_MARKS: Final[dict[str, Mark]] = {"-": "-", "~": "~"}


@dataclass(frozen=True, slots=True)
class ReadRoute:
    """A route, where what follows it begins, and what is wrong at that place, if anything is."""

    route: Route
    end: int
    problem: str = ""


def read_route(source: str, at: int, ends: tuple[str, ...], *, before_operator: bool = False) -> ReadRoute:
    """Read relations with `/` between them, up to one of some marks outside brackets and quotation marks.

    Args:
        source: The text.
        at: Where the route begins.
        ends: The marks that end it.
        before_operator: Whether an operator ends it too.
    """
    start = skip_blanks(source, at)
    legs: list[Leg] = []
    place = start
    while True:
        place = skip_blanks(source, place)
        mark = _MARKS.get(source[place : place + 1], "")
        place = skip_blanks(source, place + len(mark))
        stops = (*ends, "/", "+", *(_OPERATORS if before_operator else ()))
        name, place = _name(source, place, stops)
        repeated = source.startswith("+", place)
        place = skip_blanks(source, place + repeated)
        legs.append(Leg(name, mark, repeated=repeated))
        if not name.text:
            unclosed = source.startswith(tuple(QUOTES), place)
            problem = UNCLOSED_QUOTE if unclosed else "Expected the name of a relation here."
            return ReadRoute(Route(tuple(legs), Span(start, place)), place, problem)
        if not source.startswith("/", place):
            return ReadRoute(Route(tuple(legs), Span(start, place)), place)
        place += 1


def route_in(words: Words) -> Route:
    """Return words as a route of relations, all of which stand where the words do."""
    legs = read_route(words.text, 0, ()).route.legs
    return Route(tuple(replace(leg, name=Words(leg.name.text, words.span)) for leg in legs), words.span)


def operator_at(source: str, at: int) -> tuple[Operator | None, str]:
    """Return the operator that stands at an index, and how it is written; None where there is none."""
    written = next((each for each in _OPERATORS if source.startswith(each, at)), "")
    return _OPERATORS.get(written), written


def _name(source: str, at: int, stops: tuple[str, ...]) -> tuple[Words, int]:
    for read in (quoted, angled):
        if (found := read(source, at, stops)) is not None:
            return Words(found.text, Span(at, found.end)), found.end
    if source[at : at + 1] in QUOTES and source[at : at + 1]:
        return Words("", Span(at, at)), at
    place = at
    if (scheme := _SCHEME.match(source, at)) is not None:
        place, stops = scheme.end(), tuple(stop for stop in stops if stop not in {"/", "+"})
    depth = 0
    while place < len(source) and not (depth == 0 and source.startswith(stops, place)):
        depth += (source[place] == OPEN) - (source[place] == CLOSE)
        place += 1
    return Words(source[at:place].strip(), Span(at, place)), place
