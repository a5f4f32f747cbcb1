"""The ways of the gold queries, which the oracle goes with Graph-CoT: one function of one node at a time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.world.one_call import Calls
from kg_eval.metrics.values import fold
from kg_server.compose.parser import parse
from kg_server.compose.syntax import (
    BestCall,
    CountCall,
    EntityRef,
    FeatureCall,
    GroupCall,
    NeighborCall,
    Operand,
    Route,
    SetCall,
    TotalCall,
    TypeCall,
    WhereCall,
    Words,
)

MOST_AGAIN: Final = 6
"""How often a relation is walked that leads on and on."""

_EDGE: Final = re.compile(r'@"(?P<name>[^"]*)" @"(?P<relation>[^"]*)"(?P<again>\+)?')
_BETWEEN: Final = re.compile(r'@"(?P<name>[^"]*)" \?x @"(?P<end>[^"]*)"')
_NODE: Final = re.compile(r"\bw:[ES]\d+\b|_:\w+")
_ALIAS: Final = re.compile(r"is an alias of .*?\(\S+\)")
_START: Final = re.compile(r"^(.+) \((\S+)\)$", re.MULTILINE)
_NEIGHBOR: Final = "Neighbor"
_FEATURE: Final = "Feature"


@dataclass(frozen=True, slots=True)
class Way:
    """One step of a query: a function from an entity, or from all that was reached.

    Args:
        start: The entity by name; empty where the step goes on from what was reached.
        function: The function; empty where nothing is asked of the entity yet.
        relation: The relation by name, with a minus where it is walked backwards; empty for all that is around.
        end: The other entity, where the question is what links the two.
        aside: Whether it only tells which of what was reached counts, and leads nowhere.
    """

    start: str = ""
    function: str = ""
    relation: str = ""
    end: str = ""
    aside: bool = False

    @property
    def plain(self) -> str:
        """The relation by name alone."""
        return self.relation.removeprefix("-")


def ways_of(calls: Calls) -> tuple[Way, ...]:
    """Return the steps of the call that answers a question, in the order in which it is worked out."""
    if calls.compose is not None:
        (call,) = parse(calls.compose)
        if isinstance(call, WhereCall) and isinstance(call.node, EntityRef):
            return tuple(dict.fromkeys(_told(call)))
        return tuple(dict.fromkeys(_ways(call)))
    if (between := _BETWEEN.search(calls.sparql)) is not None:
        return (Way(between["name"], _NEIGHBOR, end=between["end"]),)
    edge = _EDGE.search(calls.sparql)
    assert edge is not None, calls.sparql
    again = [Way("", _NEIGHBOR, edge["relation"])] * (MOST_AGAIN if edge["again"] else 0)
    return (Way(edge["name"], _NEIGHBOR, edge["relation"]), *again)


def _ways(of: Operand) -> list[Way]:  # noqa: PLR0911 - one for each kind of operand
    match of:
        case EntityRef():
            return [Way(of.text)]
        case NeighborCall() | GroupCall():
            return _along(_ways(of.node), _NEIGHBOR, of.route)
        case FeatureCall() | BestCall() | TotalCall():
            return _along(_ways(of.node), _FEATURE, of.route)
        case WhereCall(node=EntityRef()):
            return _ways(of.node)
        case WhereCall():
            members = _members(of) if isinstance(of.node, TypeCall) else []
            led = {way.plain for way in members}
            asked = [name for name in (clause.route.legs[0].name.text for clause in of.clauses) if name not in led]
            return [*(members or _ways(of.node)), *[Way("", _FEATURE, name, aside=True) for name in asked]]
        case TypeCall():
            return [Way(of.owner.text, _NEIGHBOR, "-rdf:type")]
        case CountCall():
            return _ways(of.of)
        case SetCall():
            counted = of.operands[:1] if of.function == "Minus" else of.operands
            return [way for each in counted if not isinstance(each, TypeCall) for way in _ways(each)]
        case _:
            return []


def _along(ways: Sequence[Way], function: str, route: Route | None) -> list[Way]:
    """Return the ways with those that a route goes on with."""
    relations = [f"{leg.mark}{leg.name.text}" for leg in route.legs] if route else [""]
    first = [way if way.function else replace(way, function=function, relation=relations[0]) for way in ways]
    later = relations if first == [*ways] else relations[1:]
    return [*first, *[Way("", function, relation) for relation in later]]


def _told(call: WhereCall) -> list[Way]:
    """Return the ways to what is compared, where the question is whether something is so."""
    ways = list[Way]()
    for clause in call.clauses:
        named = isinstance(clause.value, Words) and clause.value.quoted
        ways += _along(_ways(call.node), _NEIGHBOR if named else _FEATURE, clause.route)
        if not named and clause.value is not None and not isinstance(clause.value, Words):
            ways += _ways(clause.value)
    return ways


def _members(call: WhereCall) -> list[Way]:
    """Return the way to the members of a class from an entity that they all lead to."""
    for clause in call.clauses:
        if isinstance(clause.value, Words) and clause.value.quoted:
            (leg,) = clause.route.legs
            return [Way(clause.value.text, _NEIGHBOR, leg.name.text if leg.mark == "-" else f"-{leg.name.text}")]
    return []


def next_function(ways: Sequence[Way], given: str, observed: Sequence[str]) -> str | None:
    """Return the function of Graph-CoT that goes on, from one node at a time; None where the way is over.

    Args:
        ways: The steps of the query.
        given: The entities that the prompt begins from, one on each line.
        observed: What the functions so far gave, which were those that this returned.
    """
    begun = [(fold(label), node) for label, node in _START.findall(given)]
    left, reached = list(observed), list[str]()
    for way in (each for each in ways if not each.aside):
        named, found = [node for label, node in begun if label == fold(way.start)], list[str]()
        for start in (named or [f'"{way.start}"']) if way.start else reached:
            if not left:
                return f"{way.function or _FEATURE}[{', '.join(filter(None, (start, way.relation)))}]"
            found += _NODE.findall(_ALIAS.sub("", left.pop(0)))
        reached = list(dict.fromkeys(found)) or reached
    return None
