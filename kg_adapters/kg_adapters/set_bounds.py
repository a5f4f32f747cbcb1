"""What an answer about sets is worth where only a part of the graph's facts was seen."""

from dataclasses import replace

from kg_adapters.algebra import (
    Best,
    Instances,
    Intersect,
    Kept,
    Linked,
    Members,
    Minus,
    Numbers,
    Reached,
    SetExpression,
    Union,
    Values,
)
from kg_adapters.models import Count
from kg_adapters.set_requests import Aggregated, Computed, Grouped, Listed, SetQuestion, SharedBy, Tabled


def parts_of(of: SetExpression) -> tuple[SetExpression, ...]:
    """Return the sets that a set is directly made of."""
    match of:
        case Members() | Instances():
            return ()
        case Union(sets) | Intersect(sets) | Minus(sets):
            return sets
        case Kept(starts, Linked(to=to)):
            return starts, to
        case Reached() | Values() | Kept() | Best():
            return (of.of,)


def grows(question: SetQuestion) -> bool:
    """Say whether more facts could only make the answer larger."""
    match question:
        case Aggregated():
            return False
        case SharedBy(sets=sets):
            return all(map(_set_grows, sets))
        case Listed(of) | Tabled(of) | Grouped(of):
            return _set_grows(of)


def _set_grows(of: SetExpression) -> bool:
    if isinstance(of, Minus | Best) or (isinstance(of, Kept) and isinstance(of.condition, Numbers)):
        return False
    return all(map(_set_grows, parts_of(of)))


def at_least(computed: Computed) -> Computed:
    """Return an answer whose numbers are lower bounds; how many were left out is not known at all then."""
    return replace(
        computed,
        count=_lower(computed.count),
        without=Count(0, exact=False),
        groups=tuple(replace(group, size=_lower(group.size)) for group in computed.groups),
        rows=tuple(
            replace(row, cells=tuple(replace(cell, count=_lower(cell.count)) for cell in row.cells))
            for row in computed.rows
        ),
    )


def _lower(count: Count) -> Count:
    return Count(count.value, exact=False)
