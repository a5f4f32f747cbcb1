r"""From the text of an expression to its tree.

The grammar; blanks and line breaks may stand between any two of its signs:

    expression := call ("," call)*                    side by side
    call       := "Retrieve" "[" words "]"
                | "Feature"  "[" node "," words "]"
                | "Neighbor" "[" node "," relation "]"
                | "Degree"   "[" node ("," relation)? "]"
                | "Count"    "[" node "]"
                | ("Union" | "Intersect" | "Minus") "[" node ("," node)+ "]"
    node       := call | id
    relation   := "-"? words                          "-" walks it backwards

Names of functions are read in any case; `Neighbour`, `GetNeighbor` and `GetNeighbour` are `Neighbor`. What could be
read in two ways is read like this:

1. Words are the last argument, and run to the bracket that closes the call. Commas, colons, quotation marks, line
   breaks and balanced brackets inside belong to them; blanks at both ends do not.
2. Words or an id may stand in quotation marks, double or single. They are quoted when the next mark of the same sort
   that no backslash precedes ends the argument; a backslash makes the next character plain, but for `\n`, `\r`, `\t`
   and characters by their numbers, as results show them: `\u200d`. Otherwise a mark that begins words is part of them,
   as in `Retrieve['Allo 'Allo!]`.
3. Words with an unbalanced bracket, or with blanks at an end that count, must be quoted. So must a relation that
   begins with a minus sign: `-` before the marks walks backwards, `-` inside them is part of the name.
4. An argument of angle brackets without blanks, `<…>`, is one IRI, whatever stands in it.
5. An id ends at a comma or closing bracket outside its own brackets; one that holds a comma is quoted or in `<…>`.
6. A name directly before an opening bracket is a call where a node is expected, and an error if no function has it.
   Where words are expected it is text, but words that begin with a known function and a bracket must be quoted: they
   are a call at the wrong place more often than a text.
7. What a function gives must fit: `Retrieve`, `Neighbor` and ids give nodes, `Feature` values, `Degree` and `Count`
   numbers. Nodes are what functions start from; sets have all nodes or all values; `Count` takes anything.
"""

from typing import Final, assert_never

from kg_boundary.shown import in_quotes
from kg_server.compose.pointing import MisreadExpression
from kg_server.compose.scanner import (
    CLOSE,
    OPEN,
    QUOTES,
    Scanned,
    angled,
    name_at,
    opens_call,
    plain,
    quoted,
    skip_blanks,
)
from kg_server.compose.syntax import (
    FUNCTIONS,
    Call,
    CountCall,
    DegreeCall,
    EntityRef,
    FeatureCall,
    Function,
    NeighborCall,
    Operand,
    RetrieveCall,
    SetCall,
    SetFunction,
    Span,
    Words,
    kind_of,
)
from kg_server.resolve import closest

MAX_DEPTH: Final = 8
MAX_CALLS: Final = 64
MAX_IDS: Final = 500
_SHOWN: Final = 40
_ID_ENDS: Final = (",", CLOSE)
_SHAPES: Final = "Retrieve[text], Feature[node, feature], Neighbor[node, relation] or Degree[node, relation]"


def parse(text: str, *, max_depth: int = MAX_DEPTH, max_calls: int = MAX_CALLS) -> tuple[Call, ...]:
    """Return the calls of an expression that stand side by side.

    Args:
        text: The expression.
        max_depth: How deep calls may be nested; a call alone has depth 1.
        max_calls: How many calls there may be in all.

    Raises:
        MisreadExpression: The text is no expression, or is nested too deep or too long.
    """
    return _Parser(text, max_depth, max_calls).expression()


