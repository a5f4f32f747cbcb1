"""The search for names: exactly as folded, then by shared letters and words."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from kg_adapters.index.storage import Storage
from kg_adapters.labels import Vocabulary
from kg_adapters.local.array_files import ArrayFiles
from kg_adapters.local.index import GraphIndex, Longs, StringTable
from kg_adapters.local.index_check import check_names
from kg_adapters.local.names.folding import bare_words, fold
from kg_adapters.local.names.fuzzy import FuzzyNames, build_fuzzy_names
from kg_adapters.local.names.table import (
    NameTable,
    local_name,
    name_nodes,
    name_relations,
    open_names,
    uses_of_relations,
    written,
)
from kg_adapters.local.seal import Damage
from kg_adapters.models import Candidate, Match
from kg_adapters.name_index import LEAST, Floats, RelationIndex, RelationName, likeness
from kg_adapters.terms import Iri, Node

FOLDER: Final = "text"
_FUZZY: Final = "fuzzy"
_CANDIDATES: Final = 100
# A filter throws most candidates away, so there must be more of them.
_FILTERED_CANDIDATES: Final = 400
_MAX_CANDIDATES: Final = 1_000
_MAX_BEARERS: Final = 2_000
_MOST_CONNECTED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Hit:
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
    with TemporaryDirectory(prefix="scratch-", dir=folder) as scratch:
        storage = Storage(target, Path(scratch))
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
        nodes, relations = open_names(files, "nodes"), open_names(files, "relations")
        fuzzy = folder / FOLDER / _FUZZY
        for path in sorted(fuzzy.iterdir()):
            if not path.name.endswith(".lock"):
                files.watch(f"{_FUZZY}/{path.name}")
        files.check()
        check_names("nodes", nodes, len(index.nodes), len(index.features.relations))
        check_names("relations", relations, len(index.relations), len(index.features.relations))
        return cls(index, nodes, relations, FuzzyNames(fuzzy), files)

    def require_whole(self) -> None:
        """Make sure that no file was cut off since it was opened.

        Raises:
            Damage: One was.
        """
        self._files.require_whole()

    def search(self, text: str, *, limit: int, accept: Callable[[int], bool] | None = None) -> list[Hit]:
        """Return the entities that a text may name, best first, each once; only those that `accept` allows.

        Exact names come first, labels before aliases and the better connected entities before others. Any string is
        welcome; of a long one the beginning counts.
        """
        folded = fold(text)
        if not folded or limit < 1:
            return []
        search = _Search(self._nodes, self._index.links.starts, limit, accept)
        search.take_exact(folded)
        if not search.full:
            wanted = _CANDIDATES if accept is None else _FILTERED_CANDIDATES
            similar = self._fuzzy.find(folded, max(wanted, min(2 * limit, _MAX_CANDIDATES)))
            if max(similar, default=0) >= max(len(self._nodes.names), 1):
                raise Damage(f"{FOLDER}/{_FUZZY} holds a name that refers to nothing")
            search.take_similar(folded, similar)
        return [self._hit(*found) for found in search.found]

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

    def _hit(self, place: int, score: float, exact: bool) -> Hit:
        table = self._nodes
        matched_by: Match = "text"
        if exact:
            matched_by = "alias" if table.aliases[place] else "label"
        return Hit(int(table.bearers[place]), score, matched_by, self._written(table, self._index.nodes, place))

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
        """Collect those who bear exactly this name."""
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

    def _take(self, name: int, score: float, *, exact: bool) -> None:
        for place in range(int(self._table.starts[name]), int(self._table.starts[name + 1])):
            if self.full:
                return
            self._left -= 1
            bearer = int(self._table.bearers[place])
            if bearer not in self._seen and (self._accept is None or self._accept(bearer)):
                self._seen.add(bearer)
                self.found.append((place, score, exact))


def _similarity(folded: str, names: Sequence[str], neighbors: Longs) -> Floats:
    """Return how alike each name is, from 0 to 1, given the neighbours of its bearers; shape [number of names]."""
    connected = np.minimum(np.log1p(neighbors) / np.log1p(_MOST_CONNECTED), 1).astype(np.float32)
    return likeness(bare_words(folded), [bare_words(name) for name in names], connected)
