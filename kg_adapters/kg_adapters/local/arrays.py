"""From statements to the arrays of an index: everything is numbered while it arrives and sorted at the end."""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from kg_adapters.labels import Vocabulary
from kg_adapters.local.collections import Structure
from kg_adapters.local.index import Bytes, EdgeTable, FeatureTable, GraphIndex, Ints, LinkTable, Longs, StringTable
from kg_adapters.local.list_orders import list_orders
from kg_adapters.local.property_names import names_of_relations
from kg_adapters.local.rows import Row, tag_of
from kg_adapters.local.skos_xl import plain_labels
from kg_adapters.local.unfolding import Numbered, Orders, Texts, unfolded
from kg_adapters.terms import XSD_STRING, Iri


class IndexBuilder:
    """Collects statements in any order, repeats included, and builds their index.

    Args:
        vocabulary: Chooses labels and descriptions, and says which relations path search may leave out.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._nodes = _Numbers()
        self._relations = _Numbers()
        self._values = _Numbers()
        self._datatypes = _Numbers()
        self._languages = _Numbers()
        self._edges = tuple(array("i") for _ in range(3))
        self._features = tuple(array("i") for _ in range(5))

    def add_edge(self, head: str, relation: str, tail: str) -> None:
        """Add a triple between two nodes, given as `node_key`s and the relation's IRI."""
        heads, relations, tails = self._edges
        heads.append(self._nodes[head])
        relations.append(self._relations[relation])
        tails.append(self._nodes[tail])

    def add_feature(self, head: str, relation: str, value: str, datatype: str, language: str | None) -> None:
        """Add a statement about a literal: the head's `node_key`, then IRIs and texts as they are."""
        heads, relations, values, datatypes, languages = self._features
        heads.append(self._nodes[head])
        relations.append(self._relations[relation])
        values.append(self._values[value])
        datatypes.append(self._datatypes[datatype])
        languages.append(-1 if language is None else self._languages[language])

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Add statements of both kinds."""
        nodes, relations = self._nodes, self._relations
        heads, between, tails = self._edges
        for head, relation, tail, datatype, language in rows:
            if datatype is not None:
                self.add_feature(head, relation, tail, datatype, None if language is None else tag_of(language))
                continue
            heads.append(nodes[head])
            between.append(relations[relation])
            tails.append(nodes[tail])

    def add_plain_labels(self) -> list[Row]:
        """Add the labels that follow from those of SKOS-XL and of Wikidata's properties, and return them."""
        edges = tuple(_as_ints(column) for column in self._edges)
        heads, relations = (_as_ints(column) for column in self._features[:2])
        nodes = list(self._nodes)
        found: list[tuple[str, list[str], list[int]]] = [
            (relation, [nodes[owner] for owner in owners.tolist()], rows.tolist())
            for relation, owners, rows in plain_labels(self._relations, edges, heads, relations)
        ]
        texts = frozenset(iri.value for iri in self._vocabulary.texts)
        named = names_of_relations(self._nodes, self._relations, heads, relations, texts)
        found.extend((relation, [owner] * len(rows), rows.tolist()) for owner, relation, rows in named)
        # An array that somebody looks at cannot grow.
        del edges, heads, relations, named
        if not found:
            return []
        values, datatypes, languages = map(list, (self._values, self._datatypes, self._languages))
        _, _, value, kind, language = self._features
        labels: list[Row] = [
            (
                owner,
                relation,
                values[value[row]],
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
        """
        vocabulary = vocabulary or self._vocabulary
        orders: Orders = self._unfold() if unfold else {}
        nodes, node_ranks = _sorted_texts(self._nodes)
        relations, relation_ranks = _sorted_texts(self._relations)
        head, relation, tail = self._edge_columns(node_ranks, relation_ranks)
        out = _edge_table(head, relation, tail, len(nodes))
        lists = list_orders(out, orders, node_ranks, relation_ranks)
        by_tail = np.lexsort((head, relation, tail))
        into = _edge_table(tail[by_tail], relation[by_tail], head[by_tail], len(nodes))
        walked = ~np.isin(relation, _ids(relations, sorted(vocabulary.unwalked)))
        datatypes, datatype_ranks = _sorted_texts(self._datatypes)
        languages, language_ranks = _sorted_texts(self._languages)
        features = self._feature_table(node_ranks, relation_ranks, datatype_ranks, language_ranks)
        choice = _TextChoice(features, relations, languages, vocabulary)
        return GraphIndex(
            nodes=_string_table(nodes),
            relations=_string_table(relations),
            relation_nodes=_relation_nodes(relations, self._nodes, node_ranks),
            out=out,
            into=into,
            lists=lists,
            links=_link_table(head, tail, len(nodes)),
            walks=_link_table(head[walked], tail[walked], len(nodes)),
            features=features,
            labels=choice.rows(vocabulary.labels),
            descriptions=choice.rows(vocabulary.descriptions),
            datatypes=_string_table(datatypes),
            languages=_string_table(languages),
        )

    def _unfold(self) -> Orders:
        """Put members in the place of lists, and forget what nothing is said of any more."""
        structure = Structure.of(self._nodes, self._relations)
        if structure is None:
            return {}
        head, relation, tail = map(_as_ints, self._edges)
        owner, about, value, datatype, language = map(_as_ints, self._features)
        statements = Numbered((head, relation, tail), (owner, about, value, datatype, language))
        texts = Texts(list(self._nodes), list(self._values), list(self._datatypes), self._plain_text)
        said, orders = unfolded(statements, structure, texts)
        self._edges, self._features = (tuple(map(_as_array, columns)) for columns in (said.edges, said.features))
        nodes, relations = (*said.edges[::2], said.features[0]), (said.edges[1], said.features[1])
        for numbers, columns in ((self._nodes, nodes), (self._relations, relations)):
            used = np.zeros(len(numbers), dtype=np.bool_)
            used[np.concatenate(columns)] = True
            for text in [text for text, number in numbers.items() if not used[number]]:
                del numbers[text]
        return orders

    def _plain_text(self, text: str) -> tuple[int, int]:
        return self._values[text], self._datatypes[XSD_STRING.value]

    def _edge_columns(self, node_ranks: Ints, relation_ranks: Ints) -> tuple[Ints, Ints, Ints]:
        heads, relations, tails = (_as_ints(column) for column in self._edges)
        head, relation, tail = node_ranks[heads], relation_ranks[relations], node_ranks[tails]
        rows = _distinct_rows(head, relation, tail)
        return head[rows], relation[rows], tail[rows]

    def _feature_table(
        self, node_ranks: Ints, relation_ranks: Ints, datatype_ranks: Ints, language_ranks: Ints
    ) -> FeatureTable:
        values, value_ranks = _sorted_texts(self._values)
        heads, relations, value_ids, datatypes, languages = (_as_ints(column) for column in self._features)
        head, relation, value = node_ranks[heads], relation_ranks[relations], value_ranks[value_ids]
        # One more rank at the end serves the language -1, which is none.
        language = np.append(language_ranks, np.int32(-1))[languages]
        datatype = datatype_ranks[datatypes]
        rows = _distinct_rows(head, relation, value, language, datatype)
        return FeatureTable(
            starts=_row_starts(head[rows], len(self._nodes)),
            relations=relation[rows],
            values=_string_table(values, value[rows]),
            datatypes=datatype[rows],
            languages=language[rows],
        )


class _Numbers(dict[str, int]):
    """Numbers texts in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        number = len(self)
        self[text] = number
        return number


class _TextChoice:
    """Chooses one feature row per node as `Vocabulary` does, for all nodes at once."""

    def __init__(
        self, features: FeatureTable, relations: Sequence[str], languages: Sequence[str], vocabulary: Vocabulary
    ) -> None:
        self._features = features
        self._relations = relations
        self._nodes = np.repeat(np.arange(len(features.starts) - 1, dtype=np.int32), np.diff(features.starts))
        ranks = [vocabulary.rank(language) for language in (*languages, None)]
        self._language_ranks = np.array(ranks, dtype=np.int32)[features.languages]

    def rows(self, preferred: Sequence[Iri]) -> Longs:
        """Return for each node the best row among the preferred relations, or -1; shape [n]."""
        chosen = np.full(len(self._features.starts) - 1, -1, dtype=np.int64)
        ids = _ids(self._relations, preferred)
        if not len(ids):
            return chosen
        by_relation = np.full(len(self._relations), len(ids), dtype=np.int32)
        by_relation[ids[::-1]] = np.arange(len(ids), dtype=np.int32)[::-1]
        preference = by_relation[self._features.relations]
        rows = np.flatnonzero(preference < len(ids))
        # Rows of one node and relation are already sorted by value, and lexsort is stable.
        order = np.lexsort(
            (self._features.languages[rows], self._language_ranks[rows], preference[rows], self._nodes[rows])
        )
        best, firsts = np.unique(self._nodes[rows][order], return_index=True)
        chosen[best] = rows[order][firsts]
        return chosen


def _as_array(column: Ints) -> "array[int]":
    numbers = array("i")
    numbers.frombytes(column.astype(np.intc, copy=False).tobytes())
    return numbers


def _as_ints(column: "array[int]") -> Ints:
    return np.frombuffer(column, dtype=np.intc).astype(np.int32, copy=False)


def _sorted_texts(numbers: _Numbers) -> tuple[list[str], Ints]:
    texts = sorted(numbers)
    # Those that were deleted have left a gap.
    ranks = np.full(max(numbers.values(), default=-1) + 1, -1, dtype=np.int32)
    ranks[np.fromiter((numbers[text] for text in texts), dtype=np.int32, count=len(texts))] = np.arange(
        len(texts), dtype=np.int32
    )
    return texts, ranks


def _string_table(texts: Sequence[str], rows: Ints | None = None) -> StringTable:
    encoded = [text.encode() for text in texts]
    if rows is not None:
        repeated: list[int] = rows.tolist()
        encoded = [encoded[row] for row in repeated]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
    text: Bytes = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    return StringTable(offsets, text)


def _distinct_rows(*columns: Ints) -> Longs:
    """Return the rows that sort the columns, the first column first, without repeats."""
    order = np.lexsort(columns[::-1])
    fresh = np.ones(len(order), dtype=np.bool_)
    if len(order):
        fresh[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    return order[fresh].astype(np.int64, copy=False)


def _row_starts(owners: Ints, count: int) -> Longs:
    return np.searchsorted(owners, np.arange(count + 1)).astype(np.int64, copy=False)


def _edge_table(own: Ints, relation: Ints, other: Ints, count: int) -> EdgeTable:
    first = np.ones(len(own), dtype=np.bool_)
    first[1:] = (own[1:] != own[:-1]) | (relation[1:] != relation[:-1])
    heads = np.flatnonzero(first)
    return EdgeTable(
        groups=_row_starts(own[heads], count),
        relations=relation[heads],
        starts=np.append(heads, len(own)).astype(np.int64, copy=False),
        neighbors=other,
    )


def _link_table(head: Ints, tail: Ints, count: int) -> LinkTable:
    apart = head != tail
    one, two = head[apart].astype(np.int64), tail[apart].astype(np.int64)
    pairs, edges = np.unique(np.concatenate((one * count + two, two * count + one)), return_counts=True)
    owners, neighbors = np.divmod(pairs, max(count, 1))
    return LinkTable(
        starts=_row_starts(owners.astype(np.int32), count),
        neighbors=neighbors.astype(np.int32),
        edges=edges.astype(np.int32),
    )


def _ids(texts: Sequence[str], wanted: Sequence[Iri]) -> Ints:
    places = {text: place for place, text in enumerate(texts)}
    return np.array([places[iri.value] for iri in wanted if iri.value in places], dtype=np.int32)


def _relation_nodes(relations: Sequence[str], nodes: _Numbers, ranks: Ints) -> Ints:
    numbers = (nodes.get(relation) for relation in relations)
    return np.array([-1 if number is None else ranks[number] for number in numbers], dtype=np.int32)