class _Parser:
    """Reads one text from left to right; `_at` is the next character. Nesting bounds the recursion."""

    def __init__(self, text: str, max_depth: int, max_calls: int) -> None:
        self._text = text
        self._at = 0
        self._calls = 0
        self._ids = 0
        self._max_depth = max_depth
        self._max_calls = max_calls

    def expression(self) -> tuple[Call, ...]:
        parts = [self._call(1)]
        while self._next() == ",":
            self._at += 1
            parts.append(self._call(1))
        if self._next() == CLOSE:
            raise self._misread(
                self._at,
                "This bracket closes nothing. Expected a comma and another call, or the end. "
                "A text that holds an unbalanced bracket stands in quotation marks.",
            )
        if self._next():
            raise self._misread(self._at, "Expected a comma and another call, or the end.")
        return tuple(parts)

    def _next(self) -> str:
        """Return the next character that is no blank, and go to it; empty at the end."""
        self._at = skip_blanks(self._text, self._at)
        return self._text[self._at : self._at + 1]

    def _misread(self, at: int, problem: str) -> MisreadExpression:
        return MisreadExpression(self._text, at, problem)

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
            raise self._misread(start, _no_call(name, self._text[skip_blanks(self._text, start + len(name)) :][:1]))
        function = FUNCTIONS.get(name.lower())
        if function is None:
            raise self._misread(start, _no_function(name))
        return function

    def _arguments(self, function: Function, start: int, bracket: int, depth: int) -> Call:
        self._at = bracket + 1
        match function:
            case "Retrieve":
                text = self._words(function, bracket, "the text to look for")
                return RetrieveCall(text, self._closed(function, start, bracket))
            case "Feature":
                node = self._nodes(function, bracket, depth)
                feature = self._after_comma(function, bracket, "a feature")
                return FeatureCall(node, feature, self._closed(function, start, bracket))
            case "Neighbor":
                node = self._nodes(function, bracket, depth)
                relation, backwards = self._relation(function, bracket)
                return NeighborCall(node, relation, backwards, self._closed(function, start, bracket))
            case "Degree":
                return self._degree(start, bracket, depth)
            case "Count":
                of = self._operand(function, bracket, depth)
                return CountCall(of, self._closed(function, start, bracket))
            case "Union" | "Intersect" | "Minus":
                return self._set(function, start, bracket, depth)
            case _:
                assert_never(function)

    def _degree(self, start: int, bracket: int, depth: int) -> DegreeCall:
        node = self._nodes("Degree", bracket, depth)
        if self._next() != ",":
            return DegreeCall(node, None, False, self._closed("Degree", start, bracket))
        relation, backwards = self._relation("Degree", bracket)
        return DegreeCall(node, relation, backwards, self._closed("Degree", start, bracket))

    def _set(self, function: SetFunction, start: int, bracket: int, depth: int) -> SetCall:
        operands = [self._operand(function, bracket, depth)]
        if self._next() == CLOSE:
            raise self._misread(self._at, f"{function} takes two or more sets. Expected a comma and another one.")
        while self._next() == ",":
            self._at += 1
            operands.append(self._operand(function, bracket, depth))
        span = self._closed(function, start, bracket)
        wanted = kind_of(operands[0])
        for operand in operands:
            kind = kind_of(operand)
            if kind == "numbers" or kind != wanted:
                raise self._misread(
                    operand.span.start,
                    f"{function} takes sets that are all of nodes, or all of values; this gives {kind}.",
                )
        return SetCall(function, tuple(operands), span)

    def _nodes(self, function: Function, bracket: int, depth: int) -> Operand:
        operand = self._operand(function, bracket, depth)
        if (kind := kind_of(operand)) != "nodes":
            raise self._misread(operand.span.start, f"{function} starts from nodes, but this gives {kind}.")
        return operand

    def _operand(self, function: Function, bracket: int, depth: int) -> Operand:
        mark = self._next()
        if not mark:
            raise self._misread(bracket, _unclosed(function))
        if opens_call(self._text, self._at):
            return self._call(depth + 1)
        if mark in QUOTES and quoted(self._text, self._at, _ID_ENDS) is None:
            raise self._misread(self._at, "This quotation mark is never closed, or something else follows its end.")
        found = self._argument(bracket, function, _ID_ENDS)
        if not found.text.strip():
            raise self._misread(self._at, f"{function} needs a node here. Expected an id such as Q42, or a call.")
        self._ids += 1
        if self._ids > MAX_IDS:
            raise self._misread(self._at, f"An expression has at most {MAX_IDS} ids of nodes; this is one more.")
        return EntityRef(found.text, self._passed(found))

    def _after_comma(self, function: Function, bracket: int, wanted: str) -> Words:
        mark = self._next()
        if mark == ",":
            self._at += 1
            return self._words(function, bracket, wanted)
        if not mark:
            raise self._misread(bracket, _unclosed(function))
        step = " The tool Degree lists the relations of an entity." if function == "Neighbor" else ""
        raise self._misread(self._at, f"{function} takes a node and {wanted}. Expected a comma and {wanted}.{step}")

    def _relation(self, function: Function, bracket: int) -> tuple[Words, bool]:
        comma = self._next()
        behind = skip_blanks(self._text, self._at + 1)
        if comma == "," and self._text.startswith("-", behind):
            self._at = behind + 1
            return self._words(function, bracket, "a relation"), True
        return self._after_comma(function, bracket, "a relation"), False

    def _words(self, function: Function, bracket: int, wanted: str) -> Words:
        self._next()
        if FUNCTIONS.get(name_at(self._text, self._at).lower()) and opens_call(self._text, self._at):
            raise self._misread(
                self._at,
                f"{function} takes no call here. Expected {wanted}; one that looks like a call is put in "
                "quotation marks.",
            )
        found = self._argument(bracket, function, (CLOSE,))
        if not found.text.strip():
            raise self._misread(self._at, f"{function} needs a text here. Expected {wanted}.")
        return Words(found.text, self._passed(found))

    def _argument(self, bracket: int, function: Function, ends: tuple[str, ...]) -> Scanned:
        for read in (quoted, angled, plain):
            found = read(self._text, self._at, ends)
            if found is not None:
                return found
        raise self._misread(bracket, _unclosed(function))

    def _passed(self, found: Scanned) -> Span:
        self._at = found.end
        return Span(found.start, found.end)

    def _closed(self, function: Function, start: int, bracket: int) -> Span:
        mark = self._next()
        if not mark:
            raise self._misread(bracket, _unclosed(function))
        if mark != CLOSE:
            raise self._misread(self._at, f"{function} takes no more than this. Expected {CLOSE} to close it.")
        self._at += 1
        return Span(start, self._at)


def _unclosed(function: Function) -> str:
    return f"This bracket of {function} is never closed. Expected {CLOSE} behind its last argument."


def _no_call(name: str, following: str) -> str:
    function = FUNCTIONS.get(name.lower())
    if function is not None and following == "(":
        return f"The arguments of {function} stand in square brackets. Expected {OPEN} behind the name."
    if function is not None:
        return f"Expected {OPEN} and the arguments behind {function}."
    return f"Expected a call here, such as {_SHAPES}."


def _no_function(name: str) -> str:
    close = closest(name[:_SHOWN].lower(), FUNCTIONS, limit=1)
    meant = f" Did you mean {FUNCTIONS[close[0]]}?" if close else ""
    known = ", ".join(dict.fromkeys(FUNCTIONS.values()))
    return f"There is no function {in_quotes(name, _SHOWN)}.{meant} The functions are {known}."
