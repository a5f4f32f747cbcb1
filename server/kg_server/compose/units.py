"""The units of values that are compared or added up: one for all of them, or a refusal that names them."""

from dataclasses import replace
from typing import Final

from kg_adapters.algebra import Compares, Kept, SetExpression
from kg_adapters.profile import is_unit, kind_of
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Listed, SetRequest
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import XSD, Iri, Literal
from kg_adapters.value_order import unit_of, value_kind
from kg_server.compose.relations import Way
from kg_server.names import names_of
from kg_server.pointing import MisreadExpression

MOST_UNITS: Final = 20
"""How many units are looked for, the most frequent first."""
_BARE: Final = Iri(f"{XSD}double")
_LEAST: Final = "-1.7e308"


async def in_one_unit(graph: KGAdapter, text: str, way: Way, of: SetExpression) -> Way:
    """Return a way whose values are compared, with the unit of those that the members of a set have.

    Args:
        graph: The graph.
        text: The expression, which errors point into.
        way: The way.
        of: The set.

    Raises:
        MisreadExpression: They have several units.
    """
    datatypes = () if way.values is None else way.values.datatypes
    units = [each for each in datatypes if is_unit(each)][:MOST_UNITS]
    if way.values is None or not units or not way.to_values:
        return way
    bare = [_BARE] if "number" in {kind_of(each) for each in datatypes} else []
    found = [each for each in (*units, *bare) if await _has(graph, of, way, each)]
    if not found or found == bare:
        return way
    names = await names_of(graph, found)
    shown = ["no unit" if each == _BARE else names.unit(each) for each in found]
    if len(found) > 1:
        problem = f"{way.name} has values in different units, which are not compared or added up: {', '.join(shown)}."
        raise MisreadExpression(text, way.span.start, f"{problem} Table[…] shows each value with its unit.")
    others = tuple(each for each in datatypes if not is_unit(each))
    return replace(way, unit=found[0], values=replace(way.values, datatypes=(*others, _BARE), unit=shown[0]))


async def require_unit(graph: KGAdapter, text: str, way: Way, given: Literal) -> None:
    """Refuse to compare numbers at the end of a way with one in another unit.

    Raises:
        MisreadExpression: It is in another unit.
    """
    unit = unit_of(given)
    if way.kind != "number" or value_kind(given) != "number" or unit == way.unit:
        return
    names = await names_of(graph, [each for each in (unit, way.unit) if each is not None])
    own, other = ("no unit" if each is None else f"the unit {names.unit(each)}" for each in (way.unit, unit))
    problem = f"{way.name} has {own}, and what it is compared with has {other}; different units are not compared."
    raise MisreadExpression(text, way.span.start, problem)


async def _has(graph: KGAdapter, of: SetExpression, way: Way, datatype: Iri) -> bool:
    """Say whether a member of a set has a number of a datatype, which may be a unit."""
    having = Kept(of, Compares(way.path, ">=", Literal(_LEAST, datatype)))
    return (await compute_sets(graph, SetRequest(Listed(having), limit=0, witnesses=0))).count.value > 0
