"""The tree that an expression is read into. Where something stood in the text does not count when trees compare."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias, TypeGuard, get_args
from typing import Literal as Choice

from kg_adapters.algebra import DatePart, Operator
from kg_boundary.shown import in_quotes, read_back
from kg_server.naming.refusals import MisreadExpression, closest

PaperFunction: TypeAlias = Choice["Retrieve", "Feature", "Neighbor", "Degree"]

SetFunction: TypeAlias = Choice["Union", "Intersect", "Minus"]

OtherFunction: TypeAlias = Choice[
    "Count", "Type", "Where", "Top", "Bottom", "Sum", "Mean", "Min", "Max", "Group", "Share", "Table"
]

Function: TypeAlias = PaperFunction | SetFunction | OtherFunction

Kind: TypeAlias = Choice["nodes", "values", "numbers", "groups", "rows"]

Mark: TypeAlias = Choice["", "-", "~"]

PAPER: Final = frozenset[Function](get_args(PaperFunction))
"""The functions of the paper."""

FUNCTIONS: Final[Mapping[str, Function]] = {
    **{name.lower(): name for each in (PaperFunction, SetFunction, OtherFunction) for name in get_args(each)},
    "neighbour": "Neighbor",
    "getneighbor": "Neighbor",
    "getneighbour": "Neighbor",
}
"""The functions by their names in lower case."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text, from the character `start` up to and without `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Words:
    """What to look for, or the id or label of a relation, feature or class; `quoted` of the value of a condition."""

    text: str
    span: Span = field(compare=False)
    quoted: bool = False


_NO_WORDS: Final = Words("", Span(0, 0))


@dataclass(frozen=True, slots=True)
class Leg:
    """One relation of a route: walked forward, backwards (`-`) or both ways (`~`), once or repeatedly (`+`)."""

    name: Words
    mark: Mark = ""
    repeated: bool = False


TotalFunction: TypeAlias = Choice["Sum", "Mean", "Min", "Max", "Count"]

TOTALS: Final[Mapping[str, TotalFunction]] = {name.lower(): name for name in get_args(TotalFunction)}
"""The functions that take the values of each node or group together, by their names in lower case."""

PARTS: Final[Mapping[str, DatePart]] = {f" by {part}": part for part in get_args(DatePart)}
"""Up to which part dates are told apart, by how that is written behind a route."""


@dataclass(frozen=True, slots=True)
class Route:
    """Relations one behind the other, and the text that they stand in, which may be the name of one relation.

    Args:
        legs: The relations.
        span: Where they stand.
        total: As what the values that they lead to are taken together, as in `Sum[route]`; None for each by itself.
        part: Up to which part dates are told apart, as in `route by month`; None for whole dates.
    """

    legs: tuple[Leg, ...]
    span: Span = field(compare=False)
    total: TotalFunction | None = None
    part: DatePart | None = None


@dataclass(frozen=True, slots=True)
class EntityRef:
    """The id or name of an entity, as it was written."""

    text: str
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition of `Where`: that a route leads anywhere, or how what it leads to compares with a value or a set.

    Where it is `counted`, how many it leads to compares with a number.
    """

    route: Route
    operator: Operator | None = None
    value: "Words | Operand | None" = None
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A function and what it is given, as in `Top[set, by, n]`.

    Args:
        function: The function.
        span: Where the call stands.
        operands: What it starts from: one node or set, of `Union`, `Intersect`, `Minus` and `Share` two or more.
        routes: The relations that it walks or measures by: one, none for all of them, of `Table` one for each column,
            of `Group` a second one for what each group comes to.
        words: What `Retrieve` looks for, or the class of `Type`.
        clauses: The conditions of `Where`.
        n: How many `Top` and `Bottom` give.
    """

    function: Function
    span: Span = field(compare=False)
    operands: tuple["Operand", ...] = ()
    routes: tuple[Route, ...] = ()
    words: Words = _NO_WORDS
    clauses: tuple[Clause, ...] = ()
    n: int = 1

    @property
    def node(self) -> "Operand":
        """What the call starts from, where that is one thing."""
        return self.operands[0]

    @property
    def route(self) -> Route | None:
        """The first relation that it walks or measures by; None for all of them."""
        return self.routes[0] if self.routes else None


Operand: TypeAlias = Call | EntityRef


@dataclass(frozen=True, slots=True)
class RefusedPart:
    """A part of an expression that cannot be read, and why."""

    reason: MisreadExpression
    span: Span


_GIVES: Final[Mapping[Function, Kind]] = {
    **dict.fromkeys(("Degree", "Count", "Sum", "Mean", "Min", "Max"), "numbers"),
    "Feature": "values",
    "Group": "groups",
    **dict.fromkeys(("Table", "Share"), "rows"),
}
"""What functions give beside nodes."""


