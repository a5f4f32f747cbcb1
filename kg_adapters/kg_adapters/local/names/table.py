"""The table of names: every folded label and alias, sorted, with those who bear it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from kg_adapters.index.columns import parts
from kg_adapters.index.storage import Storage, sorted_and_placed
from kg_adapters.labels import Vocabulary
from kg_adapters.local.array_files import ArrayFiles
from kg_adapters.local.index import Bytes, GraphIndex, Ints, Longs, StringTable
from kg_adapters.local.names.folding import fold
from kg_adapters.terms import BlankNode, Iri, node_from_key

_AT_ONCE: Final = 100_000


@dataclass(frozen=True, slots=True)
class NameTable:
    """Names and their bearers, which are node ids or relation ids.

    Name `i` has the bearers `starts[i]` to `starts[i + 1]`: those whose label it is before those whose alias it is,
    then the better connected first. Array lengths: k names, b bearers.

    Args:
        names: Folded, distinct, sorted by code point; k strings.
        starts: Where the bearers of each name begin; shape [k + 1].
        bearers: Node or relation ids; shape [b].
        rows: The feature row that has the name as it is written, or -1 where it is the local part; shape [b].
        aliases: 1 where the name is an alias; shape [b].
    """

    names: StringTable
    starts: Longs
    bearers: Ints
    rows: Longs
    aliases: Bytes


@dataclass(frozen=True, slots=True)
class _Entries:
    """Names as written, in no order; shape [b] each."""

    texts: Iterable[str]
    bearers: Ints
    rows: Longs
    aliases: Bytes


def name_nodes(index: GraphIndex, vocabulary: Vocabulary, storage: Storage) -> NameTable:
    """Write the names of all entities; relations that no edge is about are left out.

    An IRI without label and alias is found by its local part, as this is what people are shown.
    """
    rows, owners, aliases = _name_rows(index, vocabulary)
    kept = ~bare_relations(index)[owners]
    rows, owners, aliases = rows[kept], owners[kept], aliases[kept]
    nameless = ~bare_relations(index)
    nameless[owners] = False
    unnamed = np.flatnonzero(nameless).astype(np.int32)
    entries = _Entries(
        _chain(written(index.features.values, rows), _local_parts(index.nodes, unnamed)),
        np.concatenate((owners, unnamed)),
        np.concatenate((rows, np.full(len(unnamed), -1, dtype=np.int64))),
        np.concatenate((aliases, np.zeros(len(unnamed), dtype=np.uint8))),
    )
    return _table(storage, "nodes", entries, np.diff(index.links.starts))


def name_relations(index: GraphIndex, vocabulary: Vocabulary, storage: Storage) -> NameTable:
    """Write the names of all relations: labels, aliases, and the local part as one more alias."""
    rows, owners, aliases = _name_rows(index, vocabulary)
    relation_of = np.full(len(index.nodes), -1, dtype=np.int32)
    said = np.flatnonzero(index.relation_nodes >= 0)
    relation_of[index.relation_nodes[said]] = said
    relations = relation_of[owners]
    kept = relations >= 0
    every = np.arange(len(index.relations), dtype=np.int32)
    entries = _Entries(
        _chain(written(index.features.values, rows[kept]), _local_parts(index.relations, every)),
        np.concatenate((relations[kept], every)),
        np.concatenate((rows[kept], np.full(len(every), -1, dtype=np.int64))),
        np.concatenate((aliases[kept], np.ones(len(every), dtype=np.uint8))),
    )
    return _table(storage, "relations", entries, edges_by_relation(index))


def bare_relations(index: GraphIndex) -> npt.NDArray[np.bool_]:
    """Return which nodes are relations that have at most literals themselves; shape [n]."""
    chosen = np.zeros(len(index.nodes), dtype=np.bool_)
    chosen[index.relation_nodes[index.relation_nodes >= 0]] = True
    edged = (np.diff(index.out.groups) > 0) | (np.diff(index.into.groups) > 0)
    return chosen & ~edged


def edges_by_relation(index: GraphIndex) -> Longs:
    """Return the number of triples of each relation; shape [m]."""
    out, counts = index.out, np.zeros(len(index.relations), dtype=np.int64)
    for part in parts(len(out.relations)):
        sizes = np.diff(out.starts[part.start : part.stop + 1])
        counts += np.bincount(out.relations[part], sizes, minlength=len(counts)).astype(np.int64)
    return counts


def uses_of_relations(index: GraphIndex) -> Longs:
    """Return the number of statements of each relation, to entities and to literals; shape [m]."""
    return edges_by_relation(index) + np.bincount(index.features.relations, minlength=len(index.relations))


def open_names(files: ArrayFiles, kind: str) -> NameTable:
    """Open a table of `nodes` or `relations`.

    Raises:
        OSError: A file is missing.
        Damage: A file is not what it should be.
    """
    return NameTable(
        StringTable(files.array(f"{kind}.offsets.npy", np.int64), files.array(f"{kind}.text.npy", np.uint8)),
        starts=files.array(f"{kind}.starts.npy", np.int64),
        bearers=files.array(f"{kind}.bearers.npy", np.int32),
        rows=files.array(f"{kind}.rows.npy", np.int64),
        aliases=files.array(f"{kind}.aliases.npy", np.uint8),
    )


def written(table: StringTable, rows: Longs | None = None) -> Iterator[str]:
    """Yield many strings of a table, faster than one by one; all of them where no rows are given."""
    view = table.text.data
    for first in range(0, len(table if rows is None else rows), _AT_ONCE):
        some = np.arange(first, min(first + _AT_ONCE, len(table))) if rows is None else rows[first : first + _AT_ONCE]
        starts: list[int] = table.offsets[some].tolist()
        ends: list[int] = table.offsets[some + 1].tolist()
        for start, end in zip(starts, ends, strict=True):
            yield str(view[start:end], "utf-8")


def local_name(key: str) -> str:
    """Return the local part of a node's key as people would write it; empty for a blank node."""
    node = node_from_key(key)
    return "" if isinstance(node, BlankNode) else unquote(node.local_part).replace("_", " ")


