"""The arrays say what the statements say, however they came in."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_adapters.labels import RDF_TYPE, Vocabulary
from kg_adapters.local.array_files import ArrayFiles
from kg_adapters.local.arrays import IndexBuilder
from kg_adapters.local.index import EdgeTable, GraphIndex, LinkTable, StringTable, open_index, save_index
from kg_adapters.terms import Iri, Literal

Edge: TypeAlias = tuple[str, str, str]
Feature: TypeAlias = tuple[str, str, str, str, str | None]

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
ALTERNATIVE = "http://www.w3.org/2004/02/skos/core#prefLabel"
COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment"
STRING = "http://www.w3.org/2001/XMLSchema#string"

NODES = st.sampled_from(["http://e/a", "http://e/b", "http://e/é", "http://e/\U0001f600", "_:b0", LABEL])
RELATIONS = st.sampled_from(["http://e/r", "http://e/s", RDF_TYPE.value, "http://e/a"])
EDGES = st.lists(st.tuples(NODES, RELATIONS, NODES), max_size=40)
FEATURES = st.lists(
    st.tuples(
        NODES,
        st.sampled_from([LABEL, ALTERNATIVE, COMMENT, "http://e/r"]),
        st.sampled_from(["", "x", "y", "\ue000", "\U0001f600", "x\n"]),
        st.sampled_from([STRING, "http://e/type"]),
        st.sampled_from([None, "en", "en-gb", "mul", "de"]),
    ),
    max_size=40,
)


def build(edges: Iterable[Edge], features: Iterable[Feature] = ()) -> GraphIndex:
    builder = IndexBuilder(Vocabulary())
    for edge in edges:
        builder.add_edge(*edge)
    for feature in features:
        builder.add_feature(*feature)
    return builder.finish()


def texts(table: StringTable) -> list[str]:
    return [table[row] for row in range(len(table))]


def edges_of(index: GraphIndex, table: EdgeTable) -> list[Edge]:
    """The edges in the order in which the table has them, as owner, relation, other."""
    return [
        (index.nodes[node], index.relations[int(table.relations[group])], index.nodes[int(other)])
        for node in range(len(index.nodes))
        for group in range(table.groups[node], table.groups[node + 1])
        for other in table.neighbors[table.starts[group] : table.starts[group + 1]]
    ]


def links_of(index: GraphIndex, table: LinkTable) -> list[tuple[str, str, int]]:
    return [
        (index.nodes[node], index.nodes[int(table.neighbors[row])], int(table.edges[row]))
        for node in range(len(index.nodes))
        for row in range(table.starts[node], table.starts[node + 1])
    ]


def features_of(index: GraphIndex) -> list[Feature]:
    table = index.features
    return [
        (
            index.nodes[node],
            index.relations[int(table.relations[row])],
            table.values[row],
            index.datatypes[int(table.datatypes[row])],
            index.languages[int(table.languages[row])] if table.languages[row] >= 0 else None,
        )
        for node in range(len(index.nodes))
        for row in range(table.starts[node], table.starts[node + 1])
    ]


def expected_links(edges: set[Edge]) -> list[tuple[str, str, int]]:
    pairs = Counter(pair for head, _, tail in edges if head != tail for pair in ((head, tail), (tail, head)))
    return sorted((one, two, count) for (one, two), count in pairs.items())


def chosen(index: GraphIndex, rows: Iterable[int]) -> dict[str, Literal]:
    all_features = features_of(index)
    found = [(node, all_features[row]) for node, row in enumerate(rows) if row >= 0]
    return {index.nodes[node]: Literal(row[2], Iri(row[3]), row[4]) for node, row in found}


def by_node(features: Iterable[Feature]) -> dict[str, dict[Iri, list[Literal]]]:
    nodes: dict[str, dict[Iri, list[Literal]]] = {}
    for head, relation, value, datatype, language in features:
        nodes.setdefault(head, {}).setdefault(Iri(relation), []).append(Literal(value, Iri(datatype), language))
    return nodes


@settings(derandomize=True, deadline=None)
@given(EDGES, FEATURES)
def test_an_index_holds_each_statement_once_and_sorted(edges: list[Edge], features: list[Feature]) -> None:
    index = build(edges, features)
    distinct = set(edges)
    assert texts(index.nodes) == sorted(
        {node for head, _, tail in edges for node in (head, tail)} | {f[0] for f in features}
    )
    assert texts(index.relations) == sorted({edge[1] for edge in edges} | {feature[1] for feature in features})
    assert edges_of(index, index.out) == sorted(distinct)
    assert edges_of(index, index.into) == sorted((tail, relation, head) for head, relation, tail in distinct)
    assert features_of(index) == sorted(set(features), key=lambda f: (f[0], f[1], f[2], f[4] or "", f[3]))
    assert texts(index.datatypes) == sorted({feature[3] for feature in features})
    assert texts(index.languages) == sorted({feature[4] for feature in features if feature[4] is not None})


@settings(derandomize=True, deadline=None)
@given(EDGES)
def test_links_count_the_edges_between_two_nodes_and_walks_leave_types_out(edges: list[Edge]) -> None:
    index = build(edges)
    assert links_of(index, index.links) == expected_links(set(edges))
    assert links_of(index, index.walks) == expected_links({edge for edge in edges if edge[1] != RDF_TYPE.value})


@settings(derandomize=True, deadline=None)
@given(FEATURES)
def test_labels_and_descriptions_are_those_that_the_vocabulary_chooses(features: list[Feature]) -> None:
    vocabulary = Vocabulary()
    index = build([], features)
    nodes = by_node(features_of(index))
    labels = {node: label for node, found in nodes.items() if (label := vocabulary.label(found)) is not None}
    descriptions = {node: text for node, found in nodes.items() if (text := vocabulary.description(found)) is not None}
    assert chosen(index, index.labels.tolist()) == labels
    assert chosen(index, index.descriptions.tolist()) == descriptions


def test_each_group_holds_one_relation_of_one_node() -> None:
    index = build([("http://e/a", "http://e/r", "http://e/b"), ("http://e/a", "http://e/s", "http://e/b")])
    assert index.out.groups.tolist() == [0, 2, 2]
    assert index.out.relations.tolist() == [0, 1]
    assert index.out.starts.tolist() == [0, 1, 2]


def test_a_relation_is_a_node_only_where_something_is_said_about_it() -> None:
    index = build([("http://e/a", "http://e/r", "http://e/b")], [("http://e/r", LABEL, "R", STRING, None)])
    assert texts(index.nodes) == ["http://e/a", "http://e/b", "http://e/r"]
    assert texts(index.relations) == ["http://e/r", LABEL]
    assert index.relation_nodes.tolist() == [2, -1]


def test_the_ids_are_32_bit_and_the_positions_64_bit_numbers() -> None:
    index = build([("http://e/a", "http://e/r", "http://e/b")], [("http://e/a", LABEL, "A", STRING, None)])
    ids = (index.out.neighbors, index.into.relations, index.links.edges, index.relation_nodes, index.features.languages)
    positions = (index.out.groups, index.into.starts, index.links.starts, index.features.starts, index.labels)
    assert {array.dtype for array in ids} == {np.dtype(np.int32)}
    assert {array.dtype for array in positions} == {np.dtype(np.int64)}


def saved(folder: Path, index: GraphIndex) -> GraphIndex:
    (folder / "index").mkdir()
    save_index(index, folder / "index")
    return open_index(ArrayFiles(folder, "index"))


def test_an_index_of_nothing_can_be_saved_and_opened(tmp_path: Path) -> None:
    index = saved(tmp_path, build([]))
    assert (len(index.nodes), len(index.relations), len(index.out.neighbors), len(index.labels)) == (0, 0, 0, 0)
    assert index.nodes.find("http://e/a") is None


def test_an_opened_index_says_what_was_saved(tmp_path: Path) -> None:
    built = build([("http://e/a", "http://e/r", "http://e/b")], [("http://e/a", LABEL, "A", STRING, "en")])
    opened = saved(tmp_path, built)
    assert edges_of(opened, opened.into) == [("http://e/b", "http://e/r", "http://e/a")]
    assert features_of(opened) == [("http://e/a", LABEL, "A", STRING, "en")]
    assert opened.labels.tolist() == [0, -1]