def kind_of(operand: Operand) -> Kind:
    """Return what an operand gives."""
    if isinstance(operand, EntityRef):
        return "nodes"
    if operand.function in {"Union", "Intersect", "Minus", "Top", "Bottom"}:
        return kind_of(operand.node)
    return _GIVES.get(operand.function, "nodes")


def is_number(operand: Operand) -> TypeGuard[Call]:
    """Return whether an operand gives one number."""
    return isinstance(operand, Call) and kind_of(operand) == "numbers" and operand.function != "Degree"


def is_grouping(operand: "Operand | RefusedPart") -> bool:
    """Return whether this is all groups of a set."""
    return isinstance(operand, Call) and operand.function == "Group"


def operands_of(call: Call) -> tuple[Operand, ...]:
    """Return the operands that must be known before a call can be worked out."""
    values = (clause.value for clause in call.clauses)
    return (*call.operands, *(value for value in values if value is not None and not isinstance(value, Words)))


def entities_in(operand: Operand) -> Iterator[EntityRef]:
    """Yield the ids and names of entities in a tree, with repeats."""
    if isinstance(operand, EntityRef):
        yield operand
    else:
        for each in operands_of(operand):
            yield from entities_in(each)


def calls_in(operand: Operand) -> Iterator[Call]:
    """Yield the calls of a tree, outer ones first."""
    if not isinstance(operand, EntityRef):
        yield operand
        for each in operands_of(operand):
            yield from calls_in(each)


OPEN: Final = "["

CLOSE: Final = "]"

QUOTES: Final = "\"'"

_LABEL_AND_ID: Final = re.compile(r"\w+\s*\[[^\[\]]*\]\s+\(")

_BRACKET: Final = re.compile(r"[()\[\]]")

_ESCAPED: Final = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[nrt])")


@dataclass(frozen=True, slots=True)
class Scanned:
    """A text that was read, where it begins in the source, and where the next character stands."""

    text: str
    start: int
    end: int


def skip_blanks(source: str, at: int) -> int:
    """Return the index of the first character at or after `at` that is no blank."""
    while at < len(source) and source[at].isspace():
        at += 1
    return at


def name_at(source: str, at: int) -> str:
    """Return the letters, digits and underscores that stand at an index; empty where there are none."""
    end = at
    while end < len(source) and (source[end].isalnum() or source[end] == "_"):
        end += 1
    return source[at:end]


def opens_call(source: str, at: int) -> bool:
    """Return whether a name and an opening bracket stand at an index, with or without blanks between them.

    A label that holds brackets, with its id behind it, opens none: `Apollo [11] (Q43653)`.
    """
    name = name_at(source, at)
    if not name or not source.startswith(OPEN, skip_blanks(source, at + len(name))):
        return False
    return name.lower() in FUNCTIONS or _LABEL_AND_ID.match(source, at) is None


def end_of_part(source: str, at: int) -> int:
    """Return the index of the next comma outside brackets and quotation marks that a call follows, or of the end."""
    depth = 0
    while at < len(source):
        argument = quoted(source, at, (",", CLOSE)) if depth and source[at] in QUOTES else None
        if argument is not None:
            at = argument.end
            continue
        depth = max(0, depth + (source[at] == OPEN) - (source[at] == CLOSE))
        if not depth and source[at] == "," and opens_call(source, skip_blanks(source, at + 1)):
            return at
        at += 1
    return at


def behind_parentheses(source: str, at: int) -> int:
    """Return the index behind the parentheses that open at an index, or the next index where none do.

    A comma or bracket between them ends no argument: `Paris (dbr:Paris,_Texas)`.
    """
    return _closing(source).get(at, at) + 1


