"""The frontiers of a path search: what lies one and two steps from an end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.local.index import Ints, LinkTable, Longs

Flags: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Fan:
    """The nodes one step from an end, sorted, and how many triples lead to each."""

    end: int
    nodes: Ints
    edges: Longs

    def only(self, kept: Flags) -> "Fan":
        """Return the part of it that a mask keeps."""
        return Fan(self.end, self.nodes[kept], self.edges[kept])


@dataclass(frozen=True, slots=True)
class Steps:
    """Pairs of neighbours: `near[i]` is one step from the end, `far[i]` two; `ways[i]` choices of triples lead there.

    They are sorted by `near`, then by `far`.
    """

    near: Ints
    far: Ints
    ways: Longs

    def only(self, kept: Flags | Places) -> "Steps":
        """Return the part of them that a mask or places choose."""
        return Steps(self.near[kept], self.far[kept], self.ways[kept])


def fan_of(table: LinkTable, end: int, other_end: int) -> Fan:
    """Return the nodes around one end; the other end is not among them."""
    row = slice(int(table.starts[end]), int(table.starts[end + 1]))
    fan = Fan(end, table.neighbors[row], table.edges[row].astype(np.int64))
    return fan.only(fan.nodes != other_end)


def steps_of(table: LinkTable, fan: Fan, wanted: Ints | None, size: int) -> Steps:
    """Return the steps beyond a fan.

    Args:
        table: Who is next to whom.
        fan: Where the steps begin.
        wanted: Only the steps that reach one of these nodes, sorted; None for all.
        size: The number of nodes in the graph.
    """
    owners, places = spread(table.starts[fan.nodes], table.starts[fan.nodes + 1])
    if wanted is not None:
        hits, _ = matches(wanted, table.neighbors[places], size)
        owners, places = owners[hits], places[hits]
    return Steps(fan.nodes[owners], table.neighbors[places], fan.edges[owners] * table.edges[places])


def chained(parts: Sequence[Steps]) -> Steps:
    """Return the steps of all parts, one behind the other."""
    if not parts:
        return Steps(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))
    return Steps(
        np.concatenate([part.near for part in parts]),
        np.concatenate([part.far for part in parts]),
        np.concatenate([part.ways for part in parts]),
    )


def spread(starts: Longs | Places, ends: Longs | Places) -> tuple[Places, Places]:
    """Return every place of the ranges from `starts` to `ends`, each behind the number of its range."""
    lengths = ends - starts
    owners = np.repeat(np.arange(len(lengths)), lengths)
    offsets = np.cumsum(lengths) - lengths - starts
    return owners, np.arange(len(owners)) - offsets[owners]


def matches(values: Ints, wanted: Ints, size: int) -> tuple[Places, Places]:
    """Return which of `wanted` are among `values`, and where.

    Args:
        values: Node ids, sorted and distinct.
        wanted: Node ids in any order.
        size: The number of nodes in the graph.
    """
    if len(values) == 0:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    hits = np.arange(len(wanted))
    # Marking every node of the graph pays only where there is much to look up.
    if len(wanted) * 8 > size:
        marks = np.zeros(size, dtype=np.bool_)
        marks[values] = True
        hits = np.flatnonzero(marks[wanted])
    places = np.minimum(np.searchsorted(values, wanted[hits]), len(values) - 1)
    found = values[places] == wanted[hits]
    return hits[found], places[found]
