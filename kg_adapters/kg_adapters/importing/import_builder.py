"""What an import adds to the building of an index: plain labels, lists as their members, and an index to begin with."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from kg_adapters.files.rows import Row
from kg_adapters.importing.lists import Structure, Texts, unfolded, unfolded_lists
from kg_adapters.importing.naming import names_of_relations, plain_labels
from kg_adapters.index.builder import IndexBuilder
from kg_adapters.index.graph_index import GraphIndex
from kg_adapters.index.statements import Collected, Numbered
from kg_adapters.index.storage import IndexStorage
from kg_adapters.index.tables import Orders, kept_orders
from kg_adapters.labels import Vocabulary
from kg_adapters.local.written_lists import WrittenLists
from kg_adapters.terms import XSD_STRING


class ImportBuilder(IndexBuilder):
    """Builds the index of a store.

    Args:
        vocabulary: Chooses labels and descriptions, and says which relations path search may leave out.
        storage: Where the arrays go.

    Attributes:
        lists: What the index says otherwise than it was written, when it is finished.
    """

    def __init__(self, vocabulary: Vocabulary, storage: IndexStorage | None = None) -> None:
        super().__init__(vocabulary, storage)
        self._base: GraphIndex | None = None
        self.lists = WrittenLists()

    def add_index(self, index: GraphIndex, lists: WrittenLists) -> None:
        """Add everything that an index says, with its lists, before anything else."""
        self._statements.add_index(index)
        self._base = index
        self.lists = lists

    def add_plain_labels(self) -> list[Row]:
        """Add the labels that follow from nodes that are labels and from Wikidata's properties, and return them."""
        statements = self._statements
        relations, collected = statements.relations, statements.collected()
        nodes, said = collected.nodes, collected.said
        heads, about = said.features[:2]
        found: list[tuple[str, list[str], list[int]]] = [
            (relation, [nodes[owner] for owner in owners.tolist()], rows.tolist())
            for relation, owners, rows in plain_labels(nodes.find, relations, said.edges, heads, about)
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

    def finish_import(self, vocabulary: Vocabulary) -> GraphIndex:
        """Return the index of everything that was added, in which what led to a list leads to its members instead.

        Args:
            vocabulary: What takes the place of the builder's vocabulary.

        Raises:
            UnicodeEncodeError: A text holds half a surrogate pair, which UTF-8 cannot say.
            InvalidSource: There are more nodes or texts than can be numbered.
        """
        orders, statements = self._unfold(), self._statements
        if self._base is not None:
            kept = kept_orders(self._base, statements.collected().nodes.find, statements.relations)
            orders = {**kept, **{key: [*dict.fromkeys([*kept.get(key, ()), *new])] for key, new in orders.items()}}
        return self._written(vocabulary, orders)

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
    """Return the statements about some nodes that an index, added first, does not hold."""
    numbers = (collected.nodes.find(head) for head in heads)
    said = collected.said
    edges, features = said.about(np.array([number for number in numbers if number is not None], dtype=np.int32))
    edges[: len(base.out.neighbors)] = False
    features[: len(base.features.relations)] = False
    return said.chosen(edges, features)