@lru_cache(maxsize=8)
def _closing(source: str) -> Mapping[int, int]:
    """Return the place of the closing parenthesis by that of the opening one, of pairs without square brackets."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACKET.finditer(source):
        if found[0] == "(":
            opened.append(found.start())
        elif found[0] != ")":
            opened.clear()
        elif opened:
            closing[opened.pop()] = found.start()
    return closing


def _end_at(source: str, stop: int, ends: Collection[str]) -> int | None:
    """Return where one of `ends` stands: behind the blanks at an index, or there; None where none does."""
    places = (skip_blanks(source, stop), stop)
    return next((place for place in places if source.startswith(tuple(ends), place)), None)


def quoted(source: str, at: int, ends: Collection[str]) -> Scanned | None:
    """Read a text in quotation marks, and the id in parentheses behind it, if any.

    Returns None where none stands that one of `ends` follows.
    """
    if at >= len(source) or source[at] not in QUOTES:
        return None
    mark, place, read = source[at], at + 1, list[str]()
    while place < len(source) and source[place] != mark:
        if (escape := _ESCAPED.match(source, place)) is not None:
            read.append(read_back(escape.group()))
            place = escape.end() - 1
        elif source[place] == "\\" and place + 1 < len(source):
            place += 1
            read.append(source[place])
        else:
            read.append(source[place])
        place += 1
    stop = place + 1
    behind = skip_blanks(source, stop)
    if source.startswith("(", behind) and (end := behind_parentheses(source, behind)) > behind + 1:
        read.append(f" {source[behind:end]}")
        stop = end
    found = _end_at(source, stop, ends) if place < len(source) else None
    return None if found is None else Scanned("".join(read), at, found)


def angled(source: str, at: int, ends: Collection[str]) -> Scanned | None:
    """Read an IRI in angle brackets, or return None where none stands that one of `ends` follows."""
    close = source.find(">", at) if source.startswith("<", at) else -1
    if close < 0 or any(mark.isspace() for mark in source[at:close]):
        return None
    found = _end_at(source, close + 1, ends)
    return None if found is None else Scanned(source[at : close + 1], at, found)


def plain(source: str, at: int, ends: Collection[str]) -> Scanned | None:
    """Read a text up to one of `ends` outside its own brackets, or return None where the source ends before."""
    place, depth = at, 0
    while place < len(source):
        mark = source[place]
        if depth == 0 and mark in ends:
            return Scanned(source[at:place].strip(), at, place)
        depth += (mark == OPEN) - (mark == CLOSE)
        place = behind_parentheses(source, place)
    return None


FORMS: Final[Mapping[Function, str]] = {
    "Where": "Where takes a set and conditions, as in Where[Type[town], population > 1000].",
    "Top": "Top takes a set, what it is measured by, and how many, as in Top[Type[town], population, 3].",
    "Bottom": "Bottom takes a set, what it is measured by, and how many, as in Bottom[Type[town], population, 3].",
    "Group": "Group takes a set and a relation, as in Group[Type[town], country], and what each group comes to, as in "
    "Group[Type[town], country, Sum[population]].",
    "Table": "Table takes a set and relations, as in Table[Type[town], country, population].",
    **{
        each: f"{each} takes a set and a feature, as in {each}[Type[town], population]."
        for each in ("Sum", "Mean", "Min", "Max")
    },
    "Feature": "Feature takes a node and a feature, as in Feature[Japan, population].",
    **{each: f"{each} takes a node and a relation, as in {each}[Japan, capital]." for each in ("Neighbor", "Degree")},
    "Retrieve": "Retrieve takes a text, as in Retrieve[Japan].",
    "Type": "Type takes a class, as in Type[town].",
    "Count": "Count takes one set, as in Count[Type[town]].",
    **{
        each: f"{each} takes two or more sets, as in {each}[Type[town], Neighbor[Japan, capital]]."
        for each in ("Union", "Intersect", "Minus", "Share")
    },
}

ONE_FOR_EACH: Final = (
    "One for each group or member: Group[set, relation, Sum[path]], Top[set, Sum[path], 3], Table[set, Sum[path]]; "
    "also with Mean, Min, Max and Count."
)

CONDITION: Final = "A condition is a relation, an operator and a value, as in population > 1000."

COMPARED_COUNT: Final = "Expected an operator and a whole number, as in Count[capital] = 0."

UNCLOSED_QUOTE: Final = "This quotation mark is never closed, or something else follows its end."

_QUERIES: Final = frozenset(("select", "ask", "construct", "describe", "prefix"))

_SECOND: Final[Mapping[Function, str]] = {"Feature": "a feature", "Where": "a condition"}

_SHOWN: Final = 40

_SHAPES: Final = "Retrieve[text], Feature[node, feature], Neighbor[node, relation] or Degree[node, relation]"


def second(function: Function) -> str:
    """Return what a function takes behind its first argument."""
    return _SECOND.get(function, "a relation")


def unclosed(function: Function) -> str:
    """Return the error for a call without its closing bracket."""
    return f"This bracket of {function} is never closed. Expected {CLOSE} after its last argument."


def no_call(name: str, following: str) -> str:
    """Return the error for a name where a call is expected."""
    function = FUNCTIONS.get(name.lower())
    if function is not None and following == "(":
        return f"The arguments of {function} go in square brackets. Expected {OPEN} after the name."
    if function is not None:
        return f"Expected {OPEN} and the arguments after {function}."
    if name.lower() in _QUERIES:
        return f"This is not an expression: the tool Sparql takes queries. Expected a call here, such as {_SHAPES}."
    return f"Expected a call here, such as {_SHAPES}."


def no_function(name: str, functions: Collection[Function]) -> str:
    """Return the error for an unknown function."""
    known_names = [short for short, function in FUNCTIONS.items() if function in functions]
    close = closest(name[:_SHOWN].lower(), known_names, limit=1)
    meant = f" Did you mean {FUNCTIONS[close[0]]}?" if close else ""
    known = ", ".join(dict.fromkeys(FUNCTIONS[short] for short in known_names))
    return f"There is no function {in_quotes(name, _SHOWN)}.{meant} The functions are {known}."
