"""Trees of expressions, built by hand; where their parts would stand in a text does not count."""

from kg_server.compose.syntax import (
    CountCall,
    DegreeCall,
    EntityRef,
    FeatureCall,
    Leg,
    Mark,
    NeighborCall,
    Operand,
    RetrieveCall,
    Route,
    SetCall,
    SetFunction,
    Span,
    Words,
)

NOWHERE = Span(0, 0)


def words(text: str) -> Words:
    return Words(text, NOWHERE)


def entity(text: str) -> EntityRef:
    return EntityRef(text, NOWHERE)


def retrieve(text: str) -> RetrieveCall:
    return RetrieveCall(words(text), NOWHERE)


def route(text: str, mark: Mark = "") -> Route:
    return Route((Leg(words(text), mark),), NOWHERE)


def feature(node: Operand, text: str) -> FeatureCall:
    return FeatureCall(node, route(text), NOWHERE)


def neighbor(node: Operand, text: str, *, backwards: bool = False) -> NeighborCall:
    return NeighborCall(node, route(text, "-" if backwards else ""), NOWHERE)


def degree(node: Operand, text: str | None = None, *, backwards: bool = False) -> DegreeCall:
    return DegreeCall(node, None if text is None else route(text, "-" if backwards else ""), NOWHERE)


def count(of: Operand) -> CountCall:
    return CountCall(of, NOWHERE)


def combined(function: SetFunction, *operands: Operand) -> SetCall:
    return SetCall(function, operands, NOWHERE)
