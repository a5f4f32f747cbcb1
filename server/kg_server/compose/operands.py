"""What a number rests on: how many members it is of, and which, where they are few."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kg_adapters.algebra import Has, Kept, ValueOf
from kg_adapters.protocol import KGAdapter
from kg_adapters.set_requests import Aggregated, Cell, Column, Computed, Ends, Listed, SetRequest, Tabled
from kg_adapters.set_walking import compute_sets
from kg_server.compose.lines import Note
from kg_server.compose.telling import Asked, noun

MOST_NAMED: Final = 5
"""Up to how many members are named."""


async def operands(graph: KGAdapter, asked: Asked, computed: Computed, request: SetRequest) -> tuple[Note, ...]:
    """Return what a count, sum, mean, least or greatest is of; a count of many says that itself."""
    question = asked.question
    if isinstance(question, Aggregated):
        return await _measured(graph, question, computed, request)
    if not isinstance(question, Listed) or not computed.count.exact or not 0 < computed.count.value <= MOST_NAMED:
        return ()
    found = await compute_sets(graph, replace(request, limit=MOST_NAMED, witnesses=0))
    return (_listed("Namely ", [(member,) for member in found.members]),)


async def _measured(
    graph: KGAdapter, question: Aggregated, computed: Computed, request: SetRequest
) -> tuple[Note, ...]:
    number = computed.measured
    if not number.value:
        return ()
    if not number.exact or number.value > MOST_NAMED:
        return ((f"Over {noun(number, 'node')}.",),)
    column: Column = Ends(question.by.path) if isinstance(question.by, ValueOf) else question.by
    asked = Tabled(Kept(question.of, Has(question.by.path)), (column,))
    found = await compute_sets(graph, replace(request, question=asked, limit=MOST_NAMED, witnesses=0))
    return (_listed(f"Over {number}: ", [(row.node, " ", *_value(row.cells[0])) for row in found.rows]),)


def _value(cell: Cell) -> Note:
    """Return the values of a member, or their number where these are counted."""
    if not cell.terms:
        return (str(cell.count),)
    pieces = [piece for term in cell.terms for piece in (" and ", term)]
    return tuple(pieces[1:])


def _listed(begin: str, items: Sequence[Note]) -> Note:
    pieces = [piece for item in items for piece in (", ", *item)]
    return (begin, *pieces[1:], ".")
