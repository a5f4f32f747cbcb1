"""The names of a graph: every folded label and alias with those who bear it, and the search among them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

import numpy as np

from kg_adapters.folding import bare_words, fold
from kg_adapters.index.graph_index import (
    Bytes,
    GraphIndex,
    Ints,
    Longs,
    StringTable,
    bare_relations,
    edges_by_relation,
    local_name,
    name_rows,
    nodes_called,
    uses_of_relations,
    written,
)
from kg_adapters.index.storage import IndexStorage, sorted_and_placed
from kg_adapters.labels import Vocabulary
from kg_adapters.local.array_files import ArrayFiles, open_tables
from kg_adapters.local.names.fuzzy import FuzzyNames, build_fuzzy_names
from kg_adapters.models import Candidate, Match
from kg_adapters.name_index import LEAST, Floats, RelationIndex, RelationName, likeness
from kg_adapters.prefixes import Prefixes
from kg_adapters.terms import Iri, Node


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


def name_nodes(index: GraphIndex, vocabulary: Vocabulary, storage: IndexStorage) -> NameTable:
    """Write the names of all entities; relations that no edge is about are left out.

    An IRI without label and alias is found by its local part, as this is what people are shown.
    """
    rows, owners, aliases = name_rows(index, vocabulary)
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


def name_relations(index: GraphIndex, vocabulary: Vocabulary, storage: IndexStorage) -> NameTable:
    """Write the names of all relations: labels, aliases, and the local part as one more alias."""
    rows, owners, aliases = name_rows(index, vocabulary)
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


def _local_parts(table: StringTable, ids: Ints) -> Iterator[str]:
    return map(local_name, written(table, ids.astype(np.int64)))


def _chain(*parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        yield from part


def _table(storage: IndexStorage, kind: str, entries: _Entries, weights: Longs) -> NameTable:
    names, name = sorted_and_placed(storage, map(fold, entries.texts), storage.strings(f"{kind}.names"))
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


FOLDER: Final = "text"
_FUZZY: Final = "fuzzy"
_CANDIDATES: Final = 100
# A filter throws most candidates away, so there must be more of them.
_FILTERED_CANDIDATES: Final = 400
_MAX_CANDIDATES: Final = 1_000
_MAX_BEARERS: Final = 2_000
_MOST_CONNECTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class NameHit:
    """A node id that a text may name; `score` from 0 to 1, and the name as it is written."""

    bearer: int
    score: float
    matched_by: Match
    matched_text: str

    def candidate(self, entity: Node) -> Candidate:
        """Return it as what is said of the entity with this id."""
        return Candidate(entity, self.score, self.matched_by, self.matched_text)


def build_text_index(folder: Path, index: GraphIndex, vocabulary: Vocabulary) -> None:
    """Write the text index of a graph into a new folder `text` of its store."""
    target = folder / FOLDER
    (target / _FUZZY).mkdir(parents=True)
    with (
        TemporaryDirectory(prefix="scratch-", dir=folder) as scratch,
        IndexStorage(target, Path(scratch)) as storage,
    ):
        nodes = name_nodes(index, vocabulary, storage)
        name_relations(index, vocabulary, storage)
    build_fuzzy_names(written(nodes.names), target / _FUZZY)


class TextIndex:
    """Finds the entities and the relations of one graph by name."""

    def __init__(
        self, index: GraphIndex, nodes: NameTable, relations: NameTable, fuzzy: FuzzyNames, files: ArrayFiles
    ) -> None:
        self._index = index
        self._files = files
        self._nodes = nodes
        self._relations = relations
        self._fuzzy = fuzzy

    @classmethod
    def open(cls, folder: Path, index: GraphIndex, files: ArrayFiles | None = None) -> "TextIndex":
        """Open the text index in a store's folder, beside the index that it was built from.

        Args:
            folder: The store.
            index: Its index.
            files: The files of the text index; those in the folder, whatever they were when sealed, when None.

        Raises:
            OSError: A file is missing.
            Damage: A file is not what it should be.
        """
        files = files or ArrayFiles(folder, FOLDER)
        nodes, relations = (open_tables(NameTable, files, f"{kind}.") for kind in ("nodes", "relations"))
        fuzzy = folder / FOLDER / _FUZZY
        for path in sorted(fuzzy.iterdir()):
            if not path.name.endswith(".lock"):
                files.verify(f"{_FUZZY}/{path.name}")
        return cls(index, nodes, relations, FuzzyNames(fuzzy), files)

    def checked(self) -> Self:
        """Return the same, after a look whether its files were written to.

        Raises:
            Damage: One is not what the import wrote any more.
        """
        self._files.watch()
        return self

    def search(
        self,
        text: str,
        *,
        limit: int,
        accept: Callable[[int], bool] | None = None,
        prefixes: Prefixes | None = None,
    ) -> list[NameHit]:
        """Return the entities that a text may name, best first, each once; only those that `accept` allows.

        Exact names come first, labels before aliases before the local parts of IRIs, and the better connected entities
        before others; but the local part that is the text itself comes first of all. Any string is welcome; of a long
        one the beginning counts.

        Args:
            text: The name.
            limit: The most entities.
            accept: Whether an entity, by its id, counts.
            prefixes: The namespaces in which the text may also be the local part of an IRI that has another name.
        """
        folded = fold(text)
        if not folded or limit < 1:
            return []
        search = _Search(self._nodes, self._index.links.starts, limit, accept)
        search.take_exact(folded)
        ids: list[NameHit] = []
        if prefixes is not None:
            called = nodes_called(self._index, prefixes, text, begun=not search.found)
            taken = {int(self._nodes.bearers[place]) for place, *_ in search.found}
            kept = [number for number in called if number not in taken and (accept is None or accept(number))][:limit]
            ids = [NameHit(number, 1.0, "id", text.strip()) for number in kept]
        search.take_local(folded, [hit.bearer for hit in ids])
        if not search.full:
            wanted = _CANDIDATES if accept is None else _FILTERED_CANDIDATES
            similar = self._fuzzy.find(folded, max(wanted, min(2 * limit, _MAX_CANDIDATES)))
            search.take_similar(folded, similar)
        return [*ids, *(self._hit(*found) for found in search.found)][:limit]

    @cached_property
    def relations(self) -> RelationIndex:
        """The names of the relations, those of the most used ones first."""
        return RelationIndex(self._relation_names())

    def _relation_names(self) -> Iterator[RelationName]:
        table, keys = self._relations, self._index.relations
        order = np.lexsort((table.bearers, -uses_of_relations(self._index)[table.bearers]))
        for place in order.tolist():
            relation, alias = Iri(keys[int(table.bearers[place])]), bool(table.aliases[place])
            yield RelationName(relation, self._written(table, keys, place), alias)

    def _hit(self, place: int, score: float, exact: bool) -> NameHit:
        table = self._nodes
        matched_by: Match = "text"
        if exact:
            matched_by = "id" if table.rows[place] < 0 else "alias" if table.aliases[place] else "label"
        return NameHit(int(table.bearers[place]), score, matched_by, self._written(table, self._index.nodes, place))

    def _written(self, table: NameTable, keys: StringTable, place: int) -> str:
        """Return a name as it stands in the graph."""
        row = int(table.rows[place])
        return local_name(keys[int(table.bearers[place])]) if row < 0 else self._index.features.values[row]


class _Search:
    """Collects the bearers of names as (place in the table, score, exact), best first, each bearer once."""

    def __init__(self, table: NameTable, links: Longs, limit: int, accept: Callable[[int], bool] | None) -> None:
        self.found: list[tuple[int, float, bool]] = []
        self._table = table
        self._links = links
        self._limit = limit
        self._accept = accept
        self._seen: set[int] = set()
        self._left = _MAX_BEARERS

    @property
    def full(self) -> bool:
        return len(self.found) >= self._limit or self._left <= 0

    def take_exact(self, folded: str) -> None:
        """Collect those whose label or alias is exactly this name."""
        name = self._table.names.find(folded)
        if name is not None:
            self._take(name, 1.0, exact=True, local=False)

    def take_local(self, folded: str, taken: Sequence[int]) -> None:
        """Collect those without a name whose local part it is, but for those that are taken already."""
        self._seen.update(taken)
        self._limit -= len(taken)
        name = self._table.names.find(folded)
        if name is not None:
            self._take(name, 1.0, exact=True)

    def take_similar(self, folded: str, numbers: Sequence[int]) -> None:
        """Collect those whose name is like this one, from the names of these numbers."""
        texts = [self._table.names[number] for number in numbers]
        firsts = self._table.bearers[self._table.starts[np.asarray(numbers, dtype=np.int64)]]
        scores = _similarity(folded, texts, self._links[firsts + 1] - self._links[firsts])
        order: list[int] = np.argsort(-scores, kind="stable").tolist()
        for place in order:
            if self.full or scores[place] < LEAST:
                return
            self._take(numbers[place], float(scores[place]), exact=False)

    def _take(self, name: int, score: float, *, exact: bool, local: bool = True) -> None:
        for place in range(int(self._table.starts[name]), int(self._table.starts[name + 1])):
            if self.full:
                return
            if not local and self._table.rows[place] < 0:
                continue
            self._left -= 1
            bearer = int(self._table.bearers[place])
            if bearer not in self._seen and (self._accept is None or self._accept(bearer)):
                self._seen.add(bearer)
                self.found.append((place, score, exact))


def _similarity(folded: str, names: Sequence[str], neighbors: Longs) -> Floats:
    """Return how alike each name is, from 0 to 1, given the neighbours of its bearers; shape [number of names]."""
    connected = np.minimum(np.log1p(neighbors) / np.log1p(_MOST_CONNECTED), 1).astype(np.float32)
    return likeness(bare_words(folded), [bare_words(name) for name in names], connected)
