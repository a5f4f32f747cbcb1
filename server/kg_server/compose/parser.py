"""Parse an expression of Compose."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from kg_adapters.algebra import Operator
from kg_server.compose.syntax import (
    CLOSE,
    COMPARED_COUNT,
    FORMS,
    FUNCTIONS,
    ONE_FOR_EACH,
    OPEN,
    PARTS,
    QUOTES,
    TOTALS,
    UNCLOSED_QUOTE,
    Call,
    Clause,
    EntityRef,
    Function,
    Leg,
    Mark,
    Operand,
    RefusedPart,
    Route,
    Scanned,
    Span,
    Words,
    angled,
    behind_parentheses,
    end_of_part,
    is_grouping,
    is_number,
    kind_of,
    name_at,
    no_call,
    no_function,
    opens_call,
    plain,
    quoted,
    second,
    skip_blanks,
    unclosed,
)
from kg_server.naming.refusals import MisreadExpression

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
        place = behind_parentheses(source, place)
    return Words(source[at:place].strip(), Span(at, place)), place


ID_ENDS: Final = (",", CLOSE)

MAX_BEST: Final = 10_000

MAX_RELATIONS: Final = 64

_DIGITS_OF_BEST: Final = len(str(MAX_BEST))

_THOUSANDS: Final = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?![\d,])")


class OverLimit(MisreadExpression):
    """An expression holds more than it may."""


MAX_DEPTH: Final = 8

MAX_CALLS: Final = 64

MAX_IDS: Final = 500

ALL: Final = frozenset(FUNCTIONS.values())


def parse_parts(
    text: str, *, max_depth: int = MAX_DEPTH, max_calls: int = MAX_CALLS, functions: Collection[Function] = ALL
) -> tuple[Call | RefusedPart, ...]:
    """Return the calls of an expression that stand side by side, and those that cannot be read as such.

    A part that cannot be read ends at the next comma outside brackets behind which a call begins.

    Args:
        text: The expression.
        max_depth: How deep calls may be nested; a call alone has depth 1.
        max_calls: How many calls there may be in all.
        functions: Which functions there are: all, or those of the paper (`PAPER`).

    Raises:
        OverLimit: It is too long.
    """
    return _Parser(text, max_depth, max_calls, functions).expression()


class _Parser:
    """Reads the calls of one text from left to right; `_at` is the next character. Nesting bounds the recursion."""

    def __init__(self, text: str, max_depth: int, max_calls: int, functions: Collection[Function]) -> None:
        self._text = text
        self._at = 0
        self._calls = 0
        self._ids = 0
        self._relations = 0
        self._max_depth = max_depth
        self._max_calls = max_calls
        self._functions = functions

    def expression(self) -> tuple[Call | RefusedPart, ...]:
        parts = [self._part()]
        while self._next() == ",":
            self._at += 1
            parts.append(self._part())
        return tuple(parts)

    def _part(self) -> Call | RefusedPart:
        self._next()
        start = self._at
        try:
            call = self._call(1)
            if self._next() == CLOSE:
                raise self._misread(
                    self._at,
                    "This bracket closes nothing. Expected a comma and another call, or the end. "
                    "Put a text with an unbalanced bracket in quotation marks.",
                )
            if self._next() not in {"", ","}:
                raise self._misread(self._at, "Expected a comma and another call, or the end.")
        except OverLimit:
            raise
        except MisreadExpression as error:
            self._at = end_of_part(self._text, start)
            return RefusedPart(error, Span(start, self._at))
        return call

    def _call(self, depth: int) -> Call:
        self._next()
        start = self._at
        function = self._function(start)
        self._calls += 1
        if depth > self._max_depth:
            raise self._misread(start, f"This call is nested deeper than {self._max_depth}. Ask in two steps.")
        if self._calls > self._max_calls:
            problem = f"An expression has at most {self._max_calls} calls; this is one more. Ask in two."
            raise OverLimit(self._text, start, problem)
        self._at = self._text.index(OPEN, start)
        return self._arguments(function, start, self._at, depth)

    def _function(self, start: int) -> Function:
        name = name_at(self._text, start)
        if not opens_call(self._text, start):
            raise self._misread(start, no_call(name, self._text[skip_blanks(self._text, start + len(name)) :][:1]))
        function = FUNCTIONS.get(name.lower())
        if function is None or function not in self._functions:
            raise self._misread(start, no_function(name, self._functions))
        return function

    def _arguments(self, function: Function, start: int, bracket: int, depth: int) -> Call:
        self._at = bracket + 1
        if function in {"Retrieve", "Type"}:
            words = self._words(function, bracket, "the text to look for" if function == "Retrieve" else "a class")
            return Call(function, self._closed(function, start, bracket), words=words)
        if function in {"Union", "Intersect", "Minus", "Share"}:
            return self._set(function, start, bracket, depth)
        operand = self._operand(function, bracket, depth)
        if function == "Count":
            if is_number(operand):
                raise self._misread(operand.span.start, f"{FORMS['Count']} This is one number already.")
            if kind_of(operand) == "groups" and not is_grouping(operand):
                raise self._misread(operand.span.start, f"{FORMS['Count']} Count[Group[…]] counts all groups.")
            return Call(function, self._closed(function, start, bracket), (operand,))
        if function in {"Sum", "Mean", "Min", "Max"} and self._next() == CLOSE:
            match operand:
                case Call(function="Feature" | "Degree", operands=operands, routes=(_,) as routes):
                    # Sum[Feature[set, by]] is Sum[set, by].
                    return Call(function, self._closed(function, start, bracket), operands, routes)
                case _:
                    pass
        if function in {"Top", "Bottom"} and is_grouping(operand):
            n = self._number(function, bracket) if self._next() == "," else 1
            return Call(function, self._closed(function, start, bracket), (operand,), n=n)
        self._require_nodes(function, operand)
        return self._of_nodes(function, operand, start, bracket, depth)

    def _of_nodes(self, function: Function, node: Operand, start: int, bracket: int, depth: int) -> Call:
        """Read what follows the nodes that a call starts from."""
        routes: list[Route] = []
        clauses: list[Clause] = []
        n = 1
        if function == "Where":
            clauses.append(self._clause(bracket, depth))
            while self._next() == ",":
                clauses.append(self._clause(bracket, depth))
        elif function in {"Feature", "Neighbor", "Degree"}:
            if self._next() == ",":
                routes.append(self._route(function, bracket, (CLOSE,)))
        else:
            routes.append(self._dated(bracket) if function == "Group" else self._measure(function, bracket))
            while function == "Table" and self._next() == ",":
                routes.append(self._measure(function, bracket))
            if function == "Group" and self._next() == ",":
                if (total := self._total(function)) is None:
                    expected = "Expected Sum, Mean, Min, Max or Count of a feature."
                    raise self._misread(skip_blanks(self._text, self._at + 1), f"{FORMS['Group']} {expected}")
                routes.append(total)
            if function in {"Top", "Bottom"} and self._next() == ",":
                n = self._number(function, bracket)
        span = self._closed(function, start, bracket)
        return Call(function, span, (node,), tuple(routes), clauses=tuple(clauses), n=n)

    def _clause(self, bracket: int, depth: int) -> Clause:
        counted = self._counted()
        route = counted or self._route("Where", bracket, ID_ENDS, condition=True)
        self._next()
        operator, written = operator_at(self._text, self._at)
        if operator is None and counted is None:
            return Clause(route)
        self._at += len(written)
        mark = self._next()
        if counted is not None:
            if operator in {None, "~"}:
                raise self._misread(self._at, COMPARED_COUNT)
            if opens_call(self._text, self._at):
                number = self._call(depth + 1)
                if not is_number(number):
                    raise self._misread(number.span.start, COMPARED_COUNT)
                return Clause(route, operator, number, counted=True)
            found = self._number_with_commas() or self._argument(bracket, "Where", ID_ENDS)
            return Clause(route, operator, Words(found.text, self._passed(found)), counted=True)
        if opens_call(self._text, self._at):
            value = self._call(depth + 1)
            if kind_of(value) not in {"nodes", "values"} and not is_number(value):
                given = "the numbers of Degree" if kind_of(value) == "numbers" else kind_of(value)
                problem = f"Where compares with nodes, values or one number, not with {given}."
                raise self._misread(value.span.start, problem)
            return Clause(route, operator, value)
        if not mark or mark in ID_ENDS:
            raise self._misread(self._at, f"Expected a value, a name or a set after {operator}.")
        found = self._number_with_commas() or self._argument(bracket, "Where", ID_ENDS)
        is_quoted = self._text[found.start] in QUOTES
        return Clause(route, operator, Words(found.text, self._passed(found), is_quoted))

    def _counted(self) -> Route | None:
        """Read a comma and `Count[relation]`; None, and nothing is read, where something else stands there."""
        behind = skip_blanks(self._text, self._at + 1)
        is_count = name_at(self._text, behind).lower() == "count" and opens_call(self._text, behind)
        if self._next() != "," or not is_count:
            return None
        opened = self._text.index(OPEN, behind)
        route = self._relations_at("Count", opened, opened + 1, (CLOSE,))
        self._at += 1
        return route

    def _measure(self, function: Function, bracket: int) -> Route:
        """Read a comma and a route, or `Sum[route]` where each member may have a total."""
        found = self._total(function) if function in {"Top", "Bottom", "Table"} else None
        return found or self._route(function, bracket, ID_ENDS)

    def _dated(self, bracket: int) -> Route:
        """Read a comma, a route and the part up to which dates are told apart, as in `seen at by month`."""
        start = self._at
        route = self._route("Group", bracket, (*ID_ENDS, *PARTS))
        written = next((each for each in PARTS if self._text.startswith(each.lstrip(), self._at)), None)
        if written is None:
            return route
        self._at += len(written.lstrip())
        if self._next() in ID_ENDS:
            return replace(route, span=Span(route.span.start, self._at), part=PARTS[written])
        # It is within a longer name.
        self._at = start
        return self._route("Group", bracket, ID_ENDS)

    def _total(self, function: Function) -> Route | None:
        """Read a comma and `Sum[route]`; None, and nothing is read, where something else stands there."""
        behind = skip_blanks(self._text, self._at + 1)
        total = TOTALS.get(name_at(self._text, behind).lower())
        if self._next() != "," or total is None or not opens_call(self._text, behind):
            return None
        opened = self._text.index(OPEN, behind)
        self._refuse_call(total, skip_blanks(self._text, opened + 1), f"the path alone within {function}")
        route = self._relations_at(total, opened, opened + 1, (CLOSE,))
        self._at += 1
        return replace(route, total=total)

    def _set(self, function: Function, start: int, bracket: int, depth: int) -> Call:
        operands = [self._operand(function, bracket, depth)]
        if self._next() == CLOSE:
            raise self._misread(self._at, f"{FORMS[function]} Expected a comma and another one.")
        while self._next() == ",":
            self._at += 1
            operands.append(self._operand(function, bracket, depth))
        span = self._closed(function, start, bracket)
        wanted = kind_of(operands[0])
        for operand in operands:
            kind = kind_of(operand)
            if kind not in {"nodes", "values"} or kind != wanted:
                first = f", and the first {wanted}" if operand is not operands[0] else ""
                raise self._misread(
                    operand.span.start,
                    f"{function} takes sets that are all of nodes, or all of values; this gives {kind}{first}.",
                )
        if function == "Share":
            self._require_nodes(function, operands[0])
        return Call(function, span, tuple(operands))

    def _require_nodes(self, function: Function, operand: Operand) -> None:
        if (kind := kind_of(operand)) != "nodes":
            instead = f" {ONE_FOR_EACH}" if function.lower() in TOTALS and is_grouping(operand) else ""
            raise self._misread(operand.span.start, f"{function} starts from nodes, but this gives {kind}.{instead}")

    def _operand(self, function: Function, bracket: int, depth: int) -> Operand:
        mark = self._next()
        if not mark:
            raise self._misread(bracket, unclosed(function))
        if opens_call(self._text, self._at):
            return self._call(depth + 1)
        if mark in QUOTES and quoted(self._text, self._at, ID_ENDS) is None:
            raise self._misread(self._at, UNCLOSED_QUOTE)
        found = self._argument(bracket, function, ID_ENDS)
        if not found.text.strip():
            raise self._misread(self._at, f"{FORMS[function]} Expected an id, a name or a call here.")
        self._ids += 1
        if self._ids > MAX_IDS:
            raise OverLimit(
                self._text, self._at, f"An expression has at most {MAX_IDS} ids of nodes; this is one more."
            )
        return EntityRef(found.text, self._passed(found))

    def _next(self) -> str:
        """Return the next character that is no blank, and go to it; empty at the end."""
        self._at = skip_blanks(self._text, self._at)
        return self._text[self._at : self._at + 1]

    def _misread(self, at: int, problem: str) -> MisreadExpression:
        return MisreadExpression(self._text, at, problem)

    def _route(self, function: Function, bracket: int, ends: tuple[str, ...], *, condition: bool = False) -> Route:
        """Read a comma and the relations behind it."""
        mark = self._next()
        if mark != ",":
            if not mark:
                raise self._misread(bracket, unclosed(function))
            raise self._misread(self._at, f"{FORMS[function]} Expected a comma and {second(function)}.")
        return self._relations_at(function, bracket, self._at + 1, ends, condition=condition)

    def _relations_at(
        self, function: Function, bracket: int, at: int, ends: tuple[str, ...], *, condition: bool = False
    ) -> Route:
        behind = skip_blanks(self._text, at)
        self._refuse_call(function, behind, second(function))
        read = read_route(self._text, at, ends, before_operator=condition)
        if read.end >= len(self._text):
            raise self._misread(bracket, unclosed(function))
        if read.problem:
            raise self._misread(read.end, f"{FORMS[function]} {read.problem}")
        self._relations += len(read.route.legs)
        if self._relations > MAX_RELATIONS:
            raise OverLimit(self._text, behind, f"An expression names at most {MAX_RELATIONS} relations. Ask in two.")
        self._at = read.end
        return read.route

    def _refuse_call(self, function: Function, at: int, wanted: str) -> None:
        name = name_at(self._text, at).lower()
        if name in FUNCTIONS and opens_call(self._text, at):
            quotes = "one that looks like a call is put in quotation marks."
            instead = f" {ONE_FOR_EACH}" if name in TOTALS else ""
            raise self._misread(at, f"{function} takes no call here. Expected {wanted}; {quotes}{instead}")

    def _number(self, function: Function, bracket: int) -> int:
        self._at = skip_blanks(self._text, self._at + 1)
        found = self._argument(bracket, function, ID_ENDS)
        number = int(found.text) if found.text.isdecimal() and len(found.text) <= _DIGITS_OF_BEST else 0
        if not 1 <= number <= MAX_BEST:
            raise self._misread(self._at, f"Expected how many, a whole number from 1 to {MAX_BEST:,}.")
        self._passed(found)
        return number

    def _number_with_commas(self) -> Scanned | None:
        """Read a number such as `1,000 m`, whose commas end nothing; None where there is none."""
        number = _THOUSANDS.match(self._text, self._at)
        rest = None if number is None else plain(self._text, number.end(), ID_ENDS)
        return None if rest is None else Scanned(self._text[self._at : rest.end].strip(), self._at, rest.end)

    def _words(self, function: Function, bracket: int, wanted: str) -> Words:
        self._next()
        self._refuse_call(function, self._at, wanted)
        found = self._argument(bracket, function, (CLOSE,))
        if not found.text.strip():
            raise self._misread(self._at, f"{FORMS[function]} Expected {wanted} here.")
        return Words(found.text, self._passed(found))

    def _argument(self, bracket: int, function: Function, ends: tuple[str, ...]) -> Scanned:
        for read in (quoted, angled, plain):
            found = read(self._text, self._at, ends)
            if found is not None:
                return found
        raise self._misread(bracket, unclosed(function))

    def _passed(self, found: Scanned) -> Span:
        self._at = found.end
        return Span(found.start, found.end)

    def _closed(self, function: Function, start: int, bracket: int) -> Span:
        mark = self._next()
        if not mark:
            raise self._misread(bracket, unclosed(function))
        if mark != CLOSE:
            raise self._misread(self._at, f"{FORMS[function]} Expected {CLOSE} to close it here.")
        self._at += 1
        return Span(start, self._at)
