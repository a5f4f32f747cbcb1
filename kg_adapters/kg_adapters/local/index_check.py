"""What must hold of the numbers in a store, whatever its graph: what breaks it cannot be answered from."""

import codecs
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import numpy.typing as npt

from kg_adapters.index.graph_index import (
    Bytes,
    Damage,
    EdgeTable,
    FeatureTable,
    GraphIndex,
    Ints,
    LinkTable,
    ListTable,
    Longs,
    StringTable,
)

if TYPE_CHECKING:
    from kg_adapters.local.names.search import NameTable


Number = TypeVar("Number", bound=np.generic)
_AT_ONCE: Final = 1 << 18


def check_index(index: GraphIndex) -> None:
    """Make sure that every offset and id of an index points at something; takes 5 ms for 200,000 statements.

    Raises:
        Damage: One does not; the message begins with its file.
    """
    _strings("index/nodes", index.nodes)
    _strings("index/relations", index.relations)
    _strings("index/datatypes", index.datatypes)
    _strings("index/languages", index.languages)
    nodes, relations, features = len(index.nodes), len(index.relations), len(index.features.relations)
    for name, edges in (("out", index.out), ("into", index.into)):
        _edges(f"index/{name}", edges, nodes, relations)
    _require(len(index.out.neighbors) == len(index.into.neighbors), "index/into.neighbors.npy", "has another length")
    _lists("index/lists", index.lists, index.out)
    for name, links in (("links", index.links), ("walks", index.walks)):
        _links(f"index/{name}", links, nodes)
    _features("index/features", index, nodes, relations)
    _ids("index/relation_nodes.npy", index.relation_nodes, relations, -1, nodes)
    for name, rows in (("labels", index.labels), ("descriptions", index.descriptions)):
        _ids(f"index/{name}.npy", rows, nodes, -1, features)


def check_names(kind: str, table: "NameTable", bearers: int, features: int) -> None:
    """Make sure that every offset and id of a table of names points at something.

    Args:
        kind: What its files begin with.
        table: The names.
        bearers: How many things there are that may bear one.
        features: How many feature rows there are.

    Raises:
        Damage: One does not; the message begins with its file.
    """
    start, count = f"text/{kind}", len(table.bearers)
    _strings(start, table.names)
    _starts(f"{start}.starts.npy", table.starts, len(table.names), count)
    # A name of nobody's may only be the empty one, which is the first.
    _require(_ascends(table.starts[1:], np.less), f"{start}.starts.npy", "has a name that no entity bears")
    _ids(f"{start}.bearers.npy", table.bearers, count, 0, bearers)
    _ids(f"{start}.rows.npy", table.rows, count, -1, features)
    _ids(f"{start}.aliases.npy", table.aliases, count, 0, 2)


def _strings(start: str, table: StringTable) -> None:
    path = f"{start}.offsets.npy"
    _require(len(table.offsets) > 0, path, "is empty")
    _starts(path, table.offsets, len(table.offsets) - 1, len(table.text))
    for starts in _parts(table.offsets[:-1]):
        # A byte inside a character has the bits 10 in front.
        firsts = table.text[starts[starts < len(table.text)]]
        _require(bool(((firsts & 0xC0) != 0x80).all()), path, "points into the middle of a character")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for part in _parts(table.text):
            decoder.decode(part.tobytes())
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise Damage(f"{start}.text.npy holds text that is not UTF-8") from error


def _edges(start: str, table: EdgeTable, nodes: int, relations: int) -> None:
    groups = len(table.relations)
    _starts(f"{start}.groups.npy", table.groups, nodes, groups)
    _ids(f"{start}.relations.npy", table.relations, groups, 0, relations)
    _rising(f"{start}.relations.npy", table.relations, table.groups)
    _starts(f"{start}.starts.npy", table.starts, groups, len(table.neighbors))
    _require(_ascends(table.starts, np.less), f"{start}.starts.npy", "has a group of nothing")
    _ids(f"{start}.neighbors.npy", table.neighbors, len(table.neighbors), 0, nodes)
    _rising(f"{start}.neighbors.npy", table.neighbors, table.starts)


