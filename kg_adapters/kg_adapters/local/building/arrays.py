"""From statements to the arrays of an index: everything is numbered while it arrives and sorted at the end.

Where there is a folder for what is needed on the way, memory holds what there is room for, however large the graph.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from kg_adapters.labels import Vocabulary
from kg_adapters.local.building.collections import Structure
from kg_adapters.local.building.growing import Storage
from kg_adapters.local.building.index_writer import IndexWriter
from kg_adapters.local.building.list_orders import kept_orders
from kg_adapters.local.building.property_names import names_of_relations
from kg_adapters.local.building.skos_xl import plain_labels
from kg_adapters.local.building.statements import Collected, Numbered, Statements
from kg_adapters.local.building.unfolding import Orders, Texts, unfolded
from kg_adapters.local.building.written_lists import WrittenLists, unfolded_lists
from kg_adapters.local.index import GraphIndex
from kg_adapters.local.reading.rows import Row
from kg_adapters.terms import XSD_STRING


class IndexBuilder:
    """Collects statements in any order, repeats included, and builds their index.

    Args:
        vocabulary: Chooses labels and descriptions, and says which relations path search may leave out.
        storage: Where the arrays go; in memory when None.

    Attributes:
        lists: What the index says otherwise than it was written, when it is finished.
    """

    def __init__(self, vocabulary: Vocabulary, storage: Storage | None = None) -> None:
        self._vocabulary = vocabulary
        self._storage = storage or Storage()
        self._statements = Statements(self._storage)
        self._base: GraphIndex | None = None
        self.lists = WrittenLists()

    def add_index(self, index: GraphIndex, lists: WrittenLists) -> None:
        """Add everything that an index says, with its lists, before anything else."""
        self._statements.add_index(index)
        self._base = index
        self.lists = lists

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

    def add_plain_labels(self) -> list[Row]:
        """Add the labels that follow from those of SKOS-XL and of Wikidata's properties, and return them."""
        statements = self._statements
        relations, collected = statements.relations, statements.collected()
        nodes, said = collected.nodes, collected.said
        heads, about = said.features[:2]
        found: list[tuple[str, list[str], list[int]]] = [
            (relation, [nodes[owner] for owner in owners.tolist()], rows.tolist())
            for relation, owners, rows in plain_labels(relations, said.edges, heads, about)
        ]
        texts = frozenset(iri.value for iri in self._vocabulary.texts)
        named = names_of_relations(nodes.find, relations, heads, about, texts)
        found.extend((relation, [owner] * len(rows), rows.tolist()) for owner, relation, rows in named)
        datatypes, languages = list(statements.datatypes), list(statements.languages)
        _, _, value, kind, language = said.features
        labels: list[Row] = [
            (
                owner,
                relation,
                collected.values[int(value[row])],
                datatypes[kind[row]],
                None if language[row] < 0 else languages[language[row]],
            )
            for relation, owners, rows in found
            for owner, row in zip(owners, rows, strict=True)
        ]
        self.add_rows(labels)
        return labels

    def finish(self, vocabulary: Vocabulary | None = None, *, unfold: bool = False) -> GraphIndex:
        """Return the index of everything that was added; nothing can be added after it.

        Args:
            vocabulary: What takes the place of the builder's vocabulary.
            unfold: Whether what leads to a list or container leads to its members instead.

        Raises:
            UnicodeEncodeError: A text holds half a surrogate pair, which UTF-8 cannot say.
            InvalidSource: There are more nodes or texts than can be numbered.
        """
        orders: Orders = self._unfold() if unfold else {}
        statements = self._statements
        if self._base is not None:
            kept = kept_orders(self._base, statements.collected().nodes.find, statements.relations)
            orders = {**kept, **{key: [*dict.fromkeys([*kept.get(key, ()), *new])] for key, new in orders.items()}}
        vocabularies = (statements.relations, statements.datatypes, statements.languages)
        return IndexWriter(self._storage, statements.collected(), *vocabularies).write(
            vocabulary or self._vocabulary, orders
        )

    def _unfold(self) -> Orders:
        """Put members in the place of lists, and return their order, by numbers of `collected`."""
        statements, collected = self._statements, self._statements.collected()
        rows_of = partial(statements.rows_of, collected)
        if self._base is not None and self.lists.unfolded:
            stated = rows_of(_added_about(self._base, collected, {row[0] for row in self.lists.unfolded}))
            self.lists = replace(self.lists, unfolded=self.lists.unfolded.difference(stated))
        structure = Structure.of(collected.nodes.find, statements.relations)
        texts = Texts(collected.nodes, collected.values, list(statements.datatypes))
        found = None if structure is None else unfolded(collected.said, structure, texts)
        if found is None:
            return {}
        relations = list(statements.relations)
        said: list[Row] = [
            (collected.nodes[head], relations[relation], text, XSD_STRING.value, None)
            for head, relation, text in found.texts
        ]
        self.lists = self.lists.joined(unfolded_lists(collected.said, found, said, rows_of))
        statements.replace(found.joined(collected.said))
        # Nodes keep their numbers: nothing is added that was not there.
        statements.add_rows(said)
        return found.orders


def _added_about(base: GraphIndex, collected: Collected, heads: Iterable[str]) -> Numbered:
    """Return what was said of some nodes beyond what an index says that was added first."""
    numbers = (collected.nodes.find(head) for head in heads)
    said = collected.said
    edges, features = said.about(np.array([number for number in numbers if number is not None], dtype=np.int32))
    edges[: len(base.out.neighbors)] = False
    features[: len(base.features.relations)] = False
    return said.chosen(edges, features)
