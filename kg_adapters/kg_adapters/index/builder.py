"""From statements to the arrays of an index: everything is numbered while it arrives and sorted at the end.

Where there is a folder for what is needed on the way, memory holds what there is room for, however large the graph.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from kg_adapters.files.rows import Row, StatementColumn
from kg_adapters.index.graph_index import FeatureTable, GraphIndex, Ints, Longs, StringTable
from kg_adapters.index.statements import Collected, Statements, pieces_of
from kg_adapters.index.storage import IndexStorage, copied_table, encoded, sorted_table
from kg_adapters.index.tables import (
    Edges,
    FeatureWriter,
    Orders,
    RowChoice,
    list_orders,
    write_edges,
    write_links,
)
from kg_adapters.labels import Vocabulary
from kg_adapters.terms import Attribute, Fact, node_key

_COPIED: Final = 500_000


class IndexWriter:
    """Writes one index.

    Args:
        storage: Where it goes.
        collected: The statements.
        relations: The number of each relation.
        datatypes: The number of each datatype.
        languages: The number of each language.
    """

    def __init__(
        self,
        storage: IndexStorage,
        collected: Collected,
        relations: Mapping[str, int],
        datatypes: Mapping[str, int],
        languages: Mapping[str, int],
    ) -> None:
        self._storage = storage
        self._collected = collected
        head, relation, tail = collected.said.edges
        owner, about = collected.said.features[:2]
        counts = tuple(_counts(column, len(collected.nodes)) for column in (head, tail, owner))
        used = np.any(counts, axis=0)
        # What only lists were written with is gone by now.
        self._used = None if used.all() else used
        self._heads, self._tails, self._owners = counts if self._used is None else (each[used] for each in counts)
        self._node_ranks = _ranks(used)
        spoken = _counts(relation, len(relations)) + _counts(about, len(relations)) > 0
        self._relations, self._relation_ranks = _ranked(
            {text: number for text, number in relations.items() if spoken[number]}, len(relations)
        )
        self._datatypes, self._datatype_ranks = _ranked(datatypes, len(datatypes))
        self._languages, self._language_ranks = _ranked(languages, len(languages))

    def write(self, vocabulary: Vocabulary, orders: Orders) -> GraphIndex:
        """Return the index.

        Args:
            vocabulary: Chooses labels and descriptions, and says which relations path search may leave out.
            orders: The order of what came of lists, by the numbers of `collected`.
        """
        storage = self._storage
        nodes = self._write_nodes()
        relations = sorted_table(self._relations, storage.strings("relations"))
        out, into = write_edges(storage, self._edges(), self._heads, self._tails, len(self._relations))
        unwalked = [number for iri in sorted(vocabulary.unwalked) if (number := relations.find(iri.value)) is not None]
        choice = RowChoice(storage, self._relations, self._languages, vocabulary)
        features = self._write_features(choice)
        places = [-1 if (number := nodes.find(relation)) is None else number for relation in self._relations]
        return GraphIndex(
            nodes=nodes,
            relations=relations,
            relation_nodes=storage.whole("relation_nodes", np.array(places, dtype=np.int32)),
            out=out,
            into=into,
            lists=list_orders(storage, out, orders, self._node_ranks, self._relation_ranks),
            links=write_links(storage, "links", out, into, []),
            walks=write_links(storage, "walks", out, into, unwalked),
            features=features,
            labels=choice.labels.finish(),
            descriptions=choice.descriptions.finish(),
            datatypes=sorted_table(self._datatypes, storage.strings("datatypes")),
            languages=sorted_table(self._languages, storage.strings("languages")),
        )

    def _write_nodes(self) -> StringTable:
        table, strings = self._collected.nodes, self._storage.strings("nodes")
        if self._used is None:
            return copied_table(table, strings)
        for first in range(0, len(table), _COPIED):
            used = np.flatnonzero(self._used[first : first + _COPIED])
            texts = encoded(table, first, min(len(table), first + _COPIED))
            strings.extend([texts[place] for place in used.tolist()])
        return strings.finish()

    def _edges(self) -> Iterator[Edges]:
        for head, relation, tail in zip(*map(pieces_of, self._collected.said.edges), strict=True):
            yield self._node_ranks[head], self._relation_ranks[relation], self._node_ranks[tail]

    def _write_features(self, choice: RowChoice) -> FeatureTable:
        sizes = (len(self._relations), len(self._datatypes))
        writer = FeatureWriter(self._storage, self._collected.values, self._owners, *sizes)
        # One more rank at the end serves the language -1, which is none.
        languages = np.append(self._language_ranks, np.int32(-1))
        for owner, relation, value, kind, language in zip(*map(pieces_of, self._collected.said.features), strict=True):
            writer.add(
                (
                    self._node_ranks[owner],
                    self._relation_ranks[relation],
                    value,
                    self._datatype_ranks[kind],
                    languages[language],
                )
            )
        for rows in writer.rows():
            choice.add(rows)
        return writer.finish()


def _counts(numbers: Ints, size: int) -> Longs:
    """Return how often each number occurs; shape [size]."""
    counts = np.zeros(size, dtype=np.int64)
    for piece in pieces_of(numbers):
        counts += np.bincount(piece, minlength=size)
    return counts


def _ranks(used: npt.NDArray[np.bool_]) -> Ints:
    return (np.cumsum(used) - 1).astype(np.int32)


def _ranked(numbers: Mapping[str, int], size: int) -> tuple[list[str], Ints]:
    """Return texts sorted by code point, and for each of the numbers below `size` its place among them."""
    texts = sorted(numbers)
    ranks = np.full(size, -1, dtype=np.int32)
    ranks[[numbers[text] for text in texts]] = np.arange(len(texts), dtype=np.int32)
    return texts, ranks


class IndexBuilder:
    """Collects statements in any order, repeats included, and builds their index.

    Args:
        vocabulary: Chooses labels and descriptions, and says which relations path search may leave out.
        storage: Where the arrays go; in memory when None.
    """

    def __init__(self, vocabulary: Vocabulary, storage: IndexStorage | None = None) -> None:
        self._vocabulary = vocabulary
        self._storage = storage or IndexStorage()
        self._statements = Statements(self._storage)

    def add_edge(self, head: str, relation: str, tail: str) -> None:
        """Add a triple between two nodes, given as `node_key`s and the relation's IRI."""
        self._statements.add_edge(head, relation, tail)

    def add_feature(self, head: str, relation: str, value: str, datatype: str, language: str | None) -> None:
        """Add a statement about a literal: the head's `node_key`, then IRIs and texts as they are."""
        # An index has one number for each language, as Oxigraph's parser gives it: in lower case.
        self._statements.add_feature(head, relation, value, datatype, None if language is None else language.lower())

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add statements of both kinds."""
        self._statements.add_rows(rows)

    def add_columns(self, columns: Iterable[StatementColumn]) -> None:
        """Add statements by their relations."""
        self._statements.add_columns(columns)

    def finish(self) -> GraphIndex:
        """Return the index of everything that was added; nothing can be added after it.

        Raises:
            UnicodeEncodeError: A text holds half a surrogate pair, which UTF-8 cannot say.
            InvalidSource: There are more nodes or texts than can be numbered.
        """
        return self._written(self._vocabulary, {})

    def _written(self, vocabulary: Vocabulary, orders: Orders) -> GraphIndex:
        statements = self._statements
        vocabularies = (statements.relations, statements.datatypes, statements.languages)
        return IndexWriter(self._storage, statements.collected(), *vocabularies).write(vocabulary, orders)


def index_of(facts: Iterable[Fact], vocabulary: Vocabulary) -> GraphIndex:
    """Return an index of these facts alone."""
    builder = IndexBuilder(vocabulary)
    for fact in facts:
        head, relation = node_key(fact.head), fact.relation.value
        if isinstance(fact, Attribute):
            builder.add_feature(head, relation, fact.tail.value, fact.tail.datatype.value, fact.tail.language)
        else:
            builder.add_edge(head, relation, node_key(fact.tail))
    return builder.finish()