def _name_rows(index: GraphIndex, vocabulary: Vocabulary) -> tuple[Longs, Ints, Bytes]:
    labels, aliases = _ids(index, vocabulary.labels), _ids(index, vocabulary.aliases)
    rows = np.flatnonzero(np.isin(index.features.relations, [*labels, *aliases])).astype(np.int64)
    owners = np.repeat(np.arange(len(index.nodes), dtype=np.int32), np.diff(index.features.starts))[rows]
    return rows, owners, (~np.isin(index.features.relations[rows], labels)).astype(np.uint8)


def _ids(index: GraphIndex, relations: Sequence[Iri]) -> list[int]:
    found = (index.relations.find(relation.value) for relation in relations)
    return [number for number in found if number is not None]


def _local_parts(table: StringTable, ids: Ints) -> Iterator[str]:
    return map(local_name, written(table, ids.astype(np.int64)))


def _chain(*parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        yield from part


def _table(storage: Storage, kind: str, entries: _Entries, weights: Longs) -> NameTable:
    names, name = sorted_and_placed(storage, map(fold, entries.texts), storage.strings(kind))
    # An empty name can be sorted first only; nobody can ask for it.
    kept = np.flatnonzero(name > 0) if len(names) and names[0] == "" else np.arange(len(name))
    name = name[kept]
    bearer, row, alias = entries.bearers[kept], entries.rows[kept], entries.aliases[kept]
    order = np.lexsort((row, alias, bearer, name))
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (np.diff(name[order]) != 0) | (np.diff(bearer[order]) != 0)
    order = order[fresh]
    order = order[np.lexsort((bearer[order], -weights[bearer[order]], alias[order], name[order]))]
    starts = np.searchsorted(name[order], np.arange(len(names) + 1)).astype(np.int64)
    return NameTable(
        names,
        starts=storage.whole(f"{kind}.starts", starts),
        bearers=storage.whole(f"{kind}.bearers", bearer[order]),
        rows=storage.whole(f"{kind}.rows", row[order]),
        aliases=storage.whole(f"{kind}.aliases", alias[order]),
    )