def _lists(start: str, table: ListTable, out: EdgeTable) -> None:
    """Require that each order takes in every neighbour of its group once."""
    groups, path = table.groups, f"{start}.groups.npy"
    _ids(path, groups, len(groups), 0, len(out.relations))
    _require(bool((groups[1:] > groups[:-1]).all()), path, "is not sorted")
    _starts(f"{start}.starts.npy", table.starts, len(groups), len(table.places))
    lengths = np.diff(table.starts)
    _require(bool((lengths == out.starts[groups + 1] - out.starts[groups]).all()), path, "does not fit its groups")
    owners = np.repeat(np.arange(len(groups)), lengths)
    order = np.lexsort((table.places, owners))
    expected = np.arange(len(order)) - table.starts[owners]
    _require(bool((table.places[order] == expected).all()), f"{start}.places.npy", "leaves something out")


def _links(start: str, table: LinkTable, nodes: int) -> None:
    count = len(table.neighbors)
    _starts(f"{start}.starts.npy", table.starts, nodes, count)
    _ids(f"{start}.neighbors.npy", table.neighbors, count, 0, nodes)
    _rising(f"{start}.neighbors.npy", table.neighbors, table.starts)
    _ids(f"{start}.edges.npy", table.edges, count, 1, np.iinfo(np.int32).max)


def _features(start: str, index: GraphIndex, nodes: int, relations: int) -> None:
    table: FeatureTable = index.features
    count = len(table.relations)
    _starts(f"{start}.starts.npy", table.starts, nodes, count)
    _ids(f"{start}.relations.npy", table.relations, count, 0, relations)
    _strings(f"{start}.values", table.values)
    _require(len(table.values) == count, f"{start}.values.offsets.npy", "has another length")
    _ids(f"{start}.datatypes.npy", table.datatypes, count, 0, len(index.datatypes))
    _ids(f"{start}.languages.npy", table.languages, count, -1, len(index.languages))


def _starts(path: str, starts: Longs, rows: int, end: int) -> None:
    _require(len(starts) == rows + 1, path, "has another length")
    _require(int(starts[0]) == 0 and int(starts[-1]) == end, path, "does not begin and end where it should")
    _require(_ascends(starts, np.less_equal), path, "does not ascend")


def _ids(path: str, ids: Ints | Longs | Bytes, count: int, least: int, end: int) -> None:
    _require(len(ids) == count, path, "has another length")
    if count:
        _require(least <= int(ids.min()) and int(ids.max()) < end, path, "holds a number that refers to nothing")


def _rising(path: str, values: Ints, starts: Longs) -> None:
    """Require that the values of each row are sorted and distinct."""
    for first in range(0, len(values) - 1, _AT_ONCE):
        part = values[first : first + _AT_ONCE + 1]
        rising = part[1:] > part[:-1]
        begin, end = np.searchsorted(starts, (first + 1, first + len(part)))
        rising[starts[begin:end] - first - 1] = True
        _require(bool(rising.all()), path, "is not sorted")


def _ascends(numbers: Longs, in_order: Callable[[Longs, Longs], npt.NDArray[np.bool_]]) -> bool:
    """Say whether each number and the next one are in order; a part overlaps the next one by a number."""
    parts = (numbers[first : first + _AT_ONCE + 1] for first in range(0, max(0, len(numbers) - 1), _AT_ONCE))
    return all(bool(in_order(part[:-1], part[1:]).all()) for part in parts)


def _parts(numbers: npt.NDArray[Number]) -> Iterator[npt.NDArray[Number]]:
    for first in range(0, len(numbers), _AT_ONCE):
        yield numbers[first : first + _AT_ONCE]


def _require(claim: bool, path: str, problem: str) -> None:
    if not claim:
        raise Damage(f"{path} {problem}")
