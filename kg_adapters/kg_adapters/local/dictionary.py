"""From ids to terms and back, with what was seen lately kept in memory."""

from collections.abc import Iterable
from typing import Final

from kg_adapters.errors import InvalidRequest
from kg_adapters.local.index import GraphIndex, stored_node, stored_relation
from kg_adapters.local.seal import Damage
from kg_adapters.models import Feature
from kg_adapters.terms import Iri, Literal, Node, node_key

_MOST_KEPT: Final = 50_000
_MAX_KEPT_LABEL: Final = 200


class Dictionary:
    """The nodes, relations, labels and literals of one index.

    Args:
        index: The graph.
        most_kept: How many of each are in memory at most.
    """

    def __init__(self, index: GraphIndex, *, most_kept: int = _MOST_KEPT) -> None:
        self._index = index
        self._most_kept = most_kept
        self._nodes: dict[int, Node] = {}
        self._node_ids: dict[Node, int] = {}
        self._relations: dict[int, Iri] = {}
        self._labels: dict[int, str] = {}
        self._datatypes: dict[int, Iri] = {}

    @property
    def kept(self) -> int:
        """How many nodes, relations and labels are in memory now."""
        return len(self._nodes) + len(self._relations) + len(self._labels)

    def node(self, number: int) -> Node:
        """Return the node with this id."""
        node = self._nodes.get(number)
        if node is None:
            node = stored_node(self._index, number)
            self._keep(number, node)
        return node

    def node_id(self, node: Node) -> int | None:
        """Return the id of a node, or None where the graph does not mention it."""
        number = self._node_ids.get(node)
        if number is None:
            number = self._index.nodes.find(node_key(node))
            if number is not None:
                self._keep(number, node)
        return number

    def relation(self, number: int) -> Iri:
        """Return the relation with this id."""
        relation = self._relations.get(number)
        if relation is None:
            relation = stored_relation(self._index, number)
            if len(self._relations) >= self._most_kept:
                self._relations.clear()
            self._relations[number] = relation
        return relation

    def relation_id(self, relation: Node) -> int | None:
        """Return the id of a relation, or None where no statement of the graph has it."""
        return self._index.relations.find(relation.value) if isinstance(relation, Iri) else None

    def relation_ids(self, relations: Iterable[Node]) -> frozenset[int]:
        """Return the ids of relations; those that no statement has are left out."""
        found = (self.relation_id(relation) for relation in relations)
        return frozenset(number for number in found if number is not None)

    def label(self, number: int) -> str | None:
        """Return the label of the node with this id, or None."""
        label = self._labels.get(number)
        if label is None:
            label = self._text(int(self._index.labels[number]))
            if label is not None and len(label) <= _MAX_KEPT_LABEL:
                if len(self._labels) >= self._most_kept:
                    self._labels.clear()
                self._labels[number] = label
        return label

    def labels_of(self, terms: Iterable[Node]) -> dict[Node, str]:
        """Return the labels of nodes and relations; those without one are left out."""
        found: dict[Node, str] = {}
        # What was seen lately costs no call: an answer has hundreds of terms.
        ids, labels = self._node_ids, self._labels
        for term in terms:
            number = ids.get(term)
            if number is None and (number := self.node_id(term)) is None:
                continue
            label = labels.get(number)
            if label is None and (label := self.label(number)) is None:
                continue
            found[term] = label
        return found

    def description(self, number: int) -> str | None:
        """Return the description of the node with this id, or None."""
        return self._text(int(self._index.descriptions[number]))

    def feature(self, row: int) -> Feature:
        """Return the literal in this row of the index, with its relation."""
        return Feature(self.relation(int(self._index.features.relations[row])), self.literal(row))

    def literal(self, row: int) -> Literal:
        """Return the literal in this row of the index."""
        table = self._index.features
        kind, language = int(table.datatypes[row]), int(table.languages[row])
        datatype = self._datatypes.get(kind)
        if datatype is None:
            datatype = self._datatypes.setdefault(kind, self._datatype(kind))
        return Literal(table.values[row], datatype, None if language < 0 else self._index.languages[language])

    def _datatype(self, kind: int) -> Iri:
        try:
            return Iri(self._index.datatypes[kind])
        except InvalidRequest as error:
            raise Damage(f"index/datatypes.text.npy holds no IRI at {kind}") from error

    def text(self, row: int) -> str:
        """Return the text of the literal in this row of the index."""
        return self._index.features.values[row]

    def _text(self, row: int) -> str | None:
        return None if row < 0 else self._index.features.values[row]

    def _keep(self, number: int, node: Node) -> None:
        if len(self._nodes) >= self._most_kept:
            self._nodes.clear()
            self._node_ids.clear()
        self._nodes[number] = node
        self._node_ids[node] = number
