"""Statements by numbers, collected in bounded memory: in runs with numbers of their own, which become one."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from kg_adapters.files.rows import Row, StatementColumn, tag_of
from kg_adapters.index.graph_index import EdgeTable, GraphIndex, Ints, StringTable, written
from kg_adapters.index.storage import IndexStorage, SortedTexts, TextNumbers, sorted_and_placed

_STATEMENTS_A_TEXT: Final = 8
_CHARACTERS_A_TEXT: Final = 100
_PIECE: Final = 2_000_000
Chosen: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Numbered:
    """Statements by numbers, in any order.

    Args:
        edges: Heads, relations and tails; shape [e] each.
        features: Heads, relations, values, datatypes and languages of literals; shape [f] each.
    """

    edges: tuple[Ints, Ints, Ints]
    features: tuple[Ints, Ints, Ints, Ints, Ints]

    def about(self, heads: Ints) -> tuple[Chosen, Chosen]:
        """Return which edges and features are about some nodes; shapes [e] and [f]."""
        return np.isin(self.edges[0], heads), np.isin(self.features[0], heads)

    def chosen(self, edges: Chosen, features: Chosen) -> "Numbered":
        """Return some of the statements."""
        head, relation, tail = (column[edges] for column in self.edges)
        owner, about, value, datatype, language = (column[features] for column in self.features)
        return Numbered((head, relation, tail), (owner, about, value, datatype, language))


@dataclass(frozen=True, slots=True)
class Collected:
    """All statements.

    Args:
        nodes: Each `node_key`, sorted.
        values: The texts of literals, sorted.
        said: The statements; nodes and values by their places in these tables, the rest in order of appearance.
    """

    nodes: StringTable
    values: StringTable
    said: Numbered


class Statements:
    """Collects statements.

    Args:
        storage: Where runs are kept; they end when there is no more room for texts.

    Attributes:
        relations: The number of each relation.
        datatypes: The number of each datatype.
        languages: The number of each language; -1 is none.
    """

    def __init__(self, storage: IndexStorage) -> None:
        self._storage = storage
        self._nodes = SortedTexts(storage)
        self._values = SortedTexts(storage)
        self.relations = TextNumbers()
        self.datatypes = TextNumbers()
        self.languages = TextNumbers()
        self._runs: list[Numbered] = []
        self._begin()

    def add_edge(self, head: str, relation: str, tail: str) -> None:
        """Add a triple between two nodes, given as `node_key`s and the relation's IRI."""
        heads, relations, tails = self._edges
        heads.append(self._nodes.numbers[head])
        relations.append(self.relations[relation])
        tails.append(self._nodes.numbers[tail])

    def add_feature(self, head: str, relation: str, value: str, datatype: str, language: str | None) -> None:
        """Add a statement about a literal: the head's `node_key`, then IRIs and texts as they are."""
        heads, relations, values, datatypes, languages = self._features
        heads.append(self._nodes.numbers[head])
        relations.append(self.relations[relation])
        values.append(self._values.numbers[value])
        datatypes.append(self.datatypes[datatype])
        languages.append(-1 if language is None else self.languages[language])
        self._characters += len(value)

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add statements of both kinds."""
        nodes, relations = self._nodes.numbers, self.relations
        heads, between, tails = self._edges
        for head, relation, tail, datatype, language in rows:
            if datatype is not None:
                self.add_feature(head, relation, tail, datatype, None if language is None else tag_of(language))
                continue
            heads.append(nodes[head])
            between.append(relations[relation])
            tails.append(nodes[tail])
        if self._storage.bounded and self._full():
            self._end_run()

    def add_columns(self, columns: Iterable[StatementColumn]) -> None:
        """Add statements by their relations."""
        said: list[str] | None = None
        numbers = array("i")
        for relation, about, tails, datatype in columns:
            # The columns of a table are about the same rows.
            if about is not said:
                said, numbers = about, array("i", map(self._nodes.numbers.__getitem__, about))
            places = array("i", [self.relations[relation]]) * len(about)
            if datatype is None:
                new = (numbers, places, array("i", map(self._nodes.numbers.__getitem__, tails)))
                _extend(self._edges, new)
                continue
            values = array("i", map(self._values.numbers.__getitem__, tails))
            kinds, tags = (array("i", [number]) * len(about) for number in (self.datatypes[datatype], -1))
            _extend(self._features, (numbers, places, values, kinds, tags))
            self._characters += len("".join(tails))
        if self._storage.bounded and self._full():
            self._end_run()

    def add_index(self, index: GraphIndex) -> None:
        """Add everything that an index says, before anything else."""
        relations = self._places(self.relations, index.relations)
        datatypes = self._places(self.datatypes, index.datatypes)
        # One more place at the end serves the language -1, which is none.
        languages = np.append(self._places(self.languages, index.languages), np.int32(-1))
        values, value_places = sorted_and_placed(self._storage, written(index.features.values))
        self._nodes.add_run(index.nodes)
        self._values.add_run(values)
        out, features = index.out, index.features
        nodes = np.arange(len(index.nodes), dtype=np.int32)
        columns = [
            *(self._kept(pieces) for pieces in (_spread(out.owners(), out), _spread(relations[out.relations], out))),
            out.neighbors,
            np.repeat(nodes, np.diff(features.starts)),
            relations[features.relations],
            value_places,
            datatypes[features.datatypes],
            languages[features.languages],
        ]
        self._runs.append(_numbered(columns))

    def collected(self) -> Collected:
        """Return everything that was added, as one run."""
        if len(self._edges[0]) or len(self._features[0]) or not self._runs:
            self._end_run()
        nodes, node_places = self._nodes.merged()
        values, value_places = self._values.merged()
        if len(self._runs) > 1:
            self._runs = [self._joined(node_places, value_places)]
        return Collected(nodes, values, self._runs[0])

    def replace(self, said: Numbered) -> None:
        """Put other statements with the same numbers in the place of what `collected` returned."""
        self._runs = [said]

    @staticmethod
    def _places(numbers: TextNumbers, texts: StringTable) -> Ints:
        return np.array([numbers[text] for text in written(texts)], dtype=np.int32)

    def rows_of(self, collected: Collected, said: Numbered) -> Iterator[Row]:
        """Yield statements by the numbers of what was collected as rows."""
        nodes, values = collected.nodes, collected.values
        relations, datatypes, languages = list(self.relations), list(self.datatypes), list(self.languages)
        for head, relation, tail in zip(*said.edges, strict=True):
            yield nodes[int(head)], relations[relation], nodes[int(tail)], None, None
        for head, relation, value, kind, language in zip(*said.features, strict=True):
            tag = None if int(language) < 0 else languages[int(language)]
            yield nodes[int(head)], relations[relation], values[int(value)], datatypes[kind], tag

    def _begin(self) -> None:
        self._edges = tuple(array("i") for _ in range(3))
        self._features = tuple(array("i") for _ in range(5))
        self._characters = 0

    def _full(self) -> bool:
        texts = len(self._nodes.numbers) + len(self._values.numbers)
        statements = len(self._edges[0]) + len(self._features[0])
        used = max(texts, statements // _STATEMENTS_A_TEXT, self._characters // _CHARACTERS_A_TEXT)
        return used >= self._storage.room.texts

    def _end_run(self) -> None:
        nodes, values = self._nodes.end_run(), self._values.end_run()
        edges, features = (tuple(map(_as_ints, columns)) for columns in (self._edges, self._features))
        places = (nodes, None, nodes, nodes, None, values, None, None)
        columns = [
            self._kept([_placed(column, ranks)]) for column, ranks in zip((*edges, *features), places, strict=True)
        ]
        self._runs.append(_numbered(columns))
        self._begin()

    def _joined(self, nodes: Sequence[Ints | None], values: Sequence[Ints | None]) -> Numbered:
        """Return the statements of all runs, given the new places of their nodes and values."""
        runs = [(*run.edges, *run.features) for run in self._runs]
        none: list[Ints | None] = [None] * len(runs)
        places = (nodes, none, nodes, nodes, none, values, none, none)
        columns = [
            self._kept(
                _placed(piece, new) for run, new in zip(runs, ranks, strict=True) for piece in pieces_of(run[number])
            )
            for number, ranks in enumerate(places)
        ]
        return _numbered(columns)

    def _kept(self, pieces: Iterable[Ints]) -> Ints:
        column = self._storage.passing(np.int32)
        for piece in pieces:
            column.append(piece)
        self._storage.let_go()
        return column.finish()


def _extend(columns: tuple["array[int]", ...], more: tuple["array[int]", ...]) -> None:
    for column, numbers in zip(columns, more, strict=True):
        column.extend(numbers)


def _spread(of_groups: Ints, table: EdgeTable) -> Iterator[Ints]:
    """Yield in pieces what each edge has of its group."""
    for first in range(0, len(of_groups), _PIECE):
        sizes = np.diff(table.starts[first : first + _PIECE + 1])
        yield np.repeat(of_groups[first : first + _PIECE], sizes)


def pieces_of(column: Ints) -> Iterator[Ints]:
    """Yield a column in pieces that fit into memory."""
    for first in range(0, len(column), _PIECE):
        yield column[first : first + _PIECE]


def _placed(column: Ints, places: Ints | None) -> Ints:
    return column if places is None else places[column]


def _numbered(columns: Sequence[Ints]) -> Numbered:
    head, relation, tail, owner, about, value, datatype, language = columns
    return Numbered((head, relation, tail), (owner, about, value, datatype, language))


def _as_ints(column: "array[int]") -> Ints:
    return np.frombuffer(column, dtype=np.intc).astype(np.int32, copy=False)
