"""The number, date or text that a call gives, where a condition compares with it."""

from collections.abc import Sequence
from math import isfinite
from typing import Final

from kg_adapters.algebra import Measure, SetExpression, ValueOf
from kg_adapters.errors import InvalidRequest
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Aggregated, Function, Listed, SetRequest, Witness
from kg_adapters.set_walking import compute_sets
from kg_adapters.terms import XSD, Iri, Literal
from kg_server.compose.filters import Unfit
from kg_server.compose.syntax import TotalFunction

AGGREGATES: Final[dict[TotalFunction, Function]] = {"Sum": "sum", "Mean": "mean", "Min": "min", "Max": "max"}
"""What the graph calls the functions that make one value of many."""

PARTLY: Final = "Not all values of this were fetched, so what to compare with is not known."
BEYOND: Final = "Together these numbers are more than can be computed with, 1.8e308. Min[…] and Max[…] add nothing up."


async def value_in(graph: KGAdapter, of: SetExpression, *, or_none: bool) -> tuple[Literal, Sequence[Witness]] | None:
    """Return the only value of a set, with the facts that state it; of several None, where that is allowed.

    Raises:
        Unfit: It has none, or several.
    """
    found = await compute_sets(graph, SetRequest(Listed(of), limit=2, witnesses=1))
    values = [term for term in found.members if isinstance(term, Literal)]
    if or_none and (found.count.value > 1 or not found.count.exact):
        return None
    if found.count.value > 1:
        raise Unfit(f"This gives {found.count} values, and one is compared with. Min[…] or Max[…] gives one of them.")
    if not found.count.exact:
        raise Unfit(PARTLY)
    if not values:
        raise Unfit("This gives no value, so there is nothing to compare with.")
    return values[0], found.witnesses


async def number_in(graph: KGAdapter, of: SetExpression) -> Literal:
    """Return how many members a set has.

    Raises:
        Unfit: It is not known how many.
    """
    count = (await compute_sets(graph, SetRequest(Listed(of), limit=0, witnesses=0))).count
    if not count.exact:
        raise Unfit(f"This is {count}, and how many exactly is not known.")
    return Literal(str(count.value), Iri(f"{XSD}integer"))


async def total_of(graph: KGAdapter, of: SetExpression, by: Measure, function: TotalFunction) -> Literal:
    """Return a sum, mean, least or greatest value.

    Raises:
        Unfit: No member of the set has a value, or they cannot be added up.
    """
    try:
        question = Aggregated(of, by, AGGREGATES[function])
    except InvalidRequest as error:
        raise Unfit(str(error)) from error
    found = await compute_sets(graph, SetRequest(question, witnesses=0))
    if not found.count.exact:
        raise Unfit(PARTLY)
    value = found.value
    if value is None:
        raise Unfit("None of them has a value, so there is nothing to compare with.")
    if isinstance(value, Literal):
        return value
    if not isfinite(value):
        raise Unfit(BEYOND)
    unit = by.unit if isinstance(by, ValueOf) else None
    return Literal(repr(value), unit or Iri(f"{XSD}double"))
