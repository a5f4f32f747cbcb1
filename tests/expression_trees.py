"""Trees of expressions, built by hand; where their parts would stand in a text does not count."""

from collections.abc import Collection

from kg_server.compose.parser import ALL, MAX_CALLS, MAX_DEPTH, parse_parts
from kg_server.compose.syntax import Call, EntityRef, Function, Leg, Mark, Operand, RefusedPart, Route, Span, Words

NOWHERE = Span(0, 0)


def parse(
    text: str, *, max_depth: int = MAX_DEPTH, max_calls: int = MAX_CALLS, functions: Collection[Function] = ALL
) -> tuple[Call, ...]:
    """Return the calls of an expression, or raise why one of them cannot be read."""
    calls: list[Call] = []
    for part in parse_parts(text, max_depth=max_depth, max_calls=max_calls, functions=functions):
        if isinstance(part, RefusedPart):
            raise part.reason
        calls.append(part)
    return tuple(calls)


def words(text: str) -> Words:
    return Words(text, NOWHERE)


def entity(text: str) -> EntityRef:
    return EntityRef(text, NOWHERE)


def retrieve(text: str) -> Call:
    return Call("Retrieve", NOWHERE, words=words(text))


def route(text: str, mark: Mark = "") -> Route:
    return Route((Leg(words(text), mark),), NOWHERE)


def call(function: Function, *operands: Operand | str, by: Route | str | None = None, n: int = 1) -> Call:
    """Return a call of operands, of which a text is an id, and of one relation."""
    nodes = tuple(entity(each) if isinstance(each, str) else each for each in operands)
    routes = () if by is None else (route(by) if isinstance(by, str) else by,)
    return Call(function, NOWHERE, nodes, routes, n=n)
