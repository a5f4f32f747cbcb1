"""How the members of a set fall into groups, and what the values of each group come to, over an index."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kg_adapters.algebra import DatePart, HopPath, NumberOf, TotalOf, counts_values
from kg_adapters.index.columns import Floats, spread
from kg_adapters.index.graph_index import Longs
from kg_adapters.index.sets.members import SetMembers, totalled
from kg_adapters.index.sets.walks import PathEnds, distinct, distinct_pairs
from kg_adapters.models import Count
from kg_adapters.profile import kind_of
from kg_adapters.set_requests import Grouped, Untotalled
from kg_adapters.terms import Literal, literal_key
from kg_adapters.values import date_up_to


@dataclass(frozen=True, slots=True)
class Memberships:
    """Which members are in which groups, as different pairs.

    Args:
        size: How many members there are.
        ends: What leads to the groups.
        places: The member of each pair, as a place in the set.
        codes: The group of each pair: a node, or behind all nodes a place in `values`.
        values: The values that are groups.
        examples: For each of them a value that is in the graph.
    """

    size: int
    ends: PathEnds
    places: Longs
    codes: Longs
    values: Sequence[Literal]
    examples: Sequence[Literal]


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """What the groups that have a total come to.

    Args:
        codes: These groups, in their order.
        totals: What each comes to.
        sizes: Over how many values.
        starts: Where the values of each begin in `orders` and `rows`; they end where those of the next begin.
        orders: What orders the values.
        rows: Where they are, or -1.
        members: How many members in a group have a value.
        partly: How many of these have other values besides.
        left_out: What has none.
    """

    codes: Longs
    totals: Floats
    sizes: Longs
    starts: Longs
    orders: Floats
    rows: Longs
    members: int
    partly: int
    left_out: Untotalled


def memberships(sets: SetMembers, asked: Grouped) -> Memberships:
    """Return which members of a set are in which groups."""
    nodes = sets.nodes(asked.of)
    ends = sets.walks.ends(nodes, asked.by)
    ranked = sets.values.ranked(ends.rows)
    found = list(map(sets.values.literal, ranked.rows.tolist()))
    width = len(sets.walks.index.nodes)
    if asked.part is None:
        places, ranks = distinct_pairs(ends.value_places, ranked.ranks)
        places, codes = np.append(ends.places, places), np.append(ends.nodes, ranks + width)
        return Memberships(len(nodes), ends, places, codes, found, found)
    group_of, values, examples = _by_part(found, asked.part)
    groups = group_of[ranked.ranks]
    places, groups = distinct_pairs(ends.value_places[groups >= 0], groups[groups >= 0])
    return Memberships(len(nodes), ends, places, groups + width, values, examples)


def _by_part(found: Sequence[Literal], part: DatePart) -> tuple[Longs, Sequence[Literal], Sequence[Literal]]:
    """Return the place of the group of each value (-1 where it is no date), the groups, and an example of each."""
    parts = [date_up_to(value.value, part) if kind_of(value.datatype) == "date" else None for value in found]
    examples = {part: value for part, value in zip(parts, found, strict=True) if part is not None}
    ordered = sorted(examples, key=literal_key)
    places = {part: place for place, part in enumerate(ordered)}
    group_of = [-1 if part is None else places[part] for part in parts]
    return np.array(group_of, dtype=np.int64), ordered, [examples[part] for part in ordered]


def totals_of(sets: SetMembers, asked: Grouped, total: NumberOf | TotalOf, inside: Memberships) -> GroupTotals:
    """Return what the values of the members of each group come to."""
    nodes = sets.nodes(asked.of)
    ends = sets.walks.ends(nodes, total.path)
    if isinstance(total, TotalOf):
        places, orders, rows = sets.added_up(nodes, total)
        function = total.function
    else:
        places, rows = _counted(sets, ends, total.path)
        orders, function = np.zeros(len(places)), "count"
    by_place = np.argsort(places, kind="stable")
    starts, stops = (np.searchsorted(places[by_place], inside.places, side=side) for side in ("left", "right"))
    sets.require_room(int((stops - starts).sum()))
    positions, pair_of = spread(starts, stops)
    codes, chosen = inside.codes[pair_of], by_place[positions]
    if isinstance(total, NumberOf):
        codes, _ = distinct_pairs(codes, rows[chosen])
        orders, rows, chosen = np.zeros(len(codes)), np.full(len(codes), -1), np.arange(len(codes))
    by_code = np.argsort(codes, kind="stable")
    codes, orders, rows = codes[by_code], orders[chosen[by_code]], rows[chosen[by_code]]
    found, totals, sizes = totalled(codes, orders, function)
    members, grouped = distinct(inside.places[stops > starts]), distinct(inside.places)
    unfit, partly = sets.unfit(nodes[grouped], total, np.searchsorted(grouped, members))
    groups = len(distinct(inside.codes)) - len(found)
    left = Untotalled(Count(groups), Count(len(grouped) - len(members)), Count(unfit))
    order = np.lexsort((found, totals if asked.lowest else -totals))
    starts = np.searchsorted(codes, found)
    return GroupTotals(
        found[order], totals[order], sizes[order], starts[order], orders, rows, len(members), partly, left
    )


def _counted(sets: SetMembers, ends: PathEnds, path: HopPath) -> tuple[Longs, Longs]:
    """Return the pairs of a place and an end, a node or behind all nodes a value, that `NumberOf` counts."""
    if not counts_values(path):
        return ends.places, ends.nodes
    ranked = sets.values.ranked(ends.rows)
    values = ranked.ranks + len(sets.walks.index.nodes)
    return np.append(ends.places, ends.value_places), np.append(ends.nodes, values)
