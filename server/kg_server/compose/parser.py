r"""From the text of an expression to its tree.

The grammar; blanks and line breaks may stand between any two of its signs:

    expression := call ("," call)*                                    side by side
    call       := "Retrieve" "[" words "]"  |  "Type" "[" words "]"
                | ("Feature" | "Neighbor" | "Degree") "[" node ("," route)? "]"
                | "Count" "[" node "]"
                | ("Union" | "Intersect" | "Minus" | "Share") "[" node ("," node)+ "]"
                | "Where" "[" node ("," route (operator (words | node))?)+ "]"
                | ("Top" | "Bottom") "[" node "," route ("," number)? "]"
                | ("Sum" | "Mean" | "Min" | "Max") "[" node "," route "]"
                | ("Group" | "Table") "[" node ("," route)+ "]"       Group takes one
    node       := call | id | name
    route      := leg ("/" leg)*
    leg        := ("-" | "~")? words "+"?      "-" walks backwards, "~" both ways, "+" one or more times
    operator   := "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"              also "==", "≠", "≤" and "≥"

Names of functions are read in any case; `Neighbour`, `GetNeighbor` and `GetNeighbour` are `Neighbor`. What could be
read in two ways is read like this:

1. Words that are the last argument of `Retrieve`, `Type`, `Feature`, `Neighbor` and `Degree` run to the bracket that
   closes the call, with commas; elsewhere they end at a comma. Colons, quotation marks, line breaks and balanced
   brackets inside belong to them; blanks at both ends do not.
2. Words or an id may stand in quotation marks, double or single. They are quoted when the next mark of the same sort
   that no backslash precedes ends the argument; a backslash makes the next character plain, but for `\n`, `\r`, `\t`
   and characters by their numbers, as results show them: `\u200d`. Otherwise a mark that begins words is part of them,
   as in `Retrieve['Allo 'Allo!]`.
3. Words with an unbalanced bracket, or with blanks at an end that count, must be quoted. So must a relation that
   begins with a minus sign or tilde, or holds a slash, a plus sign or an operator: `-` before the marks walks
   backwards, `-` inside them is part of the name.
4. An argument of angle brackets without blanks, `<…>`, is one IRI, whatever stands in it.
5. An id ends at a comma or closing bracket outside its own brackets; one that holds a comma is quoted or in `<…>`.
6. A name directly before an opening bracket is a call where a node is expected, and an error if no function has it.
   Where words are expected it is text, but words that begin with a known function and a bracket must be quoted: they
   are a call at the wrong place more often than a text.
7. What a function gives must fit: functions start from nodes; sets have all nodes or all values; `Count` takes
   anything. `Sum[Feature[set, x]]` is read as `Sum[set, x]`.
"""

from collections.abc import Collection
from typing import Final

from kg_server.compose.arguments import ID_ENDS, ArgumentReader
from kg_server.compose.routes import operator_at
from kg_server.compose.scanner import (
    CLOSE,
    OPEN,
    QUOTES,
    name_at,
    opens_call,
    quoted,
    skip_blanks,
)
from kg_server.compose.syntax import (
    FUNCTIONS,
    BestCall,
    Call,
    Clause,
    CountCall,
    DegreeCall,
    EntityRef,
    FeatureCall,
    Function,
    GroupCall,
    NeighborCall,
    Operand,
    RetrieveCall,
    Route,
    SetCall,
    ShareCall,
    Span,
    TableCall,
    TotalCall,
    TypeCall,
    WalkFunction,
    WhereCall,
    Words,
    kind_of,
)
from kg_server.compose.wording import FORMS, UNCLOSED_QUOTE, no_call, no_function, unclosed

MAX_DEPTH: Final = 8
MAX_CALLS: Final = 64
MAX_IDS: Final = 500
ALL: Final = frozenset(FUNCTIONS.values())


def parse(
    text: str, *, max_depth: int = MAX_DEPTH, max_calls: int = MAX_CALLS, functions: Collection[Function] = ALL
) -> tuple[Call, ...]:
    """Return the calls of an expression that stand side by side.

    Args:
        text: The expression.
        max_depth: How deep calls may be nested; a call alone has depth 1.
        max_calls: How many calls there may be in all.
        functions: Which functions there are: all, or those of the paper (`PAPER`).

    Raises:
        MisreadExpression: The text is no expression, or is nested too deep or too long.
    """
    return _Parser(text, max_depth, max_calls, functions).expression()


class _Parser(ArgumentReader):
    """Reads the calls of one text. Nesting bounds the recursion."""

    def __init__(self, text: str, max_depth: int, max_calls: int, functions: Collection[Function]) -> None:
        super().__init__(text)
        self._calls = 0
        self._ids = 0
        self._max_depth = max_depth
        self._max_calls = max_calls
        self._functions = functions

    def expression(self) -> tuple[Call, ...]:
        parts = [self._call(1)]
        while self._next() == ",":
            self._at += 1
            parts.append(self._call(1))
        if self._next() == CLOSE:
            raise self._misread(
                self._at,
                "This bracket closes nothing. Expected a comma and another call, or the end. "
                "Put a text with an unbalanced bracket in quotation marks.",
            )
        if self._next():
            raise self._misread(self._at, "Expected a comma and another call, or the end.")
        return tuple(parts)

    def _call(self, depth: int) -> Call:
        self._next()
        start = self._at
        function = self._function(start)
        self._calls += 1
        if depth > self._max_depth:
            raise self._misread(start, f"This call is nested deeper than {self._max_depth}. Ask in two steps.")
        if self._calls > self._max_calls:
            raise self._misread(
                start, f"An expression has at most {self._max_calls} calls; this is one more. Ask in two."
            )
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
            text = self._words(function, bracket, "the text to look for" if function == "Retrieve" else "a class")
            span = self._closed(function, start, bracket)
            return RetrieveCall(text, span) if function == "Retrieve" else TypeCall(text, span)
        if function in {"Union", "Intersect", "Minus", "Share"}:
            return self._set(function, start, bracket, depth)
        operand = self._operand(function, bracket, depth)
        if function == "Count":
            if isinstance(operand, CountCall | TotalCall):
                raise self._misread(operand.span.start, f"{FORMS['Count']} This is one number already.")
            return CountCall(operand, self._closed(function, start, bracket))
        match function, operand:
            case (
                ("Sum" | "Mean" | "Min" | "Max"),
                (FeatureCall(node, Route() as route) | DegreeCall(node, Route() as route)),
            ):
                if self._next() == CLOSE:
                    return TotalCall(function, node, route, self._closed(function, start, bracket))
            case _:
                pass
        self._require_nodes(function, operand)
        return self._of_nodes(function, operand, start, bracket, depth)

    def _of_nodes(self, function: Function, node: Operand, start: int, bracket: int, depth: int) -> Call:
        """Read what follows the nodes that a call starts from."""
        found: Call
        match function:
            case "Feature" | "Neighbor" | "Degree":
                route = self._route(function, bracket, (CLOSE,)) if self._next() == "," else None
                span = self._closed(function, start, bracket)
                found = _walk(function, node, route, span)
            case "Where":
                clauses = [self._clause(bracket, depth)]
                while self._next() == ",":
                    clauses.append(self._clause(bracket, depth))
                found = WhereCall(node, tuple(clauses), self._closed(function, start, bracket))
            case "Top" | "Bottom":
                route = self._route(function, bracket, ID_ENDS)
                n = self._number(function, bracket) if self._next() == "," else 1
                found = BestCall(function, node, route, n, self._closed(function, start, bracket))
            case "Sum" | "Mean" | "Min" | "Max":
                route = self._route(function, bracket, ID_ENDS)
                found = TotalCall(function, node, route, self._closed(function, start, bracket))
            case "Group":
                route = self._route(function, bracket, ID_ENDS)
                found = GroupCall(node, route, self._closed(function, start, bracket))
            case _:
                routes = [self._route(function, bracket, ID_ENDS)]
                while self._next() == ",":
                    routes.append(self._route(function, bracket, ID_ENDS))
                found = TableCall(node, tuple(routes), self._closed(function, start, bracket))
        return found

    def _clause(self, bracket: int, depth: int) -> Clause:
        route = self._route("Where", bracket, ID_ENDS, condition=True)
        operator, written = operator_at(self._text, self._at)
        if operator is None:
            return Clause(route)
        self._at += len(written)
        mark = self._next()
        if opens_call(self._text, self._at):
            value = self._call(depth + 1)
            if kind_of(value) not in {"nodes", "values"} and not isinstance(value, CountCall | TotalCall):
                given = "the numbers of Degree" if isinstance(value, DegreeCall) else kind_of(value)
                problem = f"Where compares with nodes, values or one number, not with {given}."
                raise self._misread(value.span.start, problem)
            return Clause(route, operator, value)
        if not mark or mark in ID_ENDS:
            raise self._misread(self._at, f"Expected a value, a name or a set after {operator}.")
        found = self._number_with_commas() or self._argument(bracket, "Where", ID_ENDS)
        is_quoted = self._text[found.start] in QUOTES
        return Clause(route, operator, Words(found.text, self._passed(found), is_quoted))

    def _set(self, function: Function, start: int, bracket: int, depth: int) -> SetCall | ShareCall:
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
        match function:
            case "Union" | "Intersect" | "Minus":
                return SetCall(function, tuple(operands), span)
            case _:
                self._require_nodes(function, operands[0])
                return ShareCall(tuple(operands), span)

    def _require_nodes(self, function: Function, operand: Operand) -> None:
        if (kind := kind_of(operand)) != "nodes":
            raise self._misread(operand.span.start, f"{function} starts from nodes, but this gives {kind}.")

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
            raise self._misread(self._at, f"An expression has at most {MAX_IDS} ids of nodes; this is one more.")
        return EntityRef(found.text, self._passed(found))


def _walk(function: WalkFunction, node: Operand, route: Route | None, span: Span) -> Call:
    match function:
        case "Feature":
            return FeatureCall(node, route, span)
        case "Neighbor":
            return NeighborCall(node, route, span)
        case "Degree":
            return DegreeCall(node, route, span)
